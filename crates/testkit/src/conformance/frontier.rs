//! What every [`Frontier`] promises.
//!
//! Each function tests one promise and takes a factory of empty frontiers;
//! [`frontier_conformance!`](crate::frontier_conformance) makes a test of each. The promise that only persistent
//! frontiers make is separate: [`leases_left_by_a_dead_run_are_work_again`].
//!
//! The suite uses only the trait, and makes one call after the other unless a test says that it races. So a frontier
//! whose calls wait for a disk or a network passes as well.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{
    End, Fingerprint, Frontier, HostKey, Lease, LeaseId, Order, Pushed, Request, Settled, SlotBy, Timestamp,
    meta,
};

mod model;
mod random;

pub use random::random_steps_equal_a_naive_model;

/// Makes one test of each promise, in a module of its own, for a factory `Fn(Order) -> impl Frontier`.
///
/// ```
/// huntsman_testkit::frontier_conformance!(memory, huntsman_crawler::MemoryFrontier::new);
/// ```
///
/// A frontier whose hosts are in different parts, between which requests take a while, keeps the promises about one host:
/// `frontier_conformance!(in_parts shared, make)`. One that keeps some promises only names them:
/// `frontier_conformance!(only shared, make, hosts_do_not_mix a_lease_ends_once)`. Random steps are made with three seeds, or with as many as
/// `frontier_conformance!(seeds 1, shared, make)` says.
#[macro_export]
macro_rules! frontier_conformance {
    ($name:ident, $make:expr) => {
        $crate::frontier_conformance!(seeds 3, $name, $make);
    };
    (seeds $seeds:literal, $name:ident, $make:expr) => {
        mod $name {
            use super::*;

            $crate::frontier_conformance!(@of_a_host $make);
            $crate::frontier_conformance!(@ $make,
                a_request_is_known_on_every_host again_takes_the_place_of_a_request_maybe_at_another_host
                again_of_a_known_request_is_refused_and_comes_back
                a_host_is_woken_when_its_first_work_is_due_earlier one_call_settles_many_leases_and_counts_all
            );

            #[tokio::test]
            async fn random_steps_equal_a_naive_model() {
                for seed in 0..$seeds {
                    $crate::conformance::frontier::random_steps_equal_a_naive_model(&$make, seed).await;
                }
            }
        }
    };
    (in_parts $name:ident, $make:expr) => {
        mod $name {
            use super::*;

            $crate::frontier_conformance!(@of_a_host $make);
        }
    };
    (only $name:ident, $make:expr, $($promise:ident)+) => {
        mod $name {
            use super::*;

            $crate::frontier_conformance!(@ $make, $($promise)+);
        }
    };
    (@of_a_host $make:expr) => {
        $crate::frontier_conformance!(@ $make,
            requests_come_back_as_they_were a_frontier_begins_empty higher_priority_leaves_first
            bfs_is_first_in_first_out dfs_is_last_in_first_out best_first_goes_by_score
            start_requests_go_after_found_ones_and_keep_their_order delayed_requests_are_skipped_until_they_are_due
            hosts_do_not_mix a_lease_hands_out_no_more_than_asked_for a_request_is_accepted_once
            an_unfiltered_request_neither_asks_nor_tells_the_filter what_it_says_was_seen_was_seen done_work_is_gone_and_stays_known
            a_released_request_is_back_in_its_place again_waits_until_it_is_due
            a_lease_ends_once looking_at_the_queue_changes_nothing racing_pushes_accept_each_request_once
            racing_leases_hand_out_each_request_once
        );
    };
    (@ $make:expr, $($promise:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $promise() {
                $crate::conformance::frontier::$promise(&$make).await;
            }
        )+
    };
}

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

fn seconds(n: u64) -> Timestamp {
    NOW + Duration::from_secs(n)
}

fn host(name: &str) -> HostKey {
    HostKey::new(name)
}

/// A request as the engine passes it: slot and fingerprint are assigned.
fn request(url: &str) -> Request {
    assigned(Request::parse(url).expect("a URL of the suite is one"))
}

fn assigned(mut request: Request) -> Request {
    request.unassign();
    request.assign_slot(HostKey::of(&request.url, SlotBy::Host));
    let fingerprint = request.fingerprint();
    request.assign_fingerprint(fingerprint);
    request
}

fn start(url: &str) -> Request {
    request(url).with_meta(meta::IS_START_REQUEST, true)
}

fn at(mut request: Request, due: Timestamp) -> Request {
    request.not_before = Some(due);
    request
}

fn paths(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| lease.request.url.path()).collect()
}

fn names(hosts: &[HostKey]) -> BTreeSet<&str> {
    let names: BTreeSet<&str> = hosts.iter().map(HostKey::as_str).collect();
    assert_eq!(names.len(), hosts.len(), "a host is named once: {hosts:?}");
    names
}

async fn open<F: Frontier>(make: &impl Fn(Order) -> F, order: Order) -> F {
    let frontier = make(order);
    let hosts = frontier.open().await.expect("an empty frontier opens");
    assert!(hosts.is_empty(), "the factory gives empty frontiers, not one with {hosts:?}");
    frontier
}

async fn push<F: Frontier>(frontier: &F, requests: Vec<Request>) -> Pushed {
    frontier.push(requests).await.expect("push")
}

async fn lease<F: Frontier>(frontier: &F, name: &str, max: usize) -> Vec<Lease> {
    frontier.lease(&host(name), max, NOW).await.expect("lease").leases
}

/// Leases one due request of a host.
async fn one<F: Frontier>(frontier: &F, name: &str) -> Lease {
    lease(frontier, name, 1).await.pop().expect("the host has due work")
}

async fn settle<F: Frontier>(
    frontier: &F,
    name: &str,
    lease: LeaseId,
    end: End,
    children: Vec<Request>,
) -> Pushed {
    let settled = Settled { lease, host: host(name), end, children };
    frontier.settle(vec![settled]).await.expect("settle")
}

/// Leases and ends all due requests of a host, one by one; returns their paths in order.
async fn drain<F: Frontier>(frontier: &F, name: &str, now: Timestamp) -> Vec<String> {
    let mut order = Vec::new();
    loop {
        let mut leased = frontier.lease(&host(name), 1, now).await.expect("lease");
        let Some(lease) = leased.leases.pop() else { return order };
        order.push(lease.request.url.path().to_owned());
        settle(frontier, name, lease.id, End::Done, Vec::new()).await;
    }
}

/// What is seen of the queue is what leaves next, and looking leases nothing.
pub async fn looking_at_the_queue_changes_nothing<F: Frontier>(make: &impl Fn(Order) -> F) {
    for order in [Order::Bfs, Order::Dfs] {
        let frontier = open(make, order).await;
        for n in 0..9 {
            push(&frontier, vec![request(&format!("http://a.example/{n}")).priority(n % 3)]).await;
        }
        push(&frontier, vec![at(request("http://a.example/later"), seconds(9))]).await;
        push(&frontier, ["x", "y"].map(|path| request(&format!("http://b.example/{path}"))).to_vec()).await;
        let (a, b, c) = (host("a.example"), host("b.example"), host("c.example"));
        let queues = async |most| frontier.longest_queues(most).await.expect("longest queues");
        assert_eq!(queues(9).await, [(a.clone(), 10), (b.clone(), 2)], "{order:?}");
        assert_eq!(queues(1).await, [(a.clone(), 10)]);
        assert_eq!(queues(0).await, []);
        let peek = async |host: &HostKey, most| {
            let next = frontier.peek(host, most).await.expect("peek");
            next.iter().map(|request| request.url.path().to_owned()).collect::<Vec<_>>()
        };
        let (four, all) = (peek(&a, 4).await, peek(&a, 99).await);
        assert_eq!((four.as_slice(), all.len()), (&all[..4], 10), "{order:?}");
        assert!(peek(&a, 0).await.is_empty() && peek(&c, 4).await.is_empty());
        let leased = one(&frontier, "a.example").await;
        assert_eq!(leased.request.url.path(), all[0], "{order:?}");
        assert_eq!(frontier.queued_of(&a).await.expect("queued of"), 9, "a leased request is not queued");
        assert_eq!(frontier.queued_of(&c).await.expect("queued of"), 0);
        settle(&frontier, "a.example", leased.id, End::Release, Vec::new()).await;
        let mut left = drain(&frontier, "a.example", NOW).await;
        left.push("/later".to_owned());
        assert_eq!(left, all, "{order:?}");
    }
}

/// A leased request has all the data that it was pushed with, including its slot and its fingerprint.
pub async fn requests_come_back_as_they_were<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let mut slot = request("http://a.example/slot");
    slot.assign_slot(host("a slot of its own"));
    slot.assign_fingerprint(Fingerprint(7 << 100));
    let mut plain = request("http://a.example/x?y=1#frag");
    plain.referer = Some("http://a.example/".into());
    (plain.depth, plain.retries, plain.nofollow) = (3, 2, true);
    let full = Request::parse("https://user:pass@a.example:8443/full?q=%C3%A9&r=a+b")
        .expect("a URL")
        .method(http::Method::POST)
        .body(vec![0u8, 200, 255])
        .header("X-A", "1")
        .expect("a header")
        .header("X-A", "2")
        .expect("a header")
        .callback("detail")
        .errback("oops")
        .cb_kwarg("page", 3)
        .cookie("a", "b")
        .flag("seen twice")
        .encoding("windows-1251")
        .priority(-3)
        .meta("proxy", "http://p:1")
        .meta("nested", serde_json::json!({"a": [1, null, "x"]}));
    let others = ["http://xn--bcher-kva.example/", "http://[::1]:8080/", "http://a.example/%zz?'\"<>"];
    let mut requests = vec![slot, plain, assigned(full), start("http://a.example/start")];
    requests.extend(others.into_iter().map(request));
    requests.push(request("http://a.example/raw").unfiltered());
    requests.push(at(request("http://a.example/later"), seconds(0)));
    for sent in requests {
        let name = sent.host();
        push(&frontier, vec![sent.clone()]).await;
        let back = one(&frontier, name.as_str()).await;
        assert_eq!(back.request, sent);
        assert_eq!(back.request.host(), name);
        assert_eq!(back.request.fingerprint(), sent.fingerprint());
        assert_eq!(back.request.unfiltered, sent.unfiltered);
        assert_eq!(back.request.nofollow, sent.nofollow);
        settle(&frontier, name.as_str(), back.id, End::Done, Vec::new()).await;
    }
}

/// A new frontier is empty, and leasing from it is no error.
pub async fn a_frontier_begins_empty<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    assert!(frontier.is_empty());
    assert_eq!(frontier.len(), 0);
    let leased = frontier.lease(&host("a.example"), 10, NOW).await.expect("lease");
    assert!(leased.leases.is_empty() && leased.due == 0 && leased.next_at.is_none());
    let pushed = push(&frontier, Vec::new()).await;
    assert!(pushed.accepted == 0 && pushed.duplicates == 0 && pushed.woken.is_empty());
    frontier.settle(Vec::new()).await.expect("settle");
    frontier.sync().await.expect("sync");
}

/// Requests of higher priority leave first within a host, in every order.
pub async fn higher_priority_leaves_first<F: Frontier>(make: &impl Fn(Order) -> F) {
    for order in [Order::Bfs, Order::Dfs, Order::BestFirst] {
        let frontier = open(make, order).await;
        for (path, priority) in
            [("low", -1), ("least", i32::MIN), ("top", i32::MAX), ("none", 0), ("high", 1)]
        {
            push(&frontier, vec![request(&format!("http://a.example/{path}")).priority(priority)]).await;
        }
        // A start request of higher priority goes before found ones of lower priority.
        push(&frontier, vec![start("http://a.example/start").priority(2)]).await;
        let left = drain(&frontier, "a.example", NOW).await;
        assert_eq!(left, ["/top", "/start", "/high", "/none", "/low", "/least"], "{order:?}");
    }
}

/// In breadth-first order, requests leave first in, first out.
pub async fn bfs_is_first_in_first_out<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, ["1", "2"].map(|n| request(&format!("http://a.example/{n}"))).to_vec()).await;
    let first = one(&frontier, "a.example").await;
    let children = ["3", "4"].map(|n| request(&format!("http://a.example/{n}"))).to_vec();
    settle(&frontier, "a.example", first.id, End::Done, children).await;
    push(&frontier, vec![request("http://a.example/5")]).await;
    assert_eq!(first.request.url.path(), "/1");
    assert_eq!(drain(&frontier, "a.example", NOW).await, ["/2", "/3", "/4", "/5"]);
}

/// In depth-first order, requests leave last in, first out; of one batch, too, the last leaves first.
pub async fn dfs_is_last_in_first_out<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Dfs).await;
    push(&frontier, ["1", "2"].map(|n| request(&format!("http://a.example/{n}"))).to_vec()).await;
    let first = one(&frontier, "a.example").await;
    let children = ["3", "4"].map(|n| request(&format!("http://a.example/{n}"))).to_vec();
    settle(&frontier, "a.example", first.id, End::Done, children).await;
    push(&frontier, vec![request("http://a.example/5")]).await;
    assert_eq!(first.request.url.path(), "/2");
    assert_eq!(drain(&frontier, "a.example", NOW).await, ["/5", "/4", "/3", "/1"]);
}

/// In best-first order, the highest score leaves first, and equal scores first in, first out; a request without a
/// score counts as 0.
pub async fn best_first_goes_by_score<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::BestFirst).await;
    let scores = [("a", 0.5), ("b", -1.5), ("c", 1e300), ("d", 0.5), ("e", -1e-300), ("f", 2.0), ("g", -0.0)];
    for (path, score) in scores {
        push(&frontier, vec![request(&format!("http://a.example/{path}")).meta("score", score)]).await;
    }
    push(&frontier, vec![request("http://a.example/none"), request("http://a.example/int").meta("score", 1)])
        .await;
    let left = drain(&frontier, "a.example", NOW).await;
    assert_eq!(left, ["/c", "/f", "/int", "/a", "/d", "/g", "/none", "/e", "/b"]);
}

/// This holds in depth-first order, too. A request that is marked as a start request but was found on a page is not
/// treated as one.
pub async fn start_requests_go_after_found_ones_and_keep_their_order<F: Frontier>(
    make: &impl Fn(Order) -> F,
) {
    for (order, found) in [(Order::Bfs, ["/1", "/2", "/copied"]), (Order::Dfs, ["/copied", "/2", "/1"])] {
        let frontier = open(make, order).await;
        push(&frontier, vec![start("http://a.example/s1"), start("http://a.example/s2")]).await;
        push(&frontier, vec![request("http://a.example/1"), request("http://a.example/2")]).await;
        let mut copied = start("http://a.example/copied");
        copied.depth = 1;
        push(&frontier, vec![copied, start("http://a.example/s3")]).await;
        let mut left = drain(&frontier, "a.example", NOW).await;
        assert_eq!(left.split_off(3), ["/s1", "/s2", "/s3"], "{order:?}");
        assert_eq!(left, found, "{order:?}");
    }
}

/// A delayed request is skipped but counts as queued; once it is due, it has the place that it would have had without
/// the delay.
pub async fn delayed_requests_are_skipped_until_they_are_due<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(
        &frontier,
        vec![
            at(request("http://a.example/10s"), seconds(10)),
            at(request("http://a.example/5s"), seconds(5)),
            at(request("http://a.example/urgent"), seconds(7)).priority(1),
            request("http://a.example/now"),
        ],
    )
    .await;
    assert_eq!(frontier.len(), 4);
    let name = host("a.example");
    let ask = async |max, now| frontier.lease(&name, max, now).await.expect("lease");

    let leased = ask(9, NOW).await;
    assert_eq!((paths(&leased.leases), leased.due), (vec!["/now"], 0));
    assert_eq!(leased.next_at, Some(seconds(5)));
    assert_eq!(frontier.len(), 3);

    let just_before = Timestamp(seconds(5).0 - 1);
    let leased = ask(9, just_before).await;
    assert_eq!((leased.leases.len(), leased.due, leased.next_at), (0, 0, Some(seconds(5))));

    let leased = ask(0, seconds(7)).await;
    assert_eq!((leased.leases.len(), leased.due, leased.next_at), (0, 2, Some(seconds(10))));

    push(&frontier, vec![request("http://a.example/later")]).await;
    let leased = ask(9, seconds(10)).await;
    assert_eq!(paths(&leased.leases), ["/urgent", "/10s", "/5s", "/later"]);
    assert_eq!((leased.due, leased.next_at), (0, None));
    assert!(frontier.is_empty());
}

/// A lease returns only requests of its host, and hosts are counted separately.
pub async fn hosts_do_not_mix<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    // Names that are prefixes of one another, with characters that a key on disk might use as separators.
    let hosts = ["a", "a.example", "a.example.org", "a!", "a\u{0}b", "a/b", "ab"];
    let mut batch = Vec::new();
    for round in 0..3 {
        for (n, name) in hosts.iter().enumerate() {
            let mut request = request(&format!("http://x.example/{n}/{round}"));
            request.assign_slot(host(name));
            batch.push(request);
        }
    }
    let pushed = push(&frontier, batch).await;
    assert_eq!(names(&pushed.woken), BTreeSet::from(hosts));
    for (n, name) in hosts.iter().enumerate() {
        let leased = frontier.lease(&host(name), 2, NOW).await.expect("lease");
        assert_eq!(paths(&leased.leases), [format!("/{n}/0"), format!("/{n}/1")]);
        assert_eq!(leased.due, 1);
    }
    assert_eq!(frontier.len(), hosts.len() as u64);
    let left: BTreeMap<HostKey, u64> = frontier.open().await.expect("open").into_iter().collect();
    assert_eq!(left.keys().cloned().collect::<BTreeSet<_>>(), hosts.iter().map(|name| host(name)).collect());
}

/// A lease returns at most `max` requests; with 0 it returns only the counts.
pub async fn a_lease_hands_out_no_more_than_asked_for<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, (0..10).map(|n| request(&format!("http://a.example/{n}"))).collect()).await;
    let name = host("a.example");
    for (max, handed_out, due) in [(0, 0, 10), (3, 3, 7), (1, 1, 6), (100, 6, 0), (100, 0, 0)] {
        let leased = frontier.lease(&name, max, NOW).await.expect("lease");
        assert_eq!((leased.leases.len(), leased.due, leased.next_at), (handed_out, due, None));
        assert_eq!(frontier.len(), due);
    }
}

/// A request is accepted once within a batch, across calls, and as a child; only the fingerprint decides, whatever
/// else differs.
pub async fn a_request_is_accepted_once<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let same = || request("http://a.example/1");
    let pushed = push(&frontier, vec![same(), request("http://a.example/2"), same().priority(5)]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (2, 1));
    let pushed = push(&frontier, vec![same(), request("http://a.example/3")]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (1, 1));
    let lease = one(&frontier, "a.example").await;
    let children = vec![same(), request("http://a.example/4"), request("http://a.example/4")];
    let pushed = settle(&frontier, "a.example", lease.id, End::Done, children).await;
    assert_eq!((pushed.accepted, pushed.duplicates, pushed.refused.len()), (1, 2, 0));
    assert_eq!(drain(&frontier, "a.example", NOW).await, ["/2", "/3", "/4"]);
}

/// An assigned fingerprint counts, not the URL.
pub async fn a_request_is_known_on_every_host<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let known = request("http://a.example/1");
    let mut twin = request("http://b.example/other");
    twin.assign_fingerprint(known.fingerprint());
    push(&frontier, vec![known]).await;
    assert_eq!(push(&frontier, vec![twin]).await.duplicates, 1);
    assert_eq!(drain(&frontier, "b.example", NOW).await, [""; 0]);
}

/// As with Scrapy's `dont_filter`, the filter is neither queried nor updated.
pub async fn an_unfiltered_request_neither_asks_nor_tells_the_filter<F: Frontier>(
    make: &impl Fn(Order) -> F,
) {
    let frontier = open(make, Order::Bfs).await;
    let raw = || request("http://a.example/raw").unfiltered();
    let pushed = push(&frontier, vec![raw(), raw()]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (2, 0));
    let pushed = push(&frontier, vec![request("http://a.example/raw"), raw()]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (2, 0), "it told the filter");
    let pushed = push(&frontier, vec![request("http://a.example/raw")]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (0, 1));
    assert_eq!(drain(&frontier, "a.example", NOW).await.len(), 4);
}

/// `has_seen` may miss a request but must not claim one that was not seen; an unfiltered request does not count as
/// seen.
pub async fn what_it_says_was_seen_was_seen<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let mut said = 0;
    for n in 0..200 {
        let (known, unknown) =
            (request(&format!("http://a.example/{n}")), request(&format!("http://b.example/{n}")));
        push(&frontier, vec![known.clone(), unknown.clone().unfiltered()]).await;
        said += u32::from(frontier.has_seen(known.fingerprint()));
        assert!(!frontier.has_seen(unknown.fingerprint()), "{n}");
        assert!(!frontier.has_seen(Fingerprint(n)));
    }
    println!("has_seen knew {said} of 200");
}

/// A request that is done is neither handed out nor accepted again.
pub async fn done_work_is_gone_and_stays_known<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1")]).await;
    let lease = one(&frontier, "a.example").await;
    let pushed = settle(&frontier, "a.example", lease.id, End::Done, Vec::new()).await;
    assert!(pushed.accepted == 0 && pushed.woken.is_empty());
    assert!(frontier.is_empty());
    assert_eq!(push(&frontier, vec![request("http://a.example/1")]).await.duplicates, 1);
    assert!(lease_all(&frontier, "a.example").await.is_empty());
}

async fn lease_all<F: Frontier>(frontier: &F, name: &str) -> Vec<Lease> {
    lease(frontier, name, 1_000).await
}

/// A released request is queued as if it had not been leased, in every order, and may be leased again at once.
pub async fn a_released_request_is_back_in_its_place<F: Frontier>(make: &impl Fn(Order) -> F) {
    for order in [Order::Bfs, Order::Dfs, Order::BestFirst] {
        let frontier = open(make, order).await;
        let score = |n: u32| f64::from(n % 3);
        let requests =
            (0..6).map(|n| request(&format!("http://a.example/{n}")).meta("score", score(n))).collect();
        push(&frontier, requests).await;
        push(&frontier, vec![start("http://a.example/s"), at(request("http://a.example/was-delayed"), NOW)])
            .await;
        let all = lease_all(&frontier, "a.example").await;
        let expected: Vec<String> = paths(&all).into_iter().map(str::to_owned).collect();
        assert_eq!(expected.len(), 8);
        let mut woken = Vec::new();
        for n in [4, 1, 7, 0, 3, 6, 2, 5] {
            woken.extend(settle(&frontier, "a.example", all[n].id, End::Release, Vec::new()).await.woken);
        }
        assert_eq!(woken, [host("a.example")], "{order:?}");
        assert_eq!(frontier.len(), 8);
        let again = lease_all(&frontier, "a.example").await;
        assert_eq!(paths(&again), expected, "{order:?}");
        for lease in again {
            assert!(all.iter().all(|old| old.id != lease.id), "a lease has a name of its own");
        }
    }
}

/// The new request replaces the old one, which is gone but stays known.
pub async fn again_takes_the_place_of_a_request_maybe_at_another_host<F: Frontier>(
    make: &impl Fn(Order) -> F,
) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1")]).await;
    let lease = one(&frontier, "a.example").await;
    let again = End::Reschedule(Box::new(request("http://b.example/target")));
    let pushed =
        settle(&frontier, "a.example", lease.id, again, vec![request("http://c.example/child")]).await;
    assert_eq!((pushed.accepted, pushed.duplicates, pushed.refused.len()), (2, 0, 0));
    assert_eq!(names(&pushed.woken), BTreeSet::from(["b.example", "c.example"]));
    assert!(lease_all(&frontier, "a.example").await.is_empty());

    // A retry pushes the same request, past the filter.
    let lease = one(&frontier, "b.example").await;
    let mut retry = lease.request.clone().unfiltered().priority(-1);
    retry.retries = 1;
    let pushed = settle(&frontier, "b.example", lease.id, End::Reschedule(Box::new(retry)), Vec::new()).await;
    assert_eq!((pushed.accepted, names(&pushed.woken)), (1, BTreeSet::from(["b.example"])));
    let lease = one(&frontier, "b.example").await;
    assert_eq!((lease.request.retries, lease.request.priority), (1, -1));
    // The filter learnt the target when it was pushed.
    assert_eq!(push(&frontier, vec![request("http://b.example/target")]).await.duplicates, 1);
}

/// A known request is neither queued nor counted as a duplicate; it is returned.
pub async fn again_of_a_known_request_is_refused_and_comes_back<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1"), request("http://b.example/known")]).await;
    let lease = one(&frontier, "a.example").await;
    let target = request("http://b.example/known").with_meta(meta::REDIRECT_TIMES, 1);
    let again = End::Reschedule(Box::new(target.clone()));
    let pushed =
        settle(&frontier, "a.example", lease.id, again, vec![request("http://b.example/known")]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (0, 1), "the child is the duplicate");
    assert_eq!(pushed.refused, [target]);
    assert!(pushed.woken.is_empty());
    assert_eq!(frontier.len(), 1);
}

/// A request that is rescheduled with a back-off waits in the queue.
pub async fn again_waits_until_it_is_due<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1")]).await;
    let lease = one(&frontier, "a.example").await;
    let retry = at(lease.request.unfiltered(), seconds(3));
    let pushed = settle(&frontier, "a.example", lease.id, End::Reschedule(Box::new(retry)), Vec::new()).await;
    assert_eq!(pushed.woken, [host("a.example")]);
    let leased = frontier.lease(&host("a.example"), 1, NOW).await.expect("lease");
    assert_eq!((leased.leases.len(), leased.due, leased.next_at), (0, 0, Some(seconds(3))));
    let leased = frontier.lease(&host("a.example"), 1, seconds(3)).await.expect("lease");
    assert_eq!(leased.leases[0].request.not_before, Some(seconds(3)));
    // After a release it is due at the same time as before.
    let lease = leased.leases[0].id;
    settle(&frontier, "a.example", lease, End::Release, Vec::new()).await;
    assert_eq!(drain(&frontier, "a.example", seconds(3)).await, ["/1"]);
}

/// A host is reported only if its first request is now due earlier: if it had none, or if the delay became shorter or
/// ended, but not if further requests are added to due ones.
pub async fn a_host_is_woken_when_its_first_work_is_due_earlier<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let mut n = 0;
    let mut next = |due: Option<u64>| {
        n += 1;
        let request = request(&format!("http://a.example/{n}"));
        due.map_or(request.clone(), |due| at(request, seconds(due)))
    };
    let woken = |pushed: Pushed| !names(&pushed.woken).is_empty();
    for (due, expected, why) in [
        (Some(30), true, "nothing became delayed work"),
        (Some(40), false, "later work is no news"),
        (Some(30), false, "neither is work of the same time"),
        (Some(20), true, "earlier work"),
        (None, true, "due work"),
        (None, false, "more due work"),
        (Some(1), false, "delayed work beside due work"),
    ] {
        assert_eq!(woken(push(&frontier, vec![next(due)]).await), expected, "{why}");
    }
    let leased = lease_all(&frontier, "a.example").await;
    assert_eq!(leased.len(), 2);
    assert!(woken(push(&frontier, vec![next(None)]).await), "the due work was all leased");
    let children = vec![next(None), next(Some(2))];
    let pushed = settle(&frontier, "a.example", leased[0].id, End::Done, children).await;
    assert!(!woken(pushed));
    lease_all(&frontier, "a.example").await;
    let pushed = settle(&frontier, "a.example", leased[1].id, End::Release, Vec::new()).await;
    assert!(woken(pushed), "released work is work");
    // Within one call, only the state before the call counts.
    lease_all(&frontier, "a.example").await;
    let pushed = push(&frontier, vec![next(Some(0)), next(None), next(None)]).await;
    assert!(woken(pushed));
    // A duplicate does not wake the host.
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1")]).await;
    one(&frontier, "a.example").await;
    assert!(push(&frontier, vec![request("http://a.example/1")]).await.woken.is_empty());
}

/// One call ends the leases of several visits at the same time.
pub async fn one_call_settles_many_leases_and_counts_all<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    let urls = ["http://a.example/1", "http://a.example/2", "http://b.example/1", "http://c.example/1"];
    push(&frontier, urls.map(request).to_vec()).await;
    let a = lease_all(&frontier, "a.example").await;
    let (b, c) = (one(&frontier, "b.example").await, one(&frontier, "c.example").await);
    let settled = |lease: &Lease, end, children: &[&str]| Settled {
        lease: lease.id,
        host: lease.request.host(),
        end,
        children: children.iter().map(|url| request(url)).collect(),
    };
    let pushed = frontier
        .settle(vec![
            settled(&a[0], End::Done, &["http://a.example/3", "http://d.example/1"]),
            settled(&b, End::Reschedule(Box::new(request("http://a.example/3"))), &["http://d.example/1"]),
            settled(&c, End::Release, &[]),
            settled(&a[1], End::Reschedule(Box::new(request("http://d.example/2"))), &["http://a.example/1"]),
        ])
        .await
        .expect("settle");
    assert_eq!((pushed.accepted, pushed.duplicates, pushed.refused.len()), (3, 2, 1));
    assert_eq!(names(&pushed.woken), BTreeSet::from(["a.example", "c.example", "d.example"]));
    assert_eq!(frontier.len(), 4);
    assert_eq!(drain(&frontier, "d.example", NOW).await, ["/1", "/2"]);
}

/// A second call for the same lease does not settle it again.
pub async fn a_lease_ends_once<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = open(make, Order::Bfs).await;
    push(&frontier, vec![request("http://a.example/1")]).await;
    let lease = one(&frontier, "a.example").await;
    settle(&frontier, "a.example", lease.id, End::Release, Vec::new()).await;
    let second = one(&frontier, "a.example").await;
    let pushed = settle(&frontier, "a.example", lease.id, End::Release, Vec::new()).await;
    assert!(pushed.woken.is_empty());
    assert!(frontier.is_empty(), "the second lease is still out");
    settle(&frontier, "a.example", second.id, End::Done, Vec::new()).await;
    let again = End::Reschedule(Box::new(request("http://a.example/1").unfiltered()));
    let pushed = settle(&frontier, "a.example", second.id, again, Vec::new()).await;
    assert_eq!(pushed.accepted, 0);
    assert!(frontier.is_empty());
}

const RACERS: usize = 8;

/// Many tasks push the same requests at the same time, and each request is accepted once.
pub async fn racing_pushes_accept_each_request_once<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = Arc::new(open(make, Order::Bfs).await);
    let urls = 200;
    let racers = (0..RACERS).map(|racer| {
        let frontier = Arc::clone(&frontier);
        tokio::spawn(async move {
            let mut accepted = 0;
            for n in 0..urls {
                // Each task begins elsewhere, so all of them are early with some requests and late with others.
                let n = (n + racer * urls / RACERS) % urls;
                let url = format!("http://h{}.example/{n}", n % 3);
                accepted += push(&*frontier, vec![request(&url)]).await.accepted;
            }
            accepted
        })
    });
    let mut accepted = 0;
    for racer in racers.collect::<Vec<_>>() {
        accepted += racer.await.expect("the racer ends");
    }
    assert_eq!(accepted, urls as u64);
    assert_eq!(frontier.len(), urls as u64);
}

/// Each request is handed out to one task only, even while others push and settle; in the end all were handed out.
pub async fn racing_leases_hand_out_each_request_once<F: Frontier>(make: &impl Fn(Order) -> F) {
    let frontier = Arc::new(open(make, Order::Bfs).await);
    // A binary tree of requests: each leads to two more, up to this number.
    let pages = 500u32;
    push(&*frontier, vec![request("http://h1.example/1")]).await;
    let done = Arc::new(std::sync::Mutex::new(Vec::new()));
    let racers = (0..RACERS).map(|racer| {
        let (frontier, done) = (Arc::clone(&frontier), Arc::clone(&done));
        tokio::spawn(async move {
            let mut turn = racer;
            loop {
                let finished = done.lock().expect("no racer panics").len();
                if finished >= pages as usize {
                    return;
                }
                turn += 1;
                let name = format!("h{}.example", turn % 3);
                let leases = lease(&*frontier, &name, 2).await;
                if leases.is_empty() {
                    tokio::task::yield_now().await;
                }
                for lease in leases {
                    let n: u32 = lease.request.url.path()[1..].parse().expect("a number");
                    let children = [2 * n, 2 * n + 1].into_iter().filter(|&child| child <= pages);
                    let children =
                        children.map(|child| request(&format!("http://h{}.example/{child}", child % 3)));
                    done.lock().expect("no racer panics").push(n);
                    settle(&*frontier, &name, lease.id, End::Done, children.collect()).await;
                }
            }
        })
    });
    let racers: Vec<_> = racers.collect();
    let all = async {
        for racer in racers {
            racer.await.expect("the racer ends");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("the tree is worked off");
    let mut done = done.lock().expect("no racer panics").clone();
    done.sort_unstable();
    assert_eq!(done, (1..=pages).collect::<Vec<_>>());
    assert!(frontier.is_empty());
}

/// For persistent frontiers: requests that were leased and not settled are queued again in the next run, in their
/// places, and seen requests stay seen. `reopen` ends the run as a crash would and opens the frontier that it left.
pub async fn leases_left_by_a_dead_run_are_work_again<F: Frontier, Fut: Future<Output = F>>(
    make: &impl Fn(Order) -> F,
    reopen: impl Fn(F) -> Fut,
) {
    for order in [Order::Bfs, Order::Dfs] {
        let frontier = open(make, order).await;
        push(&frontier, (0..5).map(|n| request(&format!("http://a.example/{n}"))).collect()).await;
        push(
            &frontier,
            vec![at(request("http://b.example/later"), seconds(60)), start("http://b.example/s")],
        )
        .await;
        let expected: Vec<String> = match order {
            Order::Dfs => ["/3", "/2", "/1", "/0"].map(str::to_owned).to_vec(),
            _ => ["/1", "/2", "/3", "/4"].map(str::to_owned).to_vec(),
        };
        let done = one(&frontier, "a.example").await;
        settle(&frontier, "a.example", done.id, End::Done, Vec::new()).await;
        lease(&frontier, "a.example", 2).await;
        one(&frontier, "b.example").await;
        frontier.sync().await.expect("sync");

        let frontier = reopen(frontier).await;
        let hosts: BTreeMap<HostKey, u64> = frontier.open().await.expect("open").into_iter().collect();
        assert_eq!(hosts, BTreeMap::from([(host("a.example"), 4), (host("b.example"), 2)]));
        assert_eq!(frontier.len(), 6);
        assert_eq!(push(&frontier, vec![request("http://a.example/0")]).await.duplicates, 1);
        assert_eq!(drain(&frontier, "a.example", NOW).await, expected, "{order:?}");
        let leased = frontier.lease(&host("b.example"), 9, NOW).await.expect("lease");
        assert_eq!((paths(&leased.leases), leased.next_at), (vec!["/s"], Some(seconds(60))));
    }
}
