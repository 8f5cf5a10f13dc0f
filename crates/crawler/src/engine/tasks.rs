//! The engine's own tasks: the death of one ends the crawl with an error that names it.
//!
//! A task that died unnoticed would leave the others waiting for what it did, or make them do their work over and over:
//! without its pipelines a crawl gives every page back to the queue and fetches it again.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use super::items::panic_message;
use crate::context::{Context, Message};
use crate::error::{Error, Result};

/// Runs work and turns its panic into an error.
pub(crate) async fn caught<T>(what: &str, work: impl Future<Output = T>) -> Result<T> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| Error::msg(format!("{what} panicked: {}", panic_message(&*panic))))
}

/// Spawns a task of the engine. If it panics, the loop is told at once and ends the crawl.
pub(crate) fn watched<T: Send + 'static>(
    cx: &Context,
    what: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let cx = cx.clone();
    tokio::spawn(async move {
        let done = caught(what, work).await;
        if let Err(panicked) = &done {
            // What is given back from here on is no fault of the pages.
            cx.set_stopping();
            cx.tell(Message::Fatal(Error::msg(panicked.to_string())));
        }
        done
    })
}
