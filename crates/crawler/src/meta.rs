//! Meta keys: values that travel with a request, are stored in the job, and are read by components.
//!
//! A key has a name, which appears in the job and in records, and the type of its value. A component of your own
//! declares its keys next to its code:
//!
//! ```
//! use huntsman_crawler::Request;
//! use huntsman_crawler::meta::{self, MetaKey};
//!
//! /// The shelf that a book stands on.
//! const SHELF: MetaKey<String> = MetaKey::new("shelf");
//!
//! let request = Request::parse("https://shop.example/b/1")?.with_meta(SHELF, "left".into()).with_meta(meta::DONT_RETRY, true);
//! assert_eq!(request.meta_value(SHELF).as_deref(), Some("left"));
//! assert!(request.meta_flag(meta::DONT_RETRY));
//! # Ok::<(), huntsman_crawler::Error>(())
//! ```

use std::marker::PhantomData;
use std::time::Duration;

use serde_json::Value;

use crate::settings::seconds;

/// Name and type of a value in [`Request::meta`](crate::Request::meta).
#[derive(Debug)]
pub struct MetaKey<T> {
    name: &'static str,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for MetaKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MetaKey<T> {}

impl<T> MetaKey<T> {
    /// A key of this name. All components of a crawl share one set of names.
    pub const fn new(name: &'static str) -> Self {
        Self { name, kind: PhantomData }
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// A type of values in `meta`.
pub trait MetaValue: Sized {
    /// Reads the value; `None` if it has another type.
    fn from_json(value: &Value) -> Option<Self>;

    /// The value as JSON.
    fn into_json(self) -> Value;
}

impl MetaValue for bool {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

impl MetaValue for u64 {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_u64()
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

impl MetaValue for i64 {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_i64()
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

impl MetaValue for f64 {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_f64()
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

impl MetaValue for String {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

/// Written as seconds.
impl MetaValue for Duration {
    fn from_json(value: &Value) -> Option<Self> {
        value.as_f64().map(seconds)
    }

    fn into_json(self) -> Value {
        self.as_secs_f64().into()
    }
}

/// Written as a list; elements of another type are ignored.
impl MetaValue for Vec<u16> {
    fn from_json(value: &Value) -> Option<Self> {
        let list = value.as_array()?.iter();
        Some(list.filter_map(|value| value.as_u64()?.try_into().ok()).collect())
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

/// Written as a list; elements of another type are ignored.
impl MetaValue for Vec<String> {
    fn from_json(value: &Value) -> Option<Self> {
        let list = value.as_array()?.iter();
        Some(list.filter_map(|value| value.as_str().map(str::to_owned)).collect())
    }

    fn into_json(self) -> Value {
        self.into()
    }
}

impl MetaValue for Value {
    fn from_json(value: &Value) -> Option<Self> {
        Some(value.clone())
    }

    fn into_json(self) -> Value {
        self
    }
}

// Keys that users set.

/// The request is sent whatever robots.txt says.
pub const DONT_OBEY_ROBOTSTXT: MetaKey<bool> = MetaKey::new("dont_obey_robotstxt");
/// The request may leave the scope of the crawl and the spider's domains.
pub const ALLOW_OFFSITE: MetaKey<bool> = MetaKey::new("allow_offsite");
/// The request is not retried.
pub const DONT_RETRY: MetaKey<bool> = MetaKey::new("dont_retry");
/// Number of retries of this request, in place of `retry_times`.
pub const MAX_RETRY_TIMES: MetaKey<u64> = MetaKey::new("max_retry_times");
/// Added to the priority of a retry, in place of `retry_priority_adjust`.
pub const PRIORITY_ADJUST: MetaKey<i64> = MetaKey::new("priority_adjust");
/// Redirects and meta refreshes of the answer are not followed.
pub const DONT_REDIRECT: MetaKey<bool> = MetaKey::new("dont_redirect");
/// Meta refreshes of the answer are not followed.
pub const DONT_METAREFRESH: MetaKey<bool> = MetaKey::new("dont_metarefresh");
/// Greatest number of redirects of this request; counted down.
pub const REDIRECT_TTL: MetaKey<u64> = MetaKey::new("redirect_ttl");
/// No cookies are sent, and cookies of the response are not stored.
pub const DONT_MERGE_COOKIES: MetaKey<bool> = MetaKey::new("dont_merge_cookies");
/// The cookie jar of this request: a text or a number.
pub const COOKIEJAR: MetaKey<Value> = MetaKey::new("cookiejar");
/// The session of this request: a name of the spider's choice, or that of a session of the pool, which begins with `#`.
pub const SESSION: MetaKey<String> = MetaKey::new("session");
/// The request is sent outside of any session.
pub const DONT_USE_SESSION: MetaKey<bool> = MetaKey::new("dont_use_session");
/// The HTTP cache neither answers the request nor stores its response.
pub const DONT_CACHE: MetaKey<bool> = MetaKey::new("dont_cache");
/// The request has depth 0, wherever it was found.
pub const DEPTH_RESET: MetaKey<bool> = MetaKey::new("depth_reset");
/// The slot whose delay and concurrency apply, in place of the host's.
pub const DOWNLOAD_SLOT: MetaKey<String> = MetaKey::new("download_slot");
/// Time limit of the whole request; written as seconds.
pub const DOWNLOAD_TIMEOUT: MetaKey<Duration> = MetaKey::new("download_timeout");
/// Largest body after decoding, in bytes; 0 means no limit.
pub const DOWNLOAD_MAXSIZE: MetaKey<u64> = MetaKey::new("download_maxsize");
/// A body above this many bytes is logged, in place of `download_warnsize`.
pub const DOWNLOAD_WARNSIZE: MetaKey<u64> = MetaKey::new("download_warnsize");
/// A larger body is cut instead of failing the request.
pub const DOWNLOAD_TRUNCATE: MetaKey<bool> = MetaKey::new("download_truncate");
/// The body is read even if it is neither markup nor text.
pub const DOWNLOAD_BINARY: MetaKey<bool> = MetaKey::new("download_binary");
/// A body that is neither markup nor text is received up to the largest size and counted in [`wire_bytes`](crate::Response::wire_bytes), and not kept:
/// the response has an empty body and the flag `unread`. One that is larger has the flag `truncated`, too.
pub const DOWNLOAD_COUNT: MetaKey<bool> = MetaKey::new("download_count");
/// Nothing is downloaded. The server of an https URL is only asked whether it accepts TLS below 1.2: the response has no body, status 204, and in
/// [`tls_version`](crate::Response::tls_version) the highest of these versions that the server accepts, or `None`. Through a proxy it is not asked.
pub const OLD_TLS: MetaKey<bool> = MetaKey::new("old_tls");
/// Responses of every status are passed to the callback.
pub const HANDLE_HTTPSTATUS_ALL: MetaKey<bool> = MetaKey::new("handle_httpstatus_all");
/// Responses of these statuses are passed to the callback, besides 2xx.
pub const HANDLE_HTTPSTATUS_LIST: MetaKey<Vec<u16>> = MetaKey::new("handle_httpstatus_list");
/// AutoThrottle does not learn from the response.
pub const AUTOTHROTTLE_DONT_ADJUST_DELAY: MetaKey<bool> = MetaKey::new("autothrottle_dont_adjust_delay");
/// The proxy of this request, as a URL; `false` or `null` means none.
pub const PROXY: MetaKey<String> = MetaKey::new("proxy");
/// User for Basic authentication of this request.
pub const HTTP_USER: MetaKey<String> = MetaKey::new("http_user");
/// Password for Basic authentication of this request.
pub const HTTP_PASS: MetaKey<String> = MetaKey::new("http_pass");
/// The domain that these credentials are for; by default the host of the request.
pub const HTTP_AUTH_DOMAIN: MetaKey<String> = MetaKey::new("http_auth_domain");
/// Names of headers of the request that a redirect to another origin removes.
pub const SECRET_HEADERS: MetaKey<Vec<String>> = MetaKey::new("secret_headers");
/// Referrer policy of this request.
pub const REFERRER_POLICY: MetaKey<String> = MetaKey::new("referrer_policy");
/// AvoidDup judges the request, if its scope is `marked`.
pub const AVOID_DUP_CONTENT: MetaKey<bool> = MetaKey::new("avoid_dup_content");
/// AvoidDup neither judges the request nor learns from its response.
pub const DONT_AVOID_DUP_CONTENT: MetaKey<bool> = MetaKey::new("dont_avoid_dup_content");
/// The key under which Incremental stores the page, in place of the request's fingerprint.
pub const DELTA_KEY: MetaKey<String> = MetaKey::new("delta_key");
/// Rank of the request in a best-first crawl; higher goes first.
pub const SCORE: MetaKey<f64> = MetaKey::new("score");

// Keys that the crawl sets.

/// The request is a start request.
pub const IS_START_REQUEST: MetaKey<bool> = MetaKey::new("is_start_request");
/// Number of retries so far.
pub const RETRY_TIMES: MetaKey<u64> = MetaKey::new("retry_times");
/// Number of redirects so far.
pub const REDIRECT_TIMES: MetaKey<u64> = MetaKey::new("redirect_times");
/// The URLs that redirected here, the first one first.
pub const REDIRECT_URLS: MetaKey<Vec<String>> = MetaKey::new("redirect_urls");
/// The status of each redirect, or `"meta refresh"`.
pub const REDIRECT_REASONS: MetaKey<Value> = MetaKey::new("redirect_reasons");
/// Position in the chain of redirects at which the cookies last changed.
pub const REDIRECT_SINCE: MetaKey<u64> = MetaKey::new("redirect_since");
/// Why the request is parked.
pub const PARKED_REASON: MetaKey<String> = MetaKey::new("parked_reason");
/// The component that exempted the request from the duplicate filter.
pub const UNFILTERED_BY: MetaKey<String> = MetaKey::new("unfiltered_by");
/// Referrer policy of the page on which the request was found.
pub const PAGE_REFERRER_POLICY: MetaKey<String> = MetaKey::new("page_referrer_policy");
/// The request is for a robots.txt that the crawl needs for itself.
pub const IS_ROBOTS_TXT: MetaKey<bool> = MetaKey::new("robots");
/// The line of robots.txt that allows the request, such as `Allow: /docs (line 3)`. It is not there if no line is about it, or none was asked.
pub const ROBOTS_LINE: MetaKey<String> = MetaKey::new("robots_line");
/// The request is for a sitemap; the value is the number of sitemap indexes above it.
pub const SITEMAP_DEPTH: MetaKey<u64> = MetaKey::new("sitemap_depth");
/// The request is for a robots.txt that is read for its sitemaps.
pub const SITEMAP_ROBOTS: MetaKey<bool> = MetaKey::new("sitemap_robots");
/// `/sitemap.xml` is requested if the robots.txt names no sitemap.
pub const SITEMAP_OR_DEFAULT: MetaKey<bool> = MetaKey::new("sitemap_or_default");
/// The request is for a feed, which is read entry by entry. Its response is not a page with links.
pub const FEED: MetaKey<bool> = MetaKey::new("feed");
/// Whether [`Rules`](crate::Rules) follow the links of the page. Without it they do so for the default callback only.
pub const FOLLOW_RULES: MetaKey<bool> = MetaKey::new("follow_rules");
/// How far AvoidDup postponed the request, in hundredths of its probability.
pub const AVOID_DUP_DELAYED: MetaKey<u64> = MetaKey::new("avoid_dup_delayed");
/// Number of times the request waited for another one that is in flight.
pub const AVOID_DUP_HELD: MetaKey<u64> = MetaKey::new("avoid_dup_held");
/// A number that tells whether anything happened at the site since AvoidDup let the request wait.
pub const AVOID_DUP_VERSION: MetaKey<u64> = MetaKey::new("avoid_dup_version");
/// The time since which nothing happened, in microseconds of the Unix time.
pub const AVOID_DUP_WAITS_SINCE: MetaKey<u64> = MetaKey::new("avoid_dup_waits_since");
/// AvoidDup skips the request, unless it learns a reason against that before the request's turn comes again.
pub const AVOID_DUP_SKIPPED: MetaKey<bool> = MetaKey::new("avoid_dup_skipped");
