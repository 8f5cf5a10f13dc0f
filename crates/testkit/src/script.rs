//! A downloader without a network: scripted responses per URL, on the runtime's clock.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, Version};
use huntsman_crawler::{
    CertificateFault, Downloader, FetchError, FetchErrorKind, OnDownload, ProxyFault, RefusedCertificate,
    Request, Response, Timings, Watch,
};
use tokio::time::Instant;
use url::{Position, Url};

use crate::answer::Message;
use crate::record::SiteRequest;
use crate::site::SiteBuilder;

/// The scripted outcome of one fetch.
#[derive(Clone, Debug)]
pub struct Reply {
    end: End,
    latency: Option<Duration>,
    /// The certificate of the server in DER, and why it is refused.
    certificate: Option<(Bytes, Option<CertificateFault>)>,
    tls_version: Option<&'static str>,
    version: Version,
}

#[derive(Clone, Debug)]
enum End {
    Response {
        status: StatusCode,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
        flags: Vec<&'static str>,
    },
    Error {
        kind: FetchErrorKind,
        sent: bool,
        fault: Option<ProxyFault>,
    },
    Never,
}

impl Reply {
    /// A response with a status and an empty body.
    ///
    /// # Panics
    /// If the status is not within 100-999.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a scripted status is within 100-999");
        Self::of(End::Response { status, headers: Vec::new(), body: Bytes::new(), flags: Vec::new() })
    }

    /// An HTML page with status 200.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/html; charset=utf-8").body(body)
    }

    /// Plain text with status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/plain; charset=utf-8").body(body)
    }

    /// A redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::status(status).header("location", location)
    }

    /// A failure. Kinds that occur after the request was sent (resets, timeouts of the response, broken responses)
    /// are marked as such.
    pub fn error(kind: FetchErrorKind) -> Self {
        use FetchErrorKind as K;
        let before = matches!(
            kind,
            K::InvalidRequest
                | K::Scheme
                | K::AddressRefused
                | K::Dns
                | K::Connect
                | K::Tls
                | K::ConnectTimeout
        );
        Self::of(End::Error { kind, sent: !before, fault: None })
    }

    /// Says how far the proxy of the request is at fault for a failure, as the HTTP client does.
    pub fn proxy_fault(mut self, of_proxy: ProxyFault) -> Self {
        if let End::Error { fault, .. } = &mut self.end {
            *fault = Some(of_proxy);
        }
        self
    }

    /// A fetch that never completes; it ends only when its caller drops it.
    pub fn never() -> Self {
        Self::of(End::Never)
    }

    fn of(end: End) -> Self {
        Self { end, latency: None, certificate: None, tls_version: None, version: Version::HTTP_11 }
    }

    /// Sets the certificate of the server, in DER.
    pub fn certificate(mut self, certificate: impl Into<Bytes>) -> Self {
        self.certificate = Some((certificate.into(), None));
        self
    }

    /// Sets the version of TLS of a response; TLS 1.3 without it, if there is a certificate.
    pub fn tls_version(mut self, version: &'static str) -> Self {
        self.tls_version = Some(version);
        self
    }

    /// Sets the version of HTTP of a response; HTTP/1.1 without it.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// A connection that is refused because of the certificate of the server, which is in DER.
    pub fn refused(certificate: impl Into<Bytes>, fault: CertificateFault) -> Self {
        let certificate = Some((certificate.into(), Some(fault)));
        Self { certificate, ..Self::error(FetchErrorKind::Tls) }
    }

    /// Adds a header to a response.
    ///
    /// # Panics
    /// If name or value is not allowed in HTTP.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let End::Response { headers, .. } = &mut self.end {
            let name = name.parse().expect("a scripted header has a valid name");
            headers.push((name, value.parse().expect("a scripted header has a valid value")));
        }
        self
    }

    /// Sets the body of a response.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let End::Response { body, .. } = &mut self.end {
            *body = bytes.into();
        }
        self
    }

    /// Adds a flag (`cached`, `truncated`, ...) to a response.
    pub fn flag(mut self, flag: &'static str) -> Self {
        if let End::Response { flags, .. } = &mut self.end {
            flags.push(flag);
        }
        self
    }

    /// Sets how long this fetch takes, instead of the latency of the downloader.
    pub fn after(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }
}

/// A recorded fetch.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The request as the downloader received it.
    pub request: Request,
    /// When it started, on the runtime's clock, since the downloader was created.
    pub started: Duration,
    /// When it ended or was dropped by its caller; `None` while it runs.
    pub ended: Option<Duration>,
    /// Whether its caller dropped it (a timeout above the downloader, or a stop).
    pub given_up: bool,
}

impl Fetched {
    /// The URL without its fragment, as it would be sent.
    pub fn url(&self) -> &str {
        &self.request.url[..Position::AfterQuery]
    }

    fn host(&self) -> &str {
        self.request.url.host_str().unwrap_or_default()
    }
}

type Respond = dyn Fn(&Request, u64) -> Reply + Send + Sync;

/// A [`Downloader`] that returns scripted replies and records its requests.
///
/// Clones share script and record: give one to the crawler and keep one. If a URL has several replies, they are
/// returned in order and the last one is repeated; a URL without replies gets 404. Latency runs on tokio's clock, so
/// in a test with a paused clock hours of delays and back-off pass at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use huntsman_crawler::{Downloader, Request};
/// use huntsman_testkit::{Reply, ScriptedDownloader};
///
/// let web = ScriptedDownloader::pages([("http://a.test/", "<a href='/b'>b</a>")])
///     .respond("http://a.test/b", Reply::status(503).header("retry-after", "5"))
///     .then(Reply::html("<p>back</p>"))
///     .latency(Duration::from_millis(200));
/// let request = Request::parse("http://a.test/b").unwrap();
/// assert_eq!(web.fetch(&request).await.unwrap().status, 503);
/// assert_eq!(web.fetch(&request).await.unwrap().status, 200);
/// assert_eq!(web.requests()[1].started, Duration::from_millis(200));
/// # }
/// ```
#[derive(Clone)]
pub struct ScriptedDownloader {
    shared: Arc<Shared>,
}

struct Shared {
    origin: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replies: HashMap<String, Vec<Reply>>,
    /// Number of fetches of each URL.
    counts: HashMap<String, u64>,
    last: Option<String>,
    latency: Duration,
    fallback: Option<Arc<Respond>>,
    addresses: HashMap<String, IpAddr>,
    fetched: Vec<Fetched>,
    live: HashMap<String, usize>,
    peaks: HashMap<String, usize>,
}

impl fmt::Debug for ScriptedDownloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("ScriptedDownloader")
            .field("urls", &state.replies.len())
            .field("fetched", &state.fetched.len())
            .finish_non_exhaustive()
    }
}

impl Default for ScriptedDownloader {
    fn default() -> Self {
        Self::new()
    }
}

impl ScriptedDownloader {
    /// A downloader without pages.
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared { origin: Instant::now(), state: Mutex::default() }) }
    }

    /// A downloader with HTML pages.
    ///
    /// # Panics
    /// If a URL is not absolute.
    pub fn pages<U: AsRef<str>, B: Into<Bytes>>(pages: impl IntoIterator<Item = (U, B)>) -> Self {
        let web = Self::new();
        pages.into_iter().fold(web, |web, (url, html)| web.respond(url.as_ref(), Reply::html(html)))
    }

    /// Serves a generated or hand-made site under its host names without a network; ports are ignored.
    ///
    /// Raw responses cannot be represented here and become [`FetchErrorKind::BadResponse`].
    pub fn site(site: SiteBuilder) -> Self {
        Self::new().otherwise(move |request, nth| reply_of(&site, request, nth))
    }

    /// Adds a reply for a URL. Several replies for one URL are returned in order, and the last one is repeated.
    ///
    /// # Panics
    /// If the URL is not absolute.
    pub fn respond(self, url: &str, reply: Reply) -> Self {
        let key = key(&Url::parse(url).unwrap_or_else(|cause| panic!("{url} is no absolute URL: {cause}")));
        let mut state = self.state();
        state.replies.entry(key.clone()).or_default().push(reply);
        state.last = Some(key);
        drop(state);
        self
    }

    /// Adds the next reply for the URL that was named last.
    ///
    /// # Panics
    /// If no URL was named before.
    pub fn then(self, reply: Reply) -> Self {
        let mut state = self.state();
        let last = state.last.clone().expect("`then` follows a `respond`");
        state.replies.entry(last).or_default().push(reply);
        drop(state);
        self
    }

    /// Sets the reply for all other URLs (default 404): a function of the request and of the number of earlier
    /// fetches of its URL.
    pub fn otherwise(self, answer: impl Fn(&Request, u64) -> Reply + Send + Sync + 'static) -> Self {
        self.state().fallback = Some(Arc::new(answer));
        self
    }

    /// Sets the latency of all fetches whose reply has no time of its own (default: none).
    pub fn latency(self, latency: Duration) -> Self {
        self.state().latency = latency;
        self
    }

    /// Sets the address that a host name resolves to, for slots by address.
    pub fn resolve(self, host: &str, address: IpAddr) -> Self {
        self.state().addresses.insert(host.to_owned(), address);
        self
    }

    /// All fetches so far, in the order in which they started.
    pub fn requests(&self) -> Vec<Fetched> {
        self.state().fetched.clone()
    }

    /// The URLs of all fetches so far, without fragments, in the order in which they started.
    pub fn urls(&self) -> Vec<String> {
        self.state().fetched.iter().map(|fetched| fetched.url().to_owned()).collect()
    }

    /// Number of fetches of a URL.
    pub fn count(&self, url: &str) -> usize {
        self.state().fetched.iter().filter(|fetched| fetched.url() == url).count()
    }

    /// When the fetches on a host started, since the downloader was created.
    pub fn starts(&self, host: &str) -> Vec<Duration> {
        let state = self.state();
        state.fetched.iter().filter(|fetched| fetched.host() == host).map(|fetched| fetched.started).collect()
    }

    /// Smallest time between the starts of two fetches on a host; `None` if there were fewer than two.
    pub fn smallest_gap(&self, host: &str) -> Option<Duration> {
        self.starts(host).windows(2).map(|pair| pair[1] - pair[0]).min()
    }

    /// Largest number of concurrent fetches on a host.
    pub fn peak(&self, host: &str) -> usize {
        self.state().peaks.get(host).copied().unwrap_or(0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a fetch and chooses its reply.
    fn begin(&self, request: &Request) -> (Reply, Duration, Running) {
        let started = self.shared.origin.elapsed();
        let url = key(&request.url);
        let mut guard = self.state();
        let state = &mut *guard;
        let asked = state.counts.entry(url.clone()).or_default();
        let nth = *asked;
        *asked += 1;
        let index = state.fetched.len();
        state.fetched.push(Fetched { request: request.clone(), started, ended: None, given_up: false });
        let host = state.fetched[index].host().to_owned();
        let live = state.live.entry(host.clone()).or_default();
        *live += 1;
        let peak = state.peaks.entry(host.clone()).or_default();
        *peak = (*live).max(*peak);
        let scripted = state.replies.get(&url).map(|replies| {
            let at = usize::try_from(nth).unwrap_or(usize::MAX).min(replies.len() - 1);
            replies[at].clone()
        });
        let (fallback, latency) = (state.fallback.clone(), state.latency);
        drop(guard);
        let running = Running { web: self.clone(), index, host, complete: false };
        // This is called without the lock, because the function may read the record.
        let reply = scripted.unwrap_or_else(|| match fallback {
            Some(answer) => answer(request, nth),
            None => Reply::status(404),
        });
        let latency = reply.latency.unwrap_or(latency);
        (reply, latency, running)
    }
}

/// A running fetch; its end is recorded when this is dropped, so also if the caller drops the fetch.
struct Running {
    web: ScriptedDownloader,
    index: usize,
    host: String,
    complete: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = self.web.shared.origin.elapsed();
        let mut state = self.web.state();
        let fetched = &mut state.fetched[self.index];
        fetched.ended = Some(now);
        fetched.given_up = !self.complete;
        if let Some(live) = state.live.get_mut(&self.host) {
            *live -= 1;
        }
    }
}

impl Downloader for ScriptedDownloader {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.fetch_watched(request, Watch::default()).await
    }

    async fn fetch_watched(&self, request: &Request, watch: Watch<'_>) -> Result<Response, FetchError> {
        let (reply, latency, mut running) = self.begin(request);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let end = match reply.end {
            End::Never => std::future::pending().await,
            End::Error { kind, sent, fault } => {
                let error = FetchError::new(kind, format!("scripted {} of {}", kind.name(), request.url));
                let error = match fault {
                    Some(fault) => error.with_proxy_fault(fault),
                    None => error,
                };
                let error = match reply.certificate {
                    Some((certificate, Some(fault))) => {
                        error.with_certificate(RefusedCertificate { fault, certificate })
                    }
                    _ => error,
                };
                Err(if sent { error.after_sending() } else { error })
            }
            End::Response { status, headers, body, flags } => {
                let mut response = Response::new(request.url.clone(), status, body);
                response.version = reply.version;
                for (name, value) in headers {
                    response.headers.append(name, value);
                }
                flags.into_iter().for_each(|flag| response.add_flag(flag));
                response.certificate = reply.certificate.map(|(certificate, _)| certificate);
                response.tls_version = reply.tls_version.or(response.certificate.as_ref().map(|_| "TLS 1.3"));
                response.timings = Timings { ttfb: latency, total: latency, ..Timings::default() };
                response.ip = self.state().addresses.get(&running.host).copied();
                watched(response, watch)
            }
        };
        running.complete = true;
        end
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        self.state().addresses.get(host).copied().or_else(|| host.parse().ok())
    }
}

/// A scripted response arrives in two parts: the headers, and the whole body.
fn watched(mut response: Response, watch: Watch<'_>) -> Result<Response, FetchError> {
    let mut verdict = watch.headers(response.status, &response.headers);
    if verdict == OnDownload::Deliver {
        response.body = Bytes::new();
    } else if verdict == OnDownload::Continue && !response.body.is_empty() {
        verdict = watch.bytes(&response.body);
    }
    match verdict {
        OnDownload::Continue => {}
        OnDownload::Deliver => response.add_flag("download_stopped"),
        OnDownload::Drop => {
            let error = FetchError::new(FetchErrorKind::Stopped, "an observer stopped the download");
            return Err(error.after_sending().with_status(response.status));
        }
    }
    Ok(response)
}

/// The form in which URLs are compared: without the fragment.
fn key(url: &Url) -> String {
    url[..Position::AfterQuery].to_owned()
}

fn reply_of(site: &SiteBuilder, request: &Request, nth: u64) -> Reply {
    let asked = SiteRequest {
        host: request.url.host_str().unwrap_or_default().to_owned(),
        method: request.method.clone(),
        target: request.url[Position::BeforePath..Position::AfterQuery].to_owned(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        connection: 0,
        nth,
    };
    let answer = site.answer_to(&asked);
    let Some(Message { status, headers, body }) = answer.message() else {
        return Reply::error(FetchErrorKind::BadResponse);
    };
    let Ok(status) = StatusCode::from_u16(status) else { return Reply::error(FetchErrorKind::BadResponse) };
    let body = if request.method == http::Method::HEAD { Bytes::new() } else { body.clone() };
    let parsed: Option<Vec<_>> = headers
        .iter()
        .map(|(name, value)| Some((name.parse().ok()?, HeaderValue::from_bytes(value).ok()?)))
        .collect();
    let Some(headers) = parsed else { return Reply::error(FetchErrorKind::BadResponse) };
    let mut reply = Reply::of(End::Response { status, headers, body, flags: Vec::new() });
    reply.latency = Some(answer.latency()).filter(|latency| !latency.is_zero());
    reply
}
