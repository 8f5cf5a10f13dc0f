//! Decides when a page is parsed in place: passing it to a worker thread and back costs as much as the scan of a
//! usual page.
//!
//! Small pages are parsed on the I/O thread as long as the callback has proven to be cheap. A callback that turns out
//! to be slow moves back to the worker threads for a while, so that timers stay accurate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Largest body that is parsed in place; its scan takes some 50 us.
const MAX_BODY: usize = 64 << 10;
/// The callback counts as cheap if it takes less than this on average.
const CHEAP: u64 = Duration::from_micros(300).as_nanos() as u64;
/// A call of this duration moves the next pages to the worker threads.
const SLOW: u64 = Duration::from_millis(3).as_nanos() as u64;
/// The part of a slow call for which one page is moved. So slow calls add at most this to the mean time of a page on an I/O thread, and one slow call in
/// hundreds does not move all of them.
const PER_PAGE: u64 = Duration::from_micros(200).as_nanos() as u64;
/// The number of pages on probation at the start, when the duration of the callback is unknown.
const PROBATION: u64 = 32;
/// The most pages on probation after a slow call.
const MOST_PROBATION: u64 = 4_096;

/// Decides where pages are parsed, by the durations of earlier callbacks.
#[derive(Debug)]
pub(crate) struct Inline {
    /// Exponential mean of the durations, in nanoseconds.
    mean: AtomicU64,
    /// Number of pages that are still sent to the worker threads.
    probation: AtomicU64,
}

impl Default for Inline {
    fn default() -> Self {
        Self { mean: AtomicU64::new(0), probation: AtomicU64::new(PROBATION) }
    }
}

impl Inline {
    /// Whether a page with a body of this size may be parsed in place now.
    pub(crate) fn allows(&self, body: usize) -> bool {
        body <= MAX_BODY
            && self.probation.load(Ordering::Relaxed) == 0
            && self.mean.load(Ordering::Relaxed) < CHEAP
    }

    /// Records the time that a page took, including the callback.
    pub(crate) fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if nanos >= SLOW {
            let pages = (nanos / PER_PAGE).min(MOST_PROBATION);
            self.probation.fetch_max(pages, Ordering::Relaxed);
        } else {
            // Lost updates between threads do no harm, because the value is an estimate.
            let left = self.probation.load(Ordering::Relaxed);
            self.probation.store(left.saturating_sub(1), Ordering::Relaxed);
        }
        let mean = self.mean.load(Ordering::Relaxed);
        self.mean.store(mean - mean / 8 + nanos.min(SLOW) / 8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_callbacks_move_in_and_slow_ones_out() {
        let inline = Inline::default();
        assert!(!inline.allows(1_000), "nothing is known yet");
        for _ in 0..PROBATION {
            inline.took(Duration::from_micros(50));
        }
        assert!(inline.allows(1_000));
        assert!(!inline.allows(MAX_BODY + 1));
        inline.took(Duration::from_millis(200));
        assert!(!inline.allows(1_000));
        for _ in 0..1_000 {
            assert!(!inline.allows(1_000), "a call of 200 ms is worth a thousand pages of 0.2 ms");
            inline.took(Duration::from_micros(50));
        }
        assert!(inline.allows(1_000));
    }

    #[test]
    fn a_callback_of_a_millisecond_never_moves_in() {
        let inline = Inline::default();
        for _ in 0..1_000 {
            inline.took(Duration::from_millis(1));
        }
        assert!(!inline.allows(1_000));
    }
}
