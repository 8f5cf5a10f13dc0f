//! What the server tells Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::copyvio::Comparison;
use crate::process;

/// What a check was asked for as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Compare,
    Search,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Action::Compare => "compare",
            Action::Search => "search",
        }
    }
}

/// Upper ends of the classes of durations, in seconds.
const CLASSES: [f64; 12] = [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: [u64; CLASSES.len() + 1],
    sum: f64,
}

/// Counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    counts: Mutex<Counts>,
    connections: AtomicUsize,
}

#[derive(Debug, Default)]
struct Counts {
    /// By route and status: both are names of ours, so there are few.
    requests: BTreeMap<(&'static str, u16), u64>,
    checks: BTreeMap<(Action, &'static str), u64>,
    durations: BTreeMap<Action, Histogram>,
    sources: BTreeMap<&'static str, u64>,
    queries: u64,
    cache_hits: u64,
}

impl Telemetry {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was answered.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        *self.counts().requests.entry((route, status)).or_default() += 1;
    }

    /// An order was done, or refused with a code.
    pub(crate) fn checked(&self, action: Action, outcome: &'static str, took: Duration) {
        let mut counts = self.counts();
        *counts.checks.entry((action, outcome)).or_default() += 1;
        let histogram = counts.durations.entry(action).or_default();
        let seconds = took.as_secs_f64();
        let class = CLASSES.iter().position(|end| seconds <= *end).unwrap_or(CLASSES.len());
        histogram.counts[class] += 1;
        histogram.sum += seconds;
    }

    /// What became of the sources of an order.
    pub(crate) fn compared(&self, comparison: &Comparison) {
        let mut counts = self.counts();
        for compared in &comparison.sources {
            *counts.sources.entry(compared.status()).or_default() += 1;
        }
        if let Some(checked) = &comparison.check {
            let is_known = checked.cached.is_some();
            counts.cache_hits += u64::from(is_known);
            // Those of a kept result were asked when it was made.
            counts.queries += if is_known { 0 } else { checked.queries as u64 };
        }
    }

    /// A connection, until it is dropped.
    pub(crate) fn connection(self: &Arc<Self>) -> Connection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Connection(Arc::clone(self))
    }

    /// The text format, version 0.0.4. `load` is the number of orders that are being done, and that wait.
    pub(crate) fn text(&self, load: (usize, usize)) -> String {
        let counts = self.counts();
        let mut out = String::new();
        head(&mut out, "huntsman_serve_requests_total", "Requests that were answered.", "counter");
        for ((route, status), n) in &counts.requests {
            let _ =
                writeln!(out, "huntsman_serve_requests_total{{route=\"{route}\",status=\"{status}\"}} {n}");
        }
        head(
            &mut out,
            "huntsman_serve_checks_total",
            "Comparisons and searches, by what came of them.",
            "counter",
        );
        for ((action, outcome), n) in &counts.checks {
            let action = action.name();
            let _ =
                writeln!(out, "huntsman_serve_checks_total{{action=\"{action}\",outcome=\"{outcome}\"}} {n}");
        }
        head(
            &mut out,
            "huntsman_serve_check_seconds",
            "How long comparisons and searches took.",
            "histogram",
        );
        for (action, histogram) in &counts.durations {
            let (action, mut below) = (action.name(), 0);
            for (end, n) in CLASSES.iter().zip(histogram.counts) {
                below += n;
                let _ = writeln!(
                    out,
                    "huntsman_serve_check_seconds_bucket{{action=\"{action}\",le=\"{end}\"}} {below}"
                );
            }
            let all: u64 = histogram.counts.iter().sum();
            let _ = writeln!(
                out,
                "huntsman_serve_check_seconds_bucket{{action=\"{action}\",le=\"+Inf\"}} {all}\n\
                 huntsman_serve_check_seconds_sum{{action=\"{action}\"}} {}\n\
                 huntsman_serve_check_seconds_count{{action=\"{action}\"}} {all}",
                histogram.sum
            );
        }
        head(&mut out, "huntsman_serve_sources_total", "Sources, by what became of them.", "counter");
        for (status, n) in &counts.sources {
            let _ = writeln!(out, "huntsman_serve_sources_total{{status=\"{status}\"}} {n}");
        }
        let (in_flight, waiting) = load;
        for (name, help, kind, value) in [
            (
                "huntsman_serve_queries_total",
                "Questions to search engines and indexes.",
                "counter",
                counts.queries,
            ),
            (
                "huntsman_serve_cache_hits_total",
                "Results that were known already.",
                "counter",
                counts.cache_hits,
            ),
            ("huntsman_serve_checks_in_flight", "Checks that are being done.", "gauge", in_flight as u64),
            ("huntsman_serve_checks_waiting", "Checks that wait for a place.", "gauge", waiting as u64),
            (
                "huntsman_serve_connections",
                "Open connections.",
                "gauge",
                self.connections.load(Ordering::Relaxed) as u64,
            ),
        ] {
            head(&mut out, name, help, kind);
            let _ = writeln!(out, "{name} {value}");
        }
        if let Some(bytes) = process::resident() {
            head(&mut out, "process_resident_memory_bytes", "Resident memory size in bytes.", "gauge");
            let _ = writeln!(out, "process_resident_memory_bytes {bytes}");
        }
        out
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection(Arc<Telemetry>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
