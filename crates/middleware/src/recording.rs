//! Recording: writes every response of a crawl to a file, from which the crawl can be replayed without the site.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Event, Hooks, Observer, OnResponse, Persist, Request,
    Response, Result, Settings, log, redact, settings,
};
use serde::Serialize;
use url::{Position, Url};

use crate::HttpCompression;
use crate::status;

mod file;

use file::RecordingFile;

settings! {
    /// Settings of [`Recording`].
    pub struct RecordingSettings {
        /// File to which every response of the crawl is written with its body, one JSON object per line. Its name ends with .jsonl.zst,
        /// .jsonl.gz or .jsonl. An existing recording is added to.
        recording_file: Option<String> = None;
    }
}

/// Writes every response of a crawl to a file: one JSON object per line, in the order in which the responses arrived. Not configured unless
/// `recording_file` is set.
///
/// Pages, redirects, error pages, retried failures and answers of the HTTP cache are all recorded, each under the URL that was requested. A
/// URL that was fetched more than once, by a retry or after a crash, has several lines, and the last one counts. Not recorded are answers to
/// other methods than GET, whose lines would look like those of pages, what components download for themselves, such as robots.txt, and
/// downloads that the crawl breaks off, such as those of unwanted content types. A page that an incremental crawl finds unchanged has no
/// body.
///
/// | field | what it is |
/// | --- | --- |
/// | `n` | number of the line, from 1 |
/// | `url` | the requested URL, without fragment |
/// | `status` | the status code |
/// | `ctype` | `Content-Type`, or an empty string |
/// | `location` | the target of a redirect as an absolute URL, else null |
/// | `depth` | links from a start URL |
/// | `body` | the body, without content coding, if it is UTF-8 |
/// | `body_base64` | any other body |
/// | `truncated` | true if the body is incomplete because of a limit or a broken connection; else absent |
///
/// Headers of requests and cookies are not recorded, and passwords in URLs are masked. Bodies are recorded as they are: pages that were
/// fetched with a login are in the file.
///
/// The file is compressed in pieces of up to 4 MiB of lines. In a job, what is recorded is on the disk before a page counts as done, so a
/// crawl that was killed and goes on has a line of every response. Without a job, a kill loses the lines of the last piece. After a failed
/// write the crawl stops; [`finish`](Self::finish) returns the error. The stat is `recording/responses`.
///
/// A response costs a copy of its body, and the memory is that of one piece.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::{Defaults, Recording};
/// # use huntsman_testkit::ScriptedDownloader;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.jsonl");
/// # let file = path.to_str().unwrap();
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/b>b</a>"), ("http://a.test/b", "text")]);
/// let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
///     out.follow_links(page);
///     Ok(())
/// });
/// let builder = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web);
/// let report = builder.set("recording_file", file).set("robotstxt_obey", false).run().await?;
/// report.component::<Recording>().expect("it is configured").finish()?;
/// let text = std::fs::read_to_string(file)?;
/// assert_eq!(text.lines().count(), 2);
/// assert!(text.starts_with(r#"{"n":1,"url":"http://a.test/","status":200,"#));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Recording(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: RecordingFile,
    compression: HttpCompression,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    n: u64,
    url: &'a str,
    status: u16,
    ctype: &'a str,
    location: Option<Url>,
    depth: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Recording {
    /// Not configured unless `recording_file` is set.
    ///
    /// # Errors
    /// The name of the file says no format, the file cannot be opened, or another crawl writes to it.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RecordingSettings = settings.of()?;
        let Some(path) = own.recording_file else { return Ok(None) };
        let Some(compression) = HttpCompression::from_settings(settings)? else { return Ok(None) };
        Ok(Some(Self(Arc::new(Inner { file: RecordingFile::open(Path::new(&path))?, compression }))))
    }

    /// Writes what is still in memory, and syncs the file. The crawl calls this at its end.
    ///
    /// # Errors
    /// This or an earlier write failed: the recording lacks the responses after it.
    pub fn finish(&self) -> Result<()> {
        let file = &self.0.file;
        file.write_out();
        match file.failure() {
            Some(why) => Err(Error::msg(why)),
            None => file.sync(),
        }
    }

    fn record(&self, request: &Request, response: &Response) -> Result<bool> {
        let (body, is_cut) = self.body(request, response);
        let mut url = request.url.clone();
        redact(&mut url);
        let content_type = response.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let text = std::str::from_utf8(&body).ok();
        let line = Line {
            n: 0,
            url: &url[..Position::AfterQuery],
            status: response.status.as_u16(),
            ctype: content_type.as_deref().unwrap_or_default(),
            location: redirect_target(request, response),
            depth: request.depth,
            body: text,
            body_base64: text.is_none().then(|| STANDARD.encode(&body)),
            truncated: is_cut || !status::is_whole(response),
        };
        self.0.file.push(|n, out| Ok(serde_json::to_writer(out, &Line { n, ..line })?))
    }

    /// The decoded body, and whether a limit of decoding cut it. What cannot be decoded is empty and counts as cut.
    fn body(&self, request: &Request, response: &Response) -> (Bytes, bool) {
        if let Some(decoded) = &response.decoded {
            return (decoded.clone(), false);
        }
        match self.0.compression.decode(request, response) {
            Ok(None) => (response.body.clone(), false),
            Ok(Some(decoded)) => (decoded.body, decoded.partial || decoded.truncated),
            Err(_) => (Bytes::new(), true),
        }
    }
}

/// Where a redirect leads.
fn redirect_target(request: &Request, response: &Response) -> Option<Url> {
    let location = response.headers.get(header::LOCATION).filter(|_| response.status.is_redirection())?;
    let mut target = request.url.join(String::from_utf8_lossy(location.as_bytes()).trim()).ok()?;
    target.set_fragment(None);
    redact(&mut target);
    Some(target)
}

impl Component for Recording {
    const NAME: &'static str = "recording";
    type Settings = RecordingSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Only the HTTP cache is nearer to the network: the components that drop, replace or decode responses act later.
        hooks.downloader(880).observer().persist()
    }
}

impl DownloaderMiddleware for Recording {
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if request.is_nested() || request.method != Method::GET {
            return Ok(OnResponse::Continue);
        }
        if self.record(request, response)? {
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.0.file.write_out()).await?;
        }
        if self.0.file.has_failed() {
            if !cx.is_stopping() {
                cx.stop("recording_failed");
            }
        } else {
            cx.stats().inc("recording/responses");
        }
        Ok(OnResponse::Continue)
    }
}

impl Observer for Recording {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::EngineStarted => self.0.file.begin_without_job(),
            Event::SpiderOpened { resumed: 1.. } if self.0.file.lines() == 0 => {
                log::warn!("the recording begins here: what the crawl fetched before is not in it");
            }
            Event::EngineStopped => {
                // The error was logged, and `finish` returns it again.
                let _ = self.finish();
            }
            _ => {}
        }
    }
}

/// Saves the end of the recording in the job.
impl Persist for Recording {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        self.0.file.begin(true, state)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.0.file.save()
    }

    fn sync(&self) -> Result<()> {
        self.0.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};
    use huntsman_crawler::Nested;

    use super::*;

    #[tokio::test]
    async fn posts_and_downloads_of_components_are_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut settings = Settings::default();
        settings.change(|own: &mut RecordingSettings| {
            own.recording_file = Some(path.to_str().unwrap().to_owned());
        });
        let recording = Recording::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        recording.event(&Event::EngineStarted);
        let mut robots = Request::parse("http://h/robots.txt").unwrap();
        robots.extensions.insert(Nested);
        let page = Request::parse("http://h/a").unwrap();
        let form = Request::form(page.url.clone(), [("k", "v")]);
        for request in [robots, form, page] {
            let mut response = Response::html(request.url.clone(), "<p>x</p>");
            recording.process_response(&request, &mut response, &cx).await.unwrap();
        }
        recording.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("http://h/a") && text.ends_with("\"body\":\"<p>x</p>\"}\n"), "{text}");
    }

    #[test]
    fn the_target_of_a_redirect_is_absolute_and_shows_no_password() {
        for (status, location, target) in [
            (302, "/b?c#d", Some("http://h/b?c")),
            (301, " //other.test/x ", Some("http://other.test/x")),
            (308, "http://user:secret@h/", Some("http://***@h/")),
            (302, "http://[", None),
            (200, "/b", None),
        ] {
            let request = Request::parse("http://h/a").unwrap();
            let status = StatusCode::from_u16(status).unwrap();
            let mut response = Response::new(request.url.clone(), status, "");
            response.headers.insert(header::LOCATION, HeaderValue::from_static(location));
            let found = redirect_target(&request, &response);
            assert_eq!(found.as_ref().map(Url::as_str), target, "{location}");
        }
    }
}
