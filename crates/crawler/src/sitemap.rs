//! Sitemaps: what a site says that it has. From the bytes of a document to its entries, one after another.
//!
//! [`Sitemap`] reads a document and fetches nothing; [`Sitemaps`] is the spider around it. A document is read in pieces of
//! 64 KiB: however long it is, however deep it nests and whatever it declares, memory stays at that.

use std::collections::VecDeque;

use url::Url;

use crate::settings::Settings;

mod document;
mod files;
mod source;
mod spider;

pub use files::SitemapFiles;
pub use spider::Sitemaps;

use document::Document;
use source::{Source, WINDOW};

/// Bytes of an address, a date or another value at most; a longer one is no value.
const MAX_VALUE: usize = 8 << 10;

/// What kind of document a sitemap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SitemapKind {
    /// A list of pages (`urlset`, sitemaps.org).
    UrlSet,
    /// A list of sitemaps (`sitemapindex`, sitemaps.org).
    Index,
    /// One address a line.
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

/// An entry of a sitemap. Its address is http or https; everything else is as written, white space trimmed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SitemapEntry {
    /// Address of a page, or of a sitemap if the document is an index.
    pub loc: Url,
    /// When it changed last: W3C datetime in sitemaps and Atom, an e-mail date in RSS.
    pub lastmod: Option<String>,
    /// How often it is said to change (`daily`, ...).
    pub changefreq: Option<String>,
    /// From 0 to 1; what is no such number is left out.
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
    /// Its address.
    pub href: Url,
}

/// Limits of reading one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitemapLimits {
    /// Entries that are given; later ones are counted.
    pub max_entries: usize,
    /// Bytes that are read, unpacked; 0 is no limit.
    pub max_bytes: u64,
}

impl Default for SitemapLimits {
    fn default() -> Self {
        Self::of(&Settings::default())
    }
}

impl SitemapLimits {
    /// The limits of a crawl: `sitemap_max_entries`, `sitemap_max_bytes`.
    pub fn of(settings: &Settings) -> Self {
        Self { max_entries: settings.sitemap_max_entries, max_bytes: settings.sitemap_max_bytes }
    }
}

/// What reading a document came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapReport {
    /// The kind; `None` for what is no sitemap, such as a page.
    pub kind: Option<SitemapKind>,
    /// Entries that were given.
    pub entries: usize,
    /// Entries beyond the limit.
    pub entries_cut: usize,
    /// Entries without an http or https address: `file:`, `javascript:`, an entity of the document's own, nothing at all.
    pub invalid: usize,
    /// Whether the limit of bytes cut it.
    pub is_cut: bool,
    /// Whether something was broken: markup that does not end, an entry that is cut off, a packed file that is torn.
    pub is_damaged: bool,
    /// Whether elements were passed over because they nest deeper than 100.
    pub is_too_deep: bool,
}

/// A sitemap that is being read: an iterator over its entries.
///
/// All kinds of documents, packed with gzip or not (told by the first bytes, whatever the name is); what it is comes from
/// its content. Names count without their namespace. Broken XML is read on behind the damage. Only the five references that
/// XML predefines, and numeric ones, are resolved: a document's own entities are neither read nor expanded, and nothing is
/// ever fetched. Relative addresses are resolved against `base`.
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
    source: Source<'a>,
    /// Text that was not read yet.
    window: String,
    state: State,
    base: Url,
    /// Entries of the last piece; it bounds their number.
    found: VecDeque<SitemapEntry>,
    max_entries: usize,
    report: SitemapReport,
}

enum State {
    /// Nothing was looked at.
    New,
    Xml(Box<Document>),
    /// `true` within a line that is too long to be an address.
    Text(bool),
    Done,
}

impl<'a> Sitemap<'a> {
    /// Begins to read a document.
    pub fn new(body: &'a [u8], base: &Url, limits: SitemapLimits) -> Self {
        Self {
            source: Source::new(body, limits.max_bytes),
            window: String::new(),
            state: State::New,
            base: base.clone(),
            found: VecDeque::new(),
            max_entries: limits.max_entries,
            report: SitemapReport::default(),
        }
    }

    /// What came of it so far; complete when the iterator has ended.
    pub fn report(&self) -> SitemapReport {
        self.report
    }

    /// Reads the next piece.
    fn advance(&mut self) {
        self.source.fill(&mut self.window);
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

    /// Tells markup from lines by the first character.
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
            // What is no sitemap is no broken one either.
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
            // Also while it is read: who breaks off wants to know what it was.
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

/// An address as an entry has it: absolute, http or https.
fn address(text: &str, base: &Url) -> Option<Url> {
    let url = base.join(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && !text.is_empty()).then_some(url)
}

/// Reads the whole lines of a piece, and the rest too if it is the last one. Answers with the bytes read. Lines that begin
/// with `#` are comments; an address must be absolute, since any word would be a relative one.
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
