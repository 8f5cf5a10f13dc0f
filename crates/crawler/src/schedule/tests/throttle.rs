//! Tests of delays that adapt to the responses.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::settings::LatencyEstimate;

use super::*;

fn last(target_concurrency: f64, delay: f64) -> EngineSettings {
    EngineSettings { autothrottle_estimate: LatencyEstimate::Last, ..throttled(target_concurrency, delay) }
}

fn throttled(target_concurrency: f64, delay: f64) -> EngineSettings {
    EngineSettings {
        autothrottle_enabled: true,
        autothrottle_start_delay: 5.0,
        autothrottle_target_concurrency: target_concurrency,
        ..every(delay)
    }
}

/// The delays of a slot after each (latency, status), with one request at a time as the delay allows.
fn trace(settings: &EngineSettings, answers: &[(f64, u16)]) -> Vec<f64> {
    let mut s = Scheduler::new(settings, 0);
    s.woken(host("a"), at(0.0));
    let mut now = at(0.0);
    let mut delays = Vec::new();
    for &(latency, status) in answers {
        let ticket = loop {
            match s.next(now) {
                Next::Fetch(ticket) => break ticket,
                Next::Wait(at) => now = at,
                other => panic!("{other:?}"),
            }
        };
        let latency = Duration::from_secs_f64(latency);
        let started = now;
        s.ended(
            ticket,
            Outcome::Answer { status, latency, bytes: 0, retry_after: None, adjust_delay: true },
            now,
        );
        let delay = s.delay_of(&host("a")).unwrap();
        assert!(wait(&mut s, now).since(started) >= delay);
        delays.push((delay.as_secs_f64() * 1e6).round() / 1e6);
    }
    delays
}

#[test]
fn golden_autothrottle_traces_hold_through_slots() {
    // Recorded from the extension of Scrapy 2.19, except for the refusal in the second one, which doubles the delay
    // here.
    assert_eq!(trace(&last(1.0, 0.0), &[(0.2, 200); 6]), [2.6, 1.4, 0.8, 0.5, 0.35, 0.275]);
    let mixed = [(0.2, 200), (0.1, 404), (2.0, 404), (8.0, 503), (0.1, 200), (0.1, 200)];
    assert_eq!(trace(&last(1.0, 0.0), &mixed), [2.6, 2.6, 2.6, 8.0, 4.05, 2.075]);
    assert_eq!(trace(&last(4.0, 0.5), &[(0.4, 200); 4]), [2.55, 1.325, 0.7125, 0.5]);
    assert_eq!(trace(&last(1.0, 0.0), &[(100.0, 200), (1.0, 200)]), [60.0, 30.5]);
}

/// The default rule as documented, in seconds, with sorted lists. It covers no refusals, which have tests of their
/// own.
fn naive_trace(target_concurrency: f64, least: f64, answers: &[(f64, u16)]) -> Vec<f64> {
    let mut delay = f64::max(5.0, least);
    let mut seen = Vec::new();
    let mut step = |&(latency, status): &(f64, u16)| {
        seen.push(latency);
        let mut last: Vec<f64> = seen.iter().rev().take(5).copied().collect();
        last.sort_by(f64::total_cmp);
        let target = last[(last.len() - 1) / 2] / target_concurrency;
        let next = f64::max((delay + target) / 2.0, target).min(60.0).max(least);
        if status == 200 || next > delay {
            delay = next;
        }
        (delay * 1e6).round() / 1e6
    };
    answers.iter().map(&mut step).collect()
}

#[test]
fn golden_traces_of_the_median_hold_through_slots() {
    let default = throttled(1.0, 0.0);
    assert_eq!(
        trace(&default, &[(0.2, 200); 6]),
        [2.6, 1.4, 0.8, 0.5, 0.35, 0.275],
        "as ever where nothing varies"
    );
    // Of five responses, two may be slow.
    let answers = [(0.2, 200), (0.4, 200), (30.0, 200), (0.4, 200), (20.0, 404), (0.2, 200), (0.2, 200)];
    let delays = [2.6, 1.4, 0.9, 0.65, 0.65, 0.525, 0.4625];
    assert_eq!(trace(&default, &answers), delays);
    // When a host becomes slow, the delay follows with the third slow response.
    let slower = [(1.0, 200), (1.0, 200), (1.0, 200), (8.0, 200), (8.0, 200), (8.0, 200), (8.0, 200)];
    assert_eq!(trace(&default, &slower), [3.0, 2.0, 1.5, 1.25, 1.125, 8.0, 8.0]);
    assert_eq!(trace(&throttled(4.0, 0.5), &[(0.4, 200); 4]), [2.55, 1.325, 0.7125, 0.5]);

    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for round in 0..200 {
        let concurrency = [0.5, 1.0, 4.0][rng.random_range(0..3)];
        let least = [0.0, 1.0, 7.0][rng.random_range(0..3)];
        let answers: Vec<(f64, u16)> = (0..40)
            .map(|_| {
                let slow = rng.random_bool(0.3);
                let millis: u32 =
                    if slow { rng.random_range(2_000..90_000) } else { rng.random_range(10..900) };
                (f64::from(millis) / 1e3, [200, 200, 200, 301, 404, 500][rng.random_range(0..6)])
            })
            .collect();
        let (got, expected) =
            (trace(&throttled(concurrency, least), &answers), naive_trace(concurrency, least, &answers));
        for (n, (got, expected)) in got.iter().zip(&expected).enumerate() {
            assert!((got - expected).abs() < 1e-5, "round {round}, answer {n}: {got} and not {expected}");
        }
    }
}

#[test]
fn one_slow_answer_among_fast_ones_does_not_slow_the_host_down() {
    for at in 1..8 {
        let mut answers = [(0.3, 200); 8];
        answers[at].0 = 30.0;
        let steady = trace(&throttled(1.0, 0.0), &[(0.3, 200); 8]);
        assert_eq!(trace(&throttled(1.0, 0.0), &answers), steady, "answer {at}");
        assert!(trace(&last(1.0, 0.0), &answers)[at] >= 30.0, "as in Scrapy");
    }
}

#[test]
fn the_crawl_delay_is_the_floor_of_autothrottle() {
    let mut s = Scheduler::new(&throttled(1.0, 0.0), 0);
    s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(3)), at(0.0));
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(5)));
    s.woken(host("a"), at(0.0));
    let mut now = at(0.0);
    for _ in 0..5 {
        let ticket = fetch(&mut s, now);
        s.ended(ticket, answer(200), now);
        now = wait(&mut s, now);
    }
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(3)));
}

#[test]
fn a_request_may_keep_its_latency_out_of_it() {
    let mut s = Scheduler::new(&throttled(1.0, 0.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    let outcome = |status| Outcome::Answer {
        status,
        latency: Duration::from_secs(30),
        bytes: 0,
        retry_after: None,
        adjust_delay: false,
    };
    s.ended(ticket, outcome(200), at(0.0));
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(5)));
    let ticket = fetch(&mut s, at(5.0));
    s.ended(ticket, outcome(429), at(5.0));
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(10)), "but not a refusal");
}

#[test]
fn refusals_slow_the_host_without_autothrottle_and_good_answers_forgive() {
    let mut s = Scheduler::new(&at_once(4), 0);
    s.woken(host("a"), at(0.0));
    let mut now = at(0.0);
    let mut step = |status| {
        let ticket = loop {
            match s.next(now) {
                Next::Fetch(ticket) => break ticket,
                Next::Wait(at) => now = at,
                other => panic!("{other:?}"),
            }
        };
        s.ended(ticket, answer(status), now);
        s.delay_of(&host("a")).unwrap().as_millis()
    };
    let delays: Vec<u128> = [429, 503, 429, 404, 200, 200].into_iter().map(&mut step).collect();
    assert_eq!(delays, [1_000, 2_000, 4_000, 4_000, 2_000, 1_000]);
    let delays: Vec<u128> = [200; 8].into_iter().map(&mut step).collect();
    assert_eq!(delays[7], 0, "{delays:?}");
}

#[test]
fn refusals_that_were_in_flight_together_double_the_delay_once() {
    for settings in [at_once(8), EngineSettings { concurrent_requests_per_domain: 8, ..throttled(1.0, 0.0) }]
    {
        let settings = EngineSettings { autothrottle_start_delay: 0.0, ..settings };
        let mut s = Scheduler::new(&settings, 0);
        s.woken(host("a"), at(0.0));
        let tickets: Vec<Ticket> = (0..8).map(|_| fetch(&mut s, at(0.0))).collect();
        for ticket in tickets {
            s.ended(ticket, answer(429), at(0.0));
        }
        assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(1)));
    }
}

#[test]
fn a_delay_set_at_run_time_holds_at_once_and_is_the_new_floor() {
    let mut s = Scheduler::new(&throttled(1.0, 0.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.ended(ticket, answer(200), at(0.0));
    s.adjust(&host("a"), Politeness::Delay(Duration::from_secs(20)), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(20.0));
    let ticket = fetch(&mut s, at(20.0));
    s.ended(ticket, answer(200), at(20.0));
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(20)));
    s.adjust(&host("a"), Politeness::Delay(Duration::from_secs(1)), at(20.0));
    assert_eq!(wait(&mut s, at(20.0)), at(21.0));
}

#[test]
fn what_a_host_taught_is_noted_and_holds_in_the_next_run() {
    let settings = at_once(4);
    let mut s = Scheduler::new(&settings, 0);
    s.resume_with([].into_iter().collect());
    s.woken(host("a"), at(0.0));
    s.woken(host("b"), at(0.0));
    for _ in 0..2 {
        let ticket = fetch(&mut s, at(0.0));
        let is_a = ticket.host == host("a");
        s.ended(ticket, if is_a { refusal(429, 60) } else { answer(200) }, at(1.0));
    }
    let changes: Vec<_> = s.changes().collect();
    let learnt =
        SavedPoliteness { delay: Duration::from_secs(1), sleep_until: at(61.0), ..Default::default() };
    assert_eq!(changes, [(host("a"), Some(learnt))], "nothing is to be told of b");
    assert_eq!(SavedPoliteness::from_bytes(&learnt.to_bytes()), Some(learnt));
    assert_eq!(s.changes().count(), 0, "told once");

    let mut next = Scheduler::new(&settings, 0);
    next.resume_with([(host("a"), learnt)].into_iter().collect());
    next.woken(host("a"), at(2.0));
    assert_eq!(wait(&mut next, at(2.0)), at(61.0));
    let ticket = fetch(&mut next, at(61.0));
    assert_eq!(next.delay_of(&host("a")), Some(Duration::from_secs(1)));
    // The host answers well until the learnt delay is gone.
    next.ended(ticket, answer(200), at(61.0));
    for n in 0..10 {
        let ticket = fetch(&mut next, at(62.0 + f64::from(n)));
        next.ended(ticket, answer(200), at(62.0 + f64::from(n)));
    }
    assert_eq!(next.changes().collect::<Vec<_>>(), [(host("a"), None)], "forgotten");
}

#[test]
fn a_learnt_delay_stays_within_the_settings_of_the_next_run() {
    let mut s = Scheduler::new(&EngineSettings { autothrottle_max_delay: 10.0, ..every(2.0) }, 0);
    let learnt = |delay| SavedPoliteness { delay: Duration::from_secs(delay), ..Default::default() };
    s.resume_with([(host("slow"), learnt(60)), (host("quick"), learnt(1))].into_iter().collect());
    s.woken(host("slow"), at(0.0));
    s.woken(host("quick"), at(0.0));
    assert_eq!(s.delay_of(&host("slow")), Some(Duration::from_secs(10)));
    assert_eq!(s.delay_of(&host("quick")), Some(Duration::from_secs(2)));
}
