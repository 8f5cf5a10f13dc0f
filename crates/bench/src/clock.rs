//! Measures the cost of a piece of work: time, processor time, memory.

use std::time::{Duration, Instant};

use huntsman_cli::process;
use serde::{Deserialize, Serialize};

/// Time, and processor time of this thread, since its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    start: Instant,
    of_thread: Duration,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), of_thread: process::thread_clock() }
    }

    /// Elapsed seconds; never 0, so that rates are finite.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64().max(1e-9)
    }

    /// Processor seconds of this thread.
    pub(crate) fn core_seconds(&self) -> f64 {
        process::thread_clock().saturating_sub(self.of_thread).as_secs_f64()
    }
}

/// Durations of calls in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) count: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Times {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let Some(last) = times.len().checked_sub(1) else { return Self::default() };
        let at = |share: f64| times[(last as f64 * share) as usize].as_secs_f64() * 1e6;
        Self { count: times.len(), p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999), max_us: at(1.0) }
    }
}

/// Processor seconds of some work: the minimum of several rounds.
pub(crate) fn least_seconds(work: &mut dyn FnMut()) -> f64 {
    let start = process::thread_clock();
    work();
    let once = (process::thread_clock() - start).as_secs_f64().max(1e-6);
    let rounds = (0.02 / once).clamp(1.0, 1000.0) as u32;
    let best = (0..9).fold(f64::INFINITY, |best, _| {
        let start = process::thread_clock();
        (0..rounds).for_each(|_| work());
        best.min((process::thread_clock() - start).as_secs_f64())
    });
    (best / f64::from(rounds)).max(1e-9)
}

/// Resets the peak of the resident size; on systems that do not support it, the peak stays that of the whole process.
pub(crate) fn reset_peak_rss() {
    // The value 5 resets the peak only, by proc_pid_clear_refs(5).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_computed_by_rank() {
        let times = Times::of((1..=1_000).rev().map(Duration::from_micros).collect());
        assert_eq!((times.count, times.p50_us, times.p99_us, times.max_us), (1_000, 500.0, 990.0, 1_000.0));
        assert_eq!(Times::of(Vec::new()).count, 0);
    }
}
