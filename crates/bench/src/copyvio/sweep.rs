//! The cost of a sweep: articles of one site with sources on other domains, all on this machine.
//!
//! The site and the sources run in a process of their own, which counts the concurrent requests of each domain. The
//! sweep runs in another process, with the command `huntsman sweep`, which this executable contains as well.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use huntsman::human_bytes;
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::process::program;
use huntsman_cli::render::count;
use huntsman_testkit::{Answer, Site};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::{CopyvioArgs, SourcesArgs};
use super::index::words;
use crate::sheet::{Sheet, figure};

/// Latency of a source, so that concurrent requests can be observed.
const LATENCY: Duration = Duration::from_millis(1);
/// One of this many articles is copied from its first source.
const COPIES: u64 = 10;

/// The cost of a sweep.
#[derive(Debug, Serialize)]
pub(super) struct Sweep {
    articles: u64,
    sources: u64,
    domains: u64,
    elapsed_s: f64,
    /// Processor seconds of the sweeping process.
    cpu_s: f64,
    peak_rss_bytes: u64,
    /// Number of requests that the server counted.
    requests: u64,
    most_at_once_on_a_domain: u64,
    /// Number of pairs in `sweep.jsonl`, and how many of them are suspected; the number of copied articles is known.
    pairs: u64,
    suspected: u64,
    copied: u64,
}

/// The counts that the server prints at its end.
#[derive(Debug, Serialize, Deserialize)]
struct Served {
    requests: u64,
    most_at_once: u64,
}

pub(super) fn run(args: &CopyvioArgs) -> Outcome<Sweep> {
    let failed = |error: io::Error| Failure::crawl(format!("measuring a sweep: {error}"));
    let huntsman = std::env::current_exe().map_err(failed)?;
    let sources = &args.sources;
    let mut server = program(&huntsman)
        .args(["sources", "--articles", &sources.articles.to_string()])
        .args([
            "--sources-each",
            &sources.sources_each.to_string(),
            "--domains",
            &sources.domains.to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut lines = BufReader::new(server.stdout.take().expect("it is piped"));
    let mut line = String::new();
    lines.read_line(&mut line).map_err(failed)?;
    let port: u16 = serde_json::from_str(&line)?;
    let directory = tempfile::tempdir().map_err(failed)?;
    let out = directory.path().join("sweep");
    let mut sweep = program(&huntsman);
    sweep.arg("sweep").arg(format!("http://127.0.0.1:{}/", port)).arg("--out").arg(&out);
    sweep.args([
        "--profile",
        "test",
        "--ignore-robots",
        "--no-short-circuit",
        "--allow-address",
        "127.0.0.1:*",
    ]);
    sweep.args(["--set", "log_level=warn"]);
    for domain in (0..sources.domains).map(name) {
        sweep.args(["--resolve", &format!("{domain}:{port}:127.0.0.1")]);
        sweep.args(["--allow-address", &format!("{domain}:{port}")]);
    }
    let start = Instant::now();
    let ended =
        sweep.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().map_err(failed)?;
    let elapsed_s = start.elapsed().as_secs_f64();
    drop(server.stdin.take());
    line.clear();
    lines.read_line(&mut line).map_err(failed)?;
    let _ = server.wait();
    if !ended.status.success() {
        return Err(Failure::crawl(format!("the sweep failed: {}", String::from_utf8_lossy(&ended.stderr))));
    }
    let served: Served = serde_json::from_str(&line)?;
    let report: Value = serde_json::from_slice(&fs::read(out.join("report.json")).map_err(failed)?)?;
    let (pairs, suspected) = pairs(&out.join("sweep.jsonl")).map_err(failed)?;
    Ok(Sweep {
        articles: sources.articles,
        sources: sources.sources_each,
        domains: sources.domains,
        elapsed_s,
        cpu_s: report["cpu_s"].as_f64().unwrap_or(f64::NAN),
        peak_rss_bytes: report["peak_rss_bytes"].as_u64().unwrap_or(0),
        requests: served.requests,
        most_at_once_on_a_domain: served.most_at_once,
        pairs,
        suspected,
        copied: sources.articles.div_ceil(COPIES),
    })
}

fn pairs(path: &Path) -> io::Result<(u64, u64)> {
    let (mut pairs, mut suspected) = (0, 0);
    for line in BufReader::new(fs::File::open(path)?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        pairs += 1;
        suspected += u64::from(line["band"] == "suspected");
    }
    Ok((pairs, suspected))
}

impl Sweep {
    pub(super) fn sheet(&self) -> Sheet {
        let title = format!(
            "Sweep of {} articles with {} sources each on {} domains",
            count(self.articles),
            self.sources,
            self.domains
        );
        let mut sheet = Sheet::new(title, ["", ""]);
        let pairs = self.pairs.max(1) as f64;
        sheet.row(["elapsed", &format!("{:.1} s", self.elapsed_s)]);
        sheet.row(["processor time", &format!("{:.1} s", self.cpu_s)]);
        sheet.row(["processor time of 1,000 pairs", &format!("{} s", figure(1_000.0 * self.cpu_s / pairs))]);
        sheet.row(["peak memory", &human_bytes(self.peak_rss_bytes)]);
        sheet.row(["pairs", &count(self.pairs)]);
        sheet.row(["suspected, of copied articles", &format!("{} of {}", self.suspected, self.copied)]);
        sheet.row(["requests that the servers saw", &count(self.requests)]);
        sheet.row(["most at once on a domain", &self.most_at_once_on_a_domain.to_string()]);
        sheet.note(
            "articles and sources of 1,000 words; sources answer after a millisecond; eight domains at once",
        )
    }
}

fn name(domain: u64) -> String {
    format!("domain{domain}.test")
}

fn text(seed: u64) -> String {
    words(seed).join(" ")
}

/// `huntsman-bench sources`: prints the port of the site and of the domains, serves until stdin closes, and prints
/// its counts.
pub(crate) fn sources(args: SourcesArgs) -> Outcome {
    let mut site = Site::builder().route("/*", move |asked| {
        // The site and the sources share one server: the requested address contains its port.
        let authority = asked.header("host").unwrap_or_default();
        article(asked.path(), authority.rsplit(':').next().unwrap_or_default(), args)
    });
    for domain in (0..args.domains).map(name) {
        site = site.host(&domain).route("/*", |asked| source(asked.path()).delay(LATENCY));
    }
    let site = site.start_blocking();
    tell(&site.port().to_string())?;
    let _ = io::stdin().lock().read(&mut [0]);
    let record = site.stop();
    let domains: Vec<String> = (0..args.domains).map(name).collect();
    let requests = domains.iter().map(|domain| record.to(domain).count() as u64).sum();
    let most_at_once = domains.iter().map(|domain| record.peak(domain) as u64).max().unwrap_or(0);
    tell(&serde_json::to_string(&Served { requests, most_at_once })?)?;
    Ok(Exit::Done)
}

fn tell(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// The list of articles, or one of them; the port is that of the sources.
fn article(path: &str, port: &str, args: SourcesArgs) -> Answer {
    if path == "/" {
        let links: String = (0..args.articles).map(|n| format!("<a href=\"/{n}\">{n}</a> ")).collect();
        return Answer::html(links);
    }
    let Some(number) = path.strip_prefix('/').and_then(|number| number.parse::<u64>().ok()) else {
        return Answer::status(404);
    };
    let first = number * args.sources_each;
    let links: String = (first..first + args.sources_each)
        .map(|source| {
            format!("<a href=\"http://{}:{port}/{source}\">source</a> ", name(source % args.domains))
        })
        .collect();
    // A copied article has the text of its first source.
    let text = if number % COPIES == 0 { text(first) } else { text(u64::MAX - number) };
    Answer::html(format!("<title>{number}</title><p>{text}</p><p>{links}</p>"))
}

fn source(path: &str) -> Answer {
    match path.strip_prefix('/').and_then(|number| number.parse().ok()) {
        Some(number) => Answer::html(format!("<title>{number}</title><p>{}</p>", text(number))),
        None => Answer::status(404),
    }
}
