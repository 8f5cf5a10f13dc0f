//! `huntsman crawl`: turns flags into settings, checks them, then runs the crawl.

mod archive;
mod args;
#[cfg(feature = "render")]
pub(super) mod rendering;

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use huntsman::middleware::{OnlyUrls, RecordingSettings};
use huntsman::serve::MetricsServer;
use huntsman::sweep::Copyvio;
use huntsman::{Backend, HttpDownloader, Profile};
use serde_json::json;
use url::Url;

use super::version::stores;
use crate::args::Flags;
#[cfg(feature = "cluster")]
use crate::cluster::ClusterNode;
use crate::command::control;
use crate::command::log_settings;
use crate::config::Config;
use crate::copyvio::{Input, Inputs, pdf_reader};
use crate::declared::{self, Declared, Items};
use crate::directory::finished;
use crate::exit::{Exit, Failure, Outcome};
use crate::job::{self, CompletedCrawl, Job, Sink};
use crate::logging;
use crate::metrics;
use crate::output::{self, EarlierRun, Plan, Run, Use};
use crate::progress::Screen;
use crate::reachable;
use crate::render::{Style, escape, say};
use crate::sweep::Sweeping;
use crate::text_index;

pub(super) use archive::is_offline;
pub(crate) use args::{CrawlArgs, SiteArgs};

/// Additions of a command to the plain crawl.
#[derive(Debug, Default)]
pub(super) struct CrawlExtras {
    pub(super) copyvio: Option<Copyvio>,
    pub(super) sweep: Option<Sweeping>,
    pub(super) index: Option<PathBuf>,
    /// The spider of a file, if the command was given one.
    pub(super) declared: Option<Declared>,
    /// The node of a shared crawl that this crawl is.
    #[cfg(feature = "cluster")]
    pub(super) node: Option<ClusterNode>,
}

impl CrawlExtras {
    /// The directory for the records.
    fn directory(&self, given: Option<&Path>, first: &Url, run: Run, fresh: bool) -> PathBuf {
        #[cfg(feature = "cluster")]
        if let Some(node) = &self.node {
            return node.directory(given, fresh);
        }
        let _ = fresh;
        given.map_or_else(
            || match &self.declared {
                Some(declared) => declared.default_dir(),
                None => output::default_dir(first, run),
            },
            Path::to_owned,
        )
    }

    /// Whether the queue is elsewhere.
    fn is_shared(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.node.is_some();
        #[cfg(not(feature = "cluster"))]
        false
    }
}

pub(crate) async fn run(args: CrawlArgs) -> Outcome {
    #[cfg(feature = "cluster")]
    let node = ClusterNode::of(&args.cluster)?;
    let CrawlArgs { site, copyvio, index, items, overwrite_items, html, .. } = args;
    let declared = declared::of(&site, Items::of(items, overwrite_items))?;
    if html && site.output.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage("--out -: --html writes a file; name a directory"));
    }
    let fail_on_limit = site.output.fail_on_limit;
    let copyvio = match &copyvio {
        Some(article) => Some(compared_with(article, &site).await?),
        None => None,
    };
    let extras = CrawlExtras {
        copyvio,
        index: index.index,
        declared,
        #[cfg(feature = "cluster")]
        node,
        ..CrawlExtras::default()
    };
    let Some(crawled) = crawl(site, extras).await? else {
        return Ok(Exit::Done);
    };
    if html {
        crawled.write_html()?;
    }
    let ended = crawled.finish()?;
    say(ended.report.summary(Style::stderr()).trim_end());
    if let Some(directory) = &ended.directory {
        say(&format!("  {}", escape(&directory.path().join(output::PAGES).to_string_lossy())));
    }
    Ok(super::exit_of(&ended, fail_on_limit))
}

/// Crawls as the flags say. Returns `None` if the directory holds a finished crawl; a message says so.
pub(super) async fn crawl(args: SiteArgs, extras: CrawlExtras) -> Outcome<Option<CompletedCrawl>> {
    let mut flags = args.settings();
    flags.push(("page_text", json!(args.output.text)));
    let config = match &extras.declared {
        Some(declared) => declared.config(&args.settings, defaults(), flags)?,
        None => Config::load(&args.settings, defaults(), flags)?,
    };
    let downloader = HttpDownloader::new(&config.settings)?;
    job::check(&config)?;
    #[cfg(feature = "render")]
    rendering::check(&config.settings)?;
    let only = args.reach.only.as_deref().map(OnlyUrls::from_file).transpose()?;
    let seeds = match &extras.declared {
        Some(declared) => declared.spider.start_urls()?,
        None => args.start_urls()?,
    };

    let to_stdout = args.output.out.as_deref() == Some(Path::new("-"));
    // The directory of a node has no queue.
    let keeps_queue = !to_stdout && !extras.is_shared();
    let store = store_of(args.output.store.as_deref(), config.profile, !keeps_queue)?;
    let run = if extras.sweep.is_some() { Run::Sweep } else { Run::Crawl };
    let path = extras.directory(args.output.out.as_deref(), &seeds.first, run, args.output.fresh);
    let plan = match to_stdout {
        true => None,
        false => match Plan::of(&path, EarlierRun::of(args.output.fresh), run, store)? {
            Plan::Finished(status) => {
                say(&finished(&path, &status));
                return Ok(None);
            }
            Plan::Use(plan) => Some(plan),
        },
    };
    if !plan.as_ref().is_some_and(Use::continues) {
        refuse_earlier_recording(&config)?;
    }
    let index = extras.index.as_deref().map(text_index::open_or_create).transpose()?;
    let metrics = match args.output.metrics {
        Some(address) => Some(metrics::bind(address, args.output.metrics_public).await?),
        None => None,
    };
    let control = control::bind(&config.settings, !to_stdout).await?;
    // If records and the progress line go to the same terminal, they would overwrite each other.
    let shares_terminal = to_stdout && io::stdout().is_terminal();
    let screen = match (shares_terminal, args.output.tui) {
        (true, _) => Screen::plain(),
        (false, true) => Screen::with_dashboard(),
        (false, false) => Screen::with_progress(),
    };
    let log = logging::start(&config.settings, &screen)?;
    // A replay resolves no names, and neither does a crawl over archives.
    if seeds.is_complete && args.output.replay.is_none() && !is_offline(&config.settings)? {
        reachable::look_at(seeds.given(), &config.settings, &downloader).await?;
    }
    log_settings(&config);
    #[cfg(feature = "cluster")]
    let frontier = extras.node.map(|node| node.join(config.settings.scheduler_order)).transpose()?;

    let sink = match plan {
        Some(plan) => {
            let started = huntsman::Timestamp::wall().to_rfc3339();
            Sink::Directory(plan.create(&seeds.first, started)?)
        }
        None => Sink::Stdout,
    };
    if let Some(address) = metrics.as_ref().map(MetricsServer::address) {
        screen.line(&format!("metrics at http://{address}/metrics\n"));
    }
    let follow = args.max_depth() != Some(0);
    let job = Job {
        config,
        downloader,
        seeds,
        only,
        text: args.output.text,
        follow,
        sitemaps: args.reach.sitemaps,
        sink,
        metrics,
        control,
        screen,
        log,
        explain: args.avoid_dup.explain,
        copyvio: extras.copyvio,
        sweep: extras.sweep,
        index,
        declared: extras.declared,
        #[cfg(feature = "cluster")]
        frontier,
    };
    job::run(job).await.map(Some)
}

/// Reads the article that pages are compared with.
async fn compared_with(article: &str, site: &SiteArgs) -> Outcome<Copyvio> {
    let input = Input::parse(article)?;
    let config = Config::load(&site.settings, Inputs::command(), site.network.settings())?;
    let texts = Inputs::fetch(std::slice::from_ref(&input), config).await?;
    let read = texts.read(&input);
    let read = read.map_err(|why| Failure::usage(format!("--copyvio {}: {why}", escape(article))))?;
    Ok(Copyvio::with_pdf(&read.reading.text, pdf_reader()))
}

/// The defaults of this command: it crawls one site and not the web, and it ends.
pub(super) fn defaults() -> Flags {
    // The drain leaves one of the 15 seconds that a stop may take for writing the files.
    vec![("scope", json!("host")), ("max_parked_wait", json!(30.0)), ("drain_timeout", json!(14.0))]
}

/// The store for the crawl's state: on disk, unless a test chose another one or records go to standard output.
pub(super) fn store_of(store: Option<&str>, profile: Profile, to_stdout: bool) -> Outcome<Backend> {
    let Some(name) = store else {
        return Ok(if to_stdout || profile == Profile::Test { Backend::Memory } else { Backend::default() });
    };
    match name.parse::<Backend>() {
        Ok(Backend::Redb | Backend::Sled) if to_stdout => Err(Failure::usage(format!(
            "--store {name}: with --out - nothing is left to go on with; use memory, or name a directory"
        ))),
        Ok(store) if store.is_compiled_in() => Ok(store),
        _ => Err(Failure::usage(format!(
            "--store {}: this build has no such store; use {}",
            escape(name),
            stores().join(" or ")
        ))),
    }
}

/// Refuses to add a new crawl to the recording of another one.
fn refuse_earlier_recording(config: &Config) -> Outcome<()> {
    let Some(path) = config.settings.of::<RecordingSettings>()?.recording_file else { return Ok(()) };
    match fs::metadata(&path) {
        Ok(found) if found.len() > 0 => Err(Failure::usage(format!(
            "--record {}: the file exists, and a recording has one crawl; remove it, or name another file",
            escape(&path)
        ))),
        _ => Ok(()),
    }
}
