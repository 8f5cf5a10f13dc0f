//! `huntsman cluster`: looks at a crawl that several machines share, and steers it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use huntsman::Order;
use huntsman::cluster::{JobStatus, Operator, Wish};
use huntsman::output::Collected;
use serde_json::{Value, json};

use crate::cluster::{DurabilityArg, failure, settings};
use crate::directory::inspecting;
use crate::exit::{Exit, Outcome};
use crate::render::{Table, count, counted, escape, escape_json, say};

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Makes a job for more URLs or with another number of partitions than `crawl` would make it.
    Init {
        #[command(flatten)]
        job: JobArgs,
        /// Number of URLs that the job is made for; it works with more, which take more memory each.
        #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
        urls: u64,
        /// Number of partitions, which limits the number of nodes: 1 to 16384.
        #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=16_384))]
        partitions: u32,
        /// When a change of the queue counts as done [default: fsync].
        #[arg(long, value_name = "LEVEL")]
        durability: Option<DurabilityArg>,
        /// Order of requests of equal priority (setting scheduler_order).
        #[arg(long, value_name = "ORDER", default_value = "bfs", value_parser = ["bfs", "dfs", "best_first"])]
        order: String,
    },

    /// Shows the nodes, and how much is queued, in work and done.
    Status {
        #[command(flatten)]
        job: JobArgs,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },

    /// Starts no more requests on any node until `resume`.
    Pause(JobArgs),

    /// Continues after `pause` or `stop`.
    Resume(JobArgs),

    /// Ends the crawl on all nodes; the queue stays, and after `resume` the same commands go on.
    Stop(JobArgs),

    /// Drops the queued requests of a host.
    DropHost {
        #[command(flatten)]
        job: JobArgs,
        /// The host.
        #[arg(value_name = "HOST")]
        host: String,
    },

    /// Collects the records of all nodes into one directory, in which each request is recorded once.
    Collect {
        /// Directories of the nodes: those of all their starts.
        #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
        directories: Vec<PathBuf>,
        /// A new directory for pages.jsonl, drops.jsonl and items.jsonl.
        #[arg(long, value_name = "MERGED", value_hint = ValueHint::DirPath)]
        out: PathBuf,
    },
}

/// Which job.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The Redis or Valkey server: redis://HOST[:PORT][/DB], or rediss:// for TLS. The password may be given in HUNTSMAN_REDIS_PASSWORD.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    frontier: String,

    /// Name of the shared crawl in the server.
    #[arg(long, value_name = "NAME", default_value = "crawl")]
    job: String,
}

pub(crate) fn run(what: ClusterCommand) -> Outcome {
    match what {
        ClusterCommand::Init { job, urls, partitions, durability, order } => {
            let settings = settings(&job.frontier, Some(&job.job))?.urls(urls).partitions(partitions);
            let settings = match durability {
                Some(level) => settings.durability(level.level()),
                None => settings,
            };
            let order = match order.as_str() {
                "dfs" => Order::Dfs,
                "best_first" => Order::BestFirst,
                _ => Order::Bfs,
            };
            let made = Operator::make(settings, order).map_err(|error| failure(&error))?;
            say(&format!(
                "the job {} is ready, in {}",
                made.job(),
                counted(u64::from(partitions), "partition")
            ));
        }
        ClusterCommand::Status { job, json } => {
            let status = operator(&job)?.status().map_err(|error| failure(&error))?;
            let text = if json {
                format!("{}\n", escape_json(&as_json(&status).to_string()))
            } else {
                as_text(&job.job, &status)
            };
            io::stdout().write_all(text.as_bytes())?;
        }
        ClusterCommand::Pause(job) => ask(&job, Wish::Pause, "all nodes pause")?,
        ClusterCommand::Resume(job) => ask(&job, Wish::Run, "all nodes go on")?,
        ClusterCommand::Stop(job) => ask(&job, Wish::Stop, "all nodes end; the queue stays")?,
        ClusterCommand::DropHost { job, host } => {
            let dropped = operator(&job)?.drop_host(&host).map_err(|error| failure(&error))?;
            say(&format!("dropped {}", counted(dropped, "request")));
        }
        ClusterCommand::Collect { directories, out } => {
            let collected = huntsman::output::collect(&directories, &out).map_err(inspecting)?;
            say(&as_collected(&collected, &out));
        }
    }
    Ok(Exit::Done)
}

fn operator(job: &JobArgs) -> Outcome<Operator> {
    Operator::connect(settings(&job.frontier, Some(&job.job))?).map_err(|error| failure(&error))
}

fn ask(job: &JobArgs, wish: Wish, told: &str) -> Outcome<()> {
    operator(job)?.ask(wish).map_err(|error| failure(&error))?;
    say(&format!("{}: {told}", job.job));
    Ok(())
}

/// What was collected, and what was not.
fn as_collected(collected: &Collected, out: &Path) -> String {
    let mut text = format!("{}:", escape(&out.to_string_lossy()));
    for (name, records) in &collected.records {
        text += &format!("\n  {}: {}", escape(name), counted(*records, "record"));
    }
    let without = [
        (collected.superseded, "record", "of requests that another node settled"),
        (collected.torn, "line", "that a killed node left half written"),
    ];
    for (number, what, why) in without.into_iter().filter(|(number, ..)| *number > 0) {
        text += &format!("\n  left out: {} {why}", counted(number, what));
    }
    for path in &collected.left_out {
        text += &format!("\n  left out: {}, which is no file of JSON lines", escape(&path.to_string_lossy()));
    }
    text
}

fn word(wish: Wish) -> &'static str {
    match wish {
        Wish::Run => "running",
        Wish::Pause => "paused",
        Wish::Stop => "stopped",
    }
}

fn as_json(status: &JobStatus) -> Value {
    let nodes = status
        .nodes
        .iter()
        .map(|node| json!({"name": node.name, "partitions": node.partitions, "busy": node.is_busy}));
    let partitions = status.partitions.iter().map(|partition| {
        json!({
            "node": partition.node,
            "queued": partition.queued,
            "leased": partition.leased,
            "outbox": partition.outbox,
        })
    });
    json!({
        "state": word(status.wish),
        "queued": status.queued,
        "leased": status.leased,
        "outbox": status.outbox,
        "settled": status.settled,
        "nodes": nodes.collect::<Vec<_>>(),
        "partitions": partitions.collect::<Vec<_>>(),
    })
}

fn as_text(job: &str, status: &JobStatus) -> String {
    let mut table = Table::default();
    table.row(["job", &format!("{job}, {}", word(status.wish))]);
    table.row(["queued", &count(status.queued)]);
    table.row(["in work", &count(status.leased)]);
    table.row(["on the way", &count(status.outbox)]);
    table.row(["done", &count(status.settled)]);
    let owned = status.partitions.iter().filter(|partition| partition.node.is_some()).count();
    table.row(["partitions", &format!("{}, of which nodes own {owned}", status.partitions.len())]);
    for node in &status.nodes {
        let state = if node.is_busy { "works" } else { "waits" };
        table.row(["node", &format!("{}: {}, {state}", node.name, counted(node.partitions, "partition"))]);
    }
    table.lines("")
}
