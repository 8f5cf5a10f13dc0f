//! Responses of the crawl as answers for the browser.

use http::{HeaderName, header};
use huntsman_browser::Answer;
use huntsman_crawler::Response;

/// Headers of the way that a body was sent in. It is decoded now, and its length is known.
const OF_TRANSFER: [HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::TRAILER,
];

/// The answer that a response is.
pub(super) fn answer_of(response: &Response) -> Answer {
    let headers = response.headers.iter().filter(|(name, _)| !OF_TRANSFER.contains(name));
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Answer {
        status: response.status.as_u16(),
        headers: headers.map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: response.body.clone(),
    }
}
