//! The middleware traits: hooks around a download and around a callback, and their decisions.
//!
//! `process_request` runs in increasing order (low is near the engine), `process_response` and `process_exception` in
//! decreasing order (high is near the network). Hooks take `&self` and `&mut` values, so nothing is borrowed across
//! the fetch, and the engine sees, counts and attributes every drop.

use std::future::Future;

use crate::context::Context;
use crate::drop::DropReason;
use crate::error::Result;
use crate::fetch::{BoxFuture, FetchError};
use crate::page::Page;
use crate::request::Request;
use crate::response::Response;

/// What `process_request` decides.
#[derive(Debug)]
pub enum OnRequest {
    /// Continue with the next middleware, or with the network.
    Continue,
    /// Use this response: the download is skipped, and all `process_response` hooks still run.
    Respond(Box<Response>),
    /// Queue this request instead.
    Reschedule(Box<Request>),
    /// The download fails with this error and nothing is sent: the `process_exception` hooks decide, as after any failed download.
    Fail(Box<FetchError>),
    /// End the request without a page.
    Drop(DropReason),
}

impl OnRequest {
    /// Drops the request for a reason (a snake_case name, or free text).
    pub fn drop(reason: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Drop(DropReason::skipped(reason))
    }
}

/// What `process_response` decides.
#[derive(Debug)]
pub enum OnResponse {
    /// Continue with the next middleware, or with the spider.
    Continue,
    /// Stop the chain and queue this request instead.
    Reschedule(Box<Request>),
    /// End the request without a page.
    Drop(DropReason),
}

impl OnResponse {
    /// Drops the request for a reason (a snake_case name, or free text).
    pub fn drop(reason: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Drop(DropReason::skipped(reason))
    }
}

/// What `process_exception` decides; the first decision other than `Pass` wins.
#[derive(Debug)]
pub enum OnException {
    /// Leave the decision to the next middleware.
    Pass,
    /// Use this response instead of the error; it goes through the `process_response` chain.
    Respond(Box<Response>),
    /// Queue this request instead.
    Reschedule(Box<Request>),
}

/// Hooks between the engine and the downloader.
pub trait DownloaderMiddleware: Send + Sync + 'static {
    /// Name in records, stats and the setting `downloader_middlewares`; by default the name of the type.
    fn name(&self) -> &'static str {
        short_type_name::<Self>()
    }

    /// Place in the chain, by Scrapy's numbers: low is near the engine, high is near the network.
    fn order(&self) -> i32 {
        500
    }

    /// Called before the download. An error ends the request as failed, after the `process_exception` chain has run.
    fn process_request(
        &self,
        request: &mut Request,
        cx: &Context,
    ) -> impl Future<Output = Result<OnRequest>> + Send {
        let _ = (request, cx);
        async { Ok(OnRequest::Continue) }
    }

    /// Called after the download, or after another middleware returned a response.
    fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> impl Future<Output = Result<OnResponse>> + Send {
        let _ = (request, response, cx);
        async { Ok(OnResponse::Continue) }
    }

    /// Called after the download failed.
    fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        cx: &Context,
    ) -> impl Future<Output = Result<OnException>> + Send {
        let _ = (request, error, cx);
        async { Ok(OnException::Pass) }
    }
}

/// What a spider middleware decides about a page.
#[derive(Debug)]
pub enum OnPage {
    /// Pass the page on to the next middleware, and finally to the spider.
    Parse,
    /// Do not parse the page; if the reason is `failed`, the spider's `failed` is called.
    Skip(DropReason),
}

/// What a spider middleware decides about a request that a callback gave.
#[derive(Debug)]
pub enum OnFollow {
    /// Queue it.
    Keep,
    /// Do not queue it.
    Drop(DropReason),
}

impl OnFollow {
    /// Drops the request for a reason.
    pub fn drop(reason: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Drop(DropReason::skipped(reason))
    }
}

/// Hooks around the callback. They are synchronous and run, like `parse`, on the worker thread.
pub trait SpiderMiddleware: Send + Sync + 'static {
    /// Name in records and settings; by default the name of the type.
    fn name(&self) -> &'static str {
        short_type_name::<Self>()
    }

    /// Place in the chain: `process_page` runs in increasing order, `process_start` and `process_follow` in
    /// decreasing order.
    fn order(&self) -> i32 {
        500
    }

    /// Called for a start request, before it is queued.
    fn process_start(&self, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        let _ = (request, cx);
        Ok(OnFollow::Keep)
    }

    /// Called for a page, before the callback.
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        let _ = (page, cx);
        Ok(OnPage::Parse)
    }

    /// Called for a request that the callback gave, before it is queued.
    fn process_follow(&self, page: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        let _ = (page, request, cx);
        Ok(OnFollow::Keep)
    }
}

/// The last segment of a type's name, without generics.
pub(crate) fn short_type_name<T: ?Sized>() -> &'static str {
    let name = std::any::type_name::<T>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Object-safe version of [`DownloaderMiddleware`].
pub(crate) trait DynDownloaderMiddleware: Send + Sync {
    fn process_request<'a>(
        &'a self,
        request: &'a mut Request,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnRequest>>;
    fn process_response<'a>(
        &'a self,
        request: &'a Request,
        response: &'a mut Response,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnResponse>>;
    fn process_exception<'a>(
        &'a self,
        request: &'a Request,
        error: &'a FetchError,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnException>>;
}

impl<T: DownloaderMiddleware> DynDownloaderMiddleware for T {
    fn process_request<'a>(
        &'a self,
        request: &'a mut Request,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnRequest>> {
        Box::pin(DownloaderMiddleware::process_request(self, request, cx))
    }

    fn process_response<'a>(
        &'a self,
        request: &'a Request,
        response: &'a mut Response,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnResponse>> {
        Box::pin(DownloaderMiddleware::process_response(self, request, response, cx))
    }

    fn process_exception<'a>(
        &'a self,
        request: &'a Request,
        error: &'a FetchError,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<OnException>> {
        Box::pin(DownloaderMiddleware::process_exception(self, request, error, cx))
    }
}
