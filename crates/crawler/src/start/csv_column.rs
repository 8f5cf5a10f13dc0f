//! URLs from a column of CSV.

use std::io::Read;

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::error::{Error, Result};
use crate::request::Request;

/// The column of a CSV file that has the URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumn {
    place: Place,
    delimiter: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// By the name in the first row.
    Name(String),
    /// By the number, counted from 1.
    Number(usize),
}

impl CsvColumn {
    /// The column with this name in the first row.
    pub fn name(name: impl Into<String>) -> Self {
        Self { place: Place::Name(name.into()), delimiter: b',' }
    }

    /// The column with this number, counted from 1.
    pub fn number(number: usize) -> Self {
        Self { place: Place::Number(number), delimiter: b',' }
    }

    /// A column as a user writes it: digits are a number, everything else is a name.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::name(text), Self::number)
    }

    /// Sets the character between cells; a comma by default.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }
}

impl From<&str> for CsvColumn {
    fn from(name: &str) -> Self {
        Self::name(name)
    }
}

impl From<usize> for CsvColumn {
    fn from(number: usize) -> Self {
        Self::number(number)
    }
}

/// The requests of a column. After an error of the file as a whole there is nothing more.
pub(super) fn urls(
    reader: impl Read + Send + 'static,
    column: CsvColumn,
) -> impl Iterator<Item = Result<Request>> + Send {
    let rows = ReaderBuilder::new()
        .delimiter(column.delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(reader);
    let mut urls = Urls { rows, place: column.place, index: None, row: ByteRecord::new(), is_ended: false };
    std::iter::from_fn(move || urls.next())
}

struct Urls<R> {
    rows: Reader<R>,
    place: Place,
    /// The index of the column, once the first row was read.
    index: Option<usize>,
    row: ByteRecord,
    is_ended: bool,
}

impl<R: Read> Urls<R> {
    fn next(&mut self) -> Option<Result<Request>> {
        while !self.is_ended {
            match self.rows.read_byte_record(&mut self.row) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Some(Err(self.end(Error::from(error).context("reading the seeds")))),
            }
            let (index, is_first) = match (self.index, &self.place) {
                (Some(index), _) => (index, false),
                (None, Place::Number(number)) => match number.checked_sub(1) {
                    Some(index) => (index, true),
                    None => {
                        return Some(Err(self.end(Error::usage("the columns of seeds are counted from 1"))));
                    }
                },
                (None, Place::Name(name)) => {
                    match self.row.iter().position(|cell| cell_text(cell) == *name) {
                        Some(index) => {
                            self.index = Some(index);
                            continue;
                        }
                        None => {
                            let error = no_column(name, &self.row);
                            return Some(Err(self.end(error)));
                        }
                    }
                }
            };
            self.index = Some(index);
            let line = self.row.position().map_or(0, csv::Position::line);
            let Some(cell) = self.row.get(index) else {
                return Some(Err(Error::usage(format!(
                    "seed line {line}: the row has {} columns, and the URL is expected in column {}",
                    self.row.len(),
                    index + 1
                ))));
            };
            let cell = cell_text(cell);
            if cell.is_empty() {
                continue;
            }
            match Request::parse(&cell) {
                Err(_) if is_first => {}
                parsed => return Some(parsed.map_err(|error| error.context(format!("seed line {line}")))),
            }
        }
        None
    }

    fn end(&mut self, error: Error) -> Error {
        self.is_ended = true;
        error
    }
}

fn cell_text(cell: &[u8]) -> String {
    String::from_utf8_lossy(cell).trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned()
}

fn no_column(name: &str, row: &ByteRecord) -> Error {
    let names: Vec<String> =
        row.iter().take(20).map(|cell| cell_text(cell).escape_debug().to_string()).collect();
    Error::usage(format!(
        "the seeds have no column \"{}\"; the first row names: {}",
        name.escape_debug(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use crate::start::Start;

    use super::*;

    fn paths(list: &'static str, column: impl Into<CsvColumn>) -> Vec<String> {
        let requests = Start::csv(list.as_bytes(), column);
        requests.map(|request| request.map_or_else(|e| e.to_string(), |r| r.url.path().to_owned())).collect()
    }

    const LIST: &str = "name, page ,note\nAda,http://a.example/ada,\"first,\nof all\"\n\n# a comment\nBob,,x\n\
                        Cid,http://a.example/cid,\n";

    #[test]
    fn a_column_is_chosen_by_name_or_by_number() {
        assert_eq!(paths(LIST, "page"), ["/ada", "/cid"]);
        assert_eq!(paths(LIST, 2), ["/ada", "/cid"], "the heading is no URL");
        assert_eq!(
            paths("\u{feff}page;x\nhttp://a.example/1;y", CsvColumn::name("page").delimiter(b';')),
            ["/1"]
        );
        assert_eq!(
            paths("http://a.example/1,x\nhttp://a.example/2,y", 1),
            ["/1", "/2"],
            "there is no heading"
        );
        assert_eq!(CsvColumn::parse("3"), CsvColumn::number(3));
        assert_eq!(CsvColumn::parse("page"), CsvColumn::name("page"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(
            paths(LIST, "link"),
            ["the seeds have no column \"link\"; the first row names: name, page, note"]
        );
        let bad = paths("page\nhttp://a.example/1\nnonsense\nhttp://a.example/2", "page");
        assert_eq!((bad.len(), &*bad[0], &*bad[2]), (3, "/1", "/2"));
        assert!(bad[1].starts_with("seed line 3: invalid URL \"nonsense\""), "{}", bad[1]);
        let short = paths("http://a.example/1,http://a.example/2\nx\n", 2);
        assert_eq!(short[1], "seed line 2: the row has 1 columns, and the URL is expected in column 2");
        assert_eq!(paths("x", 0), ["the columns of seeds are counted from 1"]);
        assert!(paths("", "page").is_empty());
    }
}
