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
    async fn process_item(&mut self, record: PageRecord, _: &Context) -> Result<OnItem<PageRecord>> {
        record.items.iter().try_for_each(|item| self.0.add(item))?;
        Ok(OnItem::Keep(record))
    }

    async fn flush(&mut self) -> Result<()> {
        self.0.write_out()
    }
}
