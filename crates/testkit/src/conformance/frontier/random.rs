//! Random calls; each result is compared with that of a naive model.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_crawler::{
    End, Frontier, HostKey, Lease, LeaseId, Order, Pushed, Request, Settled, Timestamp, meta,
};

use super::model::{Expected, Model};
use super::{NOW, assigned, at, host};
use crate::sites::Random;

/// Number of calls in one run.
const STEPS: usize = 10_000;
const HOSTS: usize = 5;

/// A lease, with its names in the frontier and in the model.
struct OpenLease {
    id: LeaseId,
    model: u64,
    host: HostKey,
    request: Request,
}

/// Makes ten thousand random calls in each order; the frontier must return the same as a model that scans a list.
pub async fn random_steps_equal_a_naive_model<F: Frontier>(make: &impl Fn(Order) -> F, seed: u64) {
    for order in [Order::Bfs, Order::Dfs, Order::BestFirst] {
        println!("seed {seed} {order:?}");
        run(&make(order), order, seed).await;
    }
}

async fn run<F: Frontier>(frontier: &F, order: Order, seed: u64) {
    frontier.open().await.expect("an empty frontier opens");
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ order as u64);
    let mut model = Model::new(order);
    let mut out: Vec<OpenLease> = Vec::new();
    let mut ended: Vec<OpenLease> = Vec::new();
    let mut now = NOW;
    let (mut handed_out, mut duplicates, mut refused) = (0, 0, 0);
    for step in 0..STEPS {
        let place = || format!("seed {seed} {order:?} step {step}");
        match random.below(10) {
            0..3 => {
                let batch: Vec<Request> =
                    (0..random.below(4)).map(|_| random_request(&mut random, now)).collect();
                let (before, mut expected) = (model.earliest(), Expected::default());
                model.push(batch.clone(), &mut expected);
                let pushed = frontier.push(batch).await.expect("push");
                compare(&pushed, &expected, &before, &model.earliest(), &place());
                duplicates += expected.duplicates;
            }
            3..6 => {
                let name = host(&format!("h{}", random.below(HOSTS)));
                let max = random.below(7);
                let (handed, due, next_at) = model.lease(&name, max, now);
                let leased = frontier.lease(&name, max, now).await.expect("lease");
                let requests: Vec<&Request> = leased.leases.iter().map(|lease| &lease.request).collect();
                let expected: Vec<&Request> = handed.iter().map(|(_, request)| request).collect();
                assert_eq!(requests, expected, "{}", place());
                assert_eq!((leased.due, leased.next_at), (due, next_at), "{}", place());
                handed_out += handed.len();
                for (Lease { id, request }, (model, _)) in leased.leases.into_iter().zip(handed) {
                    assert!(
                        out.iter().chain(&ended).all(|o| o.id != id),
                        "{}: {id:?} was named before",
                        place()
                    );
                    assert_eq!(request.host(), name);
                    out.push(OpenLease { id, model, host: name.clone(), request });
                }
            }
            6..9 => {
                let (before, mut expected) = (model.earliest(), Expected::default());
                let mut batch = Vec::new();
                for _ in 0..=random.below(3) {
                    // Sometimes it uses a lease that has already ended.
                    let from = if random.below(20) == 0 { &mut ended } else { &mut out };
                    if from.is_empty() {
                        continue;
                    }
                    let index = random.below(from.len());
                    let this = from.swap_remove(index);
                    let end = |random: &mut Random| match random.below(6) {
                        0 => End::Release,
                        1 => End::Reschedule(Box::new(random_request(random, now))),
                        2 => End::Reschedule(Box::new(retry(&this.request, random, now))),
                        _ => End::Done,
                    };
                    let mut twin = random.clone();
                    let (for_model, for_frontier) = (end(&mut twin), end(&mut random));
                    let children: Vec<Request> =
                        (0..random.below(2)).map(|_| random_request(&mut random, now)).collect();
                    model.settle(this.model, for_model, children.clone(), &mut expected);
                    let settled =
                        Settled { lease: this.id, host: this.host.clone(), end: for_frontier, children };
                    batch.push(settled);
                    ended.push(this);
                }
                let excess = ended.len().saturating_sub(50);
                ended.drain(..excess);
                let pushed = frontier.settle(batch).await.expect("settle");
                compare(&pushed, &expected, &before, &model.earliest(), &place());
                refused += expected.refused.len();
            }
            _ => now = Timestamp(now.0 + random.below(3_000_000) as u64),
        }
        assert_eq!(frontier.len(), model.len(), "{}", place());
        assert_eq!(frontier.is_empty(), model.len() == 0, "{}", place());
    }
    assert!(
        handed_out > 1_000 && duplicates > 100 && refused > 10,
        "too little happened to judge: {handed_out} handed out, {duplicates} duplicates, {refused} refused"
    );
    for this in out {
        model.settle(this.model, End::Release, Vec::new(), &mut Expected::default());
        let settled = Settled { lease: this.id, host: this.host, end: End::Release, children: Vec::new() };
        frontier.settle(vec![settled]).await.expect("settle");
    }
    let hosts: BTreeMap<HostKey, u64> = frontier.open().await.expect("open").into_iter().collect();
    assert_eq!(hosts, model.counts());
}

fn compare(
    pushed: &Pushed,
    expected: &Expected,
    before: &BTreeMap<HostKey, Timestamp>,
    after: &BTreeMap<HostKey, Timestamp>,
    place: &str,
) {
    assert_eq!((pushed.accepted, pushed.duplicates), (expected.accepted, expected.duplicates), "{place}");
    assert_eq!(pushed.refused, expected.refused, "{place}");
    let is_woken = |(host, at): &(&HostKey, &Timestamp)| before.get(*host).is_none_or(|old| *at < old);
    let expected: BTreeSet<&HostKey> = after.iter().filter(is_woken).map(|(host, _)| host).collect();
    let woken: BTreeSet<&HostKey> = pushed.woken.iter().collect();
    assert_eq!(woken.len(), pushed.woken.len(), "{place}: a host is woken once");
    assert_eq!(woken, expected, "{place}");
}

/// A request with one of few addresses, so that duplicates are common.
fn random_request(random: &mut Random, now: Timestamp) -> Request {
    let url = format!("http://h{}/{}", random.below(HOSTS), random.below(1_500));
    let mut request = Request::parse(&url).expect("a URL").priority(random.below(3) as i32 - 1);
    request.depth = random.below(3) as u16;
    match random.below(12) {
        0 => request = request.unfiltered(),
        1 => request = request.with_meta(meta::IS_START_REQUEST, true),
        2 | 3 => request = request.meta("score", random.below(5) as f64 / 2.0 - 1.0),
        4 => request = at(request, Timestamp(now.0 + random.below(6_000_000) as u64)),
        5 => request = request.method(http::Method::POST).body(vec![random.below(3) as u8]),
        6 => request.referer = Some("http://h0/".into()),
        _ => {}
    }
    assigned(request)
}

fn retry(request: &Request, random: &mut Random, now: Timestamp) -> Request {
    let due = Timestamp(now.0 + random.below(4_000_000) as u64);
    let mut request = at(request.clone().unfiltered(), due);
    request.retries = request.retries.saturating_add(1);
    request
}
