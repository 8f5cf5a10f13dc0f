//! Crawls that several processes share, over a Redis server that the test starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::prometheus::Prometheus;
use huntsman_testkit::redis::{Counted, Cuts, Proxy, Server};
use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use crate::common::{huntsman, report, run};

mod collect;

const HOSTS: usize = 12;
const PAGES: usize = 180;
/// Requests in flight of a node, and seconds between two requests of a host.
const CONCURRENCY: usize = 4;
const DELAY: f64 = 0.2;

/// The address of a page: pages are on hosts in turn.
fn host(page: usize) -> String {
    format!("127.0.0.{}", 2 + page % HOSTS)
}

/// A tree of pages on many hosts; each page links to three others, on other hosts.
fn site() -> RunningSite {
    (0..HOSTS)
        .fold(Site::builder(), |site, number| {
            site.host(&host(number)).route("/*", |asked| {
                let Ok(page) = asked.path()[1..].parse::<usize>() else { return Answer::status(404) };
                let port = asked.header("host").and_then(|host| host.rsplit(':').next()).unwrap_or("0");
                let children = (3 * page + 1..=3 * page + 3).filter(|child| *child < PAGES);
                let links: String = children
                    .map(|child| format!("<a href='http://{}:{port}/{child}'>{child}</a> ", host(child)))
                    .collect();
                Answer::html(format!("<title>{page}</title>{links}")).delay(Duration::from_millis(20))
            })
        })
        .start_blocking()
}

/// The addresses of all pages.
fn addresses(site: &RunningSite) -> BTreeSet<String> {
    (0..PAGES).map(|page| site.url_on(&host(page), &format!("/{page}")).to_string()).collect()
}

/// A node of the crawl of the site.
fn node(directory: &Path, site: &RunningSite, server: &Server, name: &str) -> Command {
    let mut command = huntsman(directory);
    command.arg("crawl").arg(site.url_on(&host(0), "/0").as_str());
    command.args(["--profile", "test", "--scope", "all", "--out", name]);
    for page in 0..HOSTS {
        command.args(["--allow-address", &format!("{}:*", host(page))]);
    }
    node_of(&mut command, server, name).args(["--concurrency", &CONCURRENCY.to_string()]);
    command.args(["--delay", &DELAY.to_string(), "--per-host", "1", "--set", "log_level=warn"]);
    command
}

/// Makes a crawl the work of a node.
fn node_of<'a>(command: &'a mut Command, server: &Server, name: &str) -> &'a mut Command {
    command.args(["--frontier", &format!("{}?lease=3", server.url()), "--job", "test", "--node", name]);
    command.args(["--durability", "ack"])
}

/// `huntsman cluster` on the job.
fn cluster(directory: &Path, server: &Server, what: &str) -> Command {
    let mut command = huntsman(directory);
    command.args(["cluster", what, "--frontier", &server.url(), "--job", "test"]);
    command
}

fn status(directory: &Path, server: &Server) -> Value {
    let said = run(cluster(directory, server, "status").arg("--json"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    serde_json::from_str(&said.stdout).expect("the state is JSON")
}

/// The number of partitions that a node owns.
fn owned_by(directory: &Path, server: &Server, name: &str) -> usize {
    let status = status(directory, server);
    let partitions = status["partitions"].as_array().cloned().unwrap_or_default();
    partitions.iter().filter(|partition| partition["node"] == name).count()
}

/// Does what `huntsman cluster` says with these words.
fn order(directory: &Path, server: &Server, what: &str, more: &[&str]) {
    let said = run(cluster(directory, server, what).args(more));
    assert_eq!(said.code, Some(0), "{what}: {}", said.stderr);
}

/// Starts nodes that begin together, each with partitions of its own.
fn started<const N: usize>(
    directory: &Path,
    site: &RunningSite,
    server: &Server,
    names: [&str; N],
) -> [Running; N] {
    order(directory, server, "init", &["--durability", "ack"]);
    order(directory, server, "pause", &[]);
    let nodes = names.map(|name| Running::start(node(directory, site, server, name)));
    until("each node has partitions", || {
        names.iter().all(|name| owned_by(directory, server, name) >= 64 / (N + 1))
    });
    order(directory, server, "resume", &[]);
    nodes
}

/// Waits until something holds; fails after two minutes.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts"))
    }

    /// Waits for its end; fails unless it was a good one.
    fn ended_well(mut self) {
        let mut text = String::new();
        // Another reader may have taken it.
        if let Some(mut errors) = self.0.stderr.take() {
            std::io::Read::read_to_string(&mut errors, &mut text).expect("the output is text");
        }
        let status = self.0.wait().expect("an own child can be waited for");
        assert!(status.success(), "{status}: {text}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The addresses in the records of some nodes, with the numbers of their records.
fn recorded(directory: &Path, nodes: &[&str]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for node in nodes {
        let text =
            std::fs::read_to_string(directory.join(node).join("pages.jsonl")).expect("there are records");
        // A node that was killed may have left half a line.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        for line in whole {
            let record: Value = serde_json::from_str(line).expect("a JSON object a line");
            if record["settled"].is_string() {
                continue;
            }
            *found.entry(record["url"].as_str().expect("a URL").to_owned()).or_insert(0) += 1;
        }
    }
    found
}

#[test]
fn one_node_crawls_what_a_crawl_without_a_server_does() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    let mut command = node(directory.path(), &site, &server, "n1");
    let said = run(command.args(["--delay", "0"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let found = recorded(directory.path(), &["n1"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), addresses(&site));
    assert!(found.values().all(|count| *count == 1));
    let report = report(&directory.path().join("n1"));
    assert_eq!(report["finish_reason"], "finished");
    assert_eq!(report["pages"], PAGES);
    let status = status(directory.path(), &server);
    assert_eq!(status["settled"], PAGES);
    assert_eq!((&status["queued"], &status["leased"], &status["outbox"]), (&0.into(), &0.into(), &0.into()));
    assert_eq!(status["nodes"].as_array().map(Vec::len), Some(0), "the node has left");
}

#[test]
fn a_redirect_to_a_known_page_of_another_host_is_recorded_as_on_one_machine() {
    let port_of = |asked: &huntsman_testkit::SiteRequest| {
        asked.header("host").and_then(|host| host.rsplit(':').next()).unwrap_or("0").to_owned()
    };
    let site = Site::builder()
        .host(&host(0))
        .route("/", |_| Answer::html("<a href='/old'>old</a> <a href='/moved'>moved</a>"))
        .route("/old", move |asked| Answer::redirect(302, format!("http://{}:{}/", host(1), port_of(asked))))
        .route("/moved", move |asked| {
            Answer::redirect(301, format!("http://{}:{}/new", host(1), port_of(asked)))
        })
        .host(&host(1))
        .route("/*", |_| Answer::html("<title>target</title>"))
        .start_blocking();
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let crawl = |out: &str| {
        let mut command = huntsman(directory.path());
        command.arg("crawl").args([0, 1].map(|number| site.url_on(&host(number), "/").to_string()));
        command.args(["--profile", "test", "--scope", "all", "--out", out]);
        command.args([0, 1].map(|number| format!("--allow-address={}:*", host(number))));
        command
    };
    let drops = |out: &str| {
        let text = std::fs::read_to_string(directory.path().join(out).join("drops.jsonl")).expect("records");
        let drop = |line: &str| {
            let record: Value = serde_json::from_str(line).expect("a JSON object a line");
            ["url", "reason", "component", "detail", "depth"].map(|name| record[name].to_string())
        };
        text.lines().filter(|line| !line.contains("\"settled\"")).map(drop).collect::<BTreeSet<_>>()
    };
    let alone = run(&mut crawl("alone"));
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    let shared = run(node_of(&mut crawl("n1"), &server, "n1"));
    assert_eq!(shared.code, Some(0), "{}", shared.stderr);
    let wanted = drops("alone");
    assert!(wanted.iter().any(|drop| drop[1].contains("redirect_duplicate")), "{wanted:?}");
    assert_eq!(drops("n1"), wanted);
}

#[test]
fn a_node_that_is_killed_loses_nothing_and_hosts_keep_their_pace() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    let [mut killed, second, third] = started(directory.path(), &site, &server, ["n1", "n2", "n3"]);
    until("some pages", || site.requests().len() > 40);
    killed.0.kill().expect("an own child can be killed");
    killed.0.wait().expect("an own child can be waited for");
    [second, third].into_iter().for_each(Running::ended_well);

    let all = addresses(&site);
    let found = recorded(directory.path(), &["n1", "n2", "n3"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), all, "no page is lost, and none is invented");
    for name in ["n2", "n3"] {
        assert!(!recorded(directory.path(), &[name]).is_empty(), "{name} worked");
    }
    let status = status(directory.path(), &server);
    assert_eq!(status["settled"], PAGES, "each page was settled once");
    let gaps = gaps(site);
    let fetched = gaps.values().map(|gaps| gaps.len() + 1).sum::<usize>();
    assert!(fetched <= PAGES + CONCURRENCY, "{fetched} fetches of {PAGES} pages");
    for (host, gaps) in gaps {
        assert!(gaps.iter().all(|gap| *gap > SHORTEST), "{host}: {gaps:?}");
    }
}

/// The shortest time between two requests of a host, in seconds. On a busy machine a request may take longer to the server than the next
/// one; two nodes that asked a host without knowing of each other would be anywhere between.
const SHORTEST: f64 = DELAY / 2.0;

/// The seconds between the pages that each host was asked for.
fn gaps(site: RunningSite) -> BTreeMap<String, Vec<f64>> {
    let record = site.stop();
    let of_host = |number: usize| {
        let host = host(number);
        let pages = record.to(&host).filter(|seen| seen.request.path() != "/robots.txt");
        let mut starts: Vec<Duration> = pages.map(|seen| seen.started).collect();
        starts.sort_unstable();
        let gaps = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        (host, gaps)
    };
    (0..HOSTS).map(of_host).collect()
}

#[test]
fn a_crawl_over_a_bad_network_finds_every_page_once() {
    let (site, server) = (site(), Server::start());
    let proxy = Proxy::start(server.port());
    proxy.cut(Some(Cuts { seed: 3, max_bytes: 60_000, counted: Counted::All }));
    let directory = tempfile::tempdir().unwrap();
    let mut command = node(directory.path(), &site, &server, "n1");
    command.args(["--frontier", &format!("redis://127.0.0.1:{}", proxy.port()), "--delay", "0"]);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let found = recorded(directory.path(), &["n1"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), addresses(&site));
    assert!(found.values().all(|count| *count == 1));
    assert!(proxy.count() > 5, "{} cuts are too few to judge", proxy.count());
}

/// Sends a signal to a process.
fn signal(process: &Running, name: &str) {
    let sent = Command::new("kill").args([name, &process.0.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

#[test]
fn a_frozen_node_loses_its_partitions_and_goes_on_with_others() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    let [frozen, other] = started(directory.path(), &site, &server, ["n1", "n2"]);
    until("some pages", || site.requests().len() > 30);
    signal(&frozen, "-STOP");
    until("the other node has the partitions", || owned_by(directory.path(), &server, "n1") == 0);
    signal(&frozen, "-CONT");
    frozen.ended_well();
    other.ended_well();
    let found = recorded(directory.path(), &["n1", "n2"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), addresses(&site));
    assert_eq!(status(directory.path(), &server)["settled"], PAGES, "each page was settled once");
    assert_eq!(report(&directory.path().join("n1"))["finish_reason"], "finished");
    for (host, gaps) in gaps(site) {
        // What was about to be sent when the process was frozen is sent when it goes on.
        let early = gaps.iter().filter(|gap| **gap <= SHORTEST).count();
        assert!(early <= 1, "{host}: {gaps:?}");
    }
}

#[test]
fn a_paused_crawl_starts_nothing_and_goes_on_when_it_is_resumed() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    order(directory.path(), &server, "init", &["--durability", "ack", "--partitions", "16"]);
    order(directory.path(), &server, "pause", &[]);
    let running = Running::start(node(directory.path(), &site, &server, "n1"));
    until("the start request is queued", || status(directory.path(), &server)["queued"] == 1);
    let paused = status(directory.path(), &server);
    assert_eq!((&paused["state"], &paused["leased"]), (&"paused".into(), &0.into()));
    assert!(site.requests().is_empty(), "{:?}", site.targets());
    order(directory.path(), &server, "resume", &[]);
    running.ended_well();
    assert_eq!(status(directory.path(), &server)["settled"], PAGES);
}

#[test]
fn a_stopped_crawl_goes_on_with_the_same_command() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    let running = Running::start(node(directory.path(), &site, &server, "n1"));
    until("some pages", || site.requests().len() > 20);
    order(directory.path(), &server, "stop", &[]);
    running.ended_well();
    assert_eq!(report(&directory.path().join("n1"))["finish_reason"], "cluster_stop");
    let stopped = status(directory.path(), &server);
    assert!(stopped["queued"].as_u64() > Some(0), "{stopped}");
    order(directory.path(), &server, "resume", &[]);
    let said = run(node(directory.path(), &site, &server, "n1").args(["--delay", "0"]));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("n1-2"), "it says where the records are: {}", said.stderr);
    let found = recorded(directory.path(), &["n1", "n1-2"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), addresses(&site));
    assert!(found.values().all(|count| *count == 1), "a drained crawl fetches nothing twice");
}

#[test]
fn wrong_flags_are_told_with_what_to_do() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    for (more, code, why) in [
        (&["--frontier", "http://localhost"][..], 2, "redis://"),
        (&["--node", "a b"], 2, "no name of a node"),
        (&["--durability", "fsync"], 1, "appendonly yes"),
        (&["--frontier", "redis://127.0.0.1:1"], 1, "start the server"),
    ] {
        let said = run(node(directory.path(), &site, &server, "n1").args(more));
        assert_eq!(said.code, Some(code), "{more:?}: {}", said.stderr);
        assert!(said.stderr.contains(why), "{more:?}: {}", said.stderr);
    }
    let said = run(&mut cluster(directory.path(), &server, "status"));
    assert!(said.code == Some(2) && said.stderr.contains("there is no job \"test\""), "{}", said.stderr);
    let said =
        run(huntsman(directory.path()).args(["crawl", "http://localhost/", "--frontier", "redis://a"]));
    assert!(said.code == Some(2) && said.stderr.contains("--node"), "{}", said.stderr);
}

#[test]
fn the_example_starts_three_nodes_and_ends_what_it_started() {
    let site = site();
    let directory = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster.sh");
    let mut command = huntsman_testkit::command::command("sh", directory.path());
    command.arg(script).arg(site.url_on(&host(0), "/0").as_str());
    command.args(["--profile", "test", "--scope", "all", "--set", "log_level=warn"]);
    for page in 0..HOSTS {
        command.args(["--allow-address", &format!("{}:*", host(page))]);
    }
    command.env("HUNTSMAN", env!("CARGO_BIN_EXE_huntsman"));
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("pages"), "{}", said.stdout);
    let found = recorded(directory.path(), &["three-nodes/n1", "three-nodes/n2", "three-nodes/n3"]);
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), addresses(&site));
}

#[test]
fn the_dashboard_of_a_shared_crawl_finds_all_that_it_asks_for() {
    // The first line is that of the metrics: a server without a log would be warned of.
    let (site, server) = (site(), Server::builder().durable().start());
    let directory = tempfile::tempdir().unwrap();
    order(directory.path(), &server, "init", &["--durability", "ack"]);
    order(directory.path(), &server, "pause", &[]);
    let mut command = node(directory.path(), &site, &server, "n1");
    let (child, address) = crate::metrics::start(command.args(["--metrics", "0"]));
    let running = Running(child);
    let prometheus = Prometheus::start(&[("crawl", &address)]);
    crate::metrics::finds_all(&prometheus, "huntsman-cluster.json");
    order(directory.path(), &server, "resume", &[]);
    running.ended_well();
}

#[test]
fn a_successor_does_not_read_robots_txt_again() {
    let (site, server) = (site(), Server::start());
    let directory = tempfile::tempdir().unwrap();
    let obedient = |name: &str| {
        let mut command = node(directory.path(), &site, &server, name);
        command.args(["--set", "robotstxt_obey=true"]);
        Running::start(command)
    };
    let mut killed = obedient("n1");
    let notes = || {
        let keys = server.cli(&["KEYS", "hm:{test.*}:notes"]);
        let count = |key: &str| server.cli(&["HLEN", key]).trim().parse::<usize>().expect("a number");
        keys.lines().filter(|key| !key.is_empty()).map(count).sum::<usize>()
    };
    until("what is known of all hosts is stored", || notes() == HOSTS);
    killed.0.kill().expect("an own child can be killed");
    killed.0.wait().expect("an own child can be waited for");
    obedient("n2").ended_well();
    assert_eq!(site.count("/robots.txt"), HOSTS, "once for each host");
    assert_eq!(status(directory.path(), &server)["settled"], PAGES);
}

#[test]
fn bench_measures_how_nodes_share_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let said = run(huntsman(directory.path()).args([
        "bench",
        "cluster",
        "--nodes",
        "1,2",
        "--pages",
        "200",
        "--latency",
        "20",
        "--json",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let measures = serde_json::from_str::<Value>(&said.stdout).unwrap()["measures"].clone();
    assert_eq!((&measures[0]["nodes"], &measures[0]["ratio"]), (&1.into(), &1.0.into()), "{measures}");
    assert_eq!((&measures[1]["nodes"], &measures[1]["pages"]), (&2.into(), &200.into()), "{measures}");
    assert!(measures[1]["ratio"].as_f64().unwrap() > 0.0, "{measures}");
}
