//! Bytes that the frontier in memory takes, counted by the allocator. Alone in its file: other tests would be counted too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use huntsman_crawler::{End, Frontier, HostKey, MemoryFrontier, Order, Request, Settled, Timestamp};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "counting what is allocated takes an allocator")]
// SAFETY: all calls go to the system's allocator unchanged; counting has no influence on what is returned.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes per request while all are queued, and when all are done.
async fn bytes_per_request(hosts: usize, order: Order) -> (usize, usize) {
    const REQUESTS: usize = 40_000;
    let names: Vec<HostKey> = (0..hosts).map(|n| HostKey::new(&format!("h{n:05}.example.org"))).collect();
    let frontier = MemoryFrontier::new(order);
    let before = BYTES.load(Ordering::Relaxed);
    for page in 0..REQUESTS / 50 {
        let referer: Arc<str> =
            format!("http://h{:05}.example.org/section/page-{page:09}.html", page % hosts).into();
        let links = (0..50).map(|link| {
            let n = page * 50 + link;
            let url = format!("http://{}/section/x/article-{n:011}.html", names[n % hosts]);
            assert_eq!(url.len(), 60);
            let mut request = Request::parse(&url).unwrap();
            request.referer = Some(Arc::clone(&referer));
            request.depth = 3;
            request.assign_slot(names[n % hosts].clone());
            request
        });
        frontier.push(links.collect()).await.unwrap();
    }
    let queued = BYTES.load(Ordering::Relaxed) - before;
    for host in &names {
        let leased = frontier.lease(host, usize::MAX, Timestamp(0)).await.unwrap().leases;
        let end = |lease: huntsman_crawler::Lease| Settled {
            lease: lease.id,
            host: host.clone(),
            end: End::Done,
            children: Vec::new(),
        };
        frontier.settle(leased.into_iter().map(end).collect()).await.unwrap();
    }
    assert!(frontier.is_empty());
    let done = BYTES.load(Ordering::Relaxed) - before;
    (queued / REQUESTS, done / REQUESTS)
}

#[tokio::test]
async fn a_queued_request_takes_less_than_400_bytes_and_one_that_is_done_less_than_40() {
    for (hosts, order) in [(1, Order::Dfs), (100, Order::Bfs), (40_000, Order::Bfs)] {
        let (queued, done) = bytes_per_request(hosts, order).await;
        println!("{hosts} hosts, {order:?}: {queued} bytes queued and seen, {done} bytes done");
        // Queued ones are seen as well: both promises together.
        assert!(queued < 400, "{hosts} hosts, {order:?}: {queued} bytes");
        assert!(done < 40, "{hosts} hosts, {order:?}: {done} bytes");
    }
}
