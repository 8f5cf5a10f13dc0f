//! Metrics of a run, served over HTTP and written at its end: those of the run and those of its process.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use huntsman::dedup::Telemetry;

use crate::metrics::Metrics;
use crate::process;
use crate::prometheus;

/// All metrics while the run is going on.
fn text(telemetry: &Telemetry) -> String {
    let mut out = text_at_the_end(telemetry);
    if let Some(bytes) = process::resident() {
        gauge(&mut out, "process_resident_memory_bytes", "Resident memory size in bytes.", bytes);
    }
    out
}

/// The same metrics for a collector that reads a file later. They leave out the process metrics, because Prometheus
/// would take them for the collector's.
pub(crate) fn text_at_the_end(telemetry: &Telemetry) -> String {
    let mut out = telemetry.text();
    if let Some(bytes) = process::peak_rss() {
        gauge(&mut out, "huntsman_peak_memory_bytes", "Most resident memory that the run had.", bytes);
    }
    out
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
}

/// Serves the metrics until the future is dropped.
pub(crate) async fn serve(telemetry: Arc<Telemetry>, metrics: Metrics) {
    let text = move || async move {
        // This may query a Redis server, which blocks.
        let text = tokio::task::spawn_blocking(move || text(&telemetry)).await;
        let answered = text.map(|text| ([(CONTENT_TYPE, prometheus::CONTENT_TYPE)], text));
        answered.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "see the log\n"))
    };
    metrics.answer(Router::new().route("/metrics", get(text))).await;
}
