//! Compares random steps with a naive model that scans all slots every time.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// The expected result of the scheduler.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Fetch(HostKey),
    Start(u64),
    GiveUp(HostKey),
    Wait(u64),
    Idle,
}

#[derive(Clone, Debug)]
struct ModelSlot {
    delay: u64,
    crawl_delay: Option<u64>,
    concurrency: usize,
    sleep_until: u64,
    work: Option<u64>,
    wakes: u64,
    waiters: Vec<u64>,
    /// Starts in the order of their grant: (time, number). The last one is removed if it is refunded.
    starts: Vec<(u64, u64)>,
    active: usize,
    gave_up: bool,
}

struct Model {
    slots: BTreeMap<HostKey, ModelSlot>,
    give_ups: Vec<HostKey>,
    total: usize,
    limit: usize,
    last: HostKey,
    paused: bool,
    held: bool,
    grants: u64,
    delay: u64,
    concurrency: usize,
}

impl Model {
    fn slot(&mut self, host: &HostKey) -> &mut ModelSlot {
        let new = ModelSlot {
            delay: self.delay,
            crawl_delay: None,
            concurrency: self.concurrency,
            sleep_until: 0,
            work: None,
            wakes: 0,
            waiters: Vec::new(),
            starts: Vec::new(),
            active: 0,
            gave_up: false,
        };
        self.slots.entry(host.clone()).or_insert(new)
    }

    fn has_work(&mut self, host: &HostKey, at: u64) {
        let slot = self.slot(host);
        slot.wakes += 1;
        slot.work = Some(slot.work.map_or(at, |old| old.min(at)));
        self.again(host);
    }

    fn give_up(&mut self, host: &HostKey) {
        self.slot(host).gave_up = true;
        if !self.give_ups.contains(host) {
            self.give_ups.push(host.clone());
        }
    }

    fn again(&mut self, host: &HostKey) {
        if self.slot(host).gave_up {
            self.give_up(host);
        }
    }

    /// When the slot may start, if it has something to start.
    fn ready_at(slot: &ModelSlot) -> Option<u64> {
        let want = if slot.waiters.is_empty() { slot.work? } else { 0 };
        let concurrency = if slot.crawl_delay.is_some() { 1 } else { slot.concurrency };
        if slot.gave_up || slot.active >= concurrency {
            return None;
        }
        let delay = slot.delay.max(slot.crawl_delay.unwrap_or(0));
        let next = slot.starts.last().map_or(0, |(at, _)| at + delay);
        Some(want.max(next).max(slot.sleep_until))
    }

    /// The expected result, and the number of the grant.
    fn next(&mut self, now: u64) -> (Said, u64) {
        if !self.give_ups.is_empty() {
            let host = self.give_ups.remove(0);
            let slot = self.slot(&host);
            slot.work = None;
            slot.waiters.clear();
            return (Said::GiveUp(host), 0);
        }
        if self.paused || self.total >= self.limit {
            return (Said::Idle, 0);
        }
        let ready: Vec<(HostKey, u64)> =
            self.slots.iter().filter_map(|(key, slot)| Some((key.clone(), Self::ready_at(slot)?))).collect();
        let held = self.held;
        let best = ready
            .iter()
            .filter(|(key, at)| *at <= now && (!held || !self.slots[key].waiters.is_empty()))
            .min_by_key(|(key, _)| (self.slots[key].active, *key <= self.last, key.clone()));
        if let Some((key, _)) = best {
            let key = key.clone();
            self.grants += 1;
            self.total += 1;
            self.last = key.clone();
            let grant = self.grants;
            let slot = self.slot(&key);
            slot.active += 1;
            slot.starts.push((now, grant));
            if slot.waiters.is_empty() {
                slot.work = Some(0);
                return (Said::Fetch(key), grant);
            }
            return (Said::Start(slot.waiters.remove(0)), grant);
        }
        let later = ready.iter().map(|(_, at)| *at).filter(|at| *at > now).min();
        (later.map_or(Said::Idle, Said::Wait), 0)
    }

    fn ended(&mut self, host: &HostKey, grant: u64, unused: bool) {
        self.total -= 1;
        let slot = self.slot(host);
        slot.active -= 1;
        if unused && slot.starts.last().is_some_and(|&(_, last)| last == grant) {
            slot.starts.pop();
        }
    }
}

#[test]
fn answers_equal_a_naive_model_under_random_steps() {
    for round in 0..40u64 {
        let seed = 0xacc0_0000 + round;
        println!("seed {seed:#x}");
        run(seed, 10_000);
    }
}

fn run(seed: u64, steps: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let delay = [0, 1, 250_000, 1_000_000][rng.random_range(0..4usize)];
    let (limit, concurrency) = (rng.random_range(1..12), rng.random_range(1..5));
    let settings = EngineSettings {
        concurrent_requests: limit,
        ..EngineSettings { concurrent_requests_per_domain: concurrency, ..every(delay as f64 / 1e6) }
    };
    let mut s = Scheduler::new(&settings, seed);
    let mut model = Model {
        slots: BTreeMap::new(),
        give_ups: Vec::new(),
        total: 0,
        limit,
        last: host(""),
        paused: false,
        held: false,
        grants: 0,
        delay,
        concurrency,
    };
    let names: Vec<HostKey> = (0..10).map(|n| host(&format!("h{n}"))).collect();
    let mut out: Vec<(Ticket, u64, u64)> = Vec::new();
    let mut now = 5_000_000u64;
    let mut waiters = 0;
    for step in 0..steps {
        let time = Timestamp(now);
        let name = names[rng.random_range(0..names.len())].clone();
        match rng.random_range(0..100) {
            0..12 => {
                s.woken(name.clone(), time);
                model.has_work(&name, 0);
            }
            12..16 => {
                let due = now + rng.random_range(0..4_000_000);
                s.woken_at(name.clone(), Timestamp(due), time);
                model.has_work(&name, due);
            }
            16..26 => {
                waiters += 1;
                s.request_start(name.clone(), waiters, time);
                model.slot(&name).waiters.push(waiters);
                model.again(&name);
            }
            26..28 => {
                let waiter = rng.random_range(0..=waiters);
                s.cancel_start(&name, waiter);
                if let Some(slot) = model.slots.get_mut(&name) {
                    slot.waiters.retain(|&other| other != waiter);
                }
            }
            28..31 => {
                let slot = model.slot(&name);
                let change = match rng.random_range(0..16) {
                    0..4 => {
                        let millis = rng.random_range(0..2_000);
                        if millis == 0 {
                            slot.crawl_delay = None;
                        } else {
                            slot.crawl_delay = Some(slot.crawl_delay.unwrap_or(0).max(millis * 1_000));
                        }
                        Politeness::CrawlDelay(Duration::from_millis(millis))
                    }
                    4..6 => {
                        slot.crawl_delay = None;
                        Politeness::CrawlDelay(Duration::ZERO)
                    }
                    6..10 => {
                        slot.delay = rng.random_range(0..1_500_000);
                        Politeness::Delay(Duration::from_micros(slot.delay))
                    }
                    10..13 => {
                        slot.concurrency = rng.random_range(1..6);
                        Politeness::Concurrency(slot.concurrency)
                    }
                    13..15 => {
                        let until = now + rng.random_range(0..3_000_000);
                        slot.sleep_until = slot.sleep_until.max(until);
                        Politeness::SleepUntil(Timestamp(until))
                    }
                    _ if step % 7 == 0 => {
                        model.give_up(&name);
                        Politeness::GiveUp("tired")
                    }
                    _ => Politeness::SleepUntil(Timestamp(0)),
                };
                s.adjust(&name, change, time);
            }
            31..45 => now += rng.random_range(0..300_000),
            45..65 => {
                if !out.is_empty() {
                    let (ticket, grant, wakes) = out.swap_remove(rng.random_range(0..out.len()));
                    let name = ticket.host.clone();
                    match rng.random_range(0..5) {
                        0 => {
                            s.ended(ticket, Outcome::Unused, time);
                            model.ended(&name, grant, true);
                        }
                        1 => {
                            let next_at = rng.random_bool(0.4).then(|| now + rng.random_range(0..3_000_000));
                            s.nothing_due(ticket, next_at.map(Timestamp), time);
                            model.ended(&name, grant, true);
                            let slot = model.slot(&name);
                            if slot.wakes == wakes {
                                slot.work = next_at;
                            }
                        }
                        2 => {
                            s.ended(ticket, refusal(302, 2), time);
                            model.ended(&name, grant, false);
                            let slot = model.slot(&name);
                            slot.sleep_until = slot.sleep_until.max(now + 2_000_000);
                        }
                        3 => {
                            s.ended(ticket, Outcome::Failed { host_failure: false }, time);
                            model.ended(&name, grant, false);
                        }
                        _ => {
                            s.ended(ticket, answer(200), time);
                            model.ended(&name, grant, false);
                        }
                    }
                }
            }
            65..66 => {
                s.pause();
                model.paused = true;
            }
            66..68 => {
                s.resume();
                model.paused = false;
            }
            68..70 => {
                model.held = !model.held;
                s.hold_leases(model.held);
            }
            _ => {
                let (expected, grant) = model.next(now);
                let (said, ticket) = match s.next(time) {
                    Next::Fetch(ticket) => (Said::Fetch(ticket.host.clone()), Some(ticket)),
                    Next::Start { waiter, ticket } => (Said::Start(waiter), Some(ticket)),
                    Next::GiveUp { host, .. } => (Said::GiveUp(host), None),
                    Next::Wait(at) => (Said::Wait(at.0), None),
                    Next::Idle => (Said::Idle, None),
                };
                assert_eq!(said, expected, "seed {seed:#x} step {step} at {now}");
                if let Some(ticket) = ticket {
                    let wakes = model.slots[&ticket.host].wakes;
                    out.push((ticket, grant, wakes));
                }
                if let Said::Wait(at) = said
                    && rng.random_bool(0.5)
                {
                    // Advance exactly to that time, or to just before it.
                    if rng.random_bool(0.3) {
                        assert!(matches!(s.next(Timestamp(at - 1)), Next::Wait(again) if again.0 == at));
                    }
                    now = at;
                }
            }
        }
        assert_eq!(s.active(), model.total);
    }
    assert!(model.grants > 200, "seed {seed:#x}: {} grants test nothing", model.grants);
}
