//! Ends downloads of sources that can have no text that is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use huntsman_crawler::{
    Context, DownloaderMiddleware, DropReason, Event, Observer, OnDownload, OnRequest, OnResponse, Request,
    Response, Result,
};

use super::full_text::FULL_TEXT;
use super::reading::{NoText, TextKind};

/// Ends a download if its media type has no text, or if its body exceeds the limit of its type. The request is then
/// dropped with the reason `download_stopped` (state skipped); the detail is the [`NoText`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextOnly;

/// Number of bytes of the body that may still arrive; in the extensions of a request.
#[derive(Clone, Debug)]
struct Left(Arc<AtomicUsize>);

impl TextOnly {
    pub(crate) const NAME: &'static str = "copyvio_text_only";
    /// Above HttpCompression, which cannot decode a truncated body.
    const ORDER: i32 = 595;
}

/// Maximum number of bytes that are read of a response with these headers.
fn most_bytes(request: &Request, headers: &HeaderMap) -> Result<usize, NoText> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = text(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or_default().trim());
    let kind = match TextKind::of_media(media_type) {
        Some(kind) => kind,
        // A blog's feed is JSON.
        None if &*request.callback == FULL_TEXT => TextKind::Plain,
        None => return Err(NoText::MediaType(media_type.unwrap_or_default().to_owned())),
    };
    let most = kind.most_bytes();
    match text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > most => Err(NoText::TooLarge(most)),
        _ => Ok(most),
    }
}

impl DownloaderMiddleware for TextOnly {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if !request.is_nested() {
            request.extensions.insert(Left(Arc::new(AtomicUsize::new(usize::MAX))));
        }
        Ok(OnRequest::Continue)
    }

    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        _: &Context,
    ) -> Result<OnResponse> {
        if !response.has_flag("download_stopped") {
            return Ok(OnResponse::Continue);
        }
        let why = most_bytes(request, &response.headers).map_or_else(|why| why, NoText::TooLarge);
        let reason = DropReason::skipped("download_stopped").detail(why.to_string()).status(response.status);
        Ok(OnResponse::Drop(reason))
    }
}

impl Observer for TextOnly {
    fn event(&self, _: &Event<'_>) {}

    fn on_headers(&self, request: &Request, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        let Some(Left(left)) = request.extensions.get().filter(|_| status.is_success()) else {
            return OnDownload::Continue;
        };
        match most_bytes(request, headers) {
            Ok(most) => {
                left.store(most, Ordering::Relaxed);
                OnDownload::Continue
            }
            // Delivered without its body, so that `process_response` can report why.
            Err(_) => OnDownload::Deliver,
        }
    }

    fn on_bytes(&self, request: &Request, bytes: &[u8]) -> OnDownload {
        let Some(Left(left)) = request.extensions.get() else { return OnDownload::Continue };
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(bytes.len()), Ordering::Relaxed);
        if bytes.len() > before { OnDownload::Deliver } else { OnDownload::Continue }
    }
}
