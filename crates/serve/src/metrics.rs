//! The stats of a running crawl as Prometheus text at `/metrics`.
//!
//! A metric is named `huntsman_` plus the key of the stat, with every character other than letters and digits
//! replaced by `_`: `downloader/request_count` becomes `huntsman_downloader_request_count`. Stats that are not
//! numbers are left out, and so is a key that maps to the name of an earlier one. `/stats` serves the same keys as
//! JSON.
//!
//! The busiest hosts (`stats_top_hosts`) have metrics of their own with the label `host`: `huntsman_host_requests`,
//! `_responses` by `status`, `_failures` by `kind`, `_bytes`, `_latency_seconds` by `quantile`, `_delay_seconds` and
//! `_state`, which is 1 for the present `state`. All other hosts together have the label `(rest)`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use huntsman_crawler::{Handle, HostReport};
use huntsman_metrics::{CONTENT_TYPE as TEXT, Families, Kind, Number};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::server::{HostNames, Limits, serve_routes};

/// The numbers of a crawl at a moment.
#[derive(Clone, Debug, Default)]
pub struct CrawlNumbers {
    /// The stats by key.
    pub stats: BTreeMap<String, Value>,
    /// The busiest hosts.
    pub hosts: Vec<HostReport>,
}

/// From where a server may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only from this machine.
    Loopback,
    /// Also from other machines, which can then read everything that is served.
    Public,
}

/// Why a server does not listen.
#[derive(Debug)]
pub enum BindError {
    /// Other machines could reach the address, and [`Reach::Public`] was not asked for.
    Public,
    /// The address cannot be bound.
    Io(io::Error),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("other machines could read this; use an address of 127.0.0.0/8"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BindError {}

/// A server of metrics that is bound and not yet serving. It serves `/metrics` and, for a crawl, `/stats`; other paths get 404, and
/// requests for other host names 421.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsServer {
    /// Binds the address.
    ///
    /// # Errors
    /// Other machines could reach the address and `reach` does not allow it, or it cannot be bound.
    pub async fn bind(address: SocketAddr, reach: Reach) -> Result<Self, BindError> {
        if !address.ip().is_loopback() && reach == Reach::Loopback {
            return Err(BindError::Public);
        }
        let listener = TcpListener::bind(address).await.map_err(BindError::Io)?;
        let address = listener.local_addr().map_err(BindError::Io)?;
        Ok(Self { listener, address })
    }

    /// The bound address, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the stats and the hosts of a crawl until the future is dropped.
    pub async fn serve_crawl(self, handle: Handle) {
        let numbers = move || {
            let handle = handle.clone();
            async move { CrawlNumbers { stats: handle.stats().snapshot(), hosts: handle.hosts().await } }
        };
        self.serve_numbers(numbers).await;
    }

    /// Serves what `numbers` gives at each request, until the future is dropped.
    pub async fn serve_numbers<F>(self, numbers: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = CrawlNumbers> + Send + 'static,
    {
        self.serve_routes(routes(numbers)).await;
    }

    /// Serves other routes in the same way, until the future is dropped.
    pub async fn serve_routes(self, routes: Router) {
        let routes = routes.fallback(async || (StatusCode::NOT_FOUND, "see /metrics\n"));
        serve_routes(self.listener, HostNames::of(self.address).guard(routes), Limits::default()).await;
    }
}

fn routes<F>(numbers: impl Fn() -> F + Send + Sync + 'static) -> Router
where
    F: Future<Output = CrawlNumbers> + Send + 'static,
{
    let metrics = Arc::new(numbers);
    let stats = Arc::clone(&metrics);
    let metrics = move || async move {
        let CrawlNumbers { stats, hosts } = metrics().await;
        let mut families = stats_families(&stats);
        families.extend(host_families(&hosts));
        ([(CONTENT_TYPE, TEXT)], families.text())
    };
    let stats = move || async move {
        let stats: serde_json::Map<String, Value> = stats().await.stats.into_iter().collect();
        ([(CONTENT_TYPE, "application/json")], Value::Object(stats).to_string() + "\n")
    };
    Router::new().route("/metrics", get(metrics)).route("/stats", get(stats))
}

/// The stats of a crawl that are numbers, as metrics.
pub fn stats_families(stats: &BTreeMap<String, Value>) -> Families {
    let (mut families, mut used) = (Families::default(), BTreeSet::new());
    for (key, value) in stats {
        let Value::Number(number) = value else { continue };
        let number = match number.as_u64() {
            Some(count) => Number::Count(count),
            None => Number::Real(number.as_f64().unwrap_or(f64::NAN)),
        };
        let name = metric_name(key);
        if used.insert(name.clone()) {
            // A stat does not say whether it only grows, so it has no type.
            families.single(&name, &format!("stat {key}"), Kind::Untyped, number);
        }
    }
    families
}

/// The metrics per host.
fn host_families(hosts: &[HostReport]) -> Families {
    type Samples = fn(&HostReport) -> Vec<(Option<(&'static str, String)>, Number)>;
    const FAMILIES: [(&str, &str, Samples); 7] = [
        ("requests", "requests sent", |host| vec![(None, host.requests.into())]),
        ("responses", "answers by status", |host| {
            let labelled = |(status, n): (&u16, &u64)| (Some(("status", status.to_string())), (*n).into());
            host.statuses.iter().map(labelled).collect()
        }),
        ("failures", "failed downloads by kind", |host| {
            let labelled = |(kind, n): (&&str, &u64)| (Some(("kind", (*kind).to_owned())), (*n).into());
            host.failures.iter().map(labelled).collect()
        }),
        ("bytes", "bytes of bodies on the wire", |host| vec![(None, host.bytes.into())]),
        ("latency_seconds", "request sent to headers received", |host| {
            let quantiles = ["0.5", "0.95", "0.99"].into_iter().zip(host.latency_ms);
            quantiles.map(|(q, ms)| (Some(("quantile", q.to_owned())), (ms / 1_000.0).into())).collect()
        }),
        ("delay_seconds", "delay between starts in force", |host| vec![(None, host.delay_s.into())]),
        ("state", "1 for the present state", |host| {
            vec![(Some(("state", host.state.to_owned())), Number::Count(1))]
        }),
    ];
    let mut families = Families::default();
    for (family, help, samples) in FAMILIES {
        // A request may choose the name of its slot (`download_slot`), so the label may be any text.
        let of = |host: &HostReport| {
            let labels = |label| [("host", host.host.clone())].into_iter().chain(label).collect();
            samples(host).into_iter().map(|(label, number)| (labels(label), number)).collect::<Vec<_>>()
        };
        let samples: Vec<_> = hosts.iter().flat_map(of).collect();
        if !samples.is_empty() {
            families.family(&format!("huntsman_host_{family}"), help, Kind::Untyped, samples);
        }
    }
    families
}

fn metric_name(key: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("huntsman_{}", key.chars().map(word).collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
        let text = stats_families(&stats).text();
        assert!(text.contains("\nhuntsman_downloader_response_status_count_200 7\n"), "{text}");
        assert!(text.contains("\nhuntsman_ratio___x 0.5\n") && !text.contains("finished"), "{text}");
        assert_eq!(text.matches("\nhuntsman_a_b ").count(), 1, "one sample a name: {text}");
        assert!(text.lines().all(|line| line.starts_with('#') || line.split(' ').count() == 2), "{text}");
    }

    #[tokio::test]
    async fn an_address_that_others_reach_must_be_asked_for() {
        let bind = |address: &str, reach| MetricsServer::bind(address.parse().unwrap(), reach);
        let refused = bind("0.0.0.0:0", Reach::Loopback).await.unwrap_err();
        assert!(matches!(refused, BindError::Public), "{refused}");
        assert!(bind("0.0.0.0:0", Reach::Public).await.is_ok());
        assert!(bind("127.0.0.1:0", Reach::Loopback).await.is_ok());
    }

    #[tokio::test]
    async fn only_the_documented_paths_answer() {
        let metrics = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), Reach::Loopback).await.unwrap();
        let address = metrics.address();
        let now = || {
            let stats = BTreeMap::from([("pages".to_owned(), json!(3))]);
            std::future::ready(CrawlNumbers { stats, hosts: Vec::new() })
        };
        let server = tokio::spawn(metrics.serve_numbers(now));
        let mut statuses = Vec::new();
        for (host, path) in [
            ("localhost", "/metrics"),
            ("localhost", "/stats"),
            ("localhost", "/"),
            ("localhost", "/metrics/x"),
            ("rebound.example", "/metrics"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            statuses.push(answer.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        assert_eq!(statuses, ["200", "200", "404", "404", "421"]);
        server.abort();
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
        let text = host_families(&[busy, odd]).text();
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
        assert_eq!(host_families(&[]).text(), "");
    }
}
