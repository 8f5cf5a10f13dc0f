//! A client: a crawl that stays open and fetches pages on request of its callers.
//!
//! A fetch does not bypass the crawl: it is a request of the crawl, and is treated like any other.

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
use crate::page::Page;
use crate::report::CrawlReport;
use crate::request::{Fingerprinter, Request};
use crate::response::Response;
use fetches::{Fetches, OpenFetch};
use hooks::{Cancelling, Outcomes, Wanted};

/// Fetches pages on demand, as politely as a crawl: each request goes through the queue, the slot of its host,
/// robots.txt, the middlewares and all limits of the crawl behind the client. The client is cheap to clone, and all
/// clones share one crawl.
///
/// - **Sharing.** Callers that ask for the same page while it is queued or in flight share one fetch. Two requests
///   are for the same page if they have the same fingerprint ([`Fingerprinter`]: method, URL, body) and the same
///   [callback label](Request::callback()). Priority, meta and headers are those of the first caller's request. A
///   page that was fetched before is fetched again.
/// - **Giving up.** A caller gives up a page by dropping its [`Fetch`]. Once all callers of a page have done so, a
///   queued request is dropped when its turn comes (reason `not_wanted`, nothing is sent), and a download in flight
///   ends after a grace period of one second ([`OnDemand::grace`]), unless a caller asks for the page again
///   meanwhile.
/// - **Deadlines** are set by the caller: `tokio::time::timeout(time, client.fetch(request))`. They include the time
///   in the queue. The limits of a single download are settings and meta of the crawl, such as `download_timeout`.
/// - **The end.** The crawl ends by [`finish`](Self::finish), by its limits, by [`Handle::stop`], by a fatal error,
///   or when the last clone and the last fetch are dropped. Callers that still wait then get [`ClientError::Ended`],
///   and so does every later one.
///
/// Besides its crawl, a client costs one small entry for each page that is queued or in flight.
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
    /// Starts the crawl, as a task of the current tokio runtime. It stays open when it has nothing to do.
    ///
    /// # Errors
    /// Those of [`CrawlerBuilder::build`], or there is no tokio runtime.
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

    /// Fetches a page. This call queues the request, which skips the duplicate filter; the future that it returns waits
    /// for the result.
    ///
    /// # Errors
    /// The future fails with [`ClientError::Dropped`] if there is no page (with the reason, and the response if there
    /// is one), and with [`ClientError::Ended`] if the crawl ended first.
    pub fn fetch(&self, request: Request) -> Fetch<T> {
        let request = request.unfiltered();
        let key = (self.0.fingerprinter.of(&request), Arc::clone(&request.callback));
        let joined = match self.0.fetches.join(key) {
            Ok(joined) => joined,
            Err(ended) => return Fetch { outcome: Box::pin(async { Err(ended) }), shared: None },
        };
        if let Some(id) = joined.to_queue {
            self.0.handle.push(id.mark(request));
        }
        // The crawl stays alive while a caller waits.
        let client = self.clone();
        let mut outcome = joined.outcome;
        let outcome = async move {
            let told = outcome.wait_for(Option::is_some).await;
            let told = told.ok().and_then(|outcome| outcome.clone());
            drop(client);
            told.expect("the sender lives in the fetch, and tells an outcome before it is dropped")
        };
        Fetch { outcome: Box::pin(outcome), shared: Some(joined.shared) }
    }

    /// The handle of the client's crawl: stats, politeness of hosts. Requests that are pushed through it are crawled,
    /// but no caller gets their pages.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Whether the crawl has ended; every fetch then fails with [`ClientError::Ended`].
    pub fn is_ended(&self) -> bool {
        self.0.fetches.is_ended()
    }

    /// Ends the crawl and returns its report. Downloads in flight may end within `drain_timeout`, and their callers
    /// get their pages; callers of queued requests get [`ClientError::Ended`].
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

impl CrawlClient {
    /// Fetches a page like [`fetch`](Self::fetch), and gives it as a [`Page`], from which values can be selected. Callers that share the fetch get
    /// a page each, and share the body.
    ///
    /// ```
    /// # use huntsman_crawler::{CrawlClient, CrawlerBuilder, OnDemand, Request};
    /// # use huntsman_testkit::ScriptedDownloader;
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> huntsman_crawler::Result<()> {
    /// # let web = ScriptedDownloader::pages([("http://a.test/", "<h1>Mills</h1>")]);
    /// let client = CrawlClient::start(CrawlerBuilder::new(OnDemand::new()).downloader(web))?;
    /// let page = client.fetch_page(Request::parse("http://a.test/")?).await?;
    /// assert_eq!(page.css("h1::text")?.get_or("-"), "Mills");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `fetch`.
    pub fn fetch_page(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Page, ClientError>> + Send + use<> {
        let fetch = self.fetch(request.clone());
        async move { Ok(Page::new(request, fetch.await?)) }
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

/// A page that was asked for: a future of the value that the client's [`OnDemand`] makes of the page. Dropping it
/// gives up the page.
#[must_use = "a fetch that is dropped is given up"]
pub struct Fetch<T = Response> {
    outcome: BoxFuture<'static, Result<T, ClientError>>,
    /// `None` after the end of the crawl.
    shared: Option<Arc<OpenFetch<T>>>,
}

impl<T> Fetch<T> {
    /// Whether the request still waits in the queue: no work was done for it, and giving it up saves all of its cost.
    /// Once the request has left the queue this stays false, even while a retry or a redirect of it waits there.
    pub fn is_queued(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.has_begun())
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

/// Tells all callers that the crawl has ended, in case its task is dropped together with the runtime.
struct Ending<T>(Arc<Fetches<T>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.end("it was dropped");
    }
}
