//! Runs one crawl from its start to its report; `crawl`, `demo` and `bench` share this code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use huntsman::logging::LogCount;
use huntsman::middleware::{AvoidDup, Defaults, OnlyUrls, Recording, RobotsSitemaps};
use huntsman::output::{LearntRules, Report, html_report};
use huntsman::serve::{CrawlNumbers, MetricsServer};
use huntsman::signals::Signals;
use huntsman::sweep::Copyvio;
use huntsman::{
    Backend, Crawler, CrawlerBuilder, Downloader, Event, FetchError, FetchErrorKind, Handle, HostKey,
    HttpDownloader, Observer, Request, Response, Sitemaps, Start, StartUrls, seconds,
};
use url::Url;

use crate::config::Config;
use crate::declared::{self, Declared};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{CANONICAL, HTML_REPORT, OutputDir, RULES, State};
use crate::progress::{Progress, Rate, Screen};
use crate::reachable::advice;
use crate::render::{escape, warn};
use crate::signals::{self, Interrupted};
use crate::sink::{StdoutItems, StdoutLines};
use crate::spider::{PageRecord, SiteSpider};
use crate::sweep::Sweeping;
use crate::text_index::{self, TextIndex};

/// Where page records go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Files in a directory, with drops and report.
    Directory(OutputDir),
    /// Lines on stdout; no files are written.
    Stdout,
}

/// A configured crawl that was not started yet.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) config: Config,
    pub(crate) downloader: HttpDownloader,
    pub(crate) seeds: StartUrls,
    pub(crate) only: Option<OnlyUrls>,
    /// Whether records carry text and words.
    pub(crate) text: bool,
    /// Whether links are followed.
    pub(crate) follow: bool,
    /// Whether the sitemaps of the start URLs' sites are read.
    pub(crate) sitemaps: bool,
    pub(crate) sink: Sink,
    pub(crate) metrics: Option<MetricsServer>,
    pub(crate) screen: Screen,
    pub(crate) log: LogCount,
    /// A URL for which the crawl explains at its end what the AvoidDup model predicts.
    pub(crate) explain: Option<Url>,
    /// Compares pages with an article, if set.
    pub(crate) copyvio: Option<Copyvio>,
    /// Checks the pages as articles, if set.
    pub(crate) sweep: Option<Sweeping>,
    /// The text index that gets the text of every page, if set.
    pub(crate) index: Option<TextIndex>,
    /// The spider of a file, which says what links and items are.
    pub(crate) declared: Option<Declared>,
}

/// A crawl that ended, in a directory that is not marked as finished yet. Further reports are written before that
/// mark: if the process is killed between them, the same command completes the run.
#[derive(Debug)]
#[must_use = "the directory is not finished"]
pub(crate) struct CompletedCrawl(Ended);

impl CompletedCrawl {
    /// How the crawl ended.
    pub(crate) fn report(&self) -> &Report {
        &self.0.report
    }

    /// The directory for further reports.
    pub(crate) fn directory(&self) -> Option<&OutputDir> {
        self.0.directory.as_ref()
    }

    /// Writes the report for people into the directory.
    ///
    /// # Errors
    /// The files of the crawl cannot be read, or the report cannot be written.
    pub(crate) fn write_html(&self) -> Outcome<()> {
        let Some(directory) = self.directory() else { return Ok(()) };
        let page = html_report(directory.path(), self.report())
            .map_err(|error| Failure::crawl(format!("making {HTML_REPORT}: {error}")))?;
        directory.write(HTML_REPORT, page.as_bytes()).map_err(|error| {
            let file = directory.file(HTML_REPORT);
            Failure::crawl(format!("writing {}: {error}", escape(&file.to_string_lossy())))
        })
    }

    /// Writes the report into the directory and marks the run as ended.
    ///
    /// # Errors
    /// The report cannot be written; the next command continues the crawl.
    pub(crate) fn finish(self) -> Outcome<Ended> {
        let mut ended = self.0;
        finish(&mut ended)?;
        Ok(ended)
    }
}

/// The result of a crawl.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) report: Report,
    pub(crate) interrupted: bool,
    /// The output directory, still locked.
    pub(crate) directory: Option<OutputDir>,
}

impl Ended {
    /// The exit code; a message on stderr explains any code other than 0.
    pub(crate) fn exit(&self, fail_on_limit: bool) -> Exit {
        let failed = &self.report.failed_seeds;
        if let Some(error) = &self.report.error {
            warn(&format!("the crawl broke off: {error}"));
        }
        for seed in failed.iter().take(5) {
            let advice = Url::parse(&seed.url).map_or(String::new(), |url| advice(&seed.reason, &url));
            let url = if seed.url.is_empty() { "a start URL" } else { &seed.url };
            warn(&format!("{url} could not be fetched: {}{advice}", seed.reason));
        }
        if failed.len() > 5 {
            warn(&format!("{} more start URLs could not be fetched; see report.json", failed.len() - 5));
        }
        if self.interrupted {
            Exit::Interrupted
        } else if self.report.error.is_some()
            || !failed.is_empty()
            || self.report.failure.is_some()
            || self.report.finish_reason == "start_error"
        {
            Exit::Crawl
        } else if fail_on_limit && self.report.is_limited() {
            Exit::Limit
        } else {
            Exit::Done
        }
    }

    fn state(&self) -> State {
        if self.interrupted || self.report.error.is_some() {
            State::Interrupted
        } else if self.report.pages == 0 && !self.report.failed_seeds.is_empty() {
            State::Failed
        } else {
            State::Finished
        }
    }
}

/// Builds the crawler from the settings without running it, so that settings which a component rejects are reported
/// before anything is done.
///
/// # Errors
/// A component rejects its settings.
pub(crate) fn check(config: &Config) -> Outcome<Crawler> {
    let spider = SiteSpider::new(Start::none(), false, false);
    Ok(huntsman::crawl(spider).layers(config.layers.clone()).downloader(NoDownloader).build()?)
}

/// A downloader for crawlers that are never run.
struct NoDownloader;

impl Downloader for NoDownloader {
    async fn fetch(&self, _: &Request) -> Result<Response, FetchError> {
        Err(FetchError::new(FetchErrorKind::Cancelled, "this crawler is not meant to run"))
    }
}

/// Runs a crawl.
///
/// # Errors
/// The crawl could not be set up; the output directory is removed again. A crawl that broke off is no error here: its
/// report says so.
pub(crate) async fn run(job: Job) -> Outcome<CompletedCrawl> {
    let Job {
        config,
        downloader,
        seeds,
        only,
        text,
        follow,
        sitemaps,
        sink,
        metrics,
        screen,
        log,
        explain,
        copyvio,
        sweep,
        index,
        declared,
    } = job;
    let drain = config.settings.drain_timeout;
    let time_limit = config.settings.closespider_timeout;
    // Sitemaps are needed even without the flag: the queue of an earlier run may hold some.
    let site = SiteSpider::new(seeds.into_start(), text, follow)
        .articles(sweep.as_ref().map(|sweep| sweep.min_words));
    let (site, sitemap_urls, items) = match declared {
        Some(Declared { spider, items }) => {
            let sitemaps = spider.sitemap_urls().to_vec();
            (site.declared(spider), sitemaps, Some(items))
        }
        None => (site, Vec::new(), None),
    };
    let spider = Sitemaps::new(site).sitemap_urls(sitemap_urls).on_sitemap(|page, report, out| {
        let record = PageRecord::of_sitemap(page, report, out.context());
        out.item(record);
    });
    let discovery = sitemaps.then(|| RobotsSitemaps::of(&spider));
    let mut builder =
        CrawlerBuilder::new(spider).plugin(Defaults).layers(config.layers).downloader(downloader);
    if let Some(discovery) = discovery {
        builder = builder.plugin(discovery);
    }
    if let Some(only) = only {
        builder = builder.plugin(only);
    }
    if let Some(copyvio) = copyvio {
        builder = builder.plugin(copyvio);
    }
    if let Some(index) = &index {
        builder = text_index::install(builder, index);
    }
    if items.is_some() {
        builder = declared::with_media(builder, &config.settings)?;
    }
    let hosts = ActiveHosts::default();
    if screen.has_progress() {
        builder = builder.observer(hosts.clone());
    }
    let mut directory = match sink {
        Sink::Directory(directory) => Some(directory),
        Sink::Stdout => None,
    };
    let built = match &directory {
        Some(directory) => {
            directory.attach(builder).map(|(builder, drops)| (builder, Some(drops))).map_err(Failure::from)
        }
        None if items.is_some() => Ok((builder.pipeline(StdoutItems::new()), None)),
        None => Ok((builder.pipeline(StdoutLines::new()), None)),
    };
    let built = built.and_then(|(builder, drops)| match (items, &directory) {
        (Some(items), Some(directory)) => Ok((items.attach(builder, directory)?, drops)),
        _ => Ok((builder, drops)),
    });
    let swept = built.and_then(|(builder, drops)| match (sweep, &directory) {
        (Some(sweep), Some(directory)) => {
            let has_job = directory.store() != Backend::Memory;
            Ok((sweep.install(builder, directory, has_job)?, drops))
        }
        _ => Ok((builder, drops)),
    });
    let built = swept.and_then(|(builder, drops)| Ok((builder.build()?, drops)));
    let begun = built.and_then(|built| {
        directory.as_mut().map_or(Ok(()), OutputDir::begin)?;
        Ok(built)
    });
    let (crawler, drops) = match begun {
        Ok(built) => built,
        Err(failure) => {
            if let Some(directory) = directory {
                directory.discard();
            }
            return Err(failure);
        }
    };

    let handle = crawler.handle();
    let learnt = crawler.component::<AvoidDup>();
    let recording = crawler.component::<Recording>();
    let interrupted = Interrupted::default();
    // All these tasks end when the set is dropped.
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(signals::watch(
        Signals::listen(),
        handle.clone(),
        interrupted.clone(),
        screen.clone(),
        drain,
    ));
    if time_limit > 0.0 {
        tasks.spawn(end_in_time(handle.clone(), seconds(time_limit)));
    }
    if let Some(metrics) = metrics {
        let (handle, log) = (handle.clone(), log.clone());
        tasks.spawn(metrics.serve_numbers(move || {
            let (handle, log) = (handle.clone(), log.clone());
            async move {
                let mut stats = handle.stats().snapshot();
                stats.extend(log.stats().map(|(key, number)| (key, number.into())));
                CrawlNumbers { stats, hosts: handle.hosts().await }
            }
        }));
    }
    if screen.has_progress() {
        tasks.spawn(show_progress(handle.clone(), hosts, screen.clone()));
    }
    let started = Instant::now();
    let result = crawler.run().await;
    // A missing record of a drop is as bad as a missing page.
    let recorded = drops.map_or(Ok(()), |drops| drops.finish());
    let mut result = result.and_then(|report| recorded.map(|()| report));
    if let Some(recording) = recording {
        result = result.and_then(|report| recording.finish().map(|()| report));
    }
    if let Some(index) = index {
        let closed = text_index::close(index, interrupted.get()).await;
        result = result.and_then(|report| closed.map(|()| report));
    }
    tasks.shutdown().await;
    screen.clear();

    let report = match result {
        Ok(report) => Report::of(report, &log),
        Err(error) => {
            let closed = error
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| directory.is_none() && error.kind() == std::io::ErrorKind::BrokenPipe);
            let message =
                if closed { "stdout was closed by its reader".to_owned() } else { error.to_string() };
            let (elapsed, seed) = (started.elapsed().as_secs_f64(), handle.context().seed());
            let report = Report::of_failure(message, elapsed, seed, handle.stats().snapshot(), &log);
            Report { losses: handle.context().losses(), ..report }
        }
    };
    let mut ended = Ended { report, interrupted: interrupted.get(), directory };
    if let Some(learnt) = learnt.as_deref().and_then(LearntRules::of) {
        ended.report.avoid_dup = Some(learnt.report);
        let canonical = learnt.canonical.map(String::into_bytes);
        let files = [(RULES, Some(learnt.rules)), (CANONICAL, canonical)];
        for (name, text) in files.into_iter().filter_map(|(name, text)| Some((name, text?))) {
            if let Some(directory) = &ended.directory
                && let Err(error) = directory.write(name, &text)
            {
                warn(&format!("{name} could not be written: {error}"));
            }
        }
    }
    if let (Some(url), Some(learnt)) = (&explain, &learnt) {
        let believed = learnt.explain(url);
        let believed = believed.unwrap_or_else(|| "nothing that was fetched is akin to it".to_owned());
        eprintln!("{}: {}", escape(url.as_str()), escape(&believed));
    }
    Ok(CompletedCrawl(ended))
}

/// Writes the report into the directory.
fn finish(ended: &mut Ended) -> Outcome<()> {
    let state = ended.state();
    let text = ended.report.to_json()?;
    let Some(directory) = &mut ended.directory else { return Ok(()) };
    let written = directory.finish(state, &ended.report.finish_reason, ended.report.pages, &text);
    match (written, &ended.report.error) {
        (Ok(()), _) => Ok(()),
        // On a full disk the report cannot be written either; the first error is the one to report.
        (Err(_), Some(_)) => Ok(()),
        (Err(error), None) => {
            let path = escape(&directory.path().to_string_lossy()).into_owned();
            Err(Failure::crawl(format!("writing the report into {path}: {error}")))
        }
    }
}

/// The time limit stops the crawl by itself. This ends requests that are still in flight after that; a silent server
/// could delay them for as long as a stop by hand allows.
async fn end_in_time(handle: Handle, limit: Duration) {
    const GRACE: Duration = Duration::from_secs(1);
    tokio::time::sleep(limit + GRACE).await;
    handle.abort();
    std::future::pending::<()>().await;
}

async fn show_progress(handle: Handle, hosts: ActiveHosts, screen: Screen) {
    let started = tokio::time::Instant::now();
    let mut rate = Rate::default();
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        ticks.tick().await;
        let stats = handle.stats();
        let number = |key: &str| u64::try_from(stats.get(key)).unwrap_or(0);
        let pages = number("pages/delivered");
        screen.update(&Progress {
            pages,
            rate: rate.sample(started.elapsed(), pages),
            queued: number("scheduler/enqueued").saturating_sub(number("scheduler/dequeued")),
            hosts: hosts.count(),
            failed: number("drops/failed"),
            bytes: number("engine/wire_bytes"),
        });
    }
}

/// The hosts that got a request in the last seconds.
#[derive(Clone, Debug, Default)]
struct ActiveHosts(Arc<Mutex<HashMap<HostKey, Instant>>>);

/// How long a host counts as active after a request.
const ACTIVE: Duration = Duration::from_secs(5);

impl ActiveHosts {
    fn count(&self) -> u64 {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, last| last.elapsed() < ACTIVE);
        hosts.len() as u64
    }
}

impl Observer for ActiveHosts {
    fn event(&self, event: &Event<'_>) {
        if let Event::RequestReachedDownloader { request } = event {
            let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.insert(request.host(), Instant::now());
        }
    }
}
