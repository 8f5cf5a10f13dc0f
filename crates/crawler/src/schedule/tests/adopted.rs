//! Hosts that come from another process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    let learnt =
        |delay, until| Some(SavedPoliteness { delay: Duration::from_secs(delay), sleep_until: at(until) });
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
