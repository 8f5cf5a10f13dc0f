//! Records on stdout: the pipeline of `--out -`.

use std::io::{self, IsTerminal, Write};

use huntsman::{Context, OnItem, Pipeline, Result};
use serde::Serialize;

use crate::render::escape_json;

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

impl<I: Serialize + Send + 'static> Pipeline<I> for StdoutLines {
    async fn process_item(&mut self, item: I, _: &Context) -> Result<OnItem<I>> {
        let start = self.lines.len();
        if let Err(cause) = serde_json::to_writer(&mut self.lines, &item) {
            self.lines.truncate(start);
            return Err(cause.into());
        }
        self.lines.push(b'\n');
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
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
