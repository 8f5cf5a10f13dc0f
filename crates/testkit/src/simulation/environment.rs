//! The state that outlives a process of the simulated crawl: web, disk, time, and the record of what the crawl did.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use huntsman_crawler::{Request, Timestamp};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::disk::Disk;
use super::plan::{Incident, Plan, When};
use super::trace::Trace;
use super::web::{Tries, Web};

/// The time at which every world begins: it is always the same, so that a seed determines the run.
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000_000);

/// More requests than any crawl of such a web can need.
const MAX_FETCHES: usize = 20_000;

/// A request that reached the downloader.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) life: u32,
    pub(super) request: Request,
    /// The number of the attempt, as passed to the web.
    pub(super) nth: u64,
    /// When it happened, in the time of the world.
    pub(super) at: Duration,
}

/// The simulated world; clones share it.
#[derive(Clone)]
pub(super) struct Environment {
    pub(super) web: Arc<Web>,
    pub(super) disk: Disk,
    pub(super) seed: u64,
    seen: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    trace: Trace,
    broken: Vec<String>,
    fetches: Vec<Fetch>,
    tries: Tries,
    /// Addresses that were refused before they entered the queue, in any life.
    refused: BTreeSet<String>,
    /// The total time of all earlier lives, and when this one began.
    before: Duration,
    began: Option<Instant>,
    life: u32,
    steps: u64,
    /// The mishaps that are due at steps of this life.
    at_steps: Vec<(u64, Incident)>,
    tell: Option<mpsc::UnboundedSender<Incident>>,
    /// The process has ended; tasks of it that are still running no longer affect the world.
    dead: bool,
}

impl Environment {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        let environment =
            Self { web: Arc::new(Web::new(seed)), disk: Disk::default(), seed, seen: Arc::default() };
        environment.seen().trace.note(plan.to_string());
        environment
    }

    fn seen(&self) -> MutexGuard<'_, Observed> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life; it must be called within its runtime. Mishaps that are due at a step are sent to `tell`.
    pub(super) fn begin(
        &self,
        life: u32,
        incidents: &[(When, Incident)],
        tell: mpsc::UnboundedSender<Incident>,
    ) {
        let mut seen = self.seen();
        seen.life = life;
        seen.began = Some(Instant::now());
        seen.steps = 0;
        seen.dead = false;
        seen.tell = Some(tell);
        let at_step = |(when, incident): &(When, Incident)| match when {
            When::Step(step) => Some((*step, *incident)),
            When::At(_) => None,
        };
        seen.at_steps = incidents.iter().filter_map(at_step).collect();
    }

    /// Ends the process.
    pub(super) fn die(&self) {
        let mut seen = self.seen();
        if let Some(began) = seen.began.take() {
            seen.before += began.elapsed();
        }
        seen.dead = true;
        seen.tell = None;
        self.disk.unmount();
    }

    /// Time since the beginning of the world, over all lives.
    pub(super) fn now(&self) -> Duration {
        self.seen().now()
    }

    pub(super) fn wall(&self) -> Timestamp {
        BEGINNING + self.now()
    }

    /// Records an observable event, at which a mishap may be due.
    pub(super) fn step(&self, what: impl FnOnce() -> String) {
        let mut seen = self.seen();
        if seen.dead {
            return;
        }
        seen.steps += 1;
        let (steps, now) = (seen.steps, seen.now());
        let line = format!("{:>12.6} {steps:>5} {}", now.as_secs_f64(), what());
        seen.trace.note(line);
        let due: Vec<Incident> =
            seen.at_steps.iter().filter(|(step, _)| *step == steps).map(|(_, incident)| *incident).collect();
        for incident in due {
            if incident.is_death() {
                // From here on, actions of this process are not recorded.
                seen.dead = true;
                self.disk.unmount();
            }
            if let Some(tell) = &seen.tell {
                let _ = tell.send(incident);
            }
        }
    }

    /// Records a line that is not a step.
    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        self.seen().trace.note(what());
    }

    /// Records that a promise was broken.
    pub(super) fn breaks(&self, what: impl Into<String>) {
        let mut seen = self.seen();
        let what = what.into();
        if seen.broken.len() < 20 {
            seen.trace.note(format!("BROKEN: {what}"));
            seen.broken.push(what);
        }
    }

    pub(super) fn broken(&self) -> Vec<String> {
        self.seen().broken.clone()
    }

    /// Records a request that reached the downloader. Returns how often its address was requested before, or `None`
    /// if the process has ended.
    pub(super) fn fetched(&self, request: &Request) -> Option<u64> {
        let url = request.url[..url::Position::AfterQuery].to_owned();
        self.step(|| format!("fetch {url}"));
        let mut seen = self.seen();
        if seen.dead {
            return None;
        }
        let tries = seen.tries.entry(url).or_default();
        let nth = *tries;
        *tries += 1;
        let fetch = Fetch { life: seen.life, request: request.clone(), nth, at: seen.now() };
        seen.fetches.push(fetch);
        let is_endless = seen.fetches.len() == MAX_FETCHES;
        if is_endless && let Some(tell) = &seen.tell {
            let _ = tell.send(Incident::Kill);
        }
        drop(seen);
        if is_endless {
            self.breaks("the crawl fetches without end");
        }
        Some(nth)
    }

    pub(super) fn fetches(&self) -> Vec<Fetch> {
        self.seen().fetches.clone()
    }

    pub(super) fn refused(&self, url: String) {
        let mut seen = self.seen();
        if !seen.dead {
            seen.refused.insert(url);
        }
    }

    pub(super) fn all_refused(&self) -> BTreeSet<String> {
        self.seen().refused.clone()
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.seen().trace.hash()
    }

    pub(super) fn trace_lines(&self) -> Vec<String> {
        self.seen().trace.lines()
    }
}

impl Observed {
    fn now(&self) -> Duration {
        self.before + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}
