//! `huntsman demo`: a forum on loopback, crawled, and a report to look at.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueHint};
use huntsman::detect::copyvio::Text;
use huntsman::sweep::Copyvio;
use huntsman::{Backend, HttpDownloader, StartUrls};
use huntsman_testkit::sites::Harbour;
use serde_json::json;
use tokio::net::TcpListener;

use crate::args::SettingsArgs;
use crate::config::Config;
use crate::directory::finished;
use crate::exit::{Exit, Failure, Outcome};
use crate::job::{self, Job, Sink};
use crate::logging;
use crate::output::{self, EarlierRun, HTML_REPORT, Plan, Run};
use crate::progress::Screen;
use crate::render::{Style, escape};
use crate::server::{Limits, serve_pages};

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Directory for pages.jsonl, drops.jsonl, report.json and report.html [default: a temporary one, which is
    /// printed].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,

    /// Starts a new crawl if the directory holds an earlier one.
    #[arg(long)]
    pub(crate) fresh: bool,
}

pub(crate) async fn run(args: DemoArgs) -> Outcome {
    let path = match &args.out {
        Some(path) => path.clone(),
        None => temporary_directory()?,
    };
    let plan = match Plan::of(&path, EarlierRun::of(args.fresh), Run::Demo, Backend::Memory)? {
        Plan::Use(plan) => plan,
        Plan::Finished(status) => {
            writeln!(io::stdout(), "{}", finished(&path, &status))?;
            return Ok(Exit::Done);
        }
    };
    let forum = TcpListener::bind("127.0.0.1:0").await?;
    let port = forum.local_addr()?.port();
    // Binding works only where all of 127.0.0.0/8 belongs to this machine, as on Linux; elsewhere the demo runs
    // without the mirror.
    let mirror = TcpListener::bind("127.0.0.2:0").await.ok();
    let mirror_host =
        mirror.as_ref().and_then(|mirror| mirror.local_addr().ok()).map(|address| address.to_string());
    let origin = format!("http://127.0.0.1:{port}");
    let site =
        Arc::new(Harbour::new(origin.clone(), mirror_host.as_ref().map(|host| format!("http://{host}"))));
    let essay = Text::new(site.essay());
    let mut servers = tokio::task::JoinSet::new();
    let pages = Arc::clone(&site);
    servers.spawn(serve_pages(forum, Limits::default(), move |uri| pages.answer(uri)));
    if let Some(mirror) = mirror {
        servers.spawn(serve_pages(mirror, Limits::default(), move |uri| site.mirror_answer(uri)));
    }

    let mut hosts = vec![format!("127.0.0.1:{port}")];
    hosts.extend(mirror_host);
    let flags = vec![
        ("allow_addresses", json!(hosts)),
        ("allow_hosts", json!(hosts)),
        ("scope", json!("origin")),
        ("page_text", json!(true)),
        ("avoid_dup_content_enabled", json!(true)),
        ("near_dup_enabled", json!(true)),
        // The mirror edits its copies, and the forum's pages have other text around the posts.
        ("near_dup_distance", json!(7)),
        // One request at a time, so that two runs of the demo learn and skip the same.
        ("concurrent_requests", json!(1)),
        ("seed", json!(1)),
    ];
    let settings = SettingsArgs { profile: Some("test".to_owned()), ..SettingsArgs::default() };
    let config = Config::load(&settings, vec![("log_level", json!("warn"))], flags)?;
    let screen = Screen::with_progress();
    let log = logging::start(&config.settings, &screen)?;
    let downloader = HttpDownloader::new(&config.settings)?;
    let seeds = StartUrls::of(&[format!("{origin}/")], None)?;
    let directory = plan.create(&seeds.first, huntsman::Timestamp::wall().to_rfc3339())?;
    let sink = Sink::Directory(directory);
    let crawled = job::run(Job {
        config,
        downloader,
        seeds,
        only: None,
        text: true,
        follow: true,
        sitemaps: false,
        sink,
        metrics: None,
        control: None,
        screen,
        log,
        explain: Vec::new(),
        copyvio: Some(Copyvio::of(&essay)),
        sweep: None,
        index: None,
        declared: None,
        #[cfg(feature = "cluster")]
        frontier: None,
    })
    .await?;
    drop(servers);

    crawled.write_html()?;
    let ended = crawled.finish()?;
    let exit = super::exit_of(&ended, false);
    let mut stdout = io::stdout().lock();
    stdout.write_all(ended.report.summary(Style::stdout()).as_bytes())?;
    writeln!(stdout, "saved in {}:", escape(&path.to_string_lossy()))?;
    for (name, what) in [
        (output::PAGES, "one record per page"),
        (output::DROPS, "one record per address without a page, with the reason"),
        (output::RULES, "what was learnt of the addresses, and what was skipped by it"),
        (output::REPORT, "numbers"),
        (HTML_REPORT, "the same to look at: open it in a browser"),
    ] {
        writeln!(stdout, "  {name:12} {what}")?;
    }
    Ok(exit)
}

/// A directory for temporary files, which stays.
pub(super) fn temporary_directory() -> Outcome<PathBuf> {
    let made = tempfile::Builder::new().prefix("huntsman-demo-").tempdir();
    let made = made.map_err(|error| {
        Failure::crawl(format!("making a temporary directory: {error}; name one with --out"))
    })?;
    Ok(made.keep())
}
