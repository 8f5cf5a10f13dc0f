//! The spider of a client: it follows no links, and delivers each page to the callers that asked for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::fetches::{FetchId, Fetches};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fetch::FetchError;
use crate::output::Output;
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;
use crate::spider::Spider;
use crate::start::Start;

/// How long a download continues after all its callers gave it up.
const GRACE: Duration = Duration::from_secs(1);

/// The spider of the crawl behind a [`CrawlClient`](crate::CrawlClient). It determines the value that callers get for
/// a page.
///
/// ```
/// # use huntsman_crawler::{Context, CrawlClient, CrawlerBuilder, OnDemand, Page, Request};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> huntsman_crawler::Result<()> {
/// # let web = ScriptedDownloader::pages([("http://a.test/", "<title>Mills</title>")]);
/// let titles = OnDemand::reading(|page: &Page, _: &Context| page.title().map(str::to_owned));
/// let client = CrawlClient::start(CrawlerBuilder::new(titles).downloader(web))?;
/// let title = client.fetch(Request::parse("http://a.test/")?).await?;
/// assert_eq!(title.as_deref(), Some("Mills"));
/// # Ok(()) }
/// ```
pub struct OnDemand<T = Response> {
    read: Box<Read<T>>,
    pub(super) fetches: Arc<Fetches<T>>,
    pub(super) grace: Duration,
}

type Read<T> = dyn Fn(&Page, &Context) -> T + Send + Sync;

impl OnDemand {
    /// A spider whose callers get the response with body and headers. [`Page::new`] turns it into a page that can be
    /// scanned and selected from.
    pub fn new() -> Self {
        Self::reading(|page, _| page.response().clone())
    }
}

impl Default for OnDemand {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Send + Sync + 'static> OnDemand<T> {
    /// A spider whose callers get the value that this function makes of the page; it should be an `Arc` if it is
    /// expensive to clone. The function is called once per page, however many callers wait for it, on a worker thread
    /// of the crawl like a callback (at most `callback_threads` at once), and may branch on [`Page::callback`]. A panic
    /// in it is an error of that fetch, with reason `callback_panic`.
    pub fn reading(read: impl Fn(&Page, &Context) -> T + Send + Sync + 'static) -> Self {
        Self { read: Box::new(read), fetches: Arc::new(Fetches::new()), grace: GRACE }
    }

    /// Sets how long a download in flight continues after all its callers gave it up, in case the page is asked for
    /// again; one second by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }
}

impl<T: Clone + Send + Sync + 'static> Spider for OnDemand<T> {
    type Item = ();

    fn name(&self) -> &str {
        "on_demand"
    }

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        if let Some(id) = FetchId::of(page.request())
            && self.fetches.is_wanted(id)
        {
            self.fetches.deliver(id, (self.read)(page, out.context()));
        }
        Ok(())
    }

    /// Keeps the failed response for the error, which the record of the drop creates right after this.
    fn failed(&self, request: &Request, error: &Error, _: &mut Output<()>) -> Result<()> {
        let response = error.downcast_ref::<FetchError>().and_then(FetchError::response);
        if let (Some(id), Some(response)) = (FetchId::of(request), response) {
            self.fetches.store_response(id, response.clone());
        }
        Ok(())
    }
}

impl<T> fmt::Debug for OnDemand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").field("grace", &self.grace).finish_non_exhaustive()
    }
}
