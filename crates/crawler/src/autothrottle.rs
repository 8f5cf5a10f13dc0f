//! AutoThrottle: adapts the delay of a host to its latency.
//!
//! The rule is Scrapy's ([`latency_rule`]). [`next_delay`] adds two things: the delay grows when a host answers 429
//! or 503, even if it does so quickly, and it never falls below a robots.txt delay. The latency that the rule uses is
//! the median of the last responses ([`Latencies`]), where Scrapy uses the last one alone. All functions here are
//! pure; the engine decides when to call them.

use std::time::Duration;

/// The settings of AutoThrottle, which adapts the delay of a slot to the latency of its responses, and its rule as pure
/// functions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoThrottle {
    /// The first delay of a slot, unless its download delay is longer: `autothrottle_start_delay`, 5 s.
    pub start_delay: Duration,
    /// The greatest delay: `autothrottle_max_delay`, 60 s.
    pub max_delay: Duration,
    /// The average number of requests that the host should have at a time: `autothrottle_target_concurrency`, 1. Must
    /// be greater than 0; see [`validate`](Self::validate).
    pub target_concurrency: f64,
    /// The least delay: `download_delay`, 0.
    pub min_delay: Duration,
}

impl Default for AutoThrottle {
    fn default() -> Self {
        AutoThrottle {
            start_delay: Duration::from_secs(5),
            max_delay: Duration::from_secs(60),
            target_concurrency: 1.0,
            min_delay: Duration::ZERO,
        }
    }
}

/// The latencies of the last responses of a host, at most five.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latencies {
    /// In microseconds, unordered. The type is small because a slot is kept for each of up to a million hosts.
    last: [u32; Self::MAX_SAMPLES],
    known: u8,
    oldest: u8,
}

impl Latencies {
    /// Number of remembered responses; with five, two outliers do not move the median.
    const MAX_SAMPLES: usize = 5;

    /// Adds the latency of a response; if there are five already, the oldest one is forgotten.
    pub fn push(&mut self, latency: Duration) {
        self.last[usize::from(self.oldest)] = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        self.oldest = (self.oldest + 1) % Self::MAX_SAMPLES as u8;
        self.known = (self.known + 1).min(Self::MAX_SAMPLES as u8);
    }

    /// The median. For an even number it is the lower one of the two in the middle, so that one slow response among
    /// the first ones does not decide. Zero if there were no responses.
    pub fn median(&self) -> Duration {
        let mut sorted = self.last;
        let known = &mut sorted[..usize::from(self.known)];
        known.sort_unstable();
        let middle = known.get(known.len().saturating_sub(1) / 2);
        middle.map_or(Duration::ZERO, |&micros| Duration::from_micros(micros.into()))
    }
}

/// The properties of a response that AutoThrottle uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Time from sending the request to receiving the headers, or the estimate that is used instead.
    pub latency: Duration,
    /// The status code.
    pub status: u16,
    /// `Retry-After`, if the response has one.
    pub retry_after: Option<Duration>,
}

/// The least delay after 429 or 503.
const MIN_OVERLOAD_DELAY: Duration = Duration::from_secs(1);

impl AutoThrottle {
    /// Refuses invalid settings; the error names the setting.
    ///
    /// # Errors
    ///
    /// If `target_concurrency` is not a number greater than 0.
    pub fn validate(&self) -> Result<(), String> {
        if self.target_concurrency > 0.0 && self.target_concurrency.is_finite() {
            Ok(())
        } else {
            Err(format!(
                "autothrottle_target_concurrency must be greater than 0, not {}",
                self.target_concurrency
            ))
        }
    }

    /// The delay of a slot without any responses.
    pub fn first_delay(&self, crawl_delay: Option<Duration>) -> Duration {
        self.start_delay.max(self.min_delay).max(crawl_delay.unwrap_or_default())
    }
}

/// The delay after a response: [`latency_rule`] with two additions to Scrapy's rule:
///
/// - on 429 and 503 the delay is at least `max(2 * current, Retry-After, 1 s)`, up to `max_delay` (Scrapy leaves the
///   delay unchanged if such a response comes quickly);
/// - it is never below `crawl_delay`, the robots.txt delay in force, even if that is above `max_delay`.
///
/// ```
/// use std::time::Duration;
/// use huntsman_crawler::autothrottle::{AutoThrottle, Observation, next_delay};
///
/// let settings = AutoThrottle::default();
/// let refused = Observation { latency: Duration::from_millis(20), status: 429, retry_after: None };
/// let delay = next_delay(&settings, Duration::from_secs(2), refused, None);
/// assert_eq!(delay, Duration::from_secs(4));
/// ```
pub fn next_delay(
    settings: &AutoThrottle,
    current: Duration,
    seen: Observation,
    crawl_delay: Option<Duration>,
) -> Duration {
    let mut delay = latency_rule(settings, current, seen.latency, seen.status);
    if matches!(seen.status, 429 | 503) {
        let slower =
            current.saturating_mul(2).max(seen.retry_after.unwrap_or_default()).max(MIN_OVERLOAD_DELAY);
        delay = delay.max(slower.min(settings.max_delay).max(settings.min_delay));
    }
    delay.max(crawl_delay.unwrap_or_default())
}

/// Scrapy's rule alone. The target is `latency / target_concurrency`; the delay moves half-way towards it, or at once
/// if the target is longer, and stays between `min_delay` and `max_delay`. A response other than 200 never shortens
/// the delay, because error pages are quick.
pub fn latency_rule(settings: &AutoThrottle, current: Duration, latency: Duration, status: u16) -> Duration {
    let target = latency.as_secs_f64() / settings.target_concurrency;
    let delay = ((current.as_secs_f64() + target) / 2.0).max(target);
    // This also covers a target of nearly 0, which makes the number too large for a duration, or not a number.
    let delay = Duration::try_from_secs_f64(delay).unwrap_or(Duration::MAX);
    let delay = delay.min(settings.max_delay).max(settings.min_delay);
    if status != 200 && delay <= current { current } else { delay }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn seen(latency: f64, status: u16) -> Observation {
        Observation { latency: seconds(latency), status, retry_after: None }
    }

    /// The delay of the slot after each (latency, status).
    fn trace(settings: &AutoThrottle, responses: &[(f64, u16)], scrapy: bool) -> Vec<f64> {
        let mut delay = settings.first_delay(None);
        let mut step = |&(latency, status): &(f64, u16)| {
            delay = if scrapy {
                latency_rule(settings, delay, seconds(latency), status)
            } else {
                next_delay(settings, delay, seen(latency, status), None)
            };
            (delay.as_secs_f64() * 1e6).round() / 1e6
        };
        responses.iter().map(&mut step).collect()
    }

    #[test]
    fn the_median_of_the_last_five_is_that_of_a_sorted_list() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.median(), Duration::ZERO);
        let mut all = Vec::new();
        for n in 0..200_u64 {
            let latency = Duration::from_micros(n.wrapping_mul(2_654_435_761) % 1_000_003);
            latencies.push(latency);
            all.push(latency);
            let mut last = all[all.len().saturating_sub(5)..].to_vec();
            last.sort();
            assert_eq!(latencies.median(), last[(last.len() - 1) / 2], "{n}");
        }
        latencies.push(Duration::MAX);
        assert!(latencies.median() < Duration::from_secs(2));
    }

    #[test]
    fn golden_traces() {
        // Recorded from the extension of Scrapy 2.19.
        let default = AutoThrottle::default();
        assert_eq!(trace(&default, &[(0.2, 200); 6], true), [2.6, 1.4, 0.8, 0.5, 0.35, 0.275]);
        let mixed = [(0.2, 200), (0.1, 404), (2.0, 404), (8.0, 503), (0.1, 200), (0.1, 200)];
        assert_eq!(trace(&default, &mixed, true), [2.6, 2.6, 2.6, 8.0, 4.05, 2.075]);
        let four = AutoThrottle { target_concurrency: 4.0, min_delay: seconds(0.5), ..default };
        assert_eq!(trace(&four, &[(0.4, 200); 4], true), [2.55, 1.325, 0.7125, 0.5]);
        assert_eq!(trace(&default, &[(100.0, 200), (1.0, 200)], true), [60.0, 30.5]);
    }

    #[test]
    fn our_rule_equals_scrapys_where_no_host_is_overloaded() {
        let default = AutoThrottle::default();
        let responses = [(0.2, 200), (0.1, 404), (2.0, 500), (8.0, 200), (0.1, 301)];
        assert_eq!(trace(&default, &responses, false), trace(&default, &responses, true));
    }

    #[test]
    fn overload_answers_slow_down_even_when_quick() {
        let settings = AutoThrottle::default();
        let after = |current: f64, seen| next_delay(&settings, seconds(current), seen, None).as_secs_f64();
        for status in [429, 503] {
            assert_eq!(after(2.0, seen(0.01, status)), 4.0, "twice");
            assert_eq!(after(0.1, seen(0.01, status)), 1.0, "at least a second");
            assert_eq!(
                after(2.0, Observation { retry_after: Some(seconds(30.0)), ..seen(0.01, status) }),
                30.0
            );
            assert_eq!(
                after(2.0, Observation { retry_after: Some(seconds(900.0)), ..seen(0.01, status) }),
                60.0
            );
            assert_eq!(after(45.0, seen(0.01, status)), 60.0, "at most max_delay");
            assert_eq!(after(2.0, seen(9.0, status)), 9.0, "a slow refusal counts as slow");
        }
        let waiting = Observation { retry_after: Some(seconds(30.0)), ..seen(0.01, 200) };
        assert_eq!(after(2.0, waiting), 1.005, "Retry-After of other answers is not for us");
    }

    #[test]
    fn the_robots_delay_is_a_floor() {
        let settings = AutoThrottle::default();
        let floor = Some(seconds(3.0));
        assert_eq!(settings.first_delay(floor), seconds(5.0));
        assert_eq!(settings.first_delay(Some(seconds(9.0))), seconds(9.0));
        assert_eq!(next_delay(&settings, seconds(3.0), seen(0.1, 200), floor), seconds(3.0));
        let low = AutoThrottle { max_delay: seconds(2.0), ..settings };
        assert_eq!(
            next_delay(&low, seconds(3.0), seen(0.1, 200), floor),
            seconds(3.0),
            "also above max_delay"
        );
    }

    #[test]
    fn extreme_values_stay_within_bounds() {
        let settings = AutoThrottle { target_concurrency: f64::MIN_POSITIVE, ..AutoThrottle::default() };
        assert_eq!(latency_rule(&settings, Duration::ZERO, Duration::MAX, 200), settings.max_delay);
        assert_eq!(next_delay(&settings, Duration::MAX, seen(0.0, 503), None), Duration::MAX);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let settings = AutoThrottle { target_concurrency: wrong, ..settings };
            assert!(settings.validate().unwrap_err().contains("autothrottle_target_concurrency"));
        }
        assert!(AutoThrottle::default().validate().is_ok());
    }
}
