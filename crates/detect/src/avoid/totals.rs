//! Totals of a crawl, and the estimate of its loss.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

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
    /// Sums over the explored requests that were learnt, each weighed by one over the share with which it was drawn: of the weights, of
    /// their squares, and of the weights of those with new content.
    #[serde(default)]
    weights: [f64; 3],
}

impl Totals {
    /// The share of skips that would have brought new content, estimated from the explored skips, and the upper end of a 95 % interval.
    /// Explorations are drawn at random, so the estimate is unbiased. The interval is that of Jeffreys: the Beta(lost + 1/2, explored -
    /// lost + 1/2) posterior. If the explored share falls, each exploration is weighed by one over its share, and the interval is that of
    /// the effective number (Kish 1965). `None` before any explored page was learnt.
    pub fn loss(&self) -> Option<(f64, f64)> {
        let [all, squares, lost] = self.weights;
        if all <= 0.0 {
            return None;
        }
        let (share, effective) = (lost / all, all * all / squares);
        let posterior = Beta::new(share * effective + 0.5, (1.0 - share) * effective + 0.5).ok()?;
        Some((share, posterior.inverse_cdf(0.95)))
    }

    /// Adds an exploration that was drawn with this share.
    pub(super) fn add_exploration(&mut self, share: f64, is_new: bool) {
        let weight = 1.0 / share;
        let [all, squares, lost] = &mut self.weights;
        *all += weight;
        *squares += weight * weight;
        if is_new {
            self.lost += 1;
            *lost += weight;
        }
    }
}
