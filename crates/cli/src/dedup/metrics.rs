//! Metrics of a run, served over HTTP and written at its end: those of the run and those of its process.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use huntsman::metrics::{self, Families, Kind};
use huntsman::serve::MetricsServer;

use crate::process;

/// All metrics while the run is going on.
fn now(of_run: Families) -> Families {
    let mut all = at_the_end(of_run);
    if let Some(bytes) = process::resident() {
        all.single("process_resident_memory_bytes", "Resident memory size in bytes.", Kind::Gauge, bytes);
    }
    all
}

/// The same metrics for a collector that reads a file later. They leave out the process metrics, because Prometheus
/// would take them for the collector's.
pub(crate) fn at_the_end(of_run: Families) -> Families {
    let mut all = of_run;
    if let Some(bytes) = process::peak_rss() {
        let help = "Most resident memory that the run had.";
        all.single("huntsman_peak_memory_bytes", help, Kind::Gauge, bytes);
    }
    all
}

/// Serves the metrics of a run until the future is dropped.
pub(crate) async fn serve(families: impl Fn() -> Families + Send + Sync + 'static, server: MetricsServer) {
    let families = Arc::new(families);
    let text = move || async move {
        // This may query a Redis server, which blocks.
        let text = tokio::task::spawn_blocking(move || now(families()).text()).await;
        let answered = text.map(|text| ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text));
        answered.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "see the log\n"))
    };
    server.serve_routes(Router::new().route("/metrics", get(text))).await;
}
