//! The main loop: one task that owns the scheduler, starts visits, and decides when the crawl ends.

mod control;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::core::Core;
use super::limits::Limits;
use super::quota::Quota;
use super::seeds::Seeds;
use super::visit::{Visit, VisitEnd};
use crate::clock::Timestamp;
use crate::context::Message;
use crate::control::REMOVED;
use crate::drop::{DropReason, DropState, Dropped};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::frontier::{End, LeaseId, Settled};
use crate::host::HostKey;
use crate::host_stats::HostSnapshot;
use crate::log;
use crate::losses::LossKind;
use crate::meta;
use crate::middleware::OnFollow;
use crate::report::HostReport;
use crate::request::Request;
use crate::schedule::{Next, Outcome, Scheduler, Ticket};
use crate::secrets::redacted;
use crate::settings::seconds;

/// Number of failed start requests kept for the report.
const MAX_FAILED_SEEDS: usize = 1_000;
/// A host that another process has claimed is tried again after this time.
const CLAIM_RETRY_DELAY: Duration = Duration::from_secs(5);
/// If a commit is waiting, the queue of a given-up host is dropped after this time.
const GIVE_UP_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Number of requests recorded at once when a queue is dropped.
const DRAIN_BATCH: usize = 1_024;
/// After an abort, recording the requests left in memory takes at most this long.
const ABORT_RECORD_TIMEOUT: Duration = Duration::from_millis(500);

/// State of a running crawl.
pub(crate) struct Run {
    core: Arc<Core>,
    messages: mpsc::UnboundedReceiver<Message>,
    scheduler: Scheduler,
    visits: JoinSet<Result<(HostKey, VisitEnd)>>,
    /// Leases in flight, which are released if their task is aborted.
    leased: HashMap<tokio::task::Id, LeasedVisit>,
    waiters: HashMap<u64, (HostKey, oneshot::Sender<Ticket>)>,
    next_waiter: u64,
    seeds: Seeds,
    seeds_queued: u64,
    seed_errors: u64,
    failed_seeds: Vec<(String, String)>,
    limits: Limits,
    quota: Quota,
    paused: bool,
    kept_open: bool,
    stop: Option<Stop>,
    /// Hosts that were given up and whose queues must still be dropped.
    given_up: Vec<(HostKey, &'static str)>,
    /// Whether other processes share the queue.
    is_shared: bool,
    /// Last time that a page was delivered or a request dropped or queued; the waiting of parked requests is measured
    /// from it.
    useful: Timestamp,
}

/// A visit in flight, with its lease.
struct LeasedVisit {
    lease: LeaseId,
    host: HostKey,
    task: AbortHandle,
}

/// The reason and the time of the stop.
struct Stop {
    reason: String,
    deadline: Timestamp,
    aborted: bool,
}

/// The result of the loop.
pub(crate) struct LoopResult {
    pub(crate) reason: String,
    pub(crate) failed_seeds: Vec<(String, String)>,
    pub(crate) seeds: u64,
    pub(crate) error: Option<Error>,
    pub(crate) hosts: Vec<HostReport>,
}

impl LoopResult {
    /// The result of a loop that failed before it could report its state.
    pub(crate) fn failed(error: Error) -> Self {
        Self {
            reason: "error".to_owned(),
            failed_seeds: Vec::new(),
            seeds: 0,
            error: Some(error),
            hosts: Vec::new(),
        }
    }
}

impl Run {
    pub(crate) fn new(core: Arc<Core>, messages: mpsc::UnboundedReceiver<Message>) -> Self {
        let cx = &core.cx;
        let mut scheduler = Scheduler::new(cx.settings(), cx.seed());
        if let Some(commits) = &core.commits {
            commits.hosts.restore(&mut scheduler);
        }
        let seeds = Seeds::Ready(core.spider.start());
        // Pages of earlier runs of a job count, too.
        let pages = u64::try_from(cx.stats().get("pages/delivered")).unwrap_or(0);
        let limits = Limits::new(cx.settings(), cx.now(), pages);
        let quota = Quota::new(cx.settings().requests_per_second, cx.clock());
        let useful = cx.now();
        Self {
            core,
            messages,
            scheduler,
            visits: JoinSet::new(),
            leased: HashMap::new(),
            waiters: HashMap::new(),
            next_waiter: 0,
            seeds,
            seeds_queued: 0,
            seed_errors: 0,
            failed_seeds: Vec::new(),
            limits,
            quota,
            paused: false,
            kept_open: false,
            stop: None,
            given_up: Vec::new(),
            is_shared: false,
            useful,
        }
    }

    /// Crawls until no requests are left, a limit is reached, or the crawl is stopped.
    pub(crate) async fn run(mut self) -> LoopResult {
        let mut error = self.work().await.err();
        // Downloads that are cancelled from here on are not the fault of their pages or items.
        self.core.cx.set_stopping();
        // No more starts are granted. Closing the channel tells this to every task that waits for one, including
        // pipelines.
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Fatal(cause) = message {
                error.get_or_insert(cause);
            }
        }
        self.waiters.clear();
        {
            // If a visit were aborted between its items and settling its page, a resumed crawl would repeat it and
            // write its items twice. Closing the gate takes no longer than the pipelines do, which have to be awaited
            // in any case.
            let gate = self.core.gate.clone();
            let _settled = gate.close().await;
            self.visits.abort_all();
            while self.visits.join_next().await.is_some() {}
        }
        if let Some(commits) = &self.core.commits {
            commits.hosts.take(&mut self.scheduler);
        }
        if self.is_shared {
            self.tell_left(|_| true);
            self.core.frontier.left();
        }
        let aborted = self.stop.as_ref().is_some_and(|stop| stop.aborted);
        // Opening the frontier again returns leased requests to the queue, where all of them are by now.
        let queued: HashMap<_, _> = self.core.frontier.open().await.unwrap_or_default().into_iter().collect();
        let hosts = self.hosts(&queued);
        let mut reason = match (&error, self.stop) {
            (Some(_), _) => "error".to_owned(),
            (None, Some(stop)) => stop.reason,
            (None, None) => "finished".to_owned(),
        };
        if reason == "finished" && self.seeds_queued == 0 && self.seed_errors > 0 {
            "start_error".clone_into(&mut reason);
        }
        let leases = self.leased.into_values().map(|visit| (visit.lease, visit.host)).collect();
        // What is left in a shared queue is the work of other processes.
        let keeps_queue = self.is_shared || !reason.starts_with("closespider_");
        let left = settle_leftovers(&self.core, leases, &reason, aborted, keeps_queue).await;
        LoopResult {
            reason,
            failed_seeds: self.failed_seeds,
            seeds: self.seeds_queued + self.seed_errors,
            error: error.or(left.err()),
            hosts,
        }
    }

    async fn work(&mut self) -> Result<()> {
        let cx = self.core.cx.clone();
        self.attach()?;
        let hosts = self.core.frontier.open().await?;
        // Hosts of other processes wait for their delay before anything is started.
        while self.is_shared
            && let Ok(message) = self.messages.try_recv()
        {
            self.apply(message).await?;
        }
        let resumed = hosts.iter().map(|(_, queued)| queued).sum();
        for (host, _) in hosts {
            self.scheduler.woken(host, cx.now());
        }
        cx.emit(&Event::SpiderOpened { resumed });
        loop {
            for (host, reason) in std::mem::take(&mut self.given_up) {
                self.give_up(&host, reason).await?;
            }
            let mut wake = self.grant().await?;
            if !self.given_up.is_empty() {
                let again = cx.now() + GIVE_UP_RETRY_DELAY;
                wake = Some(wake.map_or(again, |at| at.min(again)));
            }
            // Grants and dropped queues may have made room in the frontier, and no other event would report that.
            self.pull_seeds();
            if let Some(stop) = &self.stop {
                if self.visits.is_empty() || stop.aborted {
                    return Ok(());
                }
                if cx.now() >= stop.deadline {
                    log::warn!(visits = self.visits.len(), "requests in flight did not end in time");
                    return Ok(());
                }
                wake = Some(stop.deadline);
            } else if self.is_idle() {
                cx.emit(&Event::SpiderIdle);
                // A handler of the event may have pushed requests.
                while let Ok(message) = self.messages.try_recv() {
                    self.apply(message).await?;
                }
                if self.stop.is_none() && self.is_idle() {
                    return Ok(());
                }
                continue;
            } else if let Some(deadline) = self.parked_until() {
                if cx.now() >= deadline {
                    self.drop_parked().await?;
                    continue;
                }
                wake = Some(wake.map_or(deadline, |at| at.min(deadline)));
            }
            if self.stop.is_none()
                && let Some(at) = self.limits.deadline()
            {
                if cx.now() >= at {
                    if let Some(reason) = self.limits.reached(&cx, cx.now()) {
                        self.begin_stop(reason.to_owned());
                    }
                    continue;
                }
                wake = Some(wake.map_or(at, |wake| wake.min(at)));
            }
            let sleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(cx.clock().instant(at)).await,
                    None => std::future::pending().await,
                }
            };
            // The branches are polled in order and not at random, so that a crawl is a function of its seed;
            // everything that arrived is processed below.
            tokio::select! {
                biased;
                batch = self.seeds.batch() => self.start(batch).await?,
                Some(message) = self.messages.recv() => self.apply(message).await?,
                Some(ended) = self.visits.join_next_with_id() => self.visited(ended)?,
                () = sleep => {}
            }
            while let Ok(message) = self.messages.try_recv() {
                self.apply(message).await?;
            }
            while let Some(ended) = self.visits.try_join_next_with_id() {
                self.visited(ended)?;
            }
            if let Some(commits) = &self.core.commits {
                commits.hosts.take(&mut self.scheduler);
            }
            if self.is_shared {
                self.tell_learnt();
            }
        }
    }

    /// Grants starts as long as possible. Returns when to try again.
    async fn grant(&mut self) -> Result<Option<Timestamp>> {
        let core = Arc::clone(&self.core);
        let settings = core.cx.settings();
        let most_bytes = settings.scraper_slot_max_active_size;
        // With one request at a time, a page must end before the next one starts; otherwise the order of the queue
        // would have no meaning.
        let is_serial = settings.concurrent_requests == 1;
        loop {
            let now = self.core.cx.now();
            let full = self.core.active.get() >= most_bytes;
            let leasing = self.stop.is_none()
                && !full
                && self.limits.has_room(self.visits.len())
                && (!is_serial || self.visits.is_empty());
            self.scheduler.hold_leases(!leasing);
            if let Some(at) = self.quota.wait_until(now) {
                return Ok(Some(at));
            }
            match self.scheduler.next(now) {
                Next::Fetch(ticket) => {
                    self.quota.spend();
                    self.lease(ticket, now).await?;
                }
                Next::Start { waiter, ticket } => {
                    self.quota.spend();
                    let unused = match self.waiters.remove(&waiter) {
                        Some((_, reply)) => reply.send(ticket).err(),
                        None => Some(ticket),
                    };
                    if let Some(ticket) = unused {
                        self.scheduler.ended(ticket, Outcome::Unused, now);
                    }
                }
                Next::GiveUp { host, reason } => self.give_up(&host, reason).await?,
                Next::Wait(at) => return Ok(Some(at)),
                Next::Idle => return Ok(None),
            }
        }
    }

    /// Leases the next request of a slot and starts its visit.
    async fn lease(&mut self, ticket: Ticket, now: Timestamp) -> Result<()> {
        let host = ticket.host.clone();
        match self.limits.reserve_host(&host) {
            super::limits::HostRoom::Free => {}
            super::limits::HostRoom::Wait => {
                // The host is tried again when one of its visits ends.
                self.scheduler.nothing_due(ticket, None, now);
                return Ok(());
            }
            super::limits::HostRoom::Spent => {
                self.scheduler.nothing_due(ticket, None, now);
                return self.give_up(&host, "host_page_limit").await;
            }
        }
        if !self.core.frontier.claim(&host).await? {
            // Another process has claimed the host.
            self.limits.release_host(&host, false);
            let again = (!self.is_shared).then(|| now + CLAIM_RETRY_DELAY);
            self.scheduler.nothing_due(ticket, again, now);
            return Ok(());
        }
        let mut leased = self.core.frontier.lease(&host, 1, now).await?;
        let Some(lease) = leased.leases.pop() else {
            self.limits.release_host(&host, false);
            self.scheduler.nothing_due(ticket, leased.next_at, now);
            return Ok(());
        };
        if leased.due == 0 {
            self.scheduler.no_more_due(&ticket, leased.next_at, now);
        }
        self.core.counters.dequeued.inc();
        if self.core.frontier.len() == 0 && self.core.cx.has_observers() {
            self.core.cx.emit(&Event::SchedulerEmpty);
        }
        let id = lease.id;
        // The future of a visit is 8 KB, and the runtime would copy it ten times; it copies the pointer to a box instead.
        let task = self.visits.spawn(Box::pin(Visit::run(Arc::clone(&self.core), lease, ticket)));
        self.leased.insert(task.id(), LeasedVisit { lease: id, host, task });
        Ok(())
    }

    /// Reports the outcome of a start to the scheduler. With `autothrottle_debug` it logs each response and how it
    /// changed the delay of the slot.
    fn start_ended(&mut self, ticket: Ticket, outcome: Outcome, now: Timestamp) {
        let settings = self.core.cx.settings();
        let (latency, bytes) = match outcome {
            Outcome::Answer { latency, bytes, .. }
                if settings.autothrottle_enabled && settings.autothrottle_debug =>
            {
                (latency, bytes)
            }
            _ => return self.scheduler.ended(ticket, outcome, now),
        };
        let slot = ticket.host.clone();
        let millis = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
        let concurrency = self.scheduler.active_of(&slot);
        let before = millis(self.scheduler.delay_of(&slot));
        self.scheduler.ended(ticket, outcome, now);
        let delay = millis(self.scheduler.delay_of(&slot));
        log::info!(
            %slot,
            concurrency,
            delay_ms = delay.round() as i64,
            change_ms = (delay - before).round() as i64,
            latency_ms = millis(Some(latency)).round() as i64,
            bytes,
            "autothrottle"
        );
    }

    async fn apply(&mut self, message: Message) -> Result<()> {
        let now = self.core.cx.now();
        match message {
            Message::Ended(ticket, outcome) => self.start_ended(ticket, outcome, now),
            Message::Start(host, reply) => {
                if self.stop.is_some() {
                    // Dropping the reply cancels the request, which returns to the queue.
                    return Ok(());
                }
                self.next_waiter += 1;
                self.waiters.insert(self.next_waiter, (host.clone(), reply));
                self.scheduler.request_start(host, self.next_waiter, now);
            }
            Message::Woken(hosts) => {
                for host in hosts {
                    self.scheduler.woken(host, now);
                }
            }
            Message::Items(count) => self.limits.items(count, now),
            Message::Overview(reply) => {
                // The caller may be gone.
                let _ = reply.send(self.overview());
            }
            Message::Hosts(reply) => {
                let _ = reply.send(self.hosts(&HashMap::new()));
            }
            Message::Politeness(host, change, done) => {
                self.scheduler.adjust(&host, change, now);
                // The caller may have been dropped.
                let _ = done.map(|done| done.send(()));
            }
            Message::Push(requests) => {
                let requests = self.started(requests).await;
                self.core.push(requests).await?;
                self.useful = now;
            }
            Message::Pause => {
                self.paused = true;
                self.scheduler.pause();
            }
            Message::Resume => {
                self.paused = false;
                self.useful = now;
                self.scheduler.resume();
            }
            Message::KeepOpen(open) => self.kept_open = open,
            Message::Stop(reason) => self.begin_stop(reason),
            Message::Abort => {
                self.begin_stop("cancelled".to_owned());
                if let Some(stop) = &mut self.stop {
                    stop.aborted = true;
                }
            }
            Message::Control(message) => self.control(message).await?,
            Message::Frontier(message) => self.shared(message),
            Message::Fatal(error) => return Err(error),
        }
        if self.stop.is_none()
            && let Some(reason) = self.limits.reached(&self.core.cx, now)
        {
            self.begin_stop(reason.to_owned());
        }
        Ok(())
    }

    fn begin_stop(&mut self, reason: String) {
        if self.stop.is_some() {
            return;
        }
        let cx = &self.core.cx;
        cx.set_stopping();
        let deadline = cx.now() + seconds(cx.settings().drain_timeout);
        log::info!(%reason, in_flight = self.visits.len(), "stopping");
        self.stop = Some(Stop { reason, deadline, aborted: false });
        // Requests that wait for a start, possibly for minutes, return to the queue.
        self.waiters.clear();
    }

    fn visited(
        &mut self,
        ended: std::result::Result<(tokio::task::Id, Result<(HostKey, VisitEnd)>), tokio::task::JoinError>,
    ) -> Result<()> {
        let now = self.core.cx.now();
        let (host, end) = match ended {
            Ok((task, result)) => {
                self.leased.remove(&task);
                result?
            }
            Err(cause) if cause.is_panic() => {
                // Panics of user code are caught where it runs, so this one is a bug of the engine itself.
                return Err(Error::from(cause).context("a visit panicked outside of user code"));
            }
            Err(cancelled) => {
                // Its host was lost to another process.
                if let Some(visit) = self.leased.remove(&cancelled.id()) {
                    self.limits.release_host(&visit.host, false);
                }
                return Ok(());
            }
        };
        let delivered = matches!(end, VisitEnd::Delivered { .. });
        self.limits.release_host(&host, delivered);
        if self.limits.is_per_host() {
            self.scheduler.woken(host, now);
        }
        match end {
            VisitEnd::Delivered { callback_failed } => {
                self.useful = now;
                self.limits.page(callback_failed);
            }
            VisitEnd::Dropped { seed, callback_failed } => {
                self.useful = now;
                self.limits.dropped(callback_failed);
                if let Some(seed) = seed
                    && self.failed_seeds.len() < MAX_FAILED_SEEDS
                {
                    self.failed_seeds.push(seed);
                }
            }
            VisitEnd::Unfinished => {}
        }
        if self.stop.is_none()
            && let Some(reason) = self.limits.reached(&self.core.cx, now)
        {
            self.begin_stop(reason.to_owned());
        }
        Ok(())
    }

    fn pull_seeds(&mut self) {
        let high_water = self.core.cx.settings().start_high_water as u64;
        if self.stop.is_none() && self.core.frontier.len() < high_water {
            self.seeds.pull();
        }
    }

    /// Queues a batch from the start source.
    async fn start(&mut self, batch: Vec<Result<Request>>) -> Result<()> {
        let mut requests = Vec::with_capacity(batch.len());
        for request in batch {
            match request {
                Ok(request) => requests.push(request.with_meta(meta::IS_START_REQUEST, true)),
                Err(error) => {
                    log::error!("start request: {error}");
                    self.core.cx.stats().inc("start_errors");
                    self.seed_errors += 1;
                    self.core.cx.lost(LossKind::Seeds, "", || error.to_string());
                    if self.failed_seeds.len() < MAX_FAILED_SEEDS {
                        self.failed_seeds.push((String::new(), error.to_string()));
                    }
                }
            }
        }
        let requests = self.started(requests).await;
        self.seeds_queued += requests.len() as u64;
        self.core.push(requests).await?;
        self.useful = self.core.cx.now();
        Ok(())
    }

    /// Passes requests that were not found on a page through the spider middlewares, and assigns slot and
    /// fingerprint.
    async fn started(&mut self, requests: Vec<Request>) -> Vec<Request> {
        let mut kept = Vec::with_capacity(requests.len());
        for mut request in requests {
            if let Err(reason) = self.pass_start(&mut request) {
                if request.meta_flag(meta::IS_START_REQUEST) {
                    let why = reason.detail.clone().unwrap_or_else(|| reason.reason.to_string());
                    let url = redacted(request.url.as_str()).into_owned();
                    self.core.seed_failed(&url, &why);
                    self.seed_errors += 1;
                    if self.failed_seeds.len() < MAX_FAILED_SEEDS {
                        self.failed_seeds.push((url, why));
                    }
                }
                continue;
            }
            self.core.assign(&mut request, None).await;
            kept.push(request);
        }
        self.core.admit(&mut kept);
        kept
    }

    /// Passes a request that was not found on a page through the spider middlewares. Returns the reason if one refuses it, which is
    /// counted and told.
    fn pass_start(&self, request: &mut Request) -> std::result::Result<(), DropReason> {
        let core = &self.core;
        for placed in core.spider_chain.iter().rev() {
            let reason = match placed.part.process_start(request, &core.cx) {
                Ok(OnFollow::Keep) => continue,
                Ok(OnFollow::Drop(reason)) => reason,
                Err(error) => DropReason::failed("middleware_error").detail(error.to_string()),
            };
            core.refuse(request, placed.name, reason.clone());
            return Err(reason);
        }
        Ok(())
    }

    fn hosts(&self, queued: &HashMap<HostKey, u64>) -> Vec<HostReport> {
        self.core.sender.hosts.reports(|host| self.snapshot(host, queued.get(host).copied().unwrap_or(0)))
    }

    fn snapshot(&self, host: &HostKey, queued: u64) -> HostSnapshot {
        HostSnapshot {
            delay: self.scheduler.delay_of(host).unwrap_or_default(),
            queued,
            state: self.scheduler.slot_state(host),
        }
    }

    fn is_idle(&self) -> bool {
        !self.kept_open
            && self.visits.is_empty()
            && self.seeds.is_done()
            && self.core.frontier.len() == 0
            && self.core.frontier.is_finished()
    }

    /// The time at which parked requests are dropped, if there are only parked requests left.
    fn parked_until(&self) -> Option<Timestamp> {
        let only_parked =
            !self.paused && self.visits.is_empty() && self.seeds.is_done() && self.scheduler.is_parked();
        // A crawl that is kept open may have an empty queue.
        (only_parked && self.core.frontier.len() > 0)
            .then(|| self.useful + seconds(self.core.cx.settings().max_parked_wait))
    }

    /// Drops all queued requests, which are all parked.
    async fn drop_parked(&mut self) -> Result<()> {
        let hosts = self.core.frontier.open().await?;
        log::warn!(hosts = hosts.len(), "dropping parked requests: no other request is left");
        for (host, _) in hosts {
            let _settling = self.core.settling().await;
            let failed = drain(&self.core, &host, None, |request| {
                let reason = request.meta_text(meta::PARKED_REASON).unwrap_or("host_parked").to_owned();
                DropReason::failed(reason).detail("its host was parked, and no other request was left")
            });
            self.failed_seeds.extend(failed.await?);
        }
        self.failed_seeds.truncate(MAX_FAILED_SEEDS);
        Ok(())
    }

    /// Drops the queue of a host.
    async fn give_up(&mut self, host: &HostKey, reason: &'static str) -> Result<()> {
        // Other tasks may wait for a start of the host: their requests return to the queue and are dropped with it.
        self.waiters.retain(|_, (waits_for, _)| waits_for != host);
        let core = Arc::clone(&self.core);
        // Do not wait for the gate: a commit waits for visits, and those may wait for this loop, as with a pipeline
        // that downloads.
        let Some(_settling) = core.gate.try_enter() else {
            if !self.given_up.iter().any(|(other, _)| other == host) {
                self.given_up.push((host.clone(), reason));
            }
            return Ok(());
        };
        let failed = match reason {
            "host_page_limit" | REMOVED => {
                drain(&self.core, host, None, |_| DropReason::skipped(reason)).await?
            }
            _ => drain(&self.core, host, None, |_| DropReason::failed(reason)).await?,
        };
        // A start request of a host that was removed on purpose has not failed.
        if reason != REMOVED {
            self.failed_seeds.extend(failed);
        }
        self.failed_seeds.truncate(MAX_FAILED_SEEDS);
        self.useful = self.core.cx.now();
        Ok(())
    }
}

/// Records and settles all queued requests of a host; the caller must be inside the gate. Returns the start requests
/// among them.
async fn drain(
    core: &Core,
    host: &HostKey,
    until: Option<tokio::time::Instant>,
    why: impl Fn(&Request) -> DropReason,
) -> Result<Vec<(String, String)>> {
    let mut seeds = Vec::new();
    loop {
        let leased = core.frontier.lease(host, DRAIN_BATCH, Timestamp::MAX).await?.leases;
        if leased.is_empty() || until.is_some_and(|until| tokio::time::Instant::now() >= until) {
            return Ok(seeds);
        }
        let mut settled = Vec::with_capacity(leased.len());
        let mut requests = Vec::with_capacity(leased.len());
        for lease in leased {
            let reason = why(&lease.request);
            if lease.request.depth == 0 && lease.request.meta_flag(meta::IS_START_REQUEST) {
                if reason.state == DropState::Failed {
                    core.seed_failed(lease.request.requested_url(), &reason.reason);
                }
                if seeds.len() < MAX_FAILED_SEEDS {
                    seeds.push((lease.request.requested_url().to_owned(), reason.reason.to_string()));
                }
            }
            core.record(&Dropped::new(&lease.request, "engine", reason, core.cx.now()));
            settled.push(Settled {
                lease: lease.id,
                host: host.clone(),
                end: End::Done,
                children: Vec::new(),
            });
            requests.push(lease.request);
        }
        // All of them are of one host, so that either none or all are void.
        if core.frontier.settle(settled).await?.void == 0 {
            requests.iter().for_each(|request| core.work_settled(request, false));
        }
    }
}

/// After the loop: requests in flight return to the queue, and requests that remain in a queue in memory are
/// recorded.
async fn settle_leftovers(
    core: &Core,
    leases: Vec<(LeaseId, HostKey)>,
    reason: &str,
    aborted: bool,
    keeps_queue: bool,
) -> Result<()> {
    let settled = leases
        .into_iter()
        .map(|(lease, host)| Settled { lease, host, end: End::Release, children: Vec::new() })
        .collect();
    core.frontier.settle(settled).await?;
    // A limit is a wanted end, so nothing needs to be kept for later; a crawl that was stopped may be resumed.
    if core.frontier.is_durable() && keeps_queue {
        return core.frontier.sync().await;
    }
    if core.frontier.len() == 0 {
        return Ok(());
    }
    let until = aborted.then(|| tokio::time::Instant::now() + ABORT_RECORD_TIMEOUT);
    for (host, _) in core.frontier.open().await? {
        let _settling = core.settling().await;
        drain(core, &host, until, |_| DropReason::skipped("not_crawled").detail(reason)).await?;
    }
    Ok(())
}
