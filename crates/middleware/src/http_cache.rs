//! HttpCache: answers requests from stored responses instead of downloading.

use std::sync::Arc;

use http::{StatusCode, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, FetchError, Fingerprint, Hooks, OnException, OnRequest,
    OnResponse, Request, Response, Result, Settings, Timestamp, log, meta, seconds, settings,
};
use serde::{Deserialize, Serialize};

use crate::retry::RetrySettings;
use crate::{added, status};

mod directory;
mod entry;
mod freshness;
mod shared;
mod size_index;
mod storage;

pub use directory::{CacheUsage, HttpCacheDirectory, StoredResponse};

use entry::Entry;
use freshness::{Freshness, refresh, validators, varies_by};
use shared::Shared;

settings! {
    /// Settings of [`HttpCache`].
    pub struct HttpCacheSettings {
        /// Answers requests from the HTTP cache if they were fetched before, and stores new responses.
        httpcache_enabled: bool = false;
        /// Directory of the HTTP cache; only one process at a time may use it, and the crawls of that process may share
        /// it.
        httpcache_dir: String = ".huntsman/httpcache".to_owned();
        /// Maximum number of bytes of stored responses, compressed; those unused for the longest time are removed
        /// first. The file takes up to about twice as much. 0 is no limit.
        httpcache_max_bytes: u64 = 10 << 30;
        /// Seconds after which a stored response is no longer used; 0 means never.
        httpcache_expiration_secs: f64 = 0.0;
        /// Status codes that are not stored, besides those of failures, which are never stored.
        httpcache_ignore_http_codes: Vec<u16> = Vec::new();
        /// URL schemes that are not stored.
        httpcache_ignore_schemes: Vec<String> = vec!["file".to_owned()];
        /// Drops requests that are not in the cache instead of fetching them: a crawl without a network.
        httpcache_ignore_missing: bool = false;
        /// Uses a stored response only for requests with the same cookies. Off suits sites that change their cookies
        /// with every response, but a crawl without a session may then get pages that were fetched with one.
        httpcache_bind_cookies: bool = true;
        /// Which stored responses are used: dummy (all of them) or rfc (by RFC 9111, as a private cache).
        httpcache_policy: HttpCachePolicy = HttpCachePolicy::Dummy;
        /// Makes the rfc policy also store responses that say nothing about their freshness.
        httpcache_always_store: bool = false;
        /// Cache-Control directives of responses that the rfc policy ignores.
        httpcache_ignore_response_cache_controls: Vec<String> = Vec::new();
    }
}

/// Which stored responses the HTTP cache uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpCachePolicy {
    /// All stored responses: for developing a spider, and for replaying a crawl.
    #[default]
    Dummy,
    /// Stored responses that are fresh by RFC 9111; others are revalidated.
    Rfc,
}

/// Whether a cache entry can be read, body included.
pub(crate) fn is_whole(stored: &[u8]) -> bool {
    Entry::from_bytes(stored).is_ok()
}

/// Answers requests from a store on disk if they were fetched before, and stores new responses: bodies and headers as
/// received.
///
/// The key is the fingerprint of the request; if the request is sent with credentials, a hash of them is part of the
/// key, so a response fetched with a login is found only with the same login. Cookies count as credentials unless
/// `httpcache_bind_cookies` is off: where a site changes its cookies with every response, a second crawl finds its
/// entries only if it sends the same requests in the same order. With the policy `dummy` every stored response is used
/// for `httpcache_expiration_secs`. With `rfc` the cache uses the responses that are fresh by RFC 9111 for a private
/// cache, `Vary` included, and revalidates the others: after a 304, and after a failure unless `must-revalidate` is
/// set, it returns the stored response.
///
/// It never stores failures (5xx, 408, 429 and the codes in `retry_http_codes`), partial content, or truncated bodies.
/// Requests with meta `dont_cache`, with a `Range` header, or of `httpcache_ignore_schemes` bypass it. With
/// `httpcache_ignore_missing` requests that are not in the cache are dropped with reason `not_cached`, `robots.txt`
/// too.
///
/// Bodies are compressed unless they were received compressed. Beyond `httpcache_max_bytes` the responses that were not
/// used for the longest time are evicted (`httpcache/evicted`); responses larger than the bound are not stored. The
/// file takes up to 2.2 times the bound (60 MiB of responses of 0.1 to 40 kB, renewed twice: 135 MB), because redb
/// doubles it as it grows.
///
/// Stored responses have the flag `cached` and cause no delay in the slot. Stats are under `httpcache/`. The directory
/// is locked while the crawl runs; crawls of one process share it, other processes wait for it. The store is read and
/// written off the async threads, by many readers at once; a page that is requested again while it is being fetched may
/// be fetched twice. Programs can open the stored responses with [`HttpCacheDirectory`].
#[derive(Debug)]
pub struct HttpCache {
    storage: Arc<Shared>,
    /// `None` for the policy `dummy`.
    freshness: Option<Freshness>,
    expiration: f64,
    ignored_codes: Vec<u16>,
    failures: Vec<u16>,
    ignored_schemes: Vec<String>,
    ignore_missing: bool,
    bind_cookies: bool,
}

/// The cache lookup of a request that may be answered from the store, kept in its extensions until its response
/// arrives.
#[derive(Clone, Debug)]
struct Lookup {
    key: Fingerprint,
    /// A stored response that is to be validated.
    stale: Option<Arc<Entry>>,
    /// Whether the request has the validators of that response: then a 304 refers to it, and not to a copy that the
    /// spider has.
    validates: bool,
}

impl HttpCache {
    /// Creates the component from the settings; `None` unless `httpcache_enabled` is set.
    ///
    /// # Errors
    /// The directory cannot be opened: another process uses it, it is damaged, or it was written by a newer version.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: HttpCacheSettings = settings.of()?;
        let retry: RetrySettings = settings.of_or_default();
        if !own.httpcache_enabled {
            return Ok(None);
        }
        let storage = Shared::open(&own.httpcache_dir, own.httpcache_max_bytes)?;
        Ok(Some(Self {
            storage,
            freshness: match own.httpcache_policy {
                HttpCachePolicy::Dummy => None,
                HttpCachePolicy::Rfc => Some(Freshness::from_settings(settings)),
            },
            expiration: seconds(own.httpcache_expiration_secs).as_secs_f64(),
            ignored_codes: own.httpcache_ignore_http_codes.clone(),
            failures: retry.retry_http_codes.clone(),
            ignored_schemes: own.httpcache_ignore_schemes.clone(),
            ignore_missing: own.httpcache_ignore_missing,
            bind_cookies: own.httpcache_bind_cookies,
        }))
    }

    /// Whether the cache handles a request.
    fn applies_to(&self, request: &Request) -> bool {
        !request.meta_flag(meta::DONT_CACHE)
            && !request.headers.contains_key(header::RANGE)
            && !self.ignored_schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case(request.url.scheme()))
            && (self.freshness.is_none() || Freshness::applies_to(request))
    }

    /// The cache key of a request.
    fn key(&self, request: &Request) -> Fingerprint {
        let mut credentials = added::credentials(request);
        credentials.retain(|name| self.bind_cookies || name != header::COOKIE);
        match credentials.is_empty() {
            true => request.fingerprint(),
            false => self.storage.key_with_credentials(request.fingerprint(), &credentials, &request.headers),
        }
    }

    /// The stored response, unless it is too old.
    async fn stored(&self, key: Fingerprint, request: &Request, cx: &Context) -> Option<Entry> {
        let storage = Arc::clone(&self.storage);
        let (headers, now) = (request.headers.clone(), cx.now());
        let read = tokio::task::spawn_blocking(move || storage.get(key, &headers, now)).await;
        let entry = match read {
            Ok(Ok(entry)) => entry?,
            Ok(Err(error)) => {
                cx.stats().inc("httpcache/retrieve_error");
                log::warn!(url = %request.url, "a stored response is not used: {error}");
                return None;
            }
            // The runtime is shutting down, or the store panicked.
            Err(error) => {
                cx.stats().inc("httpcache/retrieve_error");
                let error = Error::from(error);
                log::warn!(url = %request.url, "the HTTP cache could not be read: {error}");
                return None;
            }
        };
        let age = cx.now().since(entry.stored).as_secs_f64();
        (self.expiration == 0.0 || age <= self.expiration).then_some(entry)
    }

    /// Whether a response may be stored.
    fn may_store(&self, response: &Response) -> bool {
        let code = response.status.as_u16();
        let failed = matches!(code, 408 | 429 | 500..) || self.failures.contains(&code);
        // A 304 without a stored response belongs to validators that the request itself had: it has no body.
        let partial = matches!(code, 206 | 304) || !status::is_whole(response);
        !failed
            && !partial
            && !self.ignored_codes.contains(&code)
            && self.freshness.as_ref().is_none_or(|freshness| freshness.may_store(response))
    }

    /// The header names in `Vary`, if the policy uses them.
    fn varying(&self, entry: &Entry) -> Vec<String> {
        if self.freshness.is_some() { varies_by(&entry.headers) } else { Vec::new() }
    }

    async fn put(&self, key: Fingerprint, request: &Request, mut entry: Entry, cx: &Context) {
        if self.storage.has_failed() {
            return;
        }
        let storage = Arc::clone(&self.storage);
        let (headers, varying, now) = (request.headers.clone(), self.varying(&entry), cx.now());
        entry.set_vary_values(&varying, &headers);
        // Entries of the first format have no method.
        entry.method.get_or_insert_with(|| request.method.clone());
        let put = move || storage.put(key, &headers, &varying, &entry, now);
        let done = tokio::task::spawn_blocking(put).await.map_err(Error::from).flatten();
        if let Err(error) = done {
            log::warn!(url = %request.url, "a response was not stored: {error}");
        }
        let evicted = self.storage.take_evicted();
        if evicted > 0 {
            cx.stats().add("httpcache/evicted", i64::try_from(evicted).unwrap_or(i64::MAX));
        }
    }

    /// Stores a response, or counts why it is not stored.
    async fn store(&self, lookup: &Lookup, request: &Request, response: &Response, cx: &Context) {
        if self.may_store(response) {
            cx.stats().inc("httpcache/store");
            self.put(lookup.key, request, Entry::of(request, response, cx.now()), cx).await;
            return;
        }
        cx.stats().inc("httpcache/uncacheable");
        // A response that may not be stored has still replaced the stored one at the origin; a failure has not.
        if let Some(stale) = &lookup.stale
            && !self.storage.has_failed()
            && !response.status.is_server_error()
            && response.status != StatusCode::NOT_MODIFIED
        {
            let storage = Arc::clone(&self.storage);
            let (headers, varying) = (request.headers.clone(), self.varying(stale));
            let key = lookup.key;
            let _ = tokio::task::spawn_blocking(move || storage.remove(key, &headers, &varying)).await;
        }
    }
}

fn epoch_seconds(now: Timestamp) -> f64 {
    now.0 as f64 / 1e6
}

impl Component for HttpCache {
    const NAME: &'static str = "http_cache";
    type Settings = HttpCacheSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // This middleware is the nearest to the network.
        hooks.downloader(900)
    }
}

impl DownloaderMiddleware for HttpCache {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        // A lookup may be left from an earlier try or redirect.
        request.extensions.remove::<Lookup>();
        if !self.applies_to(request) {
            return Ok(OnRequest::Continue);
        }
        let key = self.key(request);
        let Some(entry) = self.stored(key, request, cx).await else {
            cx.stats().inc("httpcache/miss");
            if self.ignore_missing {
                cx.stats().inc("httpcache/ignore");
                return Ok(OnRequest::drop("not_cached"));
            }
            request.extensions.insert(Lookup { key, stale: None, validates: false });
            return Ok(OnRequest::Continue);
        };
        let now = epoch_seconds(cx.now());
        let fresh = self.freshness.as_ref().is_none_or(|freshness| freshness.is_fresh(request, &entry, now));
        // Without a network, a stale response cannot be revalidated, so it is used.
        if fresh || self.ignore_missing {
            cx.stats().inc("httpcache/hit");
            return Ok(OnRequest::Respond(Box::new(entry.response())));
        }
        let validators = validators(&entry.headers);
        let validates = !validators.is_empty();
        if validates {
            request.headers.remove(header::IF_NONE_MATCH);
            request.headers.remove(header::IF_MODIFIED_SINCE);
        }
        for (name, value) in validators {
            added::set(request, name, value);
        }
        request.extensions.insert(Lookup { key, stale: Some(Arc::new(entry)), validates });
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let Some(lookup) = request.extensions.get::<Lookup>() else { return Ok(OnResponse::Continue) };
        if response.has_flag("cached") {
            return Ok(OnResponse::Continue);
        }
        let (Some(stale), Some(freshness)) = (&lookup.stale, &self.freshness) else {
            cx.stats().inc("httpcache/firsthand");
            self.store(lookup, request, response, cx).await;
            return Ok(OnResponse::Continue);
        };
        if response.status == StatusCode::NOT_MODIFIED && lookup.validates {
            cx.stats().inc("httpcache/revalidate");
            let mut entry = Entry::clone(stale);
            refresh(&mut entry, &response.headers);
            entry.stored = cx.now();
            *response = entry.response();
            if self.may_store(response) {
                self.put(lookup.key, request, entry, cx).await;
            }
        } else if response.status.is_server_error() && !freshness.must_revalidate(stale) {
            cx.stats().inc("httpcache/revalidate");
            *response = stale.response();
        } else {
            cx.stats().inc("httpcache/invalidate");
            self.store(lookup, request, response, cx).await;
        }
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        let stale = request.extensions.get::<Lookup>().and_then(|lookup| lookup.stale.as_ref());
        if let (Some(stale), Some(freshness)) = (stale, &self.freshness)
            && error.is_transient()
            // RFC 9111, 5.2.2.2: such a response must not be used even without a connection.
            && !freshness.must_revalidate(stale)
        {
            cx.stats().inc("httpcache/errorrecovery");
            return Ok(OnException::Respond(Box::new(stale.response())));
        }
        Ok(OnException::Pass)
    }
}

#[cfg(test)]
mod tests;
