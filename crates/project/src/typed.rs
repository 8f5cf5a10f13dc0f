//! A spider of a program without its type, so that the commands are compiled once.

use std::sync::{Arc, Mutex};

use huntsman_crawler::{Crawler, CrawlerBuilder, Layers, Request, Result, Settings, SettingsTable, Spider};
use huntsman_middleware::sinks::{DropLog, FeedStart};
use huntsman_middleware::{ItemCheckSettings, ItemChecks};
use huntsman_output::{ITEMS, OutputDir};
use serde::Serialize;

use crate::arguments::Arguments;
use crate::command::attended::Attendance;
use crate::command::exit::Outcome;
use crate::command::stdout::StdoutLines;
use crate::feeds::FeedFile;
use crate::parse::{OnePage, Parsed};

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

    /// A crawl of one page, which keeps what its callback gives.
    fn one_page(
        self: Box<Self>,
        request: Request,
        layers: Layers,
        arguments: &Arguments,
    ) -> Result<(Crawler, Arc<Mutex<Option<Parsed>>>)>;
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
        let Wiring { spider, layers, settings, arguments, mut feeds, directory, attendance } = wiring;
        let mut builder = attendance.observe(with_arguments(self.0, layers, arguments));
        // A spider with pipelines of its own has put its items somewhere already.
        let needs_feed = feeds.is_empty() && !builder.has_pipelines();
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
                feeds.push(FeedFile { path: directory.file(ITEMS), start });
            }
        } else if needs_feed {
            builder = builder.pipeline(StdoutLines::new());
        }
        for feed in &feeds {
            builder = feed.attach(builder, spider)?;
        }
        Ok((builder.build()?, drops))
    }

    fn one_page(
        self: Box<Self>,
        request: Request,
        layers: Layers,
        arguments: &Arguments,
    ) -> Result<(Crawler, Arc<Mutex<Option<Parsed>>>)> {
        let parsed = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&parsed);
        let builder = with_arguments(self.0, layers, arguments);
        let builder = builder.map_spider(|spider| OnePage::new(spider, request, keep));
        Ok((builder.build()?, parsed))
    }
}
