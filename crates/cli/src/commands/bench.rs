//! `huntsman bench`: how fast this build crawls on this machine, against fetching alone; what audits and rendering cost, and how nodes of a shared
//! crawl scale.

mod audit;
#[cfg(feature = "cluster")]
mod cluster;
mod made_up;
#[cfg(feature = "render")]
mod render;

use clap::Subcommand;
use huntsman::{Backend, HttpDownloader, StartUrls};
use serde_json::json;

use crate::args::SettingsArgs;
use crate::command::attended::Ended;
use crate::command::bench::{self, BenchArgs, BenchCrawl};
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::job::{self, Job, Sink};
use crate::logging;
use crate::output::{EarlierRun, Plan, Run};
use crate::progress::Screen;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Crawls a generated site on this machine; the server is a process of its own, so the CPU seconds are the
    /// crawler's.
    #[command(before_help = "Examples:\n  \
        huntsman bench crawl\n  \
        huntsman bench crawl --pages 20000 --text --json")]
    Crawl(BenchArgs),

    /// Audits a generated site on this machine beside crawls of it, and judges a large made-up site without a network: seconds, CPU
    /// seconds, memory, bytes on disk.
    #[command(before_help = "Examples:\n  \
        huntsman bench audit\n  \
        huntsman bench audit --crawled 0 --pages 1000000 --json")]
    Audit(audit::BenchAuditArgs),

    /// Renders a generated site in a browser on this machine: pages and CPU seconds, with the memory of the crawler and of the browser.
    #[cfg(feature = "render")]
    #[command(before_help = "Examples:\n  \
        huntsman bench render\n  \
        huntsman bench render --pages 200 --json")]
    Render(render::BenchRenderArgs),

    /// Crawls a generated site of many slow hosts with one, two and four nodes that share a queue: pages a second, and their ratios. Starts a
    /// redis-server of its own.
    #[cfg(feature = "cluster")]
    #[command(before_help = "Examples:\n  \
        huntsman bench cluster\n  \
        huntsman bench cluster --nodes 1,2,4,8 --pages 10000 --json")]
    Cluster(cluster::BenchClusterArgs),
}

pub(crate) use audit::run as audit;
#[cfg(feature = "cluster")]
pub(crate) use cluster::run as cluster;
#[cfg(feature = "render")]
pub(crate) use render::run as render;

pub(crate) async fn crawl(args: BenchArgs) -> Outcome {
    bench::run(&args, async |port| {
        let ended = crawl_once(&args, port).await?;
        let report = &ended.report;
        Ok(BenchCrawl {
            pages: report.pages,
            wire_bytes: report.wire_bytes,
            elapsed_s: report.elapsed_s,
            finish_reason: report.finish_reason.clone(),
            exit: super::exit_of(&ended, false),
        })
    })
    .await
}

/// Crawls as `huntsman crawl` does, into a directory that is deleted.
async fn crawl_once(args: &BenchArgs, port: u16) -> Outcome<Ended> {
    let mut flags = args.settings(port);
    flags.push(("scope", json!("host")));
    let settings = SettingsArgs { profile: Some("test".to_owned()), ..SettingsArgs::default() };
    let config = Config::load(&settings, vec![("log_level", json!("warn"))], flags)?;
    let screen = Screen::plain();
    let log = logging::start(&config.settings, &screen)?;
    let downloader = HttpDownloader::new(&config.settings)?;
    let temporary = tempfile::tempdir()?;
    let seeds = StartUrls::of(&[bench::start_url(port)], None)?;
    let Plan::Use(plan) = Plan::of(temporary.path(), EarlierRun::Continue, Run::Crawl, Backend::Memory)?
    else {
        return Err(Failure::crawl("the temporary directory is not empty"));
    };
    let directory = plan.create(&seeds.first, huntsman::Timestamp::wall().to_rfc3339())?;
    let sink = Sink::Directory(directory);
    job::run(Job {
        config,
        downloader,
        seeds,
        only: None,
        text: args.text,
        follow: true,
        sitemaps: false,
        sink,
        metrics: None,
        control: None,
        screen,
        log,
        explain: Vec::new(),
        copyvio: None,
        sweep: None,
        index: None,
        declared: None,
        #[cfg(feature = "cluster")]
        frontier: None,
    })
    .await?
    .finish()
}
