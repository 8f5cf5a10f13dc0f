//! The report of a crawl: readable for people, serializable for machines.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::component::{Component, Components};
use crate::losses::{Loss, LossKind};

/// What a crawl did, as it ended.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CrawlReport {
    /// Why it ended: `finished`, `shutdown`, `closespider_pagecount`, ...
    pub finish_reason: String,
    /// Seconds from start to end.
    pub elapsed_s: f64,
    /// Pages delivered to the spider.
    pub pages: u64,
    /// Requests sent to the network, robots.txt and retries included.
    pub requests: u64,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// Start requests that could not be fetched: URL and reason.
    pub failed_seeds: Vec<(String, String)>,
    /// Start requests, those that were refused or are no URL included.
    pub seeds: u64,
    /// What was lost: failed seeds, items, feeds, links that a guard cut.
    pub losses: Vec<Loss>,
    /// All stats.
    pub stats: BTreeMap<String, Value>,
    /// The busiest hosts.
    pub hosts: Vec<HostReport>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Version of the crawler.
    pub version: &'static str,
    #[serde(skip)]
    pub(crate) components: Components,
}

/// What happened at one slot.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct HostReport {
    /// Name of the slot.
    pub host: String,
    /// Requests sent.
    pub requests: u64,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Failed downloads by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// Bytes of bodies on the wire.
    pub bytes: u64,
    /// Latency (request sent to headers received) in milliseconds at p50, p95 and p99.
    pub latency_ms: [f64; 3],
    /// Delay between starts as it was last, in seconds.
    pub delay_s: f64,
    /// Requests still queued.
    pub queued: u64,
    /// `active`, `sleeping`, `down` or `gave_up`.
    pub state: &'static str,
    /// Last failure, if any.
    pub last_error: Option<String>,
}

impl CrawlReport {
    /// A component of the crawl by its type, with what it holds after the crawl; `None` if it was not configured.
    pub fn component<C: Component>(&self) -> Option<Arc<C>> {
        self.components.get()
    }

    /// Whether the crawl ended because the work was done.
    pub fn is_finished(&self) -> bool {
        self.finish_reason == "finished"
    }

    /// Why nothing came of the crawl, if so: every start request failed, or pipelines failed on every item. A command should end
    /// with an error then, whatever the finish reason.
    pub fn failure(&self) -> Option<String> {
        let lost = |kind| self.losses.iter().filter(|loss| loss.kind == kind).map(|loss| loss.count).sum();
        let (seeds, items): (u64, u64) = (lost(LossKind::Seeds), lost(LossKind::ItemsFailed));
        if seeds > 0 && seeds >= self.seeds {
            return Some("every seed failed".to_owned());
        }
        (items > 0 && self.stat("item_scraped_count") == 0).then(|| "every item was lost".to_owned())
    }

    /// How the crawl ended, for people: the finish reason, and what is wrong with it.
    pub fn outcome(&self) -> String {
        // What a pipeline drops is its decision.
        let is_loss = |loss: &Loss| loss.kind != LossKind::ItemsDropped;
        match self.failure() {
            Some(failure) => format!("{}, but {failure}", self.finish_reason),
            None if self.losses.iter().any(is_loss) => format!("{} with losses", self.finish_reason),
            None => self.finish_reason.clone(),
        }
    }

    /// A counter of the stats; 0 if there is none.
    pub fn stat(&self, key: &str) -> i64 {
        self.stats.get(key).and_then(Value::as_i64).unwrap_or(0)
    }
}

/// A summary of a few lines; each loss is one, with the first reason.
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
        self.losses.iter().try_for_each(|loss| write!(f, "\n  {loss}"))
    }
}

/// Bytes for people: `21.4 MB`.
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
