//! Incremental: uses the results of earlier crawls to avoid fetching and parsing unchanged pages again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderName, Method, StatusCode, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Error, Event, Fingerprinter, Hooks, Observer,
    OnPage, OnRequest, OnResponse, Page, Persist, Request, RequestListener, Response, Result, Settings,
    SpiderMiddleware, log, meta, settings,
};
use huntsman_detect::simhash::SimHash;
use huntsman_store::Batch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::{added, chain, status};

mod record;
mod storage;

use record::Record;
use storage::{DeltaKey, Storage};

settings! {
    /// Settings of [`Incremental`].
    pub struct IncrementalSettings {
        /// Remembers every page across crawls, and asks the server whether a page changed before it is fetched again.
        incremental_enabled: bool = false;
        /// Directory of the page records from earlier crawls; only one crawl at a time may use it.
        incremental_dir: String = ".huntsman/incremental".to_owned();
        /// What happens to a page that did not change: skip (it is dropped), or call (its callback gets it with the
        /// flag not_modified and an empty body).
        on_not_modified: OnNotModified = OnNotModified::Skip;
        /// Skips requests whose pages gave items in earlier crawls.
        delta_enabled: bool = false;
        /// Also skips start requests whose pages gave items.
        delta_include_start: bool = false;
        /// Forgets which pages gave items before the crawl begins.
        delta_reset: bool = false;
    }
}

/// What happens to a page that did not change since an earlier crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnNotModified {
    /// The page is dropped with reason `not_modified`; its links are followed.
    #[default]
    Skip,
    /// The callback is called with a response that has the flag `not_modified`, status 304 and no body. The links of
    /// the page are also followed.
    Call,
}

/// Whether a stored page record can be read.
pub(crate) fn is_whole(stored: &[u8]) -> bool {
    Record::from_bytes(stored).is_ok()
}

/// Remembers pages across crawls in `incremental_dir`. A crawl has it only if `incremental_enabled` or `delta_enabled`
/// is set.
///
/// With `incremental_enabled`, each request is sent with the `ETag` and `Last-Modified` of the page's last response.
/// After a 304 its callback is skipped (reason `not_modified`) or called, depending on `on_not_modified`, and the
/// requests that the callback returned when the page was last parsed are followed. The comparison with the earlier
/// crawl is in the extensions of the page as a [`Revisit`]. Per fingerprint the record holds the validators, a hash of
/// the decoded body, [`SimHash`] of the text, the status, the times of the last fetch and the last change, and the
/// links.
///
/// With `delta_enabled`, requests whose pages gave items in earlier crawls are dropped with reason `delta`; the key is
/// the fingerprint or meta `delta_key`. Start requests are fetched all the same unless `delta_include_start` is set.
///
/// A page is remembered when its items are acknowledged and, in a job, when the following commit is on disk, so a crash
/// never makes a later crawl skip items that were lost. Downloads within callbacks, robots.txt, and requests with
/// validators of their own are ignored.
#[derive(Clone, Debug)]
pub struct Incremental(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` once the crawl has ended.
    storage: Mutex<Option<Arc<Storage>>>,
    pages: bool,
    call: bool,
    delta: bool,
    include_start: bool,
    reset: bool,
    fingerprinter: Fingerprinter,
    pending: Mutex<PendingWrites>,
}

/// Writes that wait until the job has committed the pages that they describe.
#[derive(Debug, Default)]
struct PendingWrites {
    has_job: bool,
    /// Writes since the last commit began.
    new: Batch,
    /// Writes from before that; they are safe when the next commit begins.
    committing: Batch,
}

/// The record of a page from an earlier crawl, whose validators are in the request's headers; in the extensions of the
/// request.
#[derive(Clone, Debug)]
struct KnownPage(Arc<Record>);

/// What is to be remembered of a page once it is delivered; in the extensions of the page.
#[derive(Clone, Debug)]
struct PageFindings(Arc<Mutex<Findings>>);

#[derive(Debug)]
struct Findings {
    record: Record,
    /// Hashes of the links in the record.
    links: HashSet<u64>,
}

/// How a page compares with its record from an earlier crawl; in the extensions of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revisit {
    /// No earlier crawl parsed it.
    New,
    /// Its body changed.
    Changed {
        /// In how many of 128 bits the fingerprint of its words ([`SimHash`]) differs from the earlier one: 0 if only
        /// markup, layout or the order of words changed, up to 3 for a few words of a long text, about 64 for another
        /// text. `None` if one of the two has no words, or if the record is of a server error or was written by an
        /// earlier version, which kept no fingerprints.
        distance: Option<u32>,
    },
    /// The page was sent in full, with the same body as before.
    Unchanged,
    /// The server answered that the page did not change, and sent no body.
    NotModified,
}

/// The flag of an unchanged page.
const NOT_MODIFIED: &str = "not_modified";
const CONDITIONAL: [HeaderName; 5] = [
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_MATCH,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
];

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fingerprint of the words of a page, if it has any.
fn simhash(page: &Page) -> Option<SimHash> {
    let words = page.words();
    (!words.is_empty()).then(|| SimHash::of(words))
}

impl Incremental {
    /// Creates the component from the settings; `None` unless `incremental_enabled` or `delta_enabled` is set.
    ///
    /// # Errors
    /// The directory cannot be opened: another process uses it, it is damaged, or it was written by a newer version.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: IncrementalSettings = settings.of()?;
        if !own.incremental_enabled && !own.delta_enabled {
            return Ok(None);
        }
        let storage = Arc::new(Storage::open(&own.incremental_dir)?);
        Ok(Some(Self(Arc::new(Inner {
            storage: Mutex::new(Some(storage)),
            pages: own.incremental_enabled,
            call: own.on_not_modified == OnNotModified::Call,
            delta: own.delta_enabled,
            include_start: own.delta_include_start,
            reset: own.delta_enabled && own.delta_reset,
            fingerprinter: Fingerprinter::from_settings(settings)?,
            pending: Mutex::default(),
        }))))
    }

    fn storage(&self) -> Option<Arc<Storage>> {
        lock(&self.0.storage).clone()
    }

    /// Reads from the store about a request, off the async threads.
    async fn read_store<T: Send + 'static>(
        &self,
        request: &Request,
        cx: &Context,
        read: impl FnOnce(&Storage) -> Result<T> + Send + 'static,
    ) -> Option<T> {
        let storage = self.storage()?;
        let answer = tokio::task::spawn_blocking(move || read(&storage)).await;
        let error = match answer.map_err(Error::from).flatten() {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        cx.stats().inc("incremental/retrieve_error");
        log::warn!(url = %request.url, "the stored record of the page is not used: {error}");
        None
    }

    /// Queues a write: it is done at once, or in a job after the commit that makes the page safe.
    fn remember(&self, write: impl FnOnce(&Storage, &mut Batch)) {
        let Some(storage) = self.storage() else { return };
        let mut batch = Batch::new();
        write(&storage, &mut batch);
        let mut pending = lock(&self.0.pending);
        if pending.has_job {
            pending.new.append(batch);
        } else {
            drop(pending);
            storage.write(batch);
        }
    }

    /// Called when a commit of the job begins; the previous one has ended.
    fn commit(&self) {
        let mut pending = lock(&self.0.pending);
        let new = std::mem::take(&mut pending.new);
        let safe = std::mem::replace(&mut pending.committing, new);
        drop(pending);
        if let Some(storage) = self.storage() {
            storage.write(safe);
        }
    }

    /// Remembers a delivered page.
    fn delivered(&self, request: &Request, items: u64, found: Option<&PageFindings>) {
        if found.is_none() && !(self.0.delta && items > 0) {
            return;
        }
        self.remember(|storage, batch| {
            if let Some(PageFindings(findings)) = found {
                storage.put_record(batch, request.fingerprint(), &lock(findings).record);
            }
            if self.0.delta && items > 0 {
                storage.put_items(batch, DeltaKey::of(request));
                // A later crawl requests the URL from before the redirects.
                if request.meta_text(meta::DELTA_KEY).is_none()
                    && let Some(first) = chain::urls(request).next()
                    && let Ok(first) = Request::parse(first)
                {
                    storage.put_items(batch, self.0.fingerprinter.of(&first).into());
                }
            }
        });
    }

    /// Handles a page that arrived: keeps its record with it, and collects the requests that the callback returns.
    fn track_page(&self, page: &mut Page, mut record: Record, cx: &Context) {
        let known = page.request().extensions.get::<KnownPage>().map(|KnownPage(known)| Arc::clone(known));
        let revisit = match &known {
            Some(known) if known.hash == record.hash => {
                record.changed = known.changed;
                // The same body has the same words, so the fingerprint need not be computed again.
                record.simhash = known.simhash.or_else(|| simhash(page));
                Revisit::Unchanged
            }
            Some(known) => {
                record.simhash = simhash(page);
                let both = known.simhash.zip(record.simhash);
                Revisit::Changed { distance: both.map(|(old, new)| old.distance(new)) }
            }
            None => {
                record.simhash = simhash(page);
                Revisit::New
            }
        };
        cx.stats().inc(match revisit {
            Revisit::New => "incremental/new",
            Revisit::Changed { .. } => "incremental/changed",
            Revisit::Unchanged | Revisit::NotModified => "incremental/unchanged",
        });
        page.extensions.insert(revisit);
        let found = Arc::new(Mutex::new(Findings { record, links: HashSet::new() }));
        page.extensions.insert(PageFindings(Arc::clone(&found)));
        page.extensions.insert(RequestListener::new(move |request| {
            let link = record::link(request);
            let hash = match &link {
                Value::String(url) => xxh3_64(url.as_bytes()),
                other => xxh3_64(other.to_string().as_bytes()),
            };
            let mut found = lock(&found);
            if found.links.insert(hash) {
                found.record.links.push(link);
            }
        }));
    }
}

impl Component for Incremental {
    const NAME: &'static str = "incremental";
    type Settings = IncrementalSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // In the downloader chain this is between the stats and the HTTP cache, which may answer first. In the spider
        // chain it is before HttpError, which treats a 304 as a failure.
        hooks.downloader(870).spider(40).observer().persist()
    }
}

impl DownloaderMiddleware for Incremental {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        // A record may be left from an earlier try or redirect.
        request.extensions.remove::<KnownPage>();
        if request.is_nested() {
            return Ok(OnRequest::Continue);
        }
        if self.0.delta && (self.0.include_start || !request.meta_flag(meta::IS_START_REQUEST)) {
            let key = DeltaKey::of(request);
            if self.read_store(request, cx, move |storage| storage.has_items(key)).await == Some(true) {
                cx.stats().inc("delta/skipped");
                return Ok(OnRequest::drop("delta"));
            }
        }
        let own = CONDITIONAL.iter().any(|name| request.headers.contains_key(name));
        if !self.0.pages || own || request.method != Method::GET {
            return Ok(OnRequest::Continue);
        }
        let fingerprint = request.fingerprint();
        let record = self.read_store(request, cx, move |storage| storage.record(fingerprint)).await.flatten();
        if let Some(record) = record {
            for (name, value) in record.validators() {
                added::set(request, name, value);
            }
            request.extensions.insert(KnownPage(Arc::new(record)));
        }
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if response.status == StatusCode::NOT_MODIFIED && request.extensions.get::<KnownPage>().is_some() {
            cx.stats().inc("incremental/not_modified");
            response.add_flag(NOT_MODIFIED);
        }
        Ok(OnResponse::Continue)
    }
}

impl SpiderMiddleware for Incremental {
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        let (request, response) = (page.request(), page.response());
        let own = CONDITIONAL
            .iter()
            .any(|name| request.headers.contains_key(name) && !added::is_ours(request, name));
        if !self.0.pages || request.method != Method::GET || own {
            return Ok(OnPage::Parse);
        }
        let now = cx.now();
        let status = response.status;
        let fingerprint = request.fingerprint();
        if response.has_flag(NOT_MODIFIED)
            && let Some(KnownPage(known)) = request.extensions.get::<KnownPage>()
        {
            let mut record = Record::clone(known);
            record.fetched = now;
            page.follow = record.requests();
            page.extensions.insert(Revisit::NotModified);
            // The record describes a page that is known already, so writing it at once cannot lose anything.
            self.remember(|storage, batch| storage.put_record(batch, fingerprint, &record));
            return Ok(if self.0.call {
                OnPage::Parse
            } else {
                OnPage::Skip(DropReason::skipped(NOT_MODIFIED).status(status))
            });
        }
        if status.is_success() && status != StatusCode::PARTIAL_CONTENT && status::is_whole(response) {
            let record = Record::of(response, xxh3_64(&response.body), now);
            self.track_page(page, record, cx);
        } else if status.is_client_error() && request.extensions.get::<KnownPage>().is_some() {
            cx.stats().inc("incremental/gone");
            let record = Record { etag: None, last_modified: None, ..Record::of(response, 0, now) };
            self.remember(|storage, batch| storage.put_record(batch, fingerprint, &record));
        }
        Ok(OnPage::Parse)
    }
}

impl Observer for Incremental {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::EngineStarted => {
                let Some(storage) = self.storage() else { return };
                if let Err(error) = storage.begin(self.0.reset) {
                    log::warn!("nothing is remembered for later crawls: {error}");
                    lock(&self.0.storage).take();
                }
            }
            Event::PageDelivered { request, items, found } => {
                self.delivered(request, *items, found.get::<PageFindings>());
            }
            Event::EngineStopped => {
                // The last commit of the job has ended too.
                self.commit();
                self.commit();
                drop(lock(&self.0.storage).take());
            }
            _ => {}
        }
    }
}

/// Uses the job only as a signal of its commits; saves nothing in it.
impl Persist for Incremental {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        lock(&self.0.pending).has_job = true;
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.commit();
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Extensions;
    use tempfile::TempDir;

    fn incremental(folder: &TempDir, job: bool) -> Incremental {
        let mut settings = Settings::default();
        settings.change(|own: &mut IncrementalSettings| {
            own.incremental_dir = folder.path().join("known").to_str().unwrap().to_owned()
        });
        settings.change(|own: &mut IncrementalSettings| own.delta_enabled = true);
        let made = Incremental::from_settings(&settings).unwrap().unwrap();
        if job {
            made.load(None).unwrap();
        }
        made.event(&Event::EngineStarted);
        made
    }

    fn deliver(incremental: &Incremental, url: &str) {
        let request = Request::parse(url).unwrap();
        incremental.event(&Event::PageDelivered { request: &request, items: 1, found: &Extensions::new() });
    }

    /// Which of these pages a later crawl knows if this one is killed now.
    fn known_after_a_kill(incremental: Incremental, folder: &TempDir) -> Vec<bool> {
        // Nothing runs at a kill; only writes that were handed to the writer before are on disk.
        drop(incremental);
        let later = self::incremental(folder, false);
        let storage = later.storage().unwrap();
        let is_known = |url| storage.has_items(DeltaKey::of(&Request::parse(url).unwrap())).unwrap();
        ["http://h/1", "http://h/2", "http://h/3"].map(is_known).to_vec()
    }

    #[test]
    fn in_a_job_a_page_is_remembered_when_its_commit_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let made = incremental(&folder, true);
        deliver(&made, "http://h/1");
        made.save().unwrap();
        deliver(&made, "http://h/2");
        // The commit with page 1 has ended when the next one begins.
        made.save().unwrap();
        deliver(&made, "http://h/3");
        assert_eq!(known_after_a_kill(made, &folder), [true, false, false]);
    }

    #[test]
    fn without_a_job_a_page_is_remembered_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let made = incremental(&folder, false);
        deliver(&made, "http://h/1");
        assert_eq!(known_after_a_kill(made, &folder), [true, false, false]);
    }

    #[test]
    fn known_pages_whose_format_file_was_lost_are_not_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let made = incremental(&folder, false);
        deliver(&made, "http://h/1");
        drop(made);
        let marker = folder.path().join("known/format.json");
        let text = std::fs::read(&marker).unwrap();
        std::fs::remove_file(&marker).unwrap();
        let mut settings = Settings::default();
        settings.change(|own: &mut IncrementalSettings| {
            own.incremental_dir = folder.path().join("known").to_str().unwrap().to_owned()
        });
        settings.change(|own: &mut IncrementalSettings| own.delta_enabled = true);
        let error = Incremental::from_settings(&settings).unwrap_err().to_string();
        assert!(error.contains("incremental_dir") && error.contains("restore"), "{error}");
        std::fs::write(&marker, &text).unwrap();
        let later = incremental(&folder, false);
        assert_eq!(known_after_a_kill(later, &folder), [true, false, false]);
    }

    #[test]
    fn settings_can_be_looked_at_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let made = incremental(&folder, false);
        deliver(&made, "http://h/1");
        drop(made);
        let mut settings = Settings::default();
        settings.change(|own: &mut IncrementalSettings| {
            own.incremental_dir = folder.path().join("known").to_str().unwrap().to_owned()
        });
        settings.change(|own: &mut IncrementalSettings| (own.delta_enabled, own.delta_reset) = (true, true));
        drop(Incremental::from_settings(&settings).unwrap());
        let later = incremental(&folder, false);
        let key = DeltaKey::of(&Request::parse("http://h/1").unwrap());
        assert!(later.storage().unwrap().has_items(key).unwrap(), "no crawl began");
    }
}
