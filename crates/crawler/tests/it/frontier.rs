//! Runs the conformance suite of all frontiers on the memory frontier.

use huntsman_crawler::{Frontier, MemoryFrontier, Order, Request, Timestamp};

huntsman_testkit::frontier_conformance!(memory, MemoryFrontier::new);

#[derive(Clone, Debug, PartialEq)]
struct Mark(u32);

#[tokio::test]
async fn typed_values_survive_in_memory() {
    let frontier = MemoryFrontier::new(Order::Bfs);
    let mut request = Request::parse("http://a.example/").unwrap();
    request.extensions.insert(Mark(7));
    let host = request.host();
    frontier.push(vec![request]).await.unwrap();
    let leased = frontier.lease(&host, 1, Timestamp(0)).await.unwrap();
    assert_eq!(leased.leases[0].request.extensions.get::<Mark>(), Some(&Mark(7)));
}

#[tokio::test]
async fn leases_of_a_dropped_engine_are_work_again() {
    let frontier = MemoryFrontier::new(Order::Dfs);
    for n in 0..3 {
        frontier.push(vec![Request::parse(&format!("http://a.example/{n}")).unwrap()]).await.unwrap();
    }
    let host = Request::parse("http://a.example/").unwrap().host();
    frontier.lease(&host, 2, Timestamp(0)).await.unwrap();
    assert_eq!(frontier.open().await.unwrap(), [(host.clone(), 3)]);
    let leased = frontier.lease(&host, 3, Timestamp(0)).await.unwrap();
    let paths: Vec<&str> = leased.leases.iter().map(|lease| lease.request.url.path()).collect();
    assert_eq!(paths, ["/2", "/1", "/0"]);
}
