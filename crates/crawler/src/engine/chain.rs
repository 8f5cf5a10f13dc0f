//! The downloader chain: passes one request through the middlewares and the network.

use std::sync::Arc;
use std::time::Duration;

use super::assembly::Ordered;
use super::send::Sender;
use crate::context::Context;
use crate::drop::DropReason;
use crate::error::Error;
use crate::fetch::{FetchError, FetchErrorKind};
use crate::log;
use crate::middleware::{DynDownloaderMiddleware, OnException, OnRequest, OnResponse};
use crate::request::Request;
use crate::response::Response;

/// The result of passing a request through the chain and the network.
#[expect(clippy::large_enum_variant, reason = "moved once per page; a box would be an allocation per page")]
pub(crate) enum Exchanged {
    /// A response for the spider.
    Page(Request, Response),
    /// Another request replaces this one.
    Reschedule(Box<Request>),
    /// There is no page: the component that decided, the reason, and the error if there was one.
    Drop(Request, &'static str, DropReason),
}

/// The downloader side: middlewares in increasing order, then the network.
pub(crate) struct Chain {
    pub(crate) middlewares: Vec<Ordered<Arc<dyn DynDownloaderMiddleware>>>,
}

impl Chain {
    /// Passes one request through `process_request`, the network, and back.
    pub(crate) async fn exchange(&self, mut request: Request, sender: &Sender, cx: &Context) -> Exchanged {
        let mut answer = None;
        for Ordered { name, part, .. } in &self.middlewares {
            match part.process_request(&mut request, cx).await {
                Ok(OnRequest::Continue) => {}
                Ok(OnRequest::Respond(response)) => {
                    answer = Some(Ok(*response));
                    break;
                }
                Ok(OnRequest::Fail(error)) => {
                    answer = Some(Err((*name, *error)));
                    break;
                }
                Ok(OnRequest::Reschedule(again)) => return Exchanged::Reschedule(again),
                Ok(OnRequest::Drop(reason)) => return Exchanged::Drop(request, name, reason),
                Err(error) => {
                    answer = Some(Err((*name, middleware_error(name, error))));
                    break;
                }
            }
        }
        let answer = match answer {
            Some(answer) => answer,
            None => sender.send(&request, cx).await.map_err(|error| (DOWNLOADER, error)),
        };
        let response = match answer {
            Ok(response) => response,
            Err((component, error)) => match self.exception(&request, &error, cx).await {
                OnException::Respond(response) => *response,
                OnException::Reschedule(again) => return Exchanged::Reschedule(again),
                OnException::Pass => return Exchanged::Drop(request, component, error.into_drop()),
            },
        };
        self.response(request, response, cx).await
    }

    async fn response(&self, request: Request, mut response: Response, cx: &Context) -> Exchanged {
        for Ordered { name, part, .. } in self.middlewares.iter().rev() {
            match part.process_response(&request, &mut response, cx).await {
                Ok(OnResponse::Continue) => {}
                Ok(OnResponse::Reschedule(again)) => return Exchanged::Reschedule(again),
                Ok(OnResponse::Drop(reason)) => {
                    return Exchanged::Drop(request, name, reason.answered(response));
                }
                Err(error) => {
                    // An error of the response itself (a body that cannot be decoded) keeps its kind.
                    let reason = match error.downcast_ref::<FetchError>().map(FetchError::drop_reason) {
                        Some(reason) => reason.with_error(error),
                        None => middleware_error(name, error).into_drop(),
                    };
                    return Exchanged::Drop(request, name, reason.status(response.status));
                }
            }
        }
        Exchanged::Page(request, response)
    }

    async fn exception(&self, request: &Request, error: &FetchError, cx: &Context) -> OnException {
        for Ordered { name, part, .. } in self.middlewares.iter().rev() {
            match part.process_exception(request, error, cx).await {
                Ok(OnException::Pass) => {}
                Ok(answer) => return answer,
                Err(failure) => {
                    log::warn!(url = %request.url, "{name} failed on an exception: {failure}");
                    cx.stats().inc("middleware_errors");
                }
            }
        }
        OnException::Pass
    }
}

fn middleware_error(name: &str, error: Error) -> FetchError {
    FetchError::new(FetchErrorKind::Middleware, format!("{name}: {error}")).with_source(error.into_boxed())
}

/// What stands for the name of a middleware where the download itself failed.
pub(crate) const DOWNLOADER: &str = "downloader";
/// Longest time that a nested download waits for a retry.
pub(crate) const NESTED_WAIT: Duration = Duration::from_secs(60);
