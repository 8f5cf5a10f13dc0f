//! Request load for frontiers, and an allocator that counts its bytes: for benches and tests of memory use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use huntsman_crawler::{HostKey, Request};

/// The system's allocator with a counter of the allocated bytes. It counts requested sizes, without the rounding of
/// malloc.
///
/// Declare it as `#[global_allocator]` in a test binary of its own, because it counts everything in the process.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

impl CountingAllocator {
    /// An allocator whose count is zero.
    pub const fn new() -> Self {
        Self { bytes: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Number of bytes that are allocated now.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Starts to record the peak of the allocated bytes.
    pub fn watch_peak(&self) {
        self.peak.store(self.bytes(), Ordering::Relaxed);
    }

    /// The largest number of bytes allocated at once since [`watch_peak`](Self::watch_peak).
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

#[expect(unsafe_code, reason = "counting what is allocated takes an allocator")]
// SAFETY: all calls go to the system's allocator unchanged; counting does not influence the results.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = self.bytes.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.peak.fetch_max(bytes, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Names of `n` hosts.
pub fn hosts(n: usize) -> Vec<HostKey> {
    (0..n).map(|n| HostKey::new(&format!("h{n:06}.example.org"))).collect()
}

/// The `links` requests of page number `page`, spread over the hosts: URLs of 60 bytes with depth and referrer, all
/// different.
pub fn links_of(page: usize, links: usize, hosts: &[HostKey]) -> Vec<Request> {
    let url = |kind: char, n: usize| {
        format!("http://{}/section/{kind}/article-{n:010}.html", hosts[n % hosts.len()])
    };
    let referer: Arc<str> = url('p', page).into();
    let link = |n: usize| {
        let mut request = Request::parse(&url('x', n)).expect("a URL");
        debug_assert_eq!(request.url.as_str().len(), 60);
        request.referer = Some(Arc::clone(&referer));
        request.depth = 3;
        request.assign_slot(hosts[n % hosts.len()].clone());
        let fingerprint = request.fingerprint();
        request.assign_fingerprint(fingerprint);
        request
    };
    (page * links..(page + 1) * links).map(link).collect()
}
