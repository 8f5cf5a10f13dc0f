//! The output directory from outside: finished, unfinished, fresh, shared.

mod common;

use std::time::Duration;

use common::{crawl, lines, report, run};
use huntsman_testkit::{Answer, RunningSite, Site};

fn site() -> RunningSite {
    Site::builder().page("/", "<a href='/a'>a</a>").page("/a", "a").start_blocking()
}

#[test]
fn a_finished_crawl_says_so_and_asks_nobody() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(&mut crawl(dir.path(), &site));
    let before = (site.seen().len(), std::fs::read(dir.path().join("out/pages.jsonl")).unwrap());
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("finished crawl") && said.stderr.contains("--fresh"), "{}", said.stderr);
    let after = (site.seen().len(), std::fs::read(dir.path().join("out/pages.jsonl")).unwrap());
    assert_eq!(before, after);
}

#[test]
fn fresh_crawls_anew() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    run(&mut crawl(dir.path(), &site));
    std::fs::write(dir.path().join("out/notes.txt"), "mine").unwrap();
    let said = run(crawl(dir.path(), &site).arg("--fresh"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((site.count("/"), lines(dir.path().join("out/pages.jsonl")).len()), (2, 2));
    assert!(dir.path().join("out/notes.txt").exists(), "what is not ours stays");
}

#[test]
fn the_default_directory_is_named_by_the_host() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut command = common::huntsman(dir.path());
    let address = format!("127.0.0.1:{}", site.port());
    command.args(["crawl", site.url("/").as_str(), "--profile", "test", "--allow-address", &address]);
    assert_eq!(run(&mut command).code, Some(0));
    assert_eq!(lines(dir.path().join("127.0.0.1-crawl/pages.jsonl")).len(), 2);
}

#[test]
fn a_crawl_whose_seed_failed_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::builder()
        .route("/", |asked| if asked.nth == 0 { Answer::status(404) } else { Answer::html("up") })
        .start_blocking();
    assert_eq!(run(&mut crawl(dir.path(), &site)).code, Some(1));
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(report(&dir.path().join("out"))["pages"], 1);
}

/// A site whose second page takes its time.
fn slow(delay: Duration) -> RunningSite {
    Site::builder()
        .page("/", "<a href='/slow'>s</a>")
        .answer("/slow", Answer::html("<a href='/after'>a</a>").delay(delay))
        .page("/after", "after")
        .start_blocking()
}

fn wait_for(site: &RunningSite, target: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while site.count(target) == 0 {
        assert!(std::time::Instant::now() < deadline, "{target} was never asked for: {:?}", site.targets());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_crawl_in_memory_cannot_go_on_and_fresh_starts_anew() {
    let (dir, site) = (tempfile::tempdir().unwrap(), slow(Duration::from_secs(2)));
    let mut child = crawl(dir.path(), &site).spawn().unwrap();
    wait_for(&site, "/slow");
    child.kill().unwrap();
    child.wait().unwrap();
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("unfinished") && said.stderr.contains("--fresh"), "{}", said.stderr);
    assert_eq!(run(crawl(dir.path(), &site).arg("--fresh")).code, Some(0));
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 3);
}

#[test]
fn a_second_crawl_into_the_same_directory_refuses() {
    let (dir, site) = (tempfile::tempdir().unwrap(), slow(Duration::from_secs(2)));
    let mut first = crawl(dir.path(), &site).spawn().unwrap();
    wait_for(&site, "/slow");
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("another huntsman"), "{}", said.stderr);
    assert_eq!(first.wait().unwrap().code(), Some(0), "the first one is not disturbed");
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 3);
}
