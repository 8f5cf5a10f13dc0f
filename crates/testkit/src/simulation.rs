//! Simulates whole crawls: clock, network, host names, disk, settings and mishaps are all generated from one seed.
//!
//! A [`Simulation`] runs a crawl: once without a job, or with a job as often as it takes until the crawl is done,
//! through kills, power cuts, full disks, stops, and panics in user code. During and after each run the promises of
//! the crawler are checked: every queued address has one record over all runs, items are delivered once, hosts are
//! requested as the settings say, no page is fetched again after its record was written, and the crawl ends. The same
//! seed gives the same run down to the last event.

mod dice;
mod disk;
mod judge;
mod life;
mod plan;
mod sinks;
mod spider;
mod trace;
mod web;
mod world;

use huntsman_crawler::CrawlerBuilder;

pub use spider::Visitor;

use judge::Judge;
use life::{Life, LifeEnd};
use plan::Plan;
use world::World;

/// Maximum number of lives (processes) of one crawl. The last ones have no mishaps, so that they end.
const LIVES: u32 = 12;
const SPARED: u32 = 6;

/// One simulated world with one crawl.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    seed: u64,
}

/// The result of a simulation in which all promises were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survived {
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
pub struct Broken {
    /// The seed of the simulation.
    pub seed: u64,
    /// The promises that were broken.
    pub promises: Vec<String>,
    /// The settings of the crawl, and the last events.
    pub trace: Vec<String>,
}

impl std::fmt::Display for Broken {
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
    ) -> Result<Survived, Broken> {
        let plan = Plan::new(self.seed);
        let world = World::new(self.seed, &plan);
        let judge = Judge::new(&plan, &world);
        let mut lives = 0;
        let mut end = LifeEnd::Crashed;
        while lives < LIVES && world.broken().is_empty() {
            let mishaps = if lives < LIVES - SPARED { plan.mishaps(lives) } else { Vec::new() };
            lives += 1;
            let life = Life::new(lives, &plan, &world, mishaps);
            end = life.live(&stack);
            world.note(|| format!("life {lives} ends: {}", end.name()));
            judge.life(lives, &end, life.may_fail());
            if end.is_final(plan.has_job) {
                break;
            }
        }
        if world.broken().is_empty() {
            judge.crawl(&end);
        }
        let promises = world.broken();
        if promises.is_empty() {
            return Ok(Survived {
                trace: world.trace_hash(),
                lives,
                fetches: world.fetches().len(),
                records: world.disk.lines(sinks::RECORDS).len(),
            });
        }
        Err(Broken { seed: self.seed, promises, trace: world.trace_lines() })
    }
}
