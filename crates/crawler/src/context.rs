//! What every component can reach: stats, settings, the clock, and the crawl it is part of.

use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::clock::{Clock, Timestamp};
use crate::cpu::CpuPool;
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::fetch::{BoxFuture, FetchError, FetchErrorKind};
use crate::host::HostKey;
use crate::request::Request;
use crate::response::Response;
use crate::settings::Settings;
use crate::stats::Stats;

/// Given to every hook; cheap to clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>);

pub(crate) struct Shared {
    settings: Settings,
    stats: Stats,
    clock: Clock,
    seed: u64,
    stopping: AtomicU8,
    observers: Vec<Box<dyn Observer>>,
    cpu: Arc<CpuPool>,
    /// Set once the engine runs; absent in a detached context.
    link: OnceLock<Link>,
}

/// The way from components into the running engine.
pub(crate) struct Link {
    pub(crate) exchange: Arc<dyn Exchange>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
}

/// Sends a request through the downloader chain and the slot of its host.
pub(crate) trait Exchange: Send + Sync {
    fn download(&self, request: Request) -> BoxFuture<'static, Result<Response, FetchError>>;
}

/// What components and handles ask of the scheduler task. The channel is unbounded: senders are hooks and handles, which
/// send a few messages per page at most.
#[derive(Debug)]
pub(crate) enum Control {
    Stop(String),
    Abort,
    Pause,
    Resume,
    Push(Vec<Request>),
    Politeness(HostKey, Politeness),
}

/// A change of the politeness of one slot while the crawl runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Politeness {
    /// The delay that robots.txt asks for; while it is in force there is one request at a time.
    CrawlDelay(Duration),
    /// Another delay between starts.
    Delay(Duration),
    /// Another number of requests in flight.
    Concurrency(usize),
    /// No request before this time.
    SleepUntil(Timestamp),
    /// The host is refused for good: its queue is dropped for this reason.
    GiveUp(&'static str),
}

impl Context {
    pub(crate) fn new(settings: Settings, stats: Stats, observers: Vec<Box<dyn Observer>>) -> Self {
        let seed = settings.seed.unwrap_or_else(rand::random);
        let cpu = Arc::new(CpuPool::new(settings.callback_threads()));
        Self(Arc::new(Shared {
            settings,
            stats,
            clock: Clock::start(),
            seed,
            stopping: AtomicU8::new(0),
            observers,
            cpu,
            link: OnceLock::new(),
        }))
    }

    /// A context without an engine, for tests of components: downloads fail, control messages go nowhere.
    pub fn detached(settings: Settings) -> Self {
        Self::new(settings, Stats::default(), Vec::new())
    }

    /// The settings of the crawl.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The stats of the crawl.
    pub fn stats(&self) -> &Stats {
        &self.0.stats
    }

    /// The clock of the crawl.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The present time on the crawl's clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The seed of all randomness: what is random is decided as a hash of it and of the thing decided on.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Whether the crawl takes no more requests; long work should end.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_stopping(&self) {
        self.0.stopping.store(1, Ordering::Relaxed);
    }

    /// Tells all observers; a panic in one is caught and counted.
    pub fn emit(&self, event: &Event<'_>) {
        for observer in &self.0.observers {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| observer.event(event)));
            if told.is_err() {
                self.stats().inc("observer_panics");
            }
        }
    }

    /// Whether anybody listens: lets hot paths skip building an event.
    pub(crate) fn has_observers(&self) -> bool {
        !self.0.observers.is_empty()
    }

    /// Waits for a future from synchronous code (a callback): blocks this worker thread and lends its place to another
    /// callback meanwhile.
    ///
    /// # Panics
    /// When called from asynchronous code.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.0.cpu.lend(|| tokio::runtime::Handle::current().block_on(future))
    }

    /// Fetches a request through the downloader chain and the slot of its host, and gives the response back in place.
    /// Redirects and retries are followed as in the crawl.
    ///
    /// # Errors
    /// The download failed, a middleware dropped it, or there is no engine.
    pub async fn download(&self, request: Request) -> Result<Response, FetchError> {
        match self.0.link.get() {
            Some(link) => link.exchange.download(request).await,
            None => {
                Err(FetchError::new(FetchErrorKind::Cancelled, "this context has no engine to download with"))
            }
        }
    }

    /// Changes the politeness of a slot.
    pub fn politeness(&self, host: &HostKey, change: Politeness) {
        self.control(Control::Politeness(host.clone(), change));
    }

    /// Asks the crawl to stop with a finish reason: nothing more is leased, what is in flight ends.
    pub fn stop(&self, reason: &str) {
        self.control(Control::Stop(reason.to_owned()));
    }

    /// Queues requests that no page led to.
    pub fn push(&self, requests: Vec<Request>) {
        self.control(Control::Push(requests));
    }

    pub(crate) fn control(&self, control: Control) {
        if let Some(link) = self.0.link.get() {
            // The engine may have ended: then there is nobody to tell.
            let _ = link.control.send(control);
        }
    }

    pub(crate) fn connect(&self, link: Link) -> Result<()> {
        self.0.link.set(link).map_err(|_| Error::msg("the context belongs to a crawl that runs already"))
    }

    pub(crate) fn cpu(&self) -> &Arc<CpuPool> {
        &self.0.cpu
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("seed", &self.0.seed).finish_non_exhaustive()
    }
}
