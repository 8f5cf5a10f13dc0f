//! Crawls whose queue is in a URLFrontier server, which the test starts in its own process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use huntsman_url_frontier::test_server::Server;
use serde_json::Value;

use crate::common::{huntsman, run};

const HOSTS: usize = 6;
const PAGES: usize = 60;

fn host(page: usize) -> String {
    format!("127.0.0.{}", 2 + page % HOSTS)
}

/// A tree of pages on several hosts; each page links to three others, and one in ten redirects to another one.
fn site() -> RunningSite {
    (0..HOSTS)
        .fold(Site::builder(), |site, number| {
            site.host(&host(number)).route("/*", |asked| {
                let Ok(page) = asked.path()[1..].parse::<usize>() else { return Answer::status(404) };
                let port = asked.header("host").and_then(|host| host.rsplit(':').next()).unwrap_or("0");
                let url = |page: usize| format!("http://{}:{port}/{page}", host(page));
                if page % 10 == 7 {
                    return Answer::redirect(302, url(page + 100));
                }
                let children = (3 * page + 1..=3 * page + 3).filter(|child| *child < PAGES);
                let links: String =
                    children.map(|child| format!("<a href='{}'>x</a> ", url(child))).collect();
                Answer::html(format!("<title>{page}</title>{links}")).delay(Duration::from_millis(20))
            })
        })
        .start_blocking()
}

/// A crawl of the site into a directory.
fn crawl(directory: &Path, site: &RunningSite, out: &str) -> Command {
    let mut command = huntsman(directory);
    command.arg("crawl").arg(site.url_on(&host(0), "/0").as_str());
    command.args(["--profile", "test", "--scope", "all", "--out", out, "--concurrency", "2"]);
    for page in 0..HOSTS {
        command.args(["--allow-address", &format!("{}:*", host(page))]);
    }
    command.args(["--set", "log_level=warn", "--set", "download_timeout=2"]);
    command
}

fn node(directory: &Path, site: &RunningSite, server: &Server, out: &str) -> Command {
    let mut command = crawl(directory, site, out);
    command.args(["--frontier", &server.url(), "--job", "test"]);
    command
}

/// The pages in the records of some directories, with their status and the number of records.
fn recorded(directory: &Path, names: &[&str]) -> BTreeMap<(String, u64), usize> {
    let mut found = BTreeMap::new();
    for name in names {
        let lines = std::fs::read_to_string(directory.join(name).join("pages.jsonl")).unwrap_or_default();
        for line in lines.lines() {
            // The last line of a killed process may be incomplete.
            let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(url), Some(status)) = (record["url"].as_str(), record["status"].as_u64()) else {
                continue;
            };
            *found.entry((url.to_owned(), status)).or_default() += 1;
        }
    }
    found
}

#[test]
fn a_crawl_over_the_server_has_the_records_of_one_machine() {
    let (site, server) = (site(), Server::start().without_pauses());
    let directory = tempfile::tempdir().unwrap();
    let said = run(&mut crawl(directory.path(), &site, "alone"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let said = run(&mut node(directory.path(), &site, &server, "shared"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let alone = recorded(directory.path(), &["alone"]);
    assert!(alone.len() >= PAGES / 2, "{}", alone.len());
    assert_eq!(recorded(directory.path(), &["shared"]), alone);
    assert!(server.queued("test").is_empty());
}

#[test]
fn two_processes_of_which_one_is_killed_lose_no_page() {
    let (site, server) = (site(), Server::start().without_pauses());
    let directory = tempfile::tempdir().unwrap();
    let said = run(&mut crawl(directory.path(), &site, "alone"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let silent = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = silent(&mut node(directory.path(), &site, &server, "first"));
    let mut second = silent(&mut node(directory.path(), &site, &server, "second"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.completed("test").len() < 10 {
        assert!(Instant::now() < deadline, "the crawl does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(second.wait().unwrap().success());
    let expected: Vec<_> = recorded(directory.path(), &["alone"]).into_keys().collect();
    let found: Vec<_> = recorded(directory.path(), &["first", "second"]).into_keys().collect();
    assert_eq!(found, expected);
    assert!(server.queued("test").is_empty());
}

#[test]
fn a_url_of_another_crawler_is_crawled() {
    let (site, server) = (site(), Server::start().without_pauses());
    let directory = tempfile::tempdir().unwrap();
    let foreign = site.url_on(&host(3), "/999").to_string();
    assert!(server.put("test", &host(3), &foreign));
    // The scope is for links: what another crawler has put is wanted.
    let said = run(node(directory.path(), &site, &server, "out").args(["--scope", "host"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(recorded(directory.path(), &["out"]).get(&(foreign, 200)), Some(&1));
}

#[test]
fn what_cannot_work_is_told_at_the_start() {
    let (site, mut server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    for (more, code, why) in [
        (&["--set", "scheduler_order=dfs"][..], 2, "scheduler_order bfs"),
        (&["--durability", "fsync"], 2, "--durability"),
        (&["--frontier", "urlfrontier://a/b"], 2, "--job"),
        (&["--set", "slot_by=ip"], 1, "slot_by ip"),
    ] {
        let said = run(node(directory.path(), &site, &server, "out").args(more));
        assert!(said.stderr.contains(why), "{more:?}: {}", said.stderr);
        assert_eq!(said.code, Some(code), "{more:?}: {}", said.stderr);
    }
    server.stop();
    let said = run(&mut node(directory.path(), &site, &server, "out"));
    assert!(said.code == Some(1) && said.stderr.contains("cannot be reached"), "{}", said.stderr);
}
