//! `huntsman bench render`: what it costs to render pages in a browser.
//!
//! The crawl is a process of its own, which is this program with the command that a user would run.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::{Cost, watched};
use crate::command::bench::{BenchSite, Server, script_url};
use crate::command::process::BUILD;
use crate::exit::{Exit, Outcome};
use crate::render::{Table, count, say};

/// Flags of `bench render`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BenchRenderArgs {
    /// Number of pages. A tenth of them is rendered before, so that what grows with pages shows.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pages: u64,

    /// Size of what the script of a page fetches, in kilobytes.
    #[arg(long, value_name = "KB", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=8_192))]
    kb: u64,

    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// What rendering some pages took.
#[derive(Debug, Serialize)]
struct Rendered {
    pages: u64,
    pages_per_s: f64,
    /// Of the crawler and of its browser.
    cpu_s_per_page: f64,
    /// The most memory of the crawler.
    crawler_bytes: u64,
    /// The most memory of all processes of the browser.
    browser_bytes: u64,
    browsers: u64,
    cost: Cost,
}

pub(crate) fn run(args: BenchRenderArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its numbers say little; measure with a build with --release");
    }
    let temporary = tempfile::tempdir()?;
    let measures = [args.pages / 10, args.pages]
        .into_iter()
        .map(|pages| rendered(pages, args.kb, temporary.path()))
        .collect::<Outcome<Vec<_>>>()?;
    print(&measures, args.json)?;
    Ok(Exit::Done)
}

fn rendered(pages: u64, kb: u64, dir: &Path) -> Outcome<Rendered> {
    let server = Server::start(BenchSite { pages, kb, links: 40 })?;
    let out = dir.join(pages.to_string());
    let (url, shown) = (script_url(server.port()), out.to_string_lossy());
    let address = format!("127.0.0.1:{}", server.port());
    let words = ["crawl", url.as_str(), "--render", "--out", &*shown, "--profile", "test"];
    let more = ["--allow-address", &address, "--set", "depth_guard=0", "--set", "seed=1"];
    // The pages are those of this program.
    let trusted = ["--set", "render_sandbox=off"];
    let words: Vec<&str> = words.into_iter().chain(more).chain(trusted).collect();
    let mut cost = watched(&words, dir)?.cost;
    let report: Value = serde_json::from_slice(&fs::read(out.join("report.json"))?)?;
    let stat = |name: &str| report["stats"][name].as_u64().unwrap_or(0);
    let pages = stat("render/pages");
    // The system does not tell the time of processes that are killed with their group.
    cost.cpu_s = report["cpu_s"].as_f64().unwrap_or(0.0) + stat("render/cpu_milliseconds") as f64 / 1_000.0;
    Ok(Rendered {
        pages,
        pages_per_s: pages as f64 / cost.elapsed_s,
        cpu_s_per_page: cost.cpu_s / pages.max(1) as f64,
        crawler_bytes: report["peak_rss_bytes"].as_u64().unwrap_or(0).max(cost.peak_rss_bytes),
        browser_bytes: stat("render/memory_max"),
        browsers: stat("render/restarts") + 1,
        cost,
    })
}

fn print(measures: &[Rendered], json: bool) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        let out = json!({"version": env!("CARGO_PKG_VERSION"), "build": BUILD, "measures": measures});
        writeln!(stdout, "{out}")?;
        return Ok(());
    }
    let megabytes = |bytes: u64| format!("{:.0}", bytes as f64 / 1e6);
    let mut table = Table::right(&[0, 1, 2, 3, 4, 5, 6]);
    table.row(["pages", "seconds", "pages/s", "CPU s per page", "crawler MB", "browser MB", "browsers"]);
    for of in measures {
        table.row([
            &*count(of.pages),
            &format!("{:.1}", of.cost.elapsed_s),
            &format!("{:.2}", of.pages_per_s),
            &format!("{:.3}", of.cpu_s_per_page),
            &megabytes(of.crawler_bytes),
            &megabytes(of.browser_bytes),
            &count(of.browsers),
        ]);
    }
    stdout.write_all(table.lines("").as_bytes())?;
    writeln!(stdout, "{BUILD} build")?;
    Ok(())
}
