//! The estimate of the loss: the share of skips that would have brought new content, from those that were fetched nevertheless.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

/// Sums over explored requests that were learnt, each weighed by one over the share with which it was drawn: of the weights, of their
/// squares, and of the weights of those with new content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Explorations([f64; 3]);

impl Explorations {
    /// Adds an explored request that was learnt.
    pub(super) fn add(&mut self, share: f64, is_new: bool) {
        let weight = 1.0 / share;
        let [all, squares, lost] = &mut self.0;
        *all += weight;
        *squares += weight * weight;
        if is_new {
            *lost += weight;
        }
    }

    /// Adds those of another predictor.
    pub(super) fn add_all(&mut self, others: Self) {
        self.0.iter_mut().zip(others.0).for_each(|(sum, other)| *sum += other);
    }

    /// The estimated share, and the upper end of its 95 % interval: that of Jeffreys, the Beta(lost + 1/2, explored - lost + 1/2) posterior,
    /// with the effective number (Kish 1965) if the explored share changed. `None` before anything was explored and learnt.
    pub(super) fn loss(&self) -> Option<(f64, f64)> {
        let [all, squares, lost] = self.0;
        if all <= 0.0 {
            return None;
        }
        let (share, effective) = (lost / all, all * all / squares);
        let posterior = Beta::new(share * effective + 0.5, (1.0 - share) * effective + 0.5).ok()?;
        Some((share, posterior.inverse_cdf(0.95)))
    }
}
