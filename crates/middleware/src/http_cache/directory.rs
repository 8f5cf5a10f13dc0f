//! The directory of an HTTP cache, opened outside a crawl: reading and removing its entries.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use huntsman_crawler::{Error, Request, Result, Timestamp};
use huntsman_store::{JobDirectory, Store};
use url::Url;

use super::entry::{Entry, UnreadEntry};
use super::size_index::{EntrySize, KeySuffix, Totals};
use super::storage::{CACHE_BYTES, Storage, fingerprint_of, response_key};

/// The responses that an [`HttpCache`](super::HttpCache) stored.
///
/// Opened for reading, any number of processes share it, and crawls that use it wait; opened for writing, or used by a
/// crawl, it belongs to one process. Responses are read one at a time, in no particular order.
#[derive(Debug)]
pub struct HttpCacheDirectory {
    directory: JobDirectory,
    store: Arc<dyn Store>,
    /// Whether responses may be removed.
    is_writable: bool,
}

/// The number and size of the stored responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of responses.
    pub responses: u64,
    /// Their bytes, compressed, with their metadata: the size that `httpcache_max_bytes` bounds. The file takes up to
    /// about twice as much.
    pub bytes: u64,
}

/// One stored response.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    head: Entry,
    suffix: KeySuffix,
    /// The cache entry as stored, body included.
    bytes: Bytes,
    body_length: usize,
    used: Option<Timestamp>,
}

impl HttpCacheDirectory {
    /// Opens a cache for reading. Nothing is created.
    ///
    /// # Errors
    /// There is no cache, a crawl uses it, it is damaged, or it was written by a newer version.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let opened = JobDirectory::open_read_only(path, CACHE_BYTES);
        let directory = opened.map_err(|error| Error::from(error).context(DOING))?;
        Self::of(directory, false)
    }

    fn of(directory: JobDirectory, is_writable: bool) -> Result<Self> {
        let store = directory.store();
        // Jobs are in directories of the same format.
        let mut is_cache = true;
        store.scan(b"", &mut |key, _| {
            is_cache = key.first().is_some_and(|kind| b"amstv".contains(kind));
            false
        })?;
        if !is_cache {
            let message = format!("{}: it is not an HTTP cache", directory.path().display());
            return Err(Error::usage(message).context(DOING));
        }
        Totals::stored(&*store).map_err(|error| error.context(DOING))?;
        Ok(Self { directory, store, is_writable })
    }

    /// Opens a cache for writing, with exclusive access. Reads the whole file to verify it.
    ///
    /// # Errors
    /// As [`HttpCacheDirectory::read`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let opened = match JobDirectory::backend_of(path) {
            Ok(Some(backend)) => JobDirectory::open_with_cache(path, backend, CACHE_BYTES),
            // This returns the error that there is no job.
            Ok(None) => JobDirectory::open_read_only(path, CACHE_BYTES),
            Err(error) => Err(error),
        };
        Self::of(opened.map_err(|error| Error::from(error).context(DOING))?, true)
    }

    /// The number and size of the stored responses. Counts them one by one if the cache was written only by versions
    /// without a bound.
    ///
    /// # Errors
    /// The disk fails, or the store is damaged.
    pub fn usage(&self) -> Result<CacheUsage> {
        if let Some(Totals { responses, bytes, .. }) = Totals::stored(&*self.store)? {
            return Ok(CacheUsage { responses, bytes });
        }
        let mut usage = CacheUsage::default();
        self.store.scan(b"a", &mut |key, value| {
            usage.responses += 1;
            usage.bytes += EntrySize::of(&key[1..], value);
            true
        })?;
        Ok(usage)
    }

    /// Calls `visit` with every response until it returns `false`; with `None` for a damaged one. Reads the whole
    /// store.
    ///
    /// # Errors
    /// As [`HttpCacheDirectory::usage`].
    pub fn each(&self, mut visit: impl FnMut(Option<StoredResponse>) -> bool) -> Result<()> {
        let mut result = Ok(());
        self.store.scan(b"a", &mut |key, value| {
            let response = match StoredResponse::of(&*self.store, &key[1..], value) {
                Ok(response) => response,
                Err(error) => {
                    result = Err(error);
                    return false;
                }
            };
            visit(response)
        })?;
        result
    }

    /// The responses to requests for a URL, newest first. There is one, unless they vary by headers of the request, or
    /// several methods were used. The fragment of the URL is ignored.
    ///
    /// It first looks up the entry of a plain `GET` without credentials; if there is none, or if another method is
    /// given, it reads the whole store.
    ///
    /// # Errors
    /// As [`HttpCacheDirectory::usage`].
    pub fn find(&self, url: &Url, method: Option<&Method>) -> Result<Vec<StoredResponse>> {
        let mut found = Vec::new();
        if method.is_none_or(|method| method == Method::GET) {
            let fingerprint = Request::get(url.clone()).fingerprint();
            let prefix = response_key(&fingerprint.0.to_be_bytes());
            let mut result = Ok(());
            self.store.scan(&prefix, &mut |key, value| {
                match StoredResponse::of(&*self.store, &key[1..], value) {
                    Ok(response) => found.extend(response),
                    Err(error) => result = Err(error),
                }
                result.is_ok()
            })?;
            result?;
        }
        if found.is_empty() {
            self.each(|response| {
                let is_it = |response: &StoredResponse| {
                    response.is_of(url) && method.is_none_or(|method| response.method() == Some(method))
                };
                found.extend(response.filter(is_it));
                true
            })?;
        }
        found.sort_by_key(|response| std::cmp::Reverse(response.stored()));
        Ok(found)
    }

    /// Removes the responses for which `which` returns true; it is called with `None` for damaged ones. Returns the
    /// number and size of the removed entries.
    ///
    /// # Errors
    /// The cache was opened for reading only, the disk fails, or the store is damaged.
    pub fn remove(&mut self, mut which: impl FnMut(Option<&StoredResponse>) -> bool) -> Result<CacheUsage> {
        if !self.is_writable {
            return Err(Error::msg("the HTTP cache was opened to be read only"));
        }
        let storage = Storage::of(Arc::clone(&self.store)).map_err(|error| error.context(DOING))?;
        let before = storage.usage();
        let mut suffixes = Vec::new();
        let mut result = Ok(());
        self.store.scan(b"a", &mut |key, value| {
            let response = StoredResponse::of(&*self.store, &key[1..], value);
            result = response.and_then(|response| {
                if which(response.as_ref()) {
                    suffixes.push(key[1..].to_vec());
                }
                if suffixes.len() < REMOVED {
                    Ok(())
                } else {
                    storage.remove_all(&std::mem::take(&mut suffixes))
                }
            });
            result.is_ok()
        })?;
        result?;
        storage.remove_all(&suffixes)?;
        storage.flush()?;
        let after = storage.usage();
        Ok(CacheUsage {
            responses: before.0.saturating_sub(after.0),
            bytes: before.1.saturating_sub(after.1),
        })
    }

    /// Closes the cache, and compacts its file if little is left in it; the time for that grows with the size of the
    /// entries.
    ///
    /// # Errors
    /// The disk fails; everything that was written is stored.
    pub fn close(self) -> Result<()> {
        let left = if self.is_writable { self.usage()?.bytes } else { u64::MAX };
        let Self { mut directory, store, .. } = self;
        drop(store);
        if left <= QUICKLY_COMPACTED {
            directory.compact()?;
        }
        Ok(())
    }
}

const DOING: &str = "opening the HTTP cache";
/// Number of responses that are removed in one batch.
const REMOVED: usize = 1_024;
/// Maximum bytes that are moved by compaction in the time that a command may take.
const QUICKLY_COMPACTED: u64 = 128 << 20;

impl StoredResponse {
    /// Reads an entry; `None` if it is damaged.
    fn of(store: &dyn Store, suffix: &[u8], value: &[u8]) -> Result<Option<Self>> {
        let Ok(UnreadEntry { mut head, body_length, .. }) = Entry::unread(value) else { return Ok(None) };
        let used = EntrySize::stored(store, suffix)?.map(|size| Timestamp(size.used));
        if head.method.is_none() {
            // The first format had no method; a method without a body can be guessed and verified by the fingerprint.
            let fingerprint = fingerprint_of(suffix);
            head.method = [Method::GET, Method::HEAD].into_iter().find(|method| {
                let request = Request::get(head.url.clone()).method(method.clone());
                Some(request.fingerprint()) == fingerprint
            });
        }
        let bytes = Bytes::copy_from_slice(value);
        Ok(Some(Self { head, suffix: suffix.to_vec(), bytes, body_length, used }))
    }

    /// The requested URL.
    pub fn url(&self) -> &Url {
        &self.head.url
    }

    /// The method of the request; `None` if an early version stored the response and the request was not a plain `GET`
    /// or `HEAD`.
    pub fn method(&self) -> Option<&Method> {
        self.head.method.as_ref()
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The HTTP version of the response.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The headers as received, without cookies of jars.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The request headers by which the response varies, with their values; `None` for headers that were not sent, and
    /// for credentials and cookies, which are not stored.
    pub fn varies_by(&self) -> &[(String, Option<String>)] {
        &self.head.vary_values
    }

    /// The time at which it was stored, or last confirmed by its server.
    pub fn stored(&self) -> Timestamp {
        self.head.stored
    }

    /// The time at which it was last used; up to a few thousand uses are lost when a crawl is killed. `None` if the
    /// cache was written only by versions that do not record uses.
    pub fn used(&self) -> Option<Timestamp> {
        self.used
    }

    /// Number of bytes of the body, with its content codings.
    pub fn body_length(&self) -> u64 {
        self.body_length as u64
    }

    /// Number of bytes that count towards `httpcache_max_bytes`.
    pub fn stored_bytes(&self) -> u64 {
        EntrySize::of(&self.suffix, &self.bytes)
    }

    /// The body as received, with its content codings.
    ///
    /// # Errors
    /// The body is damaged.
    pub fn body(&self) -> Result<Bytes> {
        Ok(Entry::unread(&self.bytes)?.body()?)
    }

    /// The key under which it is stored, in hexadecimal: unique in its cache.
    pub fn key(&self) -> String {
        self.suffix.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether it is the response to a request for a URL; fragments are ignored.
    pub fn is_of(&self, url: &Url) -> bool {
        self.head.url[..url::Position::AfterQuery] == url[..url::Position::AfterQuery]
    }
}
