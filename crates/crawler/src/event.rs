//! Events: what happens in a crawl, told to observers in line.

use http::Extensions;

use crate::drop::Dropped;
use crate::fetch::FetchError;
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
    /// A request was accepted into the frontier.
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

/// Is told every event, in line: it must be quick, and a panic in it is caught and counted.
pub trait Observer: Send + Sync + 'static {
    /// One event.
    fn event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}
