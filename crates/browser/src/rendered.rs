//! A page as it was rendered.

use std::time::Duration;

use bytes::Bytes;

use crate::Kind;

/// A page as it was rendered.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// Address at the end, also if a script changed it.
    pub url: String,
    /// The tree as HTML in UTF-8, with open shadow roots and frames of the same site.
    pub html: String,
    /// Status of the document.
    pub status: u16,
    /// Headers of the document.
    pub headers: Vec<(String, String)>,
    /// Body of the document before any script ran.
    pub static_body: Bytes,
    /// Whether time or size ended before the page was ready.
    pub is_incomplete: bool,
    /// Its requests, in the order in which they were asked.
    pub requests: Vec<SubRequest>,
    /// What its scripts wrote, and their errors; at most 100 lines.
    pub console: Vec<ConsoleLine>,
    /// Pictures and prints, in the order of their steps.
    pub shots: Vec<Shot>,
    /// Values of the expressions that steps evaluated, as JSON, in their order.
    pub values: Vec<String>,
    /// Addresses of windows that it wanted to open.
    pub popups: Vec<String>,
    /// Cookies that scripts set, as lines of `Set-Cookie`, each with the address that it is of.
    pub cookies: Vec<(String, String)>,
    /// Connections past HTTP that it wanted: WebSocket, WebRTC, WebTransport.
    pub refused_direct: u32,
    /// From the start of the page to its end.
    pub took: Duration,
}

/// A request that a page made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubRequest {
    /// Address.
    pub url: String,
    /// Method.
    pub method: String,
    /// What it was for; `None` for a kind that is never asked, as images.
    pub kind: Option<Kind>,
    /// Status, or why there is none.
    pub answer: Result<u16, String>,
    /// Bytes of the decoded body.
    pub bytes: u64,
    /// Since the start of the page.
    pub started: Duration,
    /// From asking to the answer.
    pub took: Duration,
    /// What was sent and received; nothing of a request that was not asked.
    pub exchange: Exchange,
}

/// What was sent with a request of a page, and what was received. Headers are those between the page and the program, which are not all that a server
/// sees; bodies are decoded, and shared with what was handed to the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// Headers of the request, without cookies.
    pub sent_headers: Vec<(String, String)>,
    /// Body of the request.
    pub sent_body: Bytes,
    /// Headers of the answer.
    pub headers: Vec<(String, String)>,
    /// Body of the answer.
    pub body: Bytes,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleLine {
    /// `log`, `warning`, `error` and so on, as the browser calls it.
    pub level: String,
    /// The text; at most 1,000 characters.
    pub text: String,
}

/// A picture or a print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shot {
    /// A picture.
    Png(Bytes),
    /// A print.
    Pdf(Bytes),
}
