//! Named counters and values of a crawl. Features that Scrapy has, too, use Scrapy's key names.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// One counter; cheap to clone and to add to. A hot path looks its counter up once, when it is built.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicI64>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Replaces the value.
    pub fn set(&self, n: i64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// Raises the value to at least `n`.
    pub fn max(&self, n: i64) {
        self.0.fetch_max(n, Ordering::Relaxed);
    }

    /// Lowers the value to at most `n`.
    pub fn min(&self, n: i64) {
        self.0.fetch_min(n, Ordering::Relaxed);
    }

    /// The current value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Inner {
    counters: BTreeMap<String, Counter>,
    values: BTreeMap<String, Value>,
}

/// The stats of one crawl: counters by key, and other values (`start_time`, `finish_reason`).
///
/// The log belongs to the program, so counting log lines does, too. The command has `log_count/{LEVEL}` in its
/// report; in your own program a layer counts the same:
///
/// ```
/// use huntsman_crawler::Stats;
/// use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
///
/// struct LogCount(Stats);
///
/// impl<S: tracing::Subscriber> Layer<S> for LogCount {
///     fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
///         self.0.inc(&format!("log_count/{}", event.metadata().level()));
///     }
/// }
///
/// // In a program: `crawler.handle().stats().clone()`, and `init()` on the registry.
/// let stats = Stats::default();
/// let log = tracing_subscriber::registry().with(LogCount(stats.clone()));
/// tracing::subscriber::with_default(log, || tracing::error!("the disk is full"));
/// assert_eq!(stats.get("log_count/ERROR"), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stats(Arc<Mutex<Inner>>);

impl Stats {
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        // If a thread panicked while it held the lock, the map is still consistent.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The counter of a key; a new counter starts at 0.
    pub fn counter(&self, key: &str) -> Counter {
        self.with(|inner| match inner.counters.get(key) {
            Some(counter) => counter.clone(),
            None => inner.counters.entry(key.to_owned()).or_default().clone(),
        })
    }

    /// Adds one to a counter.
    pub fn inc(&self, key: &str) {
        self.add(key, 1);
    }

    /// Adds `n` to a counter.
    pub fn add(&self, key: &str, n: i64) {
        self.with(|inner| match inner.counters.get(key) {
            Some(counter) => counter.add(n),
            None => inner.counters.entry(key.to_owned()).or_default().add(n),
        });
    }

    /// Raises a counter to at least `n`.
    pub fn max(&self, key: &str, n: i64) {
        self.counter(key).max(n);
    }

    /// Lowers a counter to at most `n`; a new counter starts at `n`.
    pub fn min(&self, key: &str, n: i64) {
        self.with(|inner| match inner.counters.get(key) {
            Some(counter) => counter.min(n),
            None => inner.counters.entry(key.to_owned()).or_default().set(n),
        });
    }

    /// Sets a value that is not a counter.
    pub fn set(&self, key: &str, value: impl Into<Value>) {
        self.with(|inner| inner.values.insert(key.to_owned(), value.into()));
    }

    /// A counter's value; 0 if there is none.
    pub fn get(&self, key: &str) -> i64 {
        self.with(|inner| inner.counters.get(key).map_or(0, Counter::get))
    }

    /// Whether a counter or a value of this key was ever asked for, even if the counter is still 0.
    pub fn has(&self, key: &str) -> bool {
        self.with(|inner| inner.counters.contains_key(key) || inner.values.contains_key(key))
    }

    /// The counters by key, without other values.
    pub(crate) fn counters(&self) -> BTreeMap<String, i64> {
        self.with(|inner| inner.counters.iter().map(|(key, counter)| (key.clone(), counter.get())).collect())
    }

    /// All counters and values in key order, without counters that were always 0.
    pub fn snapshot(&self) -> BTreeMap<String, Value> {
        self.with(|inner| {
            let counters = inner.counters.iter().filter(|(_, counter)| counter.get() != 0);
            let mut all: BTreeMap<String, Value> =
                counters.map(|(key, counter)| (key.clone(), counter.get().into())).collect();
            all.extend(inner.values.clone());
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_values_share_one_snapshot() {
        let stats = Stats::default();
        stats.inc("a/b");
        stats.counter("a/b").add(2);
        stats.max("depth", 3);
        stats.max("depth", 2);
        stats.min("low", 5);
        stats.min("low", 7);
        stats.set("finish_reason", "finished");
        stats.counter("never");
        let snapshot = stats.snapshot();
        assert_eq!(snapshot["a/b"], 3);
        assert_eq!(snapshot["depth"], 3);
        assert_eq!(snapshot["low"], 5);
        assert_eq!(snapshot["finish_reason"], "finished");
        assert!(!snapshot.contains_key("never"));
        assert!(stats.has("never") && stats.has("finish_reason") && !stats.has("nothing"));
    }
}
