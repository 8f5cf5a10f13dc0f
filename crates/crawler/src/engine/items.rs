//! The item side: one task owns the pipelines and acknowledges batches of items.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::poll_fn;

use tokio::sync::{mpsc, oneshot};

use crate::context::{Context, Message};
use crate::dyn_spider::GivenItems;
use crate::error::Result;
use crate::log;
use crate::pipeline::{BatchId, DynPipelines, Ended};

/// The items of one page (or a part of them), and the channel for the acknowledgement.
pub(crate) struct ItemBatch {
    pub(crate) items: GivenItems,
    pub(crate) acknowledge: oneshot::Sender<()>,
}

/// Number of batches that may wait for the pipelines. A full channel blocks the callbacks, which is the
/// back-pressure.
const QUEUED_BATCHES: usize = 64;

pub(crate) fn channel() -> (mpsc::Sender<ItemBatch>, mpsc::Receiver<ItemBatch>) {
    mpsc::channel(QUEUED_BATCHES)
}

/// The pipelines, opened, and the batches whose items are on their way through them.
pub(crate) struct Items {
    pipelines: Box<dyn DynPipelines>,
    cx: Context,
    open: HashMap<BatchId, OpenBatch>,
    last_batch: BatchId,
    /// Batches whose items have all passed, but were not flushed.
    passed: Vec<oneshot::Sender<()>>,
    /// Items that were kept since the last flush.
    kept: u64,
    has_failed: bool,
}

/// A batch that is not acknowledged yet.
struct OpenBatch {
    /// Number of its items that are on their way.
    left: usize,
    /// Whether the crawl stopped before one of its items could be processed.
    is_given_back: bool,
    acknowledge: oneshot::Sender<()>,
}

impl Items {
    /// Opens the pipelines in order; if one fails, those already opened are closed.
    pub(crate) async fn open(mut pipelines: Box<dyn DynPipelines>, cx: Context) -> Result<Self> {
        pipelines.open(&cx).await?;
        Ok(Self {
            pipelines,
            cx,
            open: HashMap::new(),
            last_batch: 0,
            passed: Vec::new(),
            kept: 0,
            has_failed: false,
        })
    }

    /// Processes batches until all senders are dropped, then closes the pipelines in reverse order.
    pub(crate) async fn run(mut self, mut batches: mpsc::Receiver<ItemBatch>) -> Result<()> {
        let scraped = self.cx.stats().counter("item_scraped_count");
        let mut received = Vec::new();
        let mut is_open = true;
        while is_open || self.pipelines.is_busy() {
            // Both branches can be cancelled: what arrives stays with the pipelines until `advance`. What is under way goes first,
            // so that pages are settled before more of them are begun.
            tokio::select! {
                biased;
                () = poll_fn(|task| self.pipelines.poll_arrival(task)), if self.pipelines.is_busy() => {}
                number = batches.recv_many(&mut received, QUEUED_BATCHES), if is_open && self.pipelines.has_room() => {
                    is_open = number > 0;
                }
            }
            received.drain(..).for_each(|batch| self.take(batch));
            if self.has_failed {
                continue;
            }
            let before = self.kept;
            for ended in self.pipelines.advance(&self.cx).await {
                self.left(&ended);
            }
            scraped.add(i64::try_from(self.kept - before).unwrap_or(i64::MAX));
            // All batches that have passed by now share one flush.
            if !self.passed.is_empty() {
                self.flush().await;
            }
        }
        self.pipelines.close().await
    }

    /// Hands a batch to the pipelines. If they have failed it is dropped: without the acknowledgement its page is not settled, so a
    /// resumed job processes it again.
    fn take(&mut self, batch: ItemBatch) {
        let ItemBatch { items, acknowledge } = batch;
        if self.has_failed {
            return;
        }
        self.last_batch += 1;
        let left = self.pipelines.take(items, self.last_batch);
        self.open.insert(self.last_batch, OpenBatch { left, is_given_back: false, acknowledge });
    }

    /// Counts items that left the pipelines.
    fn left(&mut self, ended: &Ended) {
        self.kept += ended.kept;
        let Entry::Occupied(mut entry) = self.open.entry(ended.batch) else { return };
        let batch = entry.get_mut();
        batch.left -= ended.items;
        batch.is_given_back |= ended.is_given_back;
        if batch.left == 0 {
            let batch = entry.remove();
            if batch.is_given_back {
                log::warn!(
                    "the crawl stops before all items of a page were processed; its page goes back to the queue"
                );
            } else {
                self.passed.push(batch.acknowledge);
            }
        }
    }

    /// Makes what the pipelines wrote durable, and acknowledges the batches that have passed. If that fails, no batch is
    /// acknowledged any more, and the crawl ends.
    async fn flush(&mut self) {
        if let Err(error) = self.pipelines.flush().await {
            self.has_failed = true;
            self.pipelines.abandon();
            self.open.clear();
            self.passed.clear();
            self.cx.set_stopping();
            self.cx.tell(Message::Fatal(error.context("writing items")));
            return;
        }
        let kept = std::mem::take(&mut self.kept);
        if kept > 0 {
            self.cx.tell(Message::Items(kept));
        }
        for acknowledge in self.passed.drain(..) {
            // The visit may have been aborted.
            let _ = acknowledge.send(());
        }
    }
}
