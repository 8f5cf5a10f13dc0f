//! The server's own Prometheus metrics.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use huntsman_sweep::Comparison;
use huntsman_sweep::service::{OrderResult, Refusal};

use huntsman_metrics::{Families, Histogram, Kind};
use huntsman_output::process;

/// The kind of check that was asked for.
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

/// Upper bounds of the buckets of durations, in seconds.
const CLASSES: [f64; 12] = [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Counters of the server.
#[derive(Debug, Default)]
pub(crate) struct Telemetry(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By route and status. Both come from fixed lists of ours, so there are few combinations.
    requests: BTreeMap<(&'static str, u16), u64>,
    checks: BTreeMap<(Action, &'static str), u64>,
    durations: BTreeMap<Action, Histogram>,
    sources: BTreeMap<&'static str, u64>,
    queries: u64,
    cache_hits: u64,
}

impl Telemetry {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        *self.counts().requests.entry((route, status)).or_default() += 1;
    }

    /// Carries out an order, and counts its outcome, its duration and its sources.
    pub(crate) async fn observe(
        &self,
        action: Action,
        order: impl Future<Output = Result<OrderResult, Refusal>>,
    ) -> Result<OrderResult, Refusal> {
        let start = Instant::now();
        let result = order.await;
        let outcome = result.as_ref().err().map_or("ok", |refusal| refusal.code);
        {
            let mut counts = self.counts();
            *counts.checks.entry((action, outcome)).or_default() += 1;
            let histogram = counts.durations.entry(action).or_insert_with(|| Histogram::new(&CLASSES));
            histogram.observe(start.elapsed(), 1);
        }
        if let Ok(done) = &result {
            self.count_sources(&done.comparison);
        }
        result
    }

    /// Counts the sources of an order by status.
    fn count_sources(&self, comparison: &Comparison) {
        let mut counts = self.counts();
        for compared in &comparison.sources {
            *counts.sources.entry(compared.status()).or_default() += 1;
        }
        if let Some(checked) = &comparison.check {
            let is_known = checked.cached.is_some();
            counts.cache_hits += u64::from(is_known);
            // The queries of a cached result were counted when it was computed.
            counts.queries += if is_known { 0 } else { checked.queries as u64 };
        }
    }

    /// All metrics at a moment. `load` is the number of running orders and of waiting ones; `connections` is the
    /// number of open connections.
    pub(crate) fn families(&self, load: (usize, usize), connections: usize) -> Families {
        let counts = self.counts();
        let mut all = Families::default();
        let requests = counts.requests.iter().map(|((route, status), n)| {
            (vec![("route", (*route).to_owned()), ("status", status.to_string())], *n)
        });
        all.family("huntsman_serve_requests_total", "Requests that were answered.", Kind::Counter, requests);
        let checks = counts.checks.iter().map(|((action, outcome), n)| {
            (vec![("action", action.name().to_owned()), ("outcome", (*outcome).to_owned())], *n)
        });
        let help = "Comparisons and searches, by outcome.";
        all.family("huntsman_serve_checks_total", help, Kind::Counter, checks);
        let durations = counts
            .durations
            .iter()
            .map(|(action, histogram)| (vec![("action", action.name().to_owned())], histogram.clone()));
        let help = "How long comparisons and searches took.";
        all.histograms("huntsman_serve_check_seconds", help, durations);
        let sources = counts.sources.iter().map(|(status, n)| (vec![("status", (*status).to_owned())], *n));
        let help = "Sources, by status.";
        all.family("huntsman_serve_sources_total", help, Kind::Counter, sources);
        let help = "Queries to search engines and indexes.";
        all.single("huntsman_serve_queries_total", help, Kind::Counter, counts.queries);
        let help = "Results that came from the cache.";
        all.single("huntsman_serve_cache_hits_total", help, Kind::Counter, counts.cache_hits);
        let (in_flight, waiting) = load;
        let help = "Checks that are running.";
        all.single("huntsman_serve_checks_in_flight", help, Kind::Gauge, in_flight);
        all.single("huntsman_serve_checks_waiting", "Checks that wait for a place.", Kind::Gauge, waiting);
        all.single("huntsman_serve_connections", "Open connections.", Kind::Gauge, connections);
        if let Some(bytes) = process::resident() {
            let help = "Resident memory size in bytes.";
            all.single("process_resident_memory_bytes", help, Kind::Gauge, bytes);
        }
        all
    }
}
