//! Counts the bytes of responses between the network and the end of their callbacks. While there are too many, no
//! request is leased.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The least size that a response counts with (Scrapy's `MIN_RESPONSE_SIZE`).
const LEAST: usize = 1_024;

/// The sum of all held responses; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveBytes(Arc<AtomicUsize>);

impl ActiveBytes {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a response until the returned value is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Hold {
        let bytes = bytes.max(LEAST);
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Hold { bytes, of: self.clone() }
    }
}

/// The bytes of one counted response.
#[derive(Debug)]
pub(crate) struct Hold {
    bytes: usize,
    of: ActiveBytes,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The count of a response. Clones of the response are not counted, so keeping one does not hold up the crawl.
#[derive(Debug, Default)]
pub(crate) struct Held(pub(crate) Option<Hold>);

impl Clone for Held {
    fn clone(&self) -> Self {
        Self(None)
    }
}
