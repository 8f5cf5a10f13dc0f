//! The metrics of a crawl, with a real Prometheus, and the dashboards with what it stores.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::prometheus::{Prometheus, check_metrics};
use huntsman_testkit::{Answer, Gate, Site};
use serde_json::{Value, json};

use crate::common::dashboard::{self, array};
use crate::common::{crawl, wait_for};

const PATIENCE: Duration = Duration::from_secs(90);

/// Starts a command that serves metrics; gives their address.
pub(crate) fn start(command: &mut Command) -> (Child, String) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address =
        line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    // What it prints later must not fill the pipe.
    std::thread::spawn(move || stderr.lines().for_each(drop));
    (child, address)
}

/// What the server answers.
fn get(address: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_served_while_the_crawl_runs() {
    let gate = Gate::default();
    let site = Site::builder()
        .page("/", "<a href='/slow'>s</a>")
        .answer("/slow", Answer::html("x").behind(&gate))
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let (mut child, address) = start(crawl(dir.path(), &site).args(["--metrics", "0"]));
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    wait_for(&site, "/slow");
    let answer = get(&address, "/metrics", "localhost");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\nhuntsman_pages_delivered 1\n"), "{answer}");
    // A page of another site whose name now resolves to this address (DNS rebinding) gets no data.
    let refused = get(&address, "/stats", "rebound.example");
    assert!(refused.starts_with("HTTP/1.1 421"), "{refused}");
    let host = &site.hosts()[0];
    assert!(
        answer.contains(&format!("\nhuntsman_host_responses{{host=\"{host}\",status=\"200\"}} 1\n")),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("\nhuntsman_host_state{{host=\"{host}\",state=\"active\"}} 1\n")),
        "{answer}"
    );
    gate.open();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// The numbers of an expression.
fn ask(prometheus: &Prometheus, expression: &str) -> Vec<f64> {
    let found = prometheus.query(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let number = |of: &Value| of["value"][1].as_str().and_then(|number| number.parse().ok());
    found.iter().map(|of| number(of).unwrap_or_else(|| panic!("{of}"))).collect()
}

/// Waits until there is a number for each query of a dashboard.
pub(crate) fn finds_all(prometheus: &Prometheus, name: &str) {
    let expressions = dashboard::expressions(&dashboard::read(name));
    assert!(expressions.len() > 10, "{expressions:?}");
    let begun = Instant::now();
    loop {
        let is_there = |of: &&String| ask(prometheus, of).iter().any(|number| number.is_finite());
        let missing: Vec<&String> = expressions.iter().filter(|of| !is_there(of)).collect();
        if missing.is_empty() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "there is nothing for {missing:#?}: {}", prometheus.log());
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn the_dashboard_of_crawls_finds_all_that_it_asks_for() {
    let gate = Gate::default();
    let site = Site::builder()
        .page("/", "<a href='/broken'>b</a> <a href='/1'>1</a> <a href='/slow'>s</a> <a href='/2'>2</a>")
        .page("/1", "1")
        .answer("/broken", Answer::raw("no response of HTTP\r\n\r\n"))
        .answer("/slow", Answer::html("x").behind(&gate))
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let mut command = crawl(dir.path(), &site);
    // One at a time, so that a request waits while the page before it does.
    let flags = [
        "--metrics",
        "0",
        "--per-host",
        "1",
        "--set",
        "retry_enabled=false",
        "--set",
        "download_timeout=600",
    ];
    let (mut child, address) = start(command.args(flags));
    wait_for(&site, "/slow");
    let text = get(&address, "/metrics", "localhost");
    assert_eq!(check_metrics(text.split_once("\r\n\r\n").unwrap().1), "", "{text}");

    let prometheus = Prometheus::start(&[("crawl", &address)]);
    finds_all(&prometheus, "huntsman-crawls.json");
    let ask = |expression: &str| ask(&prometheus, expression);
    assert_eq!(ask("huntsman_pages_delivered"), [2.0]);
    assert_eq!(ask("huntsman_scheduler_enqueued - huntsman_scheduler_dequeued"), [1.0], "/2 waits");
    gate.open();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_dashboards_have_what_grafana_needs() {
    for name in ["huntsman-crawls.json", "huntsman-cluster.json", "huntsman-near-duplicates.json"] {
        let dashboard = dashboard::read(name);
        assert!(
            dashboard["title"].is_string() && dashboard["uid"].as_str().is_some_and(|uid| uid.len() <= 40)
        );
        assert!(
            dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 36),
            "data sources are objects"
        );
        let variables = array(&dashboard["templating"], "list");
        let source =
            variables.iter().find(|variable| variable["type"] == "datasource").expect("a data source");
        assert_eq!((&source["name"], &source["query"]), (&json!("datasource"), &json!("prometheus")));
        let uses_it = |of: &Value| of["datasource"] == json!({"type": "prometheus", "uid": "${datasource}"});
        assert!(variables.iter().filter(|variable| variable["type"] == "query").all(uses_it));
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in array(&dashboard, "panels") {
            let title = panel["title"].as_str().expect("a title");
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: its id is there twice");
            assert!(panel["type"].is_string() && uses_it(panel), "{title}");
            let [x, y, w, h] = ["x", "y", "w", "h"]
                .map(|name| panel["gridPos"][name].as_u64().expect("a place in the grid"));
            assert!(w > 0 && h > 0 && x + w <= 24, "{title} is outside of the 24 columns");
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(cells.insert(cell), "{title} lies over another panel");
            }
            let targets = array(panel, "targets");
            let names: BTreeSet<&str> =
                targets.iter().filter_map(|target| target["refId"].as_str()).collect();
            assert!(
                !targets.is_empty() && names.len() == targets.len() && targets.iter().all(uses_it),
                "{title}"
            );
        }
    }
}
