//! RecordReplay: stores every exchange of a crawl in a folder, or answers every request from such a folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Error, Fingerprinter, Hooks, OnRequest, OnResponse,
    Request, Response, Result, Settings, log, redacted, settings,
};

use crate::HttpCompression;
use crate::fixture::{Exchange, Head, exchanges_in};

settings! {
    /// Settings of [`RecordReplay`].
    pub struct RecordReplaySettings {
        /// Folder into which every exchange of the crawl is written: a readable file for request and response, and one for the body. Exchanges
        /// of the same requests that it holds are replaced.
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
/// several exchanges, and a replay gives them in their order and then the last one again. Downloads that fail are not recorded. Secrets are
/// left out. Each file is whole or missing, whenever the crawl is killed.
///
/// A replay answers before anything could be sent: no name is resolved and no connection is made. A request without an exchange fails with the
/// reason `not_recorded` and is not retried; the stat `replay/missing` counts them. The fingerprint of a request decides which exchange is
/// its own, so settings that change fingerprints must be those of the recording. The stat `record/exchanges` counts what was written.
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
    paths: Vec<(u32, PathBuf)>,
    /// Number of times that the request was answered.
    asked: usize,
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

    /// The number of the next exchange of a request; `None` if the recording is full.
    fn number(&self, exchange: &Exchange) -> Option<u32> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.bytes.saturating_add(exchange.size()) > self.max_bytes {
            return None;
        }
        written.bytes += exchange.size();
        let number = written.numbers.entry(exchange.fingerprint.0).or_default();
        *number += 1;
        Some(*number)
    }

    async fn record(&self, mut exchange: Exchange, cx: &Context) -> Result<()> {
        let Some(number) = self.number(&exchange) else {
            if cx.stats().get("record/left_out") == 0 {
                log::warn!(
                    limit = self.max_bytes,
                    "the recording has reached record_max_bytes: further exchanges are counted, not written"
                );
            }
            cx.stats().inc("record/left_out");
            return Ok(());
        };
        exchange.number = number;
        if !exchange.left_out.is_empty() {
            if cx.stats().get("record/with_secrets") == 0 {
                log::info!("secrets are left out of the recording: {}", exchange.left_out.join(", "));
            }
            cx.stats().inc("record/with_secrets");
        }
        let folder = self.folder.clone();
        let written = tokio::task::spawn_blocking(move || exchange.write(&folder, &exchange.name())).await?;
        match written {
            Ok(_) => cx.stats().inc("record/exchanges"),
            // A recording with a hole would be taken for whole.
            Err(error) => {
                log::error!("recording: {error}");
                cx.stats().inc("record/failed");
                cx.stop("record_failed");
            }
        }
        Ok(())
    }
}

impl Replayer {
    fn new(folder: PathBuf) -> Result<Self> {
        let usage = |error: Error| Error::usage(format!("replay_dir: {error}"));
        let mut recorded: HashMap<u128, Recorded> = HashMap::new();
        for path in exchanges_in(&folder).map_err(usage)? {
            let head = Head::read(&path).map_err(usage)?;
            let fingerprint = u128::from_str_radix(&head.fingerprint, 16).map_err(|error| {
                usage(Error::from(error).context(format!("{}: fingerprint", shown(&path))))
            })?;
            recorded.entry(fingerprint).or_default().paths.push((head.number, path));
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
    fn next(&self, fingerprint: u128) -> Option<PathBuf> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let found = recorded.get_mut(&fingerprint)?;
        let at = found.asked.min(found.paths.len() - 1);
        found.asked += 1;
        Some(found.paths[at].1.clone())
    }

    async fn answer(&self, fingerprint: u128, request: &Request, cx: &Context) -> Result<OnRequest> {
        let Some(path) = self.next(fingerprint) else {
            let asked = format!("{} {}", request.method, redacted(request.url.as_str()));
            let what = format!("{asked} is not among the exchanges in {}", shown(&self.folder));
            if cx.stats().get("replay/missing") < 10 {
                log::error!("{what}");
            }
            cx.stats().inc("replay/missing");
            return Ok(OnRequest::Drop(DropReason::failed("not_recorded").detail(what)));
        };
        let exchange = tokio::task::spawn_blocking(move || Exchange::read(&path)).await?;
        let mut response = match exchange {
            Ok(exchange) => exchange.response,
            Err(error) => {
                log::error!("replay: {error}");
                cx.stats().inc("replay/missing");
                return Ok(OnRequest::Drop(
                    DropReason::failed("damaged_recording").detail(error.to_string()),
                ));
            }
        };
        response.add_flag("replayed");
        cx.stats().inc("replay/answered");
        Ok(OnRequest::Respond(Box::new(response)))
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
}
