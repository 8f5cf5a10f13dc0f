//! Tests of fairness between slots, of their own rules, and of what is remembered about them.

use std::collections::HashMap;

use super::*;

#[test]
fn a_host_with_a_long_queue_does_not_hold_back_nine_short_ones() {
    let settings = EngineSettings { concurrent_requests_per_domain: 8, ..every(0.0) };
    let mut s = Scheduler::new(&settings, 0);
    let mut queued: HashMap<HostKey, u32> = (1..10).map(|n| (host(&format!("h{n}")), 10)).collect();
    queued.insert(host("h0"), 100_000);
    for name in queued.keys() {
        s.woken(name.clone(), at(0.0));
    }
    let mut now = at(0.0);
    let mut in_flight = std::collections::VecDeque::new();
    let mut downloads = 0;
    while queued.iter().any(|(name, n)| *n > 0 && *name != host("h0")) {
        match s.next(now) {
            Next::Fetch(ticket) => match queued.get_mut(&ticket.host) {
                Some(0) | None => s.nothing_due(ticket, None, now),
                Some(n) => {
                    *n -= 1;
                    downloads += 1;
                    in_flight.push_back(ticket);
                }
            },
            _ => {
                now = now + Duration::from_millis(10);
                let ticket = in_flight.pop_front().expect("with nothing to grant something is in flight");
                s.ended(ticket, answer(200), now);
            }
        }
    }
    // The long queue gets all places in flight except those of the nine short queues.
    assert!(downloads <= 110, "{downloads} downloads until the short queues were done");
}

#[test]
fn the_slot_with_the_fewest_in_flight_is_next_and_ties_go_round() {
    let mut s = Scheduler::new(&at_once(3), 0);
    for name in ["b", "d", "a", "c"] {
        s.woken(host(name), at(0.0));
    }
    let mut tickets: Vec<Ticket> = (0..6).map(|_| fetch(&mut s, at(0.0))).collect();
    let names: Vec<&str> = tickets.iter().map(|t| t.host.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "a", "b"]);
    // d and c have one request in flight, a and b two. End both of b.
    let b: Vec<Ticket> = tickets.extract_if(.., |t| t.host == host("b")).collect();
    for ticket in b {
        s.ended(ticket, answer(200), at(0.0));
    }
    let more: Vec<Ticket> = (0..4).map(|_| fetch(&mut s, at(0.0))).collect();
    let names: Vec<&str> = more.iter().map(|t| t.host.as_str()).collect();
    // First b, which has none in flight; then those with one, in key order after b.
    assert_eq!(names, ["b", "c", "d", "b"]);
}

#[test]
fn hosts_that_hang_do_not_hold_back_one_that_answers() {
    // Connections that time out, and hosts that accept a connection but do not answer.
    for host_failure in [true, false] {
        hosts_that_hang(Outcome::Failed { host_failure });
    }
}

fn hosts_that_hang(failure: Outcome) {
    // There are 40 silent hosts, whose requests all end with a timeout of 15 s, and one host that answers in 10 ms.
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests: 16, ..at_once(2) }, 0);
    for n in 0..40 {
        s.woken(host(&format!("silent{n:02}")), at(0.0));
    }
    let healthy = host("z.healthy");
    s.woken(healthy.clone(), at(0.0));
    let mut pages = 0;
    let mut in_flight: Vec<(Timestamp, Ticket)> = Vec::new();
    let mut now = at(0.0);
    while now < at(60.0) {
        match s.next(now) {
            Next::Fetch(ticket) => {
                let is_healthy = ticket.host == healthy;
                pages += u32::from(is_healthy);
                let end = now + Duration::from_millis(if is_healthy { 10 } else { 15_000 });
                in_flight.push((end, ticket));
            }
            Next::Start { .. } => unreachable!("no start was requested"),
            Next::GiveUp { .. } => {}
            Next::Wait(_) | Next::Idle => {
                now = now + Duration::from_millis(10);
                for (_, ticket) in in_flight.extract_if(.., |(end, _)| *end <= now) {
                    let outcome = if ticket.host == healthy { answer(200) } else { failure };
                    s.ended(ticket, outcome, now);
                }
            }
        }
    }
    // In the worst case 40 silent hosts are served before it in key order, 16 and then 12 at a time, for 15 s each.
    // After that the healthy host has places of its own.
    assert!(pages > 1_000, "{pages} pages of the healthy host in 60 s, {failure:?}");
}

#[test]
fn a_quarter_of_the_places_is_kept_for_hosts_that_answer() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests: 8, ..at_once(2) }, 0);
    for (name, outcome) in [("answers", answer(200)), ("fails", HOST_FAILURE)] {
        s.woken(host(name), at(0.0));
        let ticket = fetch(&mut s, at(0.0));
        s.nothing_due(ticket, None, at(0.0));
        s.woken(host(name), at(0.0));
        let ticket = fetch(&mut s, at(0.0));
        s.no_more_due(&ticket, None, at(0.0));
        s.ended(ticket, outcome, at(0.0));
    }
    for name in ["answers", "fails"].map(str::to_owned).into_iter().chain((0..20).map(|n| format!("new{n}")))
    {
        s.woken(host(&name), at(0.0));
    }
    let tickets: Vec<Ticket> = (0..8).map(|_| fetch(&mut s, at(0.0))).collect();
    assert_eq!(tickets.iter().filter(|t| t.host == host("answers")).count(), 2);
    // The answering host gets back the places that it releases, although twenty others wait.
    let (answering, _others): (Vec<_>, Vec<_>) = tickets.into_iter().partition(|t| t.host == host("answers"));
    for ticket in answering {
        s.ended(ticket, answer(200), at(0.0));
    }
    let again = [fetch(&mut s, at(0.0)), fetch(&mut s, at(0.0))];
    assert!(again.iter().all(|t| t.host == host("answers")));
    // When it has no more requests, its places are free for all hosts.
    for ticket in again {
        s.nothing_due(ticket, None, at(0.0));
    }
    let _more = [fetch(&mut s, at(0.0)), fetch(&mut s, at(0.0))];
}

#[test]
fn failing_hosts_get_all_places_when_no_other_host_has_work() {
    let mut s = Scheduler::new(&EngineSettings { concurrent_requests: 4, ..at_once(1) }, 0);
    for n in 0..8 {
        s.woken(host(&format!("h{n}")), at(0.0));
    }
    for _ in 0..2 {
        let tickets: Vec<Ticket> = (0..4).map(|_| fetch(&mut s, at(0.0))).collect();
        for ticket in tickets {
            s.ended(ticket, HOST_FAILURE, at(0.0));
        }
    }
    let tickets: Vec<Ticket> = (0..4).map(|_| fetch(&mut s, at(0.0))).collect();
    assert_eq!(tickets.len(), 4);
}

#[test]
fn slots_of_the_settings_have_their_own_rules() {
    let mut settings = every(1.0);
    settings.download_slots.insert(
        "*.fast.example".into(),
        SlotSettings { concurrency: Some(2), delay: Some(0.0), jitter: None },
    );
    settings
        .download_slots
        .insert("slow.example".into(), SlotSettings { delay: Some(9.0), ..Default::default() });
    let mut s = Scheduler::new(&settings, 0);
    s.woken(host("a.fast.example"), at(0.0));
    let _tickets = [fetch(&mut s, at(0.0)), fetch(&mut s, at(0.0))];
    idle(&mut s, at(0.0));
    s.woken(host("slow.example"), at(0.0));
    let slow = fetch(&mut s, at(0.0));
    s.ended(slow, answer(200), at(0.0));
    assert_eq!(wait(&mut s, at(0.0)), at(9.0));
}

#[test]
fn an_idle_slot_is_forgotten_after_a_minute_and_its_delay() {
    let mut s = Scheduler::new(&every(5.0), 0);
    s.woken(host("a"), at(0.0));
    let ticket = fetch(&mut s, at(0.0));
    idle(&mut s, at(1_000.0));
    assert_eq!(s.slots(), 1, "something is in flight");
    s.nothing_due(ticket, None, at(1_000.0));
    idle(&mut s, at(1_064.9));
    assert_eq!(s.slots(), 1);
    idle(&mut s, at(1_065.0));
    assert_eq!(s.slots(), 0);
    assert_eq!(s.delay_of(&host("a")), None);
}

#[test]
fn the_rules_of_a_forgotten_slot_are_remembered() {
    let mut s = Scheduler::new(&at_once(4), 0);
    s.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(7)), at(0.0));
    s.adjust(&host("b"), Politeness::GiveUp("crawl_delay"), at(0.0));
    assert!(matches!(s.next(at(0.0)), Next::GiveUp { .. }));
    idle(&mut s, at(200.0));
    assert_eq!(s.slots(), 0);
    assert_eq!(s.slot_state(&host("b")), SlotState::GaveUp("crawl_delay"));
    s.woken(host("a"), at(200.0));
    assert_eq!(s.delay_of(&host("a")), Some(Duration::from_secs(7)));
    let _ticket = fetch(&mut s, at(200.0));
    idle(&mut s, at(300.0));
    s.woken(host("b"), at(300.0));
    assert!(matches!(s.next(at(300.0)), Next::GiveUp { reason: "crawl_delay", .. }));
}

#[test]
fn many_hosts_do_not_keep_as_many_slots() {
    let mut s = Scheduler::new(&every(1.0), 0);
    let mut most = 0;
    for n in 0..200_000u64 {
        // A thousand new hosts per second.
        let now = Timestamp(n * 1_000);
        s.woken(host(&format!("h{n}")), now);
        let ticket = fetch(&mut s, now);
        s.no_more_due(&ticket, None, now);
        s.ended(ticket, answer(200), now);
        most = most.max(s.slots());
    }
    assert!((60_000..=61_100).contains(&most), "61 s of a thousand hosts a second, not {most}");
}

#[test]
fn a_slot_is_small() {
    assert!(size_of::<super::super::slot::Slot>() <= 256, "{}", size_of::<super::super::slot::Slot>());
}

#[test]
fn parked_work_is_distinguished_from_work_that_waits_for_its_delay() {
    let mut s = Scheduler::new(&every(1.0), 0);
    assert!(s.is_parked());
    s.woken(host("a"), at(0.0));
    assert!(!s.is_parked());
    let ticket = fetch(&mut s, at(0.0));
    s.no_more_due(&ticket, None, at(0.0));
    assert!(!s.is_parked(), "in flight");
    s.ended(ticket, refusal(429, 60), at(0.0));
    s.woken(host("a"), at(0.0));
    assert!(!s.is_parked(), "a Retry-After of a host that answers is waited out");
    for round in 1..=3 {
        let now = at(f64::from(round) * 61.0);
        let ticket = fetch(&mut s, now);
        s.ended(ticket, refusal(429, 60), now);
        assert_eq!(s.is_parked(), round == 3, "asked for {} times without a good answer", round + 1);
    }
    let now = at(4.0 * 61.0);
    let ticket = fetch(&mut s, now);
    s.ended(ticket, answer(200), now);
    s.adjust(&host("a"), Politeness::SleepUntil(at(400.0)), now);
    s.woken(host("b"), now);
    let ticket = fetch(&mut s, now);
    s.ended(ticket, answer(200), now);
    assert!(!s.is_parked(), "b waits for its delay");
}
