//! Random steps with all features switched on: checks invariants that must hold for any sequence of calls.

use std::collections::{HashMap, HashSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Grants of one slot that count towards the gap.
#[derive(Default)]
struct Seen {
    starts: Vec<(Timestamp, u64)>,
    active: usize,
}

fn settings(rng: &mut StdRng) -> EngineSettings {
    let pick = |rng: &mut StdRng, values: &[f64]| values[rng.random_range(0..values.len())];
    EngineSettings {
        concurrent_requests: rng.random_range(0..20),
        concurrent_requests_per_domain: rng.random_range(0..6),
        download_delay: pick(rng, &[0.0, 0.001, 0.3, 1.0]),
        download_delay_jitter: pick(rng, &[0.0, 0.5]),
        autothrottle_enabled: rng.random_bool(0.5),
        autothrottle_start_delay: 0.5,
        autothrottle_max_delay: 20.0,
        host_max_failures: rng.random_range(0..6),
        host_down_cooldown: 30.0,
        ..EngineSettings::default()
    }
}

#[test]
fn starts_keep_their_distance_under_random_steps() {
    for round in 0..24u64 {
        let seed = 0x5eed_0000 + round;
        println!("seed {seed:#x}");
        run(seed, 10_000);
    }
}

fn run(seed: u64, steps: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let settings = settings(&mut rng);
    let mut s = Scheduler::new(&settings, seed);
    let names: Vec<HostKey> = (0..8).map(|n| host(&format!("h{n}"))).collect();
    let mut now = at(1_000.0);
    let mut seen: HashMap<HostKey, Seen> = HashMap::new();
    // Tickets in flight, with the id of their grant and whether their request was sent.
    let mut out: Vec<(Ticket, u64, bool)> = Vec::new();
    let mut asked: HashSet<u64> = HashSet::new();
    let (mut grants, mut waiters) = (0u64, 0u64);
    let mut given_up: HashSet<HostKey> = HashSet::new();

    for step in 0..steps {
        let name = names[rng.random_range(0..names.len())].clone();
        match rng.random_range(0..100) {
            0..10 => s.woken(name, now),
            10..14 => {
                let due = now + Duration::from_millis(rng.random_range(0..5_000));
                s.woken_at(name, due, now);
            }
            14..24 => {
                waiters += 1;
                asked.insert(waiters);
                s.request_start(name, waiters, now);
            }
            24..26 => {
                if waiters > 0 {
                    let waiter = rng.random_range(1..=waiters);
                    names.iter().for_each(|name| s.cancel_start(name, waiter));
                    asked.remove(&waiter);
                }
            }
            26..30 => {
                let millis = |rng: &mut StdRng, most| Duration::from_millis(rng.random_range(0..most));
                let change = match rng.random_range(0..20) {
                    0..4 => Politeness::CrawlDelay(millis(&mut rng, 3_000)),
                    4..6 => Politeness::CrawlDelay(Duration::ZERO),
                    6..11 => Politeness::Delay(millis(&mut rng, 2_000)),
                    11..16 => Politeness::Concurrency(rng.random_range(0..5)),
                    16..19 => Politeness::SleepUntil(now + millis(&mut rng, 10_000)),
                    _ => Politeness::GiveUp("tired"),
                };
                s.adjust(&name, change, now);
                assert!(
                    out.iter()
                        .all(|(t, ..)| t.host != name || t.is_void() || t.version == version(&s, &name))
                );
            }
            30..45 => now = now + Duration::from_micros(rng.random_range(0..400_000)),
            45..46 => now = now + Duration::from_secs(rng.random_range(0..200)),
            46..75 => {
                if !out.is_empty() {
                    let (ticket, id, sent) = out.swap_remove(rng.random_range(0..out.len()));
                    let record = seen.get_mut(&ticket.host).unwrap();
                    record.active -= 1;
                    let unused = !sent && (ticket.is_void() || rng.random_bool(0.4));
                    if unused {
                        record.starts.retain(|&(_, other)| other != id);
                        let next_at = rng.random_bool(0.3).then(|| now + Duration::from_secs(1));
                        match rng.random_bool(0.5) {
                            true => s.nothing_due(ticket, next_at, now),
                            false => s.ended(ticket, Outcome::Unused, now),
                        }
                    } else {
                        let outcome = match rng.random_range(0..10) {
                            0..5 => answer(200),
                            5 => answer(503),
                            6 => refusal(429, rng.random_range(0..5)),
                            7 => Outcome::Failed { host_failure: false },
                            _ => HOST_FAILURE,
                        };
                        s.ended(ticket, outcome, now);
                    }
                }
            }
            75..80 => {
                if let Some((ticket, id, sent)) = out.iter_mut().find(|(t, _, sent)| !sent && !t.is_void()) {
                    ticket.sent(now);
                    *sent = true;
                    // From now on the gap counts from the time of sending.
                    let record = seen.get_mut(&ticket.host).unwrap();
                    if let Some(start) = record.starts.iter_mut().find(|(_, other)| other == id) {
                        start.0 = now;
                    }
                }
            }
            80..81 => s.pause(),
            81..83 => s.resume(),
            _ => {
                let before: HashMap<HostKey, _> =
                    names.iter().map(|name| (name.clone(), (s.delay_of(name), s.slot_state(name)))).collect();
                match s.next(now) {
                    Next::Fetch(ticket) | Next::Start { ticket, .. } if given_up.contains(&ticket.host) => {
                        panic!("seed {seed:#x} step {step}: {} was given up", ticket.host)
                    }
                    next @ (Next::Fetch(_) | Next::Start { .. }) => {
                        let ticket = match next {
                            Next::Start { waiter, ticket } => {
                                assert!(
                                    asked.remove(&waiter),
                                    "seed {seed:#x} step {step}: no start was requested"
                                );
                                ticket
                            }
                            Next::Fetch(ticket) => ticket,
                            _ => unreachable!("matched above"),
                        };
                        let record = seen.entry(ticket.host.clone()).or_default();
                        let (delay, state) = before[&ticket.host];
                        let delay = delay.expect("a slot that is granted a start is known");
                        assert!(!matches!(state, SlotState::Sleeping(until) if until > now), "asleep");
                        for (last, _) in &record.starts {
                            let gap = now.since(*last);
                            assert!(
                                gap >= floor(delay),
                                "seed {seed:#x} step {step}: gap {gap:?} < {delay:?}"
                            );
                        }
                        grants += 1;
                        record.starts.push((now, grants));
                        // Only the last starts can be too close.
                        let keep = record.starts.len().saturating_sub(32);
                        record.starts.drain(..keep);
                        record.active += 1;
                        if s.slot_of_test(&ticket.host).concurrency == 1 {
                            assert_eq!(record.active, 1, "seed {seed:#x} step {step}");
                        }
                        out.push((ticket, grants, false));
                        let limit = settings.concurrent_requests;
                        assert!(limit == 0 || out.len() <= limit, "seed {seed:#x} step {step}");
                    }
                    Next::GiveUp { host, .. } => {
                        given_up.insert(host);
                    }
                    Next::Wait(at) => assert!(at > now, "seed {seed:#x} step {step}: a wait for the past"),
                    Next::Idle => {}
                }
            }
        }
        assert_eq!(s.active(), out.len(), "seed {seed:#x} step {step}");
    }
    assert!(grants > 100, "seed {seed:#x}: {grants} grants test nothing");
    drain(&mut s, out, now, &given_up);
}

/// Ends all tickets and serves the remaining requests. This must terminate, and every step must make progress.
fn drain(s: &mut Scheduler, out: Vec<(Ticket, u64, bool)>, mut now: Timestamp, given_up: &HashSet<HostKey>) {
    s.resume();
    for (ticket, ..) in out {
        s.ended(ticket, answer(200), now);
    }
    for _ in 0..100_000 {
        match s.next(now) {
            Next::Fetch(ticket) => {
                assert!(!given_up.contains(&ticket.host));
                s.nothing_due(ticket, None, now);
            }
            Next::Start { ticket, .. } => s.ended(ticket, answer(200), now),
            Next::GiveUp { .. } => {}
            Next::Wait(at) => {
                assert!(at > now);
                now = at;
            }
            Next::Idle => {
                assert_eq!(s.active(), 0);
                assert!(s.is_parked());
                let _ = s.next(now + Duration::from_secs(10_000));
                return;
            }
        }
    }
    panic!("the scheduler never came to rest");
}

/// Rounds down to whole microseconds, the resolution of timestamps.
fn floor(delay: Duration) -> Duration {
    Duration::from_micros(u64::try_from(delay.as_micros()).unwrap())
}

struct SlotView {
    concurrency: u32,
}

impl Scheduler {
    fn slot_of_test(&self, host: &HostKey) -> SlotView {
        let id = self.find(host).expect("granted slots are known");
        SlotView { concurrency: self.slot(id).concurrency(&self.rules) }
    }
}

fn version(s: &Scheduler, host: &HostKey) -> u32 {
    let id = s.find(host).expect("adjusted slots are known");
    let shared = s.slot(id).shared.as_ref();
    shared.map_or(0, |shared| shared.version.load(std::sync::atomic::Ordering::Relaxed))
}
