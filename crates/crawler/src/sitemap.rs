//! Sitemaps: reads the entries of a sitemap document one after another.
//!
//! [`Sitemap`] reads a document and fetches nothing; [`Sitemaps`] is the spider that fetches sitemaps. A document is
//! read in pieces of 64 KiB, and memory stays at that size however long the document is, however deep it nests and
//! whatever it declares.

use std::collections::VecDeque;

use url::Url;

use crate::settings::Settings;
use crate::text_source::{TextSource, WINDOW};

mod document;
mod files;
mod spider;

pub use files::SitemapFiles;
pub use spider::Sitemaps;

use document::Document;

/// Greatest length of a URL, a date or another value, in bytes; longer values are ignored.
const MAX_VALUE: usize = 8 << 10;

/// The kind of a sitemap document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SitemapKind {
    /// A list of pages (`urlset`, sitemaps.org).
    UrlSet,
    /// A list of sitemaps (`sitemapindex`, sitemaps.org).
    Index,
    /// Text with one URL per line.
    Text,
    /// RSS 2.0 or 1.0: the links of its items.
    Rss,
    /// Atom: the links of its entries.
    Atom,
}

impl SitemapKind {
    /// Stable name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::Index => "index",
            Self::Text => "text",
            Self::Rss => "rss",
            Self::Atom => "atom",
        }
    }
}

/// An entry of a sitemap. Its URL is http or https; all other values are as written, with white space trimmed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SitemapEntry {
    /// URL of a page, or of a sitemap if the document is an index.
    pub loc: Url,
    /// Time of the last change: a W3C datetime in sitemaps and Atom, an e-mail date in RSS.
    pub lastmod: Option<String>,
    /// The declared frequency of changes (`daily`, ...).
    pub changefreq: Option<String>,
    /// From 0 to 1; `None` if the value is not such a number.
    pub priority: Option<f32>,
    /// The same page in other languages (`xhtml:link rel="alternate"`); at most 1,000.
    pub alternates: Vec<Alternate>,
}

/// A page in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternate {
    /// Language and region as written, or `x-default`.
    pub hreflang: Option<String>,
    /// URL of the page.
    pub href: Url,
}

/// Limits for reading one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    /// Greatest number of entries that are returned; later ones are only counted.
    pub max_entries: usize,
    /// Greatest number of unpacked bytes that are read; 0 means no limit.
    pub max_bytes: u64,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self::of(&Settings::default())
    }
}

impl SitemapLimits {
    /// The limits from the settings `sitemap_max_entries` and `sitemap_max_bytes`.
    pub fn of(settings: &Settings) -> Self {
        Self { max_entries: settings.sitemap_max_entries, max_bytes: settings.sitemap_max_bytes }
    }
}

/// A summary of reading one document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapReport {
    /// The kind; `None` if the document is not a sitemap but, for example, a page.
    pub kind: Option<SitemapKind>,
    /// Number of entries that were returned.
    pub entries: usize,
    /// Number of entries beyond the limit.
    pub entries_cut: usize,
    /// Number of entries without an http or https URL: `file:`, `javascript:`, an entity that the document declares,
    /// or no URL at all.
    pub invalid: usize,
    /// Number of entries of a sitemap or an index whose URL is not absolute. They are resolved against the URL of the document.
    pub relative: usize,
    /// Whether the limit of bytes was reached.
    pub is_cut: bool,
    /// Whether the document is damaged: markup that does not end, an incomplete entry, a truncated gzip file.
    pub is_damaged: bool,
    /// Whether elements were skipped because they nest deeper than 100.
    pub is_too_deep: bool,
}

/// A sitemap that is being read: an iterator over its entries.
///
/// It reads all kinds of documents and recognises the kind by the content. Documents may be packed with gzip, which
/// is recognised by the first bytes, whatever the name is. Namespaces of elements are ignored. After broken XML,
/// reading continues behind the damage. Only the five references that XML predefines, and numeric ones, are resolved:
/// entities that a document declares are neither read nor expanded, and nothing is ever fetched. Relative URLs are
/// resolved against `base`.
///
/// ```
/// use huntsman_crawler::{Sitemap, SitemapKind, SitemapLimits};
/// use url::Url;
///
/// let body = b"<urlset><url><loc>https://shop.example/a?x=1&amp;y=2</loc><lastmod>2026-01-31</lastmod></url></urlset>";
/// let base = Url::parse("https://shop.example/sitemap.xml").unwrap();
/// let mut sitemap = Sitemap::new(body, &base, SitemapLimits::default());
/// let entry = sitemap.next().unwrap();
/// assert_eq!(entry.loc.as_str(), "https://shop.example/a?x=1&y=2");
/// assert_eq!(entry.lastmod.as_deref(), Some("2026-01-31"));
/// assert!(sitemap.next().is_none());
/// assert_eq!(sitemap.report().kind, Some(SitemapKind::UrlSet));
/// ```
pub struct Sitemap<'a> {
    source: TextSource<'a>,
    /// Text that was not parsed yet.
    window: String,
    state: State,
    base: Url,
    /// Entries of the last piece, whose size limits their number.
    found: VecDeque<SitemapEntry>,
    max_entries: usize,
    report: SitemapReport,
}

enum State {
    /// No byte was examined yet.
    New,
    Xml(Box<Document>),
    /// `true` within a line that is too long to be a URL.
    Text(bool),
    Done,
}

impl<'a> Sitemap<'a> {
    /// Begins to read a document.
    pub fn new(body: &'a [u8], base: &Url, limits: SitemapLimits) -> Self {
        Self {
            source: TextSource::new(body, limits.max_bytes),
            window: String::new(),
            state: State::New,
            base: base.clone(),
            found: VecDeque::new(),
            max_entries: limits.max_entries,
            report: SitemapReport::default(),
        }
    }

    /// The summary so far; complete when the iterator has ended.
    pub fn report(&self) -> SitemapReport {
        self.report
    }

    /// Reads the next piece.
    fn advance(&mut self) {
        self.source.fill(&mut self.window, WINDOW);
        let is_last = self.source.is_ended();
        match &mut self.state {
            State::New => self.begin(is_last),
            State::Text(is_long) => {
                let used = lines(&self.window, is_last, is_long, &mut self.found, &mut self.report);
                self.window.drain(..used);
                if is_last {
                    self.finish();
                }
            }
            State::Xml(document) => {
                let used = document.read(&self.window, is_last, &self.base, &mut self.found);
                self.window.drain(..used);
                if document.is_done() || (is_last && self.window.is_empty()) {
                    self.finish();
                }
            }
            State::Done => {}
        }
    }

    /// Distinguishes markup from lines of text by the first character.
    fn begin(&mut self, is_last: bool) {
        let text = self.window.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let skipped = self.window.len() - text.len();
        self.state = match text.chars().next() {
            Some('<') => State::Xml(Box::default()),
            Some(_) => State::Text(false),
            None if is_last => return self.finish(),
            None => State::New,
        };
        self.window.drain(..skipped);
    }

    fn finish(&mut self) {
        if let State::Xml(document) = &mut self.state {
            document.finish(&self.base, &mut self.found);
            self.report.kind = document.kind();
            self.report.invalid = document.invalid();
            self.report.relative = document.relative();
            // A document that is not a sitemap does not count as a damaged one.
            self.report.is_damaged |= document.is_damaged() && document.kind().is_some();
            self.report.is_too_deep = document.is_too_deep();
        }
        self.report.is_cut = self.source.is_cut();
        self.report.is_damaged |= self.source.is_torn();
        self.state = State::Done;
        self.window = String::new();
    }
}

impl Iterator for Sitemap<'_> {
    type Item = SitemapEntry;

    fn next(&mut self) -> Option<SitemapEntry> {
        loop {
            while let Some(entry) = self.found.pop_front() {
                if self.report.entries < self.max_entries {
                    self.report.entries += 1;
                    return Some(entry);
                }
                self.report.entries_cut += 1;
            }
            if let State::Done = self.state {
                return None;
            }
            self.advance();
            // The kind is also set during reading, for callers that stop early.
            if let State::Xml(document) = &self.state {
                self.report.kind = document.kind();
            }
        }
    }
}

impl std::fmt::Debug for Sitemap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sitemap").field("report", &self.report).finish_non_exhaustive()
    }
}

/// The URL of an entry: absolute, http or https.
fn address(text: &str, base: &Url) -> Option<Url> {
    let url = base.join(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && !text.is_empty()).then_some(url)
}

/// Reads the complete lines of a piece, and the remainder if it is the last piece. Returns the number of bytes read.
/// Lines that begin with `#` are comments. A URL must be absolute, since any word would be a relative one.
fn lines(
    window: &str,
    is_last: bool,
    is_long: &mut bool,
    found: &mut VecDeque<SitemapEntry>,
    report: &mut SitemapReport,
) -> usize {
    let whole = match window.rfind('\n') {
        _ if is_last => window.len(),
        Some(end) => end + 1,
        None if window.len() >= WINDOW => {
            *is_long = true;
            return window.len();
        }
        None => 0,
    };
    for line in window[..whole].split_inclusive('\n') {
        let was_long = std::mem::take(is_long);
        let line = line.trim();
        if !was_long && (line.is_empty() || line.starts_with('#')) {
            continue;
        }
        let url = Url::parse(line).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        match url {
            Some(loc) if !was_long && line.len() <= MAX_VALUE => {
                report.kind = Some(SitemapKind::Text);
                found.push_back(SitemapEntry {
                    loc,
                    lastmod: None,
                    changefreq: None,
                    priority: None,
                    alternates: Vec::new(),
                });
            }
            _ => report.invalid += 1,
        }
    }
    whole
}

#[cfg(test)]
mod tests;
