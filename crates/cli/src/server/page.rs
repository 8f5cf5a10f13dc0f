//! Pages of generated sites: plain values that are made from a path, so that a site is tested without a server.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderName, LOCATION};
use http::{HeaderValue, StatusCode, Uri};

/// The head of a request for a page.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) uri: Uri,
}

impl Asked {
    /// A GET of a target, for tests of sites.
    #[cfg(test)]
    pub(crate) fn of(target: &str) -> Self {
        Self { uri: target.parse().expect("a target") }
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

/// A page, a redirect, or a status with a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))],
            body: body.into(),
        }
    }

    /// Status 200 with a page.
    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    /// A status with a text.
    pub(crate) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    /// A permanent redirect to an address, which has no characters that a header may not have.
    pub(crate) fn redirect(to: &str) -> Self {
        let mut answer = Self::text(301, "moved\n");
        answer.headers.extend(HeaderValue::from_str(to).ok().map(|to| (LOCATION, to)));
        answer
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.body.into());
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().extend(self.headers);
        response
    }
}
