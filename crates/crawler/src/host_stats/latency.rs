//! A small histogram of latencies with fixed memory.

use std::time::Duration;

/// Buckets per doubling; a quantile is off by at most 9 %.
const PER_OCTAVE: u32 = 4;
/// Latencies below this are counted in the first bucket.
const MIN_MICROS: f64 = 62.5;
/// The buckets cover 62.5 us to 262 s.
const BUCKETS: usize = 22 * PER_OCTAVE as usize;

/// Counts of latencies in buckets whose bounds grow by `2^(1/4)`: 352 bytes.
#[derive(Clone, Debug)]
pub(super) struct Latencies([u32; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Latencies {
    pub(super) fn record(&mut self, latency: Duration) {
        let octaves = (latency.as_secs_f64() * 1e6 / MIN_MICROS).max(1.0).log2();
        let bucket = ((octaves * f64::from(PER_OCTAVE)) as usize).min(BUCKETS - 1);
        self.0[bucket] = self.0[bucket].saturating_add(1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(others);
        }
    }

    /// The quantile in milliseconds: the latency that the given share of requests does not exceed, as the middle of
    /// its bucket; 0 if there are none.
    pub(super) fn quantile_ms(&self, share: f64) -> f64 {
        let total: u64 = self.0.iter().map(|&n| u64::from(n)).sum();
        let rank = ((share * total as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, &n) in self.0.iter().enumerate() {
            below += u64::from(n);
            if below >= rank {
                let middle = (bucket as f64 + 0.5) / f64::from(PER_OCTAVE);
                return MIN_MICROS / 1e3 * middle.exp2();
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_tenth() {
        for scale in [1e-4, 0.03, 2.0] {
            let mut latencies = Latencies::default();
            for n in 1..=1_000 {
                latencies.record(Duration::from_secs_f64(scale * f64::from(n) / 1_000.0));
            }
            for share in [0.5, 0.95, 0.99, 1.0] {
                let exact = (scale * share * 1e3).max(MIN_MICROS / 1e3);
                let got = latencies.quantile_ms(share);
                assert!((got / exact - 1.0).abs() < 0.1, "{got} for {exact} at {share}");
            }
        }
    }

    #[test]
    fn extremes_have_a_bucket() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile_ms(0.5), 0.0);
        latencies.record(Duration::ZERO);
        latencies.record(Duration::MAX);
        assert!(latencies.quantile_ms(0.1) < 0.1);
        assert!(latencies.quantile_ms(1.0) > 200_000.0);
    }
}
