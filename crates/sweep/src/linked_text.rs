//! A text together with the pages that it links to.

use huntsman_crawler::{Context, Page};
use huntsman_detect::copyvio::{Text, Wikitext};
use huntsman_html::{Scan, ScanOptions};
use url::Url;

use crate::candidates::Subject;
use crate::pdf::PdfText;
use crate::reading::{NoText, Reading, TextKind, external_links, links_to_others};

/// A text with its metadata and the web addresses that it links to, which may be its sources.
#[derive(Clone, Debug)]
pub struct LinkedText {
    /// The text and its metadata.
    pub reading: Reading,
    /// The addresses, in order.
    pub links: Vec<String>,
}

impl LinkedText {
    /// Reads a fetched page in a callback, with its links to other sites.
    ///
    /// # Errors
    /// The reason why there is no text.
    pub fn of_page(page: &Page, cx: &Context, pdf: Option<&dyn PdfText>) -> Result<Self, NoText> {
        let reading = Reading::of_page(page, cx, pdf)?;
        Ok(Self { reading, links: external_links(page) })
    }

    /// Reads bytes without metadata, with the absolute http and https addresses in them: the links of an HTML page, and
    /// the external links of wikitext. Plain text and PDF files have none.
    ///
    /// # Errors
    /// The reason why there is no text.
    pub fn of_bytes(kind: TextKind, bytes: &[u8], pdf: Option<&dyn PdfText>) -> Result<Self, NoText> {
        let reading = Reading::of_bytes(kind, bytes, None, pdf)?;
        let links = match kind {
            TextKind::Wikitext => {
                let source = Text::plain(bytes, None);
                Wikitext::new(source.exact()).links().into_iter().map(str::to_owned).collect()
            }
            TextKind::Html => {
                let html = huntsman_html::decode_body(bytes, None, None).text;
                let scan = Scan::of(&html, &ScanOptions::links_only());
                let is_address = |href: &str| href.starts_with("http://") || href.starts_with("https://");
                let hrefs = scan.links(&html).map(|link| link.href);
                hrefs.filter(|href| is_address(href)).map(str::to_owned).collect()
            }
            TextKind::Plain | TextKind::Pdf => Vec::new(),
        };
        Ok(Self { reading, links })
    }

    /// The text as the article of a check. With its URL `at`, links to its own site are left out.
    pub fn subject(self, at: Option<&Url>) -> Subject {
        let Self { reading, links } = self;
        let Some(url) = at else { return Subject { links, ..Subject::new(reading.text) } };
        let links = links_to_others(url, links.iter().filter_map(|link| Url::parse(link).ok()));
        Subject::of_page(url.as_str(), reading, links)
    }
}
