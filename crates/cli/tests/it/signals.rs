//! Stopping from outside: signals, and a reader of stdout that goes away.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{crawl, lines, report, said};
use huntsman_testkit::{Answer, RunningSite, Site};

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn wait_for(site: &RunningSite, target: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while site.count(target) == 0 {
        assert!(Instant::now() < deadline, "{target} was never asked for: {:?}", site.targets());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An endless site; `/slow` takes two seconds, `/stuck` never ends.
fn site() -> RunningSite {
    Site::builder()
        .page("/", "<a href='/slow'>s</a>")
        .answer("/slow", Answer::html("<a href='/next'>n</a>").delay(Duration::from_millis(1_500)))
        .page("/next", "n")
        .page("/to-stuck", "<a href='/stuck'>s</a>")
        .answer("/stuck", Answer::html("x").delay(Duration::from_secs(60)))
        .start_blocking()
}

#[test]
fn the_first_signal_lets_what_is_in_flight_end_and_exits_130() {
    for name in ["INT", "TERM"] {
        let (dir, site) = (tempfile::tempdir().unwrap(), site());
        let child = crawl(dir.path(), &site).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&site, "/slow");
        signal(&child, name);
        let said = said(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(130), "{said:?}");
        let pages = lines(dir.path().join("out/pages.jsonl"));
        assert_eq!(pages.len(), 2, "what was in flight was saved");
        assert_eq!(site.count("/next"), 0, "and nothing new was asked for");
        assert_eq!(report(&dir.path().join("out"))["finish_reason"], "shutdown");
        assert!(said.stderr.contains("once more to stop at once"), "{}", said.stderr);
    }
}

#[test]
fn the_second_signal_ends_at_once() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut command = crawl(dir.path(), &site);
    let child = command.arg(site.url("/to-stuck").as_str()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&site, "/stuck");
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "INT");
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("stopping at once"), "{}", said.stderr);
    // The page that never ends would have delayed the end by the 15 s of the first signal.
    assert!(!lines(dir.path().join("out/pages.jsonl")).is_empty());
}

#[test]
fn a_reader_that_goes_away_ends_the_crawl_with_a_message() {
    let endless = |asked: &huntsman_testkit::Asked| {
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
