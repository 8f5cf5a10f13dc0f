//! What came of a crawl of a made-up site.

use std::time::Duration;

/// What a model found and lost, and what it cost.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Requests, each URL once.
    pub requests: usize,
    /// Different contents of the site.
    pub contents: usize,
    /// Requests for contents that others have as well; walls are none.
    pub copies: usize,
    /// Requests that were sent.
    pub fetched: usize,
    /// Of them, requests for contents that had come already.
    pub fetched_copies: usize,
    /// Requests that were not sent.
    pub skipped: usize,
    /// Contents that never came.
    pub lost: usize,
    /// Requests that the model wanted to skip and had sent all the same.
    pub explored: usize,
    /// What the model itself thinks: the share of its skips that would have brought new content, and the upper end of a 95 %
    /// interval. `None` before anything was explored; MaybeDont's model makes no estimate.
    pub estimated_loss: Option<(f64, f64)>,
    /// Learning from pages, text included.
    pub learning: Times,
    /// Questions whether to fetch; a request that waits is asked for again.
    pub asking: Times,
}

impl Outcome {
    /// The share of the copies that were not sent, from the first request on, the warm-up included. `None` where there are none.
    pub fn recall(&self) -> Option<f64> {
        (self.copies > 0).then(|| 1.0 - self.fetched_copies as f64 / self.copies as f64)
    }

    /// The share of the contents that never came.
    pub fn lost_share(&self) -> f64 {
        if self.contents == 0 { 0.0 } else { self.lost as f64 / self.contents as f64 }
    }
}

/// How long calls took, in the time of the clock of the [`Simulation`](super::Simulation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many calls.
    pub calls: usize,
    /// Of all together.
    pub total: Duration,
    /// Half of the calls took less.
    pub median: Duration,
    /// One in a hundred took more.
    pub p99: Duration,
}

impl Times {
    /// Of single calls.
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
