//! SQLite: a table with a row per item, for queries.
//!
//! SQLite opens its own files: this is the one sink that does not write through the crate `files`, which only creates the database, so that it
//! is private, and refuses links. Rows are kept in memory and written in one transaction per flush, so that two feeds may share a file.

mod database;
mod layout;
mod position;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_crawler::{Context, Error, Event, OnItem, Pipeline, Result, Timestamp, log, seconds};
use serde::Serialize;

use super::feed::{FeedSettings, Filter, Mode};
use super::name::Name;
use super::record::{Fields, REST, object};
use database::Database;
use layout::{Layout, Row};
use position::Shared;
pub use position::TablePosition;

/// A pipeline that writes items to a table of an SQLite database, which other tables may share.
///
/// The columns are the declared fields, else those of the items: a field that is new becomes a new column, up to
/// `feed_max_columns`; what is beyond goes to the column `_rest` as a JSON object. Integers, real numbers, texts and NULL stay what they are; `true` and
/// `false` are 1 and 0; lists and objects are JSON text, and an integer beyond 64 bits is its text. Column names of SQLite ignore the case
/// of ASCII letters, so a field that differs from another one only in that becomes `name_2`.
///
/// Items are committed by the rules of all feeds, before their pages are acknowledged, in the journal mode WAL: a killed process loses none of them. Until the
/// feed is closed, some of them may be in the file `…-wal` beside the database, which belongs to it. A table without items is not made.
///
/// ```no_run
/// use huntsman_middleware::sinks::Sqlite;
/// # #[derive(serde::Serialize)] struct Quote;
/// # fn main() -> huntsman_crawler::Result<()> {
/// let feed: Sqlite<Quote> = Sqlite::append("quotes.sqlite")?;
/// let table = Sqlite::<Quote>::append("site.db?table=quotes")?.fields(["author", "text"]).rename("text", "quote");
/// # Ok(()) }
/// ```
pub struct Sqlite<T> {
    name: Name,
    mode: Mode,
    table: String,
    fields: Fields,
    filter: Option<Filter<T>>,
    shared: Arc<Shared>,
    is_of_job: bool,
    layout: Option<Layout>,
    rows: Vec<Row>,
    /// Estimated bytes of the rows that are not written yet.
    buffered: usize,
    settings: FeedSettings,
    context: Option<Context>,
    flushed_at: Timestamp,
    written: u64,
    has_warned: bool,
}

/// Estimated bytes of rows at which they are written.
const MAX_BUFFER: usize = 1 << 20;

/// The file and the table of a name: `site.db?table=quotes`. Without a table it is `items`.
pub(super) fn file_and_table(name: &str) -> (&str, &str) {
    name.rsplit_once("?table=").unwrap_or((name, "items"))
}

impl<T> Sqlite<T> {
    /// A feed that creates a new database. Its folder must exist.
    ///
    /// # Errors
    /// The file exists or cannot be created; the error says what to do.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::to_file(path.as_ref(), Mode::Create)
    }

    /// A feed that adds rows to a table, or makes the database or the table.
    ///
    /// # Errors
    /// The file cannot be opened, or is no SQLite database.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        Self::to_file(path.as_ref(), Mode::Append)
    }

    /// A feed that drops the table if it exists; other tables of the database stay.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn overwrite(path: impl AsRef<Path>) -> Result<Self> {
        Self::to_file(path.as_ref(), Mode::Overwrite)
    }

    /// A feed whose table belongs to a job: a new job drops the table, and a resumed one deletes the rows that were written after its last
    /// commit, so that no item is lost or duplicated. The position must be given to the builder, as that of
    /// [`Feed::of_job`](super::Feed::of_job).
    ///
    /// # Errors
    /// As [`append`](Self::append), or the name has parameters.
    pub fn of_job(path: impl AsRef<Path>) -> Result<(Self, TablePosition)> {
        let mut feed = Self::to_file(path.as_ref(), Mode::Append)?;
        if !feed.name.is_plain() {
            let shown = path.as_ref().display();
            return Err(Error::usage(format!(
                "file name {shown}: a file of a job has a name without parameters"
            )));
        }
        feed.is_of_job = true;
        let position = TablePosition(Arc::clone(&feed.shared));
        Ok((feed, position))
    }

    fn to_file(path: &Path, mode: Mode) -> Result<Self> {
        let given = path
            .to_str()
            .ok_or_else(|| Error::usage(format!("file name {}: not valid Unicode", path.display())))?;
        let (file, table) = file_and_table(given);
        if table.is_empty() || table.contains('\0') {
            return Err(Error::usage(format!("file name {given}: ?table= needs the name of a table")));
        }
        let feed = Self {
            name: Name::new(file.to_owned()),
            mode,
            table: table.to_owned(),
            fields: Fields::default(),
            filter: None,
            shared: Arc::new(Shared::new(file.to_owned(), table.to_owned())),
            is_of_job: false,
            layout: None,
            rows: Vec::new(),
            buffered: 0,
            settings: FeedSettings::default(),
            context: None,
            flushed_at: Timestamp(0),
            written: 0,
            has_warned: false,
        };
        if feed.name.is_plain() {
            // The database is opened now, so that an error shows before hours of crawling.
            feed.shared.put(Database::open(Path::new(file), table, mode)?);
        }
        Ok(feed)
    }

    /// Sets the name of the table (default: `items`, or what `?table=` of the file name says).
    pub fn table(mut self, name: &str) -> Self {
        name.clone_into(&mut self.table);
        self.shared.set_table(name);
        self
    }

    /// Writes only these fields, in this order.
    pub fn fields<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields.chosen = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Writes a field under another name.
    pub fn rename(mut self, field: &str, title: &str) -> Self {
        self.fields.renamed.push((field.to_owned(), title.to_owned()));
        self
    }

    /// Writes only items for which the closure returns true; the others are still passed to the next pipeline.
    pub fn filter(mut self, wanted: impl Fn(&T) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(wanted));
        self
    }

    /// Sets a parameter for the file name, such as `name` for `%(name)s`.
    pub fn param(mut self, key: &str, value: &str) -> Self {
        self.name.set(key, value);
        self
    }

    /// Writes the buffered rows in one transaction.
    fn write_out(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.buffered = 0;
        let Some(layout) = &mut self.layout else { return Ok(()) };
        self.shared.write(layout, &rows)
    }

    fn begin(&mut self, cx: &Context) -> Result<()> {
        let file = self.name.of_batch(1, cx.now())?;
        if !self.name.is_plain() {
            self.shared.put(Database::open(&PathBuf::from(&file), &self.table, self.mode)?);
        }
        let declared: Option<Vec<String>> = self
            .fields
            .chosen
            .as_ref()
            .map(|chosen| chosen.iter().map(|field| self.fields.title(field).to_owned()).collect());
        // With a job, its state has said already what becomes of the table.
        let drops = self.mode == Mode::Overwrite && !self.is_of_job;
        let columns = self.shared.begin(file, drops)?;
        self.layout = Some(Layout::new(columns, declared.as_deref(), self.settings.feed_max_columns));
        if let (false, Some(wal)) = (self.is_of_job, self.shared.log_file()) {
            cx.keep_durable(self.shared.file_name(), &wal);
        }
        Ok(())
    }
}

impl<T: Serialize + Send + 'static> Pipeline<T> for Sqlite<T> {
    async fn open(&mut self, cx: &Context) -> Result<()> {
        for (key, value) in &cx.settings().spider_args {
            self.name.set_default(key, value);
        }
        self.settings = cx.settings().of_or_default();
        self.flushed_at = cx.now();
        self.context = Some(cx.clone());
        self.begin(cx)
    }

    async fn process_item(&mut self, item: T, cx: &Context) -> Result<OnItem<T>> {
        if self.filter.as_ref().is_some_and(|wanted| !wanted(&item)) {
            return Ok(OnItem::Keep(item));
        }
        self.shared.check()?;
        let values = match self.fields.is_all() {
            true => object(&item),
            false => self.fields.select(&item),
        };
        let values = values
            .map_err(|error| error.context(format!("writing an item to {}", self.shared.file_name())))?;
        let Some(layout) = &mut self.layout else {
            return Err(Error::msg("the feed is not open"));
        };
        let (row, has_rest) = layout.row(values);
        if has_rest && !self.has_warned {
            self.has_warned = true;
            log::warn!(
                file = %self.shared.file_name(),
                "SQLite: items have more fields than feed_max_columns allows; those beyond are in the column {REST}"
            );
        }
        self.buffered += row.size();
        self.rows.push(row);
        self.written += 1;
        let is_late = cx.now().since(self.flushed_at) >= seconds(self.settings.feed_flush_interval);
        if is_late || self.rows.len() >= self.settings.feed_flush_items || self.buffered >= MAX_BUFFER {
            self.flushed_at = cx.now();
            self.write_out()?;
        }
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        if let Some(cx) = &self.context {
            self.flushed_at = cx.now();
        }
        self.write_out()
    }

    async fn close(&mut self) -> Result<()> {
        let closed = self.write_out().and_then(|()| self.shared.close());
        if let Some(cx) = &self.context {
            let end = if closed.is_ok() { "success" } else { "failed" };
            cx.stats().inc(&format!("feedexport/{end}_count/file"));
            let error = closed.as_ref().err().map(ToString::to_string);
            let name = self.shared.file_name();
            cx.emit(&Event::FeedSlotClosed { name: &name, items: self.written, error: error.as_deref() });
            cx.emit(&Event::FeedExporterClosed { name: self.name.template(), items: self.written });
        }
        closed
    }
}

impl<T> std::fmt::Debug for Sqlite<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, table, .. } = self;
        f.debug_struct("Sqlite").field("name", &name.template()).field("table", table).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
