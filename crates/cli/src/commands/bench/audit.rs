//! `huntsman bench audit`: what an audit costs beside a crawl, and what judging a large site takes.
//!
//! Each figure is that of a process of its own, which is this program with the command that a user would run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use huntsman::Backend;
use huntsman::audit::Segment;
use huntsman::output::{AUDITED, DROPS, ISSUES, PAGES};
use serde::Serialize;
use serde_json::json;
use url::Url;

use super::made_up::MadeUp;
use crate::command::bench::{BenchSite, Server, start_url};
use crate::command::process::{BUILD, program};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{EarlierRun, Plan, Run, State};
use crate::render::{Table, count, say};

/// The longest time between two looks at a process. The first looks are close together, so that a short run is seen as well.
const PAUSE: Duration = Duration::from_millis(200);

/// Flags of `bench audit`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchAuditArgs {
    /// Number of pages that are crawled, and audited; 0 leaves that out.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    crawled: u64,

    /// Number of pages of the made-up site that is judged without a crawl; 0 leaves that out.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pages: u64,

    /// Number of links on a page of the made-up site, from 25 to 1,000.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(25..=1_000))]
    links: u64,

    /// A folder for the files, which are kept [default: one that is removed].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// What is measured.
#[derive(Debug, Default, Serialize)]
struct Measures {
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl: Option<Crawls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judging: Option<Judging>,
}

/// The cost of the same pages, crawled and audited.
#[derive(Debug, Serialize)]
struct Crawls {
    pages: u64,
    plain: Cost,
    /// With `--text` and near-duplicates.
    near_dup: Cost,
    audit: Cost,
    cpu_ratio_to_near_dup: f64,
    cpu_ratio_to_plain: f64,
}

/// The cost of judging.
#[derive(Debug, Serialize)]
struct Judging {
    pages: u64,
    links: u64,
    cost: Cost,
    /// Bytes of what the crawl would have written.
    segment_bytes: u64,
    /// The most bytes on the disk, with all results.
    peak_disk_bytes: u64,
    issues: u64,
    /// Bytes of the first file of the report.
    report_bytes: Option<u64>,
}

/// What a process took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Cost {
    pub(super) elapsed_s: f64,
    pub(super) cpu_s: f64,
    pub(super) peak_rss_bytes: u64,
}

pub(crate) fn run(args: &BenchAuditArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its numbers say little; measure with a build with --release");
    }
    let temporary = tempfile::tempdir()?;
    let dir = match &args.dir {
        Some(dir) => {
            huntsman::files::create_dir_all(dir)?;
            dir.as_path()
        }
        None => temporary.path(),
    };
    let measures = Measures {
        crawl: (args.crawled > 0).then(|| crawls(args.crawled, dir)).transpose()?,
        judging: (args.pages > 0).then(|| judging(args, dir)).transpose()?,
    };
    print(&measures, args.json)?;
    Ok(Exit::Done)
}

/// Crawls the same pages three times.
fn crawls(pages: u64, dir: &Path) -> Outcome<Crawls> {
    let server = Server::start(BenchSite { pages, kb: 20, links: 40 })?;
    let crawl = |name: &str, command: &str, flags: &[&str]| {
        let out = dir.join(name);
        let url = start_url(server.port());
        let address = format!("127.0.0.1:{}", server.port());
        let mut words = vec![command, url.as_str(), "--out"];
        let shown = out.to_string_lossy();
        words.extend([&*shown, "--fresh", "--profile", "test", "--allow-address", &address]);
        // The whole site is crawled, however deep it is.
        words.extend(["--set", "depth_guard=0", "--set", "seed=1"]);
        words.extend(flags);
        let mut cost = watched(&words, dir)?.cost;
        // What the run itself has seen, because a look from outside may come too late.
        let report: serde_json::Value = serde_json::from_slice(&fs::read(out.join("report.json"))?)?;
        cost.peak_rss_bytes = report["peak_rss_bytes"].as_u64().unwrap_or(0).max(cost.peak_rss_bytes);
        Ok::<_, Failure>(cost)
    };
    let plain = crawl("plain", "crawl", &[])?;
    let near_dup = crawl("near-dup", "crawl", &["--text", "--set", "near_dup_enabled=true"])?;
    let audit = crawl("audit", "audit", &["--no-external", "--no-resources", "--no-sitemaps"])?;
    Ok(Crawls {
        pages,
        plain,
        near_dup,
        audit,
        cpu_ratio_to_near_dup: audit.cpu_s / near_dup.cpu_s,
        cpu_ratio_to_plain: audit.cpu_s / plain.cpu_s,
    })
}

/// Writes what the crawl of a large site would have found, and has it judged.
fn judging(args: &BenchAuditArgs, dir: &Path) -> Outcome<Judging> {
    let out = dir.join("made-up");
    let Plan::Use(plan) = Plan::of(&out, EarlierRun::Delete, Run::Audit, Backend::Memory)? else {
        return Err(Failure::crawl("the folder of the made-up site cannot be used"));
    };
    let start = Url::parse("https://site.example/").expect("it is a URL");
    let mut directory = plan.create(&start, huntsman::Timestamp::wall().to_rfc3339())?;
    directory.begin()?;
    let mut segment = Segment::create(directory.file(AUDITED))?;
    let site = MadeUp { pages: args.pages, links: args.links };
    site.answers().try_for_each(|answered| segment.append(&answered))?;
    segment.finish()?;
    for name in [DROPS, ISSUES, PAGES] {
        directory.write(name, b"")?;
    }
    let report = json!({"seed_url": start, "audit": {"judged": [], "is_complete": true}});
    directory.finish(State::Finished, "finished", args.pages, &serde_json::to_vec(&report)?)?;
    drop(directory);
    let segment_bytes = fs::metadata(out.join(AUDITED))?.len();
    let watched = watched(&["audit", "--job", &out.to_string_lossy()], &out)?;
    let report: serde_json::Value = serde_json::from_slice(&fs::read(out.join("report.json"))?)?;
    Ok(Judging {
        pages: args.pages,
        links: args.links,
        cost: watched.cost,
        segment_bytes,
        peak_disk_bytes: watched.peak_disk_bytes,
        issues: report["audit"]["issues"].as_u64().unwrap_or(0),
        report_bytes: fs::metadata(out.join("report.html")).ok().map(|found| found.len()),
    })
}

/// A process that has ended.
pub(super) struct Watched {
    pub(super) cost: Cost,
    peak_disk_bytes: u64,
}

/// Runs this program, and looks at its memory and the files in a folder now and then.
pub(super) fn watched(words: &[&str], dir: &Path) -> Outcome<Watched> {
    let starting =
        |error: std::io::Error| Failure::crawl(format!("running huntsman {}: {error}", words.join(" ")));
    let (started, before) = (Instant::now(), children_cpu_seconds());
    let mut child = program(std::env::current_exe().map_err(starting)?)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(starting)?;
    let (mut peak_rss_bytes, mut peak_disk_bytes) = (0, 0);
    let mut pause = Duration::from_millis(1);
    let status = loop {
        peak_rss_bytes = peak_rss(&child).unwrap_or(0).max(peak_rss_bytes);
        peak_disk_bytes = size(dir).max(peak_disk_bytes);
        if let Some(status) = child.try_wait().map_err(starting)? {
            break status;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    };
    if !status.success() {
        return Err(Failure::crawl(format!("huntsman {} ended with {status}", words.join(" "))));
    }
    let cpu_s = children_cpu_seconds() - before;
    Ok(Watched {
        cost: Cost { elapsed_s: started.elapsed().as_secs_f64(), cpu_s, peak_rss_bytes },
        peak_disk_bytes,
    })
}

/// Processor seconds of all processes that this one has started and that have ended; NaN where the system does not say so.
fn children_cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may have blanks. Of what follows it, user and system time of children are the 14th and 15th.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks: Vec<f64> = fields.skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    if ticks.len() == 2 { ticks.iter().sum::<f64>() / TICKS_PER_SECOND } else { f64::NAN }
}

/// The most memory that a process has used, in bytes.
fn peak_rss(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1_024)
}

/// Bytes of all files below a folder.
fn size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.filter_map(Result::ok).map(of_entry).sum()
}

fn print(measures: &Measures, json: bool) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        let mut out = json!({"version": env!("CARGO_PKG_VERSION"), "build": BUILD});
        out["measures"] = serde_json::to_value(measures)?;
        writeln!(stdout, "{out}")?;
        return Ok(());
    }
    let megabytes = |bytes: u64| format!("{:.0}", bytes as f64 / 1e6);
    let cost = |cost: &Cost| {
        [format!("{:.1}", cost.elapsed_s), format!("{:.1}", cost.cpu_s), megabytes(cost.peak_rss_bytes)]
    };
    let mut table = Table::right(&[1, 2, 3, 4]);
    table.row(["", "pages", "seconds", "CPU s", "memory MB"]);
    if let Some(crawl) = &measures.crawl {
        for (name, of) in [
            ("crawl", &crawl.plain),
            ("crawl --text, near-duplicates", &crawl.near_dup),
            ("audit", &crawl.audit),
        ] {
            let [seconds, cpu, memory] = cost(of);
            table.row([name, &count(crawl.pages), &seconds, &cpu, &memory]);
        }
    }
    if let Some(judging) = &measures.judging {
        let [seconds, cpu, memory] = cost(&judging.cost);
        table.row(["judging", &count(judging.pages), &seconds, &cpu, &memory]);
    }
    stdout.write_all(table.lines("").as_bytes())?;
    if let Some(crawl) = &measures.crawl {
        writeln!(
            stdout,
            "an audit costs {:.2} times the CPU of a crawl with text and near-duplicates, and {:.2} times that of a plain one",
            crawl.cpu_ratio_to_near_dup, crawl.cpu_ratio_to_plain
        )?;
    }
    if let Some(judging) = &measures.judging {
        writeln!(
            stdout,
            "judging {} links: {} MB kept by the crawl, at most {} MB on the disk, {} issues, the report {} MB",
            count(judging.pages * judging.links),
            megabytes(judging.segment_bytes),
            megabytes(judging.peak_disk_bytes),
            count(judging.issues),
            judging.report_bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
        )?;
    }
    writeln!(stdout, "{BUILD} build")?;
    Ok(())
}
