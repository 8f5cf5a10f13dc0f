//! What is asked, and what is answered.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;

/// A request whose head was read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

impl Asked {
    /// A GET of a target, for tests of what answers.
    #[cfg(test)]
    pub(crate) fn of(target: &str) -> Self {
        Self { method: Method::GET, uri: target.parse().expect("a target"), headers: HeaderMap::new() }
    }

    /// Path without the query.
    pub(crate) fn path(&self) -> &str {
        self.uri.path()
    }

    /// The first value of a query parameter, as sent.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.uri.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// What the server sends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }.with(CONTENT_TYPE, content_type)
    }

    /// Status 200 with a page.
    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    /// A status with a text.
    pub(crate) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    /// Metrics in the text format of Prometheus, version 0.0.4.
    pub(crate) fn metrics(text: String) -> Self {
        Self::new(200, "text/plain; version=0.0.4; charset=utf-8", text)
    }

    /// A permanent redirect to an address, which has no signs that a header may not have.
    pub(crate) fn redirect(to: &str) -> Self {
        let mut answer = Self::text(301, "moved\n");
        answer.headers.extend(HeaderValue::from_str(to).ok().map(|to| (LOCATION, to)));
        answer
    }

    /// With one header more.
    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().extend(self.headers);
        response
    }
}
