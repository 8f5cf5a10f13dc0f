//! AvoidDup, robots.txt and politeness for crawls of the [`spider`](https://crates.io/crates/spider) crate.
//!
//! The spider crate decides what is crawled (scope, depth, budget, lists, subscriptions); a crawl of Huntsman that
//! runs beside it does the downloads. That takes three more lines:
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
//! Every request goes through the whole chain of [`Defaults`], as in a crawl of Huntsman itself: robots.txt,
//! AvoidDup, delays and back-off per host, retries, redirects, cookies, the address guard, all limits. The network is
//! therefore configured by Huntsman's [settings](crate::Settings); the network options of a `Website` (user agent,
//! headers, proxies, delay, time-outs, retries, redirects, robots.txt, sitemaps) are not used.
//!
//! A request that was not fetched gives a page without a body. Its status is 204 if a rule decided against the
//! request (known content, robots.txt), else the status of the response or one of the spider crate's own codes (521
//! refused, 523 lost, 524 too slow, 525 no such name, 599 others). [`not_fetched`] recognises such pages and gives
//! the reason; subscribers should skip them:
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
//! A postponed request (its content is probably known, it is to be skipped, or it waits for a page in flight) waits
//! in Huntsman's queue, and meanwhile holds one of the permits of `with_concurrency_limit`. When all permits are held
//! by waiting requests, those are decided at once, because no further evidence could arrive. A skip can therefore be
//! revoked only while the request waits; once its page was returned with 204, the spider crate does not ask for it
//! again, whatever is learnt later. With more permits, more is learnt before a skip is final: set at least the number
//! of downloads in flight that the settings allow per host, better several times as many.
//!
//! Requests to a host that pauses (`Retry-After`, down, robots.txt unreachable) wait, but no longer than
//! `max_parked_wait` after the last activity of the crawl.
//!
//! Links are learnt from pages as they arrive, before the spider crate applies its lists to them.

/// The supported version of the spider crate.
pub use spider as spider_rs;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use huntsman_crawler::log;
use huntsman_crawler::{
    ClientError, Context, CrawlClient, CrawlReport, CrawlerBuilder, DropState, Dropped, Event, Handle,
    HttpDownloader, Observer, OnDemand, OnPage, Page, Request, Response, Result, SpiderMiddleware,
    registrable_domain,
};
use huntsman_middleware::{AvoidDup, Defaults};
use spider::fetcher::{FetchContext, RemoteFetcher};
use spider::utils::PageResponse;
use spider::website::Website;
use url::Url;

/// Header of a page that was not fetched: the reason, as in drop records.
const REASON: HeaderName = HeaderName::from_static("x-huntsman-not-fetched");
/// Header of a page that was not fetched: the reason as a sentence.
const DETAIL: HeaderName = HeaderName::from_static("x-huntsman-detail");
/// Greatest length of a detail in a header, in bytes.
const MOST_DETAIL: usize = 2_000;
/// Greatest number of records that [`Fetcher::dropped`] returns.
const MOST_DROPPED: usize = 10_000;

/// Downloads for `Website`s of the spider crate; cheap to clone. It may serve several websites: they share what is
/// learnt, and the politeness towards each host. A later crawl of the same site needs a new fetcher, because this one
/// knows its pages already.
///
/// It ends with [`finish`](Self::finish), or when the last clone and all websites that it is attached to are dropped.
#[derive(Clone)]
pub struct Fetcher {
    client: CrawlClient,
    drops: Drops,
}

impl Fetcher {
    /// Starts the crawl that does the downloads: with [`Defaults`], AvoidDup switched on, and the changes that
    /// `configure` makes (settings, middlewares, observers such as [`DropLog`](crate::middleware::sinks::DropLog),
    /// another downloader). It must not have a job: the spider crate would ask for all pages again, and a model that
    /// knows them would skip them.
    ///
    /// # Errors
    /// A setting is unknown or invalid, a component cannot be created, or there is no tokio runtime.
    pub fn start(
        configure: impl FnOnce(CrawlerBuilder<OnDemand>) -> CrawlerBuilder<OnDemand>,
    ) -> Result<Self> {
        let drops = Drops::default();
        let builder = CrawlerBuilder::new(OnDemand::new())
            .plugin(Defaults)
            .downloader_with(HttpDownloader::new)
            .observer(drops.clone())
            .spider_middleware(LearnLinks)
            // The spider crate itself judges responses of every status.
            .set("httperror_allow_all", true)
            .set("avoid_dup_content_enabled", true);
        Ok(Self { client: CrawlClient::start(configure(builder))?, drops })
    }

    /// Makes a website download through this fetcher, in `crawl` and `crawl_raw` (but not in the methods that drive a
    /// browser). Switches off the website's own robots.txt and sitemaps, which would bypass the fetcher.
    pub fn attach(&self, website: &mut Website) {
        website
            .with_shared_remote_fetcher(Arc::new(self.clone()))
            .with_respect_robots_txt(false)
            .with_ignore_sitemap(true);
    }

    /// The AvoidDup component with all that it learnt: totals, rules, its estimate for a URL. `None` if the settings
    /// switch it off.
    pub fn avoid_dup(&self) -> Option<Arc<AvoidDup>> {
        self.client.component()
    }

    /// The last 10,000 requests that ended without a page, oldest first, with their reasons.
    pub fn dropped(&self) -> Vec<Dropped> {
        self.drops.all().iter().cloned().collect()
    }

    /// The handle of the crawl that does the downloads: stats, politeness of hosts.
    pub fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// Ends the downloads and returns their report. Requests in flight may end within `drain_timeout`; later requests
    /// are answered as not fetched, with reason `closed`.
    ///
    /// # Errors
    /// The crawl failed as a whole, or was finished before.
    pub async fn finish(&self) -> Result<CrawlReport> {
        self.client.finish().await.map_err(|error| error.context("the downloads for the spider crate"))
    }

    async fn answer(&self, url: &str) -> PageResponse {
        let url = match Url::parse(url.trim()) {
            Ok(url) => url,
            Err(cause) => return none("invalid_url", &cause.to_string(), status_of_failure("invalid_url")),
        };
        match self.client.fetch(Request::get(url)).await {
            Ok(response) => fetched(response),
            Err(ClientError::Dropped { dropped, .. }) => {
                none(&dropped.reason, dropped.detail.as_deref().unwrap_or_default(), status_of(&dropped))
            }
            Err(_) => none("closed", "no more downloads are done", status_of_failure("closed")),
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("client", &self.client).finish_non_exhaustive()
    }
}

#[async_trait]
impl RemoteFetcher for Fetcher {
    async fn fetch(&self, asked: FetchContext<'_>) -> PageResponse {
        self.answer(asked.url).await
    }
}

/// The last requests that ended without a page.
#[derive(Clone, Default)]
struct Drops(Arc<Mutex<VecDeque<Dropped>>>);

impl Drops {
    fn all(&self) -> MutexGuard<'_, VecDeque<Dropped>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Drops {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        let mut drops = self.all();
        if drops.len() >= MOST_DROPPED {
            drops.pop_front();
        }
        drops.push_back((*dropped).clone());
    }
}

/// Reports the links of a page to AvoidDup as if they were followed, because the position of a link may be evidence
/// of its content. This happens before the page is handed over, since the spider crate asks for the links as soon as
/// it has the page.
struct LearnLinks;

impl SpiderMiddleware for LearnLinks {
    fn name(&self) -> &'static str {
        "learn_links"
    }

    /// Runs last, so that it does not learn from pages that other middlewares skip.
    fn order(&self) -> i32 {
        10_000
    }

    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        let Some(avoid_dup) = cx.component::<AvoidDup>() else { return Ok(OnPage::Parse) };
        if !page.kind().is_markup() || !page.response().status.is_success() {
            return Ok(OnPage::Parse);
        }
        let site = site_of(page.url());
        for link in page.anchors().take(cx.settings().max_links_per_page) {
            if let Some(mut url) = page.join(link.href).filter(|url| site_of(url) == site) {
                url.set_fragment(None);
                if let Err(error) = avoid_dup.process_follow(page, &mut Request::get(url), cx) {
                    log::warn!(url = %page.url(), "AvoidDup could not learn the links of a page: {error}");
                    break;
                }
            }
        }
        Ok(OnPage::Parse)
    }
}

fn site_of(url: &Url) -> Option<&str> {
    registrable_domain(url).or(url.host_str())
}

/// Converts a response to a page of the spider crate.
fn fetched(response: Response) -> PageResponse {
    let mut headers = response.headers;
    // The body is already decoded, so headers about its transfer are removed; so are the headers that only this
    // module may set.
    for name in [&CONTENT_ENCODING, &CONTENT_LENGTH, &TRANSFER_ENCODING, &REASON, &DETAIL] {
        headers.remove(name);
    }
    PageResponse {
        final_url: Some(response.url.into()),
        status_code: response.status,
        headers: Some(headers),
        content: Some(response.body.into()),
        ..PageResponse::default()
    }
}

/// A page that stands for a request that was not fetched, with the reason in its headers.
fn none(reason: &str, detail: &str, status: StatusCode) -> PageResponse {
    let mut headers = HeaderMap::new();
    headers.insert(REASON, header_value(reason));
    headers.insert(DETAIL, header_value(detail));
    PageResponse {
        status_code: status,
        headers: Some(headers),
        // Otherwise the spider crate would turn an empty body with a success status into 504.
        content_truncated: status.is_success(),
        ..PageResponse::default()
    }
}

/// The status for a request that was dropped.
fn status_of(dropped: &Dropped) -> StatusCode {
    if dropped.state == DropState::Skipped {
        return StatusCode::NO_CONTENT;
    }
    let answered = dropped.status.and_then(|status| StatusCode::from_u16(status).ok());
    answered.unwrap_or_else(|| status_of_failure(&dropped.reason))
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

/// A text made safe for a header: cut to its limit, without control characters.
fn header_value(text: &str) -> HeaderValue {
    let cut = text.floor_char_boundary(MOST_DETAIL);
    let clean: String = text[..cut].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    HeaderValue::from_bytes(clean.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

/// Why a request was not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFetched {
    /// The stable name in snake_case of drop records: `duplicate_content`, `robots`, `dns`, ...
    pub reason: String,
    /// A sentence for people: for `duplicate_content` the rule, its evidence, and the page that it is assumed to
    /// equal. May be empty.
    pub detail: String,
}

impl NotFetched {
    /// Whether the reason is that its content is already known.
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

/// Why a page that a [`Fetcher`] returned was not fetched; `None` if it was fetched.
pub fn not_fetched(page: &spider::page::Page) -> Option<NotFetched> {
    let headers = page.headers.as_ref()?;
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Some(NotFetched { reason: text(REASON)?, detail: text(DETAIL).unwrap_or_default() })
}
