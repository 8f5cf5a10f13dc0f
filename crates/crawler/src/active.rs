//! Bytes of responses on their way from the network to the end of their callbacks: while there are too many, nothing is
//! leased.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A response counts at least this much (Scrapy's `MIN_RESPONSE_SIZE`).
const LEAST: usize = 1_024;

/// The sum; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveBytes(Arc<AtomicUsize>);

impl ActiveBytes {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a response until what is answered is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> Hold {
        let bytes = bytes.max(LEAST);
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Hold { bytes, of: self.clone() }
    }
}

/// Bytes that count.
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

/// The hold of a response. A copy of the response has none: whoever keeps one holds up nobody.
#[derive(Debug, Default)]
pub(crate) struct Held(pub(crate) Option<Hold>);

impl Clone for Held {
    fn clone(&self) -> Self {
        Self(None)
    }
}
