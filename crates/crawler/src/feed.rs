//! Feeds: documents with many entries, XML or CSV, that are read one entry after another.
//!
//! [`XmlNodes`] and [`CsvRows`] read a page and fetch nothing; [`XmlFeed`] and [`CsvFeed`] are the spiders that fetch feeds. However long a
//! document is, memory stays at the size of an entry, beside the body as it was received.

use encoding_rs::Encoding;
use http::header;

use crate::error::{Error, Result};
use crate::page::Page;
use crate::text_source::TextSource;

mod csv_feed;
mod csv_rows;
mod requests;
mod xml_feed;
mod xml_nodes;
mod xml_scan;

pub use csv_feed::CsvFeed;
pub use csv_rows::CsvRows;
pub use xml_feed::XmlFeed;
pub use xml_nodes::{XmlNode, XmlNodes};

/// Limits for reading one feed. What they cut is a problem of the [`FeedReport`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedLimits {
    /// Greatest number of bytes that are read, after unpacking; 256 MiB by default, and 0 means no limit. A feed that is a page of a feed
    /// spider is also received up to this size, whatever `download_maxsize` says.
    pub max_bytes: u64,
    /// Greatest size of an entry in bytes; 8 MiB by default. Larger ones are left out.
    pub max_entry: usize,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self { max_bytes: 256 << 20, max_entry: 8 << 20 }
    }
}

/// A summary of reading one feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedReport {
    /// Number of entries that were given.
    pub entries: u64,
    /// Number of places where the feed is damaged, or where a limit left something out.
    pub problems: u64,
    /// The first of them, with its line.
    pub first_problem: Option<String>,
}

impl FeedReport {
    fn problem(&mut self, line: u64, what: impl FnOnce() -> String) {
        self.problems += 1;
        self.first_problem.get_or_insert_with(|| format!("line {line}: {}", what()));
    }

    /// The problems as an error that names the feed; `Ok` if there are none.
    ///
    /// # Errors
    /// There are problems.
    pub fn check(&self, page: &Page) -> Result<()> {
        let Some(first) = &self.first_problem else { return Ok(()) };
        let places = if self.problems == 1 { "1 place is" } else { &format!("{} places are", self.problems) };
        Err(Error::msg(format!(
            "reading the feed {}: {places} damaged or left out ({} entries were read), the first at {first}",
            page.url(),
            self.entries
        )))
    }
}

/// The text of a page's body. The encoding is the given one, or that of the header, or the declared one, or that of the bytes: UTF-8, or else
/// `otherwise`.
fn text_of<'a>(
    page: &'a Page,
    limits: FeedLimits,
    encoding: Option<&'static Encoding>,
    otherwise: Option<&'static Encoding>,
) -> TextSource<'a> {
    let body = &page.response().body;
    let source = TextSource::new(body, limits.max_bytes);
    let declared = || {
        let header = page.response().headers.get(header::CONTENT_TYPE)?;
        let header = String::from_utf8_lossy(header.as_bytes());
        Encoding::for_label(huntsman_html::content_charset(&header)?.as_bytes())
    };
    let guessed = || {
        otherwise.filter(|_| std::str::from_utf8(&source.beginning()).is_err_and(|e| e.error_len().is_some()))
    };
    match encoding.or_else(declared).or_else(guessed) {
        Some(encoding) => source.encoded_in(encoding),
        None => source,
    }
}

/// The encoding with this name.
///
/// # Errors
/// There is none.
fn encoding_named(label: &str) -> Result<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
        .ok_or_else(|| Error::usage(format!("there is no encoding \"{}\"", label.escape_debug())))
}

/// Reports what the source of the text cut or replaced.
fn tell_end(source: &TextSource<'_>, page: &Page, line: u64, limits: FeedLimits, report: &mut FeedReport) {
    if source.is_torn() {
        report.problem(line, || "the gzip data end too early or are damaged".to_owned());
    }
    if source.is_cut() {
        report.problem(line, || {
            format!("the feed has more than {} bytes: the rest is left out", limits.max_bytes)
        });
    }
    if page.response().has_flag("truncated") {
        report.problem(line, || "the download was cut: the rest is left out".to_owned());
    }
    if source.has_replaced() {
        report.problem(line, || {
            "up to here there are bytes that are invalid in the encoding of the feed; they were replaced"
                .to_owned()
        });
    }
}

#[cfg(test)]
mod tests;
