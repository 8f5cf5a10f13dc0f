//! What rendering a page brought.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use huntsman_browser::{ConsoleLine, Shot, SubRequest};
use huntsman_crawler::Timestamp;

/// What rendering a page brought, besides the tree that is the body of its response. It is in the extensions of the response
/// ([`RenderedPage::rendered`](crate::RenderedPage::rendered)).
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Body of the document before any script ran, as its server sent it.
    pub static_body: Bytes,
    /// What the page asked for, in this order.
    pub requests: Vec<SubRequest>,
    /// What its scripts wrote, and their errors.
    pub console: Vec<ConsoleLine>,
    /// Whether time or size ended before the page was ready.
    pub is_incomplete: bool,
    /// Pictures and prints, in the order of their steps.
    pub shots: Vec<Shot>,
    /// Values of the expressions that steps evaluated, as JSON, in their order.
    pub values: Vec<String>,
    /// When the page was begun.
    pub at: Timestamp,
    /// From the start of the page to its end.
    pub took: Duration,
    /// The header of the document, which says how `static_body` is encoded.
    pub content_type: Option<HeaderValue>,
}
