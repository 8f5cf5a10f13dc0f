//! Runs the conformance suite of all frontiers on one partition, and what holds for each host on many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use huntsman_cluster::{ClusterSettings, Durability, SharedFrontier};
use huntsman_crawler::{
    Fingerprint, Frontier, HostKey, Leased, Order, Pushed, Request, Result, Settled, Timestamp,
};
use huntsman_testkit::conformance::frontier::leases_left_by_a_dead_run_are_work_again;
use huntsman_testkit::redis::Server;

/// A frontier, and the server that holds it and ends after it.
struct Served {
    frontier: SharedFrontier,
    _server: Server,
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

fn settings(server: &Server, job: u32) -> ClusterSettings {
    let settings: ClusterSettings = server.url().parse().expect("the address of a server");
    let settings = settings.job(format!("job{job}")).partitions(1).durability(Durability::Ack);
    // On a busy machine a server may take longer than a user would wait for it.
    settings.handover(Duration::from_secs(60))
}

fn make(order: Order) -> Served {
    let server = Server::start();
    let frontier = SharedFrontier::join(settings(&server, 0), order).expect("the node joins");
    Served { frontier, _server: server }
}

huntsman_testkit::frontier_conformance!(shared, make);

/// As many partitions as a job has that nobody made on purpose.
fn make_in_parts(order: Order) -> Served {
    let server = Server::start();
    let frontier = SharedFrontier::join(settings(&server, 0).partitions(64), order).expect("the node joins");
    Served { frontier, _server: server }
}

huntsman_testkit::frontier_conformance!(in_parts in_parts, make_in_parts);

#[tokio::test]
async fn leases_of_a_node_that_left_are_work_again() {
    let server = Server::start();
    let jobs = AtomicU32::new(0);
    let last = Mutex::new(Order::Bfs);
    let make = |order| {
        *last.lock().expect("no test panics here") = order;
        let job = jobs.fetch_add(1, Ordering::Relaxed);
        SharedFrontier::join(settings(&server, job), order).expect("the node joins")
    };
    leases_left_by_a_dead_run_are_work_again(&make, async |old| {
        drop(old);
        let (job, order) = (jobs.load(Ordering::Relaxed) - 1, *last.lock().expect("no test panics here"));
        SharedFrontier::join(settings(&server, job), order).expect("the node joins again")
    })
    .await;
}
