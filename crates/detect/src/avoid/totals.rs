//! The totals of a crawl.

use serde::{Deserialize, Serialize};

use super::estimate::Explorations;

/// Totals of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// The number of pages that were learnt.
    pub learnt: u64,
    /// The number of requests that were skipped.
    pub skipped: u64,
    /// The number of requests that were fetched although they would have been skipped.
    pub explored: u64,
    /// The number of explored requests with new content.
    pub lost: u64,
    #[serde(default, rename = "weights")]
    explorations: Explorations,
}

impl Totals {
    /// The share of skips that would have brought new content, estimated from the explored skips, and the upper end of a 95 % interval.
    /// Explorations are drawn at random, so the estimate is unbiased. The interval is that of Jeffreys: the Beta(lost + 1/2, explored -
    /// lost + 1/2) posterior. If the explored share falls, each exploration is weighed by one over its share, and the interval is that of
    /// the effective number (Kish 1965). `None` before any explored page was learnt.
    pub fn loss(&self) -> Option<(f64, f64)> {
        self.explorations.loss()
    }

    /// The totals together with those of another predictor.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.learnt += other.learnt;
        self.skipped += other.skipped;
        self.explored += other.explored;
        self.lost += other.lost;
        self.explorations.add_all(other.explorations);
        self
    }

    /// Adds an exploration that was drawn with this share.
    pub(crate) fn add_explored(&mut self, share: f64, is_new: bool) {
        self.explorations.add(share, is_new);
        self.lost += u64::from(is_new);
    }
}
