//! Parquet: columns with types, for analysis.

mod schema;
mod table;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::path::Path;
use std::sync::Arc;

use huntsman_crawler::{Error, Result, Settings, log};
use huntsman_files as files;
use serde::Serialize;
use serde_json::{Map, Value};

use super::delivery::Completion;
use super::feed::{Feed, FeedSettings, FieldChoice, Format};
use super::jsonl::Lines;
use super::record::REST;
use schema::Columns;
use table::Writer;

/// A Parquet file, compressed with Snappy.
///
/// A Parquet file has no meaning before its end is written, and its columns have one type each. So the items are written as JSON lines to a
/// journal first, `items.parquet.jsonl`, which has all properties of [`JsonLines`](super::JsonLines): it is readable after a kill, and a job goes on
/// with it. When the feed is closed, or a batch is full, the file is made of the journal, with types that fit all items; without a job the journal is then
/// removed. Append to a file that was made is refused; a journal that a killed crawl left is gone on with.
///
/// | values of a field | column |
/// |---|---|
/// | integers of 64 bits | `INT64` |
/// | real numbers, also with integers up to 2^53 | `DOUBLE` |
/// | `true` and `false` | `BOOLEAN` |
/// | texts, or no values at all | `BYTE_ARRAY`, String |
/// | lists of texts | list of String |
/// | anything else, or a mixture | `BYTE_ARRAY`, JSON |
///
/// Fields beyond `feed_max_columns` are kept as a JSON object in the column `_rest`. Declared fields are columns in their order, even without values.
///
/// ```no_run
/// use huntsman_middleware::sinks::Parquet;
/// # #[derive(serde::Serialize)] struct Quote;
/// # fn main() -> huntsman_crawler::Result<()> {
/// let feed: Parquet<Quote> = Parquet::overwrite("quotes.parquet")?;
/// let batches = Parquet::<Quote>::append("quotes-%(batch_id)05d.parquet")?.batch_items(1_000_000);
/// # Ok(()) }
/// ```
pub type Parquet<T> = Feed<T, Table>;

/// The format of [`Parquet`].
#[derive(Debug, Default)]
pub struct Table {
    limits: Limits,
}

/// What a file may have.
#[derive(Clone, Copy, Debug)]
struct Limits {
    columns: usize,
    group_rows: usize,
}

/// Bytes of JSON after which a row group is ended: they are in memory while it is written.
const GROUP_BYTES: usize = 32 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self::of(&FeedSettings::default())
    }
}

impl Limits {
    fn of(settings: &FeedSettings) -> Self {
        let FeedSettings { feed_max_columns, feed_parquet_group_rows, .. } = *settings;
        Self { columns: feed_max_columns.max(1), group_rows: feed_parquet_group_rows.max(1) }
    }
}

impl Format for Table {
    const NAME: &'static str = "Parquet";
    const APPENDS: bool = true;
    const IS_JOURNALED: bool = true;

    fn configure(&mut self, settings: &Settings) {
        self.limits = Limits::of(&settings.of_or_default());
    }

    fn begin(&mut self, _: &[u8], _: &FieldChoice<'_>, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        Lines.item(item, fields, out)?;
        match out.get(before) {
            Some(b'{') => Ok(()),
            _ => Err(Error::msg("an item with named fields is needed")),
        }
    }

    fn completion(&self, fields: &FieldChoice<'_>) -> Option<Completion> {
        let chosen = fields.0.chosen.iter().flatten();
        let declared: Vec<String> = chosen.map(|field| fields.0.title(field).to_owned()).collect();
        let limits = self.limits;
        Some(Arc::new(move |journal, file| complete(journal, file, &declared, limits)))
    }
}

/// Makes the file of a journal. The journal is read twice: for the types of the columns, and for their values.
fn complete(journal: &Path, file: &Path, declared: &[String], limits: Limits) -> Result<()> {
    let mut columns = Columns::new(declared, limits.columns);
    each_item(journal, |_, item| {
        columns.see(item);
        Ok(())
    })?;
    if columns.has_rest() {
        log::warn!(
            file = %file.display(),
            "Parquet: items have more fields than feed_max_columns allows; those beyond are in the column {REST}"
        );
    }
    files::replace(file, |to| {
        let mut table = Writer::new(BufWriter::with_capacity(1 << 18, to), columns)?;
        let mut bytes = 0;
        each_item(journal, |length, item| {
            table.row(item);
            bytes += length;
            if table.rows() >= limits.group_rows || bytes >= GROUP_BYTES {
                bytes = 0;
                table.end_group()?;
            }
            Ok(())
        })?;
        table.close()
    })
}

/// Calls a function for each item of a journal, with its length in bytes. A torn last line, which a crash left, is no item.
fn each_item(journal: &Path, mut see: impl FnMut(usize, Map<String, Value>) -> Result<()>) -> Result<()> {
    let mut reader = BufReader::with_capacity(1 << 18, File::open(journal)?);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break;
        }
        let item = serde_json::from_slice(&line).map_err(|cause| {
            Error::from(cause).context(format!("reading line {number} of {}", journal.display()))
        })?;
        see(line.len(), item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
