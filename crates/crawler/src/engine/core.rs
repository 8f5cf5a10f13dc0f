//! The core of a crawl: what all its visits share, and what they do to the queue, the records and the items.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::assembly::Ordered;
use super::chain::Chain;
use super::commits::Commits;
use super::gate::Gate;
use super::inline::Inline;
use super::items::ItemBatch;
use super::known_links::KnownLinks;
use super::parse::{Job, Parsed};
use super::release_counts::ReleaseCounts;
use super::send::Sender;
use crate::active::ActiveBytes;
use crate::component::PageNeeds;
use crate::context::{Context, Message};
use crate::cpu::in_place;
use crate::drop::{DropReason, DropState, Dropped};
use crate::dyn_spider::{DynSpider, GivenItems};
use crate::error::Result;
use crate::event::Event;
use crate::frontier::{DynFrontier, Pushed, Settled, Work};
use crate::hand_over::HandOver;
use crate::host::{HostKey, SlotBy};
use crate::log;
use crate::losses::LossKind;
use crate::meta;
use crate::middleware::SpiderMiddleware;
use crate::request::{Fingerprinter, Request};
use crate::secrets::redacted;
use crate::stats::Counter;

/// What all visits of a crawl share.
pub(crate) struct Core {
    pub(crate) cx: Context,
    pub(crate) spider: Box<dyn DynSpider>,
    pub(crate) chain: Chain,
    pub(crate) spider_chain: Vec<Ordered<Arc<dyn SpiderMiddleware>>>,
    pub(crate) page_needs: PageNeeds,
    pub(crate) sender: Sender,
    pub(crate) frontier: Arc<dyn DynFrontier>,
    pub(crate) hand_over: Arc<[Arc<dyn HandOver>]>,
    pub(crate) items: mpsc::Sender<ItemBatch>,
    pub(crate) fingerprinter: Fingerprinter,
    pub(crate) known_links: KnownLinks,
    pub(crate) release_counts: ReleaseCounts,
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

impl Core {
    /// Runs a job on a worker thread, or in place if it is a small page of a cheap callback; `None` if the job itself panicked
    /// outside of user code.
    pub(crate) async fn on_worker(self: &Arc<Self>, job: Job) -> Option<Parsed> {
        if let Job::Page(_, response) = &job
            && self.runs_threads
            && self.inline.allows(response.body.len())
        {
            return catch_unwind(AssertUnwindSafe(|| in_place(|| self.timed(job)))).ok();
        }
        let (sender, receiver) = oneshot::channel();
        let core = Arc::clone(self);
        self.cx.cpu().spawn(move || {
            let parsed = core.timed(job);
            // The core holds the job, which must be free when the crawl has ended.
            drop(core);
            drop(sender.send(parsed));
        });
        receiver.await.ok()
    }

    fn timed(self: &Arc<Self>, job: Job) -> Parsed {
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
    pub(crate) async fn deliver(&self, items: GivenItems) -> bool {
        let (acknowledge, acknowledged) = oneshot::channel();
        let is_accepted =
            self.items.send(ItemBatch { items, acknowledge }).await.is_ok() && acknowledged.await.is_ok();
        if let (false, Some(commits)) = (is_accepted, &self.commits) {
            commits.stop();
        }
        is_accepted
    }

    /// Settles a lease with its children.
    pub(crate) async fn settle(&self, mut settled: Settled) -> Result<Pushed> {
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
        for (request, why) in &pushed.unfit {
            self.unfit(request, why);
        }
    }

    /// Counts and tells a request that the queue cannot hold.
    fn unfit(&self, request: &Request, why: &str) {
        log::warn!(url = %redacted(request.url.as_str()), "not crawled, because the queue cannot hold the request: {why}");
        if request.meta_flag(meta::IS_START_REQUEST) {
            self.seed_failed(request.url.as_str(), why);
        }
        self.refuse(request, "frontier", DropReason::skipped("unfit_for_queue").detail(why));
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

    /// Why a request is not in the spider's domains, if it is not. The domains of the spider may change during the crawl, so a link is
    /// judged when it is found, and again right before the download, when a redirect may have led elsewhere. Start requests are the
    /// spider's own choice.
    pub(crate) fn offsite(&self, request: &Request, domains: &[String]) -> Option<DropReason> {
        let by_redirect = request.has_meta(meta::UNFILTERED_BY);
        let is_start = || request.meta_flag(meta::IS_START_REQUEST) && !request.has_meta(meta::REDIRECT_URLS);
        if domains.is_empty()
            || request.meta_flag(meta::ALLOW_OFFSITE)
            || (request.unfiltered && !by_redirect)
            || is_start()
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

    /// Tells that a request of a shared queue is settled for good.
    pub(crate) fn work_settled(&self, request: &Request, delivered: bool) {
        if let Some(work) = request.extensions.get::<Work>() {
            self.cx.emit(&Event::WorkSettled { work, delivered });
        }
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
