//! A text as words with their positions, prepared for matching.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, Script};
use unicode_normalization::UnicodeNormalization;
use xxhash_rust::xxh3::xxh3_64;

use super::disguise::{Disguise, fold_word};

/// The number of bytes of a text that are read; the rest gives no evidence.
pub const MAX_DOCUMENT: usize = 16 << 20;

/// A word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) hash: u64,
    /// The byte offset in the text.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The weight of the token in quarters of a word: 4, but 2 for a character of Han or Kana, 1 for one of Thai and similar scripts.
    pub(super) weight: u8,
}

/// A text and its words, as used for evidence. The rules are better than those of the exact mode, and give other numbers.
///
/// - The text is normalised to NFKC and lower case, invisible characters (zero-width characters, soft hyphens) are removed, and look-alikes
///   from other scripts are replaced; [`Document::disguise`] tells how many words needed that.
/// - Every character other than a letter, mark or digit ends a word, except an apostrophe within it. So all hyphens are equal, and dashes
///   by themselves are no words.
/// - In scripts without spaces (Han, Kana; Thai, Lao, Khmer, Burmese) every character with its marks is a word. Its hash includes the
///   characters that follow it, and it counts as half or a quarter of a word.
/// - Marks are kept, so that different Indic words stay different.
///
/// 24 bytes of memory per word. An article is prepared once and compared with many sources.
pub struct Document<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) tokens: Vec<Token>,
    pub(super) disguise: Disguise,
    /// Byte ranges that the caller has marked as quotations, ascending.
    pub(super) quotations: Vec<Range<usize>>,
    /// Byte ranges that the caller has marked as navigation, headers or footers, ascending.
    pub(super) boilerplate: Vec<Range<usize>>,
}

impl<'t> Document<'t> {
    /// Reads a text. Linear in its length, of which at most [`MAX_DOCUMENT`] bytes are read.
    pub fn new(text: &'t str) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_DOCUMENT)];
        let mut reader = Reader { text, tokens: Vec::with_capacity(text.len() / 6), ..Reader::default() };
        reader.run();
        let Reader { tokens, disguise, .. } = reader;
        Self { text: Cow::Borrowed(text), tokens, disguise, quotations: Vec::new(), boilerplate: Vec::new() }
    }

    /// Marks byte ranges of the text as quotations, such as `blockquote` and `q` elements, in addition to text in quotation marks.
    pub fn quotations(mut self, ranges: impl IntoIterator<Item = Range<usize>>) -> Self {
        self.quotations = sorted(ranges);
        self
    }

    /// Marks byte ranges of the text as boilerplate: navigation, header, footer.
    pub fn boilerplate(mut self, ranges: impl IntoIterator<Item = Range<usize>>) -> Self {
        self.boilerplate = sorted(ranges);
        self
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A copy that owns its text, for articles that outlive the input.
    pub fn into_owned(self) -> Document<'static> {
        Document { text: Cow::Owned(self.text.into_owned()), ..self }
    }

    /// The number of words; characters of scripts without spaces count as parts of words.
    pub fn words(&self) -> f64 {
        weight(&self.tokens)
    }

    /// The hashes of the words in their order, with `None` in place of boilerplate.
    pub(in crate::copyvio) fn words_in_pieces(&self) -> impl Iterator<Item = Option<u64>> {
        let mut boilerplate = self.boilerplate.iter().peekable();
        self.tokens.iter().map(move |token| {
            while boilerplate.next_if(|range| range.end <= token.start as usize).is_some() {}
            let is_boilerplate = boilerplate.peek().is_some_and(|range| range.start < token.end as usize);
            (!is_boilerplate).then_some(token.hash)
        })
    }

    /// The number of words that had to be normalised because of unusual characters.
    pub fn disguise(&self) -> Disguise {
        self.disguise
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("bytes", &self.text.len())
            .field("tokens", &self.tokens.len())
            .field("disguise", &self.disguise)
            .finish_non_exhaustive()
    }
}

/// Sorts ranges and merges those that overlap.
pub(super) fn sorted(ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<_> = ranges.into_iter().filter(|range| range.start < range.end).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, range| {
        let overlap = next.start < range.end;
        if overlap {
            range.end = range.end.max(next.end);
        }
        overlap
    });
    ranges
}

/// The weight of tokens, in words.
pub(super) fn weight(tokens: &[Token]) -> f64 {
    tokens.iter().map(|token| f64::from(token.weight)).sum::<f64>() / 4.0
}

/// The role of a character in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A letter or digit.
    Letter,
    /// A mark, which belongs to the letter before it.
    Mark,
    /// A letter of a script without spaces: a word of its own, of this many quarters.
    Single(u8),
    Apostrophe,
    /// An invisible character: neither part of a word nor its end.
    Invisible,
    Other,
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Letter,
            '\'' => Class::Apostrophe,
            _ => Class::Other,
        };
    }
    use GeneralCategory as Category;
    match c {
        '\u{2019}' | '\u{2BC}' | '\u{FF07}' => return Class::Apostrophe,
        // Soft hyphen, Mongolian vowel separator, joiners, direction marks, tags.
        '\u{AD}' | '\u{34F}' | '\u{180E}' | '\u{FEFF}' => return Class::Invisible,
        _ => {}
    }
    match CodePointMapData::<Category>::new().get(c) {
        Category::Format => Class::Invisible,
        Category::NonspacingMark | Category::SpacingMark | Category::EnclosingMark => Class::Mark,
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::DecimalNumber
        | Category::LetterNumber
        | Category::OtherNumber => Class::Letter,
        Category::OtherLetter => match CodePointMapData::<Script>::new().get(c) {
            Script::Han | Script::Hiragana | Script::Katakana | Script::Bopomofo | Script::Yi => {
                Class::Single(2)
            }
            Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar => Class::Single(1),
            _ => Class::Letter,
        },
        _ => Class::Other,
    }
}

#[derive(Default)]
struct Reader<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    disguise: Disguise,
    /// The letters of the current word, without invisible characters.
    word: String,
    invisible: u32,
    start: usize,
    end: usize,
    /// For a single character, its quarters.
    single: Option<u8>,
    /// The index in `tokens` at which the current row of single characters begins.
    row: usize,
}

impl Reader<'_> {
    fn run(&mut self) {
        let mut chars = self.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match class(c) {
                Class::Letter => self.letter(at, c, None),
                Class::Single(quarters) => self.letter(at, c, Some(quarters)),
                Class::Mark if self.word.is_empty() => {}
                Class::Mark => {
                    self.word.push(c);
                    self.end = at + c.len_utf8();
                }
                Class::Apostrophe => {
                    let within = chars.peek().is_some_and(|(_, next)| class(*next) == Class::Letter);
                    if !within || self.single.is_some() {
                        self.end_word();
                    }
                }
                Class::Invisible => self.invisible += u32::from(!self.word.is_empty()),
                Class::Other => {
                    self.end_word();
                    self.end_row();
                }
            }
        }
        self.end_word();
        self.end_row();
    }

    fn letter(&mut self, at: usize, c: char, single: Option<u8>) {
        if single.is_some() || self.single.is_some() {
            self.end_word();
        }
        if single.is_none() && self.tokens.len() > self.row && self.word.is_empty() {
            self.end_row();
        }
        if self.word.is_empty() {
            self.start = at;
            self.single = single;
        }
        self.word.push(c);
        self.end = at + c.len_utf8();
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let ascii = self.word.is_ascii();
        if ascii && self.invisible == 0 {
            self.word.make_ascii_lowercase();
        } else {
            let marks = fold_word(&mut self.word, self.invisible, &mut self.disguise);
            debug_assert!(marks || !self.word.is_empty());
        }
        // The text has at most `MAX_DOCUMENT` bytes.
        let (start, end) = (self.start as u32, self.end as u32);
        let hash = xxh3_64(self.word.as_bytes());
        self.tokens.push(Token { hash, start, end, weight: self.single.unwrap_or(4) });
        if self.single.is_none() {
            self.row = self.tokens.len();
        }
        self.word.clear();
        self.invisible = 0;
        self.single = None;
    }

    /// Ends a row of single characters. The hash of each covers the character and those that follow it in the row: two characters in all
    /// for half words, three for quarters.
    fn end_row(&mut self) {
        let row = &mut self.tokens[self.row..];
        for at in 0..row.len() {
            let length = if row[at].weight == 1 { 3 } else { 2 };
            let end = (at + length).min(row.len());
            row[at].hash = row[at..end].iter().fold(0_u64, |hash, token| {
                (hash ^ token.hash).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
            });
        }
        self.row = self.tokens.len();
    }
}

/// NFKC and full lower case of a word.
pub(super) fn normalised(word: &str) -> String {
    word.nfkc().collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(text: &str) -> Vec<u64> {
        Document::new(text).tokens.iter().map(|token| token.hash).collect()
    }

    fn places(text: &str) -> Vec<&str> {
        Document::new(text)
            .tokens
            .iter()
            .map(|token| &text[token.start as usize..token.end as usize])
            .collect()
    }

    #[test]
    fn words_are_equal_however_they_are_written() {
        let plain = hashes("a well known cafe\u{301} of 1923 doesn't");
        for text in [
            "A well-known caf\u{E9} of 1923 doesn\u{2019}t",
            "A WELL\u{2010}KNOWN \u{2013} caf\u{E9}, of 1923 doesn't!",
        ] {
            assert_eq!(hashes(text), plain, "{text}");
        }
        assert_eq!(hashes("ﬁnd ＦＵＬＬ"), hashes("find full"));
        assert_eq!(hashes("co\u{AD}operate zero\u{200B}width"), hashes("cooperate zerowidth"));
    }

    #[test]
    fn places_are_those_of_the_text() {
        assert_eq!(
            places("Don't say \u{201C}caf\u{E9}\u{201D} - ever."),
            ["Don't", "say", "caf\u{E9}", "ever"]
        );
        assert_eq!(places("पुरानी चक्की"), ["पुरानी", "चक्की"]);
        assert_eq!(places("古い水車x山"), ["古", "い", "水", "車", "x", "山"]);
    }

    #[test]
    fn marks_keep_words_apart() {
        assert_ne!(hashes("की"), hashes("का"));
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_parts_of_words() {
        assert_eq!(Document::new("古老的磨坊").words(), 2.5);
        // Equal characters that are followed by different ones are different words.
        assert_eq!(hashes("磨坊矗立")[0], hashes("磨坊博物")[0]);
        assert_ne!(hashes("磨坊矗立")[1], hashes("磨坊博物")[1]);
        assert_eq!(Document::new("โรงสี").words(), 1.0);
    }
}
