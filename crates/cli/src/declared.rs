//! `crawl` of a spider file: its settings, its directory, and the files of its items.

use std::path::{Path, PathBuf};
use std::time::Duration;

use huntsman::middleware::sinks::{FeedSettings, FeedStart, NamedFeed};
use huntsman::middleware::{ConfigSources, ItemChecks, Media};
use huntsman::{
    Backend, ConcurrentPipeline, Context, CrawlerBuilder, DeclaredItem, DeclaredSpider, Event, OnItem,
    Pipeline, Result, Settings, Spider, log,
};
use serde_json::json;
use url::Url;

use crate::args::{Flags, SettingsArgs};
use crate::commands::SiteArgs;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::{ITEMS, OutputDir};
use crate::render::escape;
use crate::spider::PageRecord;

/// A spider file, and where its items go.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) spider: DeclaredSpider,
    pub(crate) items: Items,
}

/// Where the items go: into this file, or into those of the settings, or into that of the directory.
#[derive(Debug)]
pub(crate) struct Items {
    file: Option<PathBuf>,
    /// Whether a file that exists is overwritten.
    overwrites: bool,
}

/// The spider file among the arguments, if there is one; it is checked as a whole.
///
/// # Errors
/// Something in the file is wrong, or flags do not go together with it.
pub(crate) fn of(site: &SiteArgs, items: Items) -> Outcome<Option<Declared>> {
    let given = items.shown();
    let is_file = |text: &&String| text.ends_with(".toml") && !text.contains("://");
    let Some(path) = site.urls.iter().find(is_file) else {
        return match items.file {
            Some(_) => Err(Failure::usage(format!(
                "{given}: only a spider file has items; records of pages are in pages.jsonl of --out"
            ))),
            None => Ok(None),
        };
    };
    if site.urls.len() > 1 || site.seeds.is_some() {
        return Err(Failure::usage(format!(
            "{}: a spider file has its own start URLs; write them into `start` or `start_file`",
            escape(path)
        )));
    }
    if items.file.is_some() && site.output.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage(format!("{given}: with --out - items go to stdout")));
    }
    Ok(Some(Declared { spider: DeclaredSpider::load(path)?, items }))
}

impl Declared {
    /// The settings of the crawl, those of the file among them.
    ///
    /// # Errors
    /// A source of settings has an error.
    pub(crate) fn config(&self, args: &SettingsArgs, mut defaults: Flags, flags: Flags) -> Outcome<Config> {
        let mut sources = ConfigSources::from(args);
        sources.spider = self.spider.settings();
        let profile = self.spider.profile().map(|profile| profile.name().to_owned());
        sources.profile = sources.profile.or(profile);
        if !self.spider.allowed_domains().is_empty() {
            // The domains of the file say what belongs to the crawl.
            defaults.push(("scope", json!("all")));
        }
        Ok(Config::load(sources, defaults, flags)?)
    }

    /// The directory of the crawl if the user names none: two spiders of one site have two.
    pub(crate) fn default_dir(&self) -> PathBuf {
        let word = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
        let name: String = self.spider.name().trim_matches('.').chars().map(word).take(200).collect();
        PathBuf::from(format!("{name}-crawl"))
    }
}

impl Items {
    /// The file of `--items`, or that of `--overwrite-items`.
    pub(crate) fn of(items: Option<PathBuf>, overwritten: Option<PathBuf>) -> Self {
        Self { overwrites: overwritten.is_some(), file: overwritten.or(items) }
    }

    /// The flag that names the file, for messages.
    fn shown(&self) -> String {
        let flag = if self.overwrites { "--overwrite-items" } else { "--items" };
        let file = self.file.as_deref().unwrap_or(Path::new(ITEMS)).to_string_lossy();
        format!("{flag} {}", escape(&file))
    }

    /// Adds the feeds of the items of this spider to a crawl into a directory.
    ///
    /// # Errors
    /// The file cannot be written, or its format cannot be continued by a job.
    pub(crate) fn attach<S>(
        self,
        mut builder: CrawlerBuilder<S>,
        directory: &OutputDir,
        settings: &Settings,
        spider: &str,
    ) -> Outcome<CrawlerBuilder<S>>
    where
        S: Spider<Item = PageRecord>,
    {
        let has_job = directory.store() != Backend::Memory;
        let start = match (has_job, self.overwrites) {
            (true, true) => FeedStart::OfJobOverwrite,
            (true, false) => FeedStart::OfJob,
            (false, true) => FeedStart::Overwrite,
            (false, false) => FeedStart::Create,
        };
        let set = settings.of::<FeedSettings>()?.feeds;
        let shown = match set.is_empty() || self.file.is_some() {
            true => self.shown(),
            false => "setting feeds".to_owned(),
        };
        let is_named = self.file.is_some();
        let paths = match self.file {
            Some(file) => vec![file],
            None if set.is_empty() => vec![directory.file(ITEMS)],
            None => set.iter().map(|name| NamedFeed::<()>::within(directory.path(), name)).collect(),
        };
        let started = directory.started();
        let parameters = [("name", spider), ("time", started.get(..19).unwrap_or(started))];
        let open = |path: &Path| match has_job {
            true => NamedFeed::open(&NamedFeed::<()>::filled(path, parameters)?, start),
            false => {
                // Such a file is that of the crawl, and was not deleted with the others of an earlier one.
                let is_own = !is_named && path.starts_with(directory.path());
                let start = if is_own { FeedStart::Overwrite } else { start };
                NamedFeed::open(path, start).map(|(feed, position)| (feed.param("name", spider), position))
            }
        };
        let mut feeds = Vec::new();
        for path in paths {
            let (feed, position) = open(&path).map_err(|error| match error.is_usage() {
                true => Failure::usage(format!("{shown}: {}", escape(&error.to_string()))),
                false => error.into(),
            })?;
            builder = match position {
                Some(position) => builder.persist(position),
                None => builder,
            };
            feeds.push(feed);
        }
        Ok(builder.pipeline(ItemsFeeds(feeds)))
    }
}

/// Adds the pipelines that fetch the files and images of the items, if settings ask for them.
///
/// # Errors
/// The settings are not declared.
pub(crate) fn with_media<S>(builder: CrawlerBuilder<S>, settings: &Settings) -> Outcome<CrawlerBuilder<S>>
where
    S: Spider<Item = PageRecord>,
{
    let media = Media::of_settings(settings)?;
    Ok(media.into_iter().fold(builder, |builder, media| builder.concurrent_pipeline(ItemsMedia(media))))
}

/// Adds the checks of the items, if settings ask for them.
///
/// # Errors
/// The settings are not declared, or the schema of the items cannot be used.
pub(crate) fn with_checks<S>(builder: CrawlerBuilder<S>, settings: &Settings) -> Outcome<CrawlerBuilder<S>>
where
    S: Spider<Item = PageRecord>,
{
    let checks = ItemChecks::of_settings(settings)?;
    Ok(checks.into_iter().fold(builder, |builder, checks| builder.pipeline(ItemsChecked(checks))))
}

/// Checks the items that belong to the records of pages.
struct ItemsChecked(ItemChecks);

impl Pipeline<PageRecord> for ItemsChecked {
    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.0.prepare(cx)
    }

    async fn process_item(&mut self, mut record: PageRecord, cx: &Context) -> Result<OnItem<PageRecord>> {
        record.items.retain_mut(|item| {
            let is_kept = self.0.keeps(item, cx);
            if !is_kept {
                cx.stats().inc("item_dropped_count");
                cx.stats().inc("item_dropped_reasons_count/invalid");
                cx.emit(&Event::ItemDropped { reason: "invalid" });
            }
            is_kept
        });
        Ok(OnItem::Keep(record))
    }

    async fn close(&mut self) -> Result<()> {
        self.0.finish();
        Ok(())
    }
}

/// Fetches the files of the items that belong to the records of pages.
struct ItemsMedia(Media);

impl ConcurrentPipeline<PageRecord> for ItemsMedia {
    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.0.prepare(cx).await
    }

    /// No limit: each download has its own.
    fn timeout(&self, _: &Settings) -> Option<Duration> {
        None
    }

    async fn process_item(&self, mut record: PageRecord, cx: &Context) -> Result<OnItem<PageRecord>> {
        let page = Url::parse(&record.final_url).ok();
        for item in &mut record.items {
            self.0.fill(item, page.as_ref(), cx).await?;
        }
        Ok(OnItem::Keep(record))
    }

    async fn flush(&self) -> Result<()> {
        self.0.verify()
    }
}

/// Feeds of the items that belong to the records of pages.
struct ItemsFeeds(Vec<NamedFeed<DeclaredItem>>);

impl ItemsFeeds {
    async fn write(&mut self, mut item: DeclaredItem, cx: &Context) -> Result<()> {
        for feed in &mut self.0 {
            match feed.process_item(item, cx).await? {
                OnItem::Keep(kept) => item = kept,
                OnItem::Drop(_) => break,
            }
        }
        Ok(())
    }
}

impl Pipeline<PageRecord> for ItemsFeeds {
    /// No limit: an item may begin a new file, and the last one is then completed.
    fn timeout(&self, _: &Settings) -> Option<Duration> {
        None
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        // Rules of quality about the number of items mean these, also if there is none.
        cx.stats().counter("items/written");
        for feed in &mut self.0 {
            feed.open(cx).await?;
        }
        Ok(())
    }

    async fn process_item(&mut self, mut record: PageRecord, cx: &Context) -> Result<OnItem<PageRecord>> {
        for mut item in std::mem::take(&mut record.items) {
            if let Some(work) = &record.work {
                // What the file says about the page goes before.
                item.entry("work").or_insert_with(|| work.name().to_string().into());
                item.entry("epoch").or_insert_with(|| work.epoch.into());
            }
            // A file that cannot be written fails again when it is flushed; an item that has no form in its format costs no other.
            match self.write(item, cx).await {
                Ok(()) => cx.stats().inc("items/written"),
                Err(error) => {
                    cx.stats().inc("item_error_count");
                    log::error!(url = %record.url, "{error}");
                }
            }
        }
        Ok(OnItem::Keep(record))
    }

    async fn flush(&mut self) -> Result<()> {
        for feed in &mut self.0 {
            feed.flush().await?;
        }
        Ok(())
    }

    /// All of them are completed, whatever happens to one.
    async fn close(&mut self) -> Result<()> {
        let mut closed = Ok(());
        for feed in &mut self.0 {
            closed = closed.and(feed.close().await);
        }
        closed
    }
}
