//! Documents: what the files of a site say that are no HTML pages, and where their links lead.
//!
//! Feeds, Markdown, plain text and Word files are read here; PDF files by a [`ReadPdf`] of the program, in a process of its own. Links of plain text are not
//! taken for links: what stands there may be an example or be broken at the end of a line.

mod feed;
mod word;

use std::fmt;
use std::sync::Arc;

use huntsman_crawler::{Page, PageKind};
use huntsman_text::words;
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::links::{Base, Format, markdown_options, references};
use crate::page::{collapsed, is_whole, without_fragment};
use crate::record::{Edge, EdgeKind};

/// Characters of a title and of the text of a link.
const MAX_TEXT: usize = 200;
/// Links of a document.
const MAX_LINKS: usize = 10_000;
/// The media types of documents that are neither markup nor text, so that a crawl would not read their bodies.
pub(crate) const BINARY_TYPES: [&str; 2] = ["application/pdf", word::MEDIA_TYPE];
/// How PDF files begin.
const PDF: &[u8] = b"%PDF-";

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentKind {
    /// RSS, Atom or JSON Feed.
    Feed,
    /// Markdown.
    Markdown,
    /// PDF.
    Pdf,
    /// A sitemap that a page links to.
    Sitemap,
    /// Plain text.
    Text,
    /// A Word file (.docx).
    Word,
}

impl DocumentKind {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Markdown => "markdown",
            Self::Pdf => "pdf",
            Self::Sitemap => "sitemap",
            Self::Text => "text",
            Self::Word => "docx",
        }
    }
}

/// What a document says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// Its kind.
    pub kind: DocumentKind,
    /// Its title: that of the feed, the first heading of Markdown, or the title in the data of a PDF or Word file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Words of its text.
    #[serde(default)]
    pub words: usize,
    /// Entries of a feed, links of another document.
    #[serde(default)]
    pub links: usize,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// What a PDF file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdfFacts {
    /// The title in its data.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
    /// The URLs of its links, in the order of its pages.
    pub links: Vec<String>,
}

/// Reads PDF files. Readers fail in ways that error handling cannot catch, so this should run another process.
pub trait ReadPdf: fmt::Debug + Send + Sync {
    /// Reads a file. Blocks.
    ///
    /// # Errors
    /// Why it cannot be read, in words.
    fn read(&self, pdf: &[u8]) -> Result<PdfFacts, String>;
}

/// A reader of PDF files that is shared.
pub(crate) type PdfReader = Arc<dyn ReadPdf>;

/// What was found in a document.
#[derive(Debug, Default)]
struct Found {
    title: Option<String>,
    words: usize,
    links: Vec<Link>,
}

/// A link of a document.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    href: String,
    name: String,
    /// Line and column; `None` if the document has no lines.
    at: Option<(u32, u32)>,
}

/// Reads a document of the site; `None` for pages, images and all else. PDF files need a reader.
pub(crate) fn read(page: &Page, pdf: Option<&PdfReader>) -> Option<(Document, Vec<Edge>)> {
    let response = page.response();
    if !response.status.is_success() || !is_whole(response) || page.kind() == PageKind::Html {
        return None;
    }
    let kind = kind_of(page)?;
    let text = page.body_text();
    let found = match kind {
        DocumentKind::Pdf => of_pdf(&response.body, pdf?),
        DocumentKind::Feed => Ok(feed::read(page)),
        DocumentKind::Markdown => Ok(of_markdown(text, page.url())),
        DocumentKind::Text => Ok(Found { words: words::count(text), ..Found::default() }),
        DocumentKind::Sitemap => Ok(Found::default()),
        DocumentKind::Word => word::read(&response.body),
    };
    let (found, unread) = match found {
        Ok(found) => (found, None),
        Err(why) => (Found::default(), Some(why)),
    };
    let title = found.title.map(|title| collapsed(&title).chars().take(MAX_TEXT).collect::<String>());
    let edges = edges(&found.links, page.url());
    let document = Document {
        kind,
        title: title.filter(|title| !title.is_empty()),
        words: found.words,
        links: found.links.len(),
        unread,
    };
    Some((document, edges))
}

fn kind_of(page: &Page) -> Option<DocumentKind> {
    let media_type = page.response().content_type().unwrap_or_default();
    let path = page.url().path().to_ascii_lowercase();
    match page.kind() {
        PageKind::Binary if page.response().body.starts_with(PDF) => Some(DocumentKind::Pdf),
        PageKind::Binary if word::is_word(&page.response().body, &media_type, &path) => {
            Some(DocumentKind::Word)
        }
        PageKind::Xml => match &*feed::root(page)? {
            "rss" | "feed" | "RDF" => Some(DocumentKind::Feed),
            "urlset" | "sitemapindex" => Some(DocumentKind::Sitemap),
            _ => None,
        },
        PageKind::Json => feed::is_json_feed(page).then_some(DocumentKind::Feed),
        PageKind::Text
            if media_type == "text/markdown" || path.ends_with(".md") || path.ends_with(".markdown") =>
        {
            Some(DocumentKind::Markdown)
        }
        PageKind::Text if media_type == "text/plain" => Some(DocumentKind::Text),
        _ => None,
    }
}

fn of_pdf(pdf: &[u8], reader: &PdfReader) -> Result<Found, String> {
    let facts = reader.read(pdf)?;
    let links = facts.links.into_iter().take(MAX_LINKS);
    let links = links.map(|href| Link { href, name: String::new(), at: None });
    Ok(Found { title: facts.title, words: words::count(&facts.text), links: links.collect() })
}

fn of_markdown(text: &str, url: &Url) -> Found {
    let mut found = Found::default();
    let (mut title, mut is_title, mut said) = (String::new(), false, String::new());
    for event in Parser::new_ext(text, markdown_options()) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => is_title = found.title.is_none(),
            Event::End(TagEnd::Heading(HeadingLevel::H1)) if is_title => {
                is_title = false;
                found.title = Some(std::mem::take(&mut title));
            }
            Event::Text(words) | Event::Code(words) => {
                if is_title {
                    title.push_str(&words);
                }
                said.push_str(&words);
                said.push(' ');
            }
            _ => {}
        }
    }
    found.words = words::count(&said);
    let links = references("", text, Format::Markdown, Base::Url(url.clone())).into_iter().take(MAX_LINKS);
    let links =
        links.map(|link| Link { href: link.href, name: link.text, at: Some((link.line, link.column)) });
    found.links = links.collect();
    found
}

fn edges(links: &[Link], base: &Url) -> Vec<Edge> {
    let edges = links.iter().filter_map(|link| {
        let url = base.join(link.href.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let mut edge = Edge::new(&without_fragment(&url), EdgeKind::Link);
        edge.fragment = url.fragment().filter(|fragment| !fragment.is_empty()).map(str::to_owned);
        if let Some(at) = link.at {
            (edge.place.line, edge.place.column) = at;
        }
        edge.place.link = Some(collapsed(&link.name).chars().take(MAX_TEXT).collect());
        Some(edge)
    });
    edges.collect()
}
