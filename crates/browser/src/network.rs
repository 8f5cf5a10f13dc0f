//! What a page asks for, and what it is answered.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;

/// The future of an answer.
pub type NetworkFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, Refused>> + Send + 'a>>;

/// Answers the requests of one page, with those of its frames and workers.
pub trait Network: Send + Sync + 'static {
    /// Answers a request. Redirects are answers, because the browser follows each hop itself; bodies are decoded.
    fn answer(&self, asked: Asked) -> NetworkFuture<'_>;

    /// Whether the page does nothing but wait for the pace of a host. No limit of time counts meanwhile.
    fn is_waiting(&self) -> bool {
        false
    }
}

/// A request of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Address without a fragment.
    pub url: String,
    /// Method, in capitals.
    pub method: String,
    /// Headers as the browser would send them, without cookies.
    pub headers: Vec<(String, String)>,
    /// Body, if it has one.
    pub body: Option<Bytes>,
    /// What the page wants it for.
    pub kind: Kind,
    /// Whether it is the document of the page itself, not of a frame.
    pub is_main: bool,
    /// Address of the document that asks; for the page itself its own.
    pub document: String,
    /// Cookies that scripts set since the request before, as lines of `Set-Cookie`, each with the address that it is of. They belong to this request, too.
    pub cookies: Vec<(String, String)>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The page, or the document of a frame.
    Document,
    /// A script, or that of a worker.
    Script,
    /// A style sheet.
    Stylesheet,
    /// A request by `XMLHttpRequest`.
    Xhr,
    /// A request by `fetch` or `EventSource`.
    Fetch,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// Headers; several of a name are several pairs.
    pub headers: Vec<(String, String)>,
    /// Decoded body.
    pub body: Bytes,
}

/// Why a request is not answered. The page sees a network error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Short reason, such as `robots` or `third_party`; it is counted by this name.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refused {}
