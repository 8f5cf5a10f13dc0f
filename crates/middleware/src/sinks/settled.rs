//! Lines that say which requests of a shared queue were settled.

use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{Event, Observer, Work};
use serde_json::json;

/// The line of a request that was settled: `{"settled":"17/4096","epoch":3}`.
pub(super) fn settled_line(work: &Work) -> String {
    format!("{}\n", json!({"settled": work.name().to_string(), "epoch": work.epoch}))
}

/// Lines that a feed writes after the items that it has: with its next items, and with its end at the latest.
#[derive(Clone, Debug, Default)]
pub(super) struct LinesToAdd(Arc<Mutex<Vec<u8>>>);

impl LinesToAdd {
    fn add(&self, line: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(line.as_bytes());
    }

    /// Moves the lines behind the items.
    pub(super) fn take_into(&self, buffer: &mut Vec<u8>) {
        buffer.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Adds to a file of page records which of them were settled, for a crawl that several processes share: a page whose process died may have
/// a record of two of them, and the settled one counts. Given by [`JsonLines::settled`](super::JsonLines::settled).
#[derive(Debug)]
pub struct SettledPages(pub(super) LinesToAdd);

impl Observer for SettledPages {
    fn event(&self, event: &Event<'_>) {
        if let Event::WorkSettled { work, delivered: true } = event {
            self.0.add(&settled_line(work));
        }
    }
}
