//! Warc: writes every exchange of a crawl into WARC files.

mod exchange;
mod export;
mod failed;
mod folder;
mod known;
#[cfg(feature = "render")]
mod rendered;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{
    AtEnd, Change, Component, Context, CrawlEnd, CrawlerBuilder, DownloaderMiddleware, Error, FetchError,
    Hooks, OnException, OnPage, OnRequest, OnResponse, Page, Persist, Plugin, Request, Response, Result,
    Settings, Spider, SpiderMiddleware, log, settings,
};
use huntsman_warc::{Digest, DigestKind, Options};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use exchange::{Archived, Exchange, Written};
use folder::WarcFolder;
use known::Known;

use crate::Directives;

pub use export::WarcExport;

settings! {
    /// Settings of [`Warc`].
    pub struct WarcSettings {
        /// Folder into which every exchange of the crawl is written as WARC files. Nothing is written without it.
        warc_dir: Option<String> = None;
        /// First part of the names of the files, before the time and the number.
        warc_name: String = "huntsman".to_owned();
        /// Size in bytes after which the next file is begun; a record is never divided.
        warc_max_bytes: u64 = 1_000_000_000;
        /// Level of the compression, 0 to 9: a lower one takes less processor time and more room. Level 1 takes less than half the time of level 6 for a
        /// page, and files that are a third larger.
        warc_level: u32 = 6;
        /// Algorithm of the digests: sha1, which all tools read, or sha256.
        warc_digest: WarcDigest = WarcDigest::Sha1;
        /// Writes a body that the files have already as a record that refers to the earlier one (revisit).
        warc_revisit: bool = true;
        /// Also writes the links of each page, as metadata of its response.
        warc_outlinks: bool = false;
        /// What happens to responses whose X-Robots-Tag says noarchive: keep (they are written, and their metadata says so) or skip.
        warc_noarchive: WarcNoarchive = WarcNoarchive::Keep;
        /// Who crawls, with an address for questions; stands in the first record of each file.
        warc_operator: Option<String> = None;
        /// The collection or the job that the files belong to; stands in the first record of each file.
        warc_is_part_of: Option<String> = None;
        /// Keeps Authorization and Proxy-Authorization in the records of requests, and other headers that are marked as secret.
        warc_credentials: bool = false;
    }
}

/// The algorithm of the digests in WARC files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarcDigest {
    /// SHA-1.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
}

/// What happens to responses that are not to be archived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarcNoarchive {
    /// They are written, and their metadata has `noarchive`.
    #[default]
    Keep,
    /// They leave no record, and are counted in the stat `warc/noarchive`.
    Skip,
}

/// Writes every exchange of a crawl into WARC 1.1 files (ISO 28500:2017). Not configured unless `warc_dir` is set.
///
/// Pages, redirects, error pages, retries and robots.txt are written as `response` and `request`, with a `metadata` record of how the page was
/// found; responses from the HTTP cache are not. A body that the files have already becomes a `revisit`, also if an earlier crawl wrote it
/// into the folder. If a body fails, the part that was received is written with `WARC-Truncated`; if there is no response, the request is written, if it was sent,
/// and the reason as `metadata`. A body of another type than a page is read and written only with `download_binary`.
///
/// Files are named `NAME-TIME-NUMBER.warc.gz`, with `.open` behind it while they are written. With a job, a crawl that was killed cuts its
/// open file at the last commit and goes on. Files that a crawl without a job left are completed by the next crawl into the folder. A disk
/// that is full stops the crawl, and the pages without a record are fetched when the job goes on.
///
/// The stats `warc/responses`, `warc/revisits`, `warc/failed_downloads`, `warc/noarchive`, `warc/bytes` and `warc/failed` count what was written and
/// what was not.
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// # use huntsman_middleware::{Defaults, Warc, WarcBuilder};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("archive");
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/b>b</a>"), ("http://a.test/b", "text")]);
/// # let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
/// #     out.follow_links(page);
/// #     Ok(())
/// # });
/// let report = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web).warc(Warc::to(&folder)).run().await?;
/// // The third response is that to robots.txt.
/// assert_eq!((report.pages, report.stat("warc/responses")), (2, 3));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Warc {
    folder: Arc<WarcFolder>,
    known: Option<Arc<Mutex<Known>>>,
    writing: Arc<Writing>,
    /// Whether what earlier crawls left was looked at.
    begun: OnceCell<()>,
    keeps_credentials: bool,
    has_outlinks: bool,
    noarchive: WarcNoarchive,
    user_agent: String,
    options: Options,
}

/// Marks a request, in its extensions, that was passed on to the network.
#[derive(Clone, Copy, Debug)]
struct Sent;

/// Lets bodies with one digest be written one after another. Others share a lock with it by chance, and wait for one record then.
#[derive(Debug)]
struct Writing([Mutex<()>; 64]);

impl Default for Writing {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Writing {
    fn turn(&self, digest: &Digest) -> MutexGuard<'_, ()> {
        let sum: usize = digest.to_string().bytes().map(usize::from).sum();
        self.0[sum % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Warc {
    /// Not configured unless `warc_dir` is set.
    ///
    /// # Errors
    /// The folder cannot be made, or `warc_name` is not the name of a file.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: WarcSettings = settings.of()?;
        let Some(dir) = own.warc_dir else { return Ok(None) };
        let is_name = !own.warc_name.is_empty() && !own.warc_name.contains(['/', '\\']);
        if !is_name || own.warc_name.starts_with('.') {
            return Err(Error::usage("warc_name: name the first part of a file, without slashes"));
        }
        if own.warc_level > 9 {
            return Err(Error::usage("warc_level: there are the levels 0 to 9"));
        }
        let dir = PathBuf::from(dir);
        huntsman_files::create_dir_all(&dir)
            .map_err(|error| Error::from(error).context(format!("warc_dir: {}", shown(&dir))))?;
        let digest = match own.warc_digest {
            WarcDigest::Sha1 => DigestKind::Sha1,
            WarcDigest::Sha256 => DigestKind::Sha256,
        };
        let options = Options { level: own.warc_level, digest };
        let about = [("operator", own.warc_operator), ("isPartOf", own.warc_is_part_of)];
        let folder =
            WarcFolder::new(dir, own.warc_name, own.warc_max_bytes, options, info(settings, &about)?);
        Ok(Some(Self {
            folder: Arc::new(folder),
            known: own.warc_revisit.then(Arc::default),
            writing: Arc::default(),
            begun: OnceCell::new(),
            keeps_credentials: own.warc_credentials,
            has_outlinks: own.warc_outlinks,
            noarchive: own.warc_noarchive,
            user_agent: settings.user_agent.clone(),
            options,
        }))
    }

    /// Archives the crawl into a folder, which is made if it is missing: `builder.warc(Warc::to("archive"))`.
    pub fn to(dir: impl AsRef<Path>) -> WarcTo {
        WarcTo { dir: dir.as_ref().to_owned() }
    }

    /// Before the first record: completes what earlier crawls left, and reads which bodies they wrote.
    async fn begin(&self, cx: &Context) -> Result<()> {
        let begin = || async {
            let (folder, known, now) = (Arc::clone(&self.folder), self.known.clone(), cx.now());
            let begin = move || {
                folder.begin(now, |reader| {
                    if let Some(known) = &known {
                        lock(known).read(reader);
                    }
                })
            };
            checked(tokio::task::spawn_blocking(begin).await?, cx)
        };
        self.begun.get_or_try_init(begin).await.copied()
    }

    async fn write(&self, exchange: Exchange, cx: &Context) -> Result<()> {
        self.begin(cx).await?;
        let (folder, known, options) = (Arc::clone(&self.folder), self.known.clone(), self.options);
        let (writing, now) = (Arc::clone(&self.writing), cx.now());
        let write = move || -> Result<Written> {
            let digest = options.digest.of(exchange.body());
            // From the question whether the body is known until it is, so that of two that arrive at once the second refers to the first.
            let _turn = known.as_ref().map(|_| writing.turn(&digest));
            let original = known.as_ref().and_then(|known| exchange.original(&digest, &lock(known)));
            let members = exchange.members(&digest, original.as_ref(), options);
            folder.append(&members, now)?;
            if let (Some(known), None) = (&known, &original)
                && let Some(new) = exchange.as_original(&digest)
            {
                lock(known).add(new);
            }
            Ok(Written { bytes: members.len(), is_revisit: original.is_some() })
        };
        // Most of it is digests and compression.
        let written = checked(cx.compute(write).await?, cx)?;
        cx.stats().inc(if written.is_revisit { "warc/revisits" } else { "warc/responses" });
        count_bytes(written.bytes, cx);
        Ok(())
    }

    /// Writes the records of a download without a response.
    async fn write_failure(&self, members: Vec<u8>, cx: &Context) -> Result<()> {
        self.begin(cx).await?;
        let (folder, now) = (Arc::clone(&self.folder), cx.now());
        let bytes = members.len();
        checked(tokio::task::spawn_blocking(move || folder.append(&members, now)).await?, cx)?;
        cx.stats().inc("warc/failed_downloads");
        count_bytes(bytes, cx);
        Ok(())
    }
}

/// Stops the crawl if something could not be written: an archive with a hole would be taken for whole.
fn checked<T>(written: Result<T>, cx: &Context) -> Result<T> {
    if let Err(error) = &written {
        if cx.stats().get("warc/failed") == 0 {
            log::error!("the WARC files: {error}");
        }
        cx.stats().inc("warc/failed");
        cx.stop("warc_failed");
    }
    written
}

fn count_bytes(bytes: usize, cx: &Context) {
    cx.stats().add("warc/bytes", i64::try_from(bytes).unwrap_or(i64::MAX));
}

/// What the files say of the crawl.
fn info(
    settings: &Settings,
    about: &[(&'static str, Option<String>)],
) -> Result<Vec<(&'static str, String)>> {
    let obeys = settings.of::<crate::RobotsSettings>()?.robotstxt_obey;
    let mut info = vec![
        ("software", concat!("huntsman/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("format", "WARC File Format 1.1".to_owned()),
        (
            "conformsTo",
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/".to_owned(),
        ),
        ("robots", if obeys { "obey" } else { "ignore" }.to_owned()),
        ("http-header-user-agent", settings.user_agent.clone()),
    ];
    info.extend(about.iter().filter_map(|(name, value)| Some((*name, value.clone()?))));
    Ok(info)
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown(path: &Path) -> String {
    huntsman_crawler::terminal::escape(&path.to_string_lossy()).into_owned()
}

impl Component for Warc {
    const NAME: &'static str = "warc";
    type Settings = WarcSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Next to the network: behind the HTTP cache, whose answers are not exchanges.
        hooks.downloader(950).spider(10).persist().at_end()
    }
}

impl DownloaderMiddleware for Warc {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        request.extensions.insert(Sent);
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let is_stored = response.has_flag("cached") || response.has_flag("replayed");
        if request.extensions.get::<Sent>().is_none() || is_stored {
            return Ok(OnResponse::Continue);
        }
        let says_noarchive = Directives::of_headers(&response.headers, &self.user_agent).noarchive;
        if says_noarchive && self.noarchive == WarcNoarchive::Skip {
            cx.stats().inc("warc/noarchive");
            return Ok(OnResponse::Continue);
        }
        let mut exchange = Exchange::new(request, response, cx.now(), self.keeps_credentials);
        if says_noarchive {
            exchange.note("noarchive", "X-Robots-Tag");
        }
        let archived = exchange.archived();
        self.write(exchange, cx).await?;
        response.extensions.insert(archived);
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        if request.extensions.get::<Sent>().is_none() || !failed::is_of_site(error.kind()) {
            return Ok(OnException::Pass);
        }
        match error.partial() {
            Some(partial) => {
                let exchange = Exchange::new(request, partial, cx.now(), self.keeps_credentials);
                let why = failed::truncation(error.kind());
                self.write(exchange.partial(why, error.kind().name()), cx).await?;
            }
            None => {
                let members = failed::members(request, error, cx.now(), self.keeps_credentials, self.options);
                self.write_failure(members, cx).await?;
            }
        }
        Ok(OnException::Pass)
    }
}

impl SpiderMiddleware for Warc {
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        #[cfg(feature = "render")]
        if let Some(archived) = page.response().extensions.get::<Archived>()
            && let Some(rendered) = page.response().extensions.get::<crate::Rendered>()
        {
            let members = archived.rendered(page, rendered, self.options);
            checked(self.folder.append(&members, cx.now()), cx)?;
            cx.stats().inc("warc/rendered");
            count_bytes(members.len(), cx);
        }
        if self.has_outlinks
            && let Some(archived) = page.response().extensions.get::<Archived>()
        {
            let links = page.links();
            if links.is_empty() {
                return Ok(OnPage::Parse);
            }
            let members = archived.outlinks(&links, self.options);
            // The page is settled after this, so the links are behind no commit that has the page.
            checked(self.folder.append(&members, cx.now()), cx)?;
            count_bytes(members.len(), cx);
        }
        Ok(OnPage::Parse)
    }
}

impl Persist for Warc {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        if let Some(known) = &self.known {
            lock(known).keep_changes();
        }
        self.folder.resume(state)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.folder.position()
    }

    fn sync(&self) -> Result<()> {
        self.folder.sync()
    }

    fn load_entry(&self, _: &[u8], value: &[u8]) -> Result<()> {
        if let Some(known) = &self.known {
            lock(known).load(value)?;
        }
        Ok(())
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        match &self.known {
            Some(known) => lock(known).changes(),
            None => Ok(Vec::new()),
        }
    }
}

impl AtEnd for Warc {
    async fn at_end(&self, end: &mut CrawlEnd, _: &Context) {
        let folder = Arc::clone(&self.folder);
        let finished = match tokio::task::spawn_blocking(move || folder.finish()).await {
            Ok(finished) => finished,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = finished
            && end.result.is_ok()
        {
            end.result = Err(error.context("the WARC files"));
        }
    }
}

/// A folder for the WARC files of a crawl; see [`Warc::to`].
#[derive(Clone, Debug)]
pub struct WarcTo {
    dir: PathBuf,
}

impl Plugin for WarcTo {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        builder.set("warc_dir", self.dir.to_string_lossy().into_owned())
    }
}

/// Lets a crawl be archived.
pub trait WarcBuilder {
    /// Writes every exchange of the crawl into WARC files. The crawl needs the component [`Warc`], which the built-in ones have.
    fn warc(self, to: WarcTo) -> Self;
}

impl<S: Spider> WarcBuilder for CrawlerBuilder<S> {
    fn warc(self, to: WarcTo) -> Self {
        self.plugin(to)
    }
}
