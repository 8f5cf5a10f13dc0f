//! From the bytes of a source or an article to what it says.

use std::fmt;
use std::path::Path;

use huntsman_detect::copyvio::{MirrorHint, Text};

use super::pdf::{PdfError, PdfText};

/// How bytes are read.
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
    /// A media type that nothing is read of.
    MediaType(String),
    /// More bytes than are read.
    TooLarge(usize),
    /// The page is a copy of the article's wiki, by its links.
    Mirror(MirrorHint),
    /// What is said about a PDF file.
    Pdf(PdfError),
    /// PDF files are not read here.
    NoPdf,
    /// There is nothing in it.
    Empty,
}

impl TextKind {
    /// What a file has, by the extension of its name: `.html`, `.htm`, `.xhtml`; `.wiki`, `.wikitext`, `.mediawiki`; `.pdf`; everything else is
    /// plain text.
    pub fn of_file(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Html,
            "wiki" | "wikitext" | "mediawiki" => Self::Wikitext,
            "pdf" => Self::Pdf,
            _ => Self::Plain,
        }
    }

    /// What an answer of this media type (without parameters) has; without one it is plain text. `None` for types that nothing is read
    /// of. As in the reference.
    pub fn of_media(media_type: Option<&str>) -> Option<Self> {
        match media_type {
            Some("text/html" | "application/xhtml+xml") => Some(Self::Html),
            Some("application/pdf" | "application/x-pdf") => Some(Self::Pdf),
            Some("text/plain") | None => Some(Self::Plain),
            Some(_) => None,
        }
    }

    /// What bytes have of which nothing is known: a page if they begin as one.
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

    /// How many bytes are read at most: 15 MiB of a PDF file, 2 MiB of others, as in the reference.
    pub fn most_bytes(self) -> usize {
        if self == Self::Pdf { 15 << 20 } else { 2 << 20 }
    }

    /// What the bytes say. `mirror_hints` are those of [`mirror_hints`](huntsman_detect::copyvio::mirror_hints), for pages.
    ///
    /// # Errors
    /// Why there is no text.
    pub fn read(
        self,
        bytes: &[u8],
        charset: Option<&str>,
        mirror_hints: &[String],
        pdf: Option<&dyn PdfText>,
    ) -> Result<Text, NoText> {
        if bytes.len() > self.most_bytes() {
            return Err(NoText::TooLarge(self.most_bytes()));
        }
        let text = match self {
            Self::Plain => Text::plain(bytes, charset),
            Self::Html => Text::html_unless_mirror(bytes, charset, mirror_hints).map_err(NoText::Mirror)?,
            Self::Wikitext => Text::wikitext(Text::plain(bytes, charset).exact()),
            Self::Pdf => Text::new(pdf.ok_or(NoText::NoPdf)?.text(bytes).map_err(NoText::Pdf)?),
        };
        if text.is_empty() { Err(NoText::Empty) } else { Ok(text) }
    }
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoText::MediaType(media_type) => write!(f, "{media_type} has no text that is read"),
            NoText::TooLarge(most) => write!(f, "it has more than {most} bytes"),
            NoText::Mirror(hint) => hint.fmt(f),
            NoText::Pdf(error) => error.fmt(f),
            NoText::NoPdf => f.write_str("this build does not read PDF files; build it with the feature pdf"),
            NoText::Empty => f.write_str("it has no text"),
        }
    }
}

impl std::error::Error for NoText {}
