//! The promises of the conformance suite of all frontiers that a URLFrontier server can keep.

use huntsman_crawler::{
    Fingerprint, Frontier, HostKey, Leased, Order, Pushed, Request, Result, Settled, Timestamp,
};
use huntsman_url_frontier::test_server::Server;
use huntsman_url_frontier::{UrlFrontier, UrlFrontierSettings};

/// A frontier, and the server that holds its queue.
struct Served {
    frontier: UrlFrontier,
    server: Server,
}

impl Frontier for Served {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        // The frontier is not opened, so that it does not ask by itself: the tests say when a host is asked for.
        self.frontier.longest_queues(usize::MAX).await
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
        // What the server has not served yet, and what waits in this process.
        self.server.waiting("crawl") + self.frontier.len()
    }
}

fn make(order: Order) -> Served {
    let server = Server::start().without_pauses();
    let settings: UrlFrontierSettings = server.url().parse().expect("the address of a server");
    let frontier = UrlFrontier::join(settings, order).expect("the node joins");
    Served { frontier, server }
}

huntsman_testkit::frontier_conformance!(only served, make,
    a_frontier_begins_empty bfs_is_first_in_first_out hosts_do_not_mix a_lease_hands_out_no_more_than_asked_for
    a_request_is_accepted_once what_it_says_was_seen_was_seen done_work_is_gone_and_stays_known a_lease_ends_once
    again_takes_the_place_of_a_request_maybe_at_another_host
    again_of_a_known_request_is_refused_and_comes_back one_call_settles_many_leases_and_counts_all
    racing_pushes_accept_each_request_once racing_leases_hand_out_each_request_once
);

/// The same over a server that takes URLs one by one.
fn make_old(order: Order) -> Served {
    let server = Server::start().without_pauses().without_batches();
    let settings: UrlFrontierSettings = server.url().parse().expect("the address of a server");
    let frontier = UrlFrontier::join(settings, order).expect("the node joins");
    Served { frontier, server }
}

huntsman_testkit::frontier_conformance!(only served_by_an_old_server, make_old,
    hosts_do_not_mix a_request_is_accepted_once one_call_settles_many_leases_and_counts_all
);
