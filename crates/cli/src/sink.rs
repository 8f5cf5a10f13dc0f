//! Records on stdout: the pipeline of `--out -`.

use std::io::{self, IsTerminal, Write};

use huntsman::{Context, OnItem, Pipeline, Result};
use serde::Serialize;

use crate::render::escape_json;
use crate::spider::PageRecord;

/// Writes one JSON line per item to stdout, in whole lines. If stdout is closed, the crawl ends, because nobody reads
/// its records.
#[derive(Debug)]
pub(crate) struct StdoutLines {
    lines: Vec<u8>,
    is_terminal: bool,
}

impl StdoutLines {
    pub(crate) fn new() -> Self {
        Self { lines: Vec::new(), is_terminal: io::stdout().is_terminal() }
    }
}

impl StdoutLines {
    fn add(&mut self, item: &impl Serialize) -> Result<()> {
        let start = self.lines.len();
        if let Err(cause) = serde_json::to_writer(&mut self.lines, item) {
            self.lines.truncate(start);
            return Err(cause.into());
        }
        self.lines.push(b'\n');
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        let mut stdout = io::stdout().lock();
        if self.is_terminal {
            stdout.write_all(escape_json(&String::from_utf8_lossy(&self.lines)).as_bytes())?;
        } else {
            stdout.write_all(&self.lines)?;
        }
        self.lines.clear();
        Ok(stdout.flush()?)
    }
}

impl<I: Serialize + Send + 'static> Pipeline<I> for StdoutLines {
    async fn process_item(&mut self, item: I, _: &Context) -> Result<OnItem<I>> {
        self.add(&item)?;
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        self.write_out()
    }
}

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
