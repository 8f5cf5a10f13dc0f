//! Wiki pages: the text that an article has, and its external links.
//!
//! The reference parses with `mwparserfromhell` 0.7, which tries one reading after the other. Here it is one pass with a
//! stack ([`parser`]) and one over its pieces ([`strip`]): linear in the length, no recursion, at most a hundred
//! constructs deep. Well-formed markup is read in the same way; where markup overlaps (`[[a {{b]] c}}`), the construct
//! that can be closed first is, and what is left open stays as literal text.

mod parser;
mod pieces;
mod strip;
mod tags;

use parser::parse;
use pieces::Pieces;

/// A wiki page, read once.
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

/// What is read of a page. Pages of MediaWiki have at most 2 MiB.
pub const MAX_WIKITEXT: usize = 32 << 20;

impl<'t> Wikitext<'t> {
    /// Reads a page, of which what lies beyond [`MAX_WIKITEXT`] bytes is left out. Takes about 24 bytes of memory per
    /// piece of markup or text between.
    pub fn new(wikitext: &'t str) -> Self {
        let end = wikitext.floor_char_boundary(MAX_WIKITEXT);
        Self { pieces: parse(&wikitext[..end]) }
    }

    /// The article's text, as the reference's `ArticleParser.strip` gives it:
    /// 1. Links to `File:`, `Image:` and `Category:` are dropped (the English names only; a leading colon protects).
    /// 2. `<ref>` tags are dropped with their content.
    /// 3. Of templates the values of at least 35 characters are kept, in spaces; without one nothing is.
    /// 4. All other markup goes and what it marks stays: labels of links, cells, headings, nowiki. Comments, attributes
    ///    and the content of math, gallery, score, timeline and the like are dropped, entities decoded.
    /// 5. Runs of line breaks are one; the ends are trimmed.
    ///
    /// Markup that is not closed stays as it is. Magic words (`__NOTOC__`, `~~~~`) stay.
    ///
    /// Deliberately different: every entity of HTML is decoded (the reference knows those of HTML 4).
    pub fn text(&self) -> String {
        strip::text(&self.pieces)
    }

    /// Every external link whose address begins with exactly `http://` or `https://`, in the order of the page, also
    /// those in references and templates, repeated ones too.
    pub fn links(&self) -> Vec<&'t str> {
        let links = self.pieces.links.iter().copied();
        links.filter(|link| link.starts_with("http://") || link.starts_with("https://")).collect()
    }
}
