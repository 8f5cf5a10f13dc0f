//! The HTTP client: one request over pooled connections, with limits that hold while the answer streams.
//!
//! It stands on hyper with a connector of our own, because three promises need it: the address guard judges the
//! very address that is connected to, interim answers are counted, and nothing but the request's headers is sent.
//! No redirects, retries, cookies, caches or politeness here: those are above.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, Version, header};
use http_body_util::Full;
use huntsman_html::PageKind;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::Instant;
use url::{Position, Url};

use crate::error::{Error, Result};
use crate::fetch::{Downloader, FetchError, FetchErrorKind};
use crate::request::Request;
use crate::response::{Response, Timings};
use crate::settings::{Settings, seconds};

mod attempt;
mod body;
mod connector;
mod deadline;
mod decode;
mod failure;
mod guard;
mod open;
mod proxy;
mod resolver;
mod tls;
mod wire;

use attempt::{ATTEMPT, Attempt};
use body::BodyLimits;
use connector::{Connector, Network};
use deadline::{Deadlines, Timer};
use decode::Codings;
use guard::Guard;
use open::Open;
use proxy::{Proxy, Scheme};
use resolver::Resolver;
use tls::Tls;
use wire::Peer;

pub use decode::{DecodeLimits, Decoded, decode_body};

type Inner = Client<Connector, Full<Bytes>>;

/// Connections that stay open without work, per host.
const MOST_IDLE: usize = 8;
/// How long they stay so: longer than the gap between two requests of a polite crawl, within these bounds. Every
/// host of a broad crawl leaves one behind, so longer is not better.
const SHORTEST_IDLE: Duration = Duration::from_secs(5);
const LONGEST_IDLE: Duration = Duration::from_secs(30);
/// Proxies whose connections are kept.
const MOST_PROXIES: usize = 64;
/// Silent retries when pooled connections turn out to have been closed by the server.
const MOST_STALE: usize = MOST_IDLE;

/// The downloader that speaks HTTP/1.1 and HTTP/2, directly or through proxies.
///
/// It reads of a request's meta: `proxy` (URL of an http, https, socks5 or socks5h proxy), `download_timeout`
/// (seconds), `download_maxsize` and `download_warnsize` (bytes, 0 is off), `download_truncate` and
/// `download_binary` (true). `resolve` entries are honoured by host and port; the address guard judges them too.
/// A proxy's own address is not judged.
///
/// Flags on responses: `truncated`, `partial`, `dataloss`, `unknown_encoding`, and `unread` for a body that was
/// left alone because of its type.
pub struct HttpDownloader {
    network: Arc<Network>,
    direct: Inner,
    /// Least recently used first.
    proxied: Mutex<Vec<(Box<str>, Proxied)>>,
    rules: Rules,
}

/// A client that goes through one proxy.
#[derive(Clone)]
struct Proxied {
    client: Inner,
    proxy: Arc<Proxy>,
}

/// What the settings say about each request.
struct Rules {
    deadlines: Deadlines,
    limits: BodyLimits,
    binary: bool,
    header_lines: usize,
    header_bytes: usize,
    verify: bool,
    idle: Duration,
    /// Names of headers that are not sent over https without a verified certificate.
    secrets: Vec<HeaderName>,
}

impl HttpDownloader {
    /// A client by the settings; nothing is opened yet.
    ///
    /// # Errors
    /// A setting cannot be understood: `resolve`, `allow_addresses`, `tls_min_version`, `bind_address`.
    pub fn new(settings: &Settings) -> Result<Self> {
        let local_address = match settings.bind_address.as_deref() {
            None => None,
            Some(text) => Some(text.trim().parse().map_err(|_| {
                let shown = text.escape_debug();
                Error::usage(format!("bind_address: \"{shown}\" is no IP address"))
            })?),
        };
        let deadlines = Deadlines::of(settings);
        let network = Arc::new(Network {
            guard: Guard::new(settings.allow_private_addresses, &settings.allow_addresses)?,
            resolver: Resolver::new(settings)?,
            tls: Tls::new(settings)?,
            connect_timeout: deadlines.connect,
            local_address,
            open: Open::default(),
        });
        if !settings.download_verify_certificates {
            tracing::warn!(
                "TLS certificates are NOT verified in this run; credentials are withheld over https"
            );
        }
        let rules = Rules {
            deadlines,
            limits: BodyLimits {
                decode: DecodeLimits::of(settings),
                warn_size: settings.download_warnsize,
                fail_on_loss: settings.download_fail_on_dataloss,
            },
            binary: settings.download_binary,
            header_lines: settings.max_header_lines,
            header_bytes: settings.max_header_bytes,
            verify: settings.download_verify_certificates,
            idle: (seconds(settings.download_delay) * 3).clamp(SHORTEST_IDLE, LONGEST_IDLE),
            secrets: secrets(settings),
        };
        let direct = rules.client(Connector { network: Arc::clone(&network), proxy: None });
        Ok(Self { network, direct, proxied: Mutex::new(Vec::new()), rules })
    }

    /// Whether the address of a URL may be connected to: it resolves, and the guard lets at least one address pass.
    /// Nothing is connected to. Without a proxy in mind: through one, the proxy resolves the name.
    ///
    /// # Errors
    /// As a download would fail: the name does not resolve, or the address is refused.
    pub async fn check(&self, url: &Url) -> Result<(), FetchError> {
        let uri = uri_of(url)?;
        let connector = Connector { network: Arc::clone(&self.network), proxy: None };
        match connector.check(&uri).await {
            Ok(()) => Ok(()),
            Err(failure) => Err(FetchError::new(failure.kind(), failure.to_string())),
        }
    }

    /// The client for a proxy; the least recently used one is forgotten when there are too many.
    fn through(&self, address: &str) -> Result<Proxied, FetchError> {
        let mut proxied = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = proxied.iter().position(|(known, _)| &**known == address) {
            let entry = proxied.remove(at);
            let found = entry.1.clone();
            proxied.push(entry);
            return Ok(found);
        }
        let proxy = Arc::new(Proxy::parse(address)?);
        let connector = Connector { network: Arc::clone(&self.network), proxy: Some(Arc::clone(&proxy)) };
        let made = Proxied { client: self.rules.client(connector), proxy };
        if proxied.len() >= MOST_PROXIES {
            proxied.remove(0);
        }
        proxied.push((address.into(), made.clone()));
        Ok(made)
    }
}

impl fmt::Debug for HttpDownloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpDownloader").field("network", &self.network).finish_non_exhaustive()
    }
}

impl Downloader for HttpDownloader {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        let start = Instant::now();
        let uri = uri_of(&request.url)?;
        if request.method == Method::CONNECT {
            return Err(FetchError::new(FetchErrorKind::InvalidRequest, "CONNECT is not for crawlers"));
        }
        let proxied = match request.meta_str("proxy") {
            None | Some("") => None,
            Some(address) => Some(self.through(address)?),
        };
        let client = proxied.as_ref().map_or(&self.direct, |p| &p.client);
        let proxy = proxied.as_ref().map(|p| &*p.proxy);

        let mut deadlines = self.rules.deadlines;
        if let Some(total) = request.meta_f64("download_timeout") {
            deadlines.total = deadline::limit(total);
        }
        let sleep = std::pin::pin!(tokio::time::sleep_until(Timer::first(&deadlines, start)));
        let mut timer = Timer::new(sleep, deadlines, start);

        let mut stale = 0;
        let answer = loop {
            let attempt = Arc::new(Attempt::default());
            let mut outgoing = http::Request::new(Full::new(request.body.clone()));
            *outgoing.method_mut() = request.method.clone();
            *outgoing.uri_mut() = uri.clone();
            *outgoing.headers_mut() = request.headers.clone();
            self.rules.cleanse(outgoing.headers_mut(), &uri, proxy);
            let noted = Arc::clone(&attempt);
            hyper::ext::on_informational(&mut outgoing, move |_| noted.interim());
            let sending = ATTEMPT.scope(Arc::clone(&attempt), client.request(outgoing));
            match timer.head(&attempt, Instant::now(), sending).await? {
                Ok(answer) => break answer,
                Err(error) if stale < MOST_STALE && may_resend(&error, &request.method) => stale += 1,
                Err(error) => return Err(of_head(error)),
            }
        };
        self.rules.read(request, answer, &mut timer).await
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        self.network.resolver.address(host).await
    }
}

impl Rules {
    fn client(&self, connector: Connector) -> Inner {
        /// What hyper insists on.
        const LEAST_BUFFER: usize = 8 << 10;
        /// Bytes under way that a stream and a connection may have: they count against what a refused body costs.
        const STREAM_WINDOW: u32 = 512 << 10;
        const CONNECTION_WINDOW: u32 = 2 << 20;
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_max_headers(self.header_lines.max(1))
            .http1_max_buf_size(self.header_bytes.max(LEAST_BUFFER))
            .http2_max_header_list_size(u32::try_from(self.header_bytes).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(connector)
    }

    /// Takes out what must not be sent: framing is the client's, Proxy-Authorization is for a proxy that reads
    /// the request, and secrets are not for servers that could be anybody.
    fn cleanse(&self, headers: &mut HeaderMap, uri: &Uri, proxy: Option<&Proxy>) {
        let https = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        if !headers.is_empty() {
            headers.remove(header::CONTENT_LENGTH);
            headers.remove(header::TRANSFER_ENCODING);
        }
        match proxy {
            Some(proxy) if !https && matches!(proxy.scheme, Scheme::Http { .. }) => {
                if let (Some(value), false) =
                    (proxy.authorization(), headers.contains_key(header::PROXY_AUTHORIZATION))
                {
                    headers.insert(header::PROXY_AUTHORIZATION, value);
                }
            }
            _ => {
                headers.remove(header::PROXY_AUTHORIZATION);
            }
        }
        if https && !self.verify {
            for name in &self.secrets {
                headers.remove(name);
            }
        }
    }

    /// Checks the headers of an answer and reads its body.
    async fn read(
        &self,
        request: &Request,
        answer: http::Response<Incoming>,
        timer: &mut Timer<'_>,
    ) -> Result<Response, FetchError> {
        timer.progress();
        let ttfb = timer.started().elapsed();
        let (mut parts, mut incoming) = answer.into_parts();
        let status = parts.status;
        let peer = parts.extensions.remove::<Arc<Peer>>();
        let times = peer.as_ref().map(|peer| peer.answered()).unwrap_or_default();
        self.check_head(status, parts.version, &parts.headers).map_err(|what| {
            FetchError::new(FetchErrorKind::BadResponse, what).after_sending().with_status(status)
        })?;
        let bodiless = request.method == Method::HEAD
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);

        let mut response = Response::new(request.url.clone(), status, Bytes::new());
        response.version = parts.version;
        response.headers = parts.headers;
        if let Some(peer) = &peer {
            response.ip = peer.ip;
            response.certificate = peer.certificate.clone();
        }
        let mut whole = true;
        if !bodiless && self.leaves_unread(request, &response.headers) {
            whole = false;
            if status.is_success() {
                let shown = response.header(header::CONTENT_TYPE).unwrap_or("by its name").to_owned();
                let message = format!("neither markup nor text ({shown}): not read");
                return Err(FetchError::new(FetchErrorKind::ContentType, message)
                    .after_sending()
                    .with_status(status));
            }
            response.add_flag("unread");
        } else if !bodiless {
            let mut limits = self.limits;
            limits.decode.max_size =
                meta_bytes(request, "download_maxsize").unwrap_or(limits.decode.max_size);
            limits.warn_size = meta_bytes(request, "download_warnsize").unwrap_or(limits.warn_size);
            limits.decode.truncate |= request.meta_flag("download_truncate");
            let codings = Codings::of(&response.headers, limits.decode.max_codings)
                .map_err(|error| error.with_status(status))?;
            let known: &[_] = match &codings {
                Codings::Known(codings) => codings,
                Codings::None => &[],
                Codings::Unknown(name) => {
                    response.add_flag("unknown_encoding");
                    tracing::warn!(url = %request.url, coding = %name, "unknown content coding: left as it is");
                    &[]
                }
            };
            let received =
                body::receive(&mut incoming, known, &limits, timer, peer.as_deref(), status).await?;
            whole = !received.truncated && !received.dataloss;
            take(&mut response, received, &limits);
        }
        drop(incoming);
        if whole && let Some(peer) = &peer {
            peer.finished();
        }
        response.timings = Timings {
            dns: times.dns,
            connect: times.connect,
            tls: times.tls,
            ttfb,
            total: timer.started().elapsed(),
        };
        Ok(response)
    }

    /// What the HTTP library lets pass and we do not.
    fn check_head(&self, status: StatusCode, version: Version, headers: &HeaderMap) -> Result<(), String> {
        if !(200..=599).contains(&status.as_u16()) {
            return Err(format!("status {} is no final answer", status.as_u16()));
        }
        if headers.len() > self.header_lines {
            return Err(format!("{} header lines, more than {}", headers.len(), self.header_lines));
        }
        // The library's limit is that of its buffer, and loose by one read.
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if bytes > self.header_bytes {
            return Err(format!("{bytes} bytes of headers, more than {}", self.header_bytes));
        }
        if version < Version::HTTP_2
            && headers.contains_key(header::CONTENT_LENGTH)
            && headers.contains_key(header::TRANSFER_ENCODING)
        {
            return Err("both Content-Length and Transfer-Encoding".to_owned());
        }
        Ok(())
    }

    /// Whether the headers say that the body is neither markup nor text, and nobody asked for such.
    fn leaves_unread(&self, request: &Request, headers: &HeaderMap) -> bool {
        if self.binary || request.meta_flag("download_binary") {
            return false;
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let kind = huntsman_html::kind_from_headers(
            text(header::CONTENT_TYPE),
            text(header::CONTENT_DISPOSITION),
            request.url.path(),
        );
        kind == Some(PageKind::Binary)
    }
}

/// Puts a body that was read into the response.
fn take(response: &mut Response, received: body::Received, limits: &BodyLimits) {
    let largest =
        received.decoded.as_ref().map_or(0, |decoded| decoded.body.len() as u64).max(received.wire_bytes);
    if limits.warn_size > 0 && largest > limits.warn_size {
        tracing::warn!(url = %response.url, bytes = largest, "large body");
    }
    response.body = received.body;
    response.wire_bytes = received.wire_bytes;
    if received.truncated {
        response.add_flag("truncated");
    }
    if received.dataloss {
        response.add_flag("dataloss");
    }
    if let Some(decoded) = received.decoded {
        if decoded.partial && !received.truncated {
            response.add_flag("partial");
        }
        response.decoded = Some(decoded.body);
    }
}

/// A size of the meta; absent, negative or of another type is none.
fn meta_bytes(request: &Request, key: &str) -> Option<u64> {
    if request.meta.is_empty() { None } else { request.meta.get(key)?.as_u64() }
}

/// The names of the headers that carry credentials: the standard ones and those of `secret_headers`
/// (`origin=Name: value`).
fn secrets(settings: &Settings) -> Vec<HeaderName> {
    let named = settings.secret_headers.iter().filter_map(|entry| {
        let (name, _) = entry.split_once('=')?.1.split_once(':')?;
        HeaderName::try_from(name.trim()).ok()
    });
    [header::AUTHORIZATION, header::COOKIE].into_iter().chain(named).collect()
}

/// The address to ask for: without fragment and without user and password, which never leave this machine.
fn uri_of(url: &Url) -> Result<Uri, FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        let message = format!("the scheme {} is not fetched", url.scheme());
        return Err(FetchError::new(FetchErrorKind::Scheme, message));
    }
    let uri = if url.username().is_empty() && url.password().is_none() {
        Uri::try_from(&url[..Position::AfterQuery])
    } else {
        let (authority, path) = (
            &url[Position::BeforeHost..Position::AfterPort],
            &url[Position::BeforePath..Position::AfterQuery],
        );
        Uri::try_from(format!("{}://{authority}{path}", url.scheme()))
    };
    uri.map_err(|error| {
        FetchError::new(FetchErrorKind::InvalidRequest, format!("the address cannot be sent: {error}"))
    })
}

/// Whether a request may be sent again without anybody noticing: the connection had been closed while it idled, or
/// the server said that it did not look at the request (RFC 9110, 9.2.2; RFC 9113, 8.7).
fn may_resend(error: &ClientError, method: &Method) -> bool {
    let verdict = failure::judge(error);
    verdict.unprocessed
        || verdict.lost && method.is_idempotent() && peer_of(error).is_some_and(|p| p.was_stale())
}

fn peer_of(error: &ClientError) -> Option<Arc<Peer>> {
    let mut extensions = http::Extensions::new();
    error.connect_info()?.get_extras(&mut extensions);
    extensions.remove()
}

/// The error of a request that got no headers.
fn of_head(error: ClientError) -> FetchError {
    let kind = failure::judge(&error).kind;
    let message = failure::describe(&error);
    let sent = !error.is_connect();
    let failed = FetchError::new(kind, message).with_source(error);
    if sent { failed.after_sending() } else { failed }
}
