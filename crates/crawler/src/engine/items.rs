//! The item side: one task owns the pipelines and acknowledges batches of items.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use crate::context::{Context, Message};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::log;
use crate::pipeline::{DynPipeline, OnItem};

/// The items of one page (or a part of them), and the channel for the acknowledgement.
pub(crate) struct ItemBatch<I> {
    pub(crate) items: Vec<I>,
    pub(crate) acknowledge: oneshot::Sender<()>,
}

/// Number of batches that may wait for the pipelines. A full channel blocks the callbacks, which is the
/// back-pressure.
const QUEUED_BATCHES: usize = 64;

pub(crate) fn channel<I>() -> (mpsc::Sender<ItemBatch<I>>, mpsc::Receiver<ItemBatch<I>>) {
    mpsc::channel(QUEUED_BATCHES)
}

/// The pipelines in order.
pub(crate) struct Items<I> {
    pipelines: Vec<Box<dyn DynPipeline<I>>>,
    cx: Context,
}

impl<I: Send + 'static> Items<I> {
    /// Opens the pipelines in order; if one fails, those already opened are closed.
    pub(crate) async fn open(mut pipelines: Vec<Box<dyn DynPipeline<I>>>, cx: Context) -> Result<Self> {
        for index in 0..pipelines.len() {
            if let Err(error) = pipelines[index].open(&cx).await {
                for opened in pipelines[..index].iter_mut().rev() {
                    if let Err(error) = opened.close().await {
                        log::warn!("closing a pipeline: {error}");
                    }
                }
                return Err(error.context("opening a pipeline"));
            }
        }
        Ok(Self { pipelines, cx })
    }

    /// Processes batches until all senders are dropped, then closes the pipelines in reverse order.
    pub(crate) async fn run(mut self, mut batches: mpsc::Receiver<ItemBatch<I>>) -> Result<()> {
        let scraped = self.cx.stats().counter("item_scraped_count");
        let mut waiting = Vec::new();
        let mut failure = None;
        // All batches that are waiting share one flush.
        while batches.recv_many(&mut waiting, QUEUED_BATCHES).await > 0 {
            let mut passed = 0;
            let mut acknowledgements = Vec::with_capacity(waiting.len());
            for batch in waiting.drain(..) {
                for item in batch.items {
                    passed += u64::from(failure.is_none() && self.pass(item).await);
                }
                acknowledgements.push(batch.acknowledge);
            }
            scraped.add(i64::try_from(passed).unwrap_or(i64::MAX));
            if failure.is_none() {
                for pipeline in &mut self.pipelines {
                    if let Err(error) = guarded(async { pipeline.flush().await }).await {
                        failure = Some(());
                        self.cx.set_stopping();
                        self.cx.tell(Message::Fatal(error.context("writing items")));
                        break;
                    }
                }
            }
            if failure.is_some() {
                // Without the acknowledgement their pages are not settled, so a resumed job processes them again.
                continue;
            }
            if passed > 0 {
                self.cx.tell(Message::Items(passed));
            }
            for acknowledge in acknowledgements {
                // The visit may have been aborted.
                let _ = acknowledge.send(());
            }
        }
        let mut result = Ok(());
        for pipeline in self.pipelines.iter_mut().rev() {
            if let Err(error) = guarded(async { pipeline.close().await }).await {
                result = Err(error.context("closing a pipeline"));
            }
        }
        result
    }

    /// Passes one item through all pipelines. Returns whether the last one kept it.
    async fn pass(&mut self, mut item: I) -> bool {
        let Self { pipelines, cx } = self;
        for pipeline in pipelines {
            match guarded(async { pipeline.process_item(item, cx).await }).await {
                Ok(OnItem::Keep(kept)) => item = kept,
                Ok(OnItem::Drop(reason)) => {
                    cx.stats().inc("item_dropped_count");
                    cx.stats().inc(&format!("item_dropped_reasons_count/{reason}"));
                    cx.emit(&Event::ItemDropped { reason: &reason });
                    return false;
                }
                Err(error) => {
                    cx.stats().inc("item_error_count");
                    log::error!("a pipeline failed on an item: {error}");
                    cx.emit(&Event::ItemError { error: &error.to_string() });
                    return false;
                }
            }
        }
        if cx.has_observers() {
            cx.emit(&Event::ItemScraped);
        }
        true
    }
}

/// Turns a panic of user code into an error. The caller passes an async block, so that a method that panics before it
/// returns its future is covered as well.
async fn guarded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(Error::msg(format!("panicked: {}", panic_message(&*panic)))),
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
