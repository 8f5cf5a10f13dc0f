//! A response to one request: headers as received, and the body within its limits.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, HeaderMap, StatusCode, Version, header};
use url::Url;

use crate::active::CountedBytes;

/// The durations of the parts of a download. A part that did not happen (a reused connection needs no connect) is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timings {
    /// Name resolution.
    pub dns: Option<Duration>,
    /// TCP connect plus, for https, the TLS handshake.
    pub connect: Option<Duration>,
    /// The TLS handshake alone, if the HTTP client measures it.
    pub tls: Option<Duration>,
    /// From sending the request to its headers: the latency that AutoThrottle uses.
    pub ttfb: Duration,
    /// From sending the request to the last byte.
    pub total: Duration,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// The URL that sent the response.
    pub url: Url,
    /// Status code.
    pub status: StatusCode,
    /// Protocol version.
    pub version: Version,
    /// Headers as received; HttpCompression removes `Content-Encoding` when it decodes the body.
    pub headers: HeaderMap,
    /// The body: as received until HttpCompression (order 590) has run, decoded afterwards.
    pub body: Bytes,
    /// The body as decoded by the downloader while it was received (the downloader has to count decoded bytes against
    /// the limit anyway). HttpCompression moves it to `body`.
    pub decoded: Option<Bytes>,
    /// Size of the body on the wire, in bytes.
    pub wire_bytes: u64,
    /// Marks for logs and records: `cached`, `partial`, `dataloss`, `truncated`, ...
    pub flags: Vec<&'static str>,
    /// The address of the server.
    pub ip: Option<IpAddr>,
    /// The certificate in DER of the site, for https: through a proxy, too.
    pub certificate: Option<Bytes>,
    /// The version of TLS, such as `TLS 1.3`: that of the last handshake with the host.
    pub tls_version: Option<&'static str>,
    /// Durations of the parts of the download.
    pub timings: Timings,
    /// Values that components attached.
    pub extensions: Extensions,
    /// Counts this response against the limit of responses in progress.
    pub(crate) counted: CountedBytes,
}

impl Response {
    /// A response with a body, for tests, caches and middlewares that answer without a download.
    pub fn new(url: Url, status: StatusCode, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        Self {
            url,
            status,
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            wire_bytes: body.len() as u64,
            body,
            decoded: None,
            flags: Vec::new(),
            ip: None,
            certificate: None,
            tls_version: None,
            timings: Timings::default(),
            extensions: Extensions::new(),
            counted: CountedBytes::default(),
        }
    }

    /// An HTML page with status 200.
    pub fn html(url: Url, body: impl Into<Bytes>) -> Self {
        let mut response = Self::new(url, StatusCode::OK, body);
        let html = header::HeaderValue::from_static("text/html; charset=utf-8");
        response.headers.insert(header::CONTENT_TYPE, html);
        response
    }

    /// A header as text; `None` if it is absent or not visible ASCII.
    pub fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type of `Content-Type` in lower case, without parameters.
    pub fn content_type(&self) -> Option<String> {
        let value = self.headers.get(header::CONTENT_TYPE)?;
        let value = String::from_utf8_lossy(value.as_bytes());
        let media = value.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        (!media.is_empty()).then_some(media)
    }

    /// Adds a flag unless it is already set.
    pub fn add_flag(&mut self, flag: &'static str) {
        if !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }

    /// Whether a flag is set.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// `HTTP/1.1`, `h2`, ...
    pub fn protocol(&self) -> &'static str {
        match self.version {
            Version::HTTP_09 => "HTTP/0.9",
            Version::HTTP_10 => "HTTP/1.0",
            Version::HTTP_2 => "h2",
            Version::HTTP_3 => "h3",
            _ => "HTTP/1.1",
        }
    }
}
