//! The context that every component gets: stats, settings, the clock, and the crawl that it is part of.

use std::fs::File;
use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Timestamp};
use crate::component::{Component, Components};
use crate::control::{Addition, CrawlState, HostStatus, QueuedRequest};
use crate::cpu::CpuPool;
use crate::drop::DropReason;
use crate::error::{Error, Result};
use crate::event::{Event, Observer, OnDownload};
use crate::fetch::{BoxFuture, FetchError, FetchErrorKind};
use crate::frontier::FrontierMessage;
use crate::host::HostKey;
use crate::job::DurableFiles;
use crate::log;
use crate::losses::{Loss, LossKind, Losses};
use crate::middleware::OnFollow;
use crate::page::Page;
use crate::report::HostReport;
use crate::request::Request;
use crate::response::Response;
use crate::schedule::{Outcome, Ticket};
use crate::secrets::redacted;
use crate::settings::Settings;
use crate::simulated::is_simulated;
use crate::state::State;
use crate::stats::Stats;

/// The context of a crawl, which every hook gets: settings, stats, clock, downloads, and control of the crawl. Cheap to
/// clone.
#[derive(Clone)]
pub struct Context(Arc<Shared>, TicketCell);

/// The start that came with the lease of a visit, until the first send to its host takes it: one of the visit itself, or of a download that
/// a middleware nests in it. `None` outside of a visit's way through the downloader chain.
type TicketCell = Option<Arc<Mutex<Option<Ticket>>>>;

pub(crate) struct Shared {
    settings: Settings,
    stats: Stats,
    losses: Losses,
    state: State,
    clock: Clock,
    seed: u64,
    stopping: AtomicU8,
    observers: Vec<Arc<dyn Observer>>,
    components: Components,
    durable: DurableFiles,
    cpu: Arc<CpuPool>,
    /// Sends to the engine's loop; absent in a detached context. The channel is unbounded: its senders are the
    /// visits, whose number is limited by the requests in flight, and hooks and handles, which send at most a few
    /// messages per page.
    messages: Option<mpsc::UnboundedSender<Message>>,
    /// Set while the engine runs; weak, because the engine holds the context.
    exchange: OnceLock<Weak<dyn Exchange>>,
}

/// Sends a request through the downloader chain and the slot of its host.
pub(crate) trait Exchange: Send + Sync {
    fn download(
        self: Arc<Self>,
        request: Request,
        cx: Context,
    ) -> BoxFuture<'static, Result<Response, FetchError>>;
}

/// A message to the engine's loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// Lease no more requests, and end for this reason.
    Stop(String),
    /// End now, without waiting for requests in flight.
    Abort,
    Pause,
    Resume,
    /// Whether the crawl stays open when it has nothing to do.
    KeepOpen(bool),
    /// Queue requests that were not found on a page.
    Push(Vec<Request>),
    /// Change the politeness of a slot; replies when the change is in force.
    Politeness(HostKey, Politeness, Option<oneshot::Sender<()>>),
    /// A granted start has ended.
    Ended(Ticket, Outcome),
    /// A visit needs another start.
    Start(HostKey, oneshot::Sender<Ticket>),
    /// Hosts whose queue is no longer empty.
    Woken(Vec<HostKey>),
    /// This many items of a page passed the pipelines.
    Items(u64),
    /// Replies with the state of the crawl.
    Overview(oneshot::Sender<Overview>),
    /// Replies with a report for each of the busiest hosts.
    Hosts(oneshot::Sender<Vec<HostReport>>),
    /// A question or an order of a person who looks at the crawl.
    Control(ControlMessage),
    /// What other processes did to a shared queue.
    Frontier(FrontierMessage),
    /// A part that the crawl depends on has failed.
    Fatal(Error),
}

/// A question or an order from outside that the loop answers ([`Handle`](crate::Handle)).
#[derive(Debug)]
pub(crate) enum ControlMessage {
    /// Replies with the hosts that have the longest queues or the most requests, at most so many.
    Hosts(usize, oneshot::Sender<Vec<HostStatus>>),
    /// Replies with a host; `None` if there is nothing to tell of it.
    Host(HostKey, oneshot::Sender<Option<HostStatus>>),
    /// Replies with the next requests of a host, or of the hosts with the longest queues, at most so many.
    Queue(Option<HostKey>, usize, oneshot::Sender<Vec<QueuedRequest>>),
    /// Queues a request, unless it is out of scope or known; replies with what was done.
    Add(Box<Request>, oneshot::Sender<Addition>),
    /// Drops the queue of a host, which gets no more requests; replies with the length of the queue.
    RemoveHost(HostKey, oneshot::Sender<u64>),
}

/// The state of the crawl, for the progress line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overview {
    /// Whether the crawl runs, is paused, or stops.
    pub(crate) state: CrawlState,
    /// Requests in the queue.
    pub(crate) queued: u64,
    /// Requests that were taken from the queue and are not done.
    pub(crate) in_flight: u64,
    /// Hosts with requests in flight or in the queue, except hosts that are down.
    pub(crate) hosts_active: usize,
    /// Hosts that are down or were given up.
    pub(crate) hosts_down: usize,
}

/// A change of the politeness of one slot during the crawl.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Politeness {
    /// The delay that robots.txt asks for; while it is in force, the slot has at most one request in flight.
    CrawlDelay(Duration),
    /// A new delay between starts.
    Delay(Duration),
    /// A new limit of requests in flight.
    Concurrency(usize),
    /// No request is sent before this time.
    SleepUntil(Timestamp),
    /// The host gets no more requests in this crawl: its queue is dropped for this reason.
    GiveUp(&'static str),
}

impl Context {
    pub(crate) fn new(
        settings: Settings,
        stats: Stats,
        observers: Vec<Arc<dyn Observer>>,
        components: Components,
        messages: Option<mpsc::UnboundedSender<Message>>,
    ) -> Self {
        let seed = settings.seed.unwrap_or_else(rand::random);
        let cpu = Arc::new(CpuPool::new(settings.callback_threads()));
        Self(
            Arc::new(Shared {
                settings,
                stats,
                losses: Losses::default(),
                state: State::default(),
                clock: Clock::start(),
                seed,
                stopping: AtomicU8::new(0),
                observers,
                components,
                durable: DurableFiles::default(),
                cpu,
                messages,
                exchange: OnceLock::new(),
            }),
            None,
        )
    }

    /// The same context for one visit, with the start that came with its lease.
    pub(crate) fn with_ticket(&self, ticket: Ticket) -> Self {
        Self(Arc::clone(&self.0), Some(Arc::new(Mutex::new(Some(ticket)))))
    }

    /// Takes the start of the visit, if nothing took it before.
    pub(crate) fn take_ticket(&self) -> Option<Ticket> {
        self.1.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives back the start that came with the request of a visit, if nothing was sent with it. A middleware that waits for long without
    /// sending calls it: while a start is held, its host has one place less, and what it waits for may need that place. It costs the host
    /// no delay.
    pub fn give_back_start(&self) {
        if let Some(unused) = self.take_ticket() {
            self.tell(Message::Ended(unused, Outcome::Unused));
        }
    }

    /// A context without an engine, for tests of components: downloads fail, and control messages are discarded.
    pub fn detached(settings: Settings) -> Self {
        Self::new(settings, Stats::default(), Vec::new(), Components::default(), None)
    }

    /// The settings of the crawl.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// An argument of the spider (setting `spider_args`).
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.settings().spider_args.get(name).map(String::as_str)
    }

    /// The stats of the crawl.
    pub fn stats(&self) -> &Stats {
        &self.0.stats
    }

    /// The losses of the crawl so far.
    pub fn losses(&self) -> Vec<Loss> {
        self.0.losses.all()
    }

    /// Counts a loss; `what` describes it, with the reason. Returns whether it is the first loss of this kind and
    /// name.
    pub(crate) fn lost(&self, kind: LossKind, name: &str, what: impl FnOnce() -> String) -> bool {
        self.0.losses.add(kind, name, what)
    }

    /// Counts a URL that a guard against traps refused, and logs a warning for the first one of each guard.
    pub(crate) fn guarded(&self, url: &str, reason: &DropReason) {
        let Some(setting) = reason.guard else { return };
        let (url, why) = (redacted(url), reason.detail.as_deref().unwrap_or(&reason.reason));
        if self.lost(LossKind::Links, setting, || format!("{url}: {why}")) {
            log::warn!(
                %url,
                "the guard {setting} refused a link: {}; further links that it refuses are counted, not logged",
                why.escape_debug()
            );
        }
    }

    /// State that the spider gets back when its job is resumed.
    pub fn state(&self) -> &State {
        &self.0.state
    }

    /// Makes a file durable before every commit of the job, for as long as the `Arc` lives. This is for files that
    /// pipelines write, so that a power cut loses no item of a settled page. A pipeline that stores its position in
    /// the job does so in [`Persist::sync`](crate::Persist::sync) instead. Without a job this has no effect. Errors
    /// refer to the file by `name`.
    pub fn keep_durable(&self, name: impl Into<String>, file: &Arc<File>) {
        self.0.durable.add(name.into(), file);
    }

    pub(crate) fn durable_files(&self) -> &DurableFiles {
        &self.0.durable
    }

    /// The clock of the crawl.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The current time on the crawl's clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// A component of the crawl by its type; `None` if it is not configured.
    pub fn component<C: Component>(&self) -> Option<Arc<C>> {
        self.0.components.get()
    }

    pub(crate) fn components(&self) -> Components {
        self.0.components.clone()
    }

    /// The seed of all randomness: a random decision is a hash of the seed and of the thing that is decided on.
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// Whether the crawl takes no more requests; long work should end then.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_stopping(&self) {
        self.0.stopping.store(1, Ordering::Relaxed);
    }

    /// Sends an event to all observers; a panic in an observer is caught and counted.
    pub fn emit(&self, event: &Event<'_>) {
        self.0.losses.event(event);
        for observer in &self.0.observers {
            self.catch_panic(|| observer.event(event));
        }
    }

    /// The reason why an observer does not want a request to be queued, if there is one.
    pub(crate) fn veto(&self, request: &Request) -> Option<DropReason> {
        self.0.observers.iter().find_map(|observer| {
            match self.catch_panic(|| observer.on_schedule(request)) {
                Some(OnFollow::Drop(reason)) => Some(reason),
                Some(OnFollow::Keep) | None => None,
            }
        })
    }

    /// The decision of the observers about a part of a download.
    pub(crate) fn decide_download(&self, ask: impl Fn(&dyn Observer) -> OnDownload) -> OnDownload {
        let mut answers =
            self.0.observers.iter().filter_map(|observer| self.catch_panic(|| ask(&**observer)));
        answers.find(|answer| *answer != OnDownload::Continue).unwrap_or_default()
    }

    fn catch_panic<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        if answer.is_err() {
            self.stats().inc("observer_panics");
        }
        answer.ok()
    }

    /// Whether there are observers; hot paths skip building an event if there are none.
    pub(crate) fn has_observers(&self) -> bool {
        !self.0.observers.is_empty()
    }

    /// Waits for a future from synchronous code (a callback). It blocks this worker thread and lets another callback
    /// run meanwhile.
    ///
    /// # Panics
    /// If it is called from asynchronous code.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        if is_simulated() {
            return future
                .now_or_never()
                .expect("a callback of a simulated crawl waits only for what is there");
        }
        self.0.cpu.lend(|| tokio::runtime::Handle::current().block_on(future))
    }

    /// Runs work that computes, such as compression, where callbacks run: as much at once as there are processors, and not on the threads that
    /// serve the network. It waits behind what was given before.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (sender, result) = oneshot::channel();
        self.0.cpu.spawn(move || drop(sender.send(work())));
        result.await.map_err(|_| Error::msg("work on a worker thread panicked"))
    }

    /// Fetches a request through the downloader chain and the slot of its host, and returns the response to the
    /// caller. Redirects and retries are followed as in the crawl.
    ///
    /// # Errors
    /// The download failed, a middleware dropped the request, or there is no engine.
    pub async fn download(&self, request: Request) -> Result<Response, FetchError> {
        match self.0.exchange.get().and_then(Weak::upgrade) {
            Some(exchange) => exchange.download(request, self.clone()).await,
            None => {
                Err(FetchError::new(FetchErrorKind::Cancelled, "this context has no engine to download with"))
            }
        }
    }

    /// Fetches a request like [`download`](Self::download), and makes a page of the response, whatever its status: `page.css(..)`,
    /// `page.json()`. A callback calls [`Output::fetch`](crate::Output::fetch), which waits for it.
    ///
    /// # Errors
    /// Those of `download`.
    pub async fn fetch(&self, request: Request) -> Result<Page, FetchError> {
        let response = self.download(request.clone()).await?;
        Ok(Page::new(request, response))
    }

    /// Changes the politeness of a slot, and returns when the change is in force. Requests that have not been sent by
    /// then follow it.
    pub async fn set_politeness(&self, host: &HostKey, change: Politeness) {
        let (done, in_force) = oneshot::channel();
        self.tell(Message::Politeness(host.clone(), change, Some(done)));
        // Without an engine, or after its end, no change can come into force.
        let _ = in_force.await;
    }

    /// Asks the crawl to stop with a finish reason: no more requests are leased, and requests in flight may end.
    pub fn stop(&self, reason: &str) {
        self.tell(Message::Stop(reason.to_owned()));
    }

    /// Queues requests that were not found on a page.
    pub fn push(&self, requests: Vec<Request>) {
        self.tell(Message::Push(requests));
    }

    /// The state of the crawl; `None` if there is no engine.
    pub(crate) async fn overview(&self) -> Option<Overview> {
        let (sender, overview) = oneshot::channel();
        self.tell(Message::Overview(sender));
        overview.await.ok()
    }

    /// A report for each of the busiest hosts (`stats_top_hosts`) at this moment, busiest first; empty without an
    /// engine. Queue lengths are 0 here; only the report at the end has them.
    pub async fn hosts(&self) -> Vec<HostReport> {
        let (sender, hosts) = oneshot::channel();
        self.tell(Message::Hosts(sender));
        hosts.await.unwrap_or_default()
    }

    pub(crate) fn tell(&self, message: Message) {
        if let Some(messages) = &self.0.messages {
            // The engine may have ended; the message is then dropped.
            let _ = messages.send(message);
        }
    }

    pub(crate) fn connect(&self, exchange: Weak<dyn Exchange>) -> Result<()> {
        self.0
            .exchange
            .set(exchange)
            .map_err(|_| Error::msg("this crawler has run already: build another one"))
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
