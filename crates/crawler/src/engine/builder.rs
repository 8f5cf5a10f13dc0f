//! The builder: collects components, resolves settings, and sorts the chains.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use huntsman_store::Durability;
use serde_json::Value;

use super::assembly::{AssembledComponents, ComponentInfo, Registered, assemble, listed, usual_places};
use super::commits::Commits;
use super::crawler::Crawler;
use crate::component::Component;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::event::Observer;
use crate::fetch::{Downloader, DynDownloader};
use crate::frontier::{DiskFrontier, DiskLimits, DynFrontier, Frontier, MemoryFrontier};
use crate::job::{Job, Persist};
use crate::log;
use crate::logging::{Log, LogCount};
use crate::middleware::{DownloaderMiddleware, SpiderMiddleware};
use crate::pace::Pace;
use crate::pipeline::{ConcurrentPipeline, Pipeline, Pipelines, Stage};
use crate::plugin::Plugin;
use crate::report::CrawlReport;
use crate::settings::{JobSync, Layer, Layers, Profile, Settings, SettingsGroup, SettingsTable};
use crate::spider::Spider;
use crate::stats::Stats;

/// Creates a part of the crawl when the settings are known.
pub(crate) type Factory<T> = Box<dyn FnOnce(&Settings) -> Result<T> + Send>;

/// Builds a crawler. Methods take and return `self`; [`CrawlerBuilder::build`] reports all errors.
pub struct CrawlerBuilder<S: Spider> {
    pub(crate) spider: S,
    pub(crate) layers: Layers,
    pub(crate) error: Option<Error>,
    pub(crate) downloader: Option<Factory<Box<dyn DynDownloader>>>,
    pub(crate) frontier: Option<Box<dyn DynFrontier>>,
    pub(crate) registered: Vec<Registered>,
    pub(crate) table: SettingsTable,
    pub(crate) pipelines: Vec<Stage<S::Item>>,
    /// The types of the pipelines.
    pub(crate) pipeline_types: Vec<TypeId>,
    /// Whether one of the pipelines keeps items.
    pub(crate) keeps_items: bool,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) pace: Option<Pace>,
    pub(crate) job: Option<Job>,
    pub(crate) parts: Vec<Box<dyn Persist>>,
    pub(crate) logs: bool,
    pub(crate) log_count: Option<LogCount>,
    pub(crate) takes_signals: bool,
    /// Whether the settings of the spider are among the layers already.
    pub(crate) has_spider_settings: bool,
}

impl<S: Spider> CrawlerBuilder<S> {
    /// A builder for a spider, without middlewares, with the memory frontier.
    pub fn new(spider: S) -> Self {
        Self {
            spider,
            layers: Layers::default(),
            error: None,
            downloader: None,
            frontier: None,
            registered: Vec::new(),
            table: SettingsTable::default(),
            pipelines: Vec::new(),
            pipeline_types: Vec::new(),
            keeps_items: false,
            observers: Vec::new(),
            pace: None,
            job: None,
            parts: Vec::new(),
            logs: false,
            log_count: None,
            takes_signals: false,
            has_spider_settings: false,
        }
    }

    /// Sets one setting, in the layer of the program that builds the crawler.
    pub fn set(self, name: &str, value: impl Into<Value>) -> Self {
        self.set_in(Layer::Spider, name, value)
    }

    /// Sets one setting in a layer.
    pub fn set_in(mut self, layer: Layer, name: &str, value: impl Into<Value>) -> Self {
        self.layers.set(layer, name, value);
        self
    }

    /// Sets one argument of the spider, like `-a name=value` in Scrapy. Callbacks and components read it with
    /// [`Context::arg`]. If start requests depend on an argument, pass it to the spider's constructor instead.
    pub fn arg(self, name: &str, value: impl Into<String>) -> Self {
        let args = serde_json::Map::from_iter([(name.to_owned(), Value::String(value.into()))]);
        self.set_in(Layer::CommandLine, "spider_args", args)
    }

    /// Replaces all layers of settings.
    pub fn layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Makes what the program and the spider have set so far defaults: values of the settings file take precedence over them
    /// ([`Layer::SpiderDefaults`]). For programs that others configure by a file.
    pub fn as_defaults(mut self) -> Self {
        self.take_spider_settings();
        self.layers.relabel(Layer::Spider, Layer::SpiderDefaults);
        self
    }

    /// The values that were set so far, by layer.
    pub fn given_layers(&self) -> &Layers {
        &self.layers
    }

    /// Adds the settings of the spider, which has them once.
    fn take_spider_settings(&mut self) {
        if !std::mem::replace(&mut self.has_spider_settings, true) {
            for (name, value) in self.spider.settings() {
                self.layers.set(Layer::Spider, name, value);
            }
        }
    }

    /// The same crawl with a spider that is made of this one, such as a wrapper around it. Pipelines are left out, because the items may
    /// have another type.
    pub fn map_spider<T: Spider>(mut self, make: impl FnOnce(S) -> T) -> CrawlerBuilder<T> {
        self.take_spider_settings();
        CrawlerBuilder {
            spider: make(self.spider),
            layers: self.layers,
            error: self.error,
            downloader: self.downloader,
            frontier: self.frontier,
            registered: self.registered,
            table: self.table,
            pipelines: Vec::new(),
            pipeline_types: Vec::new(),
            keeps_items: false,
            observers: self.observers,
            pace: self.pace,
            job: self.job,
            parts: self.parts,
            logs: self.logs,
            log_count: self.log_count,
            takes_signals: self.takes_signals,
            has_spider_settings: true,
        }
    }

    /// Like [`map_spider`](Self::map_spider), for a spider with the same items: the pipelines stay.
    pub fn wrap_spider<T: Spider<Item = S::Item>>(mut self, make: impl FnOnce(S) -> T) -> CrawlerBuilder<T> {
        let pipelines = std::mem::take(&mut self.pipelines);
        let pipeline_types = std::mem::take(&mut self.pipeline_types);
        let keeps_items = self.keeps_items;
        CrawlerBuilder { pipelines, pipeline_types, keeps_items, ..self.map_spider(make) }
    }

    /// The spider.
    pub fn spider(&self) -> &S {
        &self.spider
    }

    /// Whether a pipeline was added that [keeps items](Pipeline::keeps_items).
    pub fn keeps_items(&self) -> bool {
        self.keeps_items
    }

    /// Whether a pipeline of this type was added.
    pub fn has_pipeline<P: 'static>(&self) -> bool {
        self.pipeline_types.contains(&TypeId::of::<P>())
    }

    /// Uses the values of a profile, a named set of settings.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.layers.set_profile(profile);
        self
    }

    /// Sets the time between the starts of two requests of one slot (`download_delay`).
    pub fn delay(self, delay: Duration) -> Self {
        self.set("download_delay", delay.as_secs_f64())
    }

    /// Sets the limit of downloads in flight per slot (`concurrent_requests_per_domain`).
    pub fn per_host(self, requests: usize) -> Self {
        self.set("concurrent_requests_per_domain", requests)
    }

    /// Sets the limit of downloads in flight in the whole crawl (`concurrent_requests`).
    pub fn concurrency(self, requests: usize) -> Self {
        self.set("concurrent_requests", requests)
    }

    /// Adds a component that is created from the settings. If the function returns `None` the component is left out,
    /// but its settings remain known. A component of the same name that was added before is replaced.
    pub fn component<C: Component>(
        mut self,
        make: impl FnOnce(&Settings) -> Result<Option<C>> + Send + 'static,
    ) -> Self {
        Registered::component(make).replace_in(&mut self.registered);
        self.declare::<C::Settings>(Some(C::NAME))
    }

    /// Declares settings that are not read by a component but by a pipeline or a spider.
    pub fn with_settings<G: SettingsGroup>(self) -> Self {
        self.declare::<G>(None)
    }

    fn declare<G: SettingsGroup>(mut self, component: Option<&'static str>) -> Self {
        let twice = G::TABLE.iter().find(|info| self.table.get(info.name).is_some());
        if let Some(twice) = twice.filter(|_| !self.table.has::<G>()) {
            let what = format!("setting {}: two components of the crawl declare it", twice.name);
            self.error.get_or_insert(Error::usage(what));
        }
        self.table.add::<G>(component);
        self
    }

    /// The settings that are known: the engine's, and those of the components added so far.
    pub fn settings_table(&self) -> &SettingsTable {
        &self.table
    }

    /// The downloader middlewares and the spider middlewares added so far, with the places that they have unless a
    /// setting moves them, in their order.
    pub fn components(&self) -> (Vec<ComponentInfo>, Vec<ComponentInfo>) {
        usual_places(&self.registered)
    }

    /// Adds a downloader middleware.
    pub fn middleware<M: DownloaderMiddleware>(mut self, middleware: M) -> Self {
        self.registered.push(Registered::downloader(middleware));
        self
    }

    /// Adds a spider middleware.
    pub fn spider_middleware<M: SpiderMiddleware>(mut self, middleware: M) -> Self {
        self.registered.push(Registered::spider(middleware));
        self
    }

    /// Adds a pipeline; pipelines run in the order in which they were added.
    pub fn pipeline<P: Pipeline<S::Item>>(mut self, pipeline: P) -> Self {
        self.pipeline_types.push(TypeId::of::<P>());
        self.keeps_items |= pipeline.keeps_items();
        self.pipelines.push(Stage::serial(pipeline));
        self
    }

    /// Adds a pipeline that works on many items at once. It has its place in the order like any other.
    pub fn concurrent_pipeline<P: ConcurrentPipeline<S::Item>>(mut self, pipeline: P) -> Self {
        self.pipeline_types.push(TypeId::of::<P>());
        self.keeps_items |= pipeline.keeps_items();
        self.pipelines.push(Stage::concurrent(pipeline));
        self
    }

    /// Adds an observer of events.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Shares the politeness towards each host with other crawls of the process that have a clone of this pace.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Installs a plugin, which adds several parts at once. Values of settings that it sets are those of an add-on ([`Layer::AddOn`]): the
    /// settings file, the spider and all that comes after them take precedence.
    pub fn plugin(mut self, plugin: impl Plugin) -> Self {
        let own = std::mem::take(&mut self.layers);
        let mut builder = plugin.install(self);
        builder.layers.relabel(Layer::Spider, Layer::AddOn);
        let added = std::mem::replace(&mut builder.layers, own);
        builder.layers.extend(added);
        builder
    }

    /// Uses this downloader instead of the HTTP client.
    pub fn downloader(self, downloader: impl Downloader) -> Self {
        self.downloader_with(move |_| Ok(downloader))
    }

    /// Uses a downloader that is created from the settings.
    pub fn downloader_with<D: Downloader>(
        mut self,
        make: impl FnOnce(&Settings) -> Result<D> + Send + 'static,
    ) -> Self {
        self.downloader = Some(Box::new(move |settings| Ok(Box::new(make(settings)?) as _)));
        self
    }

    /// Uses this frontier for the queue and the seen set, instead of the one in memory.
    pub fn frontier(mut self, frontier: impl Frontier) -> Self {
        self.frontier = Some(Box::new(frontier));
        self
    }

    /// Stores the state of the crawl in a job, and continues where an earlier crawl of the job ended. The job
    /// replaces any other frontier.
    pub fn job(mut self, job: Job) -> Self {
        self.job = Some(job);
        self
    }

    /// Stores the state of a part of the crawl in the job, if there is one.
    pub fn persist(mut self, part: impl Persist) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    /// Starts the log of the process, as configured by `log_level`, `log_format` and `log_file`, when the crawler is
    /// built. A log that the program installed before stays in place, and a warning is logged there.
    ///
    /// Without this call a crawl prints nothing: it only emits events of the `tracing` crate. If `log_file` is set and the program has no
    /// log, the log goes to that file all the same.
    pub fn with_logging(mut self) -> Self {
        self.logs = true;
        self
    }

    /// Adds the counts of a log that the program started to the stats of the crawl when it ends, as `log_count/{LEVEL}`. A log of
    /// [`with_logging`](Self::with_logging) is counted without this.
    pub fn log_count(mut self, count: LogCount) -> Self {
        self.log_count = Some(count);
        self
    }

    /// Makes SIGINT and SIGTERM (Ctrl-C) stop the crawl gently: requests in flight may end within `drain_timeout`,
    /// feeds are closed, and the report has the finish reason `shutdown`. A second signal aborts the crawl.
    ///
    /// From then on these signals do not end the process by themselves: it ends when the program does.
    pub fn with_signals(mut self) -> Self {
        self.takes_signals = true;
        self
    }

    /// Creates the components from the settings, sorts their hooks, and returns the crawler that is ready to run.
    ///
    /// # Errors
    /// A setting is unknown or invalid, there is no downloader, or a component cannot be created; the error names it.
    pub fn build(mut self) -> Result<Crawler> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.take_spider_settings();
        let settings = self.layers.resolve(&self.table)?;
        // A program that names a file wants a log in it. A log that the program has installed stays as it is.
        if self.logs || (settings.log_file.is_some() && !log::tracing::dispatcher::has_been_set()) {
            let started = Log::new().start(&settings)?;
            if !started.is_installed {
                log::warn!(
                    "a log is installed already: log_level, log_format and log_file of this crawl have no effect"
                );
            } else if self.log_count.is_none() {
                self.log_count = Some(started.count);
            }
        }
        let make = self.downloader.ok_or_else(|| Error::usage("the crawler has no downloader"))?;
        let downloader = make(&settings)?;
        let order = settings.scheduler_order;
        let frontier = self.frontier.unwrap_or_else(|| Box::new(MemoryFrontier::new(order)));
        let AssembledComponents {
            downloader_chain,
            spider_chain,
            observers,
            parts,
            at_end,
            hand_over,
            needs,
            components,
            infos,
        } = assemble(self.registered, &settings)?;
        self.observers.extend(observers);
        self.parts.extend(parts);
        log::debug!(downloader = listed(&infos.0), spider = listed(&infos.1), "components");
        let limits = DiskLimits { requests: settings.frontier_memory_limit.max(1), ..DiskLimits::default() };
        let durability = match settings.job_sync {
            JobSync::Process => Durability::Process,
            JobSync::Full => Durability::Full,
        };
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        let cx = Context::new(settings, Stats::default(), self.observers, components, Some(sender));
        let (frontier, job) = match self.job {
            None => (frontier, None),
            Some(job) => {
                let disk = DiskFrontier::open_for_job(job.store(), order, limits, durability)
                    .map_err(|error| error.context("resuming: the queue"))?;
                self.parts.push(Box::new(PersistedStats(cx.stats().clone())));
                self.parts.push(Box::new(cx.state().clone()));
                self.parts.push(Box::new(cx.durable_files().clone()));
                let commits = Commits::load(job.store(), disk.clone(), self.parts)?;
                (Box::new(disk) as _, Some((job, Arc::new(commits))))
            }
        };
        Ok(Crawler {
            cx,
            messages,
            spider: Box::new(self.spider),
            downloader,
            frontier,
            downloader_chain,
            spider_chain,
            page_needs: needs,
            pipelines: Box::new(Pipelines::new(self.pipelines)),
            pace: self.pace,
            job,
            takes_signals: self.takes_signals,
            log_count: self.log_count,
            at_end,
            hand_over,
            infos,
        })
    }

    /// Builds the crawler, runs it to its end, and returns the report.
    ///
    /// # Errors
    /// As [`CrawlerBuilder::build`] and [`Crawler::run`].
    pub async fn run(self) -> Result<CrawlReport> {
        self.build()?.run().await
    }

    /// Marks everything added so far as built-in: among components of equal order, built-in ones run first.
    pub fn mark_built_in(mut self) -> Self {
        self.registered.iter_mut().for_each(|component| component.is_built_in = true);
        self
    }
}

/// Continues the counters of the crawl from the job.
struct PersistedStats(Stats);

impl Persist for PersistedStats {
    fn name(&self) -> String {
        "stats".to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let Some(state) = state else { return Ok(()) };
        let counters: BTreeMap<String, i64> = serde_json::from_slice(state)?;
        counters.into_iter().for_each(|(key, count)| self.0.counter(&key).set(count));
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        let counters: BTreeMap<String, i64> = self.0.counters();
        Ok(Some(serde_json::to_vec(&counters)?))
    }
}

impl<S: Spider> std::fmt::Debug for CrawlerBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrawlerBuilder").field("spider", &self.spider.name()).finish_non_exhaustive()
    }
}
