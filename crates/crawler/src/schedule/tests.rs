//! Tests of the scheduler's guarantees, in virtual time.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::context::Politeness;
use crate::host::HostKey;
use crate::settings::{EngineSettings, SlotSettings};

use super::{Next, Outcome, SavedPoliteness, Scheduler, SlotState, Ticket};

mod adopted;
mod health;
mod invariants;
mod model;
mod slots;
mod throttle;
mod tickets;

const SECOND: u64 = 1_000_000;

fn at(seconds: f64) -> Timestamp {
    Timestamp((seconds * 1e6).round() as u64)
}

fn host(name: &str) -> HostKey {
    HostKey::new(name)
}

/// One request at a time, `delay` seconds apart, no jitter.
fn every(delay: f64) -> EngineSettings {
    EngineSettings { download_delay: delay, download_delay_jitter: 0.0, ..EngineSettings::default() }
}

/// `concurrency` requests at a time, without a delay.
fn at_once(concurrency: usize) -> EngineSettings {
    EngineSettings { concurrent_requests_per_domain: concurrency, ..every(0.0) }
}

fn answer(status: u16) -> Outcome {
    Outcome::Answer {
        status,
        latency: Duration::from_millis(100),
        bytes: 0,
        retry_after: None,
        adjust_delay: true,
    }
}

fn refusal(status: u16, retry_after: u64) -> Outcome {
    Outcome::Answer {
        status,
        latency: Duration::ZERO,
        bytes: 0,
        retry_after: Some(Duration::from_secs(retry_after)),
        adjust_delay: true,
    }
}

const HOST_FAILURE: Outcome = Outcome::Failed { host_failure: true };

#[track_caller]
fn fetch(scheduler: &mut Scheduler, now: Timestamp) -> Ticket {
    match scheduler.next(now) {
        Next::Fetch(ticket) => ticket,
        other => panic!("expected a fetch at {now:?}, not {other:?}"),
    }
}

#[track_caller]
fn start(scheduler: &mut Scheduler, now: Timestamp) -> (u64, Ticket) {
    match scheduler.next(now) {
        Next::Start { waiter, ticket } => (waiter, ticket),
        other => panic!("expected a start at {now:?}, not {other:?}"),
    }
}

#[track_caller]
fn wait(scheduler: &mut Scheduler, now: Timestamp) -> Timestamp {
    match scheduler.next(now) {
        Next::Wait(at) => at,
        other => panic!("expected to wait at {now:?}, not {other:?}"),
    }
}

#[track_caller]
fn idle(scheduler: &mut Scheduler, now: Timestamp) {
    let next = scheduler.next(now);
    assert!(matches!(next, Next::Idle), "expected nothing to do at {now:?}, not {next:?}");
}
