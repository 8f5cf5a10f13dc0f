//! HttpCache: answers that were stored before take the place of downloads.

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
mod ledger;
mod shared;
mod storage;

pub use directory::{CacheUsage, HttpCacheDirectory, StoredAnswer};

use entry::Entry;
use freshness::{Freshness, refresh, validators, varies_by};
use shared::Shared;

settings! {
    /// Settings of [`HttpCache`].
    pub struct HttpCacheSettings {
        /// Answers from the HTTP cache what was fetched before, and stores what is fetched.
        httpcache_enabled: bool = false;
        /// Directory of the HTTP cache; one process at a time, in which crawls may share it.
        httpcache_dir: String = ".huntsman/httpcache".to_owned();
        /// Bytes of stored answers, compressed; the ones that were not used for the longest time make room. The file takes up to
        /// about twice as much. 0 is no bound.
        httpcache_max_bytes: u64 = 10 << 30;
        /// Seconds after which a stored answer counts as missing; 0 is never.
        httpcache_expiration_secs: f64 = 0.0;
        /// Status codes that are not stored, besides failures, which never are.
        httpcache_ignore_http_codes: Vec<u16> = Vec::new();
        /// Schemes that are not stored.
        httpcache_ignore_schemes: Vec<String> = vec!["file".to_owned()];
        /// Drops what is not stored instead of fetching it: a crawl without a network.
        httpcache_ignore_missing: bool = false;
        /// Stored answers to requests with cookies are for requests with the same cookies; false suits sites that change them with every
        /// answer, and gives what was fetched with a session to crawls without.
        httpcache_bind_cookies: bool = true;
        /// Which stored answers are used: dummy (all of them) or rfc (by RFC 9111, as a private cache).
        httpcache_policy: HttpCachePolicy = HttpCachePolicy::Dummy;
        /// The rfc policy stores answers that say nothing of their freshness, too.
        httpcache_always_store: bool = false;
        /// Cache-Control directives of answers that the rfc policy does not obey.
        httpcache_ignore_response_cache_controls: Vec<String> = Vec::new();
    }
}

/// Which stored answers the HTTP cache uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpCachePolicy {
    /// All of them: for developing a spider, and for replaying a crawl.
    #[default]
    Dummy,
    /// Those that are fresh by RFC 9111; others are asked for with validators.
    Rfc,
}

/// Whether what is stored of an answer can be read, body included.
pub(crate) fn is_whole(stored: &[u8]) -> bool {
    Entry::from_bytes(stored).is_ok()
}

/// Answers from a store on disk what was fetched before, and stores what is fetched: bodies and headers as received.
///
/// The key is the fingerprint of the request, and for one that is sent with credentials a hash of them, too: what was fetched with a
/// login is found with the same login only. Cookies count as credentials unless `httpcache_bind_cookies` is off: where a site
/// changes its cookies with every answer, a second crawl finds what it asks for in the same order. With the policy `dummy` every stored answer is used as long as
/// `httpcache_expiration_secs` say; with `rfc` those that are fresh by RFC 9111 for a private cache, `Vary` included, and the
/// others are asked for with validators: 304, and failures unless `must-revalidate`, give the stored answer.
///
/// Never stored are failures (5xx, 408, 429 and what `retry_http_codes` lists), partial content, and bodies that came cut off.
/// Requests with meta `dont_cache`, with a `Range`, and of `httpcache_ignore_schemes` pass by. With
/// `httpcache_ignore_missing` what is not stored is dropped with reason `not_cached`, `robots.txt` too.
///
/// Bodies are compressed, unless they came so. Beyond `httpcache_max_bytes` the answers that were not used for the longest time
/// make room (`httpcache/evicted`); answers that are larger than the bound are not stored. The file takes up to 2.2 times the bound
/// (60 MiB of answers of 0.1 to 40 kB, renewed twice: 135 MB), for redb doubles it as it grows.
///
/// Stored answers have the flag `cached` and cost the slot no delay. Stats are under `httpcache/`. The directory is locked while
/// the crawl runs; crawls of one process share it, others wait for it. The store
/// is read and written off the async threads, many readers at once; a page that is asked for again in the same moment may be
/// fetched twice. [`HttpCacheDirectory`] is what is stored, for programs.
#[derive(Debug)]
pub struct HttpCache {
    storage: Arc<Shared>,
    /// `None` is the policy `dummy`.
    freshness: Option<Freshness>,
    expiration: f64,
    ignored_codes: Vec<u16>,
    failures: Vec<u16>,
    ignored_schemes: Vec<String>,
    ignore_missing: bool,
    bind_cookies: bool,
}

/// What this middleware knows of a request on its way back; it is in its extensions if it may be answered from the store.
#[derive(Clone, Debug)]
struct Asked {
    key: Fingerprint,
    /// An answer that is to be validated.
    stale: Option<Arc<Entry>>,
    /// Whether the request has the validators of that answer: a 304 speaks of it, and not of what somebody else knows.
    validates: bool,
}

impl HttpCache {
    /// Not configured unless `httpcache_enabled` is set.
    ///
    /// # Errors
    /// The directory cannot be opened: another process works in it, it is damaged, or of a newer version.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: HttpCacheSettings = settings.of();
        let retry: RetrySettings = settings.of();
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

    /// Whether a request has to do with the store.
    fn concerns(&self, request: &Request) -> bool {
        !request.meta_flag(meta::DONT_CACHE)
            && !request.headers.contains_key(header::RANGE)
            && !self.ignored_schemes.iter().any(|scheme| scheme.eq_ignore_ascii_case(request.url.scheme()))
            && (self.freshness.is_none() || Freshness::concerns(request))
    }

    /// The key of the answer to a request.
    fn key(&self, request: &Request) -> Fingerprint {
        let mut credentials = added::credentials(request);
        credentials.retain(|name| self.bind_cookies || name != header::COOKIE);
        match credentials.is_empty() {
            true => request.fingerprint(),
            false => self.storage.bound_to(request.fingerprint(), &credentials, &request.headers),
        }
    }

    /// The stored answer, unless it is too old.
    async fn stored(&self, key: Fingerprint, request: &Request, cx: &Context) -> Option<Entry> {
        let storage = Arc::clone(&self.storage);
        let (headers, now) = (request.headers.clone(), cx.now());
        let read = tokio::task::spawn_blocking(move || storage.get(key, &headers, now)).await;
        let entry = match read {
            Ok(Ok(entry)) => entry?,
            Ok(Err(error)) => {
                cx.stats().inc("httpcache/retrieve_error");
                log::warn!(url = %request.url, "a stored answer is not used: {error}");
                return None;
            }
            // The runtime ends, or the store panicked.
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

    /// Whether an answer may be stored.
    fn stores(&self, response: &Response) -> bool {
        let code = response.status.as_u16();
        let failed = matches!(code, 408 | 429 | 500..) || self.failures.contains(&code);
        // A 304 without a stored answer is one to validators of the request itself: it has no body.
        let partial = matches!(code, 206 | 304) || !status::is_whole(response);
        !failed
            && !partial
            && !self.ignored_codes.contains(&code)
            && self.freshness.as_ref().is_none_or(|freshness| freshness.stores(response))
    }

    /// The varying headers, where they count.
    fn varying(&self, entry: &Entry) -> Vec<String> {
        if self.freshness.is_some() { varies_by(&entry.headers) } else { Vec::new() }
    }

    async fn put(&self, key: Fingerprint, request: &Request, mut entry: Entry, cx: &Context) {
        if self.storage.has_failed() {
            return;
        }
        let storage = Arc::clone(&self.storage);
        let (headers, varying, now) = (request.headers.clone(), self.varying(&entry), cx.now());
        entry.note_asked(&varying, &headers);
        // The first form had none.
        entry.method.get_or_insert_with(|| request.method.clone());
        let put = move || storage.put(key, &headers, &varying, &entry, now);
        let done = tokio::task::spawn_blocking(put).await.map_err(Error::from).flatten();
        if let Err(error) = done {
            log::warn!(url = %request.url, "an answer was not stored: {error}");
        }
        let evicted = self.storage.take_evicted();
        if evicted > 0 {
            cx.stats().add("httpcache/evicted", i64::try_from(evicted).unwrap_or(i64::MAX));
        }
    }

    /// Stores an answer that came, or counts why not.
    async fn keep(&self, asked: &Asked, request: &Request, response: &Response, cx: &Context) {
        if self.stores(response) {
            cx.stats().inc("httpcache/store");
            self.put(asked.key, request, Entry::of(request, response, cx.now()), cx).await;
            return;
        }
        cx.stats().inc("httpcache/uncacheable");
        // What may not be stored has replaced it at its origin; a failure has not.
        if let Some(stale) = &asked.stale
            && !self.storage.has_failed()
            && !response.status.is_server_error()
            && response.status != StatusCode::NOT_MODIFIED
        {
            let storage = Arc::clone(&self.storage);
            let (headers, varying) = (request.headers.clone(), self.varying(stale));
            let key = asked.key;
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
        // The place in the chain: the nearest to the network.
        hooks.downloader(900)
    }
}

impl DownloaderMiddleware for HttpCache {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        // Of an earlier try or hop.
        request.extensions.remove::<Asked>();
        if !self.concerns(request) {
            return Ok(OnRequest::Continue);
        }
        let key = self.key(request);
        let Some(entry) = self.stored(key, request, cx).await else {
            cx.stats().inc("httpcache/miss");
            if self.ignore_missing {
                cx.stats().inc("httpcache/ignore");
                return Ok(OnRequest::drop("not_cached"));
            }
            request.extensions.insert(Asked { key, stale: None, validates: false });
            return Ok(OnRequest::Continue);
        };
        let now = epoch_seconds(cx.now());
        let fresh = self.freshness.as_ref().is_none_or(|freshness| freshness.is_fresh(request, &entry, now));
        // Without a network, nobody can be asked whether a stale one still holds.
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
        request.extensions.insert(Asked { key, stale: Some(Arc::new(entry)), validates });
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let Some(asked) = request.extensions.get::<Asked>() else { return Ok(OnResponse::Continue) };
        if response.has_flag("cached") {
            return Ok(OnResponse::Continue);
        }
        let (Some(stale), Some(freshness)) = (&asked.stale, &self.freshness) else {
            cx.stats().inc("httpcache/firsthand");
            self.keep(asked, request, response, cx).await;
            return Ok(OnResponse::Continue);
        };
        if response.status == StatusCode::NOT_MODIFIED && asked.validates {
            cx.stats().inc("httpcache/revalidate");
            let mut entry = Entry::clone(stale);
            refresh(&mut entry, &response.headers);
            entry.stored = cx.now();
            *response = entry.response();
            if self.stores(response) {
                self.put(asked.key, request, entry, cx).await;
            }
        } else if response.status.is_server_error() && !freshness.must_revalidate(stale) {
            cx.stats().inc("httpcache/revalidate");
            *response = stale.response();
        } else {
            cx.stats().inc("httpcache/invalidate");
            self.keep(asked, request, response, cx).await;
        }
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        let stale = request.extensions.get::<Asked>().and_then(|asked| asked.stale.as_ref());
        if let (Some(stale), Some(freshness)) = (stale, &self.freshness)
            && error.is_transient()
            // RFC 9111, 5.2.2.2: not even without a connection.
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
