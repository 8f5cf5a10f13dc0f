//! A request in progress on its connection: its body, with a limit, a deadline and its share of the memory, and the
//! resources it holds until its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::BodyExt;

use super::slots::ConnectionSlot;

/// Time limit for a whole body.
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// A request in progress; all clones stand for the same request. Handlers get it as an extractor.
#[derive(Clone, Debug)]
pub struct ActiveRequest {
    slot: Arc<ConnectionSlot>,
    has_unread_body: Arc<AtomicBool>,
}

impl ActiveRequest {
    /// Begins the next request of a connection.
    pub(super) fn begin<B: HttpBody>(slot: &Arc<ConnectionSlot>, request: &Request<B>) -> Self {
        slot.begin();
        let has_unread_body = Arc::new(AtomicBool::new(!request.body().is_end_stream()));
        Self { slot: Arc::clone(slot), has_unread_body }
    }

    /// Ends the request after the response; its body is freed. Returns false if the client may still be sending it.
    pub(super) fn end(&self) -> bool {
        self.slot.shrink();
        !self.has_unread_body.load(Ordering::Relaxed)
    }

    /// Number of open connections of this server, including this one.
    pub fn connections(&self) -> usize {
        self.slot.connections()
    }

    /// Lets the request in: from now on its connection and its body are not given up for new clients.
    ///
    /// # Errors
    /// Too many requests are let in already.
    pub fn let_in(&self) -> Result<(), Rejection> {
        self.slot.admit().then_some(()).ok_or(Rejection::Busy("too many requests at once"))
    }

    /// Reads the body of the request. It takes up memory until the response was sent.
    ///
    /// # Errors
    /// The body is larger than `most`, too slow or broken, or there is no memory for it.
    pub async fn read(&self, body: Body, most: usize) -> Result<Vec<u8>, Rejection> {
        let read = tokio::time::timeout(BODY_TIME, read(body, &self.slot, most)).await;
        let bytes = read.unwrap_or(Err(Rejection::TooSlow))?;
        self.has_unread_body.store(false, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Why the server does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A limit on concurrent use is reached; the text names it.
    Busy(&'static str),
    /// The body did not arrive within its time.
    TooSlow,
    /// The body has more than this number of bytes.
    TooLarge(usize),
    /// The body is malformed or broke off.
    Broken,
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Self::Busy(what) => {
                let text = format!("{what}; come again in a minute\n");
                (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "30")], text).into_response()
            }
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, "the body came too slowly\n").into_response(),
            Self::TooLarge(most) => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {most} bytes\n")).into_response()
            }
            Self::Broken => (StatusCode::BAD_REQUEST, "the body is broken\n").into_response(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for ActiveRequest {
    type Rejection = StatusCode;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        head.extensions.get().cloned().ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

async fn read(mut body: Body, slot: &ConnectionSlot, most: usize) -> Result<Vec<u8>, Rejection> {
    if body.size_hint().lower() > most as u64 {
        return Err(Rejection::TooLarge(most));
    }
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Rejection::Broken)?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > most {
            return Err(Rejection::TooLarge(most));
        }
        let before = bytes.capacity();
        bytes.reserve(data.len());
        // Memory is reserved for received bytes and not for announced ones, since announcing costs a client nothing.
        if !slot.grow(bytes.capacity() - before) {
            return Err(Rejection::Busy("too many bodies at once"));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}
