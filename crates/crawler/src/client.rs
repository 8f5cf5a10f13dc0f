//! A client: a crawl that stays open and fetches what its callers ask for.
//!
//! It is no second way to the network: a fetch is a request of a crawl, with everything that a crawl does with requests.

mod error;
mod fetches;
mod hooks;
mod on_demand;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use tokio::task::JoinHandle;

pub use error::ClientError;
pub(crate) use fetches::FetchId;
pub use on_demand::OnDemand;

use crate::component::Component;
use crate::engine::{CrawlerBuilder, Handle};
use crate::error::{Error, Result};
use crate::fetch::BoxFuture;
use crate::report::CrawlReport;
use crate::request::{Fingerprinter, Request};
use crate::response::Response;
use fetches::{Fetches, Waiting};
use hooks::{Cancelling, Outcomes, Wanted};

/// Fetches pages on demand, as politely as a crawl: each request goes through the queue, the slot of its host, robots.txt, the
/// middlewares and all limits of the crawl behind the client. Cheap to clone; all clones are one client.
///
/// - **Sharing.** Callers that ask for one page while it is queued or on its way share one fetch: one page is what has the same
///   fingerprint ([`Fingerprinter`]: method, address, body) and the same [callback label](Request::callback()). Priority, meta and
///   headers are those of the first caller's request. A page that was fetched before is fetched again.
/// - **Giving up.** A caller that drops its [`Fetch`] has given it up. Once all callers have, a request in the queue is dropped when its
///   turn comes (reason `not_wanted`, nothing is sent), and a download in flight ends after a grace of one second
///   ([`OnDemand::grace`]), if nobody asks for the page again meanwhile.
/// - **Deadlines** are the caller's: `tokio::time::timeout(time, client.fetch(request))`. They include the time in the queue. The limits
///   of a single download are settings and meta of the crawl, such as `download_timeout`.
/// - **The end.** [`finish`](Self::finish) ends the crawl, as do its limits, [`Handle::stop`], a fatal error, and the drop of the last clone
///   and the last fetch. Callers that still wait then get [`ClientError::Ended`]; so does every later one.
///
/// What a client costs beside its crawl: one small entry for each page that is queued or on its way.
///
/// ```
/// # use huntsman_crawler::{ClientError, CrawlClient, CrawlerBuilder, OnDemand, Request};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> huntsman_crawler::Result<()> {
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<title>Mills</title>")]);
/// // `huntsman::crawl(OnDemand::new())` adds the built-in middlewares and the HTTP client.
/// let builder = CrawlerBuilder::new(OnDemand::new()).downloader(web);
/// let client = CrawlClient::start(builder)?;
/// let page = client.fetch(Request::parse("http://a.test/")?).await?;
/// assert_eq!((page.status.as_u16(), page.body.len()), (200, 20));
/// let report = client.finish().await?;
/// assert_eq!(report.pages, 1);
/// # Ok(()) }
/// ```
pub struct CrawlClient<T = Response>(Arc<Inner<T>>);

struct Inner<T> {
    fetches: Arc<Fetches<T>>,
    fingerprinter: Fingerprinter,
    handle: Handle,
    crawl: Mutex<Option<JoinHandle<Result<CrawlReport>>>>,
}

impl<T> Drop for Inner<T> {
    fn drop(&mut self) {
        self.handle.stop("finished");
    }
}

impl<T: Clone + Send + Sync + 'static> CrawlClient<T> {
    /// Starts the crawl, as a task of the present tokio runtime. It stays open when it has nothing to do.
    ///
    /// # Errors
    /// Those of [`CrawlerBuilder::build`]; or this is not within a tokio runtime.
    pub fn start(mut builder: CrawlerBuilder<OnDemand<T>>) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|cause| Error::usage(format!("starting a client: {cause}")))?;
        let fetches = Arc::clone(&builder.spider.fetches);
        let grace = builder.spider.grace;
        if let Some(make) = builder.downloader.take() {
            let fetches = Arc::clone(&fetches);
            builder = builder.downloader_with(move |settings| {
                Ok(Cancelling { downloader: make(settings)?, fetches, grace })
            });
        }
        let crawler = builder
            .middleware(Wanted(Arc::clone(&fetches)))
            .observer(Outcomes(Arc::clone(&fetches)))
            .build()?;
        let handle = crawler.handle();
        handle.keep_open(true);
        let fingerprinter = Fingerprinter::from_settings(handle.context().settings())?;
        let ending = Ending(Arc::clone(&fetches));
        let crawl = runtime.spawn(async move {
            let report = crawler.run().await;
            match &report {
                Ok(report) => ending.0.end(&report.finish_reason),
                Err(error) => ending.0.end(&error.to_string()),
            }
            report
        });
        Ok(Self(Arc::new(Inner { fetches, fingerprinter, handle, crawl: Mutex::new(Some(crawl)) })))
    }

    /// A component of the crawl by its type; `None` if it is not configured.
    pub fn component<C: Component>(&self) -> Option<Arc<C>> {
        self.0.handle.context().component()
    }

    /// Asks for a page. The request is queued by this call, and skips the duplicate filter; the future waits for what becomes of it.
    ///
    /// # Errors
    /// Of the future: [`ClientError::Dropped`] if there is no page, with the reason and the answer where there is one;
    /// [`ClientError::Ended`] if the crawl ended before.
    pub fn fetch(&self, request: Request) -> Fetch<T> {
        let request = request.unfiltered();
        let key = (self.0.fingerprinter.of(&request), Arc::clone(&request.callback));
        let joined = match self.0.fetches.join(key) {
            Ok(joined) => joined,
            Err(ended) => return Fetch { outcome: Box::pin(async { Err(ended) }), waiting: None },
        };
        if let Some(id) = joined.to_queue {
            self.0.handle.push(id.mark(request));
        }
        // While somebody waits, the crawl goes on.
        let client = self.clone();
        let mut outcome = joined.outcome;
        let outcome = async move {
            let told = outcome.wait_for(Option::is_some).await;
            let told = told.ok().and_then(|outcome| outcome.clone());
            drop(client);
            told.expect("the sender lives in the fetch, and tells an outcome before it is dropped")
        };
        Fetch { outcome: Box::pin(outcome), waiting: Some(joined.waiting) }
    }

    /// The crawl of the client: its stats, the politeness of hosts. Requests that are pushed through it are crawled, and nobody gets
    /// their pages.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Whether the crawl has ended: every fetch is [`ClientError::Ended`].
    pub fn is_ended(&self) -> bool {
        self.0.fetches.is_ended()
    }

    /// Ends the crawl, and gives its report. Downloads in flight may end within `drain_timeout`, and their callers get their pages; those
    /// of queued requests get [`ClientError::Ended`].
    ///
    /// # Errors
    /// The crawl failed as a whole, or was finished before.
    pub async fn finish(&self) -> Result<CrawlReport> {
        let crawl = self.0.crawl.lock().unwrap_or_else(PoisonError::into_inner).take();
        let crawl = crawl.ok_or_else(|| Error::usage("this client was finished before"))?;
        self.0.handle.stop("finished");
        crawl.await?
    }
}

impl<T> Clone for CrawlClient<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for CrawlClient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrawlClient").field("fetches", &self.0.fetches).finish_non_exhaustive()
    }
}

/// A page that was asked for; a future of what the client's [`OnDemand`] makes of it. Dropping it gives the page up.
#[must_use = "a fetch that is dropped is given up"]
pub struct Fetch<T = Response> {
    outcome: BoxFuture<'static, Result<T, ClientError>>,
    /// `None` after the end of the crawl.
    waiting: Option<Arc<Waiting<T>>>,
}

impl<T> Fetch<T> {
    /// Whether it still waits in the queue: nothing was done for it, and giving it up saves all of its cost. Once it has left the queue
    /// this stays false, also while a retry or a redirect of it waits there.
    pub fn is_queued(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| !waiting.has_begun())
    }
}

impl<T> Future for Fetch<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.outcome.as_mut().poll(cx)
    }
}

impl<T> fmt::Debug for Fetch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("is_queued", &self.is_queued()).finish_non_exhaustive()
    }
}

/// Tells all callers that the crawl has ended, if its task is dropped with the runtime.
struct Ending<T>(Arc<Fetches<T>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.end("it was dropped");
    }
}
