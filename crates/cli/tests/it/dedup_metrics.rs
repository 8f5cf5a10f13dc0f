//! Tests the metrics of `huntsman dedup` with a real Prometheus, and the dashboard with these metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::prometheus::{Prometheus, check_metrics};
use huntsman_testkit::redis::Server;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::common::dashboard::{self, array};
use crate::common::huntsman;
use crate::common::stories::stories;

const PATIENCE: Duration = Duration::from_secs(90);

/// A run that reads stdin.
struct Live {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Live {
    fn start(path: &Path, index: &str, name: &str) -> Self {
        let mut command = huntsman(path);
        command.args(["dedup", "add", "-", "--metrics", "127.0.0.1:0", "--index", index]);
        command.args(["--flags", &format!("{name}.jsonl"), "--metrics-file", &format!("{name}.prom")]);
        let mut child =
            command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.trim_end().trim_end_matches("/metrics").to_owned();
        Self { child, stderr, address }
    }

    fn feed(&mut self, text: &str) {
        self.child.stdin.as_mut().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("UTF-8");
        let status = self.child.wait().expect("an own child can be waited for");
        assert!(status.success(), "{said}");
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The process is still running if a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// More than a batch of stories, some of them HTML, one empty, one broken. Each round repeats the texts of the
/// previous one.
fn round(stories: &[Value], number: usize) -> String {
    let mut text = String::new();
    for (at, story) in stories.iter().enumerate() {
        let mut story = story.clone();
        story["id"] = json!(number * 10_000 + at);
        if at % 5 == 0 {
            story["html"] = format!("<p>{}</p>", story["text"].as_str().expect("a text")).into();
            story.as_object_mut().expect("an object").remove("text");
        }
        text += &(story.to_string() + "\n");
    }
    text + &json!({"id": number * 10_000 + 9_999, "lang": "en", "text": "."}).to_string() + "\nno json\n"
}

/// The numbers in a result.
fn numbers(results: &[Value]) -> Vec<f64> {
    let number = |result: &Value| result["value"][1].as_str().and_then(|number| number.parse().ok());
    results.iter().map(|result| number(result).unwrap_or_else(|| panic!("{result}"))).collect()
}

#[test]
fn a_prometheus_sees_a_run_go_on_and_the_dashboard_finds_all_that_it_asks_for() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let mut runs = [Live::start(path, "index", "directory"), Live::start(path, &server.url(), "redis")];
    let prometheus = Prometheus::start(&[("directory", &runs[0].address), ("redis", &runs[1].address)]);
    let ask = |expression: &str| -> Vec<f64> {
        let found = prometheus.query(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        numbers(&found)
    };
    let stories = stories(&mut StdRng::seed_from_u64(8), 105);

    // There are three rounds, each started when Prometheus has scraped the previous one, so that rates can be
    // computed.
    let counted = ["huntsman_docs_processed_total", "huntsman_docs_flagged_total"]
        .map(|name| ["directory", "redis"].map(|job| format!("sum({name}{{job=\"{job}\"}})")));
    let mut before = [0.0; 4];
    for number in 0..3 {
        let text = round(&stories, number);
        runs.iter_mut().for_each(|run| run.feed(&text));
        let start = Instant::now();
        loop {
            let now: Vec<f64> =
                counted.as_flattened().iter().map(|of| ask(of).first().copied().unwrap_or(0.0)).collect();
            if now.iter().zip(&before).all(|(now, before)| now > before) {
                before.copy_from_slice(&now);
                break;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "round {number}: {now:?} after {before:?}: {}",
                prometheus.log()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    assert_eq!(ask("up"), [1.0, 1.0]);
    for target in array(&prometheus.api("/api/v1/targets?state=active"), "activeTargets") {
        assert_eq!((&target["health"], &target["lastError"]), (&json!("up"), &json!("")), "{target}");
    }

    // All queries of the dashboard have results after two scrapes, and at least one number of each is finite.
    let expressions = dashboard::expressions(&dashboard::read("huntsman-near-duplicates.json"));
    assert!(expressions.len() > 15, "{expressions:?}");
    let start = Instant::now();
    loop {
        let is_there = |of: &&String| ask(of).iter().any(|number| number.is_finite());
        let missing: Vec<&String> = expressions.iter().filter(|of| !is_there(of)).collect();
        if missing.is_empty() {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "there is nothing for {missing:#?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    for job in ["directory", "redis"] {
        for stage in ["fetch", "extract", "hash", "query", "insert", "persist"] {
            let buckets = format!("huntsman_stage_seconds_bucket{{job=\"{job}\",stage=\"{stage}\"}}");
            let median = ask(&format!("histogram_quantile(0.5, sum by (le) (rate({buckets}[1m])))"));
            assert!(
                matches!(*median, [median] if median > 0.0 && median < 10.0),
                "{job} {stage}: {median:?}"
            );
        }
        // The last bucket of a histogram has all observations, as many as were counted.
        let all = |name: &str, label: &str| {
            ask(&format!("sum(huntsman_stage_seconds_{name}{{job=\"{job}\",stage=\"hash\"{label}}})"))
        };
        assert_eq!(all("bucket", ",le=\"+Inf\""), all("count", ""));
    }
    let types = prometheus.api("/api/v1/metadata");
    for (name, kind) in [
        ("huntsman_docs_processed_total", "counter"),
        ("huntsman_docs_flagged_total", "counter"),
        ("huntsman_docs_skipped_total", "counter"),
        ("huntsman_heavy_bucket_total", "counter"),
        ("huntsman_stage_seconds", "histogram"),
        ("huntsman_candidates_per_query", "histogram"),
        ("huntsman_index_docs", "gauge"),
        ("huntsman_index_bytes", "gauge"),
        ("huntsman_redis_used_memory_bytes", "gauge"),
        ("huntsman_peak_memory_bytes", "gauge"),
        ("process_resident_memory_bytes", "gauge"),
    ] {
        assert_eq!(types[name][0]["type"], kind, "{name}");
        assert!(types[name][0]["help"].as_str().is_some_and(|help| help.ends_with('.')), "{name}");
    }

    runs.into_iter().for_each(Live::end);
    for name in ["directory", "redis"] {
        let text = std::fs::read_to_string(path.join(format!("{name}.prom"))).unwrap();
        assert_eq!(check_metrics(&text), "", "{text}");
        let value = |line: &str| text.lines().find_map(|other| other.strip_prefix(line).map(str::to_owned));
        assert_eq!(
            value("huntsman_docs_skipped_total{lang=\"\",reason=\"error\"} ").as_deref(),
            Some("3"),
            "{text}"
        );
        assert_eq!(
            value("huntsman_docs_skipped_total{lang=\"ENGLISH\",reason=\"empty\"} ").as_deref(),
            Some("3")
        );
        assert_eq!(value("huntsman_docs_processed_total{lang=\"HINDI\"} ").as_deref(), Some("315"));
        // A collector that reads files has process metrics of its own.
        assert!(!text.contains("process_resident"), "{text}");
    }

    // The next run continues the file, so the numbers in Prometheus grow by that run's work.
    let mut next = Live::start(path, "index", "directory");
    next.feed(&round(&stories[..100], 3));
    next.end();
    let text = std::fs::read_to_string(path.join("directory.prom")).unwrap();
    assert_eq!(check_metrics(&text), "", "{text}");
    assert!(text.contains("\nhuntsman_docs_processed_total{lang=\"HINDI\"} 325\n"), "{text}");
    assert!(text.contains("\nhuntsman_docs_skipped_total{lang=\"\",reason=\"error\"} 4\n"), "{text}");
}
