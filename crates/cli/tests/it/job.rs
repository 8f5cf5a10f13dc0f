//! `huntsman job` on the state of real crawls that were interrupted.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use crate::common::{Said, crawl, field, huntsman, lines, report, run};

/// Number of pages on each of the two hosts.
const PAGES: usize = 200;

/// A start page with links to many pages of two hosts, which have no links.
fn site() -> RunningSite {
    Site::builder()
        .route("/", |asked| {
            let host = asked.header("host").unwrap_or_default();
            let port = host.rsplit(':').next().unwrap_or_default().to_owned();
            let links = (0..PAGES).flat_map(|n| {
                ["a", "b"].map(|host| format!("<a href='http://{host}.example:{port}/{n}'>{n}</a> "))
            });
            Answer::html(links.collect::<String>())
        })
        .host("a.example")
        .route("/*", |_| Answer::html("a page"))
        .host("b.example")
        .route("/*", |_| Answer::html("a page"))
        .start_blocking()
}

/// A crawl of both hosts with a queue on disk.
fn kept(directory: &Path, site: &RunningSite, store: &str) -> Command {
    let mut command = crawl(directory, site);
    for host in ["a", "b"] {
        let name = format!("{host}.example:{}", site.port());
        command.args(["--resolve", &format!("{name}:127.0.0.1"), "--allow-address", &name]);
    }
    command.args(["--scope", "all", "--store", store, "--concurrency", "8", "--per-host", "8"]);
    command.args(["--set", "job_commit_interval=0.05", "--requests-per-second", "150"]);
    command.stderr(Stdio::piped());
    command
}

fn urls(site: &RunningSite) -> BTreeSet<String> {
    let port = site.port();
    let of = |host: &str| (0..PAGES).map(|n| format!("http://{host}.example:{port}/{n}")).collect::<Vec<_>>();
    of("a").into_iter().chain(of("b")).chain([site.url("/").to_string()]).collect()
}

fn wait_until(site: &RunningSite, requests: usize, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while site.requests().len() < requests {
        assert!(child.try_wait().unwrap().is_none(), "the crawl ended");
        assert!(Instant::now() < deadline, "{} of {requests} requests came", site.requests().len());
        std::thread::sleep(Duration::from_millis(3));
    }
}

fn interrupted(directory: &Path, site: &RunningSite, store: &str, is_killed: bool) {
    let mut child = kept(directory, site, store).spawn().unwrap();
    wait_until(site, 60, &mut child);
    if is_killed {
        child.kill().unwrap();
        child.wait().unwrap();
    } else {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

fn job(directory: &Path, args: &[&str]) -> Said {
    run(huntsman(directory).arg("job").args(args))
}

fn json(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).expect("one JSON object")
}

#[test]
fn info_shows_the_progress_of_the_crawl() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    interrupted(dir.path(), &site, "redb", false);
    let pages = lines(dir.path().join("out/pages.jsonl")).len();
    let info = json(&job(dir.path(), &["info", "out", "--json"]));
    assert_eq!(info["pages"], pages);
    assert_eq!(info["queued"], 2 * PAGES + 1 - pages);
    assert_eq!((&info["seen"], &info["in_flight"]), (&(2 * PAGES + 1).into(), &0.into()));
    assert_eq!((&info["state"], &info["finish_reason"]), (&"interrupted".into(), &"shutdown".into()));
    assert_eq!((&info["store"], &info["format"], &info["hosts"]), (&"redb".into(), &1.into(), &2.into()));
    assert!(info["bytes"].as_u64().unwrap() > 1_000 && info["last_commit"].is_string(), "{info}");
    // The command also accepts the state directory and the job in it.
    for name in ["out/state", "out/state/job"] {
        assert_eq!(json(&job(dir.path(), &["info", name, "--json"])), info, "{name}");
    }
    assert_eq!(
        run(huntsman(&dir.path().join("out/state")).args(["job", "info", ".", "--json"])).stdout.trim(),
        info.to_string()
    );
    let said = job(dir.path(), &["info", "out"]);
    for line in
        ["state        interrupted, ended as shutdown", "of 2 hosts", "redb, format 1", "  b.example\n"]
    {
        assert!(said.stdout.contains(line), "no \"{line}\" in\n{}", said.stdout);
    }
    // Looking did not change the job.
    assert_eq!(run(&mut kept(dir.path(), &site, "redb")).code, Some(0));
    let info = json(&job(dir.path(), &["info", "out", "--json"]));
    assert_eq!((&info["state"], &info["finish_reason"]), (&"finished".into(), &"finished".into()));
    assert_eq!((&info["pages"], &info["queued"]), (&(2 * PAGES + 1).into(), &0.into()));
    assert_eq!(site.requests().len(), 2 * PAGES + 1);
}

#[test]
fn what_is_queued_is_listed_and_what_was_seen_exported() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    interrupted(dir.path(), &site, "redb", false);
    let pages: BTreeSet<String> =
        field(&lines(dir.path().join("out/pages.jsonl")), "url").into_iter().collect();
    let listed = job(dir.path(), &["ls-queue", "out"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let queued: BTreeSet<String> = listed.stdout.lines().map(str::to_owned).collect();
    assert_eq!(queued.len(), listed.stdout.lines().count(), "each once");
    assert_eq!(&urls(&site) - &pages, queued);

    let of_host = job(dir.path(), &["ls-queue", "out", "--host", "B.example", "--json"]);
    let records: Vec<Value> =
        of_host.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let expected = queued.iter().filter(|url| url.contains("//b.example")).count();
    assert_eq!(records.len(), expected);
    assert!(records.iter().all(|record| record["host"] == "b.example" && record["depth"] == 1));
    assert_eq!(records[0]["referer"], site.url("/").as_str());
    assert_eq!(job(dir.path(), &["ls-queue", "out", "--limit", "7"]).stdout.lines().count(), 7);

    let seen = job(dir.path(), &["export-seen", "out"]);
    let seen: BTreeSet<&str> = seen.stdout.lines().collect();
    assert_eq!(seen.len(), 2 * PAGES + 1);
    assert!(seen.iter().all(|line| line.len() == 32 && line.bytes().all(|b| b.is_ascii_hexdigit())));
    for record in &records {
        assert!(seen.contains(record["fingerprint"].as_str().unwrap()), "{record}");
    }
    let help = job(dir.path(), &["export-seen", "--help"]).stdout;
    // The help is wrapped to the width of the terminal.
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("fingerprint") && help.contains("URLs are not kept"), "{help}");
}

/// Every URL has one record: pages of the dropped host that were not fetched before are recorded as dropped by the
/// user.
fn drop_and_go_on(store: &str, is_killed: bool) {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    interrupted(dir.path(), &site, store, is_killed);
    let before = json(&job(dir.path(), &["info", "out", "--json"]))["queued"].as_u64().unwrap();
    let said = job(dir.path(), &["drop-host", "out/state", "b.example"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let drops = lines(dir.path().join("out/drops.jsonl"));
    let after = json(&job(dir.path(), &["info", "out", "--json"]))["queued"].as_u64().unwrap();
    assert!(drops.len() > PAGES / 2, "{} drops", drops.len());
    assert_eq!(before - after, drops.len() as u64);
    for drop in &drops {
        assert!(drop["url"].as_str().unwrap().starts_with("http://b.example:"), "{drop}");
        assert_eq!((&drop["state"], &drop["reason"]), (&"skipped".into(), &"dropped_by_user".into()));
        assert_eq!((&drop["component"], &drop["referer"]), (&"job".into(), &site.url("/").as_str().into()));
    }
    let again = job(dir.path(), &["drop-host", "out", "b.example"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("nothing of b.example is queued") && again.stderr.contains("a.example"));

    let said = run(&mut kept(dir.path(), &site, store));
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = field(&lines(dir.path().join("out/pages.jsonl")), "url");
    let dropped = field(&lines(dir.path().join("out/drops.jsonl")), "url");
    assert_eq!(dropped.len(), drops.len());
    let all: Vec<String> = pages.into_iter().chain(dropped).collect();
    let unique: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!((all.len(), unique), (2 * PAGES + 1, urls(&site)));
    let report = report(&dir.path().join("out"));
    assert_eq!(report["stats"]["drops/skipped/dropped_by_user"], drops.len());
    assert_eq!(report["stats"]["drops/skipped"], drops.len());
}

#[test]
fn a_dropped_host_is_recorded_and_the_crawl_goes_on_without_it() {
    drop_and_go_on("redb", false);
}

#[test]
fn a_host_can_be_dropped_after_a_kill() {
    drop_and_go_on("redb", true);
}

#[cfg(feature = "sled")]
#[test]
fn so_it_can_on_sled() {
    drop_and_go_on("sled", true);
}

#[test]
fn a_running_crawl_keeps_its_state_to_itself() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let mut child = kept(dir.path(), &site, "redb").spawn().unwrap();
    wait_until(&site, 20, &mut child);
    for args in [
        &["info", "out"][..],
        &["ls-queue", "out"],
        &["export-seen", "out"],
        &["drop-host", "out", "b.example"],
    ] {
        let said = job(dir.path(), args);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{args:?}: {said:?}");
        assert!(said.stderr.contains("another"), "{args:?}: {}", said.stderr);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "it is not disturbed");
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 2 * PAGES + 1);
}

#[test]
fn where_there_is_no_state_nothing_is_made() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    for args in [&["info", "nowhere"][..], &["ls-queue", "."], &["drop-host", "nowhere", "h"]] {
        let said = job(dir.path(), args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.stderr.contains("there is no state of a crawl"), "{}", said.stderr);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    for args in [&["info"][..], &["ls-queue", "out", "--limit", "0"], &["drop-host", "out"], &["show", "out"]]
    {
        assert_eq!(job(dir.path(), args).code, Some(2), "{args:?}");
    }
    // Other stores are recognised and not changed.
    let mut command = kept(dir.path(), &site, "redb");
    command.args(["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache", "--max-pages", "5"]);
    assert_eq!(run(command.args(["--out", "other"])).code, Some(0));
    let said = job(dir.path(), &["info", "cache"]);
    assert!(said.stderr.contains("not the state of a crawl"), "{said:?}");
    let said = run(huntsman(dir.path()).args(["cache", "rm", "other/state/job", "--all"]));
    assert!(said.code == Some(2) && said.stderr.contains("not an HTTP cache"), "{said:?}");
    assert_eq!(json(&job(dir.path(), &["info", "other", "--json"]))["pages"], 5);
    // A crawl with its queue in memory leaves no job.
    assert_eq!(run(kept(dir.path(), &site, "memory").args(["--max-pages", "5"])).code, Some(0));
    let said = job(dir.path(), &["info", "out"]);
    assert!(said.code == Some(2) && said.stderr.contains("memory"), "{said:?}");
}
