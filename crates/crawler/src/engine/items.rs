//! The item side: one task owns the pipelines and acknowledges batches of items.

use tokio::sync::{mpsc, oneshot};

use crate::context::{Context, Message};
use crate::dyn_spider::GivenItems;
use crate::error::Result;
use crate::pipeline::DynPipelines;

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

/// The pipelines, opened.
pub(crate) struct Items {
    pipelines: Box<dyn DynPipelines>,
    cx: Context,
}

impl Items {
    /// Opens the pipelines in order; if one fails, those already opened are closed.
    pub(crate) async fn open(mut pipelines: Box<dyn DynPipelines>, cx: Context) -> Result<Self> {
        pipelines.open(&cx).await?;
        Ok(Self { pipelines, cx })
    }

    /// Processes batches until all senders are dropped, then closes the pipelines in reverse order.
    pub(crate) async fn run(mut self, mut batches: mpsc::Receiver<ItemBatch>) -> Result<()> {
        let scraped = self.cx.stats().counter("item_scraped_count");
        let mut waiting = Vec::new();
        let mut has_failed = false;
        // All batches that are waiting share one flush.
        while batches.recv_many(&mut waiting, QUEUED_BATCHES).await > 0 {
            let mut passed = 0;
            let mut acknowledgements = Vec::with_capacity(waiting.len());
            for batch in waiting.drain(..) {
                if !has_failed {
                    passed += self.pipelines.pass(batch.items, &self.cx).await;
                }
                acknowledgements.push(batch.acknowledge);
            }
            scraped.add(i64::try_from(passed).unwrap_or(i64::MAX));
            if !has_failed && let Err(error) = self.pipelines.flush().await {
                has_failed = true;
                self.cx.set_stopping();
                self.cx.tell(Message::Fatal(error.context("writing items")));
            }
            if has_failed {
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
        self.pipelines.close().await
    }
}
