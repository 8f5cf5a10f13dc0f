//! Item pipelines: stages that items pass in order, one item at a time or many at once.

mod line;
mod stage;

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

pub(crate) use line::{BatchId, DynPipelines, Ended, Pipelines};
pub(crate) use stage::Stage;

use crate::context::Context;
use crate::error::Result;
use crate::settings::{Settings, seconds};

/// What a pipeline does with an item.
#[derive(Debug)]
pub enum OnItem<I> {
    /// Passes the item on to the next pipeline.
    Keep(I),
    /// Drops the item; counted under `item_dropped_reasons_count/{reason}`.
    Drop(Cow<'static, str>),
}

/// Processes items, one after another. Pipelines run in the order in which they were added.
///
/// Items of a page arrive in the order in which its callback gave them, so files are written in that order and a
/// pipeline needs no lock. While a pipeline waits in [`process_item`](Self::process_item), no other item passes it: one that
/// waits for a network or a database is a [`ConcurrentPipeline`].
pub trait Pipeline<I: Send + 'static>: Send + 'static {
    /// Whether items get a place here: a file, a database. A project writes a file of its own only if no pipeline says so. A pipeline that
    /// checks, changes or drops items returns false.
    fn keeps_items(&self) -> bool {
        true
    }

    /// Called before the crawl starts. An error ends the run; pipelines that were already opened are closed.
    fn open(&mut self, cx: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// The longest time for one item; by default the setting `item_timeout`. `None` is no limit. Asked once, after `open`.
    fn timeout(&self, settings: &Settings) -> Option<Duration> {
        item_timeout(settings)
    }

    /// Processes one item. An error loses the item and is counted; the crawl continues. So does an item that takes longer than
    /// [`timeout`](Self::timeout): its future is dropped where it waits. Code that computes or blocks without waiting is not interrupted.
    ///
    /// An error of a download that was cancelled because the crawl stops costs nothing: the page of the item goes back
    /// to the queue, and a job processes it again.
    fn process_item(&mut self, item: I, cx: &Context) -> impl Future<Output = Result<OnItem<I>>> + Send;

    /// Called after some items, before their pages are settled. What was written must then be as durable as the
    /// pipeline promises.
    fn flush(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Called after the last item, in reverse order of the pipelines.
    fn close(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

/// A pipeline that waits: it has many items at once, and passes them on in the order in which they came.
///
/// ```
/// # use std::time::Duration;
/// use huntsman_crawler::{ConcurrentPipeline, Context, OnItem, Result};
///
/// struct Translate;
///
/// impl ConcurrentPipeline<String> for Translate {
///     async fn process_item(&self, item: String, _: &Context) -> Result<OnItem<String>> {
///         // Here it would ask a server.
///         tokio::time::sleep(Duration::from_millis(200)).await;
///         Ok(OnItem::Keep(item.to_uppercase()))
///     }
/// }
/// # fn add(builder: huntsman_crawler::CrawlerBuilder<impl huntsman_crawler::Spider<Item = String>>) {
/// let builder = builder.concurrent_pipeline(Translate);
/// # let _ = builder; }
/// ```
///
/// It is called for [`at_once`](Self::at_once) items at the same time, each in a task of its own, so state that changes
/// needs a lock. An item counts from its call until it has left for the next pipeline: one slow item holds back those behind it,
/// and when all places are taken, the callbacks wait. An error, a panic, and a time above [`timeout`](Self::timeout) cost one item,
/// which is counted (`item_error_count`) and logged. The page of an item is settled only after the item has passed
/// all pipelines, so after a crash an item that was under way is processed again.
pub trait ConcurrentPipeline<I: Send + 'static>: Send + Sync + 'static {
    /// Whether items get a place here: a file, a database. A project writes a file of its own only if no pipeline says so. A pipeline that
    /// checks, changes or drops items returns false.
    fn keeps_items(&self) -> bool {
        true
    }

    /// Called before the crawl starts. An error ends the run; pipelines that were already opened are closed.
    fn open(&mut self, cx: &Context) -> impl Future<Output = Result<()>> + Send {
        let _ = cx;
        async { Ok(()) }
    }

    /// Number of items that it has at the same time, at least 1; by default the setting `concurrent_items`. Asked once, after
    /// `open`.
    fn at_once(&self, settings: &Settings) -> usize {
        settings.concurrent_items
    }

    /// The longest time for one item; by default the setting `item_timeout`. `None` is no limit. Asked once, after `open`.
    fn timeout(&self, settings: &Settings) -> Option<Duration> {
        item_timeout(settings)
    }

    /// Processes one item, while others are processed, too. Errors are as those of [`Pipeline::process_item`].
    fn process_item(&self, item: I, cx: &Context) -> impl Future<Output = Result<OnItem<I>>> + Send;

    /// Called after some items have passed all pipelines, before their pages are settled; other items may be under way. What was
    /// written for items that were processed must then be as durable as the pipeline promises.
    fn flush(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Called after the last item, in reverse order of the pipelines.
    fn close(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

fn item_timeout(settings: &Settings) -> Option<Duration> {
    (settings.item_timeout > 0.0).then(|| seconds(settings.item_timeout))
}
