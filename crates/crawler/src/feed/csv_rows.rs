//! Reads the rows of a CSV feed.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::rc::Rc;

use csv::{ByteRecord, Reader, ReaderBuilder, StringRecord};
use encoding_rs::{Encoding, WINDOWS_1252};
use serde::de::DeserializeOwned;

use super::{FeedLimits, FeedReport, encoding_named, tell_end, text_of};
use crate::error::{Error, Result};
use crate::page::Page;
use crate::text_source::{TextSource, WINDOW};

/// The rows of a CSV feed as values of a type that serde can read: a struct with the names of the columns, or a map.
///
/// The document may be packed with gzip, which is recognised by the first bytes. Its encoding is that of the header; without one it is UTF-8,
/// or windows-1252 if it is not valid UTF-8. A row with another number of cells than there are columns, or with a value that does not fit,
/// is left out and told by [`report`](Self::report) and [`check`](Self::check).
///
/// ```
/// # use huntsman_crawler::{CsvRows, Page, Request, Response};
/// # let request = Request::parse("https://shop.example/prices.csv")?;
/// # let page = Page::new(request.clone(), Response::html(request.url, "name;price\nMill;12.5\nDam;x\n"));
/// #[derive(serde::Deserialize)]
/// struct Price {
///     name: String,
///     price: f64,
/// }
///
/// let mut rows = CsvRows::<Price>::new(&page).delimiter(b';');
/// assert_eq!(rows.by_ref().map(|row| (row.name, row.price)).collect::<Vec<_>>(), [("Mill".to_owned(), 12.5)]);
/// assert!(rows.check().unwrap_err().to_string().contains("line 3"));
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[doc(alias = "csviter")]
pub struct CsvRows<'a, Row> {
    page: &'a Page,
    options: CsvOptions,
    limits: FeedLimits,
    reading: Option<Reading<'a>>,
    is_ended: bool,
    report: FeedReport,
    row: PhantomData<fn() -> Row>,
}

/// How the text is divided into cells.
#[derive(Clone, Debug)]
pub(super) struct CsvOptions {
    pub(super) delimiter: u8,
    pub(super) quote: u8,
    pub(super) headers: Option<StringRecord>,
    pub(super) encoding: Option<&'static Encoding>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', headers: None, encoding: None }
    }
}

impl CsvOptions {
    pub(super) fn name_columns<I>(&mut self, names: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.headers = Some(names.into_iter().collect::<Vec<_>>().iter().map(AsRef::as_ref).collect());
    }

    pub(super) fn decode_as(&mut self, label: &str) -> Result<()> {
        self.encoding = Some(encoding_named(label)?);
        Ok(())
    }
}

struct Reading<'a> {
    rows: Reader<Utf8<'a>>,
    /// Number of bytes that may be read for the row that is being read.
    left: Rc<Cell<usize>>,
    headers: Option<StringRecord>,
    bytes: ByteRecord,
}

impl<'a, Row: DeserializeOwned> CsvRows<'a, Row> {
    /// The rows of a page, with commas between the cells and the names of the columns in the first row.
    pub fn new(page: &'a Page) -> Self {
        Self::with(page, CsvOptions::default())
    }

    pub(super) fn with(page: &'a Page, options: CsvOptions) -> Self {
        Self {
            page,
            options,
            limits: FeedLimits::default(),
            reading: None,
            is_ended: false,
            report: FeedReport::default(),
            row: PhantomData,
        }
    }

    /// Sets the character between cells; a comma by default.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.options.delimiter = delimiter;
        self
    }

    /// Sets the character around cells that contain delimiters or ends of lines; `"` by default.
    #[must_use]
    pub fn quote(mut self, quote: u8) -> Self {
        self.options.quote = quote;
        self
    }

    /// Names the columns, for feeds whose first row is one like the others.
    #[must_use]
    pub fn headers<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.options.name_columns(names);
        self
    }

    /// Sets the encoding, in place of that of the header.
    ///
    /// # Errors
    /// There is no such encoding.
    pub fn encoding(mut self, label: &str) -> Result<Self> {
        self.options.decode_as(label)?;
        Ok(self)
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: FeedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The summary so far; complete when the iterator has ended.
    pub fn report(&self) -> &FeedReport {
        &self.report
    }

    /// The problems so far as an error, for the end of a callback: all rows that could be read were given before.
    ///
    /// # Errors
    /// There are rows that do not fit, or a limit left something out. The message names URL and line.
    pub fn check(&self) -> Result<()> {
        self.report.check(self.page)
    }

    fn begin(&self) -> Reading<'a> {
        let left = Rc::new(Cell::new(0));
        let source = text_of(self.page, self.limits, self.options.encoding, Some(WINDOWS_1252));
        let text = Utf8 { source, window: String::new(), at: 0, left: Rc::clone(&left) };
        let rows = ReaderBuilder::new()
            .delimiter(self.options.delimiter)
            .quote(self.options.quote)
            .has_headers(false)
            .flexible(true)
            .from_reader(text);
        Reading { rows, left, headers: self.options.headers.clone(), bytes: ByteRecord::new() }
    }

    /// The next row that can be read; `None` at the end.
    fn read(&mut self, reading: &mut Reading<'_>) -> Option<Row> {
        let Reading { rows, left, headers, bytes } = reading;
        loop {
            let line = rows.position().line();
            left.set(self.limits.max_entry.saturating_add(WINDOW));
            match rows.read_byte_record(bytes) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.report.problem(line, || format!("{}; the rest is left out", Error::from(error)));
                    break;
                }
            }
            let line = bytes.position().map_or(line, csv::Position::line);
            let row = StringRecord::from_byte_record_lossy(std::mem::take(bytes));
            let Some(names) = headers else {
                *headers = Some(row);
                continue;
            };
            let size: usize = row.iter().map(str::len).sum();
            if size > self.limits.max_entry {
                let most = self.limits.max_entry;
                self.report.problem(line, || format!("the row has more than {most} bytes: it is left out"));
            } else if row.len() != names.len() {
                let (cells, columns) = (row.len(), names.len());
                self.report
                    .problem(line, || format!("the row has {cells} cells, and there are {columns} columns"));
            } else {
                match row.deserialize(Some(names)) {
                    Ok(value) => return Some(value),
                    Err(error) => self.report.problem(line, || unfit(&error, names)),
                }
            }
        }
        None
    }
}

/// What does not fit, with the name of the column in place of its number.
fn unfit(error: &csv::Error, names: &StringRecord) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            match err.field().and_then(|field| names.get(usize::try_from(field).ok()?)) {
                Some(name) => format!("the column \"{}\": {}", name.escape_debug(), err.kind()),
                None => err.kind().to_string(),
            }
        }
        _ => error.to_string(),
    }
}

impl<Row: DeserializeOwned> Iterator for CsvRows<'_, Row> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.is_ended {
            return None;
        }
        let mut reading = self.reading.take().unwrap_or_else(|| self.begin());
        if let Some(row) = self.read(&mut reading) {
            self.report.entries += 1;
            self.reading = Some(reading);
            return Some(row);
        }
        let line = reading.rows.position().line();
        tell_end(&reading.rows.get_ref().source, self.page, line, self.limits, &mut self.report);
        self.is_ended = true;
        None
    }
}

impl<Row> fmt::Debug for CsvRows<'_, Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvRows")
            .field("options", &self.options)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// The text of a feed as bytes of UTF-8, of which each row may use a limited number.
struct Utf8<'a> {
    source: TextSource<'a>,
    window: String,
    at: usize,
    left: Rc<Cell<usize>>,
}

impl Read for Utf8<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.window.len() {
            self.window.clear();
            self.at = 0;
            self.source.fill(&mut self.window, WINDOW);
        }
        let size = into.len().min(self.window.len() - self.at);
        let Some(left) = self.left.get().checked_sub(size) else {
            return Err(io::Error::other(
                "the row that begins here is longer than a row may be; does a quote lack its end?",
            ));
        };
        self.left.set(left);
        into[..size].copy_from_slice(&self.window.as_bytes()[self.at..self.at + size]);
        self.at += size;
        Ok(size)
    }
}
