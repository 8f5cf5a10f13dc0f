//! Items of a spider file on stdout.

use huntsman::{Context, OnItem, Pipeline, Result};

use crate::command::stdout::StdoutLines;
use crate::spider::PageRecord;

/// Writes the items of a spider file to stdout, one JSON line each, instead of the records of pages.
#[derive(Debug)]
pub(crate) struct StdoutItems(StdoutLines);

impl StdoutItems {
    pub(crate) fn new() -> Self {
        Self(StdoutLines::new())
    }
}

impl Pipeline<PageRecord> for StdoutItems {
    async fn open(&mut self, cx: &Context) -> Result<()> {
        // Rules of quality about the number of items mean these, also if there is none.
        cx.stats().counter("items/written");
        Ok(())
    }

    async fn process_item(&mut self, record: PageRecord, cx: &Context) -> Result<OnItem<PageRecord>> {
        for item in &record.items {
            self.0.add(item)?;
            cx.stats().inc("items/written");
        }
        Ok(OnItem::Keep(record))
    }

    async fn flush(&mut self) -> Result<()> {
        self.0.write_out()
    }
}
