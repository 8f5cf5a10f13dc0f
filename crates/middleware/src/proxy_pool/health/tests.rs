//! Tests of choice and health in virtual time: examples, and a naive model over random steps.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const RULES: HealthRules = HealthRules {
    backoff: Duration::from_secs(10),
    max_backoff: Duration::from_secs(60),
    max_wait: Duration::from_secs(300),
};

fn pool(weights: &[u32]) -> Health {
    let listed = |(n, weight): (usize, &u32)| Listed {
        url: format!("http://user:SECRET@p{n}:1"),
        name: format!("p{n}:1"),
        weight: *weight,
    };
    Health::new(weights.iter().enumerate().map(listed).collect(), RULES)
}

fn at(seconds: u64) -> Timestamp {
    Timestamp(1_000_000 * (1_000 + seconds))
}

/// The proxy that a new request to a host gets.
fn chosen(pool: &mut Health, by: ProxyChoice, host: &str, now: Timestamp) -> Chosen {
    match pool.choose(by, host, Fingerprint(u128::MAX), now) {
        Choice::Use(chosen) => chosen,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_take_turns_by_weight() {
    let mut pool = pool(&[5, 1, 1]);
    let order: Vec<usize> =
        (0..7).map(|_| chosen(&mut pool, ProxyChoice::Request, "h", at(0)).index).collect();
    assert_eq!(order, [0, 0, 1, 0, 2, 0, 0], "the order of nginx for these weights");
    let again: Vec<usize> =
        (0..7).map(|_| chosen(&mut pool, ProxyChoice::Request, "h", at(0)).index).collect();
    assert_eq!(order, again);
}

#[test]
fn hosts_are_shared_by_weight_and_only_the_hosts_of_a_proxy_that_is_out_move() {
    let mut pool = pool(&[1, 1, 2]);
    let hosts: Vec<String> = (0..4_000).map(|n| format!("host{n}.example")).collect();
    let places = |pool: &mut Health, now| -> Vec<usize> {
        hosts.iter().map(|host| chosen(pool, ProxyChoice::Host, host, now).index).collect()
    };
    let before = places(&mut pool, at(0));
    let share = |index| before.iter().filter(|place| **place == index).count();
    assert!(
        (850..1_150).contains(&share(0)) && (1_850..2_150).contains(&share(2)),
        "{} {}",
        share(0),
        share(2)
    );
    let broken =
        chosen(&mut pool, ProxyChoice::Host, &hosts[before.iter().position(|p| *p == 0).unwrap()], at(0));
    pool.failed(broken, Fingerprint(1), "refused".to_owned(), at(0));
    let meanwhile = places(&mut pool, at(1));
    for (was, is) in before.iter().zip(&meanwhile) {
        assert!(if *was == 0 { *is != 0 } else { was == is }, "{was} {is}");
    }
    let trial = before.iter().position(|place| *place == 0).unwrap();
    let trial = chosen(&mut pool, ProxyChoice::Host, &hosts[trial], at(10));
    assert_eq!(trial.index, 0, "tried again");
    pool.succeeded(trial, Fingerprint(1), at(11));
    assert_eq!(places(&mut pool, at(12)), before, "its hosts return");
}

#[test]
fn a_proxy_is_out_for_longer_with_each_failure_and_tried_by_one_request() {
    let mut pool = pool(&[1]);
    let mut now = at(0);
    for seconds in [10, 20, 40, 60, 60] {
        let trial = chosen(&mut pool, ProxyChoice::Request, "h", now);
        let wait = pool.failed(trial, Fingerprint(1), "refused".to_owned(), now).unwrap();
        assert_eq!(wait, Duration::from_secs(seconds));
        let next = now + wait;
        assert_eq!(pool.choose(ProxyChoice::Request, "h", Fingerprint(1), now), Choice::Wait(next));
        now = next;
    }
    let trial = chosen(&mut pool, ProxyChoice::Request, "h", now);
    let second = pool.choose(ProxyChoice::Request, "h", Fingerprint(2), now);
    assert!(matches!(second, Choice::Wait(at) if at > now), "one request tries it: {second:?}");
    assert_eq!(pool.succeeded(trial, Fingerprint(1), now), (vec![], true));
    let works = chosen(&mut pool, ProxyChoice::Request, "h", now);
    let first = pool.failed(works, Fingerprint(1), "refused".to_owned(), now);
    assert_eq!(first, Some(Duration::from_secs(10)), "a success forgives");
}

#[test]
fn requests_in_flight_when_a_proxy_fails_count_once() {
    let mut pool = pool(&[1, 1]);
    let both: Vec<Chosen> = (0..8).map(|_| chosen(&mut pool, ProxyChoice::Request, "h", at(0))).collect();
    let first: Vec<Chosen> = both.into_iter().filter(|chosen| chosen.index == 0).collect();
    let told: Vec<bool> = first
        .iter()
        .map(|chosen| pool.failed(*chosen, Fingerprint(1), "x".to_owned(), at(1)).is_some())
        .collect();
    assert_eq!(told, [true, false, false, false]);
    assert!(!pool.is_usable(0, at(10)) && pool.is_usable(0, at(11)), "out for ten seconds, not eighty");
    assert_eq!(
        pool.succeeded(first[0], Fingerprint(2), at(2)),
        (vec![], false),
        "an old success says nothing new"
    );
    assert!(!pool.is_usable(0, at(10)));
}

#[test]
fn a_proxy_behind_which_sites_fail_is_blamed_only_if_another_succeeds() {
    let mut pool = pool(&[1, 1]);
    // A dead site fails through every proxy, and no proxy is blamed.
    for n in 0..20 {
        let Choice::Use(chosen) = pool.choose(ProxyChoice::Request, "dead", Fingerprint(n), at(0)) else {
            panic!()
        };
        pool.maybe_failed(chosen, Fingerprint(n), "no tunnel".to_owned());
    }
    assert!(pool.members.iter().all(|member| !member.is_out()));
    // A proxy that fails what the other one can do is out with the third request.
    let mut outs = Vec::new();
    for n in 100..103 {
        let bad = Chosen { index: 0, epoch: 0 };
        pool.maybe_failed(bad, Fingerprint(n), "silence".to_owned());
        let Choice::Use(other) = pool.choose(ProxyChoice::Request, "h", Fingerprint(n), at(0)) else {
            panic!()
        };
        assert_eq!(other.index, 1, "the retry takes another proxy");
        outs.push(pool.succeeded(other, Fingerprint(n), at(0)).0);
    }
    assert_eq!(outs, [vec![], vec![], vec![0]]);
}

#[test]
fn if_all_proxies_are_out_for_too_long_the_reason_names_how_many_and_the_last_error() {
    let mut pool = pool(&[1, 1, 1]);
    for n in 0..3 {
        let chosen = chosen(&mut pool, ProxyChoice::Request, "h", at(n));
        pool.failed(chosen, Fingerprint(n.into()), format!("error {n}"), at(n));
    }
    assert_eq!(pool.choose(ProxyChoice::Request, "h", Fingerprint(9), at(3)), Choice::Wait(at(10)));
    let mut now = at(3);
    let why = loop {
        match pool.choose(ProxyChoice::Request, "h", Fingerprint(9), now) {
            Choice::Wait(next) => now = next,
            Choice::Use(trial) => {
                pool.failed(trial, Fingerprint(8), "still no".to_owned(), now);
            }
            Choice::Exhausted(why) => break why,
        }
        assert!(now < at(400), "it ends");
    };
    assert!(now >= at(302), "not before the longest wait");
    assert!(why.contains("none of the 3 proxies works") && why.contains(": still no"), "{why}");
    assert!(!why.contains("SECRET") && !why.contains("user"), "{why}");
    now = now + Duration::from_secs(60);
    let trial = chosen(&mut pool, ProxyChoice::Request, "h", now);
    pool.succeeded(trial, Fingerprint(8), now);
    assert!(
        matches!(pool.choose(ProxyChoice::Request, "h", Fingerprint(9), now), Choice::Use(_)),
        "it goes on"
    );
}

/// What a person would write down of one proxy.
#[derive(Default)]
struct Note {
    /// Failures in a row, and when it may be tried again.
    out: Option<(u32, u64)>,
    strikes: u32,
    /// Numbers of requests that were sent through it since it last went out.
    valid: BTreeSet<u64>,
}

/// The naive model: it remembers every request by number, and works in whole seconds.
struct Model {
    notes: Vec<Note>,
    failed_by: BTreeMap<u128, Vec<usize>>,
}

impl Model {
    fn may(&self, index: usize, now: u64) -> bool {
        self.notes[index].out.is_none_or(|(_, until)| until <= now)
    }

    /// The proxies among which a request has to be decided.
    fn candidates(&self, request: u128, now: u64) -> Vec<usize> {
        let all: Vec<usize> = (0..self.notes.len()).filter(|index| self.may(*index, now)).collect();
        let failed = self.failed_by.get(&request).cloned().unwrap_or_default();
        let fresh: Vec<usize> = all.iter().copied().filter(|index| !failed.contains(index)).collect();
        if fresh.is_empty() { all } else { fresh }
    }

    fn wait(times: u32) -> u64 {
        (10 * 2_u64.pow(times - 1)).min(60)
    }

    fn sent(&mut self, index: usize, number: u64, now: u64) {
        let note = &mut self.notes[index];
        note.valid.insert(number);
        if let Some((times, until)) = &mut note.out {
            *until = now + Self::wait(*times);
        }
    }

    fn out(&mut self, index: usize, now: u64) {
        let note = &mut self.notes[index];
        let times = note.out.map_or(0, |(times, _)| times) + 1;
        *note = Note { out: Some((times, now + Self::wait(times))), ..Note::default() };
    }

    fn failed(&mut self, index: usize, number: u64, request: u128, now: u64) {
        self.failed_by.entry(request).or_default().push(index);
        if self.notes[index].valid.contains(&number) {
            self.out(index, now);
        }
    }

    fn succeeded(&mut self, index: usize, number: u64, request: u128, now: u64) {
        if self.notes[index].valid.contains(&number) {
            self.notes[index].out = None;
            self.notes[index].strikes = 0;
        }
        for other in self.failed_by.remove(&request).unwrap_or_default() {
            if other == index {
                continue;
            }
            self.notes[other].strikes += 1;
            if self.notes[other].strikes >= 3 && self.notes[other].out.is_none() {
                self.out(other, now);
            }
        }
    }
}

#[test]
fn choice_and_health_are_those_of_a_naive_model() {
    let seed =
        std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("HUNTSMAN_SEED={seed}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..200 {
        let count = random.random_range(1..6);
        let weights: Vec<u32> = (0..count).map(|_| random.random_range(1..4)).collect();
        let mut pool =
            Health::new(pool(&weights).members.into_iter().map(|member| member.listed).collect(), RULES);
        let mut model =
            Model { notes: (0..count).map(|_| Note::default()).collect(), failed_by: BTreeMap::new() };
        let by = if random.random() { ProxyChoice::Host } else { ProxyChoice::Request };
        let (mut now, mut number, mut flights) = (0_u64, 0_u64, Vec::new());
        for _ in 0..300 {
            now += if random.random_range(0..3) == 0 { random.random_range(0..15) } else { 0 };
            if flights.is_empty() || random.random_range(0..5) < 2 {
                let request = u128::from(random.random_range(0..20_u32));
                let host = format!("h{}", random.random_range(0..10));
                let candidates = model.candidates(request, now);
                match pool.choose(by, &host, Fingerprint(request), at(now)) {
                    Choice::Use(chosen) => {
                        assert!(
                            candidates.contains(&chosen.index),
                            "seed {seed}: {chosen:?} of {candidates:?}"
                        );
                        model.sent(chosen.index, number, now);
                        flights.push((chosen, number, request));
                        number += 1;
                    }
                    Choice::Wait(next) => {
                        assert!(candidates.is_empty() && next > at(now), "seed {seed}: {candidates:?}");
                    }
                    Choice::Exhausted(_) => assert!(candidates.is_empty(), "seed {seed}: {candidates:?}"),
                }
                continue;
            }
            let (chosen, number, request) = flights.swap_remove(random.random_range(0..flights.len()));
            match random.next_u32() % 3 {
                0 => {
                    pool.succeeded(chosen, Fingerprint(request), at(now));
                    model.succeeded(chosen.index, number, request, now);
                }
                1 => {
                    pool.maybe_failed(chosen, Fingerprint(request), "maybe".to_owned());
                    model.failed_by.entry(request).or_default().push(chosen.index);
                }
                _ => {
                    pool.failed(chosen, Fingerprint(request), "failed".to_owned(), at(now));
                    model.failed(chosen.index, number, request, now);
                }
            }
            for index in 0..count {
                assert_eq!(
                    (pool.members[index].is_out(), pool.is_usable(index, at(now))),
                    (model.notes[index].out.is_some(), model.may(index, now)),
                    "seed {seed}: proxy {index} at {now}"
                );
            }
        }
    }
}
