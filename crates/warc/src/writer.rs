//! Writes records to a file, each as a gzip member, so that a reader can begin at any of them.

use std::io::{self, Write};

use crate::record::{Options, Record, RecordKind};

/// Writes records, each as a separate gzip member.
#[derive(Debug)]
pub struct WarcWriter<W: Write> {
    out: W,
    options: Options,
    /// The id of the `warcinfo` that later records belong to.
    info: Option<String>,
    records: u64,
}

impl<W: Write> WarcWriter<W> {
    /// Creates a writer to `out`, which should be buffered.
    pub fn new(out: W, options: Options) -> Self {
        Self { out, options, info: None, records: 0 }
    }

    /// Writes a record. Records after one about the file belong to it.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        let member = match &self.info {
            Some(info) => record.clone().field("WARC-Warcinfo-ID", info).to_member(self.options),
            None => record.to_member(self.options),
        };
        if record.kind() == RecordKind::Info {
            self.info = Some(record.id_or_made());
        }
        self.out.write_all(&member)?;
        self.records += 1;
        Ok(())
    }

    /// The number of records written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Flushes and returns the underlying writer.
    ///
    /// # Errors
    /// Flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
