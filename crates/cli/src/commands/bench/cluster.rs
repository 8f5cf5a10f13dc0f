//! `huntsman bench cluster`: pages a second of one, two and more nodes that share a queue, on one machine.
//!
//! The site answers slowly, as sites do, and a node has few requests in flight, so that what is measured is how well nodes share the work and
//! not how many of them a processor can run. Each node is a process of its own, which is this program with the command that a user would run.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use huntsman::Order;
use huntsman::cluster::{ClusterSettings, Durability, Error, JobStatus, Operator, Wish};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::command::process::{BUILD, program};
use crate::command::redis_server::RedisServer;
use crate::exit::{Exit, Failure, Outcome};
use crate::render::{Table, count, say};

/// Flags of `bench cluster`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchClusterArgs {
    /// Numbers of nodes to measure; the first is what the others are compared with.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4", value_parser = clap::value_parser!(u64).range(1..=16))]
    nodes: Vec<u64>,

    /// Number of pages of the site.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pages: u64,

    /// How long the site takes to answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 400, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    latency: u64,

    /// Number of requests in flight on each node.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    concurrency: u64,

    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// One crawl of the site.
#[derive(Clone, Copy, Debug, Serialize)]
struct Measure {
    nodes: u64,
    pages: u64,
    elapsed_s: f64,
    pages_per_s: f64,
    /// Pages a second as a multiple of those of the first measure.
    ratio: f64,
}

/// Hosts of the site: enough that each node has some of any number of partitions.
const HOSTS: u64 = 200;
/// Pages that a page links to.
const LINKS: u64 = 4;
/// The longest time for nodes to start and to share the partitions.
const START: Duration = Duration::from_secs(120);
/// Between two looks at a crawl.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn run(args: BenchClusterArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its numbers say little; measure with a build with --release");
    }
    let directory = tempfile::tempdir()?;
    let queue = RedisServer::start()?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    let port = listener.local_addr()?.port();
    let (pages, latency) = (args.pages, Duration::from_millis(args.latency));
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection, port, pages, latency));
        }
    });
    let json = args.json;
    let measures = tokio::task::spawn_blocking(move || {
        let mut measures: Vec<Measure> = Vec::new();
        for nodes in &args.nodes {
            let elapsed_s = crawl(&args, *nodes, &queue, port, directory.path())?.as_secs_f64();
            let pages_per_s = args.pages as f64 / elapsed_s;
            let ratio = measures.first().map_or(1.0, |first| pages_per_s / first.pages_per_s);
            measures.push(Measure { nodes: *nodes, pages: args.pages, elapsed_s, pages_per_s, ratio });
        }
        Ok::<_, Failure>(measures)
    })
    .await
    .map_err(|error| Failure::crawl(format!("measuring: {error}")))??;
    print(&measures, json)?;
    Ok(Exit::Done)
}

/// Crawls the site with some nodes; returns the time from the moment at which all of them have partitions.
fn crawl(
    args: &BenchClusterArgs,
    nodes: u64,
    queue: &RedisServer,
    port: u16,
    directory: &Path,
) -> Outcome<Duration> {
    let failed = |error: Error| Failure::crawl(format!("the queue: {error}"));
    let job = format!("bench-{nodes}");
    let settings: ClusterSettings = queue.url().parse().map_err(failed)?;
    let settings = settings.job(&job).durability(Durability::Ack);
    let mut operator = Operator::make(settings, Order::Bfs).map_err(failed)?;
    operator.ask(Wish::Pause).map_err(failed)?;
    let mut running = Vec::new();
    for node in 1..=nodes {
        let name = format!("n{node}");
        let mut command = program(std::env::current_exe()?);
        command.args(["crawl", &address(0, port), "--profile", "test", "--scope", "all"]);
        command.arg("--out").arg(directory.join(format!("{job}-{name}")));
        command.args(["--frontier", &queue.url(), "--job", &job, "--node", &name]);
        command.args(["--concurrency", &args.concurrency.to_string(), "--set", "log_level=warn"]);
        command.args(["--set", "depth_guard=0"]);
        command.args((0..HOSTS).map(|host| format!("--allow-address=127.0.0.{}:*", 2 + host)));
        running.push(Process::start(&mut command)?);
    }
    let least = (64 / nodes).saturating_sub(1).max(1);
    until(&mut operator, &mut running, |status| {
        status.queued > 0
            && status.nodes.len() as u64 == nodes
            && status.nodes.iter().all(|node| {
                let owned = status.partitions.iter().filter(|one| one.node.as_ref() == Some(&node.name));
                owned.count() as u64 >= least
            })
    })?;
    let begun = Instant::now();
    operator.ask(Wish::Run).map_err(failed)?;
    until(&mut operator, &mut running, |status| status.settled >= args.pages)?;
    let elapsed = begun.elapsed();
    running.into_iter().try_for_each(Process::ended_well)?;
    Ok(elapsed)
}

/// Waits until the state of a job is as wanted.
fn until(
    operator: &mut Operator,
    running: &mut [Process],
    is_wanted: impl Fn(&JobStatus) -> bool,
) -> Outcome<()> {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let status = operator.status().map_err(|error| Failure::crawl(format!("the queue: {error}")))?;
        if is_wanted(&status) {
            return Ok(());
        }
        if status.settled > last {
            (last, since) = (status.settled, Instant::now());
        }
        for process in &mut *running {
            if let Some(status) = process.0.try_wait()?.filter(|status| !status.success()) {
                return Err(Failure::crawl(format!("a node ended with {status}")));
            }
        }
        if since.elapsed() > START {
            let seconds = START.as_secs();
            return Err(Failure::crawl(format!("the nodes have done nothing for {seconds} s")));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The address of a page: pages are on hosts in turn.
fn address(page: u64, port: u16) -> String {
    format!("http://127.0.0.{}:{port}/{page}", 2 + page % HOSTS)
}

/// Answers the requests of a connection: each page links to some others, on other hosts.
async fn serve(mut connection: TcpStream, port: u16, pages: u64, latency: Duration) {
    let mut read = Vec::new();
    loop {
        let mut some = [0; 4_096];
        match connection.read(&mut some).await {
            Ok(0) | Err(_) => return,
            Ok(count) => read.extend_from_slice(&some[..count]),
        }
        while let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).into_owned();
            read.drain(..end + 4);
            let path = head.split(' ').nth(1).unwrap_or_default();
            let page = path.trim_start_matches('/').parse::<u64>().ok().filter(|page| *page < pages);
            let (status, body) = match page {
                None => ("404 Not Found", String::new()),
                Some(page) => {
                    tokio::time::sleep(latency).await;
                    let children = (LINKS * page + 1..=LINKS * page + LINKS).filter(|child| *child < pages);
                    let links =
                        children.map(|child| format!("<a href=\"{}\">{child}</a> ", address(child, port)));
                    ("200 OK", format!("<title>{page}</title>{}", links.collect::<String>()))
                }
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            if connection.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// A process that ends with this one.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Outcome<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self(child))
    }

    fn ended_well(mut self) -> Outcome<()> {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(Failure::crawl(format!("a node ended with {status}"))) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn print(measures: &[Measure], json: bool) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        writeln!(
            stdout,
            "{}",
            json!({"version": env!("CARGO_PKG_VERSION"), "build": BUILD, "measures": measures})
        )?;
        return Ok(());
    }
    let mut table = Table::right(&[0, 1, 2, 3, 4]);
    table.row(["nodes", "pages", "seconds", "pages/s", "ratio"]);
    for Measure { nodes, pages, elapsed_s, pages_per_s, ratio } in measures {
        let numbers = [*elapsed_s, *pages_per_s].map(|number| format!("{number:.1}"));
        let [elapsed, rate] = &numbers;
        table.row([&nodes.to_string(), &count(*pages), elapsed, rate, &format!("{ratio:.2}")]);
    }
    stdout.write_all(table.lines("").as_bytes())?;
    writeln!(stdout, "{BUILD} build")?;
    Ok(())
}
