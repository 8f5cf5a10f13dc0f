//! Crawls that are stopped, killed or damaged, and then continued.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site, sites};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::common::{crawl, field, lines, report, run};

const PAGES: usize = 1_500;

fn site() -> RunningSite {
    sites::linked(PAGES, 8).start_blocking()
}

/// A crawl with its queue on disk.
fn kept(directory: &Path, site: &RunningSite, store: &str) -> Command {
    let mut command = crawl(directory, site);
    command.args(["--store", store, "--concurrency", "64", "--per-host", "64"]);
    command.args(["--set", "job_commit_interval=0.1", "--requests-per-second", "700"]);
    command.stderr(Stdio::piped());
    command
}

fn wait_until(site: &RunningSite, requests: usize, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while site.requests().len() < requests && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "{} of {requests} requests came", site.requests().len());
        std::thread::sleep(Duration::from_millis(3));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success()
    );
}

/// Checks that every page is in the records once, and no others are.
fn assert_complete(directory: &Path, site: &RunningSite) {
    let pages = field(&lines(directory.join("out/pages.jsonl")), "url");
    let expected: BTreeSet<String> =
        (0..PAGES).map(|n| site.url(&sites::linked_path(n)).to_string()).collect();
    let unique: BTreeSet<String> = pages.iter().cloned().collect();
    assert_eq!(unique.len(), pages.len(), "a page was recorded twice");
    assert_eq!(unique, expected);
    assert_eq!(lines(directory.join("out/drops.jsonl")).len(), 0);
    assert_eq!(report(&directory.join("out"))["pages"], PAGES);
}

fn kill_and_go_on(store: &str) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    for part in 1..=3 {
        let mut child = kept(dir.path(), &site, store).spawn().unwrap();
        let before = site.requests().len();
        wait_until(&site, before + rng.random_range(10..PAGES / 3), &mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        println!("killed after {} requests in run {part}", site.requests().len() - before);
    }
    let said = run(&mut kept(dir.path(), &site, store));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_complete(dir.path(), &site);
}

#[test]
fn a_crawl_that_is_killed_three_times_goes_on_without_loss_or_repetition() {
    kill_and_go_on("redb");
}

#[cfg(feature = "sled")]
#[test]
fn so_it_does_on_sled() {
    kill_and_go_on("sled");
}

#[test]
fn a_crawl_that_is_stopped_goes_on_and_asks_for_no_page_twice() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    for _ in 0..2 {
        let mut child = kept(dir.path(), &site, "redb").spawn().unwrap();
        let before = site.requests().len();
        wait_until(&site, before + 300, &mut child);
        signal(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(report(&dir.path().join("out"))["finish_reason"], "shutdown");
    }
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
    assert_complete(dir.path(), &site);
    assert_eq!(site.requests().len(), PAGES);
}

#[test]
fn after_two_signals_the_state_is_whole() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut child = kept(dir.path(), &site, "redb").spawn().unwrap();
    wait_until(&site, 400, &mut child);
    signal(&child, "INT");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
    assert_complete(dir.path(), &site);
}

#[test]
fn a_limit_ends_a_crawl_on_disk_as_it_does_one_in_memory() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let said = run(kept(dir.path(), &site, "redb").args(["--max-pages", "50"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = dir.path().join("out");
    assert_eq!(lines(out.join("pages.jsonl")).len(), 50);
    let drops = lines(out.join("drops.jsonl"));
    assert!(!drops.is_empty() && drops.iter().all(|drop| drop["reason"] == "not_crawled"));
    assert!(run(&mut kept(dir.path(), &site, "redb")).stderr.contains("finished crawl"));
}

#[test]
fn a_damaged_state_is_said_and_never_begun_anew() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut child = kept(dir.path(), &site, "redb").spawn().unwrap();
    wait_until(&site, 300, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let store = dir.path().join("out/state/job/store.redb");
    let pages = std::fs::read(dir.path().join("out/pages.jsonl")).unwrap();
    let whole = std::fs::read(&store).unwrap();
    for damage in ["gone", "empty", "cut"] {
        match damage {
            "gone" => std::fs::remove_file(&store).unwrap(),
            "empty" => std::fs::write(&store, b"").unwrap(),
            _ => std::fs::write(&store, &whole[..whole.len() / 3]).unwrap(),
        }
        let asked = site.requests().len();
        let said = run(&mut kept(dir.path(), &site, "redb"));
        assert_eq!(said.code, Some(1), "{damage}: {said:?}");
        assert!(said.stderr.contains("store.redb"), "{damage}: {}", said.stderr);
        assert_eq!(std::fs::read(dir.path().join("out/pages.jsonl")).unwrap(), pages, "{damage}");
        assert!(site.requests().len() <= asked + 1, "{damage}: nothing is crawled");
    }
    std::fs::write(&store, &whole).unwrap();
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0), "nothing was made worse");
    assert_complete(dir.path(), &site);
}

#[test]
fn another_store_than_that_of_the_crawl_is_refused() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut child = kept(dir.path(), &site, "redb").spawn().unwrap();
    wait_until(&site, 200, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    for store in ["sled", "memory"] {
        let said = run(&mut kept(dir.path(), &site, store));
        assert!(matches!(said.code, Some(1 | 2)) && said.stderr.contains("redb"), "{store}: {said:?}");
    }
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
    assert_complete(dir.path(), &site);
}

#[test]
fn a_file_that_cannot_grow_stops_the_crawl_and_it_goes_on_with_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let links: String = (0..60).map(|n| format!("<a href='/{n}'>{n}</a>")).collect();
    let text = "many words ".repeat(20_000);
    let site =
        Site::builder().page("/", links).route("/*", move |_| Answer::html(text.clone())).start_blocking();
    let mut command = kept(dir.path(), &site, "redb");
    command.arg("--text");
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(ToOwned::to_owned));
    let mut limited = Command::new("sh");
    // The write fails as on a full disk, and the signal that comes with it does not end the process. A block is 512
    // or 1,024 bytes.
    limited.args(["-c", "ulimit -f 10000; exec \"$@\"", "sh"]).args(words);
    limited.current_dir(dir.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
    let said = run(&mut limited);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("broke off") && said.stderr.contains("pages.jsonl"), "{}", said.stderr);
    assert_eq!(run(&mut command).code, Some(0));
    let pages = field(&lines(dir.path().join("out/pages.jsonl")), "url");
    assert_eq!((pages.len(), pages.iter().collect::<BTreeSet<_>>().len()), (61, 61));
}

#[test]
fn with_few_files_allowed_the_crawl_slows_down_and_loses_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let command = kept(dir.path(), &site, "redb");
    let mut words = vec![command.get_program().to_owned()];
    words.extend(command.get_args().map(ToOwned::to_owned));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).args(words);
    limited.current_dir(dir.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
    let said = run(&mut limited);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_complete(dir.path(), &site);
}
