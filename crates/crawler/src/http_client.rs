//! The HTTP client: sends one request over pooled connections, and enforces limits while the response streams.
//!
//! It is built on reqwest. This module adds the resolver with the address guard, which judges exactly the addresses
//! that are connected to; the deadlines and limits; the decoders; and the classification of errors. Redirects,
//! retries, cookies, caches and politeness are handled by the layers above.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use reqwest::tls::TlsInfo;
use tokio::time::Instant;
use url::Url;

use crate::error::Result;
use crate::event::OnDownload;
use crate::fetch::{Downloader, FetchError, FetchErrorKind, Watch};
use crate::log;
use crate::meta;
use crate::request::Request;
use crate::response::{Response, Timings};
use crate::settings::{Settings, VerifyCertificates};
use crate::wanted_bodies::WantedBodies;

mod attempt;
mod body;
mod certificates;
mod client;
mod deadline;
mod decode;
mod failure;
mod guard;
mod head;
mod network;
mod old_tls;
mod proxy;
mod resolver;

use attempt::{ATTEMPT, Attempt, Handshake};
use body::BodyLimits;
use certificates::BadCertificates;
use client::{ClientConfig, Route};
use deadline::{Deadlines, Timer};
use decode::Codings;
use failure::{Failure, OUT_OF_FILES_WAIT, RequestTarget, is_out_of_files};
use guard::Guard;
use head::HeadLimits;
use network::Network;
use proxy::{Proxy, Scheme};
use resolver::Resolver;

pub use certificates::{CertificateError, CertificateFault, RefusedCertificate};
pub use decode::{DecodeLimits, Decoded, decode_body};
pub use guard::AllowedAddresses;

/// Number of proxies whose connections are kept.
const MAX_PROXIES: usize = 64;

/// Number of silent retries when the server turns out to have closed a pooled connection. The retry uses a new
/// connection, so a failure of it is reported.
const MAX_STALE: usize = 1;

/// The downloader for HTTP/1.1 and HTTP/2, directly or through proxies.
///
/// It reads these keys of a request's meta: `proxy` (URL of an http, https, socks5 or socks5h proxy),
/// `download_timeout` (seconds), `download_maxsize` and `download_warnsize` (bytes, 0 is off), `download_truncate`,
/// `download_binary` (true) and `old_tls` (true); the settings `download_binary` and `download_types` say the same for all. `resolve` entries are matched by host and port; the address guard judges their
/// addresses, too. It does not judge the address of a proxy.
///
/// It sends the headers of the request, `Host` and the framing of a body; a request without `Accept` gets `*/*`,
/// which has the same meaning.
///
/// Of the timings, `connect` includes the TLS handshake, and `tls` is not measured separately. The certificate is that
/// of the site, also through a proxy: there it is the one of the last handshake with the site.
///
/// Flags on responses: `truncated`; `partial`; `dataloss`; `unknown_encoding`; `unread` if the body was not read
/// because of its type; `download_stopped` if an observer stopped the download; and `bad_certificate`, with a
/// [`CertificateError`] in the extensions, if bad certificates are recorded and not refused.
pub struct HttpDownloader {
    network: Arc<Network>,
    config: ClientConfig,
    direct: Route,
    /// Routes through proxies, least recently used first.
    proxied: Mutex<Vec<(Box<str>, Arc<Route>)>>,
    rules: Rules,
}

/// The rules from the settings that apply to each request.
struct Rules {
    deadlines: Deadlines,
    limits: BodyLimits,
    wanted: WantedBodies,
    head: HeadLimits,
    verify: bool,
    bad_certificates: Arc<BadCertificates>,
}

impl HttpDownloader {
    /// A client configured by the settings; no connection is opened yet.
    ///
    /// # Errors
    /// A setting is not valid: `resolve`, `allow_addresses`, `tls_ca_file`, `tls_min_version`, `tls_max_version`,
    /// `bind_address`.
    pub fn new(settings: &Settings) -> Result<Self> {
        let deadlines = Deadlines::of(settings);
        let network = Arc::new(Network {
            guard: Guard::new(settings.allow_private_addresses, &settings.allow_addresses)?,
            resolver: Resolver::new(settings)?,
        });
        let config = ClientConfig::new(settings, Arc::clone(&network), &deadlines)?;
        match settings.download_verify_certificates {
            VerifyCertificates::Yes => {}
            VerifyCertificates::Record => log::warn!(
                "bad TLS certificates are recorded and not refused in this run; credentials are withheld over https"
            ),
            VerifyCertificates::No => log::warn!(
                "TLS certificates are NOT verified in this run; credentials are withheld over https"
            ),
        }
        let rules = Rules {
            deadlines,
            limits: BodyLimits { decode: DecodeLimits::of(settings), warn_size: settings.download_warnsize },
            wanted: WantedBodies::of(settings),
            head: HeadLimits::of(settings),
            verify: settings.download_verify_certificates.proves_identity(),
            bad_certificates: Arc::clone(&config.bad_certificates),
        };
        Ok(Self { network, config, direct: Route::new(None), proxied: Mutex::new(Vec::new()), rules })
    }

    /// Checks that the client may connect to the host of a URL: its name resolves, and the guard accepts at least one
    /// address. No connection is made. The check is for direct connections; with a proxy, the proxy resolves the
    /// name.
    ///
    /// # Errors
    /// The same as those of a download: the name does not resolve, or the address is refused.
    pub async fn check(&self, url: &Url) -> Result<(), FetchError> {
        let (host, port) = target_of(url)?;
        self.network.permitted(host, port).await.map(drop).map_err(|failure| unsent(&failure))
    }

    /// The route through a proxy; if there are too many routes, the least recently used one is dropped.
    fn proxied_route(&self, address: &str) -> Result<Arc<Route>, FetchError> {
        let mut proxied = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = proxied.iter().position(|(known, _)| &**known == address) {
            let entry = proxied.remove(at);
            let found = Arc::clone(&entry.1);
            proxied.push(entry);
            return Ok(found);
        }
        let made = Arc::new(Route::new(Some(Proxy::parse(address)?)));
        if proxied.len() >= MAX_PROXIES {
            proxied.remove(0);
        }
        proxied.push((address.into(), Arc::clone(&made)));
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
        self.fetch_watched(request, Watch::default()).await
    }

    async fn fetch_watched(&self, request: &Request, watch: Watch<'_>) -> Result<Response, FetchError> {
        let (host, port) = target_of(&request.url)?;
        if request.method == Method::CONNECT {
            return Err(FetchError::new(
                FetchErrorKind::InvalidRequest,
                "the method CONNECT is not supported",
            ));
        }
        let proxied = match request.meta_text(meta::PROXY) {
            None | Some("") => None,
            Some(address) => Some(self.proxied_route(address)?),
        };
        let route = proxied.as_deref().unwrap_or(&self.direct);
        if request.meta_flag(meta::OLD_TLS) {
            return self.old_tls(request, route, (host, port)).await;
        }
        let target =
            RequestTarget { host, https: request.url.scheme() == "https", proxy: route.proxy.as_deref() };
        self.exchange(request, watch, (route, port), &target).await.map_err(|error| match target.proxy {
            Some(_) => {
                let fault = failure::proxy_fault(&error, &target);
                error.with_proxy_fault(fault)
            }
            None => error,
        })
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        self.network.resolver.address(host).await
    }
}

impl HttpDownloader {
    /// Asks the server of a request which version of TLS below 1.2 it accepts.
    async fn old_tls(
        &self,
        request: &Request,
        route: &Route,
        (host, port): (&str, u16),
    ) -> Result<Response, FetchError> {
        let mut response = Response::new(request.url.clone(), StatusCode::NO_CONTENT, Bytes::new());
        if request.url.scheme() != "https" || route.proxy.is_some() {
            return Ok(response);
        }
        let start = Instant::now();
        let addresses = self.network.permitted(host, port).await.map_err(|failure| unsent(&failure))?;
        let asked =
            old_tls::accepted(host, &addresses, self.config.local_address, self.rules.deadlines.connect);
        let (version, address) = asked.await?;
        (response.tls_version, response.ip) = (version, Some(address.ip()));
        (response.timings.ttfb, response.timings.total) = (start.elapsed(), start.elapsed());
        Ok(response)
    }

    /// Sends a request by a route to a port of its target, and reads the response.
    async fn exchange(
        &self,
        request: &Request,
        watch: Watch<'_>,
        (route, port): (&Route, u16),
        target: &RequestTarget<'_>,
    ) -> Result<Response, FetchError> {
        let start = Instant::now();
        let host = target.host;
        self.network.check_host(host, port, target.proxy).map_err(|failure| unsent(&failure))?;
        let mut pooled = route.client(&self.config, host, port, target.https)?;

        let mut deadlines = self.rules.deadlines;
        if let Some(total) = request.meta_value(meta::DOWNLOAD_TIMEOUT) {
            deadlines.total = deadline::limit(total.as_secs_f64());
        }
        let sleep = std::pin::pin!(tokio::time::sleep_until(Timer::first(&deadlines, start)));
        let mut timer = Timer::new(sleep, deadlines, start);

        let mut stale = 0;
        let (mut answer, attempt) = loop {
            let attempt = match target.proxy {
                None => Attempt::new(port),
                Some(_) => Attempt::through_proxy(host, port),
            };
            let attempt = Arc::new(attempt);
            let served = pooled.served();
            let outgoing = self.rules.outgoing(request, target);
            let sending = ATTEMPT.scope(Arc::clone(&attempt), pooled.client.execute(outgoing));
            match timer.head(&attempt, Instant::now(), sending).await? {
                Ok(answer) => break (answer, attempt),
                Err(error)
                    if stale < MAX_STALE
                        && may_resend(
                            &error,
                            target,
                            &request.method,
                            attempt.reused() || pooled.served() != served,
                        ) =>
                {
                    stale += 1;
                    pooled.client = route.fresh(&self.config, target.https)?;
                }
                // The host is not at fault: the process is out of files. Free some; the connect timeout limits the
                // waiting.
                Err(error) if is_out_of_files(&error) && start.elapsed() < deadlines.connect => {
                    self.direct.forget();
                    route.forget();
                    tokio::time::sleep(OUT_OF_FILES_WAIT).await;
                    pooled = route.client(&self.config, host, port, target.https)?;
                }
                Err(error) => {
                    let failed = failure::of_head(error, target);
                    let refused = attempt.take_refused().filter(|_| failed.kind() == FetchErrorKind::Tls);
                    return Err(match refused {
                        Some(refused) => failed.with_certificate(refused),
                        None => failed,
                    });
                }
            }
        };
        if target.https {
            // It stands beside what the library knows of the connection.
            answer.extensions_mut().insert(pooled.handshake(attempt.handshake()));
        }
        let mut response = self.rules.read(request, answer, target, watch, &mut timer).await;
        pooled.serve();
        if let Ok(response) = &mut response {
            (response.timings.dns, response.timings.connect) = attempt.times();
        }
        response
    }
}

impl Rules {
    /// Converts a request to one of the HTTP library.
    fn outgoing(&self, request: &Request, target: &RequestTarget<'_>) -> reqwest::Request {
        let mut url = request.url.clone();
        // User and password are never sent.
        if !url.username().is_empty() || url.password().is_some() {
            url.set_username("").and_then(|()| url.set_password(None)).expect("http has an authority");
        }
        let mut outgoing = reqwest::Request::new(request.method.clone(), url);
        let mut headers = request.headers.clone();
        self.remove_secrets(&mut headers, target);
        *outgoing.headers_mut() = headers;
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.clone().into());
        }
        outgoing
    }

    /// Removes headers that must not be sent: the client sets the framing itself, Proxy-Authorization is only for a
    /// proxy that reads the request, and credentials must not go to a server whose identity is not proven.
    fn remove_secrets(&self, headers: &mut HeaderMap, target: &RequestTarget<'_>) {
        if headers.is_empty() {
            return;
        }
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::TRANSFER_ENCODING);
        let read_by_proxy =
            !target.https && target.proxy.is_some_and(|proxy| matches!(proxy.scheme, Scheme::Http { .. }));
        if !read_by_proxy {
            headers.remove(header::PROXY_AUTHORIZATION);
        }
        if target.https && !self.verify {
            let marked = headers.iter().filter(|(_, value)| value.is_sensitive());
            let secrets: Vec<HeaderName> = marked.map(|(name, _)| name.clone()).collect();
            for name in [header::AUTHORIZATION, header::COOKIE].into_iter().chain(secrets) {
                headers.remove(name);
            }
        }
    }

    /// Checks the headers of a response and reads its body.
    async fn read(
        &self,
        request: &Request,
        mut answer: reqwest::Response,
        target: &RequestTarget<'_>,
        watch: Watch<'_>,
        timer: &mut Timer<'_>,
    ) -> Result<Response, FetchError> {
        timer.progress();
        let ttfb = timer.started().elapsed();
        let status = answer.status();
        self.head.check(status, answer.version(), answer.headers()).map_err(|what| {
            FetchError::new(FetchErrorKind::BadResponse, what).after_sending().with_status(status)
        })?;
        let bodiless = request.method == Method::HEAD
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);

        let mut response = Response::new(request.url.clone(), status, Bytes::new());
        response.version = answer.version();
        response.headers = std::mem::take(answer.headers_mut());
        if target.proxy.is_none() {
            response.ip = answer.remote_addr().map(|address| address.ip());
            let tls = answer.extensions().get::<TlsInfo>();
            response.certificate = tls.and_then(TlsInfo::peer_certificate).map(Bytes::copy_from_slice);
        }
        if let Some(handshake) = answer.extensions().get::<Handshake>() {
            response.certificate = response.certificate.or_else(|| handshake.certificate.clone());
            response.tls_version = handshake.version;
        }
        if !self.verify
            && let Some(certificate) = &response.certificate
            && let Some(error) = self.bad_certificates.error(target.host, certificate)
        {
            response.add_flag("bad_certificate");
            response.extensions.insert(error);
        }
        let verdict = watch.headers(status, &response.headers);
        if verdict == OnDownload::Drop {
            return Err(body::stopped(status));
        }
        if verdict == OnDownload::Deliver {
            response.add_flag("download_stopped");
        } else if !bodiless && !self.wanted.reads(request, &response.headers) {
            if status.is_success() && request.meta_flag(meta::DOWNLOAD_COUNT) {
                let most = request.meta_value(meta::DOWNLOAD_MAXSIZE).unwrap_or(self.limits.decode.max_size);
                let counted = body::count(&mut answer, most, watch, timer).await?;
                take(&mut response, counted, &self.limits);
            } else if status.is_success() {
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
                request.meta_value(meta::DOWNLOAD_MAXSIZE).unwrap_or(limits.decode.max_size);
            limits.warn_size = request.meta_value(meta::DOWNLOAD_WARNSIZE).unwrap_or(limits.warn_size);
            limits.decode.truncate |= request.meta_flag(meta::DOWNLOAD_TRUNCATE);
            let codings = Codings::of(&response.headers, limits.decode.max_codings)
                .map_err(|error| error.with_status(status))?;
            let known: &[_] = match &codings {
                Codings::Known(codings) => codings,
                Codings::None => &[],
                Codings::Unknown(name) => {
                    response.add_flag("unknown_encoding");
                    log::warn!(url = %request.url, coding = %name, "unknown content coding: left as it is");
                    &[]
                }
            };
            let mut partial = body::Partial::new(status);
            match body::receive(&mut answer, known, &limits, watch, timer, &mut partial).await {
                Ok(received) => take(&mut response, received, &limits),
                Err(error) => {
                    response.body = partial.into_bytes();
                    response.timings =
                        Timings { ttfb, total: timer.started().elapsed(), ..Timings::default() };
                    return Err(error.with_partial(response));
                }
            }
        }
        drop(answer);
        response.timings = Timings { ttfb, total: timer.started().elapsed(), ..Timings::default() };
        Ok(response)
    }
}

/// Moves the received body into the response.
fn take(response: &mut Response, received: body::Received, limits: &BodyLimits) {
    let largest =
        received.decoded.as_ref().map_or(0, |decoded| decoded.body.len() as u64).max(received.wire_bytes);
    if limits.warn_size > 0 && largest > limits.warn_size {
        log::warn!(url = %response.url, bytes = largest, "large body");
    }
    response.body = received.body;
    response.wire_bytes = received.wire_bytes;
    if received.truncated {
        response.add_flag("truncated");
    }
    if received.stopped {
        response.add_flag("download_stopped");
    }
    if received.dataloss {
        response.add_flag("dataloss");
    }
    if let Some(decoded) = received.decoded {
        if decoded.partial && !received.truncated && !received.stopped {
            response.add_flag("partial");
        }
        response.decoded = Some(decoded.body);
    }
}

/// Host and port of the URL.
fn target_of(url: &Url) -> Result<(&str, u16), FetchError> {
    if !matches!(url.scheme(), "http" | "https") {
        let message = format!("the scheme {} is not fetched", url.scheme());
        return Err(FetchError::new(FetchErrorKind::Scheme, message));
    }
    match (url.host_str().filter(|host| !host.is_empty()), url.port_or_known_default()) {
        (Some(host), Some(port)) => Ok((host, port)),
        _ => Err(FetchError::new(FetchErrorKind::InvalidRequest, "the address has no host")),
    }
}

/// The error of a request that failed before anything was sent.
fn unsent(failure: &Failure) -> FetchError {
    FetchError::new(failure.kind(), failure.to_string())
}

/// Whether a request may safely be sent again: either its connection had been used before and was lost, probably
/// because the server closed it while it was idle, or the server said that it did not process the request (RFC 9110,
/// 9.2.2; RFC 9113, 8.7).
fn may_resend(
    error: &reqwest::Error,
    target: &RequestTarget<'_>,
    method: &Method,
    may_be_reused: bool,
) -> bool {
    let verdict = failure::classify(error, target);
    verdict.unprocessed || verdict.lost && method.is_idempotent() && may_be_reused
}
