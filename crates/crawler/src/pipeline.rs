//! Item pipelines: one task owns each of them, hence `&mut self` and no locks.

use std::borrow::Cow;
use std::future::Future;

use crate::context::Context;
use crate::error::Result;
use crate::fetch::BoxFuture;

/// What a pipeline does with an item.
#[derive(Debug)]
pub enum OnItem<I> {
    /// Hands it on to the next pipeline.
    Keep(I),
    /// Ends it here; counted under `item_dropped_reasons_count/{reason}`.
    Drop(Cow<'static, str>),
}

/// Works on items, in the order in which the pipelines were added.
///
/// Items come one after another, those of a page in the order in which its callback gave them, so files are written in that
/// order and a pipeline needs no lock. One that waits for a network would hold the crawl up that way: it starts its work in
/// [`process_item`](Self::process_item), for as many items at once as it likes, and awaits all of it in
/// [`flush`](Self::flush), which comes before the page of the items is settled.
pub trait Pipeline<I: Send + 'static>: Send + 'static {
    /// Before the crawl starts. An error ends the run; pipelines that were opened are closed again.
    fn open(&mut self, cx: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// One item. An error loses the item and is counted; the crawl goes on.
    fn process_item(&mut self, item: I, cx: &Context) -> impl Future<Output = Result<OnItem<I>>> + Send;

    /// After a batch of items, before their page is settled: what was written must be as durable as the pipeline
    /// promises.
    fn flush(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// After the last item. Called in reverse order.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// Object-safe twin of [`Pipeline`].
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
