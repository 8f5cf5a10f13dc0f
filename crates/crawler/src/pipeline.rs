//! Item pipelines. One task owns each of them, so they take `&mut self` and need no locks.

use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::context::Context;
use crate::dyn_spider::GivenItems;
use crate::error::{Error, Result, panic_message};
use crate::event::Event;
use crate::fetch::BoxFuture;
use crate::log;

/// What a pipeline does with an item.
#[derive(Debug)]
pub enum OnItem<I> {
    /// Passes the item on to the next pipeline.
    Keep(I),
    /// Drops the item; counted under `item_dropped_reasons_count/{reason}`.
    Drop(Cow<'static, str>),
}

/// Processes items. Pipelines run in the order in which they were added.
///
/// Items arrive one after another, those of a page in the order in which its callback gave them, so files are written
/// in that order and a pipeline needs no lock. A pipeline that waits for the network in
/// [`process_item`](Self::process_item) would delay the crawl; it should start the work there, for any number of
/// items at once, and await all of it in [`flush`](Self::flush), which is called before the page of the items is
/// settled.
pub trait Pipeline<I: Send + 'static>: Send + 'static {
    /// Called before the crawl starts. An error ends the run; pipelines that were already opened are closed.
    fn open(&mut self, cx: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// Processes one item. An error loses the item and is counted; the crawl continues.
    fn process_item(&mut self, item: I, cx: &Context) -> impl Future<Output = Result<OnItem<I>>> + Send;

    /// Called after a batch of items, before their page is settled. What was written must then be as durable as the
    /// pipeline promises.
    fn flush(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Called after the last item, in reverse order of the pipelines.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// Object-safe version of [`Pipeline`].
pub(crate) trait DynPipeline<I>: Send {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>>;
    fn process_item<'a>(&'a mut self, item: I, cx: &'a Context) -> BoxFuture<'a, Result<OnItem<I>>>;
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
    fn close(&mut self) -> BoxFuture<'_, Result<()>>;
}

impl<I: Send + 'static, T: Pipeline<I>> DynPipeline<I> for T {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(Pipeline::open(self, cx))
    }

    fn process_item<'a>(&'a mut self, item: I, cx: &'a Context) -> BoxFuture<'a, Result<OnItem<I>>> {
        Box::pin(Pipeline::process_item(self, item, cx))
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Pipeline::flush(self))
    }

    fn close(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Pipeline::close(self))
    }
}

/// The pipelines of a crawl in order.
pub(crate) struct Pipelines<I>(pub(crate) Vec<Box<dyn DynPipeline<I>>>);

/// [`Pipelines`] without their item type. A panic of a pipeline becomes an error.
pub(crate) trait DynPipelines: Send {
    /// Opens the pipelines in order; if one fails, those already opened are closed.
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>>;
    /// Passes items through all pipelines, one item after another. Returns how many of them the last one kept.
    fn pass<'a>(&'a mut self, items: GivenItems, cx: &'a Context) -> BoxFuture<'a, u64>;
    /// Flushes the pipelines in order, until one fails.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
    /// Closes all pipelines in reverse order.
    fn close(&mut self) -> BoxFuture<'_, Result<()>>;
}

impl<I: Send + 'static> DynPipelines for Pipelines<I> {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for index in 0..self.0.len() {
                if let Err(error) = self.0[index].open(cx).await {
                    for opened in self.0[..index].iter_mut().rev() {
                        if let Err(error) = opened.close().await {
                            log::warn!("closing a pipeline: {error}");
                        }
                    }
                    return Err(error.context("opening a pipeline"));
                }
            }
            Ok(())
        })
    }

    fn pass<'a>(&'a mut self, items: GivenItems, cx: &'a Context) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let mut kept = 0;
            for item in items.into_vec() {
                kept += u64::from(self.pass_one(item, cx).await);
            }
            kept
        })
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            for pipeline in &mut self.0 {
                guarded(async { pipeline.flush().await }).await?;
            }
            Ok(())
        })
    }

    fn close(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut result = Ok(());
            for pipeline in self.0.iter_mut().rev() {
                if let Err(error) = guarded(async { pipeline.close().await }).await {
                    result = Err(error.context("closing a pipeline"));
                }
            }
            result
        })
    }
}

impl<I: Send + 'static> Pipelines<I> {
    /// Passes one item through all pipelines. Returns whether the last one kept it.
    async fn pass_one(&mut self, mut item: I, cx: &Context) -> bool {
        for pipeline in &mut self.0 {
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
