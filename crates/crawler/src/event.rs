//! Events: the crawl reports what happens to observers, synchronously, and in a few places an observer may decide.

use http::{HeaderMap, StatusCode};

use http::Extensions;

use crate::drop::Dropped;
use crate::fetch::FetchError;
use crate::frontier::Work;
use crate::middleware::OnFollow;
use crate::request::Request;
use crate::response::Response;

/// Something that happened. Events borrow their values; an observer copies what it keeps.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The engine starts; no request has been queued yet.
    EngineStarted,
    /// The engine has ended; sinks are closed.
    EngineStopped,
    /// Components are open and the crawl begins. `resumed` requests were in the frontier.
    SpiderOpened {
        /// Requests that the frontier held when it was opened.
        resumed: u64,
    },
    /// No request is queued, in flight or being processed.
    SpiderIdle,
    /// The crawl ended for a reason.
    SpiderClosed {
        /// Finish reason.
        reason: &'a str,
    },
    /// The callback failed or panicked; the crawl continues.
    SpiderError {
        /// The request of the page.
        request: &'a Request,
        /// The message of the error.
        error: &'a str,
    },
    /// The last queued request was taken: the queue is empty, but requests may be in flight.
    SchedulerEmpty,
    /// A request is passed to the frontier, which drops it if it is a duplicate. See [`Observer::on_schedule`] for a
    /// veto.
    RequestScheduled {
        /// The request.
        request: &'a Request,
    },
    /// A request is sent to the network.
    RequestReachedDownloader {
        /// The request.
        request: &'a Request,
    },
    /// The download ended, successfully or not.
    RequestLeftDownloader {
        /// The request.
        request: &'a Request,
        /// Why it failed, if it did.
        error: Option<&'a FetchError>,
    },
    /// A response arrived from the downloader; the middlewares have not seen it yet.
    ResponseDownloaded {
        /// Its request.
        request: &'a Request,
        /// The response.
        response: &'a Response,
    },
    /// A response passed the middlewares and is handed to the spider.
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
        /// Number of items that its callback gave.
        items: u64,
        /// What spider middlewares left in the extensions of the page.
        found: &'a Extensions,
    },
    /// A queued request ended without a page. Sent once per request, before the queue forgets it.
    RequestDropped(&'a Dropped),
    /// A request of a queue that several processes share is settled for good: no other process will do it again.
    WorkSettled {
        /// The name of the request, and when it was settled.
        work: &'a Work,
        /// Whether it ended with a page.
        delivered: bool,
    },
    /// A request that was found on a page was refused before it entered the queue (offsite, depth, length, ...).
    RequestRefused(&'a Dropped),
    /// An item passed all pipelines.
    ItemScraped,
    /// A pipeline dropped an item.
    ItemDropped {
        /// The reason.
        reason: &'a str,
    },
    /// A pipeline failed on an item; the item is lost, and the crawl continues.
    ItemError {
        /// The message of the error.
        error: &'a str,
    },
    /// A field of an item breaks a rule; one event for each such field. What happens to the item is a matter of the pipeline that checks
    /// items.
    ItemInvalid {
        /// Path of the field, such as `seller.name`.
        field: &'a str,
        /// The rule that the field breaks, with the value where that helps.
        reason: &'a str,
    },
    /// A file that an item names could not be fetched or stored. The item is kept, and lists the failure.
    FileFailed {
        /// Kind of the file: `files` or `images`.
        kind: &'a str,
        /// The URL as the item names it.
        url: &'a str,
        /// Why it failed.
        error: &'a str,
    },
    /// A file of a feed, or standard output, was closed.
    FeedSlotClosed {
        /// Its name.
        name: &'a str,
        /// Number of items that were written to it.
        items: u64,
        /// The error, if the file could not be finished.
        error: Option<&'a str>,
    },
    /// A feed has ended: its last file is closed.
    FeedExporterClosed {
        /// The name of the feed, with its parameters.
        name: &'a str,
        /// Number of items that were written to all its files.
        items: u64,
    },
    /// A robots.txt was fetched and parsed.
    RobotsParsed {
        /// Scheme, host and port.
        authority: &'a str,
        /// `Sitemap:` lines, resolved.
        sitemaps: &'a [String],
    },
    /// A line of robots.txt forbids a URL.
    RobotsBlocked {
        /// The URL.
        url: &'a str,
        /// The line that forbids it, as written.
        line: &'a str,
    },
    /// No request will use a cookie jar again: the component that keeps cookies may forget those of it.
    CookieJarEnded {
        /// The name of the jar: a value of meta `cookiejar`.
        name: &'a str,
    },
    /// Memory use exceeded a limit.
    MemoryWarning {
        /// Resident memory in bytes.
        rss: u64,
    },
}

/// What to do with a download of which a part was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDownload {
    /// The download continues.
    #[default]
    Continue,
    /// The download ends: the received part is delivered, with the flag `download_stopped`.
    Deliver,
    /// The download ends: the request is dropped as skipped, with the reason `download_stopped`.
    Drop,
}

/// Receives every event of a crawl, synchronously. It must be quick, and a panic in it is caught and counted; an
/// observer that has to wait sends the event to a channel.
///
/// A closure is an observer that only receives events. The other methods may decide. If there are several observers,
/// the first decision other than "continue" is final, and the later ones are not asked.
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
    /// Receives one event.
    fn event(&self, event: &Event<'_>);

    /// Called when a request is about to enter the queue: a start request, a link, a pushed request, or a request
    /// that replaces another one (a retry, a redirect). A veto is recorded like a refusal of a middleware, with the
    /// component `observer`.
    fn on_schedule(&self, request: &Request) -> OnFollow {
        let _ = request;
        OnFollow::Keep
    }

    /// Called when status and headers of a response were received; nothing of its body was read yet.
    fn on_headers(&self, request: &Request, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        let _ = (request, status, headers);
        OnDownload::Continue
    }

    /// Called for each received part of a body, as on the wire, before it is decoded.
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
