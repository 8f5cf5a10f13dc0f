//! What an article or a source says, as both comparisons read it.

use std::fmt;
use std::ops::Range;

use huntsman_html::{Region, Scan, ScanOptions};

use super::chain::{Degree, Windows};
use super::evidence::Document;
use super::html::{MirrorHint, html_text_unless_mirror};
use super::menus::menus;
use super::plain::plain_text;
use super::wikitext::Wikitext;

/// The words of an article or a source, read twice: as the reference reads them, for [`Windows`], and as a reader sees them, for
/// [`Document`]. Of plain text, wiki pages and PDF both are one text; of HTML they are not, since the reference takes
/// `W<i>o</i>rd` for three words.
///
/// ```
/// use huntsman_detect::copyvio::Text;
///
/// let page = Text::html(b"<nav>Home</nav><p>An <b>o</b>ld mill.<blockquote>Ground corn.</blockquote>", None);
/// assert_eq!(page.exact(), "Home\nAn\no\nld mill.\nGround corn.");
/// assert_eq!(page.text(), "Home\nAn old mill.\nGround corn.");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text {
    exact: String,
    /// Where it is another one.
    seen: Option<String>,
    /// Byte ranges of the seen text.
    boilerplate: Vec<Range<usize>>,
    quotations: Vec<Range<usize>>,
}

impl Text {
    /// A text as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self { exact: text.into(), ..Self::default() }
    }

    /// A plain text: decoded by the charset of its header, a byte order mark, or its looks.
    pub fn plain(body: &[u8], charset: Option<&str>) -> Self {
        Self::new(plain_text(body, charset))
    }

    /// What a wiki page says, without its markup.
    pub fn wikitext(wikitext: &str) -> Self {
        Self::new(Wikitext::new(wikitext).text())
    }

    /// A page. Text in `nav`, `header`, `footer` and `aside` is boilerplate, and so are at least five short links in a row that do not stand
    /// in `main`; text in `blockquote` is a quotation.
    pub fn html(body: &[u8], charset: Option<&str>) -> Self {
        Self::html_unless_mirror(body, charset, &[]).unwrap_or_default()
    }

    /// As [`html`](Self::html), unless the page links to the article's wiki as mirrors do.
    ///
    /// # Errors
    /// The hint that it has.
    pub fn html_unless_mirror(
        body: &[u8],
        charset: Option<&str>,
        mirror_hints: &[String],
    ) -> Result<Self, MirrorHint> {
        let html = huntsman_html::decode_body(body, charset, None).text;
        let exact = html_text_unless_mirror(&html, mirror_hints)?;
        let scan = Scan::of(&html, &ScanOptions { blocks: true, ..ScanOptions::default() });
        let start = scan.text().as_ptr() as usize;
        let range = |piece: &str| {
            let from = piece.as_ptr() as usize - start;
            from..from + piece.len()
        };
        let is_boilerplate = |region: Region| !matches!(region, Region::None | Region::Main);
        let boilerplate = scan.regions().filter(|(_, region)| is_boilerplate(*region));
        let quotations = scan.blocks().filter(|block| block.tag == "blockquote");
        Ok(Self {
            boilerplate: boilerplate.map(|(piece, _)| range(piece)).chain(menus(&scan, &html)).collect(),
            quotations: quotations.map(|block| range(block.text)).collect(),
            seen: Some(scan.text().to_owned()),
            exact,
        })
    }

    /// As the reference reads it.
    pub fn exact(&self) -> &str {
        &self.exact
    }

    /// As a reader sees it; places in it are the places in [`Evidence`](super::Evidence).
    pub fn text(&self) -> &str {
        self.seen.as_deref().unwrap_or(&self.exact)
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.exact.trim().is_empty() && self.text().trim().is_empty()
    }

    /// Its windows, for the reference's confidence.
    pub fn windows(&self, degree: Degree) -> Windows {
        Windows::of(&self.exact, degree)
    }

    /// Its words with their places, for evidence.
    pub fn document(&self) -> Document<'_> {
        Document::new(self.text())
            .quotations(self.quotations.iter().cloned())
            .boilerplate(self.boilerplate.iter().cloned())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("bytes", &self.text().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_boilerplate_and_what_is_quoted_is_known_by_its_elements() {
        let page = Text::html(
            "<nav>Über uns</nav><p>Own words.<blockquote>Theirs.</blockquote><footer>Imprint</footer>"
                .as_bytes(),
            None,
        );
        let pieces = |ranges: &[Range<usize>]| {
            ranges.iter().map(|range| page.text()[range.clone()].trim()).collect::<Vec<_>>()
        };
        assert_eq!(pieces(&page.boilerplate), ["Über uns", "Imprint"]);
        assert_eq!(pieces(&page.quotations), ["Theirs."]);
    }

    #[test]
    fn nothing_is_empty_and_marks_are_not() {
        assert!(Text::html(b"<nav> </nav><img alt=x>", None).is_empty());
        assert!(Text::default().is_empty() && !Text::new("!!!").is_empty());
    }

    #[test]
    fn a_mirror_is_told_by_its_links() {
        let hints = ["wiki.example/wiki/".to_owned()];
        let page = b"<body><a href='https://wiki.example/wiki/Mill'>from</a> text";
        assert!(Text::html_unless_mirror(page, None, &hints).is_err());
        assert!(Text::html_unless_mirror(page, None, &[]).is_ok());
    }
}
