//! The built-in middlewares, sinks and plugins of Huntsman.
//!
//! Each component has a file of its own, and all have the same shape: `NAME`, `ORDER`, and `from_settings`, which
//! returns `None` if the component is not configured. [`Defaults`] installs them in a crawler.

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod added;
mod avoid_dup;
mod chain;
mod config;
mod cookie_jar;
mod cookies;
pub mod copyvio;
mod default_headers;
mod defaults;
mod depth;
mod download_timeout;
mod downloader_stats;
mod http_auth;
mod http_cache;
mod http_compression;
mod http_error;
mod http_proxy;
mod incremental;
mod meta_copy;
mod meta_refresh;
mod near_dup;
mod nofollow;
mod offsite;
mod only;
mod origin;
mod redirect;
mod referer;
mod retry;
mod robots_sitemaps;
mod robots_txt;
mod scope;
pub mod sinks;
mod status;
mod stored;
mod traps;
mod url_length;
mod user_agent;
mod warc;

pub use avoid_dup::{AvoidDup, AvoidDupMode, AvoidDupScope, AvoidDupSettings};
pub use config::{Config, ConfigSources};
pub use cookie_jar::{CookieJar, StoredCookie};
pub use cookies::{CookieJars, Cookies, CookiesSettings};
pub use default_headers::{DefaultHeaders, DefaultHeadersSettings};
pub use defaults::Defaults;
pub use depth::{Depth, DepthSettings};
pub use download_timeout::DownloadTimeout;
pub use downloader_stats::DownloaderStats;
pub use http_auth::{HttpAuth, HttpAuthSettings};
pub use http_cache::{
    CacheUsage, HttpCache, HttpCacheDirectory, HttpCachePolicy, HttpCacheSettings, StoredAnswer,
};
pub use http_compression::HttpCompression;
pub use http_error::{HttpError, HttpErrorSettings};
pub use http_proxy::{HttpProxy, HttpProxySettings};
pub use incremental::{Incremental, IncrementalSettings, OnNotModified, Revisit};
pub use meta_copy::MetaCopyDetection;
pub use meta_refresh::{MetaRefresh, MetaRefreshSettings};
pub use near_dup::{NearDup, NearDupSettings, NearDuplicate, NearDuplicates, OnNearDuplicate};
pub use nofollow::{Directives, Nofollow, NofollowSettings};
pub use offsite::Offsite;
pub use only::Only;
pub use redirect::{Redirect, RedirectDupe, RedirectSettings};
pub use referer::{Referer, RefererSettings};
pub use retry::{Retry, RetrySettings, retry_request};
pub use robots_sitemaps::RobotsSitemaps;
pub use robots_txt::{OnRobotsError, OverCap, RobotsSettings, RobotsTxt, robots_url};
pub use scope::{OffsiteSettings, OutOf, OutOfScope, Scope, ScopeRules, UrlPattern};
pub use stored::{StoredCheck, StoredKind};
pub use traps::{Guard, Traps, TrapsSettings};
pub use url_length::{UrlLength, UrlLengthSettings};
pub use user_agent::UserAgent;
pub use warc::WarcWriter;
