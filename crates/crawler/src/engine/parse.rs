//! The CPU part of a visit: page, spider middlewares, callback. It runs on a worker thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use http::Extensions;
use huntsman_html::ScanOptions;

use super::core::Core;
use crate::drop::{DropReason, DropState};
use crate::dyn_spider::{Called, GivenItems, Outlet};
use crate::error::{Error, Result, panic_message};
use crate::event::Event;
use crate::log;
use crate::meta;
use crate::middleware::{OnFollow, OnPage};
use crate::output::Resolved;
use crate::page::{Page, RequestListener};
use crate::request::{DEFAULT_CALLBACK, FoundBy, Request};
use crate::response::Response;
use crate::route::RouteError;

/// A job for a worker thread.
#[expect(clippy::large_enum_variant, reason = "moved once per page; a box would be an allocation per page")]
pub(crate) enum Job {
    Page(Request, Response),
    Failed(Request, DropReason),
}

/// The result of a job.
pub(crate) struct Parsed {
    pub(crate) items: Option<GivenItems>,
    pub(crate) requests: Vec<Request>,
    pub(crate) verdict: Verdict,
    pub(crate) callback_failed: bool,
    /// Number of items that the callback gave, including those sent while it ran.
    pub(crate) given: u64,
    /// The extensions of the page after the callback, for observers.
    pub(crate) found: Extensions,
}

impl Parsed {
    /// A page whose only output is these requests.
    fn without_items(verdict: Verdict, requests: Vec<Request>, callback_failed: bool) -> Self {
        let found = Extensions::new();
        Self { items: None, requests, verdict, callback_failed, given: 0, found }
    }
}

/// Whether the page counts as delivered.
pub(crate) enum Verdict {
    Delivered,
    Dropped(&'static str, DropReason),
}

impl Core {
    pub(crate) fn run_job(self: &Arc<Self>, job: Job) -> Parsed {
        match job {
            Job::Page(request, response) => self.parse(request, response),
            Job::Failed(request, reason) => {
                let url = request.url.clone();
                let page = Page::new(request, Response::new(url, http::StatusCode::OK, ""));
                self.failed(&page, &reason.error(), Verdict::Delivered)
            }
        }
    }

    fn parse(self: &Arc<Self>, request: Request, response: Response) -> Parsed {
        let settings = self.cx.settings();
        let options = ScanOptions {
            text: settings.page_text || self.page_needs.text,
            blocks: settings.page_blocks || self.page_needs.blocks,
            resources: self.page_needs.audit,
            audit: self.page_needs.audit,
            ..ScanOptions::links_only()
        };
        let mut page = Page::with_options(request, response, options);
        for placed in &self.spider_chain {
            let answer = catch_unwind(AssertUnwindSafe(|| placed.part.process_page(&mut page, &self.cx)));
            let reason = match answer {
                Ok(Ok(OnPage::Parse)) => continue,
                Ok(Ok(OnPage::Skip(reason))) => reason,
                Ok(Err(error)) => DropReason::failed("middleware_error").detail(error.to_string()),
                Err(panic) => DropReason::failed("panic").detail(panic_message(&*panic)),
            };
            if reason.state == DropState::Skipped {
                let known = std::mem::take(&mut page.follow);
                let requests = self.follow_all(&page, known);
                return Parsed::without_items(Verdict::Dropped(placed.name, reason), requests, false);
            }
            let reason = reason.answered(page.response().clone());
            return self.failed(&page, &reason.error(), Verdict::Dropped(placed.name, reason));
        }
        let labels = self.spider.callbacks();
        let label = &*page.requested().callback;
        if !labels.is_empty() && label != DEFAULT_CALLBACK && !labels.contains(&label) {
            let reason = self.unknown_callback(&page, "callbacks() does not name it");
            return Parsed::without_items(Verdict::Dropped("spider", reason), Vec::new(), true);
        }
        let followed = std::mem::take(&mut page.follow);
        let page = Rc::new(page);
        let Called { result, items, requests, given } =
            self.spider.parse(&page, followed, self.outlet(&page));
        let reason = self.callback_result(&page, result).or_else(|| {
            // A closure that handles one page after the other treats a page of any label as its own.
            let nobody_looked = *page.requested().callback != *DEFAULT_CALLBACK && !page.label_was_read();
            nobody_looked
                .then(|| self.unknown_callback(&page, "its callback never looked at page.callback()"))
        });
        let (verdict, callback_failed) = match reason {
            None => (Verdict::Delivered, false),
            Some(reason) => (Verdict::Dropped("spider", reason), true),
        };
        let requests = self.follow_all(&page, requests);
        let found = Rc::try_unwrap(page).map(|page| page.extensions);
        let found = found.unwrap_or_else(|page| page.extensions.clone());
        Parsed { items, requests, verdict, callback_failed, given, found }
    }

    /// Calls the spider's `failed` for a request without a page.
    fn failed(self: &Arc<Self>, page: &Page, error: &Error, verdict: Verdict) -> Parsed {
        let called = self.spider.failed(page.request(), error, self.cx.clone());
        let Called { result, items, requests, given } = called;
        let callback_failed = self.callback_result(page, result).is_some();
        let requests = self.follow_all(page, requests);
        Parsed { items, requests, verdict, callback_failed, given, found: Extensions::new() }
    }

    /// Counts and reports the result of a callback. Returns the reason if it failed.
    fn callback_result(&self, page: &Page, result: std::thread::Result<Result<()>>) -> Option<DropReason> {
        Some(match result {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => {
                let (kind, reason) = match error.downcast_ref::<RouteError>() {
                    Some(route) if route.is_unknown() => ("unknown", "unknown_callback"),
                    Some(_) => ("arguments", "callback_arguments"),
                    None => ("error", "callback_error"),
                };
                self.callback_failed(page, kind, reason, error.to_string())
            }
            Err(panic) => {
                self.callback_failed(page, "panic", "callback_panic", panic_message(&*panic).to_owned())
            }
        })
    }

    /// Handles a page whose label the spider does not know.
    fn unknown_callback(&self, page: &Page, why: &str) -> DropReason {
        let message =
            format!("the spider has no callback \"{}\": {why}", page.requested().callback.escape_debug());
        self.callback_failed(page, "unknown", "unknown_callback", message)
    }

    fn callback_failed(
        &self,
        page: &Page,
        kind: &'static str,
        reason: &'static str,
        message: String,
    ) -> DropReason {
        self.cx.stats().inc("spider_exceptions/count");
        self.cx.stats().inc(&format!("spider_exceptions/{kind}"));
        log::error!(url = %page.url(), callback = &*page.requested().callback, "callback {kind}: {message}");
        self.cx.emit(&Event::SpiderError { request: page.request(), error: &message });
        DropReason::failed(reason).detail(message)
    }

    /// An outlet that sends full batches while the callback runs.
    fn outlet(self: &Arc<Self>, page: &Rc<Page>) -> Outlet {
        let tells_all = page.extensions.get::<RequestListener>().is_some();
        let core = Arc::clone(self);
        let page = Rc::clone(page);
        let flush = move |items: Option<GivenItems>, requests: Vec<Request>| {
            let mut requests = core.follow_all(&page, requests);
            core.admit(&mut requests);
            core.cx.block_on(async {
                if let Some(items) = items {
                    core.deliver(items).await;
                }
                if !requests.is_empty()
                    && let Err(error) = core.push(requests).await
                {
                    core.cx.tell(crate::context::Message::Fatal(error));
                }
            });
        };
        let core = Arc::clone(self);
        let resolve = move |page: &Page, href: &str| match tells_all {
            // `follow_all` filters the links after it has reported them.
            true => core.resolve_anew(page, href),
            false => core.resolve(page, href),
        };
        Outlet { context: self.cx.clone(), flush: Box::new(flush), resolve: Box::new(resolve) }
    }

    /// Resolves a link, even if it is known.
    fn resolve_anew(&self, page: &Page, href: &str) -> Resolved {
        let resolved = Resolved::of(page, href);
        if matches!(resolved, Resolved::Invalid) {
            self.counters.links_invalid.inc();
        }
        resolved
    }

    /// Resolves a link.
    fn resolve(&self, page: &Page, href: &str) -> Resolved {
        // With this setting every duplicate is logged, so none may be filtered early.
        let is_verbose = self.cx.settings().dupefilter_debug;
        let key = if is_verbose { None } else { self.known_links.key(page.base(), href, page.is_utf8()) };
        if key.is_some_and(|key| self.known_links.contains(key)) {
            self.counters.duplicates.inc();
            return Resolved::Known;
        }
        let resolved = self.resolve_anew(page, href);
        if let Resolved::New(url) = &resolved
            && self.fingerprinter.of_get(url).is_some_and(|fingerprint| self.frontier.has_seen(fingerprint))
        {
            self.duplicate(url);
            if let Some(key) = key {
                self.known_links.insert(key);
            }
            return Resolved::Known;
        }
        resolved
    }

    /// Prepares the requests that a callback gave: depth, referer, middlewares, slot and fingerprint.
    fn follow_all(&self, page: &Page, mut requests: Vec<Request>) -> Vec<Request> {
        if requests.is_empty() {
            return requests;
        }
        let limit = self.cx.settings().max_links_per_page;
        // Sitemaps have a limit of their own.
        let is_limited = |request: &Request| {
            request.found_by != FoundBy::Sitemap && request.is_guarded(self.cx.settings())
        };
        let referer: Arc<str> = page.url().as_str().into();
        let depth = page.requested().depth.saturating_add(1);
        let domains = self.spider.allowed_domains();
        if let Some(given) = page.extensions.get::<RequestListener>() {
            requests.iter().for_each(|request| given.tell(request));
        }
        requests.retain_mut(|request| {
            // Most links of a site lead to known pages; filter them before any other work.
            if !request.unfiltered && self.frontier.has_seen(self.fingerprinter.of(request)) {
                self.duplicate(&request.url);
                return false;
            }
            if is_limited(request) && page.count_link() > limit {
                self.counters.links_cut.inc();
                let detail = format!("the page has more than {limit} links");
                let reason = DropReason::skipped("links_cut").detail(detail).guard("max_links_per_page");
                self.refuse(request, "engine", reason);
                return false;
            }
            request.depth = if request.meta_flag(meta::DEPTH_RESET) { 0 } else { depth };
            request.referer.get_or_insert_with(|| Arc::clone(&referer));
            if let Some(reason) = self.offsite(request, &domains) {
                self.refuse(request, "offsite", reason);
                return false;
            }
            for placed in self.spider_chain.iter().rev() {
                let answer =
                    catch_unwind(AssertUnwindSafe(|| placed.part.process_follow(page, request, &self.cx)));
                let reason = match answer {
                    Ok(Ok(OnFollow::Keep)) => continue,
                    Ok(Ok(OnFollow::Drop(reason))) => reason,
                    Ok(Err(error)) => DropReason::failed("middleware_error").detail(error.to_string()),
                    Err(panic) => DropReason::failed("panic").detail(panic_message(&*panic)),
                };
                self.refuse(request, placed.name, reason);
                return false;
            }
            self.assign_now(request, Some(page.requested()));
            true
        });
        if self.slot_by == crate::host::SlotBy::Ip {
            self.cx.block_on(async {
                for request in &mut requests {
                    self.assign(request, None).await;
                }
            });
        }
        requests
    }
}
