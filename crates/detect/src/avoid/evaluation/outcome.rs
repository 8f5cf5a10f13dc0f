//! The outcome of a crawl of a generated site.

use std::time::Duration;

/// What a model found and lost, and its cost.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The number of requests, each URL counted once.
    pub requests: usize,
    /// The number of distinct contents of the site.
    pub contents: usize,
    /// The number of requests whose content another request has as well; walls do not count.
    pub copies: usize,
    /// The number of requests that were sent.
    pub fetched: usize,
    /// The number of sent requests whose content had been fetched already.
    pub fetched_copies: usize,
    /// The number of requests that were not sent.
    pub skipped: usize,
    /// The number of contents that were never fetched.
    pub lost: usize,
    /// The number of requests that the model would have skipped but sent for exploration.
    pub explored: usize,
    /// The model's own estimate: the share of its skips that would have brought new content, and the upper end of a 95 % interval. `None`
    /// before any exploration; MaybeDont's model makes no estimate.
    pub estimated_loss: Option<(f64, f64)>,
    /// The time of learning from pages, text included.
    pub learning: Times,
    /// The time of decisions; a request that waits is decided more than once.
    pub asking: Times,
}

impl Outcome {
    /// The share of the copies that were not sent, counted from the first request on, the warm-up included. `None` if there are no copies.
    pub fn recall(&self) -> Option<f64> {
        (self.copies > 0).then(|| 1.0 - self.fetched_copies as f64 / self.copies as f64)
    }

    /// The share of the contents that were never fetched.
    pub fn lost_share(&self) -> f64 {
        if self.contents == 0 { 0.0 } else { self.lost as f64 / self.contents as f64 }
    }
}

/// The duration of calls, as measured by the clock of the [`Simulation`](super::Simulation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The number of calls.
    pub calls: usize,
    /// The total duration.
    pub total: Duration,
    /// The median duration.
    pub median: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl Times {
    /// Summarises the durations of single calls.
    pub fn of(mut calls: Vec<Duration>) -> Self {
        calls.sort_unstable();
        let at = |percent: usize| calls.get(calls.len().saturating_sub(1) * percent / 100).copied();
        Self {
            calls: calls.len(),
            total: calls.iter().sum(),
            median: at(50).unwrap_or_default(),
            p99: at(99).unwrap_or_default(),
        }
    }
}
