//! Runs one crawl from its start to its report; `crawl`, `demo` and `bench` share this code.

use huntsman::logging::LogCount;
use huntsman::middleware::{AvoidDup, Defaults, ItemChecks, OnlyUrls, RobotsSitemaps};
use huntsman::output::{Report, html_report};
use huntsman::serve::MetricsServer;
use huntsman::sweep::Copyvio;
use huntsman::{
    Backend, Crawler, CrawlerBuilder, Downloader, FetchError, FetchErrorKind, HttpDownloader, Request,
    Response, Sitemaps, Spider, Start, StartUrls,
};
use url::Url;

use crate::command::attended::{Attendance, Ended, Ready};
use crate::command::control::ControlServer;
use crate::command::stdout::StdoutLines;
use crate::config::Config;
use crate::declared::{self, Declared};
use crate::exit::{Failure, Outcome};
use crate::output::{HTML_REPORT, OutputDir};
use crate::progress::Screen;
use crate::render::escape;
use crate::sink::StdoutItems;
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
    /// The control, if the settings ask for it.
    pub(crate) control: Option<ControlServer>,
    pub(crate) screen: Screen,
    pub(crate) log: LogCount,
    /// URLs for which the crawl explains at its end what the AvoidDup model predicts.
    pub(crate) explain: Vec<Url>,
    /// Compares pages with an article, if set.
    pub(crate) copyvio: Option<Copyvio>,
    /// Checks the pages as articles, if set.
    pub(crate) sweep: Option<Sweeping>,
    /// The text index that gets the text of every page, if set.
    pub(crate) index: Option<TextIndex>,
    /// The spider of a file, which says what links and items are.
    pub(crate) declared: Option<Declared>,
    /// The queue that other nodes share, if there is one.
    #[cfg(feature = "cluster")]
    pub(crate) frontier: Option<crate::cluster::Joined>,
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
        ended.finish()?;
        Ok(ended)
    }
}

/// Builds the crawler from the settings without running it, so that settings which a component rejects are reported
/// before anything is done.
///
/// # Errors
/// A component rejects its settings.
pub(crate) fn check(config: &Config) -> Outcome<Crawler> {
    // A schema of items that cannot be used is told before anything is written.
    ItemChecks::of_settings(&config.settings)?;
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
        control,
        screen,
        log,
        explain,
        copyvio,
        sweep,
        index,
        declared,
        #[cfg(feature = "cluster")]
        frontier,
    } = job;
    // Sitemaps are needed even without the flag: the queue of an earlier run may hold some.
    let site = SiteSpider::new(seeds.into_start(), text, follow)
        .articles(sweep.as_ref().map(|sweep| sweep.min_words));
    let (site, sitemap_urls, items) = match declared {
        Some(Declared { spider, items }) => {
            let (sitemaps, name) = (spider.sitemap_urls().to_vec(), spider.name().to_owned());
            (site.declared(spider), sitemaps, Some((items, name)))
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
    #[cfg(feature = "cluster")]
    if let Some(frontier) = frontier {
        builder = frontier.attach(builder);
    }
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
        builder = declared::with_checks(builder, &config.settings)?;
    }
    let attendance = Attendance::new(screen, log, metrics).with_control(control);
    builder = attendance.observe(builder);
    let directory = match sink {
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
        (Some((items, name)), Some(directory)) => {
            Ok((items.attach(builder, directory, &config.settings, &name)?, drops))
        }
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
    let ready = Ready::begin(built, directory)?;
    let learnt = ready.crawler.component::<AvoidDup>();
    let ended = attendance
        .run(ready, async |interrupted| match index {
            Some(index) => text_index::close(index, interrupted).await,
            None => Ok(()),
        })
        .await;
    if let Some(learnt) = &learnt {
        for url in &explain {
            let believed = learnt.explain(url);
            let believed = believed.unwrap_or_else(|| "nothing that was fetched is akin to it".to_owned());
            eprintln!("{}: {}", escape(url.as_str()), escape(&believed));
        }
    }
    Ok(CompletedCrawl(ended))
}
