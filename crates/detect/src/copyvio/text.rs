//! The text of an article or a source, in the two forms that comparisons use.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use huntsman_html::{Region, Scan, ScanOptions};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chain::{Degree, Windows};
use super::evidence::Document;
use super::html::{Addresses, html_text_and_addresses};
use super::menus::menus;
use super::plain::plain_text;
use super::wikitext::Wikitext;

/// The text of an article or a source in two readings: the reference's, for [`Windows`], and a reader's, for [`Document`]. For plain text,
/// wiki pages and PDF both are the same; for HTML they are not, because the reference splits `W<i>o</i>rd` into three words.
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
    /// The reader's text, if it is a different one.
    seen: Option<String>,
    /// Byte ranges of the reader's text.
    boilerplate: Vec<Range<usize>>,
    quotations: Vec<Range<usize>>,
}

impl Text {
    /// A text that is the same in both readings.
    pub fn new(text: impl Into<String>) -> Self {
        Self { exact: text.into(), ..Self::default() }
    }

    /// The text of a plain text document. It is decoded by the charset of its header, by a byte order mark, or by a guess from its bytes.
    pub fn plain(body: &[u8], charset: Option<&str>) -> Self {
        Self::new(plain_text(body, charset))
    }

    /// The text of a wiki page, without its markup.
    pub fn wikitext(wikitext: &str) -> Self {
        Self::new(Wikitext::new(wikitext).text())
    }

    /// The text of an HTML page. Text in `nav`, `header`, `footer` and `aside` is boilerplate, and so is a row of at least five short links
    /// outside `main`; text in `blockquote` is a quotation.
    pub fn html(body: &[u8], charset: Option<&str>) -> Self {
        Self::html_and_addresses(body, charset).0
    }

    /// As [`html`](Self::html), and also returns the addresses of the page, by which mirrors are recognised.
    pub fn html_and_addresses(body: &[u8], charset: Option<&str>) -> (Self, Addresses) {
        let html = huntsman_html::decode_body(body, charset, None).text;
        let (exact, addresses) = html_text_and_addresses(&html);
        let scan = Scan::of(&html, &ScanOptions { blocks: true, ..ScanOptions::default() });
        let start = scan.text().as_ptr() as usize;
        let range = |piece: &str| {
            let from = piece.as_ptr() as usize - start;
            from..from + piece.len()
        };
        let is_boilerplate = |region: Region| !matches!(region, Region::None | Region::Main);
        let boilerplate = scan.regions().filter(|(_, region)| is_boilerplate(*region));
        let quotations = scan.blocks().filter(|block| block.tag == "blockquote");
        let text = Self {
            boilerplate: boilerplate.map(|(piece, _)| range(piece)).chain(menus(&scan, &html)).collect(),
            quotations: quotations.map(|block| range(block.text)).collect(),
            seen: Some(scan.text().to_owned()),
            exact,
        };
        (text, addresses)
    }

    /// The text as the reference reads it.
    pub fn exact(&self) -> &str {
        &self.exact
    }

    /// The text as a reader sees it; the positions in [`Evidence`](super::Evidence) refer to it.
    pub fn text(&self) -> &str {
        self.seen.as_deref().unwrap_or(&self.exact)
    }

    /// The text as a reader sees it, without boilerplate elements: pieces in their order.
    pub fn content(&self) -> impl Iterator<Item = &str> {
        let text = self.text();
        let ends = self.boilerplate.iter().map(|range| range.start).chain([text.len()]);
        let starts = [0].into_iter().chain(self.boilerplate.iter().map(|range| range.end));
        // Ranges of nested regions overlap.
        starts.zip(ends).filter_map(|(start, end)| text.get(start..end)).filter(|piece| !piece.is_empty())
    }

    /// Cuts both readings off after this number of bytes.
    pub fn truncate(&mut self, bytes: usize) {
        self.exact.truncate(self.exact.floor_char_boundary(bytes));
        if let Some(seen) = &mut self.seen {
            seen.truncate(seen.floor_char_boundary(bytes));
        }
        let end = self.text().len();
        for ranges in [&mut self.boilerplate, &mut self.quotations] {
            ranges.retain(|range| range.start < end);
            ranges.iter_mut().for_each(|range| range.end = range.end.min(end));
        }
    }

    /// Whether there is no text to compare.
    pub fn is_empty(&self) -> bool {
        self.exact.trim().is_empty() && self.text().trim().is_empty()
    }

    /// The windows of the text, for the reference's confidence.
    pub fn windows(&self, degree: Degree) -> Windows {
        Windows::of(&self.exact, degree)
    }

    /// The words of the text with their positions, for evidence.
    pub fn document(&self) -> Document<'_> {
        Document::new(self.text())
            .quotations(self.quotations.iter().cloned())
            .boilerplate(self.boilerplate.iter().cloned())
    }
}

/// The form in which a text is stored.
#[derive(Serialize, Deserialize)]
struct Stored<'t> {
    exact: Cow<'t, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen: Option<Cow<'t, str>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    boilerplate: Cow<'t, [Range<usize>]>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    quotations: Cow<'t, [Range<usize>]>,
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            exact: Cow::Borrowed(&self.exact),
            seen: self.seen.as_deref().map(Cow::Borrowed),
            boilerplate: Cow::Borrowed(&self.boilerplate),
            quotations: Cow::Borrowed(&self.quotations),
        };
        stored.serialize(serializer)
    }
}

/// Ranges outside the text are dropped.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { exact, seen, boilerplate, quotations } = Stored::deserialize(deserializer)?;
        let mut text = Self {
            exact: exact.into_owned(),
            seen: seen.map(Cow::into_owned),
            boilerplate: boilerplate.into_owned(),
            quotations: quotations.into_owned(),
        };
        let seen = text.seen.as_deref().unwrap_or(&text.exact);
        let is_place = |range: &Range<usize>| seen.get(range.clone()).is_some();
        text.boilerplate.retain(is_place);
        text.quotations.retain(is_place);
        Ok(text)
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
    fn a_stored_text_is_the_same_and_places_that_are_none_are_left_out() {
        let page = Text::html(
            "<nav>Über uns</nav><p>Own w<b>o</b>rds.<blockquote>Theirs.</blockquote>".as_bytes(),
            None,
        );
        let stored = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<Text>(&stored).unwrap(), page);
        let plain = Text::new("a");
        let stored = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<Text>(&stored).unwrap(), plain);
        let broken = r#"{"exact": "äb", "boilerplate": [{"start": 1, "end": 2}, {"start": 0, "end": 2}], "quotations": [{"start": 3, "end": 99}]}"#;
        let read: Text = serde_json::from_str(broken).unwrap();
        assert_eq!((read.boilerplate.len(), read.boilerplate[0].end, read.quotations.len()), (1, 2, 0));
        drop(read.document());
    }

    #[test]
    fn content_is_what_is_no_boilerplate() {
        let page = Text::html(b"<nav>Home</nav><p>One.<header>Top</header><p>Two.<footer>End</footer>", None);
        assert_eq!(
            page.content().map(str::trim).filter(|piece| !piece.is_empty()).collect::<Vec<_>>(),
            ["One.", "Two."]
        );
        assert_eq!(Text::new("all of it").content().collect::<Vec<_>>(), ["all of it"]);
    }

    #[test]
    fn a_text_that_is_cut_has_no_places_behind_its_end() {
        let html = "<p>Müll.<blockquote>Theirs, all of it.</blockquote><footer>Imprint</footer>";
        for bytes in 0..=html.len() {
            let mut page = Text::html(html.as_bytes(), None);
            page.truncate(bytes);
            assert!(page.exact().len() <= bytes && page.text().len() <= bytes);
            let places = page.boilerplate.iter().chain(&page.quotations);
            places.for_each(|range| assert!(page.text().get(range.clone()).is_some(), "{bytes}: {range:?}"));
        }
    }

    #[test]
    fn nothing_is_empty_and_marks_are_not() {
        assert!(Text::html(b"<nav> </nav><img alt=x>", None).is_empty());
        assert!(Text::default().is_empty() && !Text::new("!!!").is_empty());
    }

    #[test]
    fn a_mirror_is_recognised_by_its_links() {
        let hints = ["wiki.example/wiki/".to_owned()];
        let page = b"<body><a href='https://wiki.example/wiki/Mill'>from</a> text";
        let (text, addresses) = Text::html_and_addresses(page, None);
        assert_eq!(text, Text::html(page, None));
        assert_eq!(addresses.mirror(&hints).unwrap().to_string(), "links to `wiki.example/wiki/`");
        assert_eq!(addresses.mirror(&[]), None);
    }
}
