//! Simulated crawls: the polite stack through kills, power cuts, full disks, stops and panics, each run generated
//! from a seed.
//!
//! For nightly runs, `HUNTSMAN_SIM_SEEDS=N` runs N simulations beginning with a random seed. `HUNTSMAN_SIM_SEED=S`
//! runs a single one and prints its events.

use huntsman_middleware::Defaults;
use huntsman_testkit::simulation::{Simulation, SimulationReport};

/// Number of simulations in every test run: some 25 s of one core.
const WORLDS: u64 = 300;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

fn run(seed: u64) -> SimulationReport {
    Simulation::new(seed).run(|crawler| crawler.plugin(Defaults)).unwrap_or_else(|broken| panic!("{broken}"))
}

#[test]
fn crawls_keep_their_promises_whatever_befalls_them() {
    if let Some(seed) = number("HUNTSMAN_SIM_SEED") {
        println!("{:?}", run(seed));
        return;
    }
    let (from, count) = match number("HUNTSMAN_SIM_SEEDS") {
        Some(count) => (rand::random::<u32>().into(), count),
        None => (0, WORLDS),
    };
    println!("seeds from {from} on: {count}");
    let mut broken = Vec::new();
    let (mut lives, mut fetches, mut records) = (0, 0, 0);
    for seed in from..from + count {
        match Simulation::new(seed).run(|crawler| crawler.plugin(Defaults)) {
            Ok(survived) => {
                lives += u64::from(survived.lives);
                fetches += survived.fetches;
                records += survived.records;
            }
            Err(found) => broken.push(format!("seed {seed}: {}", found.promises.join("; "))),
        }
    }
    println!("{lives} lives, {fetches} requests, {records} records");
    assert!(broken.is_empty(), "{} of {count}:\n{}", broken.len(), broken.join("\n"));
    assert!(lives > count && records as u64 > count, "worlds are no worlds without crawls and mishaps");
}

#[test]
fn the_same_seed_is_the_same_run_to_the_last_event() {
    for seed in 0..40 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
