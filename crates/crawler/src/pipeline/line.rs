//! The line: all stages of a crawl, and the items that are on their way through them.

use std::collections::VecDeque;
use std::task::{Context as TaskContext, Poll};

use super::OnItem;
use super::stage::{InFlight, Stage, Work};
use crate::context::Context;
use crate::dyn_spider::GivenItems;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::fetch::{BoxFuture, FetchError, FetchErrorKind};
use crate::log;

/// The batch that an item came with.
pub(crate) type BatchId = u64;

/// An item on its way.
pub(super) struct Entry<I> {
    pub(super) item: I,
    pub(super) batch: BatchId,
}

/// Items of one batch that left the line.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) batch: BatchId,
    pub(crate) items: usize,
    /// How many of them passed all stages.
    pub(crate) kept: u64,
    /// Whether the crawl stopped before one of them could be processed, so that the batch has to be processed again.
    pub(crate) is_given_back: bool,
}

/// How an item left the line.
#[derive(Clone, Copy)]
enum End {
    Kept,
    Lost,
    GivenBack,
}

/// The pipelines of a crawl in order, with the items that are on their way through them.
///
/// Items never overtake each other. A concurrent stage gives its first item away only when the next concurrent stage has
/// room, and new items enter only when the first one has, so the number of items in the line is bounded.
pub(crate) struct Pipelines<I> {
    stages: Vec<Stage<I>>,
    /// Items that were taken and have not entered the first stage, by batch. No batch is empty.
    new: VecDeque<(BatchId, std::vec::IntoIter<I>)>,
    /// An item that was processed by the concurrent stage of this index, and has not gone on.
    arrived: Option<(usize, BatchId, Result<OnItem<I>>)>,
    ended: Vec<Ended>,
}

/// [`Pipelines`] without their item type. A panic of a pipeline becomes an error.
pub(crate) trait DynPipelines: Send {
    /// Opens the pipelines in order; if one fails, those already opened are closed.
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>>;
    /// Takes the items of a batch; returns their number.
    fn take(&mut self, items: GivenItems, batch: BatchId) -> usize;
    /// Whether all items that were taken have entered the first stage.
    fn has_room(&self) -> bool;
    /// Whether items are under way in a concurrent stage.
    fn is_busy(&self) -> bool;
    /// Ready when an item under way can go on.
    fn poll_arrival(&mut self, task: &mut TaskContext<'_>) -> Poll<()>;
    /// Moves all items as far as they can go without waiting for a concurrent stage. Returns those that left the line.
    fn advance<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Vec<Ended>>;
    /// Flushes the pipelines in order, until one fails.
    fn flush(&mut self) -> BoxFuture<'_, Result<()>>;
    /// Ends the work on all items.
    fn abandon(&mut self);
    /// Closes all pipelines in reverse order.
    fn close(&mut self) -> BoxFuture<'_, Result<()>>;
}

impl<I: Send + 'static> DynPipelines for Pipelines<I> {
    fn open<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            for index in 0..self.stages.len() {
                if let Err(error) = self.stages[index].open(cx).await {
                    for opened in self.stages[..index].iter_mut().rev() {
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

    fn take(&mut self, items: GivenItems, batch: BatchId) -> usize {
        let items = items.into_vec();
        let number = items.len();
        if number > 0 {
            self.new.push_back((batch, items.into_iter()));
        }
        number
    }

    fn has_room(&self) -> bool {
        self.new.is_empty()
    }

    fn is_busy(&self) -> bool {
        self.arrived.is_some() || self.stages.iter().any(Stage::is_busy)
    }

    fn poll_arrival(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        if self.arrived.is_some() {
            return Poll::Ready(());
        }
        // From the end, because an item that leaves makes room for those behind it.
        for index in (0..self.stages.len()).rev() {
            if self.has_room_from(index + 1)
                && let Poll::Ready((batch, result)) = self.stages[index].poll_first(task)
            {
                self.arrived = Some((index, batch, result));
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    fn advance<'a>(&'a mut self, cx: &'a Context) -> BoxFuture<'a, Vec<Ended>> {
        Box::pin(async move {
            loop {
                if self.is_busy() && self.arrived.is_none() {
                    std::future::poll_fn(|task| {
                        let _ = self.poll_arrival(task);
                        Poll::Ready(())
                    })
                    .await;
                }
                if let Some((index, batch, result)) = self.arrived.take() {
                    match self.judged(result, cx) {
                        Ok(item) => self.pass(Entry { item, batch }, index + 1, cx).await,
                        Err(end) => self.left(batch, end),
                    }
                } else if self.has_room_from(0)
                    && let Some(entry) = self.next_new()
                {
                    self.pass(entry, 0, cx).await;
                } else {
                    return std::mem::take(&mut self.ended);
                }
            }
        })
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            for stage in &mut self.stages {
                stage.flush().await?;
            }
            Ok(())
        })
    }

    fn abandon(&mut self) {
        self.new.clear();
        self.arrived = None;
        self.stages.iter_mut().for_each(Stage::abandon);
    }

    fn close(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut result = Ok(());
            for stage in self.stages.iter_mut().rev() {
                if let Err(error) = stage.close().await {
                    result = Err(error.context("closing a pipeline"));
                }
            }
            result
        })
    }
}

impl<I: Send + 'static> Pipelines<I> {
    pub(crate) fn new(stages: Vec<Stage<I>>) -> Self {
        Self { stages, new: VecDeque::new(), arrived: None, ended: Vec::new() }
    }

    /// The next item that enters the first stage.
    fn next_new(&mut self) -> Option<Entry<I>> {
        let (batch, items) = self.new.front_mut()?;
        let entry = items.next().map(|item| Entry { item, batch: *batch });
        if items.len() == 0 {
            self.new.pop_front();
        }
        entry
    }

    /// Whether the next concurrent stage at or after this index has room; the end always has.
    fn has_room_from(&self, index: usize) -> bool {
        self.stages[index..].iter().find_map(Stage::room).unwrap_or(true)
    }

    /// Passes one item through the stages from this index on, up to the next concurrent one, which has room.
    async fn pass(&mut self, entry: Entry<I>, first: usize, cx: &Context) {
        let Entry { mut item, batch } = entry;
        for index in first..self.stages.len() {
            let result = match &mut self.stages[index] {
                Stage::Concurrent(pipeline, in_flight) => {
                    in_flight.push_back(InFlight::new(Entry { item, batch }, &**pipeline, cx));
                    return;
                }
                Stage::Serial(pipeline, longest) => {
                    let mut work = Work::begin(*longest, || pipeline.process_item(item, cx));
                    (&mut work).await
                }
            };
            match self.judged(result, cx) {
                Ok(kept) => item = kept,
                Err(end) => return self.left(batch, end),
            }
        }
        if cx.has_observers() {
            cx.emit(&Event::ItemScraped);
        }
        self.left(batch, End::Kept);
    }

    /// The item that goes on; otherwise how it ended, which is counted and told here.
    fn judged(&self, result: Result<OnItem<I>>, cx: &Context) -> Result<I, End> {
        match result {
            Ok(OnItem::Keep(kept)) => Ok(kept),
            Ok(OnItem::Drop(reason)) => {
                cx.stats().inc("item_dropped_count");
                cx.stats().inc(&format!("item_dropped_reasons_count/{reason}"));
                cx.emit(&Event::ItemDropped { reason: &reason });
                Err(End::Lost)
            }
            Err(error) if cx.is_stopping() && is_cancelled(&error) => Err(End::GivenBack),
            Err(error) => {
                cx.stats().inc("item_error_count");
                log::error!("a pipeline failed on an item: {error}");
                cx.emit(&Event::ItemError { error: &error.to_string() });
                Err(End::Lost)
            }
        }
    }

    /// An item has left the line. Most items of a batch leave it together, so they share one entry.
    fn left(&mut self, batch: BatchId, end: End) {
        let is_same = self.ended.last().is_some_and(|last| last.batch == batch);
        if !is_same {
            self.ended.push(Ended { batch, items: 0, kept: 0, is_given_back: false });
        }
        let last = self.ended.last_mut().expect("there is one for this batch");
        last.items += 1;
        match end {
            End::Kept => last.kept += 1,
            End::Lost => {}
            End::GivenBack => last.is_given_back = true,
        }
    }
}

/// Whether an item could not be processed because a download of its pipeline was cancelled.
fn is_cancelled(error: &Error) -> bool {
    error.downcast_ref::<FetchError>().is_some_and(|error| error.kind() == FetchErrorKind::Cancelled)
}
