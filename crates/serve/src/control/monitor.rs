//! A running crawl as its dashboards show it: the page in the browser and the one in the terminal.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use huntsman_crawler::{CrawlStatus, Handle, HostStatus, QueuedRequest};
use serde::Serialize;
use serde_json::{Value, json};

use super::recent::{RecentError, RecentErrors};

/// Time between two samples of the numbers.
const STEP: Duration = Duration::from_secs(1);
/// Number of samples that are kept: ten minutes.
const SAMPLES: usize = 600;
/// Number of samples in a minute.
const MINUTE: usize = 60;
/// Number of samples in each value of the series.
const PER_VALUE: usize = 10;

/// Watches a crawl. Clones share what was seen.
#[derive(Clone, Debug)]
pub struct Monitor {
    handle: Handle,
    errors: RecentErrors,
    samples: Arc<Mutex<VecDeque<Sample>>>,
}

/// The counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    elapsed: Duration,
    pages: u64,
    items: u64,
}

/// How fast a crawl is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Rates {
    /// Pages a minute, over the last minute.
    pages_per_minute: f64,
    items_per_minute: f64,
    /// Pages a minute over the last ten minutes, a value for each ten seconds, oldest first.
    series: Vec<f64>,
}

/// All that a dashboard shows.
#[derive(Debug, Serialize)]
struct Overview {
    status: CrawlStatus,
    rates: Rates,
    hosts: Vec<HostStatus>,
    queue: Vec<QueuedRequest>,
    errors: Vec<RecentError>,
}

impl Monitor {
    /// A monitor of a crawl. `errors` observes the crawl; otherwise no errors are shown.
    pub fn new(handle: Handle, errors: RecentErrors) -> Self {
        Self { handle, errors, samples: Arc::default() }
    }

    /// The handle of the crawl.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The last requests that failed, newest first.
    pub fn errors(&self) -> Vec<RecentError> {
        self.errors.all()
    }

    /// Looks at the counts of the crawl every second, for what it does in a minute, until the future is dropped.
    pub async fn sample(&self) {
        let mut ticks = tokio::time::interval(STEP);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let number = |key: &str| u64::try_from(self.handle.stats().get(key)).unwrap_or(0);
            let elapsed = self.handle.context().clock().elapsed();
            let sample =
                Sample { elapsed, pages: number("pages/delivered"), items: number("item_scraped_count") };
            let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            if samples.len() >= SAMPLES {
                samples.pop_front();
            }
            samples.push_back(sample);
        }
    }

    /// All that a dashboard shows, as JSON: `status`, `rates`, `hosts`, `queue`, `errors`, with at most `most` entries of each.
    pub async fn overview(&self, most: usize) -> Value {
        let mut errors = self.errors();
        errors.truncate(most);
        let overview = Overview {
            status: self.handle.status().await,
            rates: self.rates(),
            hosts: self.handle.host_list(most).await,
            queue: self.handle.peek(None, most).await,
            errors,
        };
        serde_json::to_value(overview).unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    fn rates(&self) -> Rates {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        rates(&samples)
    }
}

fn rates(samples: &VecDeque<Sample>) -> Rates {
    let Some(now) = samples.back() else { return Rates::default() };
    let then = samples.get(samples.len().saturating_sub(MINUTE + 1)).unwrap_or(now);
    let marks: Vec<&Sample> = samples.iter().rev().step_by(PER_VALUE).collect();
    let per_minute = |from: &Sample, to: &Sample, count: fn(&Sample) -> u64| {
        let minutes = to.elapsed.saturating_sub(from.elapsed).as_secs_f64() / 60.0;
        if minutes > 0.0 { count(to).saturating_sub(count(from)) as f64 / minutes } else { 0.0 }
    };
    Rates {
        pages_per_minute: per_minute(then, now, |sample| sample.pages),
        items_per_minute: per_minute(then, now, |sample| sample.items),
        series: marks
            .windows(2)
            .rev()
            .map(|pair| per_minute(pair[1], pair[0], |sample| sample.pages))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(seconds: u64, pages: fn(u64) -> u64) -> VecDeque<Sample> {
        let sample = |second| Sample { elapsed: Duration::from_secs(second), pages: pages(second), items: 0 };
        (0..seconds).map(sample).collect()
    }

    #[test]
    fn the_rate_is_that_of_the_last_minute_and_the_series_goes_back_further() {
        let steady = rates(&samples(181, |second| 2 * second));
        assert_eq!((steady.pages_per_minute, steady.items_per_minute), (120.0, 0.0));
        assert_eq!(steady.series, vec![120.0; 18]);
        // The site stops answering after a minute and a half.
        let stalled = rates(&samples(181, |second| second.min(90)));
        assert_eq!(stalled.pages_per_minute, 0.0);
        assert_eq!((stalled.series[0], stalled.series[17]), (60.0, 0.0));
        assert_eq!(rates(&VecDeque::new()), Rates::default());
        assert_eq!(rates(&samples(1, |_| 5)).pages_per_minute, 0.0, "one sample has no rate");
    }
}
