//! Counts the comparisons of each query.

use std::sync::{Mutex, PoisonError};

use huntsman_detect::near::{CandidateCounts, IndexStats};

/// A query with more comparisons is counted as one that met a heavy bucket.
const HEAVY: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<(CandidateCounts, u64)>);

impl Tally {
    pub(super) fn record(&self, candidates: impl IntoIterator<Item = usize>) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for candidates in candidates {
            tally.0.record(candidates as u64);
            tally.1 += u64::from(candidates > HEAVY);
        }
    }

    pub(super) fn write_to(&self, stats: &mut IndexStats) {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (stats.candidates, stats.heavy_buckets) = *tally;
    }
}
