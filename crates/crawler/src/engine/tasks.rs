//! The engine's own tasks: if one dies, the crawl ends with an error that names it.
//!
//! If the death of a task went unnoticed, the others would wait for it for ever, or repeat their work: without its
//! pipelines a crawl returns every page to the queue and fetches it again.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

use crate::context::{Context, Message};
use crate::error::{Error, Result, panic_message};

/// Runs work and turns its panic into an error.
pub(crate) async fn catch_panic<T>(what: &str, work: impl Future<Output = T>) -> Result<T> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| Error::msg(format!("{what} panicked: {}", panic_message(&*panic))))
}

/// Spawns a task of the engine. If the task panics, the loop is notified at once and ends the crawl.
pub(crate) fn watched<T: Send + 'static>(
    cx: &Context,
    what: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<Result<T>> {
    let cx = cx.clone();
    tokio::spawn(async move {
        let done = catch_panic(what, work).await;
        if let Err(panicked) = &done {
            // Requests that are returned to the queue from here on are not the fault of their pages.
            cx.set_stopping();
            cx.tell(Message::Fatal(Error::msg(panicked.to_string())));
        }
        done
    })
}
