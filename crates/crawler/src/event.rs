//! Events: what happens in a crawl, told to observers in line, and the few places where an observer may decide.

use http::{HeaderMap, StatusCode};

use http::Extensions;

use crate::drop::Dropped;
use crate::fetch::FetchError;
use crate::middleware::OnFollow;
use crate::request::Request;
use crate::response::Response;

/// Something that happened. Borrowed: an observer copies what it keeps.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The engine starts; nothing was queued yet.
    EngineStarted,
    /// The engine is done; sinks are closed.
    EngineStopped,
    /// Components are open, crawling begins. `resumed` requests were in the frontier.
    SpiderOpened {
        /// Requests that the frontier held when it was opened.
        resumed: u64,
    },
    /// Nothing is queued, in flight or being processed.
    SpiderIdle,
    /// The crawl ended for a reason.
    SpiderClosed {
        /// Finish reason.
        reason: &'a str,
    },
    /// The callback failed or panicked; the crawl goes on.
    SpiderError {
        /// The request of the page.
        request: &'a Request,
        /// What the callback said.
        error: &'a str,
    },
    /// The last queued request was taken: the queue is empty, requests may be in flight.
    SchedulerEmpty,
    /// A request goes to the frontier, which drops it if it is a duplicate. See [`Observer::on_schedule`] for a veto.
    RequestScheduled {
        /// The request.
        request: &'a Request,
    },
    /// A request goes to the network.
    RequestReachedDownloader {
        /// The request.
        request: &'a Request,
    },
    /// The download ended, well or not.
    RequestLeftDownloader {
        /// The request.
        request: &'a Request,
        /// Why it failed, if it did.
        error: Option<&'a FetchError>,
    },
    /// A response came from the downloader, before the middlewares.
    ResponseDownloaded {
        /// Its request.
        request: &'a Request,
        /// The response.
        response: &'a Response,
    },
    /// A response passed the middlewares and goes to the spider.
    ResponseReceived {
        /// Its request.
        request: &'a Request,
        /// The response.
        response: &'a Response,
    },
    /// A page was delivered: its callback ended and its items were acknowledged.
    PageDelivered {
        /// Its request.
        request: &'a Request,
        /// Items that its callback gave.
        items: u64,
        /// What spider middlewares left in the extensions of the page.
        found: &'a Extensions,
    },
    /// A request that was in the queue ended without a page. Once per request.
    RequestDropped(&'a Dropped),
    /// A request that a page led to was refused before it entered the queue (offsite, depth, length, ...).
    RequestRefused(&'a Dropped),
    /// An item passed all pipelines.
    ItemScraped,
    /// A pipeline dropped an item.
    ItemDropped {
        /// Why.
        reason: &'a str,
    },
    /// A pipeline failed on an item; the item is lost, the crawl goes on.
    ItemError {
        /// What the pipeline said.
        error: &'a str,
    },
    /// A file of a feed, or standard output, was closed.
    FeedSlotClosed {
        /// Its name.
        name: &'a str,
        /// Items that were written to it.
        items: u64,
        /// Why it could not be finished, if so.
        error: Option<&'a str>,
    },
    /// A feed is done: its last file is closed.
    FeedExporterClosed {
        /// The name of the feed, with its parameters.
        name: &'a str,
        /// Items that were written to all its files.
        items: u64,
    },
    /// A robots.txt was fetched and parsed.
    RobotsParsed {
        /// Scheme, host and port.
        authority: &'a str,
        /// `Sitemap:` lines, resolved.
        sitemaps: &'a [String],
    },
    /// A robots.txt line forbids a URL.
    RobotsBlocked {
        /// The URL.
        url: &'a str,
        /// The line that decides, as written.
        line: &'a str,
    },
    /// Memory passed a limit.
    MemoryWarning {
        /// Resident bytes.
        rss: u64,
    },
}

/// What becomes of a download of which a part came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDownload {
    /// It goes on.
    #[default]
    Continue,
    /// It ends here: what came is delivered, with the flag `download_stopped`.
    Deliver,
    /// It ends here: the request is dropped as skipped, `download_stopped`.
    Drop,
}

/// Is told every event, in line: it must be quick, and a panic in it is caught and counted. One that has to wait sends
/// to a channel.
///
/// A closure is an observer that only listens. The other methods decide; of several observers the first that does not let
/// things go on has decided, and later ones are not asked.
///
/// ```
/// # use huntsman_crawler::{Event, Observer, OnDownload, Request};
/// /// Takes no page of more than a megabyte, as far as the server says so.
/// struct Small;
///
/// impl Observer for Small {
///     fn event(&self, _: &Event<'_>) {}
///
///     fn on_headers(&self, _: &Request, _: http::StatusCode, headers: &http::HeaderMap) -> OnDownload {
///         let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
///         if length.is_some_and(|length: u64| length > 1_000_000) { OnDownload::Drop } else { OnDownload::Continue }
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// One event.
    fn event(&self, event: &Event<'_>);

    /// A request is about to enter the queue: a start request, a link, one that was pushed, or one that takes the place of
    /// another (a retry, a redirect). A veto is recorded like a refusal of a middleware, with the component `observer`.
    fn on_schedule(&self, request: &Request) -> OnFollow {
        let _ = request;
        OnFollow::Keep
    }

    /// Status and headers of an answer came; nothing of its body was read.
    fn on_headers(&self, request: &Request, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        let _ = (request, status, headers);
        OnDownload::Continue
    }

    /// A part of a body came, as on the wire: before it is decoded.
    fn on_bytes(&self, request: &Request, bytes: &[u8]) -> OnDownload {
        let _ = (request, bytes);
        OnDownload::Continue
    }
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}
