//! A visit: one leased request, from the middleware chain to the settled page.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http::Extensions;
use tokio::sync::{mpsc, oneshot};

use super::assembly::Placed;
use super::chain::{Chain, Exchanged, NESTED_WAIT};
use super::commits::Commits;
use super::gate::Gate;
use super::given_back::{GivenBack, MOST_GIVEN_BACK};
use super::inline::Inline;
use super::items::{ItemBatch, panic_message};
use super::known_links::KnownLinks;
use super::parse::{Job, Parsed, Verdict};
use super::send::{Sender, TURN};
use crate::active::{ActiveBytes, Held};
use crate::client::FetchId;
use crate::component::PageNeeds;
use crate::context::{Context, Exchange, Message};
use crate::cpu::in_place;
use crate::drop::{DropReason, DropState, Dropped};
use crate::error::Result;
use crate::event::Event;
use crate::fetch::{BoxFuture, FetchError, FetchErrorKind};
use crate::frontier::{DynFrontier, End, Lease, LeaseId, Pushed, Settled};
use crate::host::{HostKey, SlotBy};
use crate::log;
use crate::losses::LossKind;
use crate::meta;
use crate::middleware::SpiderMiddleware;
use crate::request::{Fingerprinter, Nested, Request};
use crate::response::Response;
use crate::schedule::{Outcome, Ticket};
use crate::secrets::redacted;
use crate::spider::Spider;
use crate::stats::Counter;

/// What all visits of a crawl share.
pub(crate) struct Core<S: Spider> {
    pub(crate) cx: Context,
    pub(crate) spider: S,
    pub(crate) chain: Chain,
    pub(crate) spider_chain: Vec<Placed<Arc<dyn SpiderMiddleware>>>,
    pub(crate) page_needs: PageNeeds,
    pub(crate) sender: Sender,
    pub(crate) frontier: Box<dyn DynFrontier>,
    pub(crate) items: mpsc::Sender<ItemBatch<S::Item>>,
    pub(crate) fingerprinter: Fingerprinter,
    pub(crate) known_links: KnownLinks,
    pub(crate) given_back: GivenBack,
    pub(crate) slot_by: SlotBy,
    /// `None` without a job.
    pub(crate) commits: Option<Arc<Commits>>,
    pub(crate) gate: Gate,
    /// Bytes of responses that wait for or are in callbacks.
    pub(crate) active: ActiveBytes,
    pub(crate) counters: Counters,
    pub(crate) has_logged_duplicate: AtomicBool,
    pub(crate) inline: Inline,
    /// Whether the runtime has threads of its own, so that one of them may be busy for a while.
    pub(crate) runs_threads: bool,
}

/// The counters of the hot path.
pub(crate) struct Counters {
    pub(crate) received: Counter,
    pub(crate) delivered: Counter,
    pub(crate) enqueued: Counter,
    pub(crate) dequeued: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) links_cut: Counter,
    pub(crate) links_invalid: Counter,
}

impl Counters {
    pub(crate) fn new(cx: &Context) -> Self {
        let counter = |key| cx.stats().counter(key);
        Self {
            received: counter("response_received_count"),
            delivered: counter("pages/delivered"),
            enqueued: counter("scheduler/enqueued"),
            dequeued: counter("scheduler/dequeued"),
            duplicates: counter("dupefilter/filtered"),
            links_cut: counter("links/cut"),
            links_invalid: counter("links/invalid"),
        }
    }
}

/// How a visit ended, for the loop's limits and report.
#[derive(Debug)]
pub(crate) enum VisitEnd {
    /// A page was delivered; whether its callback gave an error.
    Delivered { callback_failed: bool },
    /// The request ended without a page.
    Dropped { seed: Option<(String, String)>, callback_failed: bool },
    /// Another request took its place, or it went back to the queue.
    Unfinished,
}

impl<S: Spider> Core<S> {
    /// Works off one lease. Panics of middlewares cost this request only.
    pub(crate) async fn visit(self: Arc<Self>, lease: Lease, ticket: Ticket) -> Result<(HostKey, VisitEnd)> {
        let host = ticket.host.clone();
        let origin = lease.request.clone();
        let turn = std::cell::Cell::new(Some(ticket));
        let work = TURN.scope(turn, async {
            let exchange = async {
                match self.offsite_now(&lease.request) {
                    Some(reason) => Exchanged::Drop(lease.request, "offsite", reason),
                    None => self.chain.exchange(lease.request, &self.sender, &self.cx).await,
                }
            };
            let exchanged = AssertUnwindSafe(exchange).catch_unwind().await;
            // A start that was not used costs the slot no delay.
            if let Some(unused) = TURN.with(std::cell::Cell::take) {
                self.cx.tell(Message::Ended(unused, Outcome::Unused));
            }
            exchanged
        });
        let end = match work.await {
            Ok(Exchanged::Page(request, response)) => {
                self.page(lease.id, &host, &origin, request, response).await?
            }
            Ok(Exchanged::Again(request)) => self.again(lease.id, &host, &origin, request).await?,
            Ok(Exchanged::Drop(request, component, reason)) => {
                self.dropped(lease.id, &host, &origin, request, component, reason).await?
            }
            Err(panic) => {
                let reason = DropReason::failed("panic").detail(panic_message(&*panic));
                self.dropped(lease.id, &host, &origin, origin.clone(), "middleware", reason).await?
            }
        };
        Ok((host, end))
    }

    /// A response goes to the spider middlewares and the callback.
    async fn page(
        self: &Arc<Self>,
        lease: LeaseId,
        host: &HostKey,
        origin: &Request,
        request: Request,
        mut response: Response,
    ) -> Result<VisitEnd> {
        // Answers that did not come through the network are counted from here.
        let _active = match response.held.0.take() {
            Some(hold) => hold,
            None => self.active.hold(response.body.len()),
        };
        self.counters.received.inc();
        if self.cx.has_observers() {
            self.cx.emit(&Event::ResponseReceived { request: &request, response: &response });
        }
        let status = response.status;
        let parsed = self.on_worker(Job::Page(request, response)).await;
        let _settling = self.settling().await;
        let Some(parsed) = parsed else {
            let reason = DropReason::failed("panic").status(status).detail("the worker of the page panicked");
            let verdict = Verdict::Dropped("spider", reason);
            return self.end(lease, host, origin, verdict, (0, &Extensions::new()), Vec::new(), true).await;
        };
        let Parsed { items, requests, verdict, callback_failed, given, found } = parsed;
        if !items.is_empty() && !self.deliver(items).await {
            // The pipelines have failed: what was not acknowledged is not settled.
            return self.release(lease, host, origin, "its items were not accepted").await;
        }
        self.end(lease, host, origin, verdict, (given, &found), requests, callback_failed).await
    }

    /// A request that ended in the downloader chain; one that failed goes to the spider's `failed`.
    async fn dropped(
        self: &Arc<Self>,
        lease: LeaseId,
        host: &HostKey,
        origin: &Request,
        request: Request,
        component: &'static str,
        reason: DropReason,
    ) -> Result<VisitEnd> {
        if reason.reason == FetchErrorKind::Cancelled.name() {
            return self.release(lease, host, origin, "it was cancelled").await;
        }
        let mut requests = Vec::new();
        let mut callback_failed = false;
        let parsed = match reason.state {
            DropState::Failed => self.on_worker(Job::Failed(request, reason.clone())).await,
            DropState::Skipped => None,
        };
        let _settling = self.settling().await;
        if let Some(parsed) = parsed {
            requests = parsed.requests;
            callback_failed = parsed.callback_failed;
            if !parsed.items.is_empty() && !self.deliver(parsed.items).await {
                return self.release(lease, host, origin, "its items were not accepted").await;
            }
        }
        let verdict = Verdict::Dropped(component, reason);
        self.end(lease, host, origin, verdict, (0, &Extensions::new()), requests, callback_failed).await
    }

    /// Runs a job on a worker thread, or in place if it is a small page of a cheap callback; `None` if the job itself panicked
    /// outside of user code.
    async fn on_worker(self: &Arc<Self>, job: Job) -> Option<Parsed<S::Item>> {
        if let Job::Page(_, response) = &job
            && self.runs_threads
            && self.inline.allows(response.body.len())
        {
            return catch_unwind(AssertUnwindSafe(|| in_place(|| self.timed(job)))).ok();
        }
        let (sender, receiver) = oneshot::channel();
        let core = Arc::clone(self);
        self.cx.cpu().spawn(move || drop(sender.send(core.timed(job))));
        receiver.await.ok()
    }

    fn timed(self: &Arc<Self>, job: Job) -> Parsed<S::Item> {
        let start = std::time::Instant::now();
        let parsed = self.run_job(job);
        self.inline.took(start.elapsed());
        parsed
    }

    /// From handing over items to the settled page and its record: a commit of the job, and the end of the crawl, wait for the end
    /// of it.
    pub(crate) async fn settling(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.gate.enter().await
    }

    /// Hands items to the pipelines and waits until they are acknowledged.
    pub(crate) async fn deliver(&self, items: Vec<S::Item>) -> bool {
        let (acknowledge, acknowledged) = oneshot::channel();
        let is_accepted =
            self.items.send(ItemBatch { items, acknowledge }).await.is_ok() && acknowledged.await.is_ok();
        if let (false, Some(commits)) = (is_accepted, &self.commits) {
            commits.stop();
        }
        is_accepted
    }

    /// Settles a request that is done: with children, and with a record if it was dropped.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one settled visit; a struct would only rename them"
    )]
    async fn end(
        &self,
        lease: LeaseId,
        host: &HostKey,
        origin: &Request,
        verdict: Verdict,
        (items, found): (u64, &Extensions),
        children: Vec<Request>,
        callback_failed: bool,
    ) -> Result<VisitEnd> {
        let settled = Settled { lease, host: host.clone(), end: End::Done, children };
        self.settle(settled).await?;
        self.given_back.settled(origin.fingerprint());
        match verdict {
            Verdict::Delivered => {
                self.counters.delivered.inc();
                if self.cx.has_observers() {
                    self.cx.emit(&Event::PageDelivered { request: origin, items, found });
                }
                Ok(VisitEnd::Delivered { callback_failed })
            }
            Verdict::Dropped(component, reason) => {
                self.cx.guarded(origin.url.as_str(), &reason);
                let seed = failed_seed(origin, &reason);
                if let Some((url, why)) = &seed {
                    self.seed_failed(url, why);
                }
                self.record(&Dropped::new(origin, component, reason, self.cx.now()));
                Ok(VisitEnd::Dropped { seed, callback_failed })
            }
        }
    }

    /// Another request takes the place of this one.
    async fn again(
        &self,
        lease: LeaseId,
        host: &HostKey,
        origin: &Request,
        mut request: Box<Request>,
    ) -> Result<VisitEnd> {
        FetchId::hand_on(origin, &mut request);
        self.assign(&mut request, None).await;
        let _settling = self.settling().await;
        if self.cx.has_observers()
            && let Some(reason) = self.cx.veto(&request)
        {
            let verdict = Verdict::Dropped("observer", reason);
            return self.end(lease, host, origin, verdict, (0, &Extensions::new()), Vec::new(), false).await;
        }
        let end = End::Again(request);
        let pushed = self.settle(Settled { lease, host: host.clone(), end, children: Vec::new() }).await?;
        match pushed.refused.first() {
            None => Ok(VisitEnd::Unfinished),
            Some(known) => {
                let detail = format!("redirects to {}, which was requested already", known.url);
                let reason = DropReason::skipped("redirect_duplicate").detail(detail);
                self.record(&Dropped::new(origin, "dupefilter", reason, self.cx.now()));
                Ok(VisitEnd::Dropped { seed: None, callback_failed: false })
            }
        }
    }

    /// Gives a request back to the queue. One that is given back again and again is dropped instead: something keeps it from
    /// ever being settled, and it would be fetched for ever.
    async fn release(
        &self,
        lease: LeaseId,
        host: &HostKey,
        origin: &Request,
        why: &'static str,
    ) -> Result<VisitEnd> {
        if !self.cx.is_stopping() && self.given_back.is_too_often(origin.fingerprint()) {
            let detail =
                format!("given back to the queue {MOST_GIVEN_BACK} times, the last time because {why}");
            let verdict = Verdict::Dropped("engine", DropReason::failed("given_back").detail(detail));
            return self.end(lease, host, origin, verdict, (0, &Extensions::new()), Vec::new(), false).await;
        }
        self.settle(Settled { lease, host: host.clone(), end: End::Release, children: Vec::new() }).await?;
        Ok(VisitEnd::Unfinished)
    }

    async fn settle(&self, mut settled: Settled) -> Result<Pushed> {
        self.admit(&mut settled.children);
        let pushed = self.frontier.settle(vec![settled]).await?;
        self.count(&pushed);
        Ok(pushed)
    }

    /// Queues requests; they are assigned and admitted already.
    pub(crate) async fn push(&self, requests: Vec<Request>) -> Result<Pushed> {
        let pushed = self.frontier.push(requests).await?;
        self.count(&pushed);
        Ok(pushed)
    }

    /// Asks the observers about requests that are about to be queued, and tells them of those that will be.
    pub(crate) fn admit(&self, requests: &mut Vec<Request>) {
        if self.cx.has_observers() {
            requests.retain(|request| match self.cx.veto(request) {
                Some(reason) => {
                    self.refuse(request, "observer", reason);
                    false
                }
                None => {
                    self.cx.emit(&Event::RequestScheduled { request });
                    true
                }
            });
        }
    }

    fn count(&self, pushed: &Pushed) {
        self.counters.enqueued.add(i64::try_from(pushed.accepted).unwrap_or(i64::MAX));
        self.counters.duplicates.add(i64::try_from(pushed.duplicates).unwrap_or(i64::MAX));
        if !pushed.woken.is_empty() {
            self.cx.tell(Message::Woken(pushed.woken.clone()));
        }
    }

    /// Gives a request its slot and its fingerprint. `near` is a request whose slot is likely the same.
    pub(crate) async fn assign(&self, request: &mut Request, near: Option<&Request>) {
        self.assign_now(request, near);
        if self.slot_by == SlotBy::Ip
            && request.meta_text(meta::DOWNLOAD_SLOT).is_none()
            && let Some(host) = request.url.host_str()
            && let Some(address) = self.sender.address(host).await
        {
            request.assign_slot(HostKey::new(&address.to_string()));
        }
    }

    /// As [`Core::assign`], for slots that need no resolver.
    pub(crate) fn assign_now(&self, request: &mut Request, near: Option<&Request>) {
        let slot = match (request.meta_text(meta::DOWNLOAD_SLOT), near) {
            (Some(name), _) => HostKey::new(name),
            (None, Some(near)) if near.url.host_str() == request.url.host_str() => near.host(),
            (None, _) => HostKey::of(&request.url, self.slot_by),
        };
        request.assign_slot(slot);
        let fingerprint = self.fingerprinter.of(request);
        request.assign_fingerprint(fingerprint);
    }

    /// Why a request is not in the spider's domains, if it is not.
    pub(crate) fn offsite(&self, request: &Request, domains: &[String]) -> Option<DropReason> {
        let by_redirect = request.has_meta(meta::UNFILTERED_BY);
        if domains.is_empty()
            || request.meta_flag(meta::ALLOW_OFFSITE)
            || (request.unfiltered && !by_redirect)
        {
            return None;
        }
        let host = request.url.host_str().unwrap_or_default();
        let is_within = |domain: &String| {
            let rest = host.strip_suffix(domain.trim_matches('.').to_ascii_lowercase().as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if domains.iter().any(is_within) {
            return None;
        }
        self.cx.stats().inc("offsite/filtered");
        Some(DropReason::skipped("offsite").detail(format!("{host} is not in the spider's domains")))
    }

    /// The same right before the download: a redirect led elsewhere, or the domains changed. Start requests are the
    /// spider's own choice.
    fn offsite_now(&self, request: &Request) -> Option<DropReason> {
        let is_start = request.meta_flag(meta::IS_START_REQUEST) && !request.has_meta(meta::REDIRECT_URLS);
        if is_start { None } else { self.offsite(request, &self.spider.allowed_domains()) }
    }

    /// Counts, logs and tells a request that was in the queue and ended without a page.
    pub(crate) fn record(&self, dropped: &Dropped) {
        let state = match dropped.state {
            DropState::Failed => "failed",
            DropState::Skipped => "skipped",
        };
        self.cx.stats().inc(&format!("drops/{state}"));
        self.cx.stats().inc(&format!("drops/{state}/{}", dropped.reason));
        log::debug!(
            url = %dropped.url, component = %dropped.component, detail = dropped.detail.as_deref(),
            "{state}: {}", dropped.reason
        );
        self.cx.emit(&Event::RequestDropped(dropped));
    }

    /// Counts a link to something that is known already; logs the first one, or all with `dupefilter_debug`.
    pub(crate) fn duplicate(&self, url: &url::Url) {
        self.counters.duplicates.inc();
        let is_verbose = self.cx.settings().dupefilter_debug;
        if is_verbose || !self.has_logged_duplicate.swap(true, Ordering::Relaxed) {
            let more = if is_verbose { "" } else { "; later ones are not logged (see dupefilter_debug)" };
            log::debug!(%url, "filtered a duplicate{more}");
        }
    }

    /// Counts a start request that could not be fetched.
    pub(crate) fn seed_failed(&self, url: &str, why: &str) {
        self.cx.lost(LossKind::Seeds, "", || format!("{}: {why}", redacted(url)));
    }

    /// Counts and tells a request that was refused before it entered the queue.
    pub(crate) fn refuse(&self, request: &Request, component: &'static str, reason: DropReason) {
        self.cx.stats().inc(&format!("refused/{}", reason.reason));
        self.cx.guarded(request.url.as_str(), &reason);
        if self.cx.has_observers() {
            self.cx.emit(&Event::RequestRefused(&Dropped::new(request, component, reason, self.cx.now())));
        }
    }
}

impl<S: Spider> Exchange for Core<S> {
    fn download(self: Arc<Self>, request: Request) -> BoxFuture<'static, Result<Response, FetchError>> {
        /// More steps than any limit of redirects and retries allows.
        const STEPS: usize = 100;
        Box::pin(async move {
            let mut request = request;
            for _ in 0..STEPS {
                request.extensions.insert(Nested);
                self.assign(&mut request, None).await;
                if let Some(at) = request.not_before.take() {
                    let wait: Duration = at.since(self.cx.now());
                    tokio::time::sleep(wait.min(NESTED_WAIT)).await;
                }
                match self.chain.exchange(request, &self.sender, &self.cx).await {
                    Exchanged::Page(_, mut response) => {
                        // It is the callback's now, to keep as long as it likes.
                        response.held = Held::default();
                        return Ok(response);
                    }
                    Exchanged::Again(again) => request = *again,
                    Exchanged::Drop(_, component, reason) => {
                        let detail = reason.detail.as_deref().unwrap_or(&reason.reason);
                        let kind =
                            FetchErrorKind::of_reason(&reason.reason).unwrap_or(FetchErrorKind::Middleware);
                        let error = FetchError::new(kind, format!("{component}: {detail}"));
                        return Err(match reason.status {
                            Some(status) => error.with_status(status),
                            None => error,
                        });
                    }
                }
            }
            Err(FetchError::new(FetchErrorKind::Middleware, "too many redirects and retries"))
        })
    }
}

/// A start request that ended without a page, unless it only led to a page that came by another way.
fn failed_seed(origin: &Request, reason: &DropReason) -> Option<(String, String)> {
    // Not wanted again: an earlier crawl had it.
    let is_known = matches!(&*reason.reason, "not_modified" | "delta");
    if origin.depth > 0 || !origin.meta_flag(meta::IS_START_REQUEST) || is_known {
        return None;
    }
    let why = match (&reason.detail, reason.status) {
        (Some(detail), _) => format!("{}: {detail}", reason.reason),
        (None, Some(status)) => format!("{}: {status}", reason.reason),
        (None, None) => reason.reason.to_string(),
    };
    Some((origin.requested_url().to_owned(), why))
}
