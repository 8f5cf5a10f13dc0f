//! Simulates whole crawls: clock, network, host names, disk, settings and mishaps are all generated from one seed.
//!
//! A [`Simulation`] runs a crawl: once without a job, or with a job as often as it takes until the crawl is done,
//! through kills, power cuts, full disks, stops, and panics in user code. During and after each run the promises of
//! the crawler are checked: every queued address has one record over all runs, items are delivered once, hosts are
//! requested as the settings say, no page is fetched again after its record was written, and the crawl ends. The same
//! seed gives the same run down to the last event.

mod disk;
mod environment;
mod judge;
mod life;
mod plan;
mod seeded_random;
mod sinks;
mod spider;
mod trace;
mod web;

use huntsman_crawler::CrawlerBuilder;

pub use spider::Visitor;

use environment::Environment;
use judge::Judge;
use life::{Life, LifeEnd};
use plan::Plan;

/// Maximum number of lives (processes) of one crawl. The last ones have no mishaps, so that they end.
const MAX_LIVES: u32 = 12;
const LIVES_WITHOUT_INCIDENTS: u32 = 6;

/// One simulated world with one crawl.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    seed: u64,
}

/// The result of a simulation in which all promises were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationReport {
    /// A hash of all events in their order.
    pub trace: u64,
    /// Number of lives of the crawl.
    pub lives: u32,
    /// Number of requests that reached the downloader.
    pub fetches: usize,
    /// Number of records of addresses.
    pub records: usize,
}

/// The result of a simulation in which promises were broken.
#[derive(Clone, Debug)]
pub struct SimulationFailure {
    /// The seed of the simulation.
    pub seed: u64,
    /// The promises that were broken.
    pub promises: Vec<String>,
    /// The settings of the crawl, and the last events.
    pub trace: Vec<String>,
}

impl std::fmt::Display for SimulationFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.trace.join("\n"))?;
        write!(f, "seed {}: {}", self.seed, self.promises.join("; "))
    }
}

impl Simulation {
    /// The simulation for a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Runs the crawl through all its lives until it is done. `stack` installs the middlewares.
    ///
    /// # Errors
    /// If a promise was broken.
    pub fn run(
        self,
        stack: impl Fn(CrawlerBuilder<Visitor>) -> CrawlerBuilder<Visitor>,
    ) -> Result<SimulationReport, SimulationFailure> {
        let plan = Plan::new(self.seed);
        let environment = Environment::new(self.seed, &plan);
        let judge = Judge::new(&plan, &environment);
        let mut lives = 0;
        let mut end = LifeEnd::Crashed;
        while lives < MAX_LIVES && environment.broken().is_empty() {
            let incidents =
                if lives < MAX_LIVES - LIVES_WITHOUT_INCIDENTS { plan.incidents(lives) } else { Vec::new() };
            lives += 1;
            let life = Life::new(lives, &plan, &environment, incidents);
            end = life.live(&stack);
            environment.note(|| format!("life {lives} ends: {}", end.name()));
            judge.life(lives, &end, life.may_fail());
            if end.is_final(plan.has_job) {
                break;
            }
        }
        if environment.broken().is_empty() {
            judge.crawl(&end);
        }
        let promises = environment.broken();
        if promises.is_empty() {
            return Ok(SimulationReport {
                trace: environment.trace_hash(),
                lives,
                fetches: environment.fetches().len(),
                records: environment.disk.lines(sinks::RECORDS).len(),
            });
        }
        Err(SimulationFailure { seed: self.seed, promises, trace: environment.trace_lines() })
    }
}
