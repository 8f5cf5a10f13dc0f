//! FromWarc: answers every request from archives, and sends nothing.

mod pages;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use http::{HeaderName, HeaderValue, Method, StatusCode, Version, header};
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{
    Component, Context, CrawlerBuilder, DownloaderMiddleware, DropReason, Error, FetchError, FetchErrorKind,
    Hooks, OnRequest, Request, Response, Result, Settings, Spider, WantedBodies, log, meta, redacted,
    settings,
};
use huntsman_warc::{Answer, ArchiveError, Archives, CaptureKey, Captures, Moment};
use url::Url;

use crate::added;

use pages::Place;

pub use pages::ArchivePages;

settings! {
    /// Settings of [`FromWarc`].
    pub struct FromWarcSettings {
        /// Archives that answer every request, so that nothing is sent: WARC files, folders with such files, WACZ files, CDXJ indexes, patterns, and the
        /// same in buckets (s3://BUCKET/KEY). A request that they do not answer is dropped as not_archived.
        from_warc: Vec<String> = Vec::new();
        /// If there are several captures of a URL, the one nearest to this time answers: up to 14 digits, or RFC 3339. Without it, the last one.
        from_warc_at: Option<String> = None;
        /// The start requests are the pages of the archives themselves, as those of --all are, so that the archives are read for the places of other
        /// captures only when one of these is asked for.
        from_warc_all: bool = false;
    }
}

/// Answers every request from archives, so that a crawl follows the links inside of them. Not configured unless `from_warc` is set.
///
/// Nothing is sent and no name is resolved. The files may be of WARC 0.17 to 1.1 and of any program, with a gzip member for each record or without
/// compression. They are read once when the crawl begins, for the places of the captures (about 50 bytes of memory each); with a CDXJ index, which a
/// WACZ file has, they are not read then. Bodies are read when they are asked for, from a bucket by a request for their bytes alone. A revisit has the
/// body of its original, if that is in the archives. Requests with other methods than GET are answered if method, URL and body are those of an archived
/// request; an index does not have them. A capture would answer a second request as it did the first, so nothing is retried.
///
/// [`ArchivePages`] are start requests for every page of the archives.
///
/// A request without a capture is dropped with the reason `not_archived`: as failed if it is a start request, else as skipped, because archives end
/// somewhere. Only a robots.txt that is not archived counts as one that is not there, because no server has to be spared. Damage is logged and
/// counted, and the rest is used.
///
/// The stats `from_warc/answered` and `from_warc/missing` count requests, `from_warc/revisit_unresolved` those whose body is not in the archives, and
/// `from_warc/damaged` the places at which they are damaged.
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// # use huntsman_middleware::{Defaults, FromWarcBuilder, Warc, WarcBuilder};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("archive");
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/b>b</a><a href=http://c.test/>c</a>"), ("http://a.test/b", "text")]);
/// # let spider = || spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
/// #     out.follow_links(page);
/// #     Ok(())
/// # });
/// # let crawl = || CrawlerBuilder::new(spider()).plugin(Defaults);
/// crawl().downloader(web).warc(Warc::to(&folder)).set("scope", "host").run().await?;
/// # let nothing = ScriptedDownloader::pages([("http://other.test/", "")]);
/// let report = crawl().downloader(nothing).from_warc([&folder]).run().await?;
/// // The link to the other host was not followed by the first crawl.
/// assert_eq!((report.pages, report.stat("from_warc/missing")), (2, 1));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FromWarc {
    sources: Arc<Sources>,
    at: Option<Moment>,
    /// Greatest length of a body; 0 means no limit.
    max_bytes: u64,
    truncates: bool,
    wanted: WantedBodies,
    fails_on_loss: bool,
}

/// The archives, and the places of their captures once these are known.
#[derive(Debug)]
struct Sources {
    archives: Archives,
    captures: OnceLock<Result<Captures, String>>,
}

impl Sources {
    /// The captures; the archives are read for them at the first call.
    fn captures(&self) -> Result<&Captures, &str> {
        let read = || {
            Captures::read(&self.archives, |file, damage| {
                log::warn!("{}: {damage}; the rest of the file is used", escape(file));
            })
            .map_err(|error| escape(&error.to_string()).into_owned())
        };
        self.captures.get_or_init(read).as_ref().map_err(String::as_str)
    }

    /// The record at a place, if it is that of this request. The files may have changed since the place was noted.
    fn at(&self, place: Place, url: &Url, limit: u64) -> Option<Result<Answer, ArchiveError>> {
        let file = self.archives.files().get(place.file)?;
        let answer = Answer::read(file, place.offset, Some(place.length), limit);
        let is_of_url =
            |answer: &Answer| answer.head.target().and_then(CaptureKey::of) == Some(CaptureKey::of_url(url));
        match answer {
            Ok(answer) if !is_of_url(&answer) => None,
            answer => Some(answer),
        }
    }
}

/// What the archives have for a request.
enum Found {
    Answer(Box<Answer>),
    Error(ArchiveError),
    Missing,
}

impl FromWarc {
    /// Not configured unless `from_warc` is set.
    ///
    /// # Errors
    /// A name leads to no file, a file cannot be read or is of another format, the archives have no capture, or `from_warc_at` is no time.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: FromWarcSettings = settings.of()?;
        if own.from_warc.is_empty() {
            return Ok(None);
        }
        let at = own.from_warc_at.as_deref().map(moment).transpose()?;
        let archives = Archives::named(&own.from_warc).map_err(|error| unusable(&error))?;
        let sources = Sources { archives, captures: OnceLock::new() };
        if !own.from_warc_all && sources.captures().map_err(|error| unusable(&error))?.is_empty() {
            return Err(unusable(&"the archives have no response"));
        }
        Ok(Some(Self {
            sources: Arc::new(sources),
            at,
            max_bytes: settings.download_maxsize,
            truncates: settings.download_truncate,
            wanted: WantedBodies::of(settings),
            fails_on_loss: settings.download_fail_on_dataloss,
        }))
    }

    /// The drop of a request that the archives do not answer.
    fn missing(&self, request: &Request, cx: &Context) -> OnRequest {
        if request.method == Method::GET && request.url.path() == "/robots.txt" {
            let mut none = Response::new(request.url.clone(), StatusCode::NOT_FOUND, "");
            none.add_flag("replayed");
            return OnRequest::Respond(Box::new(none));
        }
        cx.stats().inc("from_warc/missing");
        if !request.meta_flag(meta::IS_START_REQUEST) {
            return OnRequest::Drop(DropReason::skipped("not_archived"));
        }
        let reason = DropReason::failed("not_archived");
        let Some(similar) = self.similar(request) else { return OnRequest::Drop(reason) };
        let detail = format!("the archives have {similar}");
        log::warn!("{} is not archived, but {detail}", redacted(request.url.as_str()));
        OnRequest::Drop(reason.detail(detail))
    }

    /// The same address with the other scheme, or with or without `www.`, if that is archived.
    fn similar(&self, request: &Request) -> Option<Url> {
        let url = &request.url;
        let mut secured = url.clone();
        // A URL that cannot be changed stays as it is, and was looked up before.
        let _ = secured.set_scheme(if url.scheme() == "http" { "https" } else { "http" });
        let host = url.host_str().unwrap_or_default();
        let host = host.strip_prefix("www.").map_or_else(|| format!("www.{host}"), str::to_owned);
        let renamed = [url, &secured].map(|url| {
            let mut url = url.clone();
            let _ = url.set_host(Some(&host));
            url
        });
        let captures = self.sources.captures().ok()?;
        let is_archived = |url: &Url| captures.nearest(CaptureKey::of_url(url), self.at).is_some();
        std::iter::once(secured).chain(renamed).find(is_archived)
    }

    /// What becomes of a request, of the answer of its capture.
    fn outcome(&self, request: &Request, found: Found, cx: &Context) -> OnRequest {
        match found {
            Found::Missing => self.missing(request, cx),
            Found::Answer(answer) if answer.is_cut && !self.truncates => {
                let message = format!("the archived body is larger than {} bytes", self.max_bytes);
                OnRequest::Fail(Box::new(FetchError::new(FetchErrorKind::TooLarge, message)))
            }
            Found::Answer(answer) => {
                cx.stats().inc("from_warc/answered");
                match self.response(request, *answer) {
                    Ok(response) => OnRequest::Respond(Box::new(response)),
                    Err(error) => OnRequest::Fail(Box::new(error)),
                }
            }
            Found::Error(error) if error.is_unresolved() => {
                cx.stats().inc("from_warc/revisit_unresolved");
                OnRequest::Drop(DropReason::skipped("not_archived").detail(escape(&error.to_string())))
            }
            Found::Error(error) => {
                OnRequest::Drop(DropReason::failed("damaged_archive").detail(escape(&error.to_string())))
            }
        }
    }

    /// The response as the HTTP client would have given it, or its error.
    fn response(&self, request: &Request, answer: Answer) -> Result<Response, FetchError> {
        let Answer { head, payload, is_cut, truncated } = answer;
        let status = payload.status().and_then(|status| StatusCode::from_u16(status).ok());
        let mut response = Response::new(request.url.clone(), status.unwrap_or(StatusCode::OK), "");
        for (name, value) in payload.headers() {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers.append(name, value);
            }
        }
        if payload.http().is_none()
            && let Some(value) = payload.content_type().and_then(|value| HeaderValue::try_from(value).ok())
        {
            response.headers.insert(header::CONTENT_TYPE, value);
        }
        if head.all("WARC-Protocol").any(|protocol| protocol == "h2") {
            response.version = Version::HTTP_2;
        }
        response.ip = head.get("WARC-IP-Address").and_then(|ip| ip.parse().ok());
        response.add_flag("replayed");
        match truncated.as_deref() {
            Some("time" | "disconnect") if self.fails_on_loss => {
                let message = "the archive has a part of the body alone";
                let error = FetchError::new(FetchErrorKind::Incomplete, message).after_sending();
                return Err(error.with_status(response.status));
            }
            Some("time" | "disconnect") => response.add_flag("dataloss"),
            Some(_) => response.add_flag("truncated"),
            None => {}
        }
        if is_cut {
            response.add_flag("truncated");
        }
        if self.wanted.reads(request, &response.headers) {
            response.wire_bytes = payload.body().len() as u64;
            response.body = payload.into_body().into();
        } else if response.status.is_success() {
            let kind = response.header(header::CONTENT_TYPE).unwrap_or("by its name");
            let message = format!("neither markup nor text ({kind}): not read");
            let error = FetchError::new(FetchErrorKind::ContentType, message).after_sending();
            return Err(error.with_status(response.status));
        } else {
            response.add_flag("unread");
        }
        Ok(response)
    }
}

fn moment(text: &str) -> Result<Moment> {
    Moment::parse(text).ok_or_else(|| {
        let what = "name a time of up to 14 digits, or one such as 2026-01-31T12:00:00Z";
        Error::usage(format!("from_warc_at: {}: {what}", escape(text)))
    })
}

/// The error of archives that cannot be used.
fn unusable(error: &dyn std::fmt::Display) -> Error {
    let what = "name WARC files, folders of them, WACZ files, or a pattern in quotes";
    Error::usage(format!("{}; {what}", escape(&error.to_string())))
}

impl Component for FromWarc {
    const NAME: &'static str = "from_warc";
    type Settings = FromWarcSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Before the HTTP cache and the network, behind all that change, drop, decode or record.
        hooks.downloader(887)
    }
}

impl DownloaderMiddleware for FromWarc {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        added::set_meta(request, meta::DONT_RETRY, true);
        let (sources, at) = (Arc::clone(&self.sources), self.at);
        let limit = if self.max_bytes == 0 { u64::MAX } else { self.max_bytes };
        let (url, place) = (request.url.clone(), Place::of(request));
        let key = CaptureKey::of_url(&url).with(request.method.as_str(), &request.body);
        let find = move || -> Result<Found> {
            let answer = match place.and_then(|place| sources.at(place, &url, limit)) {
                Some(answer) => answer,
                None => {
                    let captures = sources.captures().map_err(|error| unusable(&error))?;
                    let Some(capture) = captures.nearest(key, at) else { return Ok(Found::Missing) };
                    captures.answer(capture, limit)
                }
            };
            Ok(match answer {
                Ok(answer) => Found::Answer(Box::new(answer)),
                Err(error) => Found::Error(error),
            })
        };
        let found = tokio::task::spawn_blocking(find).await??;
        let known = self.sources.captures.get().and_then(|captures| captures.as_ref().ok());
        let damaged = known.map_or(0, Captures::damaged).max(pages::damaged(request));
        if damaged > 0 {
            cx.stats().max("from_warc/damaged", i64::try_from(damaged).unwrap_or(i64::MAX));
        }
        Ok(self.outcome(request, found, cx))
    }
}

/// Lets a crawl run over archives.
pub trait FromWarcBuilder {
    /// Answers every request from archives, and sends nothing: WARC files, folders, WACZ files, patterns, CDXJ indexes, and the same in buckets. The
    /// crawl needs the component [`FromWarc`], which the built-in ones have.
    #[expect(clippy::wrong_self_convention, reason = "it is named as the flag and the setting")]
    fn from_warc<P: AsRef<Path>>(self, archives: impl IntoIterator<Item = P>) -> Self;
}

impl<S: Spider> FromWarcBuilder for CrawlerBuilder<S> {
    fn from_warc<P: AsRef<Path>>(self, archives: impl IntoIterator<Item = P>) -> Self {
        let name = |path: P| path.as_ref().to_string_lossy().into_owned();
        let archives: Vec<String> = archives.into_iter().map(name).collect();
        // A slot for each address would ask for the addresses of hosts.
        self.set("from_warc", archives).set("slot_by", "host")
    }
}
