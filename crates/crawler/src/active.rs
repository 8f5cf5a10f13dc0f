//! Counts the bytes of responses between the network and the end of their callbacks. While there are too many, no
//! request is leased.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The least size that a response counts with (Scrapy's `MIN_RESPONSE_SIZE`).
const MIN_SIZE: usize = 1_024;

/// The sum of all held responses; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveBytes(Arc<AtomicUsize>);

impl ActiveBytes {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a response until the returned value is dropped.
    pub(crate) fn count(&self, bytes: usize) -> CountGuard {
        let bytes = bytes.max(MIN_SIZE);
        self.0.fetch_add(bytes, Ordering::Relaxed);
        CountGuard { bytes, of: self.clone() }
    }
}

/// The bytes of one counted response.
#[derive(Debug)]
pub(crate) struct CountGuard {
    bytes: usize,
    of: ActiveBytes,
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The count of a response. Clones of the response are not counted, so keeping one does not hold up the crawl.
#[derive(Debug, Default)]
pub(crate) struct CountedBytes(pub(crate) Option<CountGuard>);

impl Clone for CountedBytes {
    fn clone(&self) -> Self {
        Self(None)
    }
}
