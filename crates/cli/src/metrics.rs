//! `--metrics`: the stats of a running crawl as Prometheus text at `/metrics`.
//!
//! A metric is `huntsman_` plus the key of the stat with everything but letters and digits as `_`:
//! `downloader/request_count` is `huntsman_downloader_request_count`. Stats that are no numbers are left out, and so is a
//! key whose name an earlier key has. `/stats` gives the same keys as JSON.
//!
//! The busiest hosts (`stats_top_hosts`) have metrics of their own, with the label `host`: `huntsman_host_requests`,
//! `_responses` by `status`, `_failures` by `kind`, `_bytes`, `_latency_seconds` by `quantile`, `_delay_seconds` and
//! `_state`, which is 1 for the present `state`. All others together are the host `(rest)`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;

use huntsman::HostReport;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::exit::{Failure, Outcome};
use crate::server::{Answer, Limits, Names, serve_pages};

/// What a crawl has to tell at a moment.
#[derive(Debug, Default)]
pub(crate) struct Now {
    pub(crate) stats: BTreeMap<String, Value>,
    pub(crate) hosts: Vec<HostReport>,
}

/// Where the metrics are to be heard, bound but not yet answering.
#[derive(Debug)]
pub(crate) struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
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
        let failed = |error| Failure::usage(format!("--metrics {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The address with the port that was given out for port 0.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the stats of a crawl until it is dropped.
    pub(crate) async fn serve<F>(self, now: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Now> + Send + 'static,
    {
        self.answer(move |path| {
            let (path, now) = (path.to_owned(), now());
            async move { answer(&path, now).await }
        })
        .await;
    }

    /// Answers by path until it is dropped, if it is meant.
    pub(crate) async fn answer<F>(self, answer: impl Fn(&str) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let names = Names::of(self.address);
        serve_pages(self.listener, Limits::default(), move |asked| {
            let is_meant = names.are_meant(&asked.uri, &asked.headers);
            let answer = is_meant.then(|| answer(asked.path()));
            async move {
                match answer {
                    Some(answer) => answer.await,
                    None => Answer::text(421, Names::OTHERS),
                }
            }
        })
        .await;
    }
}

/// Nothing is looked at for a path that is not there.
async fn answer(path: &str, now: impl Future<Output = Now>) -> Answer {
    match path {
        "/metrics" => {
            let Now { stats, hosts } = now.await;
            Answer::metrics(stats_text(&stats) + &host_text(&hosts))
        }
        "/stats" => {
            let stats: serde_json::Map<String, Value> = now.await.stats.into_iter().collect();
            Answer::new(200, "application/json", Value::Object(stats).to_string() + "\n")
        }
        _ => Answer::text(404, "see /metrics\n"),
    }
}

/// Stats in the text format, version 0.0.4.
pub(crate) fn stats_text(stats: &BTreeMap<String, Value>) -> String {
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

/// The metrics per host: one family after the other, as the format wants them.
fn host_text(hosts: &[HostReport]) -> String {
    type Samples = fn(&HostReport) -> Vec<(Option<(&'static str, String)>, f64)>;
    const FAMILIES: [(&str, &str, Samples); 7] = [
        ("requests", "requests sent", |host| vec![(None, host.requests as f64)]),
        ("responses", "answers by status", |host| {
            let labelled = |(status, n): (&u16, &u64)| (Some(("status", status.to_string())), *n as f64);
            host.statuses.iter().map(labelled).collect()
        }),
        ("failures", "failed downloads by kind", |host| {
            let labelled = |(kind, n): (&&str, &u64)| (Some(("kind", (*kind).to_owned())), *n as f64);
            host.failures.iter().map(labelled).collect()
        }),
        ("bytes", "bytes of bodies on the wire", |host| vec![(None, host.bytes as f64)]),
        ("latency_seconds", "request sent to headers received", |host| {
            let quantiles = ["0.5", "0.95", "0.99"].into_iter().zip(host.latency_ms);
            quantiles.map(|(q, ms)| (Some(("quantile", q.to_owned())), ms / 1_000.0)).collect()
        }),
        ("delay_seconds", "delay between starts in force", |host| vec![(None, host.delay_s)]),
        ("state", "1 for the present state", |host| vec![(Some(("state", host.state.to_owned())), 1.0)]),
    ];
    let mut out = String::new();
    for (family, help, samples) in FAMILIES {
        let mut head =
            format!("# HELP huntsman_host_{family} {help}\n# TYPE huntsman_host_{family} untyped\n");
        for host in hosts {
            let name = label_value(&host.host);
            for (label, number) in samples(host) {
                out.push_str(&std::mem::take(&mut head));
                let more = label.map_or(String::new(), |(key, value)| format!(",{key}=\"{value}\""));
                let _ = writeln!(out, "huntsman_host_{family}{{host=\"{name}\"{more}}} {number}");
            }
        }
    }
    out
}

/// A slot may be named by a request (`download_slot`), so by anything.
fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
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
        let text = stats_text(&stats);
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

    #[tokio::test]
    async fn only_the_documented_paths_answer() {
        let mut statuses = Vec::new();
        for path in ["/metrics", "/stats", "/", "/metrics/x"] {
            let stats = BTreeMap::from([("pages".to_owned(), json!(3))]);
            let now = async { Now { stats, hosts: Vec::new() } };
            statuses.push(answer(path, now).await.status);
        }
        assert_eq!(statuses, [200, 200, 404, 404]);
    }

    #[test]
    fn hosts_are_labels_that_cannot_break_out() {
        let mut busy = HostReport::default();
        busy.host = "a.test".to_owned();
        busy.requests = 7;
        busy.statuses = BTreeMap::from([(200, 5), (404, 2)]);
        busy.latency_ms = [250.0, 500.0, 1_000.0];
        busy.state = "active";
        let mut odd = HostReport::default();
        odd.host = "x\"} 1\n\\".to_owned();
        let text = host_text(&[busy, odd]);
        for line in [
            "huntsman_host_requests{host=\"a.test\"} 7",
            "huntsman_host_responses{host=\"a.test\",status=\"404\"} 2",
            "huntsman_host_latency_seconds{host=\"a.test\",quantile=\"0.5\"} 0.25",
            "huntsman_host_state{host=\"a.test\",state=\"active\"} 1",
            "huntsman_host_requests{host=\"x\\\"} 1\\n\\\\\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("# TYPE huntsman_host_requests ").count(), 1);
        assert!(!text.contains("huntsman_host_failures"), "a family without samples has no head: {text}");
        assert_eq!(host_text(&[]), "");
    }
}
