//! What outlives a crawl in its made-up world: web, disk, time, and what was seen of the crawl.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use huntsman_crawler::{Request, Timestamp};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::disk::Disk;
use super::plan::{Mishap, Plan, When};
use super::trace::Trace;
use super::web::{Tries, Web};

/// When every world begins: the same for all, so that a seed is a run.
const BEGINNING: Timestamp = Timestamp(1_700_000_000_000_000);

/// More requests than any crawl of such a web has reason for.
const MOST_FETCHES: usize = 20_000;

/// A request that reached the downloader.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) life: u32,
    pub(super) request: Request,
    /// As the web was asked.
    pub(super) nth: u64,
    /// When, in the time of the world.
    pub(super) at: Duration,
}

/// The world; clones are the same.
#[derive(Clone)]
pub(super) struct World {
    pub(super) web: Arc<Web>,
    pub(super) disk: Disk,
    pub(super) seed: u64,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    trace: Trace,
    broken: Vec<String>,
    fetches: Vec<Fetch>,
    tries: Tries,
    /// Addresses that were refused before they entered the queue, in any life.
    refused: BTreeSet<String>,
    /// Time of all lives before this one, and when this one began.
    before: Duration,
    began: Option<Instant>,
    life: u32,
    steps: u64,
    /// What is to happen at a step of this life, and who does it.
    at_steps: Vec<(u64, Mishap)>,
    tell: Option<mpsc::UnboundedSender<Mishap>>,
    /// The process is gone; what is left of it in this one is not part of the world.
    dead: bool,
}

impl World {
    pub(super) fn new(seed: u64, plan: &Plan) -> Self {
        let world = Self { web: Arc::new(Web::new(seed)), disk: Disk::default(), seed, seen: Arc::default() };
        world.seen().trace.note(plan.to_string());
        world
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life; within its runtime. What is to happen at a step of it is told to `tell`.
    pub(super) fn begin(&self, life: u32, mishaps: &[(When, Mishap)], tell: mpsc::UnboundedSender<Mishap>) {
        let mut seen = self.seen();
        seen.life = life;
        seen.began = Some(Instant::now());
        seen.steps = 0;
        seen.dead = false;
        seen.tell = Some(tell);
        let at_step = |(when, mishap): &(When, Mishap)| match when {
            When::Step(step) => Some((*step, *mishap)),
            When::At(_) => None,
        };
        seen.at_steps = mishaps.iter().filter_map(at_step).collect();
    }

    /// The process is gone.
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

    /// Something happened: a place at which a mishap may be due.
    pub(super) fn step(&self, what: impl FnOnce() -> String) {
        let mut seen = self.seen();
        if seen.dead {
            return;
        }
        seen.steps += 1;
        let (steps, now) = (seen.steps, seen.now());
        let line = format!("{:>12.6} {steps:>5} {}", now.as_secs_f64(), what());
        seen.trace.note(line);
        let due: Vec<Mishap> =
            seen.at_steps.iter().filter(|(step, _)| *step == steps).map(|(_, mishap)| *mishap).collect();
        for mishap in due {
            if mishap.is_death() {
                // Nothing that this process does from here on is seen.
                seen.dead = true;
                self.disk.unmount();
            }
            if let Some(tell) = &seen.tell {
                let _ = tell.send(mishap);
            }
        }
    }

    /// A line that is no step.
    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        self.seen().trace.note(what());
    }

    /// A promise was broken.
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

    /// A request reached the downloader; answers with how often its address did before, or `None` if the process is gone.
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
        let is_endless = seen.fetches.len() == MOST_FETCHES;
        if is_endless && let Some(tell) = &seen.tell {
            let _ = tell.send(Mishap::Kill);
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

impl Seen {
    fn now(&self) -> Duration {
        self.before + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}
