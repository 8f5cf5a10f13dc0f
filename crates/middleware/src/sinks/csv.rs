//! CSV: a row per item, for spreadsheets.

use huntsman_crawler::{Error, Result, Settings, log};
use serde::Serialize;
use serde_json::Value;

use super::feed::{Feed, FieldChoice, Format};
use super::record::object;

use crate::sinks::feed::FeedSettings;

/// What a cell begins with that a spreadsheet takes for a formula.
const SIGNS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Comma-separated values with a header row, UTF-8, RFC 4180 with `\n`.
///
/// The columns are the declared fields, else those of the first item; a warning names fields that have no column, once.
/// Several values of a field are joined by commas, objects are written as JSON. An apostrophe is put before texts that
/// a spreadsheet would take for a formula (`feed_csv_guard`).
pub type Csv<T> = Feed<T, Rows>;

/// The format of [`Csv`].
#[derive(Debug)]
pub struct Rows {
    columns: Option<Vec<String>>,
    separator: String,
    guard: bool,
    header: bool,
    warned: bool,
}

impl Default for Rows {
    fn default() -> Self {
        Self { columns: None, separator: ",".to_owned(), guard: true, header: true, warned: false }
    }
}

impl<T> Csv<T> {
    /// The separator between several values of one field (default: a comma).
    pub fn join(mut self, separator: &str) -> Self {
        self.format_mut().separator = separator.to_owned();
        self
    }

    /// Leaves the header row out.
    pub fn headless(mut self) -> Self {
        self.format_mut().header = false;
        self
    }
}

impl Rows {
    fn header(&self, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        match &self.columns {
            Some(columns) if self.header => {
                write_row(columns.iter().map(|column| self.guarded(fields.0.title(column).to_owned())), out)
            }
            _ => Ok(()),
        }
    }

    /// Neutralises a cell that begins like a formula, which spreadsheets would run whatever its origin. Some of them
    /// treat full-width signs as the usual ones, and ignore tabs and line breaks before them.
    fn guarded(&self, text: String) -> String {
        let dangerous = self.guard && text.starts_with(SIGNS);
        if dangerous { format!("'{text}") } else { text }
    }

    fn cell(&self, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::Bool(_) => value.to_string(),
            // This is a JSON number and not text from a page: a negative number is no formula.
            Value::Number(number) => number.to_string(),
            Value::String(text) => self.guarded(text.clone()),
            Value::Array(list) => {
                let parts: Vec<String> = list
                    .iter()
                    .map(|value| match value {
                        Value::String(text) => text.clone(),
                        Value::Null => String::new(),
                        other => other.to_string(),
                    })
                    .collect();
                self.guarded(parts.join(&self.separator))
            }
            Value::Object(_) => value.to_string(),
        }
    }
}

impl Format for Rows {
    const NAME: &'static str = "CSV";
    const APPENDS: bool = true;

    fn configure(&mut self, settings: &Settings) {
        let own: FeedSettings = settings.of_or_default();
        self.guard = own.feed_csv_guard;
    }

    fn begin(&mut self, head: &[u8], fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        let declared = &fields.0.chosen;
        let present = if self.header { first_row(head)? } else { None };
        match (declared, present) {
            (None, None) if !head.is_empty() && !self.header => {
                return Err(Error::usage("a file without a header row needs declared fields to be added to"));
            }
            // The columns of the first item are used for all files of a crawl.
            (None, None) => self.header(fields, out)?,
            (Some(declared), None) => {
                self.columns = Some(declared.clone());
                if head.is_empty() {
                    self.header(fields, out)?;
                }
            }
            (None, Some(present)) => {
                // Maps titles back to fields.
                let field = |title: String| {
                    fields
                        .0
                        .renamed
                        .iter()
                        .find(|(_, to)| *to == title)
                        .map_or(title, |(from, _)| from.clone())
                };
                self.columns = Some(present.into_iter().map(field).collect());
            }
            (Some(declared), Some(present)) => {
                let titles: Vec<String> =
                    declared.iter().map(|field| self.guarded(fields.0.title(field).to_owned())).collect();
                if titles != present {
                    return Err(Error::usage(format!(
                        "its columns are {}, and the fields are {}: use the same, or another file",
                        present.join(", "),
                        titles.join(", ")
                    )));
                }
                self.columns = Some(declared.clone());
            }
        }
        Ok(())
    }

    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        let values = object(item)?;
        if self.columns.is_none() {
            self.columns = Some(values.keys().cloned().collect());
            self.header(fields, out)?;
        }
        let Some(columns) = &self.columns else { return Ok(()) };
        if !self.warned && fields.0.chosen.is_none() {
            let left_out: Vec<&str> =
                values.keys().filter(|field| !columns.contains(field)).map(String::as_str).collect();
            if !left_out.is_empty() {
                log::warn!(
                    "CSV: fields without a column are left out: {}",
                    left_out.join(", ").escape_debug()
                );
                self.warned = true;
            }
        }
        let cells =
            columns.iter().map(|column| values.get(column).map_or(String::new(), |value| self.cell(value)));
        write_row(cells, out)
    }

    fn is_quoted(&self) -> bool {
        true
    }
}

/// Adds a text as a cell of CSV outside of a feed, quoted if need be, with the guard against formulas.
pub fn csv_text(text: &str, out: &mut Vec<u8>) {
    let guard = if text.starts_with(SIGNS) { "'" } else { "" };
    if memchr::memchr3(b',', b'"', b'\n', text.as_bytes()).is_none() && !text.contains('\r') {
        out.extend_from_slice(guard.as_bytes());
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    out.extend_from_slice(guard.as_bytes());
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

/// Adds a row of CSV outside of a feed, with the guard against formulas.
///
/// # Errors
/// None that a buffer in memory has.
pub fn csv_row<'a>(cells: impl IntoIterator<Item = &'a Value>, out: &mut Vec<u8>) -> Result<()> {
    let rows = Rows::default();
    write_row(cells.into_iter().map(|value| rows.cell(value)), out)
}

fn write_row(cells: impl Iterator<Item = String>, out: &mut Vec<u8>) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 10).from_writer(out);
    writer.write_record(cells.map(String::into_bytes))?;
    writer.flush()?;
    Ok(())
}

fn first_row(head: &[u8]) -> Result<Option<Vec<String>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(head);
    match reader.records().next() {
        None => Ok(None),
        Some(row) => Ok(Some(row?.iter().map(str::to_owned).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_cell_by_itself_and_in_a_row() {
        for text in ["moths", "=1+1", "a,b", "a \"b\"", "a\nb", "a\rb", "\tx", "＝x", "-5, \"x\"", "é"] {
            let (mut alone, mut row) = (Vec::new(), Vec::new());
            csv_text(text, &mut alone);
            csv_row([&Value::from(text), &Value::from("x")], &mut row).unwrap();
            assert_eq!([&alone[..], b",x\n"].concat(), row, "{text:?}");
        }
    }
}
