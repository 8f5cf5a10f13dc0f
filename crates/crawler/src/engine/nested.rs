//! Nested downloads: what a callback or a component asks for while its page or request waits.

use std::sync::Arc;
use std::time::Duration;

use super::chain::{DOWNLOADER, Exchanged, NESTED_WAIT};
use super::core::Core;
use crate::active::CountedBytes;
use crate::context::{Context, Exchange};
use crate::fetch::{BoxFuture, FetchError, FetchErrorKind};
use crate::request::{Nested, Request};
use crate::response::Response;

impl Exchange for Core {
    fn download(
        self: Arc<Self>,
        request: Request,
        cx: Context,
    ) -> BoxFuture<'static, Result<Response, FetchError>> {
        /// More steps than any limit of redirects and retries allows.
        const STEPS: usize = 100;
        Box::pin(async move {
            let mut request = request;
            for _ in 0..STEPS {
                request.extensions.insert(Nested);
                self.assign(&mut request, None).await;
                if let Some(at) = request.not_before.take() {
                    let wait: Duration = at.since(self.cx.now());
                    tokio::time::sleep(wait.min(NESTED_WAIT)).await;
                }
                match self.chain.exchange(request, &self.sender, &cx).await {
                    Exchanged::Page(_, mut response) => {
                        // It is the callback's now, to keep as long as it likes.
                        response.counted = CountedBytes::default();
                        return Ok(response);
                    }
                    Exchanged::Reschedule(again) => request = *again,
                    Exchanged::Drop(_, component, reason) => {
                        let detail = reason.detail.as_deref().unwrap_or(&reason.reason);
                        // A failure of the network says by itself what it is; a middleware that decides against a request is named.
                        let message = match component {
                            DOWNLOADER => detail.to_owned(),
                            component => format!("{component}: {detail}"),
                        };
                        let kind =
                            FetchErrorKind::of_name(&reason.reason).unwrap_or(FetchErrorKind::Middleware);
                        let error = FetchError::new(kind, message).with_reason(reason.reason.clone());
                        return Err(match reason.status {
                            Some(status) => error.with_status(status),
                            None => error,
                        });
                    }
                }
            }
            Err(FetchError::new(FetchErrorKind::Middleware, "too many redirects and retries"))
        })
    }
}
