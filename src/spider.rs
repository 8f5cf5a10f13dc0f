//! AvoidDup, robots.txt and politeness for crawls of the [`spider`](https://crates.io/crates/spider) crate.
//!
//! The spider crate decides what is crawled (scope, depth, budget, lists, subscriptions); a crawl of Huntsman beside it does the
//! downloads. Three lines more than without:
//!
//! ```no_run
//! use huntsman::spider::Fetcher;
//! use spider::website::Website;
//!
//! # async fn crawl() -> huntsman::Result<()> {
//! let mut website = Website::new("https://wiki.example/");
//! let fetcher = Fetcher::start(|crawler| crawler.per_host(4))?;
//! fetcher.attach(&mut website);
//! website.crawl().await;
//! println!("{}", fetcher.finish().await?);
//! # Ok(())
//! # }
//! ```
//!
//! Every request goes through the whole chain of [`Defaults`], as in a crawl of our own:
//! robots.txt, AvoidDup, delays and back-off per host, retries, redirects, cookies, the address guard, all limits. So it is
//! configured here, by [settings](crate::Settings), and what a `Website` says about the network (user agent, headers, proxies,
//! delay, time-outs, retries, redirects, robots.txt, sitemaps) is not used.
//!
//! What was not fetched comes as a page without a body: with status 204 if a rule decided against it (a known content,
//! robots.txt), else with the status of the answer or one of the spider crate's own codes (521 refused, 523 lost, 524 too slow,
//! 525 no such name, 599 others). [`not_fetched`] tells such pages and says why; subscribers pass over them:
//!
//! ```no_run
//! # async fn read(mut pages: tokio::sync::broadcast::Receiver<spider::page::Page>) {
//! while let Ok(page) = pages.recv().await {
//!     if let Some(why) = huntsman::spider::not_fetched(&page) {
//!         println!("{}: {why}", page.get_url());
//!         continue;
//!     }
//!     // A page.
//! }
//! # }
//! ```
//!
//! # What the spider crate's queue means for AvoidDup
//!
//! A request that is put off (likely known, to be skipped, waiting for a page on its way) waits within Huntsman's queue, where it
//! holds one of the permits of `with_concurrency_limit`. When all permits wait, they are decided: nothing else could come that
//! speaks against them. So a skip is taken back only as long as it waits; once its page was given as 204, the
//! spider crate asks for it no more, whatever is learnt later. With more permits more is learnt before a skip is final: give at least
//! the downloads in flight that the settings allow a host, better some times as many.
//!
//! A host that rests (`Retry-After`, down, robots.txt unreachable) has the requests for it wait, `max_parked_wait` at most after the last
//! thing that happened.
//!
//! Links are learnt from pages as they come, before the spider crate applies its lists to them.

/// The version of the spider crate that this is made for.
pub use spider as spider_rs;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use huntsman_crawler::{
    Context, CrawlReport, CrawlerBuilder, DownloaderMiddleware, DropReason, DropState, Dropped, Error, Event,
    Handle, HttpDownloader, Observer, OnRequest, Output, Page, Request, Result, Spider, SpiderMiddleware,
    Start, registrable_domain,
};
use huntsman_middleware::{AvoidDup, Defaults, SharedAvoidDup};
use spider::fetcher::{FetchContext, RemoteFetcher};
use spider::utils::PageResponse;
use spider::website::Website;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use url::Url;

/// Header of a page that was not fetched: the reason, as in drop records.
const REASON: HeaderName = HeaderName::from_static("x-huntsman-not-fetched");
/// The same in words.
const DETAIL: HeaderName = HeaderName::from_static("x-huntsman-detail");
/// Bytes of a detail that travel in a header.
const MOST_DETAIL: usize = 2_000;
/// Records that [`Fetcher::dropped`] gives.
const MOST_DROPPED: usize = 10_000;
/// How often a URL is asked for again that was dropped because nobody waited for it any more, at the moment somebody did.
const MOST_TRIES: usize = 3;

/// Downloads for `Website`s of the spider crate; cheap to clone. It may serve several: they share what is learnt, and the
/// politeness towards each host. A later crawl of the same site wants a new one: this one has its pages.
///
/// Ends with [`finish`](Self::finish), or when the last clone and all websites that it is attached to are dropped.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    relay: Relay,
    handle: Handle,
    place: SharedAvoidDup,
    crawl: Mutex<Option<JoinHandle<Result<CrawlReport>>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.stop("finished");
    }
}

impl Fetcher {
    /// Starts the crawl that does the downloads: with [`Defaults`], AvoidDup switched on, and what `configure` makes of it (settings,
    /// middlewares, observers such as [`DropLog`](crate::middleware::sinks::DropLog), another downloader). Not with a job: the spider
    /// crate would ask for all pages again, and a model that knows them would skip them.
    ///
    /// # Errors
    /// A setting is unknown or wrong, a component cannot be made, or this is not within a tokio runtime.
    pub fn start(configure: impl FnOnce(CrawlerBuilder<Relay>) -> CrawlerBuilder<Relay>) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|cause| Error::usage(format!("a fetcher for the spider crate: {cause}")))?;
        let place = SharedAvoidDup::default();
        let relay = Relay { orders: Arc::default(), place: place.clone() };
        let builder = CrawlerBuilder::new(relay.clone())
            .plugin(Defaults.avoid_dup(place.clone()))
            .downloader_with(HttpDownloader::new)
            .observer(relay.clone())
            .middleware(relay.clone())
            // Answers of all kinds are the spider crate's to judge.
            .set("httperror_allow_all", true)
            .set("avoid_dup_content_enabled", true);
        let crawler = configure(builder).build()?;
        let handle = crawler.handle();
        handle.keep_open(true);
        let orders = relay.clone();
        let crawl = runtime.spawn(async move {
            // Also when the crawl is dropped with its runtime.
            let _closing = Closing(orders);
            crawler.run().await
        });
        Ok(Self(Arc::new(Inner { relay, handle, place, crawl: Mutex::new(Some(crawl)) })))
    }

    /// Has a website download through this, in `crawl` and `crawl_raw` (not in those that drive a browser). Switches off its own
    /// robots.txt and sitemaps, which would go past it.
    pub fn attach(&self, website: &mut Website) {
        website
            .with_shared_remote_fetcher(Arc::new(self.clone()))
            .with_respect_robots_txt(false)
            .with_ignore_sitemap(true);
    }

    /// What AvoidDup learnt: totals, rules, what it thinks of a URL. `None` if the settings switch it off.
    pub fn avoid_dup(&self) -> Option<&AvoidDup> {
        self.0.place.get()
    }

    /// The last 10,000 requests that ended without a page, oldest first, with their reasons.
    pub fn dropped(&self) -> Vec<Dropped> {
        self.0.relay.orders().dropped.iter().cloned().collect()
    }

    /// The crawl beside the spider crate's, for its stats and the politeness of hosts.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Ends the downloads, and gives their report. Requests that are still on their way are waited for (`drain_timeout`); those that
    /// come later are answered as not fetched, reason `closed`.
    ///
    /// # Errors
    /// The crawl failed as a whole, or was finished before.
    pub async fn finish(&self) -> Result<CrawlReport> {
        let crawl = self.0.crawl.lock().unwrap_or_else(PoisonError::into_inner).take();
        let crawl = crawl.ok_or_else(|| Error::usage("this fetcher was finished before"))?;
        self.0.handle.stop("finished");
        match crawl.await {
            Ok(report) => report,
            Err(cause) => Err(Error::from(cause).context("the downloads for the spider crate")),
        }
    }

    async fn answer(&self, url: &str) -> Answer {
        let url = match Url::parse(url.trim()) {
            Ok(url) => url,
            Err(cause) => return Answer::failed("invalid_url", cause.to_string()),
        };
        for _ in 0..MOST_TRIES {
            let Some((answer, is_first)) = self.0.relay.order(&url) else { break };
            if is_first {
                self.0.handle.push(Request::get(url.clone()).unfiltered());
            }
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
        Answer::failed("closed", "no more downloads are done".to_owned())
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("relay", &self.0.relay).finish_non_exhaustive()
    }
}

#[async_trait]
impl RemoteFetcher for Fetcher {
    async fn fetch(&self, asked: FetchContext<'_>) -> PageResponse {
        self.answer(asked.url).await.into_response()
    }
}

/// Closes the orders of a crawl that has ended, in whatever way.
struct Closing(Relay);

impl Drop for Closing {
    fn drop(&mut self) {
        let mut orders = self.0.orders();
        orders.is_closed = true;
        orders.waiting.clear();
    }
}

/// The spider of the crawl that does the downloads: hands its pages over. Seen only by the closure that configures that crawl.
#[derive(Clone)]
pub struct Relay {
    orders: Arc<Mutex<Orders>>,
    place: SharedAvoidDup,
}

#[derive(Default)]
struct Orders {
    /// Those who wait for a URL. As many as the spider crate has requests in flight.
    waiting: HashMap<String, Vec<oneshot::Sender<Answer>>>,
    dropped: VecDeque<Dropped>,
    is_closed: bool,
}

/// Reason of a request for which nobody waits any more.
const NOT_WANTED: &str = "not_wanted";

impl Relay {
    const NAME: &'static str = "spider_relay";
    /// Before robots.txt and all others: what nobody wants costs nothing.
    const ORDER: i32 = 10;

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the answer will come, and whether nobody else asked for it yet; `None` if no more come.
    fn order(&self, url: &Url) -> Option<(oneshot::Receiver<Answer>, bool)> {
        let mut orders = self.orders();
        if orders.is_closed {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        let waiting = orders.waiting.entry(url.as_str().to_owned()).or_default();
        waiting.push(sender);
        Some((answer, waiting.len() == 1))
    }

    fn deliver(&self, url: &str, answer: impl FnOnce() -> Answer) {
        let Some(waiting) = self.orders().waiting.remove(url) else { return };
        let answer = answer();
        for sender in waiting {
            // Who asked may be gone.
            let _ = sender.send(answer.clone());
        }
    }

    /// Whether all who asked for the URL are gone; they are forgotten then.
    fn is_abandoned(&self, url: &str) -> bool {
        let mut orders = self.orders();
        let is_abandoned =
            orders.waiting.get(url).is_some_and(|waiting| waiting.iter().all(oneshot::Sender::is_closed));
        if is_abandoned {
            orders.waiting.remove(url);
        }
        is_abandoned
    }

    /// Tells AvoidDup of the links of a page, as if they were followed: where a link stands may tell what it leads to.
    fn discover(&self, page: &Page, cx: &Context) -> Result<()> {
        let Some(avoid_dup) = self.place.get() else { return Ok(()) };
        if !page.kind().is_markup() || !page.response().status.is_success() {
            return Ok(());
        }
        let site = site_of(page.url());
        for link in page.anchors().take(cx.settings().max_links_per_page) {
            if let Some(mut url) = page.join(link.href).filter(|url| site_of(url) == site) {
                url.set_fragment(None);
                avoid_dup.process_follow(page, &mut Request::get(url), cx)?;
            }
        }
        Ok(())
    }
}

fn site_of(url: &Url) -> Option<&str> {
    registrable_domain(url).or(url.host_str())
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("waiting", &self.orders().waiting.len()).finish_non_exhaustive()
    }
}

impl Spider for Relay {
    type Item = ();

    fn name(&self) -> &str {
        Self::NAME
    }

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        // Before the answer: the links are asked for as soon as it is there.
        let learnt = self.discover(page, out.context());
        self.deliver(page.request().requested_url(), || Answer::page(page));
        learnt
    }
}

impl DownloaderMiddleware for Relay {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if !request.is_nested() && self.is_abandoned(request.requested_url()) {
            return Ok(OnRequest::Drop(DropReason::skipped(NOT_WANTED)));
        }
        Ok(OnRequest::Continue)
    }
}

impl Observer for Relay {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        {
            let mut orders = self.orders();
            if orders.dropped.len() >= MOST_DROPPED {
                orders.dropped.pop_front();
            }
            orders.dropped.push_back((*dropped).clone());
        }
        // Who asks for it by now has a request of their own in the queue.
        if dropped.component != Self::NAME {
            self.deliver(&dropped.url, || Answer::dropped(dropped));
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug)]
enum Answer {
    Page { url: String, status: StatusCode, headers: HeaderMap, body: Bytes },
    Dropped { status: StatusCode, reason: String, detail: String },
}

impl Answer {
    fn page(page: &Page) -> Self {
        let response = page.response();
        let mut headers = response.headers.clone();
        // Of the body as it was sent, which is decoded by now; and what only we may say.
        for name in [&CONTENT_ENCODING, &CONTENT_LENGTH, &TRANSFER_ENCODING, &REASON, &DETAIL] {
            headers.remove(name);
        }
        Self::Page {
            url: response.url.to_string(),
            status: response.status,
            headers,
            body: response.body.clone(),
        }
    }

    fn failed(reason: &str, detail: String) -> Self {
        let status = status_of_failure(reason);
        Self::Dropped { status, reason: reason.to_owned(), detail }
    }

    fn dropped(dropped: &Dropped) -> Self {
        let status = match (dropped.state, dropped.status) {
            (DropState::Skipped, _) => StatusCode::NO_CONTENT,
            (DropState::Failed, Some(status)) => {
                StatusCode::from_u16(status).unwrap_or_else(|_| status_of_failure(&dropped.reason))
            }
            (DropState::Failed, None) => status_of_failure(&dropped.reason),
        };
        let detail = dropped.detail.clone().unwrap_or_default();
        Self::Dropped { status, reason: dropped.reason.clone().into_owned(), detail }
    }

    fn into_response(self) -> PageResponse {
        let mut response = PageResponse::default();
        match self {
            Self::Page { url, status, headers, body } => {
                response.final_url = Some(url);
                response.status_code = status;
                response.headers = Some(headers);
                response.content = Some(body.into());
            }
            Self::Dropped { status, reason, detail } => {
                let mut headers = HeaderMap::new();
                headers.insert(REASON, header_value(&reason));
                headers.insert(DETAIL, header_value(&detail));
                response.status_code = status;
                response.headers = Some(headers);
                // An empty body with a status of success would be made a 504 otherwise.
                response.content_truncated = status.is_success();
            }
        }
        response
    }
}

/// The codes that the spider crate gives to failures of these kinds.
fn status_of_failure(reason: &str) -> StatusCode {
    let code = match reason {
        "connect" | "proxy" => 521,
        "connection_reset" | "incomplete_body" => 523,
        "connect_timeout" | "first_byte_timeout" | "idle_timeout" | "total_timeout" => 524,
        "dns" => 525,
        _ => 599,
    };
    StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY)
}

/// A text as it may stand in a header: cut, without control characters.
fn header_value(text: &str) -> HeaderValue {
    let cut = text.floor_char_boundary(MOST_DETAIL);
    let clean: String = text[..cut].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    HeaderValue::from_bytes(clean.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

/// Why a page is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFetched {
    /// The stable name in snake_case of drop records: `duplicate_content`, `robots`, `dns`, ...
    pub reason: String,
    /// A sentence for people: for `duplicate_content` the rule, its evidence, and the page that it is thought to equal. May be empty.
    pub detail: String,
}

impl NotFetched {
    /// Whether its content is known already.
    pub fn is_duplicate(&self) -> bool {
        self.reason == "duplicate_content"
    }
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// Why a page that a [`Fetcher`] gave was not fetched; `None` if it was.
pub fn not_fetched(page: &spider::page::Page) -> Option<NotFetched> {
    let headers = page.headers.as_ref()?;
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Some(NotFetched { reason: text(REASON)?, detail: text(DETAIL).unwrap_or_default() })
}
