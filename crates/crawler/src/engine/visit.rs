//! A visit: one leased request, from the middleware chain to the settled page.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use http::Extensions;

use super::chain::Exchanged;
use super::core::Core;
use super::parse::{Job, Parsed, Verdict};
use super::release_counts::MAX_RELEASES;
use crate::client::FetchId;
use crate::context::Context;
use crate::drop::{DropReason, DropState, Dropped};
use crate::error::{Result, panic_message};
use crate::event::Event;
use crate::fetch::FetchErrorKind;
use crate::frontier::{End, KnownTarget, Lease, LeaseId, Pushed, Settled};
use crate::host::HostKey;
use crate::meta;
use crate::request::Request;
use crate::response::Response;
use crate::schedule::Ticket;

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

/// The work on one lease.
pub(crate) struct Visit {
    core: Arc<Core>,
    lease: LeaseId,
    host: HostKey,
    /// The request as it was leased; middlewares work on a copy.
    origin: Request,
    /// Holds the start that came with the lease, until the first send to the host takes it.
    cx: Context,
}

/// What a visit came to: its verdict, and what the callback gave.
struct VisitResult {
    verdict: Verdict,
    children: Vec<Request>,
    callback_failed: bool,
    /// Items that the callback gave.
    given: u64,
    /// The extensions of the page, for observers.
    found: Extensions,
}

impl VisitResult {
    /// Without a callback that gave anything.
    fn dropped(component: &'static str, reason: DropReason) -> Self {
        Self {
            verdict: Verdict::Dropped(component, reason),
            children: Vec::new(),
            callback_failed: false,
            given: 0,
            found: Extensions::new(),
        }
    }
}

impl Visit {
    /// Visits the request of a lease. A panic of a middleware costs this request only.
    pub(crate) async fn run(core: Arc<Core>, lease: Lease, ticket: Ticket) -> Result<(HostKey, VisitEnd)> {
        let host = ticket.host.clone();
        let cx = core.cx.with_ticket(ticket);
        let visit = Self { core, lease: lease.id, host, origin: lease.request.clone(), cx };
        if visit.origin.extensions.get::<KnownTarget>().is_some() {
            visit.cx.give_back_start();
            let end = visit.known_target().await?;
            return Ok((visit.host, end));
        }
        let end = match AssertUnwindSafe(visit.exchange(lease.request)).catch_unwind().await {
            Ok(exchanged) => {
                visit.cx.give_back_start();
                match exchanged {
                    Exchanged::Page(request, response) => visit.page(request, response).await?,
                    Exchanged::Reschedule(request) => visit.reschedule(request).await?,
                    Exchanged::Drop(request, component, reason) => {
                        visit.drop_as(request, component, reason).await?
                    }
                }
            }
            Err(panic) => {
                visit.cx.give_back_start();
                let reason = DropReason::failed("panic").detail(panic_message(&*panic));
                visit.drop_as(visit.origin.clone(), "middleware", reason).await?
            }
        };
        Ok((visit.host, end))
    }

    async fn exchange(&self, request: Request) -> Exchanged {
        match self.core.offsite(&request, &self.core.spider.allowed_domains()) {
            Some(reason) => Exchanged::Drop(request, "offsite", reason),
            None => self.core.chain.exchange(request, &self.core.sender, &self.cx).await,
        }
    }

    /// A response goes to the spider middlewares and the callback.
    async fn page(&self, request: Request, mut response: Response) -> Result<VisitEnd> {
        let core = &self.core;
        // Answers that did not come through the network are counted from here.
        let _active = match response.counted.0.take() {
            Some(count) => count,
            None => core.active.count(response.body.len()),
        };
        core.counters.received.inc();
        if core.cx.has_observers() {
            core.cx.emit(&Event::ResponseReceived { request: &request, response: &response });
        }
        let status = response.status;
        let parsed = core.on_worker(Job::Page(request, response)).await;
        let _settling = core.settling().await;
        let Some(parsed) = parsed else {
            let reason = DropReason::failed("panic").status(status).detail("the worker of the page panicked");
            return self
                .end(VisitResult { callback_failed: true, ..VisitResult::dropped("spider", reason) })
                .await;
        };
        let Parsed { items, requests: children, verdict, callback_failed, given, found } = parsed;
        if let Some(items) = items
            && !core.deliver(items).await
        {
            // The pipelines have failed: what was not acknowledged is not settled.
            return self.release("its items were not accepted").await;
        }
        self.end(VisitResult { verdict, children, callback_failed, given, found }).await
    }

    /// The request ended in the downloader chain; one that failed goes to the spider's `failed`.
    async fn drop_as(
        &self,
        request: Request,
        component: &'static str,
        reason: DropReason,
    ) -> Result<VisitEnd> {
        if reason.reason == FetchErrorKind::Cancelled.name() {
            return self.release("it was cancelled").await;
        }
        let parsed = match reason.state {
            DropState::Failed => self.core.on_worker(Job::Failed(request, reason.clone())).await,
            DropState::Skipped => None,
        };
        let _settling = self.core.settling().await;
        let mut result = VisitResult::dropped(component, reason);
        if let Some(parsed) = parsed {
            result.children = parsed.requests;
            result.callback_failed = parsed.callback_failed;
            if let Some(items) = parsed.items
                && !self.core.deliver(items).await
            {
                return self.release("its items were not accepted").await;
            }
        }
        self.end(result).await
    }

    /// Another request takes the place of this one.
    async fn reschedule(&self, mut request: Box<Request>) -> Result<VisitEnd> {
        let core = &self.core;
        FetchId::inherit_fetch(&self.origin, &mut request);
        core.assign(&mut request, None).await;
        let _settling = core.settling().await;
        if core.cx.has_observers()
            && let Some(reason) = core.cx.veto(&request)
        {
            return self.end(VisitResult::dropped("observer", reason)).await;
        }
        let pushed = self.settle(End::Reschedule(request), Vec::new()).await?;
        if pushed.void > 0 {
            return Ok(VisitEnd::Unfinished);
        }
        let end = match (pushed.refused.first(), pushed.unfit.first()) {
            (None, None) => VisitEnd::Unfinished,
            (Some(known), _) => {
                self.record_known(known);
                VisitEnd::Dropped { seed: None, callback_failed: false }
            }
            (None, Some((request, why))) => {
                let detail = format!("leads to {}, which the queue cannot hold: {why}", request.url);
                let reason = DropReason::skipped("unfit_for_queue").detail(detail);
                core.record(&Dropped::new(&self.origin, "frontier", reason, core.cx.now()));
                VisitEnd::Dropped { seed: None, callback_failed: false }
            }
        };
        core.work_settled(&self.origin, false);
        Ok(end)
    }

    /// Ends a redirect whose target is known: the request of this visit is that target.
    async fn known_target(&self) -> Result<VisitEnd> {
        let _settling = self.core.settling().await;
        self.record_known(&self.origin);
        if self.settle(End::Done, Vec::new()).await?.void > 0 {
            return Ok(VisitEnd::Unfinished);
        }
        self.core.work_settled(&self.origin, false);
        Ok(VisitEnd::Dropped { seed: None, callback_failed: false })
    }

    /// Records that the request of this visit led to a known one.
    fn record_known(&self, known: &Request) {
        let detail = format!("redirects to {}, which was requested already", known.url);
        let reason = DropReason::skipped("redirect_duplicate").detail(detail);
        self.core.record(&Dropped::new(&self.origin, "dupefilter", reason, self.core.cx.now()));
    }

    /// Gives the request back to the queue. One that is given back again and again is dropped instead: something keeps it from
    /// ever being settled, and it would be fetched for ever.
    async fn release(&self, why: &'static str) -> Result<VisitEnd> {
        let core = &self.core;
        if !core.cx.is_stopping() && core.release_counts.count_release(self.origin.fingerprint()) {
            let detail = format!("given back to the queue {MAX_RELEASES} times, the last time because {why}");
            let reason = DropReason::failed("given_back").detail(detail);
            return self.end(VisitResult::dropped("engine", reason)).await;
        }
        self.settle(End::Release, Vec::new()).await?;
        Ok(VisitEnd::Unfinished)
    }

    /// Records the request if it was dropped, and settles it with its children. The record goes first, as items do: once the request is
    /// settled, nobody asks for it again.
    async fn end(&self, result: VisitResult) -> Result<VisitEnd> {
        let VisitResult { verdict, children, callback_failed, given, found } = result;
        let (core, origin) = (&self.core, &self.origin);
        let delivered = matches!(verdict, Verdict::Delivered);
        let mut seed = None;
        if let Verdict::Dropped(component, reason) = verdict {
            core.cx.guarded(origin.url.as_str(), &reason);
            seed = failed_seed(origin, &reason);
            if let Some((url, why)) = &seed {
                core.seed_failed(url, why);
            }
            core.record(&Dropped::new(origin, component, reason, core.cx.now()));
        }
        let pushed = self.settle(End::Done, children).await?;
        core.release_counts.forget(origin.fingerprint());
        if pushed.void > 0 {
            // The process that works on the host now does it again.
            return Ok(VisitEnd::Unfinished);
        }
        core.work_settled(origin, delivered);
        if !delivered {
            return Ok(VisitEnd::Dropped { seed, callback_failed });
        }
        core.counters.delivered.inc();
        if core.cx.has_observers() {
            core.cx.emit(&Event::PageDelivered { request: origin, items: given, found: &found });
        }
        Ok(VisitEnd::Delivered { callback_failed })
    }

    async fn settle(&self, end: End, children: Vec<Request>) -> Result<Pushed> {
        self.core.settle(Settled { lease: self.lease, host: self.host.clone(), end, children }).await
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
