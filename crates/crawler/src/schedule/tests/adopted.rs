//! Hosts that come from another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;

use super::*;

#[test]
fn the_first_start_of_an_adopted_host_waits_for_its_delay() {
    let mut scheduler = Scheduler::new(&every(2.0), 1);
    scheduler.adopt(host("a"), None, at(10.0));
    assert_eq!(wait(&mut scheduler, at(10.0)), at(12.0));
    // That it gets more requests makes it no earlier.
    scheduler.woken(host("a"), at(10.5));
    assert_eq!(wait(&mut scheduler, at(10.5)), at(12.0));
    let ticket = fetch(&mut scheduler, at(12.0));
    scheduler.ended(ticket, answer(200), at(12.1));
}

#[test]
fn an_adopted_host_has_the_delay_and_the_sleep_that_were_learnt() {
    let mut scheduler = Scheduler::new(&every(1.0), 1);
    let learnt = |delay, until| {
        Some(SavedPoliteness {
            delay: Duration::from_secs(delay),
            sleep_until: at(until),
            ..Default::default()
        })
    };
    scheduler.adopt(host("slow"), learnt(5, 0.0), at(10.0));
    assert_eq!(wait(&mut scheduler, at(10.0)), at(15.0));
    scheduler.adopt(host("tired"), learnt(1, 12.0), at(10.0));
    assert_eq!(wait(&mut scheduler, at(10.0)), at(12.0));
}

#[test]
fn a_host_that_was_known_before_waits_again_when_it_comes_back() {
    let mut scheduler = Scheduler::new(&every(2.0), 1);
    scheduler.woken(host("a"), at(10.0));
    let ticket = fetch(&mut scheduler, at(10.0));
    scheduler.ended(ticket, answer(200), at(10.1));
    scheduler.adopt_known(|adopted| adopted.as_str() == "a", at(20.0));
    scheduler.woken(host("a"), at(20.0));
    scheduler.woken(host("b"), at(20.0));
    assert_eq!(fetch(&mut scheduler, at(20.0)).host, host("b"), "only what was adopted waits");
    assert_eq!(wait(&mut scheduler, at(20.0)), at(22.0));
}

#[test]
fn a_host_without_requests_at_the_takeover_waits_when_it_gets_some() {
    let mut scheduler = Scheduler::new(&every(2.0), 1);
    let since = Arc::new(AtomicU64::new(0));
    let known = Arc::clone(&since);
    scheduler.share_with(Box::new(move |_| Some(Timestamp(known.load(Ordering::Relaxed)))));
    since.store(at(10.0).0, Ordering::Relaxed);
    scheduler.woken(host("a"), at(10.5));
    assert_eq!(wait(&mut scheduler, at(10.5)), at(12.0));
}

#[test]
fn an_adopted_host_waits_only_what_is_left_since_the_last_start_that_was_told() {
    let settings = every(2.0);
    let mut first = Scheduler::new(&settings, 1);
    first.share_with(Box::new(|_| None));
    first.woken(host("a"), at(10.0));
    let ticket = fetch(&mut first, at(10.0));
    first.ended(ticket, answer(200), at(10.5));
    first.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(5)), at(10.5));
    let left = first.leave(|left| left.as_str() == "a");
    let learnt = left[0].1.expect("a request was sent to the host");
    assert_eq!((learnt.last_start, learnt.crawl_delay), (at(10.0), Duration::from_secs(5)));
    assert_eq!(SavedPoliteness::from_bytes(&learnt.to_bytes()), Some(learnt));

    let mut second = Scheduler::new(&settings, 1);
    second.share_with(Box::new(|_| Some(at(13.0))));
    second.adopt(host("a"), Some(learnt), at(13.0));
    assert_eq!(wait(&mut second, at(13.0)), at(15.0), "five seconds after the last start of the first");
    // Without that start, as after a crash, the whole delay is waited for.
    let mut third = Scheduler::new(&settings, 1);
    third.adopt(host("a"), Some(SavedPoliteness { last_start: Timestamp(0), ..learnt }), at(13.0));
    assert_eq!(wait(&mut third, at(13.0)), at(18.0));
}

#[test]
fn other_processes_are_told_of_failures_and_of_the_crawl_delay() {
    let mut scheduler = Scheduler::new(&every(1.0), 1);
    scheduler.resume_with(HashMap::new());
    scheduler.share_with(Box::new(|_| None));
    scheduler.adjust(&host("a"), Politeness::CrawlDelay(Duration::from_secs(5)), at(1.0));
    let told: Vec<_> = scheduler.changes().collect();
    assert_eq!(told[0].1.map(|learnt| learnt.crawl_delay), Some(Duration::from_secs(5)));
    for begin in [2.0, 20.0] {
        scheduler.woken(host("a"), at(begin));
        let ticket = fetch(&mut scheduler, at(begin));
        scheduler.ended(ticket, Outcome::Failed { host_failure: true }, at(begin));
    }
    let told: Vec<_> = scheduler.changes().collect();
    assert!(told[0].1.is_some_and(|learnt| learnt.sleep_until > at(20.0)), "{told:?}");
}
