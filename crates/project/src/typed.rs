//! A spider of a program without its type, so that the commands are compiled once.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{
    Context, CrawlClient, Crawler, CrawlerBuilder, Error, Layers, OnDemand, Output, Pace, Page, Result,
    Settings, SettingsTable, Spider,
};
use huntsman_middleware::sinks::{DropLog, FeedStart};
use huntsman_middleware::{Expectation, Fixture, Given, ItemCheckSettings, ItemChecks};
use huntsman_output::{ITEMS, OutputDir};
use serde::Serialize;

use crate::arguments::Arguments;
use crate::command::attended::Attendance;
use crate::command::exit::Outcome;
use crate::command::stdout::StdoutLines;
use crate::feeds::FeedFile;
use crate::parse::{Parsed, Passed, Sample, SampleSpider};

/// What the callback of a spider gives for a page.
pub(crate) type Callback = Box<dyn Fn(&Page) -> Result<Expectation>>;

/// A crawl of a spider, before its settings are known.
pub(crate) trait AnyCrawl {
    /// The settings that it has.
    fn table(&self) -> SettingsTable;

    /// What the program and the spider set.
    fn layers(&self) -> Layers;

    /// The domains of its spider.
    fn allowed_domains(&self) -> Vec<String>;

    /// The crawl with its settings and everything that the command adds.
    fn build(self: Box<Self>, wiring: Wiring<'_>) -> Outcome<(Crawler, Option<DropLog>)>;

    /// A crawl of one page, or of a few, which keeps what callbacks give.
    fn sample(
        self: Box<Self>,
        sample: Sample,
        layers: Layers,
        arguments: &Arguments,
    ) -> Result<(Crawler, Arc<Mutex<Parsed>>)>;

    /// What the callback of the spider gives for a stored page within this time.
    fn parse(self: Box<Self>, fixture: Fixture, limit: Duration) -> Result<Expectation>;

    /// A client with everything that the crawl has, and the callback of its spider.
    fn client(self: Box<Self>, layers: Layers, arguments: &Arguments) -> Result<(CrawlClient, Callback)>;
}

/// What a command adds to a crawl.
pub(crate) struct Wiring<'a> {
    pub(crate) spider: &'a str,
    pub(crate) layers: Layers,
    pub(crate) settings: &'a Settings,
    pub(crate) arguments: &'a Arguments,
    pub(crate) feeds: Vec<FeedFile>,
    pub(crate) directory: Option<&'a OutputDir>,
    pub(crate) attendance: &'a Attendance,
    /// The politeness that it shares with other crawls of the process.
    pub(crate) pace: Pace,
}

pub(crate) struct Typed<S: Spider>(CrawlerBuilder<S>);

impl<S: Spider> Typed<S> {
    pub(crate) fn new(builder: CrawlerBuilder<S>) -> Self {
        Self(builder.as_defaults())
    }
}

fn with_arguments<S: Spider>(
    builder: CrawlerBuilder<S>,
    layers: Layers,
    arguments: &Arguments,
) -> CrawlerBuilder<S> {
    arguments.all().fold(builder.layers(layers), |builder, (name, value)| builder.arg(name, value))
}

impl<S: Spider<Item: Serialize>> AnyCrawl for Typed<S> {
    fn table(&self) -> SettingsTable {
        self.0.settings_table().clone()
    }

    fn layers(&self) -> Layers {
        self.0.given_layers().clone()
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.0.spider().allowed_domains()
    }

    fn build(self: Box<Self>, wiring: Wiring<'_>) -> Outcome<(Crawler, Option<DropLog>)> {
        let Wiring { spider, layers, settings, arguments, mut feeds, directory, attendance, pace } = wiring;
        let mut builder = attendance.observe(with_arguments(self.0, layers, arguments)).pace(pace);
        // A spider with a pipeline of its own that keeps items has put them somewhere already.
        let needs_feed = feeds.is_empty() && !builder.keeps_items();
        // A program without the built-in components has none of their settings.
        let has_settings = builder.settings_table().has::<ItemCheckSettings>();
        if has_settings
            && !builder.has_pipeline::<ItemChecks>()
            && let Some(checks) = ItemChecks::of_settings(settings)?
        {
            builder = builder.pipeline(checks);
        }
        let mut drops = None;
        if let Some(directory) = directory {
            let (attached, log) = directory.attach_job(builder)?;
            (builder, drops) = (attached, Some(log));
            if needs_feed {
                let has_job = directory.store() != huntsman_crawler::Backend::Memory;
                let start = if has_job { FeedStart::OfJob } else { FeedStart::Overwrite };
                feeds.push(FeedFile { path: directory.file(ITEMS), start, named_by: "--out" });
            }
        } else if needs_feed {
            builder = builder.pipeline(StdoutLines::new());
        }
        for feed in &feeds {
            builder = feed.attach(builder, spider)?;
        }
        Ok((builder.build()?, drops))
    }

    fn sample(
        self: Box<Self>,
        sample: Sample,
        layers: Layers,
        arguments: &Arguments,
    ) -> Result<(Crawler, Arc<Mutex<Parsed>>)> {
        let parsed: Arc<Mutex<Parsed>> = Arc::default();
        let keep = Arc::clone(&parsed);
        let builder = with_arguments(self.0, layers, arguments);
        let crawler = match sample.pipelines {
            true => {
                let passed = Passed(Arc::clone(&parsed));
                builder
                    .wrap_spider(|spider| SampleSpider::new(spider, sample, keep))
                    .pipeline(passed)
                    .build()?
            }
            false => builder.map_spider(|spider| SampleSpider::new(spider, sample, keep)).build()?,
        };
        Ok((crawler, parsed))
    }

    fn parse(self: Box<Self>, fixture: Fixture, limit: Duration) -> Result<Expectation> {
        let mut kept = None;
        drop(self.0.map_spider(|spider| {
            kept = Some(spider);
            OnDemand::new()
        }));
        let spider = kept.expect("the builder had a spider");
        let (sender, receiver) = mpsc::channel();
        // A callback cannot be stopped from outside: one that does not end has its thread until the process ends.
        std::thread::Builder::new().name("callback".to_owned()).spawn(move || {
            let _ = sender.send(fixture.parse(&spider).to_expectation());
        })?;
        receiver.recv_timeout(limit).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(Error::msg(format!(
                "the callback has not ended within {} s; --timeout gives it more",
                limit.as_secs_f64()
            ))),
            RecvTimeoutError::Disconnected => Err(Error::msg("the callback panicked")),
        })
    }

    fn client(self: Box<Self>, layers: Layers, arguments: &Arguments) -> Result<(CrawlClient, Callback)> {
        let mut kept = None;
        let builder = with_arguments(self.0, layers, arguments).map_spider(|spider| {
            kept = Some(spider);
            OnDemand::new()
        });
        let client = CrawlClient::start(builder)?;
        let settings = client.handle().context().settings().clone();
        let callback = move |page: &Page| {
            let mut out = Output::new(Context::detached(settings.clone()));
            let spider = kept.as_ref().expect("the builder had a spider");
            let error = spider.parse(page, &mut out).err();
            let (items, requests) = out.into_parts();
            Given { items, requests, error }.to_expectation()
        };
        Ok((client, Box::new(callback)))
    }
}
