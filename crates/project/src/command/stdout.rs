//! Items on stdout: the pipeline of `--out -` and of `-o -`.

use std::io::{self, IsTerminal, Write};

use huntsman_crawler::{Context, OnItem, Pipeline, Result};
use serde::Serialize;

use super::render::escape_json;

/// Writes one JSON line per item to stdout, in whole lines. If stdout is closed, the crawl ends, because nothing reads
/// its records. On a terminal, control characters are escaped.
#[derive(Debug)]
pub struct StdoutLines {
    lines: Vec<u8>,
    is_terminal: bool,
}

impl Default for StdoutLines {
    fn default() -> Self {
        Self { lines: Vec::new(), is_terminal: io::stdout().is_terminal() }
    }
}

impl StdoutLines {
    /// The lines of this process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    ///
    /// # Errors
    /// The value has no form in JSON.
    pub fn add(&mut self, item: &impl Serialize) -> Result<()> {
        let start = self.lines.len();
        if let Err(cause) = serde_json::to_writer(&mut self.lines, item) {
            self.lines.truncate(start);
            return Err(cause.into());
        }
        self.lines.push(b'\n');
        Ok(())
    }

    /// Writes what was added.
    ///
    /// # Errors
    /// Stdout is closed.
    pub fn write_out(&mut self) -> Result<()> {
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
