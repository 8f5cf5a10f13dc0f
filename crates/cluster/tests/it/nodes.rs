//! Several nodes with many partitions.

use std::collections::BTreeSet;
use std::time::Duration;

use huntsman_cluster::{ClusterSettings, Operator, SharedFrontier, Wish};
use huntsman_crawler::{End, Frontier, HostKey, Order, Request, Settled, Timestamp};
use huntsman_testkit::redis::{Cluster, Server};

use super::scripts::{request, settings};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);
const HOSTS: u32 = 20;
pub(crate) const PAGES: u32 = 600;

fn join(settings: ClusterSettings) -> SharedFrontier {
    SharedFrontier::join(settings, Order::Bfs).expect("the node joins")
}

/// A page leads to two more, at other hosts.
pub(crate) fn page(n: u32) -> Request {
    request(&format!("http://h{}.example/{n}", n % HOSTS))
}

/// Takes what the node may take, until all pages were settled by some node; returns what this one settled.
pub(crate) async fn work(frontier: &SharedFrontier, all: &std::sync::Mutex<Vec<u32>>) -> usize {
    let mut own = 0;
    while all.lock().expect("no worker panics").len() < PAGES as usize {
        let before = own;
        for host in (0..HOSTS).map(|n| HostKey::new(&format!("h{n}.example"))) {
            if !frontier.claim(&host).await.expect("claim") {
                continue;
            }
            for lease in frontier.lease(&host, 4, NOW).await.expect("lease").leases {
                let n: u32 = lease.request.url.path()[1..].parse().expect("a number");
                let children =
                    [2 * n, 2 * n + 1].into_iter().filter(|child| *child <= PAGES).map(page).collect();
                let settled = Settled { lease: lease.id, host: host.clone(), end: End::Done, children };
                if frontier.settle(vec![settled]).await.expect("settle").void == 0 {
                    all.lock().expect("no worker panics").push(n);
                    own += 1;
                }
            }
        }
        if own == before {
            // The servers need the processors that a loop without a pause would take.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    own
}

async fn each_page_is_done_once_by_two_nodes(url: &str) {
    let settings = settings(url).partitions(16).lease(Duration::from_secs(3));
    let (first, second) = (join(settings.clone().node("first")), join(settings.clone().node("second")));
    first.open().await.expect("open");
    second.open().await.expect("open");
    first.push(vec![page(1)]).await.expect("push");
    // The same start requests of another node are known.
    assert_eq!(second.push(vec![page(1)]).await.expect("push").duplicates, 1);
    let all = std::sync::Mutex::new(Vec::new());
    let both = async { tokio::join!(work(&first, &all), work(&second, &all)) };
    let (a, b) = tokio::time::timeout(Duration::from_secs(120), both).await.expect("all pages are found");
    let all = all.into_inner().expect("no worker panics");
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), (1..=PAGES).collect());
    assert_eq!(all.len(), PAGES as usize, "no page was done twice");
    assert!(a > 0 && b > 0, "both worked: {a} and {b}");
    let status = Operator::connect(settings).expect("the job exists").status().expect("its state");
    assert_eq!((status.queued, status.leased, status.settled), (0, 0, u64::from(PAGES)));
    assert_eq!(status.nodes.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_of_many_partitions_are_done_once_by_two_nodes() {
    let server = Server::start();
    each_page_is_done_once_by_two_nodes(&server.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_of_servers_holds_a_queue_as_one_server_does() {
    let cluster = Cluster::start(3);
    each_page_is_done_once_by_two_nodes(&cluster.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_are_shared_evenly_when_nodes_come_and_go() {
    let server = Server::start();
    let settings = settings(&server.url()).partitions(12).lease(Duration::from_millis(900));
    let owns = async |frontier: &SharedFrontier, count: usize| {
        let even = async {
            while frontier.partitions_owned() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), even).await.expect("the partitions move");
    };
    let first = join(settings.clone().node("first"));
    first.open().await.expect("open");
    owns(&first, 12).await;
    let second = join(settings.clone().node("second"));
    second.open().await.expect("open");
    owns(&first, 6).await;
    owns(&second, 6).await;
    drop(first);
    owns(&second, 12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_the_job_and_drops_the_queue_of_a_host() {
    let server = Server::start();
    let settings = settings(&server.url()).partitions(4);
    let error = Operator::connect(settings.clone()).expect_err("there is no job").to_string();
    assert!(error.contains("there is no job \"job\""), "{error}");
    let node = join(settings.clone().node("n1"));
    node.open().await.expect("open");
    let at = |host: &str, n: u32| request(&format!("http://{host}.example/{n}"));
    node.push((0..1_500).map(|n| at("a", n)).chain([at("b", 1)]).collect()).await.expect("push");
    let leased = node.lease(&HostKey::new("b.example"), 1, NOW).await.expect("lease");
    assert_eq!(leased.leases.len(), 1);

    let mut operator = Operator::connect(settings).expect("the job exists");
    let status = operator.status().expect("its state");
    assert_eq!((status.queued, status.leased, status.outbox, status.settled), (1_500, 1, 0, 0));
    assert_eq!(status.partitions.len(), 4);
    assert!(status.partitions.iter().all(|partition| partition.node.as_deref() == Some("n1")));
    assert_eq!(status.nodes[0].name, "n1");
    assert_eq!(operator.drop_host("a.example").expect("drop"), 1_500);
    assert_eq!(operator.status().expect("its state").queued, 0);
    assert_eq!(node.push(vec![at("a", 1)]).await.expect("push").duplicates, 1, "they stay known");
    for wish in [Wish::Pause, Wish::Stop, Wish::Run] {
        operator.ask(wish).expect("ask");
        assert_eq!(operator.status().expect("its state").wish, wish);
    }
}
