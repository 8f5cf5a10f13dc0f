//! The built-in middlewares, sinks and plugins of Huntsman.
//!
//! Each component has a file of its own, and all have the same shape: `NAME`, `hooks`, and `from_settings`, which
//! returns `None` if the component is not configured. [`Defaults`] installs them in a crawler.
//!
//! ```
//! use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
//! use huntsman_middleware::Defaults;
//! # use huntsman_testkit::{Reply, ScriptedDownloader};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<()> {
//! # let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/open>1</a><a href=/closed>2</a>"), ("http://a.test/open", "x")])
//! #     .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nDisallow: /closed"));
//! let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
//!     out.follow_links(page);
//!     Ok(())
//! });
//! // With the built-in components the crawl obeys robots.txt, which forbids one of the two links.
//! let report = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web).run().await?;
//! assert_eq!((report.pages, report.stat("robotstxt/forbidden")), (2, 1));
//! # Ok(()) }
//! ```
//!
//! The crate has no engine, no HTTP client and no detectors: the first two are in `huntsman-crawler`, the last in
//! `huntsman-detect`.

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod added;
mod audit_settings;
mod avoid_dup;
mod chain;
mod config;
mod cookies;
mod declared;
mod default_headers;
mod defaults;
mod depth;
mod download_timeout;
mod downloader_stats;
mod fixture;
mod from_warc;
mod http_auth;
mod http_cache;
mod http_compression;
mod http_error;
mod http_proxy;
mod incremental;
mod item_checks;
mod link_settings;
mod media;
mod meta_copy;
mod meta_refresh;
mod near_dup;
mod nofollow;
mod offsite;
mod only;
mod origin;
mod proxies;
mod proxy_pool;
mod quality;
mod record_replay;
mod recording;
mod redirect;
mod referer;
#[cfg(feature = "render")]
mod render;
mod retry;
mod robots_sitemaps;
mod robots_txt;
mod scope;
mod sessions;
pub mod sinks;
mod status;
mod stored;
mod traps;
mod url_length;
mod user_agent;
mod warc;
mod webhook;

// Each line is one built-in component: its file, the component, and whatever else the file exports.
defaults::built_in! {
    offsite::{Offsite};
    url_length::{UrlLength, UrlLengthSettings};
    robots_txt::{RobotsTxt, OnRobotsError, OverCap, RobotsSettings, robots_url};
    avoid_dup::{AvoidDup, AvoidDupMode, AvoidDupScope, AvoidDupSettings};
    http_auth::{HttpAuth, HttpAuthSettings};
    download_timeout::{DownloadTimeout};
    default_headers::{DefaultHeaders, DefaultHeadersSettings};
    referer::{Referer, RefererSettings};
    user_agent::{UserAgent};
    retry::{Retry, RetrySettings, retry_request};
    meta_refresh::{MetaRefresh, MetaRefreshSettings};
    sessions::{Sessions, NewSession, PageSession, Session, SessionRules, SessionStatus, SessionSticky, SessionsSettings};
    http_compression::{HttpCompression};
    redirect::{Redirect, RedirectDupe, RedirectSettings, redirect_target};
    cookies::{Cookies, CookieJar, CookieJars, CookiesSettings, StoredCookie};
    proxy_pool::{ProxyPool, ProxyChoice, ProxyPoolSettings, ProxyStatus};
    http_proxy::{HttpProxy, HttpProxySettings};
    downloader_stats::{DownloaderStats};
    recording::{Recording, RecordingSettings};
    record_replay::{RecordReplay, RecordReplaySettings};
    from_warc::{FromWarc, ArchivePages, FromWarcBuilder, FromWarcSettings};
    incremental::{Incremental, IncrementalSettings, OnNotModified, Revisit};
    http_cache::{HttpCache, CacheUsage, HttpCacheDirectory, HttpCachePolicy, HttpCacheSettings, StoredResponse};
    warc::{Warc, WarcBuilder, WarcDigest, WarcExport, WarcNoarchive, WarcSettings, WarcTo};
    http_error::{HttpError, HttpErrorSettings};
    near_dup::{NearDup, NearDupSettings, NearDuplicate, NearDuplicates, OnNearDuplicate};
    nofollow::{Nofollow, Directives, NofollowSettings};
    traps::{Traps, Guard, TrapsSettings};
    depth::{Depth, DepthSettings};
    meta_copy::{MetaCopyDetection};
    quality::{QualityGate, QualitySettings};
    webhook::{Webhook, WebhookSettings, WebhookWhen};
}

pub use audit_settings::{AuditIgnore, AuditSettings};
pub use chain::CookiesChanged;
pub use config::{Config, ConfigSources, CrawlSources};
pub use declared::{DeclaredItem, DeclaredSpider, Extracted, Extraction};
pub use defaults::Defaults;
pub use fixture::{
    Contract, Count, EXCHANGE_ENDING, Exchange, Expectation, ExpectedRequest, Fixture, Given, exchanges_in,
};
#[cfg(feature = "render")]
pub use huntsman_browser as browser;
pub use item_checks::{
    Fault, Faults, ItemCheckSettings, ItemChecks, OnInvalid, Schema, Validate, Validation,
};
pub use link_settings::{LinkRule, LinkSettings};
pub use media::{FileStatus, ImageTarget, Media, MediaItem, MediaSettings, StoredFile};
pub use only::OnlyUrls;
#[cfg(feature = "render")]
pub use render::{
    Render, RenderError, RenderFuture, RenderMode, RenderRequest, RenderSandbox, RenderSettings,
    RenderThirdParty, Rendered, RenderedPage, Renderer,
};
pub use robots_sitemaps::RobotsSitemaps;
pub use scope::{OffsiteSettings, OutOfScope, RejectReason, Scope, ScopeRules, UrlPattern};
pub use stored::{StoredCheck, StoredKind};
