//! RecordReplay: stores every exchange of a crawl in a folder, or answers every request from such a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Error, FetchError, FetchErrorKind, Fingerprinter,
    Hooks, OnException, OnRequest, OnResponse, Request, Response, Result, Settings, log, redacted, settings,
};

use crate::HttpCompression;
use crate::fixture::{Exchange, FailedDownload, FailureHead, Head, exchanges_in, failures_in};

settings! {
    /// Settings of [`RecordReplay`].
    pub struct RecordReplaySettings {
        /// Folder into which every exchange of the crawl is written: a readable file for request and response, and one for the body. Exchanges
        /// of the same requests that it holds are replaced. Downloads that fail are files with the error.
        record_dir: Option<String> = None;
        /// Folder of recorded exchanges that answers every request. Nothing is sent; a request that was not recorded fails.
        replay_dir: Option<String> = None;
        /// Number of bytes that one crawl records. Further exchanges are counted in the stat record/left_out, and not written.
        record_max_bytes: u64 = 256 << 20;
    }
}

/// Stores every exchange of a crawl as files ([`Exchange`]), or replays them. Not configured unless `record_dir` or `replay_dir` is set.
///
/// A recording has pages, redirects, error pages and what components ask for, such as robots.txt. A request that is sent again, by a retry, has
/// several exchanges, and a replay gives them in their order and then the last one again. A download that fails is a file `NAME.failure.json`
/// with the kind and the message of the error, and is one of these; only what a stop cancels is not recorded. Secrets are left out. Each
/// file is whole or missing, whenever the crawl is killed.
///
/// A replay answers before anything could be sent: no name is resolved and no connection is made. A request without an exchange fails with the
/// reason `not_recorded` and is not retried; the stat `replay/missing` counts them. The fingerprint of a request decides which exchange is
/// its own, so settings that change fingerprints must be those of the recording. The stats `record/exchanges` and `record/failures` count what
/// was written.
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// # use huntsman_middleware::Defaults;
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().to_str().unwrap();
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/b>b</a>"), ("http://a.test/b", "text")]);
/// # let spider = || spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
/// #     out.follow_links(page);
/// #     Ok(())
/// # });
/// # let crawl = || CrawlerBuilder::new(spider()).plugin(Defaults);
/// crawl().downloader(web).set("record_dir", folder).run().await?;
/// # let nothing = ScriptedDownloader::pages([("http://other.test/", "")]);
/// let report = crawl().downloader(nothing).set("replay_dir", folder).run().await?;
/// assert_eq!((report.pages, report.stat("replay/missing")), (2, 0));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RecordReplay {
    fingerprinter: Fingerprinter,
    compression: HttpCompression,
    what: What,
}

#[derive(Debug)]
enum What {
    Record(Recorder),
    Replay(Replayer),
}

#[derive(Debug)]
struct Recorder {
    folder: PathBuf,
    max_bytes: u64,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    /// Number of exchanges of each request.
    numbers: HashMap<u128, u32>,
    bytes: u64,
}

#[derive(Debug)]
struct Replayer {
    folder: PathBuf,
    recorded: Mutex<HashMap<u128, Recorded>>,
}

/// The exchanges of one request.
#[derive(Debug, Default)]
struct Recorded {
    /// In the order in which they were recorded.
    paths: Vec<(u32, Stored)>,
    /// Number of times that the request was answered.
    asked: usize,
}

/// A file that answers a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stored {
    Exchange(PathBuf),
    Failure(PathBuf),
}

impl RecordReplay {
    /// Not configured unless `record_dir` or `replay_dir` is set.
    ///
    /// # Errors
    /// Both are set, the folder of the recording cannot be made, or a recorded exchange is damaged; the error names the file.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RecordReplaySettings = settings.of()?;
        let what = match (own.record_dir, own.replay_dir) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(Error::usage(
                    "record_dir and replay_dir: a crawl records or replays; set one of them",
                ));
            }
            (Some(folder), None) => What::Record(Recorder::new(folder.into(), own.record_max_bytes)?),
            (None, Some(folder)) => What::Replay(Replayer::new(folder.into())?),
        };
        let Some(compression) = HttpCompression::from_settings(settings)? else { return Ok(None) };
        Ok(Some(Self { fingerprinter: Fingerprinter::from_settings(settings)?, compression, what }))
    }

    /// The response with its decoded body. What cannot be decoded stays as it was received.
    fn decoded(&self, request: &Request, response: &Response) -> Response {
        let mut copy = response.clone();
        if let Some(body) = copy.decoded.take() {
            copy.body = body;
        } else if let Ok(Some(decoded)) = self.compression.decode(request, response) {
            copy.body = decoded.body;
            if decoded.partial || decoded.truncated {
                copy.add_flag("truncated");
            }
        }
        copy
    }
}

impl Recorder {
    fn new(folder: PathBuf, max_bytes: u64) -> Result<Self> {
        huntsman_files::create_dir_all(&folder)
            .map_err(|error| Error::from(error).context(format!("record_dir: {}", shown(&folder))))?;
        Ok(Self { folder, max_bytes, written: Mutex::default() })
    }

    /// The number of the next file of a request with this fingerprint; `None` if the recording is full, which is told.
    fn number(&self, fingerprint: u128, size: u64, cx: &Context) -> Option<u32> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.bytes.saturating_add(size) > self.max_bytes {
            drop(written);
            if cx.stats().get("record/left_out") == 0 {
                log::warn!(
                    limit = self.max_bytes,
                    "the recording has reached record_max_bytes: further exchanges are counted, not written"
                );
            }
            cx.stats().inc("record/left_out");
            return None;
        }
        written.bytes += size;
        let number = written.numbers.entry(fingerprint).or_default();
        *number += 1;
        Some(*number)
    }

    async fn record(&self, mut exchange: Exchange, cx: &Context) -> Result<()> {
        let Some(number) = self.number(exchange.fingerprint.0, exchange.size(), cx) else { return Ok(()) };
        exchange.number = number;
        tell_secrets(&exchange.left_out, cx);
        let folder = self.folder.clone();
        let written = move || exchange.write(&folder, &exchange.name()).map(drop);
        Self::finish(tokio::task::spawn_blocking(written).await?, "record/exchanges", cx);
        Ok(())
    }

    async fn record_failure(&self, failed: FailedDownload, cx: &Context) -> Result<()> {
        tell_secrets(failed.left_out(), cx);
        let folder = self.folder.clone();
        let written = move || failed.write(&folder);
        Self::finish(tokio::task::spawn_blocking(written).await?, "record/failures", cx);
        Ok(())
    }

    /// Counts a file that was written, or stops the crawl.
    fn finish(written: Result<()>, stat: &str, cx: &Context) {
        match written {
            Ok(()) => cx.stats().inc(stat),
            // A recording with a hole would be taken for whole.
            Err(error) => {
                log::error!("recording: {error}");
                cx.stats().inc("record/failed");
                cx.stop("record_failed");
            }
        }
    }
}

fn tell_secrets(left_out: &[String], cx: &Context) {
    if left_out.is_empty() {
        return;
    }
    if cx.stats().get("record/with_secrets") == 0 {
        log::info!("secrets are left out of the recording: {}", left_out.join(", "));
    }
    cx.stats().inc("record/with_secrets");
}

impl Replayer {
    fn new(folder: PathBuf) -> Result<Self> {
        let usage = |error: Error| Error::usage(format!("replay_dir: {error}"));
        let mut recorded: HashMap<u128, Recorded> = HashMap::new();
        let mut add = |fingerprint: &str, number: u32, stored: Stored| {
            let (Stored::Exchange(path) | Stored::Failure(path)) = &stored;
            let fingerprint = u128::from_str_radix(fingerprint, 16).map_err(|error| {
                usage(Error::from(error).context(format!("{}: fingerprint", shown(path))))
            })?;
            recorded.entry(fingerprint).or_default().paths.push((number, stored));
            Ok::<(), Error>(())
        };
        for path in exchanges_in(&folder).map_err(usage)? {
            let head = Head::read(&path).map_err(usage)?;
            add(&head.fingerprint, head.number, Stored::Exchange(path))?;
        }
        for path in failures_in(&folder).map_err(usage)? {
            let head = FailureHead::read(&path).map_err(usage)?;
            add(&head.fingerprint, head.number, Stored::Failure(path))?;
        }
        if recorded.is_empty() {
            return Err(usage(Error::msg(format!("{}: no exchange is recorded there", shown(&folder)))));
        }
        for recorded in recorded.values_mut() {
            recorded.paths.sort();
        }
        Ok(Self { folder, recorded: Mutex::new(recorded) })
    }

    /// The next exchange of a request; the last one again when all were given.
    fn next(&self, fingerprint: u128) -> Option<Stored> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let found = recorded.get_mut(&fingerprint)?;
        let at = found.asked.min(found.paths.len() - 1);
        found.asked += 1;
        Some(found.paths[at].1.clone())
    }

    async fn answer(&self, fingerprint: u128, request: &Request, cx: &Context) -> Result<OnRequest> {
        let Some(stored) = self.next(fingerprint) else {
            let asked = format!("{} {}", request.method, redacted(request.url.as_str()));
            let what = format!("{asked} is not among the exchanges in {}", shown(&self.folder));
            if cx.stats().get("replay/missing") < 10 {
                log::error!("{what}");
            }
            cx.stats().inc("replay/missing");
            return Ok(OnRequest::Drop(DropReason::failed("not_recorded").detail(what)));
        };
        let read = move || match stored {
            Stored::Exchange(path) => {
                let mut response = Exchange::read(&path)?.response;
                response.add_flag("replayed");
                Ok(OnRequest::Respond(Box::new(response)))
            }
            Stored::Failure(path) => {
                Ok(OnRequest::Fail(Box::new(FailureHead::read(&path)?.into_error(&path)?)))
            }
        };
        let read: Result<OnRequest> = tokio::task::spawn_blocking(read).await?;
        match read {
            Ok(answer) => {
                cx.stats().inc("replay/answered");
                Ok(answer)
            }
            Err(error) => {
                log::error!("replay: {error}");
                cx.stats().inc("replay/missing");
                let reason = DropReason::failed("damaged_recording").detail(error.to_string());
                Ok(OnRequest::Drop(reason))
            }
        }
    }
}

fn shown(path: &Path) -> String {
    huntsman_crawler::terminal::escape(&path.to_string_lossy()).into_owned()
}

impl Component for RecordReplay {
    const NAME: &'static str = "record_replay";
    type Settings = RecordReplaySettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Before the HTTP cache, whose answers belong to a recording, too; behind all that change, drop or decode responses.
        hooks.downloader(885)
    }
}

impl DownloaderMiddleware for RecordReplay {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        match &self.what {
            What::Record(_) => Ok(OnRequest::Continue),
            What::Replay(replayer) => {
                let fingerprint = Exchange::fingerprint_of(request, &self.fingerprinter).0;
                replayer.answer(fingerprint, request, cx).await
            }
        }
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if let What::Record(recorder) = &self.what {
            let decoded = self.decoded(request, response);
            let exchange = Exchange::new(request, &self.fingerprinter, &decoded);
            recorder.record(exchange, cx).await?;
        }
        Ok(OnResponse::Continue)
    }

    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> Result<OnException> {
        // The error of another middleware happens in a replay by itself, and what a stop cancels is fetched when the crawl goes on.
        let is_download = !matches!(error.kind(), FetchErrorKind::Middleware | FetchErrorKind::Cancelled);
        if let What::Record(recorder) = &self.what
            && is_download
        {
            let fingerprint = Exchange::fingerprint_of(request, &self.fingerprinter).0;
            if let Some(number) = recorder.number(fingerprint, FailedDownload::SIZE, cx) {
                let failed = FailedDownload::new(request, &self.fingerprinter, number, error);
                recorder.record_failure(failed, cx).await?;
            }
        }
        Ok(OnException::Pass)
    }
}
