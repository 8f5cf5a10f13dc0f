//! The plan for a seed: the settings of the crawl, and the mishaps of each of its lives.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::disk::Fault;
use super::seeded_random::SeededRandom;

/// The settings of a crawl, and how its world treats it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    seed: u64,
    pub(super) has_job: bool,
    pub(super) settings: Map<String, Value>,
    /// Maximum duration of blocking work, in milliseconds.
    pub(super) slowness: u64,
}

/// The time of a mishap in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    At(Duration),
    /// At the step with this number; steps lie between any two observable events.
    Step(u64),
}

/// A mishap of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    /// The crawl is paused for this time.
    Pause(Duration),
    /// The crawl is asked to stop, and, if a time is given, to end at once after that time.
    Stop(Option<Duration>),
    Abort,
    /// The process is killed.
    Kill,
    /// The power is cut.
    PowerCut,
    /// A write fails.
    Disk(Fault),
    /// The log subscriber panics at the line with this number.
    LogPanics(u64),
}

impl Incident {
    /// Whether the mishap ends the process at that moment.
    pub(super) fn is_death(self) -> bool {
        matches!(self, Self::Kill | Self::PowerCut)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = if self.has_job { "job" } else { "no job" };
        write!(f, "seed {}: {job}, {}", self.seed, Value::Object(self.settings.clone()))
    }
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = SeededRandom::of(seed, "settings");
        let has_job = !dice.one_in(5);
        let Value::Object(settings) = settings(&mut dice, seed) else { unreachable!("it is an object") };
        Self { seed, has_job, settings, slowness: dice.pick(&[0, 0, 10, 500]) }
    }

    /// The value of a numeric setting.
    pub(super) fn number(&self, name: &str) -> f64 {
        self.settings.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.settings.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn word(&self, name: &str) -> &str {
        self.settings.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// The mishaps of a life.
    pub(super) fn incidents(&self, life: u32) -> Vec<(When, Incident)> {
        let mut dice = SeededRandom::of(self.seed, &format!("life {life}"));
        let mut incidents = Vec::new();
        for _ in 0..dice.below(4) {
            let when = match dice.below(3) {
                0 => When::Step(dice.between(1, 20) as u64),
                1 => When::Step(dice.between(1, 400) as u64),
                _ => When::At(dice.millis(60_000)),
            };
            let incident = match dice.below(if self.has_job { 10 } else { 5 }) {
                0 | 1 => Incident::Pause(dice.millis(30_000)),
                2 => Incident::Stop(dice.one_in(2).then(|| dice.millis(5_000))),
                3 => Incident::Abort,
                4 | 5 => Incident::LogPanics(dice.millis(200).as_millis() as u64 + 1),
                6 | 7 => Incident::Disk(Fault { write: dice.between(1, 60) as u64, arrives: dice.one_in(2) }),
                8 if self.word("job_sync") == "full" => Incident::PowerCut,
                _ => Incident::Kill,
            };
            incidents.push((when, incident));
        }
        incidents
    }
}

fn settings(dice: &mut SeededRandom, seed: u64) -> Value {
    let delay = dice.pick(&[0.0, 0.0, 0.05, 0.5, 2.0]);
    let mut settings = json!({
        "seed": seed,
        "concurrent_requests": dice.pick(&[1, 2, 3, 8, 16]),
        "concurrent_requests_per_domain": dice.pick(&[1, 1, 2, 4]),
        "download_delay": delay,
        "download_delay_jitter": dice.pick(&[0.0, 0.5]),
        "slot_by": dice.pick(&["host", "host", "registrable_domain", "ip"]),
        "robotstxt_obey": !dice.one_in(3),
        "robots_on_error": dice.pick(&["disallow", "allow"]),
        "robots_retry_delays": dice.pick(&[vec![0.5], vec![10.0, 60.0], vec![]]),
        "robots_max_crawl_delay": dice.pick(&[2.0, 30.0, 90.0]),
        "robots_over_cap": dice.pick(&["skip", "clamp"]),
        "retry_times": dice.between(0, 3),
        "retry_backoff_base": dice.pick(&[0.05, 1.0]),
        "retry_after_max": dice.pick(&[5.0, 120.0]),
        "redirect_dupe": dice.pick(&["drop", "drop", "deliver"]),
        "redirect_max_times": dice.pick(&[1, 5, 20]),
        "scheduler_order": dice.pick(&["bfs", "dfs", "best_first"]),
        "job_sync": dice.pick(&["process", "full"]),
        "job_commit_interval": dice.pick(&[0.05, 0.3, 1.0, 5.0]),
        "frontier_memory_limit": dice.pick(&[1, 4, 20, 100_000]),
        "start_high_water": dice.pick(&[1, 2, 10_000]),
        "scraper_slot_max_active_size": dice.pick(&[1, 5_000, 5_000_000]),
        "max_parked_wait": dice.pick(&[5.0, 60.0, 600.0]),
        "drain_timeout": dice.pick(&[0.0, 1.0, 15.0]),
        "host_max_failures": dice.pick(&[0, 2, 5]),
        "host_down_cooldown": dice.pick(&[5.0, 60.0]),
        "host_max_cooldowns": dice.pick(&[1, 3]),
        "feed_flush_interval": 1.0,
        "logstats_interval": dice.pick(&[0.0, 3.0]),
    });
    let mut set = |name: &str, value: Value| settings[name] = value;
    match dice.below(10) {
        0 => set("closespider_pagecount", dice.between(1, 30).into()),
        1 => set("closespider_timeout", dice.pick(&[3.0, 40.0]).into()),
        2 => set("max_pages_per_host", dice.between(1, 6).into()),
        3 => set("closespider_itemcount", dice.between(1, 20).into()),
        _ => {}
    }
    match dice.below(8) {
        0 => set("requests_per_second", dice.pick(&[2.0, 20.0]).into()),
        1 => {
            set("autothrottle_enabled", true.into());
            set("autothrottle_start_delay", dice.pick(&[0.1, 2.0]).into());
            set("autothrottle_max_delay", 20.0.into());
        }
        _ => {}
    }
    match dice.below(8) {
        0 => {
            set("avoid_dup_content_enabled", true.into());
            set("avoid_dup_content_initial_queue_limit", 5.into());
        }
        1 => {
            set("near_dup_enabled", true.into());
            set("near_dup_min_words", 5.into());
            set("on_near_duplicate", dice.pick(&["flag", "skip"]).into());
        }
        _ => {}
    }
    if dice.one_in(5) {
        set("depth_limit", dice.between(1, 4).into());
    }
    settings
}
