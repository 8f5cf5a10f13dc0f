//! Records of nodes that were killed, collected into those of one crawl.
//!
//! `HUNTSMAN_CLUSTER_KILLS=100` for 20,000 pages of 200 hosts, where one of three nodes is killed every two seconds.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use huntsman_testkit::redis::Server;
use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use super::{CONCURRENCY, Running, cluster, node_of, order, owned_by, status, until};
use crate::common::run;

/// What is crawled, and how often a node is killed meanwhile.
#[derive(Clone, Copy)]
struct Size {
    hosts: usize,
    pages: usize,
    kills: usize,
    /// Fetches between two kills; without it they are two seconds apart.
    between: Option<usize>,
}

impl Size {
    fn wanted() -> Self {
        match std::env::var("HUNTSMAN_CLUSTER_KILLS") {
            Ok(kills) => {
                Self { hosts: 200, pages: 20_000, kills: kills.parse().expect("a number"), between: None }
            }
            Err(_) => Self { hosts: 20, pages: 600, kills: 8, between: Some(70) },
        }
    }

    /// The address of a page: pages are on hosts in turn.
    fn host(self, page: usize) -> String {
        format!("127.0.0.{}", 2 + page % self.hosts)
    }
}

/// A tree of pages on many hosts, some of which link to pages that are missing, forbidden, or elsewhere.
fn site(size: Size) -> RunningSite {
    (0..size.hosts)
        .fold(Site::builder(), |site, number| {
            site.host(&size.host(number))
                .route("/robots.txt", |_| Answer::text("User-agent: *\nDisallow: /private/\n"))
                .route("/*", move |asked| {
                    let Ok(page) = asked.path()[1..].parse::<usize>() else { return Answer::status(404) };
                    let port = asked.header("host").and_then(|host| host.rsplit(':').next()).unwrap_or("0");
                    let url = |page: usize, path: &str| format!("http://{}:{port}/{path}", size.host(page));
                    let mut links: Vec<String> = (3 * page + 1..=3 * page + 3)
                        .filter(|child| *child < size.pages)
                        .map(|child| url(child, &child.to_string()))
                        .collect();
                    if page % 10 == 0 {
                        links.push(url(page + 1, &format!("missing-{page}")));
                        links.push(url(page + 2, &format!("private/{page}")));
                        links.push("http://elsewhere.test/".to_owned());
                    }
                    let links: String =
                        links.iter().map(|url| format!("<a href='{url}'>{page}</a> ")).collect();
                    Answer::html(format!("<title>{page}</title>{links}")).delay(Duration::from_millis(20))
                })
        })
        .start_blocking()
}

/// The options of a crawl of the site, the same for each node and for one machine.
fn with_options<'a>(command: &'a mut Command, size: Size, site: &RunningSite, out: &str) -> &'a mut Command {
    command.arg("crawl").arg(site.url_on(&size.host(0), "/0").as_str());
    command.args(["--profile", "test", "--scope", "all", "--exclude", "*elsewhere*", "--out", out]);
    for page in 0..size.hosts {
        command.args(["--allow-address", &format!("{}:*", size.host(page))]);
    }
    command.args(["--concurrency", &CONCURRENCY.to_string(), "--per-host", "1", "--delay", "0.1"]);
    command.args(["--set", "robotstxt_obey=true", "--set", "log_level=warn"])
}

/// What the records of a file say: address and status, or address and reason.
fn recorded(directory: &Path, file: &str, field: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(directory.join(file)).expect("there are records");
    let mut found: Vec<(String, String)> = text
        .lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).expect("a JSON object a line");
            (record["url"].as_str().expect("a URL").to_owned(), record[field].to_string())
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn nodes_that_are_killed_again_and_again_record_what_one_machine_does() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let size @ Size { pages: all, kills, .. } = Size::wanted();
    let (site, server) = (site(size), Server::start());
    let mut command = crate::common::huntsman(here);
    let said = run(with_options(&mut command, size, &site, "alone").args(["--delay", "0"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let alone = site.requests().len();

    order(here, &server, "init", &["--durability", "ack"]);
    let mut started: Vec<String> = Vec::new();
    let mut start = || {
        // A name is free again when the lease of its node has ended; another one is free at once.
        let name = format!("n{}", started.len());
        started.push(name.clone());
        let mut command = crate::common::huntsman(here);
        node_of(with_options(&mut command, size, &site, &name), &server, &name);
        (name, Running::start(command))
    };
    let mut nodes = vec![start(), start(), start()];
    let mut killed = 0;
    while killed < kills {
        match size.between {
            Some(between) => {
                until("some pages", || site.requests().len() > alone + (killed + 1) * between);
                // A node without work is no loss.
                until("the node has work", || owned_by(here, &server, &nodes[0].0) > 0);
            }
            None => std::thread::sleep(Duration::from_secs(2)),
        }
        let (_, mut node) = nodes.remove(0);
        if node.0.try_wait().expect("an own child can be waited for").is_some() {
            assert!(size.between.is_none(), "the crawl ended after {killed} kills");
            break;
        }
        killed += 1;
        node.0.kill().expect("an own child can be killed");
        node.0.wait().expect("an own child can be waited for");
        nodes.push(start());
    }
    nodes.into_iter().for_each(|(_, node)| node.ended_well());

    let mut command = crate::common::huntsman(here);
    command.args(["cluster", "collect", "--out", "merged"]).args(&started);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (alone_in, merged_in) = (here.join("alone"), here.join("merged"));
    let pages = recorded(&merged_in, "pages.jsonl", "status");
    assert_eq!(pages, recorded(&alone_in, "pages.jsonl", "status"), "each page once, and none is missing");
    assert_eq!(pages.len(), all);
    let drops = recorded(&merged_in, "drops.jsonl", "reason");
    assert_eq!(drops, recorded(&alone_in, "drops.jsonl", "reason"));
    let of_reason = |reason: &str| drops.iter().filter(|(_, why)| why.contains(reason)).count();
    assert!(of_reason("robots") == all / 10 && of_reason("http_status") == all / 10, "{drops:?}");

    let state = status(here, &server);
    assert_eq!(state["settled"], pages.len() + all / 5, "each request was settled once");
    let is_page = |target: &&String| !target.contains("robots.txt");
    let fetched = site.targets().iter().filter(is_page).count() - (all + all / 10);
    assert!(fetched <= all + all / 10 + killed * CONCURRENCY, "{fetched} fetches");
    println!("{killed} kills, {} fetched twice, {}", fetched - all - all / 10, said.stderr);

    let verified = run(crate::common::huntsman(here).args(["verify", "n0"]));
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert!(verified.stdout.contains("other nodes do its work"), "{}", verified.stdout);

    // What a node wrote is a record of its own work, which a line says to be settled.
    let names: BTreeSet<String> = started.into_iter().collect();
    let lines = names.iter().flat_map(|name| {
        let text = std::fs::read_to_string(here.join(name).join("pages.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>()
    });
    let settled = lines.filter(|line| line["settled"].is_string() && line["epoch"].is_u64()).count();
    assert!(settled > all / 2, "{settled} lines say that a page was settled");
    let said = run(&mut cluster(here, &server, "status"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
}
