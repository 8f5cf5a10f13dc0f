//! Stopping from outside: signals, and a reader of stdout that goes away.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use huntsman_testkit::{Answer, Gate, RunningSite, Site};

use crate::common::{crawl, lines, report, said, wait_for};

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Reads stderr until the crawl says that it was stopped.
fn wait_until_stopping(stderr: &mut impl BufRead) {
    let mut lines = stderr.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("once more to stop at once")), "it does not say so");
}

/// The exit code and the rest of stderr.
fn end(mut child: Child, mut stderr: impl BufRead) -> (Option<i32>, String) {
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("panicked"), "{rest}");
    (child.wait().unwrap().code(), rest)
}

/// An endless site; `/slow` waits for a gate, `/stuck` never ends.
fn site(gate: &Gate) -> RunningSite {
    Site::builder()
        .page("/", "<a href='/slow'>s</a>")
        .answer("/slow", Answer::html("<a href='/next'>n</a>").behind(gate))
        .page("/next", "n")
        .page("/to-stuck", "<a href='/stuck'>s</a>")
        .answer("/stuck", Answer::html("x").delay(Duration::from_secs(60)))
        .start_blocking()
}

#[test]
fn the_first_signal_lets_what_is_in_flight_end_and_exits_130() {
    for name in ["INT", "TERM"] {
        let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
        let site = site(&gate);
        let mut child = crawl(dir.path(), &site).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        wait_for(&site, "/slow");
        signal(&child, name);
        wait_until_stopping(&mut stderr);
        // The crawl says so just before it stops, and nothing outside of it shows when it has.
        std::thread::sleep(Duration::from_millis(100));
        gate.open();
        let (code, rest) = end(child, stderr);
        assert_eq!(code, Some(130), "{rest}");
        let pages = lines(dir.path().join("out/pages.jsonl"));
        assert_eq!(pages.len(), 2, "what was in flight was saved");
        assert_eq!(site.count("/next"), 0, "and nothing new was asked for");
        assert_eq!(report(&dir.path().join("out"))["finish_reason"], "shutdown");
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site(&Gate::default()));
    let mut command = crawl(dir.path(), &site);
    let mut child = command.arg(site.url("/to-stuck").as_str()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    wait_for(&site, "/stuck");
    signal(&child, "INT");
    wait_until_stopping(&mut stderr);
    signal(&child, "INT");
    let (code, rest) = end(child, stderr);
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("stopping at once"), "{rest}");
    // The page that never ends would have delayed the end by the 15 s of the first signal.
    assert!(!lines(dir.path().join("out/pages.jsonl")).is_empty());
}

#[test]
fn a_reader_that_goes_away_ends_the_crawl_with_a_message() {
    let endless = |asked: &huntsman_testkit::SiteRequest| {
        let next: u32 = asked.path().trim_start_matches('/').parse().unwrap_or(0) + 1;
        Answer::html(format!("<title>{}</title><a href='/{next}'>n</a>", "x".repeat(2_000)))
    };
    let (dir, site) = (tempfile::tempdir().unwrap(), Site::builder().route("/*", endless).start_blocking());
    let mut command = crawl(dir.path(), &site);
    command.args(["--out", "-", "--set", "depth_guard=0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.ends_with("}\n"));
    drop(stdout);
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("stdout was closed"), "{}", said.stderr);
}
