//! A crawler that is ready to run: it opens the components, runs the loop, closes the components, and returns the
//! report.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use super::assembly::{ComponentInfo, Ordered};
use super::chain::Chain;
use super::commits::Commits;
use super::core::{Core, Counters};
use super::gate::Gate;
use super::handle::Handle as CrawlHandle;
use super::inline::Inline;
use super::items::{self, Items};
use super::known_links::KnownLinks;
use super::release_counts::ReleaseCounts;
use super::run::{LoopResult, Run};
use super::send::Sender;
use super::tasks;
use super::watch;
use crate::active::ActiveBytes;
use crate::at_end::{self, CrawlEnd, DynAtEnd};
use crate::component::{Component, PageNeeds};
use crate::context::{Context, Exchange, Message};
use crate::dyn_spider::DynSpider;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::fetch::DynDownloader;
use crate::frontier::DynFrontier;
use crate::hand_over::HandOver;
use crate::job::Job;
use crate::log;
use crate::logging::LogCount;
use crate::middleware::{DynDownloaderMiddleware, SpiderMiddleware};
use crate::pace::Pace;
use crate::pipeline::DynPipelines;
use crate::report::CrawlReport;
use crate::request::Fingerprinter;
use crate::signals::{Signals, StopMode};

/// An assembled and checked crawl. Created by [`CrawlerBuilder::build`](crate::CrawlerBuilder::build).
pub struct Crawler {
    pub(crate) cx: Context,
    pub(crate) messages: mpsc::UnboundedReceiver<Message>,
    pub(crate) spider: Box<dyn DynSpider>,
    pub(crate) downloader: Box<dyn DynDownloader>,
    pub(crate) frontier: Box<dyn DynFrontier>,
    pub(crate) downloader_chain: Vec<Ordered<Arc<dyn DynDownloaderMiddleware>>>,
    pub(crate) spider_chain: Vec<Ordered<Arc<dyn SpiderMiddleware>>>,
    pub(crate) page_needs: PageNeeds,
    pub(crate) pipelines: Box<dyn DynPipelines>,
    pub(crate) pace: Option<Pace>,
    pub(crate) job: Option<(Job, Arc<Commits>)>,
    pub(crate) takes_signals: bool,
    pub(crate) log_count: Option<LogCount>,
    pub(crate) at_end: Vec<Arc<dyn DynAtEnd>>,
    pub(crate) hand_over: Vec<Arc<dyn HandOver>>,
    pub(crate) infos: (Vec<ComponentInfo>, Vec<ComponentInfo>),
}

impl Crawler {
    /// The handle that controls the crawl from outside.
    pub fn handle(&self) -> CrawlHandle {
        CrawlHandle::new(self.cx.clone())
    }

    /// The downloader and spider middlewares with their places in the chains.
    pub fn components(&self) -> (&[ComponentInfo], &[ComponentInfo]) {
        (&self.infos.0, &self.infos.1)
    }

    /// A component of the crawl by its type; `None` if it is not configured.
    pub fn component<C: Component>(&self) -> Option<Arc<C>> {
        self.cx.component()
    }

    /// Crawls until no requests are left, a limit is reached, or the crawl is stopped.
    ///
    /// # Errors
    /// A component could not be opened, the frontier failed, or a sink could not write. Failed pages are not errors.
    pub async fn run(mut self) -> Result<CrawlReport> {
        let _steered = self.takes_signals.then(|| {
            let (signals, handle) = (Signals::listen(), self.handle());
            HelperTask(tokio::spawn(async move { signals.stop_on_signals(&handle, log_signal).await }))
        });
        let parts = std::mem::take(&mut self.at_end);
        let (cx, spider) = (self.cx.clone(), self.spider.name().to_owned());
        // Run on a worker of the runtime, not on the thread that blocks on it, so that messages stay on one thread.
        let result = match tokio::spawn(self.crawl()).await {
            Ok(report) => report,
            Err(cause) => Err(Error::from(cause).context("the engine panicked")),
        };
        let mut end = CrawlEnd { spider, result };
        at_end::act(&parts, &mut end, &cx).await;
        end.result
    }

    async fn crawl(self) -> Result<CrawlReport> {
        let Self {
            cx,
            messages,
            spider,
            downloader,
            frontier,
            downloader_chain,
            spider_chain,
            page_needs,
            pipelines,
            pace,
            job,
            log_count,
            hand_over,
            ..
        } = self;
        cx.emit(&Event::EngineStarted);
        let stats = cx.stats().clone();
        stats.set("start_time", cx.now().to_rfc3339());
        let settings = cx.settings();
        let fingerprinter = Fingerprinter::from_settings(settings)?;
        let slot_by = settings.slot_by;
        let opened = Items::open(pipelines, cx.clone()).await?;
        let (items, batches) = items::channel();
        let pipelines = tasks::watched(&cx, "the task of the item pipelines", opened.run(batches));
        let active = ActiveBytes::default();
        let (job, commits) = job.unzip();
        let frontier: Arc<dyn DynFrontier> = frontier.into();
        let core = Arc::new(Core {
            chain: Chain { middlewares: downloader_chain },
            spider_chain,
            page_needs,
            sender: Sender::new(downloader, &cx, pace, active.clone(), Arc::clone(&frontier)),
            counters: Counters::new(&cx),
            active: active.clone(),
            has_logged_duplicate: AtomicBool::new(false),
            inline: Inline::default(),
            runs_threads: Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread,
            cx: cx.clone(),
            spider,
            frontier,
            hand_over: hand_over.into(),
            items,
            fingerprinter,
            known_links: KnownLinks::new(),
            release_counts: ReleaseCounts::default(),
            slot_by,
            gate: commits.as_ref().map_or_else(Gate::default, |commits| commits.gate.clone()),
            commits: commits.clone(),
        });
        let exchange: Arc<dyn Exchange> = core.clone();
        cx.connect(Arc::downgrade(&exchange))?;
        drop(exchange);
        let watch = tasks::watched(
            &cx,
            "the watch over memory and statistics",
            watch::run(cx.clone(), Arc::clone(&core)),
        );
        let committing = commits.as_ref().map(|commits| {
            tasks::watched(&cx, "saving the state of the crawl", Arc::clone(commits).run(cx.clone()))
        });
        let LoopResult { reason, failed_seeds, seeds, error, hosts } = match tasks::catch_panic(
            "the engine's loop",
            Run::new(Arc::clone(&core), messages).run(),
        )
        .await
        {
            Ok(ran) => ran,
            Err(error) => LoopResult::failed(error),
        };
        watch.abort();
        // The watch holds the core, and so the job, until it has ended.
        let _ = watch.await;
        if let Some(committing) = committing {
            committing.abort();
            // A commit that is being written must end before the last one.
            let _ = committing.await;
        }
        let durable = core.frontier.sync().await;
        // The core holds the last sender of items; dropping it ends the pipelines.
        drop(core);
        let closed = match pipelines.await {
            Ok(closed) => closed.flatten(),
            Err(cause) => Err(Error::from(cause).context("closing the pipelines")),
        };
        let saved = match (&commits, &error) {
            // After a failed commit the job keeps its former contents.
            (Some(commits), None) => {
                commits.commit().await.map_err(|error| error.context("saving the state of the crawl"))
            }
            // The job must be free for the next crawl when this one has ended.
            (Some(commits), Some(_)) => {
                commits.written().await;
                Ok(())
            }
            (None, _) => Ok(()),
        };
        drop(commits);
        let saved = saved.and(job.map_or(Ok(()), Job::close));
        for (key, number) in log_count.iter().flat_map(LogCount::stats) {
            stats.counter(&key).set(i64::try_from(number).unwrap_or(i64::MAX));
        }
        let elapsed = cx.clock().elapsed().as_secs_f64();
        stats.set("finish_time", cx.now().to_rfc3339());
        stats.set("finish_reason", reason.as_str());
        stats.set("elapsed_time_seconds", elapsed);
        let rate = |key: &str| if elapsed > 0.0 { stats.get(key) as f64 * 60.0 / elapsed } else { 0.0 };
        stats.set("responses_per_minute", rate("response_received_count"));
        stats.set("items_per_minute", rate("item_scraped_count"));
        cx.emit(&Event::SpiderClosed { reason: &reason });
        cx.emit(&Event::EngineStopped);
        if let Some(error) = error {
            return Err(error);
        }
        durable?;
        closed?;
        saved?;
        let count = |key: &str| u64::try_from(stats.get(key)).unwrap_or(0);
        Ok(CrawlReport {
            finish_reason: reason,
            elapsed_s: elapsed,
            pages: count("pages/delivered"),
            requests: count("engine/requests_sent"),
            wire_bytes: count("engine/wire_bytes"),
            failed_seeds,
            seeds,
            hosts,
            seed: cx.seed(),
            sections: std::collections::BTreeMap::new(),
            version: env!("CARGO_PKG_VERSION"),
            losses: cx.losses(),
            failed_rules: Vec::new(),
            stats: stats.snapshot(),
            components: cx.components(),
        })
    }
}

/// A helper task that ends together with its crawl.
struct HelperTask(tokio::task::JoinHandle<()>);

impl Drop for HelperTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn log_signal(stopping: StopMode) {
    match stopping {
        StopMode::Graceful => log::warn!("a signal: the crawl stops; a second one aborts it"),
        StopMode::Immediate => log::warn!("a second signal: the crawl is aborted"),
    }
}

impl std::fmt::Debug for Crawler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawler").field("spider", &self.spider.name()).finish_non_exhaustive()
    }
}
