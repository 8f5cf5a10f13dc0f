//! Load for frontiers, and an allocator that counts what it takes: for benches and tests of memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use huntsman_crawler::{HostKey, Request};

/// The system's allocator with a count of the bytes that are taken, as asked for: without the rounding of malloc.
///
/// To be declared as `#[global_allocator]` in a file of its own: whatever else runs in the process is counted, too.
#[derive(Debug, Default)]
pub struct CountingAllocator {
    bytes: AtomicUsize,
    peak: AtomicUsize,
}

impl CountingAllocator {
    /// Nothing taken yet.
    pub const fn new() -> Self {
        Self { bytes: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Bytes that are taken now.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Begins to watch for the most that is taken at once.
    pub fn watch_peak(&self) {
        self.peak.store(self.bytes(), Ordering::Relaxed);
    }

    /// The most that was taken at once since the watch began.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

#[expect(unsafe_code, reason = "counting what is allocated takes an allocator")]
// SAFETY: all calls go to the system's allocator unchanged; counting has no influence on what is returned.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = self.bytes.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        self.peak.fetch_max(bytes, Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.bytes.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Names of `n` hosts.
pub fn hosts(n: usize) -> Vec<HostKey> {
    (0..n).map(|n| HostKey::new(&format!("h{n:06}.example.org"))).collect()
}

/// The `links` links of the `page`th page, spread over the hosts: URLs of 60 bytes with depth and referer, no two alike.
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
