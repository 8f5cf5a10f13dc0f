//! The hooks of a client in its crawl: before a request, during a download, and at the record of a drop.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::fetches::{FetchId, Fetches};
use crate::context::Context;
use crate::drop::DropReason;
use crate::error::Result;
use crate::event::{Event, Observer};
use crate::fetch::{Downloader, DynDownloader, FetchError, FetchErrorKind, Watch};
use crate::middleware::{DownloaderMiddleware, OnRequest};
use crate::request::Request;
use crate::response::Response;

/// Drops requests that no caller waits for any more.
pub(super) struct Wanted<T>(pub(super) Arc<Fetches<T>>);

impl<T: Clone + Send + Sync + 'static> DownloaderMiddleware for Wanted<T> {
    fn name(&self) -> &'static str {
        "crawl_client"
    }

    /// Runs before robots.txt and all other middlewares, so that a request that is no longer wanted costs nothing.
    fn order(&self) -> i32 {
        10
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        Ok(match FetchId::of(request) {
            Some(id) if !self.0.begin(id) => {
                OnRequest::Drop(DropReason::skipped(FetchErrorKind::NotWanted.name()))
            }
            _ => OnRequest::Continue,
        })
    }
}

/// Ends downloads that no caller waits for any more.
pub(super) struct Cancelling<T> {
    pub(super) downloader: Box<dyn DynDownloader>,
    pub(super) fetches: Arc<Fetches<T>>,
    pub(super) grace: Duration,
}

impl<T: Clone + Send + Sync + 'static> Cancelling<T> {
    async fn unless_given_up(
        &self,
        request: &Request,
        download: impl Future<Output = Result<Response, FetchError>> + Send,
    ) -> Result<Response, FetchError> {
        let Some(id) = FetchId::of(request) else { return download.await };
        tokio::select! {
            biased;
            result = download => result,
            () = self.fetches.given_up(id, self.grace) => {
                Err(FetchError::new(FetchErrorKind::NotWanted, "all callers gave it up").after_sending())
            }
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Downloader for Cancelling<T> {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.unless_given_up(request, self.downloader.fetch(request)).await
    }

    async fn fetch_watched(&self, request: &Request, watch: Watch<'_>) -> Result<Response, FetchError> {
        self.unless_given_up(request, self.downloader.fetch_watched(request, watch)).await
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        self.downloader.address(host).await
    }
}

/// Reports to callers that their request ended without a page.
pub(super) struct Outcomes<T>(pub(super) Arc<Fetches<T>>);

impl<T: Clone + Send + Sync + 'static> Observer for Outcomes<T> {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        // Requests that are left over at the end of a crawl are reported with the reason of the end, right after
        // this.
        if let Some(id) = dropped.fetch
            && dropped.reason != "not_crawled"
        {
            self.0.fail(id, dropped);
        }
    }
}
