//! Extracts the text and metadata from the bytes of a source or an article.

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_TYPE, LAST_MODIFIED};
use huntsman_crawler::{Context, Page, registrable_domain};
use huntsman_detect::copyvio::{Addresses, Dates, LicenceHint, Text, licence_hint};
use url::Url;

use super::pdf::{PdfError, PdfText};

/// The text and the metadata of a page.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Its text.
    pub text: Text,
    /// The URLs that it links to and loads, by which mirrors are recognised.
    pub addresses: Addresses,
    /// The licence that it states.
    pub licence: Option<LicenceHint>,
    /// The dates of publication and of the last change that the page states.
    pub dates: Dates,
}

impl Reading {
    /// Reads a fetched page in a callback; while a PDF file is read, another callback may run.
    ///
    /// # Errors
    /// The reason why there is no text.
    pub fn of_page(page: &Page, cx: &Context, pdf: Option<&dyn PdfText>) -> Result<Self, NoText> {
        let response = page.response();
        let media_type = response.content_type();
        let kind = TextKind::of_media(media_type.as_deref())
            .ok_or_else(|| NoText::MediaType(media_type.clone().unwrap_or_default()))?;
        let header = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let charset = header.and_then(huntsman_html::content_charset);
        let lending = pdf.map(|pdf| Lending { pdf, cx });
        let pdf = lending.as_ref().map(|lending| lending as &dyn PdfText);
        let mut reading = Self::of_bytes(kind, &response.body, charset, pdf)?;
        let changed = response.headers.get(LAST_MODIFIED).and_then(|value| value.to_str().ok());
        reading.dates.last_modified = changed.and_then(|date| httpdate::parse_http_date(date).ok());
        if kind == TextKind::Html {
            reading.dates.published = published(page);
            reading.licence = licence_hint(page.body_text());
        }
        Ok(reading)
    }

    /// Reads bytes without metadata.
    ///
    /// # Errors
    /// The reason why there is no text.
    pub fn of_bytes(
        kind: TextKind,
        bytes: &[u8],
        charset: Option<&str>,
        pdf: Option<&dyn PdfText>,
    ) -> Result<Self, NoText> {
        if bytes.len() > kind.most_bytes() {
            return Err(NoText::TooLarge(kind.most_bytes()));
        }
        let (text, addresses) = match kind {
            TextKind::Html => Text::html_and_addresses(bytes, charset),
            other => {
                let text = match other {
                    TextKind::Wikitext => Text::wikitext(Text::plain(bytes, charset).exact()),
                    TextKind::Pdf => Text::new(pdf.ok_or(NoText::NoPdf)?.text(bytes).map_err(NoText::Pdf)?),
                    _ => Text::plain(bytes, charset),
                };
                (text, Addresses::default())
            }
        };
        if text.is_empty() { Err(NoText::Empty) } else { Ok(Self { text, addresses, ..Self::default() }) }
    }
}

/// A reader of PDF files in a callback.
#[derive(Debug)]
struct Lending<'r> {
    pdf: &'r dyn PdfText,
    cx: &'r Context,
}

impl PdfText for Lending<'_> {
    fn text(&self, pdf: &[u8]) -> Result<String, PdfError> {
        self.cx.block_on(async { self.pdf.text(pdf) })
    }
}

/// The links of a page to other sites than its own, in order; they may be sources of its text.
pub fn external_links(page: &Page) -> Vec<String> {
    let links = if page.kind().is_markup() { page.links() } else { Vec::new() };
    links_to_others(page.url(), links)
}

/// The URLs of `links` that are on other sites than a page.
pub fn links_to_others(page: &Url, links: impl IntoIterator<Item = Url>) -> Vec<String> {
    // IP addresses and names without a registrable domain are compared with their ports.
    let site = |url: &Url| match registrable_domain(url) {
        Some(domain) => domain.to_owned(),
        None => {
            format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0))
        }
    };
    let own = site(page);
    let is_fetched = |url: &Url| matches!(url.scheme(), "http" | "https");
    links.into_iter().filter(|url| is_fetched(url) && site(url) != own).map(String::from).collect()
}

/// When a page says that it was published: Open Graph, names that are usual in `meta`, JSON-LD. To the day.
fn published(page: &Page) -> Option<SystemTime> {
    const NAMES: [&str; 8] = [
        "article:published_time",
        "og:published_time",
        "datepublished",
        "date",
        "dc.date",
        "dc.date.issued",
        "dcterms.created",
        "citation_publication_date",
    ];
    let is_date = |name: Option<&str>| {
        name.is_some_and(|name| NAMES.iter().any(|date| date.eq_ignore_ascii_case(name)))
    };
    let meta = page
        .metas()
        .filter(|meta| is_date(meta.property) || is_date(meta.name))
        .find_map(|meta| day(meta.content?));
    meta.or_else(|| {
        let (_, value) = page.body_text().split_once("\"datePublished\"")?;
        day(value.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?)
    })
}

/// The day with which a date begins: `2026-01-31`, `2026/01/31`, whatever follows.
fn day(date: &str) -> Option<SystemTime> {
    let date = date.trim_start().get(..10)?;
    let mut parts = date.split(['-', '/']).map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some()
        || !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    // Howard Hinnant, "chrono-compatible low-level date algorithms": days_from_civil.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = u64::try_from(era * 146_097 + day_of_era - 719_468).ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400))
}

/// The format of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Text as it is.
    Plain,
    /// A page.
    Html,
    /// The source of a wiki page.
    Wikitext,
    /// A PDF file.
    Pdf,
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoText {
    /// The media type is not supported.
    MediaType(String),
    /// The body is larger than the limit.
    TooLarge(usize),
    /// The PDF file could not be read.
    Pdf(PdfError),
    /// No reader for PDF files is configured.
    NoPdf,
    /// The text is empty.
    Empty,
    /// The page shows a text that is at another URL.
    Elsewhere(Url),
}

impl TextKind {
    /// The format by the extension of a file name: `.html`, `.htm`, `.xhtml`; `.wiki`, `.wikitext`, `.mediawiki`;
    /// `.pdf`; everything else is plain text.
    pub fn of_file(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Html,
            "wiki" | "wikitext" | "mediawiki" => Self::Wikitext,
            "pdf" => Self::Pdf,
            _ => Self::Plain,
        }
    }

    /// The format by the media type (without parameters); without one it is plain text. `None` for unsupported types.
    /// As in the reference.
    pub fn of_media(media_type: Option<&str>) -> Option<Self> {
        match media_type {
            Some("text/html" | "application/xhtml+xml") => Some(Self::Html),
            Some("application/pdf" | "application/x-pdf") => Some(Self::Pdf),
            Some("text/plain") | None => Some(Self::Plain),
            Some(_) => None,
        }
    }

    /// The format of bytes without metadata: a page if they begin as one.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let head = bytes.trim_ascii_start();
        let starts =
            |what: &[u8]| head.get(..what.len()).is_some_and(|start| start.eq_ignore_ascii_case(what));
        match () {
            () if starts(b"<!doctype html") || starts(b"<html") => Self::Html,
            () if starts(b"%PDF-") => Self::Pdf,
            () => Self::Plain,
        }
    }

    /// Maximum number of bytes that are read: 15 MiB of a PDF file, 2 MiB of others, as in the reference.
    pub fn most_bytes(self) -> usize {
        if self == Self::Pdf { 15 << 20 } else { 2 << 20 }
    }
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoText::MediaType(media_type) => write!(f, "{media_type} has no text that is read"),
            NoText::TooLarge(most) => write!(f, "it has more than {most} bytes"),
            NoText::Pdf(error) => error.fmt(f),
            NoText::NoPdf => f.write_str("this build does not read PDF files; build it with the feature pdf"),
            NoText::Empty => f.write_str("it has no text"),
            NoText::Elsewhere(there) => write!(f, "its text stands elsewhere: {there}"),
        }
    }
}

impl std::error::Error for NoText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_read_of_the_usual_forms_and_nothing_of_others() {
        let days = |date: &str| {
            day(date).map(|day| day.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 86_400)
        };
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-02-29T12:00:00+02:00"), Some(11_016));
        assert_eq!(days(" 2026/11/22"), Some(20_779));
        for date in ["", "2026", "2026-13-01", "1969-12-31", "yesterday!", "2026-1-1", "äöüäöüäöü"] {
            assert_eq!(days(date), None, "{date}");
        }
    }
}
