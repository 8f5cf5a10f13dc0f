//! `crawl --control` and `control`: a crawl that is looked at and steered while it runs.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::browser::Browser;
use huntsman_testkit::{Answer, Gate, RunningSite, Site};
use serde_json::Value;

use crate::common::{Said, crawl, huntsman, lines, report, run, wait_for};

/// `/` links to a page that waits for a gate and to two others.
fn site(gate: &Gate) -> RunningSite {
    Site::builder()
        .page("/", "<a href='/slow'>s</a> <a href='/1'>1</a> <a href='/2'>2</a>")
        .answer("/slow", Answer::html("slow").behind(gate))
        .page("/1", "one")
        .page("/2", "two")
        .page("/added", "added")
        .start_blocking()
}

/// A crawl with control whose page `/slow` is in flight.
fn start(directory: &Path, site: &RunningSite) -> Child {
    start_with(directory, site, &[])
}

fn start_with(directory: &Path, site: &RunningSite, words: &[&str]) -> Child {
    let mut command = crawl(directory, site);
    command.args(words);
    command.args(["--control", "--per-host", "1", "-s", "concurrent_requests=1", "--store", "redb"]);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for(site, "/slow");
    child
}

fn control(directory: &Path, words: &[&str]) -> Said {
    run(huntsman(directory).args(["control", "out"]).args(words))
}

fn status(directory: &Path) -> Value {
    let said = control(directory, &["status", "--json"]);
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn a_crawl_is_paused_changed_and_stopped_from_another_terminal_and_goes_on_later() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = site(&gate);
    let child = start(dir.path(), &site);
    assert!(control(dir.path(), &["pause"]).stdout.contains("paused"));
    gate.open();
    let begun = Instant::now();
    while status(dir.path())["pages"] != 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", status(dir.path()));
    }
    assert_eq!((&status(dir.path())["state"], &status(dir.path())["queued"]), (&"paused".into(), &2.into()));
    let queue = control(dir.path(), &["queue"]).stdout;
    assert!(queue.contains("/1") && queue.contains("/2"), "{queue}");
    let hosts = control(dir.path(), &["hosts"]).stdout;
    assert!(hosts.contains("127.0.0.1") && hosts.contains("active"), "{hosts}");

    let added =
        control(dir.path(), &["add", site.url("/added").as_str(), "http://elsewhere.example/"]).stdout;
    assert!(
        added.contains("/added: queued") && added.contains("elsewhere.example/: refused (offsite)"),
        "{added}"
    );
    let delay = control(dir.path(), &["delay", "127.0.0.1", "0.2", "--concurrency", "3"]);
    assert_eq!(delay.stdout, "127.0.0.1: 0.2 s between requests, 3 at once\n", "{delay:?}");
    let unknown = control(dir.path(), &["remove", "unknown.example"]);
    assert!(unknown.code == Some(1) && unknown.stderr.contains("no host"), "{unknown:?}");

    assert!(control(dir.path(), &["stop"]).stdout.contains("stopping"));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(report(&dir.path().join("out"))["finish_reason"], "shutdown");
    assert!(!dir.path().join("out/control.json").exists(), "the token goes with the crawl");
    let late = control(dir.path(), &["status"]);
    assert!(late.code == Some(1) && late.stderr.contains("no crawl with --control runs"), "{late:?}");

    let again = run(crawl(dir.path(), &site).args(["--store", "redb"]));
    assert_eq!(again.code, Some(0), "{again:?}");
    let pages = lines(dir.path().join("out/pages.jsonl"));
    assert_eq!(pages.len(), 5, "the added page as well: {pages:?}");
    assert_eq!((site.count("/added"), site.count("/1")), (1, 1));
}

#[test]
fn a_crawl_without_a_place_for_the_token_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).args(["crawl", "http://127.0.0.1:1/", "--control", "--out", "-"]));
    assert!(said.code == Some(2) && said.stderr.contains("control_file"), "{said:?}");
}

#[test]
fn without_a_terminal_watch_prints_one_picture_and_tui_only_the_log() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = site(&gate);
    let child = start_with(dir.path(), &site, &["--tui"]);
    let picture = control(dir.path(), &["watch"]).stdout;
    for part in ["running", "1 page ", "2 queued", "127.0.0.1", "/1"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    gate.open();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !said.contains('\u{1b}') && !picture.contains('\u{1b}'), "{said}");
}

#[test]
fn a_browser_shows_the_crawl_and_its_buttons_steer_it() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = site(&gate);
    let child = start(dir.path(), &site);
    let link = control(dir.path(), &["open"]).stdout;
    let browser = Browser::start();
    browser.open(link.trim());
    browser.wait_for("#state.running");
    assert!(!browser.url().contains('#'), "the code leaves the address bar: {}", browser.url());
    browser.click("#pause");
    browser.wait_for("#state.paused");
    assert_eq!(status(dir.path())["state"], "paused");
    browser.wait_for("#hosts tbody tr");
    assert!(browser.text("#hosts tbody").contains("127.0.0.1"), "{}", browser.text("#hosts"));
    assert!(browser.text("#queue tbody").contains("/1"), "{}", browser.text("#queue"));
    browser.paste("#url", site.url("/added").as_str());
    browser.click("#add");
    let begun = Instant::now();
    while !browser.text("#message").contains("queued") {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", browser.text("#message"));
    }
    gate.open();
    browser.click("#resume");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 5);
    browser.wait_for("body.gone");
    assert_eq!(browser.count("main[hidden]"), 0, "what was shown stays");
    assert_eq!(
        (browser.count("#state.lost"), browser.count("main[inert]")),
        (1, 1),
        "and no button pretends to work"
    );
}
