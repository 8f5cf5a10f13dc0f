//! Start requests: a lazy source of them, from lists, files or any iterator.

use std::io::Read;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::request::Request;
use crate::route::StoredRoute;

mod csv_column;

pub use csv_column::CsvColumn;

/// A lazy source of start requests.
pub struct Start(Box<dyn Iterator<Item = Result<Request>> + Send>);

impl Start {
    /// Start requests from a list of URLs. A text that is not a URL is reported and ends the crawl as a start error.
    pub fn urls<I>(urls: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
        I::IntoIter: Send + 'static,
    {
        Self(Box::new(urls.into_iter().map(|url| Request::parse(url.as_ref()))))
    }

    /// Start requests that are given as values.
    pub fn requests<I>(requests: I) -> Self
    where
        I: IntoIterator<Item = Request>,
        I::IntoIter: Send + 'static,
    {
        Self(Box::new(requests.into_iter().map(Ok)))
    }

    /// Start requests from any iterator, such as several sources chained. An error is reported as a start error.
    pub fn new(requests: impl Iterator<Item = Result<Request>> + Send + 'static) -> Self {
        Self(Box::new(requests))
    }

    /// Start requests from text with one URL per line, which is read lazily during the crawl. Empty lines and lines
    /// that begin with `#` are skipped.
    pub fn lines(reader: impl std::io::BufRead + Send + 'static) -> Self {
        let requests = reader.lines().enumerate().filter_map(|(index, line)| match line {
            Ok(line) if line.trim().is_empty() || line.trim_start().starts_with('#') => None,
            Ok(line) => {
                let at = || format!("seed line {}", index + 1);
                Some(Request::parse(&line).map_err(|error| error.context(at())))
            }
            Err(error) => Some(Err(Error::from(error).context(format!("reading seed line {}", index + 1)))),
        });
        Self(Box::new(requests.fuse()))
    }

    /// Start requests from one column of CSV, which is read lazily during the crawl: `Start::csv(file, "url")` by the name in the first row,
    /// `Start::csv(file, 2)` by the number. Cells without text and rows that begin with `#` are skipped. Lists with another delimiter than a
    /// comma are read with [`CsvColumn::delimiter`].
    ///
    /// ```
    /// use huntsman_crawler::{CsvColumn, Start};
    ///
    /// let list = "name,page\nAda,https://a.example/ada\n# later\nBob,https://a.example/bob\n";
    /// assert_eq!(Start::csv(list.as_bytes(), "page").count(), 2);
    /// assert_eq!(Start::csv(list.as_bytes(), 2).count(), 2);
    /// let list = "Ada;https://a.example/ada";
    /// assert_eq!(Start::csv(list.as_bytes(), CsvColumn::number(2).delimiter(b';')).count(), 1);
    /// ```
    ///
    /// # Errors
    /// Each of these is a start error with its line: there is no such column, a row ends before it, a cell is not a URL. In a column that is
    /// given by its number, a first cell that is not a URL is taken for a heading.
    pub fn csv(reader: impl Read + Send + 'static, column: impl Into<CsvColumn>) -> Self {
        Self(Box::new(csv_column::urls(reader, column.into())))
    }

    /// Gives every request of this source a route: `Start::urls(urls).to(To::List)`; see [`Request::to`].
    ///
    /// A value that is no variant of an enum in serde's default form is reported as a start error.
    pub fn to<T: Serialize>(self, route: T) -> Self {
        match StoredRoute::of(&route) {
            Ok(route) => Self(Box::new(self.0.map(move |request| {
                let mut request = request?;
                route.put(&mut request);
                Ok(request)
            }))),
            Err(error) => Self(Box::new(std::iter::once(Err(error)))),
        }
    }

    /// No start requests: requests are pushed through the [`Handle`](crate::Handle).
    pub fn none() -> Self {
        Self(Box::new(std::iter::empty()))
    }
}

impl Iterator for Start {
    type Item = Result<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Start(..)")
    }
}
