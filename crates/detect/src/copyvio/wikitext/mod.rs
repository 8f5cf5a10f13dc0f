//! Reads wiki pages: the text of an article, and its external links.
//!
//! The reference parses with `mwparserfromhell` 0.7, which tries one reading after another. This implementation makes one pass with a stack
//! ([`parser`]) and one over its pieces ([`strip`]): linear in the length, no recursion, at most a hundred constructs deep. It reads
//! well-formed markup in the same way. If markup overlaps (`[[a {{b]] c}}`), the construct that can be closed first is closed, and an
//! unclosed one stays as literal text.

mod parser;
mod pieces;
mod strip;
mod tags;

use parser::parse;
use pieces::Pieces;

/// A parsed wiki page.
///
/// ```
/// use huntsman_detect::copyvio::Wikitext;
///
/// let page = Wikitext::new("The '''mill'''<ref>[http://a.example/ Source]</ref> is [[old|very old]]. {{stub}}");
/// assert_eq!(page.text(), "The mill is very old.");
/// assert_eq!(page.links(), ["http://a.example/"]);
/// ```
#[derive(Debug)]
pub struct Wikitext<'t> {
    pieces: Pieces<'t>,
}

/// The number of bytes of a page that are read. Pages of MediaWiki have at most 2 MiB.
pub const MAX_WIKITEXT: usize = 32 << 20;

impl<'t> Wikitext<'t> {
    /// Parses a page, and ignores the text after [`MAX_WIKITEXT`] bytes. Takes about 24 bytes of memory per piece of markup or text
    /// between.
    pub fn new(wikitext: &'t str) -> Self {
        let end = wikitext.floor_char_boundary(MAX_WIKITEXT);
        Self { pieces: parse(&wikitext[..end]) }
    }

    /// The article's text, as the reference's `ArticleParser.strip` extracts it:
    /// 1. Links to `File:`, `Image:` and `Category:` are dropped (the English names only; a leading colon protects).
    /// 2. `<ref>` tags are dropped with their content.
    /// 3. Templates are replaced by those of their values that have at least 35 characters, between spaces; without such a value they are
    ///    dropped.
    /// 4. All other markup is removed and its content stays: labels of links, cells, headings, nowiki. Comments, attributes and the content
    ///    of math, gallery, score, timeline and similar tags are dropped, entities decoded.
    /// 5. Runs of line breaks become one; the ends are trimmed.
    ///
    /// Markup that is not closed stays unchanged. Magic words (`__NOTOC__`, `~~~~`) stay.
    ///
    /// Deliberately different: every entity of HTML is decoded (the reference knows those of HTML 4).
    pub fn text(&self) -> String {
        strip::text(&self.pieces)
    }

    /// Every external link whose address begins with exactly `http://` or `https://`, in the order of the page, including those in
    /// references and templates, with repetitions.
    pub fn links(&self) -> Vec<&'t str> {
        let links = self.pieces.links.iter().copied();
        links.filter(|link| link.starts_with("http://") || link.starts_with("https://")).collect()
    }
}
