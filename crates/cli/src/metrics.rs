//! `--metrics`: the stats of a running crawl as Prometheus text at `/metrics`.
//!
//! A metric is `huntsman_` plus the key of the stat with everything but letters and digits as `_`:
//! `downloader/request_count` is `huntsman_downloader_request_count`. Stats that are no numbers are left out, and so is a
//! key whose name an earlier key has. `/stats` gives the same keys as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::net::TcpListener;

use crate::exit::{Failure, Outcome};
use crate::server::{Answer, Asked, serve};

/// Where the metrics are to be heard, bound but not yet answering.
#[derive(Debug)]
pub(crate) struct Metrics {
    listener: TcpListener,
}

impl Metrics {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is not loopback and `public` is false, or cannot be bound.
    pub(crate) async fn bind(address: SocketAddr, public: bool) -> Outcome<Self> {
        if !address.ip().is_loopback() && !public {
            return Err(Failure::usage(format!(
                "--metrics {address}: other machines could read this; use 127.0.0.1:{}, or add --metrics-public",
                address.port()
            )));
        }
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|error| Failure::usage(format!("--metrics {address}: {error}")))?;
        Ok(Self { listener })
    }

    /// The address with the port that was given out for port 0.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until it is dropped.
    pub(crate) async fn serve(self, stats: impl Fn() -> BTreeMap<String, Value> + Send + Sync + 'static) {
        serve(self.listener, move |asked| answer(asked, &stats)).await;
    }
}

fn answer(asked: &Asked<'_>, stats: &dyn Fn() -> BTreeMap<String, Value>) -> Answer {
    match asked.path() {
        "/metrics" => Answer {
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            ..Answer::text(200, text(&stats()))
        },
        "/stats" => {
            let stats: serde_json::Map<String, Value> = stats().into_iter().collect();
            Answer {
                content_type: "application/json",
                ..Answer::text(200, Value::Object(stats).to_string() + "\n")
            }
        }
        _ => Answer::text(404, "see /metrics\n"),
    }
}

/// The text format, version 0.0.4.
fn text(stats: &BTreeMap<String, Value>) -> String {
    let mut out = String::new();
    let mut used = BTreeSet::new();
    for (key, value) in stats {
        let Value::Number(number) = value else { continue };
        let name = metric_name(key);
        if used.insert(name.clone()) {
            let help = key.replace('\\', "\\\\").replace('\n', "\\n");
            // Untyped: a stat does not say whether it only grows.
            let _ = writeln!(out, "# HELP {name} stat {help}\n# TYPE {name} untyped\n{name} {number}");
        }
    }
    out
}

fn metric_name(key: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("huntsman_{}", key.chars().map(word).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stats_become_names_that_prometheus_takes() {
        let stats = BTreeMap::from([
            ("downloader/response_status_count/200".to_owned(), json!(7)),
            ("a/b".to_owned(), json!(1)),
            ("a-b".to_owned(), json!(2)),
            ("finish_reason".to_owned(), json!("finished")),
            ("ratio\n# x".to_owned(), json!(0.5)),
        ]);
        let text = text(&stats);
        assert!(text.contains("\nhuntsman_downloader_response_status_count_200 7\n"), "{text}");
        assert!(text.contains("\nhuntsman_ratio___x 0.5\n") && !text.contains("finished"), "{text}");
        assert_eq!(text.matches("\nhuntsman_a_b ").count(), 1, "one sample a name: {text}");
        assert!(text.lines().all(|line| line.starts_with('#') || line.split(' ').count() == 2), "{text}");
    }

    #[tokio::test]
    async fn an_address_that_others_reach_must_be_asked_for() {
        let refused = Metrics::bind("0.0.0.0:0".parse().unwrap(), false).await.unwrap_err();
        assert!(refused.message.contains("--metrics-public"), "{}", refused.message);
        assert!(Metrics::bind("0.0.0.0:0".parse().unwrap(), true).await.is_ok());
        assert!(Metrics::bind("127.0.0.1:0".parse().unwrap(), false).await.is_ok());
    }

    #[test]
    fn only_the_documented_paths_answer() {
        let stats = || BTreeMap::from([("pages".to_owned(), json!(3))]);
        let status = |target| answer(&Asked::of(target), &stats).status;
        assert_eq!(
            (status("/metrics"), status("/stats"), status("/"), status("/metrics/x")),
            (200, 200, 404, 404)
        );
    }
}
