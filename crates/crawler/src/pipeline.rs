//! Item pipelines. One task owns each of them, so they take `&mut self` and need no locks.

use std::borrow::Cow;
use std::future::Future;

use crate::context::Context;
use crate::error::Result;
use crate::fetch::BoxFuture;

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
