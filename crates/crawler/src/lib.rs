//! The crawl engine of Huntsman: requests, politeness, frontier, middleware traits.
//!
//! A crawl is a [`Spider`] and settings: [`CrawlerBuilder`] puts them together, adds components, pipelines and a
//! downloader, and runs them. [`CrawlClient`] is a crawl that fetches pages on demand.
//!
//! ```
//! use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
//! # use huntsman_testkit::ScriptedDownloader;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<()> {
//! # let web = ScriptedDownloader::pages([
//! #     ("http://a.test/", "<title>Mills</title><a href=/wind>wind</a>"),
//! #     ("http://a.test/wind", "<title>Windmills</title>"),
//! # ]);
//! let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<String>| {
//!     out.item(page.title().unwrap_or_default().to_owned());
//!     out.follow_links(page);
//!     Ok(())
//! });
//! // `web` answers from a script; without a downloader of its own a crawl uses the HTTP client.
//! let report = CrawlerBuilder::new(spider).downloader(web).run().await?;
//! assert_eq!((report.pages, report.stat("item_scraped_count")), (2, 2));
//! # Ok(()) }
//! ```
//!
//! The crate deliberately knows nothing about duplicates, plagiarism or command lines. It has hooks; the crate
//! `huntsman-middleware` adds robots.txt, retries, redirects and the rest that a polite crawl needs.

// Files are written through `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod active;
mod at_end;
pub mod autothrottle;
mod client;
mod clock;
mod component;
mod context;
mod control;
mod cpu;
mod drop;
mod dyn_spider;
mod engine;
mod error;
mod event;
mod feed;
mod fetch;
mod frontier;
mod hand_over;
mod host;
mod host_stats;
mod http_client;
mod job;
mod lenient_xml;
pub mod log;
pub mod logging;
mod losses;
pub mod meta;
mod middleware;
mod output;
mod pace;
mod page;
mod pipeline;
mod plugin;
mod rate_limit;
pub mod referrer;
mod report;
mod request;
mod response;
pub mod retry_after;
pub mod robots;
mod route;
mod rules;
mod saved_job;
mod schedule;
mod secrets;
mod settings;
pub mod signals;
mod simulated;
mod sitemap;
mod spider;
mod start;
mod start_urls;
mod state;
mod stats;
pub mod terminal;
mod text_source;
mod wanted_bodies;
mod well_formed;

pub use at_end::{AtEnd, CrawlEnd};
pub use client::{ClientError, CrawlClient, Fetch, OnDemand};
pub use clock::{Clock, Timestamp};
pub use component::{Component, Hooks, PageNeeds};
pub use context::{Context, Politeness};
pub use control::{Addition, ControlSettings, CrawlState, CrawlStatus, HostStatus, QueuedRequest};
pub use drop::{DropReason, DropState, Dropped};
pub use engine::{ComponentInfo, Crawler, CrawlerBuilder, Crawls, Handle};
pub use error::{Error, Result};
pub use event::{Event, Observer, OnDownload};
pub use feed::{CsvFeed, CsvRows, FeedLimits, FeedReport, XmlFeed, XmlNode, XmlNodes};
pub use fetch::{Downloader, FetchError, FetchErrorKind, ProxyFault, Watch};
pub use frontier::{
    DiskFrontier, DiskLimits, End, Frontier, FrontierLink, KnownTarget, Lease, LeaseId, Leased,
    MemoryFrontier, Order, OwnedSince, Pushed, Settled, StoredRequest, Work, WorkName,
};
pub use hand_over::{HandOver, HostNote};
pub use host::{HostKey, SlotBy, registrable_domain, registrable_part};
pub use host_stats::{HostSnapshot, HostStats};
pub use http_client::{
    AllowedAddresses, CertificateError, CertificateFault, DecodeLimits, Decoded, HttpDownloader,
    RefusedCertificate, decode_body,
};
/// Makes a struct an [`Item`](trait@Item), which [`Page::item`] and [`Page::items`] read:
///
/// ```
/// use huntsman_crawler::{Item, Page, Request, Response, Result};
/// use url::Url;
///
/// #[derive(Item)]
/// # #[item(crate = huntsman_crawler)]
/// struct Book {
///     #[item(css = "h1")]
///     title: String,
///     #[item(css = ".price", re = "[0-9.]+")]
///     price: f64,
///     #[item(css = "img::attr(src)")]
///     pictures: Vec<Url>,
/// }
///
/// # fn main() -> Result<()> {
/// # let url = Url::parse("http://books.example/1")?;
/// let html = "<h1>The <i>Mill</i></h1><p class=price>£10.50</p><img src=/1.png>";
/// let page = Page::new(Request::get(url.clone()), Response::html(url, html));
/// let book: Book = page.item()?;
/// assert_eq!((book.title.as_str(), book.price), ("The Mill", 10.5));
/// assert_eq!(book.pictures[0].as_str(), "http://books.example/1.png");
/// # Ok(()) }
/// ```
///
/// What is no selector does not compile:
///
/// ```compile_fail
/// use huntsman_crawler::Item;
///
/// #[derive(Item)]
/// # #[item(crate = huntsman_crawler)]
/// struct Book {
///     #[item(css = "h1::txt")] // There is no pseudo-element ::txt; there are ::text and ::attr(name).
///     title: String,
/// }
/// ```
///
pub use huntsman_derive::Item;
pub use huntsman_html::{Link, LinkElement, Meta, MetaRefresh, PageKind, ResourceLink, ScanOptions};
pub use huntsman_page_data::{LinkedData, Microdata, MicrodataItem, MicrodataValue, OneOrMany, OpenGraph};
pub use huntsman_store::Backend;
pub use huntsman_xpath::{Limits as XPathLimits, Scope as XPathScope};
pub use job::{Change, Job, Persist};
pub use losses::{Loss, LossKind};
pub use middleware::{
    DownloaderMiddleware, OnException, OnFollow, OnPage, OnRequest, OnResponse, SpiderMiddleware,
};
pub use output::Output;
pub use pace::Pace;
#[doc(hidden)]
pub use page::item_private as __item;
pub use page::{
    BinaryBody, Element, Form, FoundLink, FoundValue, IGNORED_EXTENSIONS, Item, ItemLoader, ItemValue, Json,
    JsonNode, JsonSelection, LinkExtractor, Page, PageNode, PagePart, Processor, RequestListener, Selection,
};
pub use pipeline::{ConcurrentPipeline, OnItem, Pipeline};
pub use plugin::Plugin;
pub use rate_limit::RateLimit;
pub use report::{CrawlReport, FailedRule, HostReport, human_bytes};
pub use request::{DEFAULT_CALLBACK, Fingerprint, Fingerprinter, FoundBy, Nested, Request, SentMark};
pub use response::{Response, Timings};
pub use route::RouteError;
pub use rules::{Rule, Rules};
pub use saved_job::SavedJob;
pub use schedule::{Next, Outcome, SavedPoliteness, Scheduler, SlotState, Ticket};
pub use secrets::{CREDENTIALS, is_secret_name, redact, redacted};
#[doc(hidden)]
pub use settings::private as __private;
pub use settings::{
    EngineSettings, GroupInfo, JobSync, LatencyEstimate, Layer, Layers, Profile, SettingInfo, Settings,
    SettingsGroup, SettingsTable, SlotSettings, VerifyCertificates, check_time, nearest, seconds,
};
pub use simulated::{Delays, Simulated};
pub use sitemap::{
    Alternate, Sitemap, SitemapEntry, SitemapFiles, SitemapKind, SitemapLimits, SitemapReport, Sitemaps,
};
pub use spider::{Spider, SpiderFn, spider_fn};
pub use start::{CsvColumn, Start};
pub use start_urls::{StartUrls, parse_web_url};
pub use state::State;
pub use stats::{Counter, Stats};
pub use wanted_bodies::WantedBodies;
pub use well_formed::xml_fault;
