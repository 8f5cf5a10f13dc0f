//! Whole crawls in a made-up world: clock, network, names, disk, settings and mishaps come from one seed.
//!
//! A [`Simulation`] lets a crawl live: once without a job, or with one as often as it takes until it is done, through kills, power
//! cuts, full disks, stops, and panics in whatever a user brings. While it lives and at its end the promises are checked: every
//! address that was queued has one record over all lives, items come once, hosts are asked as the settings say, nothing is fetched
//! again whose record is written, and there is an end. The same seed is the same run to the last event.

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

/// Lives of one crawl at most: the last ones are spared all mishaps, so that they end.
const LIVES: u32 = 12;
const SPARED: u32 = 6;

/// One world with one crawl.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    seed: u64,
}

/// A simulation that went as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survived {
    /// A hash of everything that happened, in order.
    pub trace: u64,
    /// Lives of the crawl.
    pub lives: u32,
    /// Requests that reached the downloader.
    pub fetches: usize,
    /// Records of addresses.
    pub records: usize,
}

/// What a simulation found.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The seed of it.
    pub seed: u64,
    /// The promises that were broken.
    pub promises: Vec<String>,
    /// The settings of the crawl, and what happened, the last lines of it.
    pub trace: Vec<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.trace.join("\n"))?;
        write!(f, "seed {}: {}", self.seed, self.promises.join("; "))
    }
}

impl Simulation {
    /// The world of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Lets the crawl live until it is done. `stack` installs the middlewares.
    ///
    /// # Errors
    /// A promise was broken.
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
