//! A stage: one pipeline without its type, and the items that it works on.

use std::any::Any;
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use tokio::task::JoinHandle;
use tokio::time::Sleep;

use super::line::{BatchId, Entry};
use super::{ConcurrentPipeline, OnItem, Pipeline};
use crate::context::Context;
use crate::error::{Error, Result, panic_message};
use crate::fetch::BoxFuture;
use crate::settings::Settings;

/// Object-safe version of [`Pipeline`].
pub(crate) trait DynPipeline<I>: Send {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>>;
    fn process_item<'a>(&'a mut self, item: I, cx: &'a Context) -> BoxFuture<'a, Result<OnItem<I>>>;
    fn timeout(&self, settings: &Settings) -> Option<Duration>;
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

    fn timeout(&self, settings: &Settings) -> Option<Duration> {
        Pipeline::timeout(self, settings)
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Pipeline::flush(self))
    }

    fn close(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Pipeline::close(self))
    }
}

/// The part of a [`ConcurrentPipeline`] that is called by the line, object-safe. `start` begins the work on an item in a task of
/// its own.
pub(crate) trait DynConcurrent<I>: Send + Sync {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>>;
    fn start(&self, item: I, cx: Context) -> JoinHandle<Result<OnItem<I>>>;
    fn flush(&self) -> BoxFuture<'_, Result<()>>;
    fn close(&self) -> BoxFuture<'_, Result<()>>;
    fn at_once(&self) -> usize;
}

/// A concurrent pipeline with its limits, which are known once it is open.
struct Shared<P> {
    pipeline: Arc<P>,
    at_once: usize,
    timeout: Option<Duration>,
}

impl<I: Send + 'static, P: ConcurrentPipeline<I>> DynConcurrent<I> for Shared<P> {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let pipeline = Arc::get_mut(&mut self.pipeline);
            let pipeline = pipeline.expect("no item is under way before the pipelines are open");
            pipeline.open(cx).await?;
            self.at_once = pipeline.at_once(cx.settings()).max(1);
            self.timeout = pipeline.timeout(cx.settings());
            Ok(())
        })
    }

    fn start(&self, item: I, cx: Context) -> JoinHandle<Result<OnItem<I>>> {
        let (pipeline, timeout) = (Arc::clone(&self.pipeline), self.timeout);
        tokio::spawn(async move { Work::begin(timeout, || Box::pin(pipeline.process_item(item, &cx))).await })
    }

    fn flush(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.pipeline.flush())
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.pipeline.close())
    }

    fn at_once(&self) -> usize {
        self.at_once
    }
}

/// One pipeline of a crawl.
pub(crate) enum Stage<I> {
    /// It has one item at a time. The longest time for one is known once the pipeline is open.
    Serial(Box<dyn DynPipeline<I>>, Option<Duration>),
    /// It has many, which leave it in their order.
    Concurrent(Box<dyn DynConcurrent<I>>, FuturesOrdered<InFlight<I>>),
}

impl<I: Send + 'static> Stage<I> {
    pub(crate) fn serial(pipeline: impl Pipeline<I>) -> Self {
        Self::Serial(Box::new(pipeline), None)
    }

    pub(crate) fn concurrent(pipeline: impl ConcurrentPipeline<I>) -> Self {
        let shared = Shared { pipeline: Arc::new(pipeline), at_once: 1, timeout: None };
        Self::Concurrent(Box::new(shared), FuturesOrdered::new())
    }

    pub(super) async fn open(&mut self, cx: &Context) -> Result<()> {
        match self {
            Self::Serial(pipeline, timeout) => {
                pipeline.open(cx).await?;
                *timeout = pipeline.timeout(cx.settings());
                Ok(())
            }
            Self::Concurrent(pipeline, _) => pipeline.open(cx).await,
        }
    }

    pub(super) async fn flush(&mut self) -> Result<()> {
        match self {
            Self::Serial(pipeline, _) => guarded(async { pipeline.flush().await }).await,
            Self::Concurrent(pipeline, _) => guarded(async { pipeline.flush().await }).await,
        }
    }

    pub(super) async fn close(&mut self) -> Result<()> {
        match self {
            Self::Serial(pipeline, _) => guarded(async { pipeline.close().await }).await,
            Self::Concurrent(pipeline, _) => guarded(async { pipeline.close().await }).await,
        }
    }

    /// Whether a concurrent stage can take one more item; `None` if the stage is serial.
    pub(super) fn room(&self) -> Option<bool> {
        match self {
            Self::Serial(..) => None,
            Self::Concurrent(pipeline, in_flight) => Some(in_flight.len() < pipeline.at_once()),
        }
    }

    /// Whether items are under way in it.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Concurrent(_, in_flight) if !in_flight.is_empty())
    }

    /// The first of its items, as soon as it is processed. Pending if there is none.
    pub(super) fn poll_first(&mut self, task: &mut TaskContext<'_>) -> Poll<(BatchId, Result<OnItem<I>>)> {
        match self {
            Self::Concurrent(_, in_flight) if !in_flight.is_empty() => {
                match in_flight.poll_next_unpin(task) {
                    Poll::Ready(Some(first)) => Poll::Ready(first),
                    Poll::Ready(None) | Poll::Pending => Poll::Pending,
                }
            }
            _ => Poll::Pending,
        }
    }

    /// Ends the work on all its items.
    pub(super) fn abandon(&mut self) {
        if let Self::Concurrent(_, in_flight) = self {
            in_flight.clear();
        }
    }
}

/// The work on one item of a concurrent stage; if it is dropped, the work ends.
pub(crate) struct InFlight<I> {
    batch: BatchId,
    work: JoinHandle<Result<OnItem<I>>>,
}

impl<I> InFlight<I> {
    pub(super) fn new(entry: Entry<I>, pipeline: &dyn DynConcurrent<I>, cx: &Context) -> Self {
        Self { batch: entry.batch, work: pipeline.start(entry.item, cx.clone()) }
    }
}

impl<I> Future for InFlight<I> {
    type Output = (BatchId, Result<OnItem<I>>);

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Poll::Ready(ended) = self.work.poll_unpin(task) else { return Poll::Pending };
        // The task itself panics if a value that the pipeline owns panics when it is dropped.
        Poll::Ready((self.batch, ended.unwrap_or_else(|cause| Err(Error::from(cause)))))
    }
}

impl<I> Drop for InFlight<I> {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// The work of a pipeline on one item: a panic ends it with an error, and so does a time above the limit.
///
/// It is a future of few words, because it is moved for every item of every stage. A timer costs more than most items, so
/// there is none until the first wait.
pub(super) struct Work<'a, T> {
    future: BoxFuture<'a, Result<T>>,
    longest: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'a, T: Send + 'a> Work<'a, T> {
    /// A method that panics before it returns its future is covered as well.
    pub(super) fn begin(
        longest: Option<Duration>,
        method: impl FnOnce() -> BoxFuture<'a, Result<T>>,
    ) -> Self {
        let future = catch_unwind(AssertUnwindSafe(method));
        let future = future.unwrap_or_else(|panic| Box::pin(ready(Err(panicked(&*panic)))));
        Self { future, longest, timer: None }
    }
}

impl<T> Future for Work<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<T>> {
        let this = &mut *self;
        match catch_unwind(AssertUnwindSafe(|| this.future.as_mut().poll(task))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(result),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Err(panicked(&*panic))),
        }
        let Some(longest) = this.longest else { return Poll::Pending };
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(longest)));
        timer.as_mut().poll(task).map(|()| {
            Err(Error::msg(format!("it took longer than {} s (setting item_timeout)", longest.as_secs_f64())))
        })
    }
}

/// Turns a panic of user code into an error. The caller passes an async block, so that a method that panics before it
/// returns its future is covered as well.
async fn guarded<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(panicked(&*panic)),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    Error::msg(format!("panicked: {}", panic_message(panic)))
}
