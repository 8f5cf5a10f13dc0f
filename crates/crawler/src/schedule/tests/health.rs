//! Tests of hosts that fail, refuse, and are given up.

use super::*;

/// Sends one request at a time, and each fails. Returns the waits in between, in seconds, until the host is given up.
fn waits_until_given_up(settings: &EngineSettings) -> Vec<u64> {
    let mut s = Scheduler::new(settings, 0);
    s.woken(host("a"), at(0.0));
    let (mut now, mut waits) = (at(0.0), Vec::new());
    for _ in 0..100 {
        match s.next(now) {
            Next::Fetch(ticket) => s.ended(ticket, HOST_FAILURE, now),
            Next::Wait(at) => {
                waits.push(at.since(now).as_secs());
                now = at;
            }
            Next::GiveUp { host: given_up, reason } => {
                assert_eq!((given_up, reason), (host("a"), "host_down"));
                assert_eq!(s.slot_state(&host("a")), SlotState::GaveUp("host_down"));
                idle(&mut s, now);
                return waits;
            }
            other => panic!("{other:?}"),
        }
    }
    waits
}

#[test]
fn a_host_that_fails_is_backed_off_then_down_then_probed_then_given_up() {
    // Failures 2, 3, 4 wait 2, 4, 8 s; the 5th takes the host down; three cool-downs follow, each ended by a probe
    // that fails.
    assert_eq!(waits_until_given_up(&every(0.0)), [2, 4, 8, 600, 600, 600]);
    // The delay is the base of the waits, and also the wait after the first failure.
    assert_eq!(waits_until_given_up(&every(10.0)), [10, 20, 40, 60, 600, 600, 600]);
    let none = EngineSettings { host_max_cooldowns: 0, ..every(0.0) };
    assert_eq!(waits_until_given_up(&none), [2, 4, 8]);
    let never = EngineSettings { host_max_failures: 0, ..every(0.0) };
    assert_eq!(waits_until_given_up(&never)[..7], [2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn a_probe_that_is_answered_brings_the_host_back() {
    let mut s = Scheduler::new(&at_once(4), 0);
    s.woken(host("a"), at(0.0));
    let mut now = at(0.0);
    while s.slot_state(&host("a")).name() != "down" {
        match s.next(now) {
            Next::Fetch(ticket) => s.ended(ticket, HOST_FAILURE, now),
            Next::Wait(at) => now = at,
            other => panic!("{other:?}"),
        }
    }
    let until = now + Duration::from_secs(600);
    assert_eq!(s.slot_state(&host("a")), SlotState::Down(until));
    assert_eq!(wait(&mut s, now), until);
    assert!(s.is_parked());
    let probe = fetch(&mut s, until);
    idle(&mut s, until);
    s.ended(probe, answer(500), until);
    assert_eq!(s.slot_state(&host("a")), SlotState::Active);
    let tickets: Vec<Ticket> = (0..4).map(|_| fetch(&mut s, until)).collect();
    // The failures were forgotten: the next failure counts as the first.
    for ticket in tickets {
        s.ended(ticket, HOST_FAILURE, until);
    }
    let _ticket = fetch(&mut s, until);
}

#[test]
fn failures_that_were_in_flight_together_count_once() {
    let mut s = Scheduler::new(&at_once(16), 0);
    s.woken(host("a"), at(0.0));
    let tickets: Vec<Ticket> = (0..16).map(|_| fetch(&mut s, at(0.0))).collect();
    for ticket in tickets {
        s.ended(ticket, HOST_FAILURE, at(1.0));
    }
    // A restart of the server causes no cool-down; but until it answers, it gets one request at a time.
    let one = fetch(&mut s, at(1.0));
    idle(&mut s, at(1.0));
    s.ended(one, answer(200), at(1.0));
    let _tickets: Vec<Ticket> = (0..16).map(|_| fetch(&mut s, at(1.0))).collect();
}

#[test]
fn failures_that_say_nothing_about_the_host_change_nothing() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    for n in 0..20 {
        let now = at(f64::from(n));
        let ticket = fetch(&mut s, now);
        s.ended(ticket, Outcome::Failed { host_failure: false }, now);
    }
    assert_eq!(s.slot_state(&host("a")), SlotState::Active);
}

#[test]
fn an_answer_between_failures_starts_the_count_again() {
    let mut s = Scheduler::new(&every(0.0), 0);
    s.woken(host("a"), at(0.0));
    for _ in 0..50 {
        let ticket = fetch(&mut s, at(0.0));
        s.ended(ticket, HOST_FAILURE, at(0.0));
        let ticket = fetch(&mut s, at(0.0));
        s.ended(ticket, answer(404), at(0.0));
    }
}

#[test]
fn retry_after_puts_one_host_to_sleep_up_to_the_cap() {
    let mut s = Scheduler::new(&at_once(3), 0);
    s.woken(host("a"), at(0.0));
    let (one, two) = (fetch(&mut s, at(0.0)), fetch(&mut s, at(0.0)));
    s.ended(one, refusal(503, 30), at(1.0));
    assert!(two.is_void(), "what is not sent yet waits as well");
    assert_eq!(s.slot_state(&host("a")), SlotState::Sleeping(at(31.0)));
    s.ended(two, refusal(429, 10), at(1.0));
    assert_eq!(wait(&mut s, at(1.0)), at(31.0), "a shorter wait does not end a longer one");
    s.woken(host("b"), at(1.0));
    assert_eq!(fetch(&mut s, at(1.0)).host, host("b"), "other hosts go on");
    let three = fetch(&mut s, at(31.0));
    let three = if three.host == host("b") { fetch(&mut s, at(31.0)) } else { three };
    s.ended(three, refusal(301, 120), at(31.0));
    assert_eq!(s.slot_state(&host("a")), SlotState::Sleeping(at(151.0)));
}

#[test]
fn retry_after_beyond_the_cap_is_not_believed_and_the_host_goes_on_at_doubled_delay() {
    let throttled =
        EngineSettings { autothrottle_enabled: true, autothrottle_start_delay: 2.0, ..every(2.0) };
    for settings in [every(2.0), throttled] {
        for years in [121, 10 * 365 * 86_400, u64::MAX] {
            let mut s = Scheduler::new(&settings, 0);
            s.woken(host("a"), at(0.0));
            let ticket = fetch(&mut s, at(0.0));
            s.ended(ticket, refusal(429, years), at(0.0));
            assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(4)), "{years}");
            assert_eq!(wait(&mut s, at(0.0)), at(4.0), "{years}");
            // A good response removes half of the excess.
            let ticket = fetch(&mut s, at(4.0));
            s.ended(ticket, answer(200), at(4.0));
            assert!(s.delay_of(&host("a")) <= Some(Duration::from_secs(3)), "{years}");
            let now = wait(&mut s, at(4.0));
            let ticket = fetch(&mut s, now);
            s.ended(ticket, refusal(302, years), now);
            assert!(wait(&mut s, now).since(now) <= Duration::from_secs(3), "{years}: a redirect neither");
        }
    }
}

#[test]
fn retry_after_of_other_answers_is_not_for_us() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.ended(ticket, refusal(200, 60), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(1.0));
}

#[test]
fn a_wished_sleep_wakes_by_itself() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    s.adjust(&host("a"), Politeness::SleepUntil(at(50.0)), at(0.0));
    s.adjust(&host("a"), Politeness::SleepUntil(at(20.0)), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(50.0));
    let _ticket = fetch(&mut s, at(50.0));
}

#[test]
fn a_host_that_is_given_up_says_so_once_for_each_work_that_comes() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.request_start(host("a"), 1, at(0.0));
    s.adjust(&host("a"), Politeness::GiveUp("crawl_delay"), at(0.0));
    s.adjust(&host("a"), Politeness::GiveUp("crawl_delay"), at(0.0));
    assert!(ticket.is_void());
    assert!(matches!(s.next(at(0.0)), Next::GiveUp { reason: "crawl_delay", .. }));
    idle(&mut s, at(9.0));
    s.ended(ticket, answer(200), at(9.0));
    idle(&mut s, at(9.0));
    s.woken(host("a"), at(10.0));
    assert!(matches!(s.next(at(10.0)), Next::GiveUp { .. }));
    idle(&mut s, at(10.0));
    s.request_start(host("a"), 2, at(11.0));
    assert!(matches!(s.next(at(11.0)), Next::GiveUp { .. }));
    idle(&mut s, at(11.0));
    assert_eq!(s.active(), 0);
}
