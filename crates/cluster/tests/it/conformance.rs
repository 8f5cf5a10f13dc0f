//! Runs the conformance suite of all frontiers on one partition, and what holds for each host on many, also over connections that are cut again
//! and again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use huntsman_cluster::{ClusterSettings, Durability, SharedFrontier};
use huntsman_crawler::{
    Fingerprint, Frontier, HostKey, Leased, Order, Pushed, Request, Result, Settled, Timestamp,
};
use huntsman_testkit::conformance::frontier::leases_left_by_a_dead_run_are_work_again;
use huntsman_testkit::redis::{Cluster, Counted, Cuts, Proxy, Server};

/// A frontier, and the servers that hold it and end after it.
struct Served {
    frontier: SharedFrontier,
    _proxies: Vec<Proxy>,
    _servers: Servers,
}

enum Servers {
    One(#[expect(dead_code, reason = "it ends when it is dropped")] Server),
    Cluster(#[expect(dead_code, reason = "it ends when it is dropped")] Cluster),
}

impl Frontier for Served {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        self.frontier.open().await
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        self.frontier.push(batch).await
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        self.frontier.lease(host, max, now).await
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        self.frontier.settle(batch).await
    }

    fn has_seen(&self, fingerprint: Fingerprint) -> bool {
        self.frontier.has_seen(fingerprint)
    }

    fn len(&self) -> u64 {
        self.frontier.len()
    }

    async fn longest_queues(&self, most: usize) -> Result<Vec<(HostKey, u64)>> {
        self.frontier.longest_queues(most).await
    }

    async fn queued_of(&self, host: &HostKey) -> Result<u64> {
        self.frontier.queued_of(host).await
    }

    async fn peek(&self, host: &HostKey, most: usize) -> Result<Vec<Request>> {
        self.frontier.peek(host, most).await
    }
}

fn settings(url: &str, job: u32) -> ClusterSettings {
    let settings: ClusterSettings = url.parse().expect("the address of a server");
    let settings = settings.job(format!("job{job}")).partitions(1).durability(Durability::Ack);
    // On a busy machine a server may take longer than a user would wait for it.
    settings.handover(Duration::from_secs(60))
}

fn make(order: Order) -> Served {
    let server = Server::start();
    let frontier = SharedFrontier::join(settings(&server.url(), 0), order).expect("the node joins");
    Served { frontier, _proxies: Vec::new(), _servers: Servers::One(server) }
}

huntsman_testkit::frontier_conformance!(shared, make);

/// As many partitions as a job has that nobody made on purpose.
fn make_in_parts(order: Order) -> Served {
    let server = Server::start();
    let settings = settings(&server.url(), 0).partitions(64);
    let frontier = SharedFrontier::join(settings, order).expect("the node joins");
    Served { frontier, _proxies: Vec::new(), _servers: Servers::One(server) }
}

huntsman_testkit::frontier_conformance!(in_parts in_parts, make_in_parts);

/// A frontier whose connections are cut from now on, each after a random number of bytes of the replies, so that the server has done what is sent
/// again. A node that joins tries once only: a wrong address should be told at once. `HUNTSMAN_SEED` chooses a run that was seen before.
fn cut(frontier: SharedFrontier, proxies: Vec<Proxy>, servers: Servers) -> Served {
    let given = std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    println!("HUNTSMAN_SEED={seed}");
    for (seed, proxy) in (seed..).zip(&proxies) {
        proxy.cut(Some(Cuts { seed, max_bytes: 20_000, counted: Counted::Answers }));
        proxy.cut_now();
    }
    Served { frontier, _proxies: proxies, _servers: servers }
}

fn make_over_a_bad_network(order: Order) -> Served {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let frontier = SharedFrontier::join(settings(&url, 0), order).expect("the node joins");
    cut(frontier, vec![proxy], Servers::One(server))
}

huntsman_testkit::frontier_conformance!(seeds 1, over_a_bad_network, make_over_a_bad_network);

fn make_in_parts_of_a_cluster_over_a_bad_network(order: Order) -> Served {
    let cluster = Cluster::start(3);
    let proxies = cluster.behind_proxies();
    let url = format!("redis://127.0.0.1:{}", proxies[0].port());
    let frontier = SharedFrontier::join(settings(&url, 0).partitions(64), order).expect("the node joins");
    cut(frontier, proxies, Servers::Cluster(cluster))
}

huntsman_testkit::frontier_conformance!(
    in_parts in_parts_of_a_cluster_over_a_bad_network, make_in_parts_of_a_cluster_over_a_bad_network
);

#[tokio::test]
async fn leases_of_a_node_that_left_are_work_again() {
    let server = Server::start();
    let jobs = AtomicU32::new(0);
    let last = Mutex::new(Order::Bfs);
    let make = |order| {
        *last.lock().expect("no test panics here") = order;
        let job = jobs.fetch_add(1, Ordering::Relaxed);
        SharedFrontier::join(settings(&server.url(), job), order).expect("the node joins")
    };
    leases_left_by_a_dead_run_are_work_again(&make, async |old| {
        drop(old);
        let (job, order) = (jobs.load(Ordering::Relaxed) - 1, *last.lock().expect("no test panics here"));
        SharedFrontier::join(settings(&server.url(), job), order).expect("the node joins again")
    })
    .await;
}
