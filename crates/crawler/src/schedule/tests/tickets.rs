//! Tests of starts, refunds, void tickets and waiters.

use super::*;

#[test]
fn starts_of_a_host_are_a_delay_apart() {
    let mut s = Scheduler::new(&every(2.0), 0);
    s.woken(host("a"), at(10.0));
    let one = fetch(&mut s, at(10.0));
    idle(&mut s, at(10.0));
    s.ended(one, answer(200), at(10.1));
    assert_eq!(wait(&mut s, at(10.1)), at(12.0));
    assert_eq!(wait(&mut s, Timestamp(12 * SECOND - 1)), at(12.0));
    let two = fetch(&mut s, at(12.0));
    s.ended(two, answer(200), at(15.0));
    let three = fetch(&mut s, at(15.0));
    s.nothing_due(three, None, at(15.0));
    idle(&mut s, at(15.0));
    assert_eq!(s.active(), 0);
}

#[test]
fn the_first_start_at_time_zero_counts() {
    let mut s = Scheduler::new(&every(2.0), 0);
    s.woken(host("a"), at(0.0));
    let one = fetch(&mut s, at(0.0));
    s.ended(one, answer(200), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(2.0));
}

#[test]
fn concurrent_starts_are_spaced_by_the_delay_as_well() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests_per_domain: 3, ..every(1.0) }, 0);
    s.woken(host("a"), at(0.0));
    let mut tickets = Vec::new();
    for n in 0..3 {
        tickets.push(fetch(&mut s, at(f64::from(n))));
        if n < 2 {
            assert_eq!(wait(&mut s, at(f64::from(n))), at(f64::from(n + 1)));
        }
    }
    idle(&mut s, at(9.0));
    s.ended(tickets.pop().unwrap(), answer(200), at(9.0));
    let _ticket = fetch(&mut s, at(9.0));
}

#[test]
fn jitter_only_lengthens_a_gap() {
    let mut s = Scheduler::new(&EngineSettings { download_delay_jitter: 0.5, ..every(1.0) }, 42);
    s.woken(host("a"), at(0.0));
    let (mut now, mut gaps) = (at(0.0), Vec::new());
    for _ in 0..200 {
        let ticket = fetch(&mut s, now);
        s.ended(ticket, answer(200), now);
        let next = wait(&mut s, now);
        gaps.push(next.since(now).as_secs_f64());
        now = next;
    }
    assert!(gaps.iter().all(|gap| (1.0..1.500_001).contains(gap)), "{gaps:?}");
    let mean = gaps.iter().sum::<f64>() / 200.0;
    assert!((1.2..1.3).contains(&mean), "{mean}");
}

#[test]
fn an_unused_start_costs_no_delay() {
    let mut s = Scheduler::new(&every(5.0), 0);
    s.woken(host("a"), at(0.0));
    let one = fetch(&mut s, at(0.0));
    s.ended(one, Outcome::Unused, at(1.0));
    let two = fetch(&mut s, at(1.0));
    s.ended(two, answer(200), at(1.0));
    assert_eq!(wait(&mut s, at(1.0)), at(6.0));
    let three = fetch(&mut s, at(6.0));
    s.ended(three, Outcome::Unused, at(7.0));
    // The gap counts from the second start again, and has passed.
    let _ticket = fetch(&mut s, at(7.0));
}

#[test]
fn an_unused_start_gives_nothing_back_once_a_later_one_was_granted() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests_per_domain: 2, ..every(5.0) }, 0);
    s.woken(host("a"), at(0.0));
    let one = fetch(&mut s, at(0.0));
    let _two = fetch(&mut s, at(5.0));
    s.ended(one, Outcome::Unused, at(6.0));
    assert_eq!(wait(&mut s, at(6.0)), at(10.0));
}

#[test]
fn an_empty_lease_puts_the_slot_to_sleep_until_its_delayed_work() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.nothing_due(ticket, Some(at(30.0)), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(30.0));
    assert!(s.is_parked());
    s.woken_at(host("a"), at(20.0), at(1.0));
    assert_eq!(wait(&mut s, at(1.0)), at(20.0));
    s.woken(host("a"), at(2.0));
    let _ticket = fetch(&mut s, at(2.0));
}

#[test]
fn work_that_arrives_during_an_empty_lease_is_not_forgotten() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.woken(host("a"), at(0.1));
    s.nothing_due(ticket, None, at(0.2));
    let ticket = fetch(&mut s, at(0.2));
    s.nothing_due(ticket, None, at(0.3));
    idle(&mut s, at(0.3));
}

#[test]
fn a_lease_that_took_the_last_request_saves_the_empty_one() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    s.no_more_due(&ticket, None, at(0.0));
    s.ended(ticket, answer(200), at(0.5));
    idle(&mut s, at(5.0));
}

#[test]
fn waiters_go_before_new_leases_first_come_first_served() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(0.0));
    for waiter in [7, 8, 9] {
        s.request_start(host("a"), waiter, at(0.0));
    }
    s.cancel_start(&host("a"), 8);
    s.cancel_start(&host("unknown"), 8);
    let (waiter, ticket) = start(&mut s, at(0.0));
    assert_eq!(waiter, 7);
    s.ended(ticket, answer(200), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(1.0));
    let (waiter, ticket) = start(&mut s, at(1.0));
    assert_eq!(waiter, 9);
    s.ended(ticket, answer(200), at(1.0));
    let _ticket = fetch(&mut s, at(2.0));
}

#[test]
fn waiters_are_served_while_leases_are_held() {
    let mut s = Scheduler::new(&at_once(4), 0);
    s.woken(host("a"), at(0.0));
    s.hold_leases(true);
    idle(&mut s, at(0.0));
    s.request_start(host("b"), 1, at(0.0));
    s.request_start(host("a"), 2, at(0.0));
    let (first, one) = start(&mut s, at(0.0));
    let (second, two) = start(&mut s, at(0.0));
    assert_eq!((first, second), (2, 1));
    idle(&mut s, at(0.0));
    s.hold_leases(false);
    let three = fetch(&mut s, at(0.0));
    for ticket in [one, two, three] {
        s.ended(ticket, answer(200), at(0.0));
    }
}

#[test]
fn a_crawl_delay_that_comes_while_sixteen_are_out_voids_them_and_holds_from_the_last_one_sent() {
    let mut s = Scheduler::new(&at_once(16), 0);
    s.woken(host("a"), at(0.0));
    let mut tickets: Vec<Ticket> = (0..16).map(|_| fetch(&mut s, at(0.0))).collect();
    for ticket in &tickets[..3] {
        ticket.sent(at(0.5));
    }
    assert!(tickets.iter().all(|ticket| !ticket.is_void()));
    s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(5)), at(1.0));
    assert!(tickets.iter().all(Ticket::is_void));
    // Tickets that were not sent are returned, and their requests ask for a start again.
    for (n, ticket) in tickets.drain(3..).enumerate() {
        s.ended(ticket, Outcome::Unused, at(1.0));
        s.request_start(host("a"), n as u64, at(1.0));
    }
    assert_eq!(s.active(), 3);
    idle(&mut s, at(1.0));
    for ticket in tickets {
        s.ended(ticket, answer(200), at(1.2));
    }
    let mut now = at(1.2);
    for n in 0..13u32 {
        now = wait(&mut s, now);
        assert_eq!(now, at(5.5 + 5.0 * f64::from(n)));
        let (waiter, ticket) = start(&mut s, now);
        assert_eq!(waiter, u64::from(n));
        assert!(!ticket.is_void());
        idle(&mut s, now);
        s.ended(ticket, answer(200), now);
    }
}

#[test]
fn the_gap_counts_from_the_last_start_that_was_sent_before_the_crawl_delay() {
    let mut s = Scheduler::new(&at_once(2), 0);
    s.woken(host("a"), at(0.0));
    let (one, two) = (fetch(&mut s, at(0.0)), fetch(&mut s, at(0.0)));
    one.sent(at(0.75));
    s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(5)), at(1.0));
    s.ended(two, Outcome::Unused, at(1.0));
    s.ended(one, answer(200), at(1.0));
    assert_eq!(wait(&mut s, at(1.0)), at(5.75));
    let _ticket = fetch(&mut s, at(5.75));
}

#[test]
fn a_late_sending_moves_the_next_start() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests_per_domain: 2, ..every(1.0) }, 0);
    s.woken(host("a"), at(0.0));
    let one = fetch(&mut s, at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(1.0));
    one.sent(at(0.8));
    assert_eq!(wait(&mut s, at(1.0)), at(1.8));
    let _ticket = fetch(&mut s, at(1.8));
}

#[test]
fn only_stricter_rules_void_tickets() {
    type Change = fn(&mut Scheduler);
    let cases: [(&str, Change, bool); 9] = [
        (
            "shorter delay",
            |s| s.adjust(&host("a"), Politeness::Delay(Duration::from_millis(500)), at(1.0)),
            false,
        ),
        ("longer delay", |s| s.adjust(&host("a"), Politeness::Delay(Duration::from_secs(3)), at(1.0)), true),
        ("more at once", |s| s.adjust(&host("a"), Politeness::Concurrency(9), at(1.0)), false),
        ("less at once", |s| s.adjust(&host("a"), Politeness::Concurrency(1), at(1.0)), true),
        ("sleep", |s| s.adjust(&host("a"), Politeness::SleepUntil(at(9.0)), at(1.0)), true),
        (
            "crawl delay",
            |s| s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_millis(1)), at(1.0)),
            true,
        ),
        ("no crawl delay", |s| s.adjust(&host("a"), Politeness::CrawlDelay(Duration::ZERO), at(1.0)), false),
        ("given up", |s| s.adjust(&host("a"), Politeness::GiveUp("why"), at(1.0)), true),
        ("another host", |s| s.adjust(&host("b"), Politeness::SleepUntil(at(9.0)), at(1.0)), false),
    ];
    for (name, change, expected) in cases {
        let mut s = Scheduler::new(&EngineSettings { concurrent_requests_per_domain: 4, ..every(1.0) }, 0);
        s.woken(host("a"), at(0.0));
        let ticket = fetch(&mut s, at(0.0));
        change(&mut s);
        assert_eq!(ticket.is_void(), expected, "{name}");
        s.ended(ticket, Outcome::Unused, at(1.0));
        assert_eq!(s.active(), 0, "{name}");
    }
}

#[test]
fn the_same_crawl_delay_again_voids_nothing() {
    let mut s = Scheduler::new(&every(1.0), 0);
    let delay = |s: &mut Scheduler, seconds| {
        s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(seconds)), at(0.0));
    };
    delay(&mut s, 5);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    delay(&mut s, 5);
    delay(&mut s, 3);
    assert!(!ticket.is_void());
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(5)), "the stricter of two authorities holds");
    delay(&mut s, 0);
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(1)));
    s.ended(ticket, answer(200), at(0.0));
}

#[test]
fn a_pause_grants_nothing_and_loses_nothing() {
    let mut s = Scheduler::new(&at_once(1), 0);
    s.woken(host("a"), at(0.0));
    s.pause();
    idle(&mut s, at(0.0));
    s.request_start(host("b"), 1, at(0.0));
    idle(&mut s, at(1.0));
    s.resume();
    let one = fetch(&mut s, at(1.0));
    s.pause();
    s.ended(one, answer(200), at(1.0));
    idle(&mut s, at(1.0));
    s.resume();
    let (waiter, _ticket) = start(&mut s, at(1.0));
    assert_eq!(waiter, 1);
}

#[test]
fn all_places_taken_is_idle_and_not_a_time() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests: 2, ..at_once(1) }, 0);
    for name in ["a", "b", "c"] {
        s.woken(host(name), at(0.0));
    }
    let one = fetch(&mut s, at(0.0));
    let _two = fetch(&mut s, at(0.0));
    idle(&mut s, at(0.0));
    assert_eq!(s.active(), 2);
    s.ended(one, answer(200), at(0.1));
    assert_eq!(fetch(&mut s, at(0.1)).host, host("c"));
}

#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let mut s = Scheduler::new(&every(1.0), 0);
    s.woken(host("a"), at(100.0));
    let one = fetch(&mut s, at(100.0));
    s.ended(one, answer(200), at(40.0));
    assert_eq!(wait(&mut s, at(40.0)), at(101.0));
}

#[test]
fn a_ticket_that_is_dropped_gives_its_place_back_but_not_its_delay() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests: 1, ..every(2.0) }, 0);
    s.woken(host("a"), at(0.0));
    drop(fetch(&mut s, at(0.0)));
    assert_eq!(wait(&mut s, at(1.0)), at(2.0));
    assert_eq!(s.active(), 0);
    let ticket = fetch(&mut s, at(2.0));
    s.ended(ticket, answer(200), at(2.0));
    assert_eq!(s.active(), 0);
}
