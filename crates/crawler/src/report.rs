//! The report of a crawl: readable for people, serializable for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::component::{Component, Components};
use crate::losses::{Loss, LossKind};

/// The result of a crawl.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CrawlReport {
    /// Why the crawl ended: `finished`, `shutdown`, `closespider_pagecount`, ...
    pub finish_reason: String,
    /// Seconds from start to end.
    pub elapsed_s: f64,
    /// Pages delivered to the spider.
    pub pages: u64,
    /// Requests sent to the network, including robots.txt and retries.
    pub requests: u64,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// Start requests that could not be fetched: URL and reason.
    pub failed_seeds: Vec<(String, String)>,
    /// Number of start requests, including those that were refused or are not URLs.
    pub seeds: u64,
    /// What the crawl lost: failed seeds, items, feeds, links that a guard refused.
    pub losses: Vec<Loss>,
    /// Rules of quality that the crawl does not satisfy, such as a least number of items.
    pub failed_rules: Vec<FailedRule>,
    /// All stats.
    pub stats: BTreeMap<String, Value>,
    /// Reports of the busiest hosts.
    pub hosts: Vec<HostReport>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Version of the crawler.
    pub version: &'static str,
    /// What components tell of the crawl besides stats, by their names.
    #[serde(flatten)]
    pub sections: BTreeMap<String, Value>,
    #[serde(skip)]
    pub(crate) components: Components,
}

/// A rule of quality that a crawl does not satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRule {
    /// The rule as it was given: `item_scraped_count >= 100`.
    pub rule: String,
    /// The number that breaks it, for people: `item_scraped_count is 12`.
    pub why: String,
}

/// `item_scraped_count >= 100: item_scraped_count is 12`.
impl fmt::Display for FailedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.why)
    }
}

/// What happened in one slot.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct HostReport {
    /// Name of the slot.
    pub host: String,
    /// Requests sent.
    pub requests: u64,
    /// Number of responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of failed downloads by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// Bytes of bodies on the wire.
    pub bytes: u64,
    /// Latency (request sent to headers received) in milliseconds at p50, p95 and p99.
    pub latency_ms: [f64; 3],
    /// The last delay between starts, in seconds.
    pub delay_s: f64,
    /// Number of requests that are still queued.
    pub queued: u64,
    /// `active`, `sleeping`, `down` or `gave_up`.
    pub state: &'static str,
    /// Last failure, if any.
    pub last_error: Option<String>,
}

impl CrawlReport {
    /// A component of the crawl by its type, in its state after the crawl; `None` if it is not configured.
    pub fn component<C: Component>(&self) -> Option<Arc<C>> {
        self.components.get()
    }

    /// Whether the crawl ended because there was nothing left to do.
    pub fn is_finished(&self) -> bool {
        self.finish_reason == "finished"
    }

    /// The reason why the crawl as a whole failed, if it did: every start request failed, or no item of any could be read
    /// or passed the pipelines. A command should then end with an error, whatever the finish reason.
    pub fn failure(&self) -> Option<String> {
        let lost = |kind| self.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum();
        let seeds: u64 = lost(LossKind::Seeds);
        let items: u64 = lost(LossKind::ItemsFailed) + lost(LossKind::ItemsUnread);
        if seeds > 0 && seeds >= self.seeds {
            return Some("every seed failed".to_owned());
        }
        (items > 0 && self.stat("item_scraped_count") == 0).then(|| "every item was lost".to_owned())
    }

    /// Whether a command should end with an error: a start request failed, everything was lost ([`failure`](Self::failure)), or a rule of
    /// quality failed.
    pub fn has_failed(&self) -> bool {
        !self.failed_seeds.is_empty()
            || self.finish_reason == "start_error"
            || self.failure().is_some()
            || !self.failed_rules.is_empty()
    }

    /// A sentence for people about how the crawl ended: the finish reason, and any problem with it.
    pub fn outcome(&self) -> String {
        // An item that a pipeline drops is not lost: dropping it was the pipeline's decision.
        let is_loss = |loss: &Loss| loss.kind != LossKind::ItemsDropped;
        match (self.failure(), self.failed_rules.len()) {
            (Some(failure), _) => format!("{}, but {failure}", self.finish_reason),
            (None, 1) => format!("{}, but a quality rule failed", self.finish_reason),
            (None, 2..) => {
                format!("{}, but {} quality rules failed", self.finish_reason, self.failed_rules.len())
            }
            (None, 0) if self.losses.iter().any(is_loss) => format!("{} with losses", self.finish_reason),
            (None, 0) => self.finish_reason.clone(),
        }
    }

    /// A counter of the stats; 0 if there is none.
    pub fn stat(&self, key: &str) -> i64 {
        self.stats.get(key).and_then(Value::as_i64).unwrap_or(0)
    }
}

/// A summary of a few lines, with one line for each failed rule, and for each loss with its first reason.
impl fmt::Display for CrawlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elapsed = Duration::from_secs_f64(self.elapsed_s.max(0.0));
        let rate = if self.elapsed_s > 0.0 { self.pages as f64 / self.elapsed_s } else { 0.0 };
        writeln!(f, "{} after {elapsed:.1?}: {} pages ({rate:.1}/s)", self.outcome(), self.pages)?;
        write!(f, "{} requests, {}", self.requests, human_bytes(self.wire_bytes))?;
        for (what, key) in [
            ("items", "item_scraped_count"),
            ("failed", "drops/failed"),
            ("skipped", "drops/skipped"),
            ("retries", "retry/count"),
            ("callback errors", "spider_exceptions/count"),
        ] {
            if self.stat(key) > 0 {
                write!(f, ", {} {what}", self.stat(key))?;
            }
        }
        self.failed_rules.iter().try_for_each(|rule| write!(f, "\n  quality rule failed: {rule}"))?;
        self.losses.iter().try_for_each(|loss| write!(f, "\n  {loss}"))
    }
}

/// A number of bytes for people: `21.4 MB`.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1_000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1_000.0;
    }
    format!("{value:.1} TB")
}
