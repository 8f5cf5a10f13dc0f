//! The downloader trait and its errors: a downloader turns one request into one response or one error.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use http::{HeaderMap, StatusCode};

use crate::context::Context;
use crate::drop::{Cause, DropReason, DropState};
use crate::error::Error;
use crate::event::OnDownload;
use crate::http_client::RefusedCertificate;
use crate::request::Request;
use crate::response::Response;

/// Sends one request and reads one response. Redirects, retries, cookies and politeness are handled by the layers
/// above.
pub trait Downloader: Send + Sync + 'static {
    /// Fetches a request. The body of the response is as received, and limits are enforced while it streams.
    fn fetch(&self, request: &Request) -> impl Future<Output = Result<Response, FetchError>> + Send;

    /// Like [`Downloader::fetch`], but asks `watch` after the headers and after each part of the body whether to
    /// continue. A downloader without its own implementation is never stopped in the middle; a downloader that wraps
    /// another one passes the watch on.
    fn fetch_watched(
        &self,
        request: &Request,
        watch: Watch<'_>,
    ) -> impl Future<Output = Result<Response, FetchError>> + Send {
        let _ = watch;
        self.fetch(request)
    }

    /// The address that a host name resolves to, for slots by address; `None` if the downloader does not know it.
    fn address(&self, host: &str) -> impl Future<Output = Option<IpAddr>> + Send {
        let _ = host;
        async { None }
    }
}

/// Lets the observers of the crawl follow a download while it is received; there may be none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch<'a>(Option<(&'a Context, &'a Request)>);

impl<'a> Watch<'a> {
    pub(crate) fn new(cx: &'a Context, request: &'a Request) -> Self {
        Self(Some((cx, request)))
    }

    /// Reports that status and headers were received. Returns whether to read the body.
    pub fn headers(&self, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        match self.0 {
            Some((cx, request)) => {
                cx.decide_download(|observer| observer.on_headers(request, status, headers))
            }
            None => OnDownload::Continue,
        }
    }

    /// Reports a received part of the body, as on the wire. Returns whether to continue reading.
    pub fn bytes(&self, bytes: &[u8]) -> OnDownload {
        match self.0 {
            Some((cx, request)) => cx.decide_download(|observer| observer.on_bytes(request, bytes)),
            None => OnDownload::Continue,
        }
    }
}

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Object-safe version of [`Downloader`].
pub(crate) trait DynDownloader: Send + Sync {
    fn fetch<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, FetchError>>;
    fn fetch_watched<'a>(
        &'a self,
        request: &'a Request,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<Response, FetchError>>;
    fn address<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Option<IpAddr>>;
}

impl<T: Downloader> DynDownloader for T {
    fn fetch<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Response, FetchError>> {
        Box::pin(Downloader::fetch(self, request))
    }

    fn fetch_watched<'a>(
        &'a self,
        request: &'a Request,
        watch: Watch<'a>,
    ) -> BoxFuture<'a, Result<Response, FetchError>> {
        Box::pin(Downloader::fetch_watched(self, request, watch))
    }

    fn address<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Option<IpAddr>> {
        Box::pin(Downloader::address(self, host))
    }
}

/// Why a download failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The request cannot be sent because of its scheme, a header or its method.
    InvalidRequest,
    /// The scheme is not allowed.
    Scheme,
    /// The address guard refused the host's address.
    AddressRefused,
    /// The name does not resolve.
    Dns,
    /// No connection: the host refused it or is unreachable.
    Connect,
    /// The TLS handshake failed, or the certificate is not valid.
    Tls,
    /// Connect plus handshake took too long.
    ConnectTimeout,
    /// The headers did not arrive in time.
    FirstByteTimeout,
    /// No data arrived for too long while the body was read.
    IdleTimeout,
    /// The whole request took too long.
    TotalTimeout,
    /// The connection was lost before the headers were complete.
    Reset,
    /// The body has fewer bytes than declared, or a broken chunk.
    Incomplete,
    /// The response violates the protocol.
    BadResponse,
    /// The status is neither 2xx nor one that the spider allows.
    HttpStatus,
    /// The body is larger than allowed, either on the wire or decoded.
    TooLarge,
    /// The body does not match its content coding, or too many codings are stacked.
    Decode,
    /// The media type is not wanted; the body was not read.
    ContentType,
    /// An observer stopped the download.
    Stopped,
    /// All callers of a client gave up the page.
    NotWanted,
    /// The proxy refused or failed.
    Proxy,
    /// A middleware failed or dropped the request.
    Middleware,
    /// The crawl was stopped.
    Cancelled,
}

impl FetchErrorKind {
    /// Stable name in snake_case: the drop reason and the key in the stats.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Scheme => "scheme",
            Self::AddressRefused => "address_refused",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::Reset => "connection_reset",
            Self::Incomplete => "incomplete_body",
            Self::BadResponse => "bad_response",
            Self::HttpStatus => "http_status",
            Self::TooLarge => "too_large",
            Self::Decode => "bad_encoding",
            Self::ContentType => "content_type",
            Self::Stopped => "download_stopped",
            Self::NotWanted => "not_wanted",
            Self::Proxy => "proxy",
            Self::Middleware => "middleware_error",
            Self::Cancelled => "cancelled",
        }
    }

    /// The kind with this [name](Self::name); `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    const ALL: [Self; 22] = [
        Self::InvalidRequest,
        Self::Scheme,
        Self::AddressRefused,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::ConnectTimeout,
        Self::FirstByteTimeout,
        Self::IdleTimeout,
        Self::TotalTimeout,
        Self::Reset,
        Self::Incomplete,
        Self::BadResponse,
        Self::HttpStatus,
        Self::TooLarge,
        Self::Decode,
        Self::ContentType,
        Self::Stopped,
        Self::NotWanted,
        Self::Proxy,
        Self::Middleware,
        Self::Cancelled,
    ];
}

/// How far a failed download is the fault of the proxy that it went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyFault {
    /// No proxy was used, or the failure has nothing to do with it.
    #[default]
    None,
    /// The proxy or the site behind it failed, and it cannot be told which: the proxy made no tunnel to the site, or nothing came through it in
    /// time.
    Possible,
    /// The proxy could not be reached, or does not serve this crawl. The site did not get the request.
    Certain,
}

/// A failed download: a kind to branch on, a message to read, and the cause.
#[derive(Debug)]
pub struct FetchError {
    kind: FetchErrorKind,
    /// The drop reason of a middleware that decided against a nested download.
    reason: Option<Cow<'static, str>>,
    message: String,
    /// `None` if the downloader did not say: then the kind decides.
    proxy_fault: Option<ProxyFault>,
    status: Option<StatusCode>,
    request_sent: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
    response: Option<Box<Response>>,
    partial: Option<Box<Response>>,
    certificate: Option<Box<RefusedCertificate>>,
}

impl FetchError {
    /// An error of a kind, with a message that says what happened.
    pub fn new(kind: FetchErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            reason: None,
            message: message.into(),
            proxy_fault: None,
            status: None,
            request_sent: false,
            source: None,
            response: None,
            partial: None,
            certificate: None,
        }
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the certificate for which the connection was refused.
    pub fn with_certificate(mut self, refused: RefusedCertificate) -> Self {
        self.certificate = Some(Box::new(refused));
        self
    }

    /// Adds the drop reason of the middleware that decided against a nested download.
    pub(crate) fn with_reason(mut self, reason: Cow<'static, str>) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Adds the status of a response whose body failed.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds the response, which was received but is not passed to `parse`.
    pub(crate) fn with_response(mut self, response: Response) -> Self {
        self.status = Some(response.status);
        self.response = Some(Box::new(response));
        self
    }

    /// Adds what was received of the response before its body failed.
    pub fn with_partial(mut self, partial: Response) -> Self {
        self.partial = Some(Box::new(partial));
        self
    }

    /// What was received of the response before its body failed: the head, and the part of the body that came, with its content coding. It is a part
    /// of a page at best, and meant for archives and for people who look for the cause.
    pub fn partial(&self) -> Option<&Response> {
        self.partial.as_deref()
    }

    /// The error of a request that was dropped for the given reason.
    pub(crate) fn of_drop(reason: &DropReason) -> Self {
        let kind = FetchErrorKind::of_name(&reason.reason).unwrap_or(FetchErrorKind::Middleware);
        let what = match (&reason.detail, reason.status) {
            (Some(detail), _) => detail.clone(),
            (None, Some(status)) => status.to_string(),
            (None, None) => return Self::new(kind, reason.reason.clone()),
        };
        Self { status: reason.status, ..Self::new(kind, format!("{}: {what}", reason.reason)) }
    }

    /// Marks that the request had been sent when it failed; a POST is not retried then.
    pub fn after_sending(mut self) -> Self {
        self.request_sent = true;
        self
    }

    /// Says how far the proxy of the request is at fault. Without it, [`FetchErrorKind::Proxy`] is certainly the fault of a proxy, and nothing
    /// else is.
    pub fn with_proxy_fault(mut self, fault: ProxyFault) -> Self {
        self.proxy_fault = Some(fault);
        self
    }

    /// How far the proxy of the request is at fault.
    pub fn proxy_fault(&self) -> ProxyFault {
        let by_kind = match self.kind {
            FetchErrorKind::Proxy => ProxyFault::Certain,
            _ => ProxyFault::None,
        };
        self.proxy_fault.unwrap_or(by_kind)
    }

    /// The kind of failure.
    pub fn kind(&self) -> FetchErrorKind {
        self.kind
    }

    /// Stable name in snake_case of why there is no response: that of the kind, or the drop reason of the middleware that decided against a
    /// nested download, such as `robots`.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(self.kind.name())
    }

    /// Status of the response, if headers were received.
    pub fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// The response with headers and body, if it was received completely but its status is not passed to `parse`.
    pub fn response(&self) -> Option<&Response> {
        self.response.as_deref()
    }

    /// The certificate for which the connection was refused, if that was the cause.
    pub fn certificate(&self) -> Option<&RefusedCertificate> {
        self.certificate.as_deref()
    }

    /// Whether the request had been sent.
    pub fn was_sent(&self) -> bool {
        self.request_sent
    }

    /// Whether any of the four deadlines passed.
    pub fn is_timeout(&self) -> bool {
        use FetchErrorKind as K;
        matches!(self.kind, K::ConnectTimeout | K::FirstByteTimeout | K::IdleTimeout | K::TotalTimeout)
    }

    /// Whether the host could not be reached at all.
    pub fn is_connect(&self) -> bool {
        use FetchErrorKind as K;
        matches!(self.kind, K::Connect | K::ConnectTimeout | K::Dns | K::Tls)
    }

    /// Whether the name did not resolve.
    pub fn is_dns(&self) -> bool {
        self.kind == FetchErrorKind::Dns
    }

    /// Whether another try may succeed, because the network failed and not the content of the response.
    pub fn is_transient(&self) -> bool {
        use FetchErrorKind as K;
        self.is_timeout()
            || matches!(self.kind, K::Dns | K::Connect | K::Tls | K::Reset | K::Incomplete | K::Proxy)
    }

    /// Whether host health counts this as a failure of the host: it could not be reached. A connection that is reset
    /// or falls silent may be the fault of one page, and must not cost the host its other pages. Nor does the host pay for a proxy that is or may
    /// be at fault.
    pub fn is_host_failure(&self) -> bool {
        self.is_connect() && self.proxy_fault() == ProxyFault::None
    }

    /// The drop reason of a request that ended with this error.
    pub fn drop_reason(&self) -> DropReason {
        use FetchErrorKind as K;
        let skipped = matches!(
            self.kind,
            K::ContentType | K::AddressRefused | K::Scheme | K::Stopped | K::NotWanted | K::Cancelled
        );
        DropReason {
            state: if skipped { DropState::Skipped } else { DropState::Failed },
            reason: self.kind.name().into(),
            detail: Some(self.to_string()),
            status: self.status,
            guard: None,
            cause: Cause::default(),
        }
    }

    /// Like [`FetchError::drop_reason`], with this error as the cause.
    pub(crate) fn into_drop(self) -> DropReason {
        let reason = self.drop_reason();
        let doing = reason.reason.clone();
        reason.with_error(Error::from(self).context(doing))
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for FetchError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
