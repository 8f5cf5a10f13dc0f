//! Responses that depend only on the request.

use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, Response, StatusCode, Uri};

/// A page, as any server can send it.
pub type Page = Response<String>;

/// A page with status 200.
pub(crate) fn html(body: String) -> Page {
    page(StatusCode::OK, "text/html; charset=utf-8", body)
}

/// A script.
pub(crate) fn script(body: String) -> Page {
    page(StatusCode::OK, "text/javascript; charset=utf-8", body)
}

/// A page with status 404.
pub(crate) fn missing(body: String) -> Page {
    page(StatusCode::NOT_FOUND, "text/html; charset=utf-8", body)
}

/// A response with a status and a text.
pub(crate) fn text(status: StatusCode, body: &str) -> Page {
    page(status, "text/plain; charset=utf-8", body.to_owned())
}

/// A permanent redirect to an address, which must contain only characters that are allowed in a header.
pub(crate) fn redirect(to: &str) -> Page {
    let mut answer = text(StatusCode::MOVED_PERMANENTLY, "moved\n");
    answer.headers_mut().extend(HeaderValue::from_str(to).ok().map(|to| (LOCATION, to)));
    answer
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Page {
    let mut page = Response::new(body);
    *page.status_mut() = status;
    page.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    page
}

/// The first value of a parameter in the query, as sent.
pub(crate) fn query<'a>(request: &'a Uri, name: &str) -> Option<&'a str> {
    request.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
