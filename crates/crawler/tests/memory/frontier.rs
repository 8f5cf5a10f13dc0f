//! Measures the bytes of the memory frontier.

use huntsman_crawler::{End, Frontier, Lease, MemoryFrontier, Order, Settled, Timestamp};
use huntsman_testkit::load::{hosts, links_of};

use crate::{ALLOCATOR, TURN};

/// Bytes per request while all are queued, and after all are done.
async fn bytes_per_request(count: usize, order: Order) -> (usize, usize) {
    const REQUESTS: usize = 40_000;
    let names = hosts(count);
    let frontier = MemoryFrontier::new(order);
    let before = ALLOCATOR.bytes();
    for page in 0..REQUESTS / 50 {
        frontier.push(links_of(page, 50, &names)).await.unwrap();
    }
    let queued = ALLOCATOR.bytes() - before;
    for host in &names {
        let leased = frontier.lease(host, usize::MAX, Timestamp(0)).await.unwrap().leases;
        let end = |lease: Lease| Settled {
            lease: lease.id,
            host: host.clone(),
            end: End::Done,
            children: Vec::new(),
        };
        frontier.settle(leased.into_iter().map(end).collect()).await.unwrap();
    }
    assert!(frontier.is_empty());
    let done = ALLOCATOR.bytes() - before;
    (queued / REQUESTS, done / REQUESTS)
}

#[tokio::test]
async fn a_queued_request_takes_less_than_400_bytes_and_one_that_is_done_less_than_40() {
    let _turn = TURN.lock().await;
    for (hosts, order) in [(1, Order::Dfs), (100, Order::Bfs), (40_000, Order::Bfs)] {
        let (queued, done) = bytes_per_request(hosts, order).await;
        println!("{hosts} hosts, {order:?}: {queued} bytes queued and seen, {done} bytes done");
        // Queued requests are in the seen set as well, so both limits apply together.
        assert!(queued < 400, "{hosts} hosts, {order:?}: {queued} bytes");
        assert!(done < 40, "{hosts} hosts, {order:?}: {done} bytes");
    }
}
