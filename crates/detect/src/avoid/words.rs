//! The words of a text: what is between white space, found 64 bytes at a time.

use fearless_simd::Simd;
use huntsman_text::bytes64::{Bytes64, CHUNK};

/// A word, and whether it has an ASCII digit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    /// The text that has the word. Most words are needed as bytes only; taking the word out as a text would check that it begins and ends with whole characters.
    source: &'a str,
    start: usize,
    end: usize,
    pub(crate) has_digit: bool,
}

impl<'a> Word<'a> {
    /// The bytes of the word, of which there is at least one.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.source.as_bytes()[self.start..self.end]
    }

    pub(crate) fn text(&self) -> &'a str {
        &self.source[self.start..self.end]
    }

    pub(crate) fn has_letter(&self) -> bool {
        self.bytes()[0].is_ascii_alphabetic() || self.text().chars().any(char::is_alphabetic)
    }
}

/// The words of a text in order: those of [`str::split_whitespace`].
#[derive(Clone)]
pub(crate) struct Words<'a, S: Simd> {
    /// The level of the processor, for which all of this is compiled.
    simd: S,
    text: &'a str,
    chunk: Chunk,
    /// The places of the chunk, a bit each, at which words begin and end, in turn, and were not yet passed.
    edges: u64,
    /// The number of bytes of the chunk before the word.
    before: usize,
    /// Whether the word has a digit in earlier chunks.
    has_digit: bool,
}

/// The kinds of 64 bytes, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// The place of the first byte.
    start: usize,
    /// White space, and all beyond the end of the text.
    spaces: u64,
    digits: u64,
}

impl<'a, S: Simd> Words<'a, S> {
    #[inline(always)]
    pub(crate) fn of(simd: S, text: &'a str) -> Self {
        let chunk = Chunk::of(simd, text, 0);
        // The text begins as if after white space.
        let edges = chunk.edges(true);
        Self { simd, text, chunk, edges, before: 0, has_digit: false }
    }

    /// The next place at which a word begins or ends.
    #[inline(always)]
    fn edge(&mut self) -> Option<usize> {
        while self.edges == 0 {
            let start = self.chunk.start + CHUNK;
            if start > self.text.len() {
                return None;
            }
            self.has_digit |= self.chunk.digits >> self.before != 0;
            self.before = 0;
            let is_after_space = self.chunk.spaces >> (CHUNK - 1) == 1;
            self.chunk = Chunk::of(self.simd, self.text, start);
            self.edges = self.chunk.edges(is_after_space);
        }
        let at = self.edges.trailing_zeros() as usize;
        self.edges &= self.edges - 1;
        Some(self.chunk.start + at)
    }
}

impl Chunk {
    /// The chunk of a text from a place on.
    #[inline(always)]
    fn of<S: Simd>(simd: S, text: &str, start: usize) -> Self {
        let bytes = &text.as_bytes()[start..];
        let mut padded = [b' '; CHUNK];
        let bytes = bytes.first_chunk::<CHUNK>().unwrap_or_else(|| {
            padded[..bytes.len()].copy_from_slice(bytes);
            &padded
        });
        let bytes = Bytes64::of(simd, bytes);
        let spaces = bytes.equal(b' ') | bytes.within(b'\t'..=b'\r');
        let spaces = if bytes.not_ascii() == 0 { spaces } else { spaces | wide_spaces(text, start) };
        let digits = bytes.within(b'0'..=b'9');
        Self { start, spaces, digits }
    }

    /// Where white space follows a word, or a word white space.
    #[inline(always)]
    fn edges(self, is_after_space: bool) -> u64 {
        self.spaces ^ (self.spaces << 1 | u64::from(is_after_space))
    }
}

/// The bytes of white space that is not ASCII, within the chunk that begins at a place.
fn wide_spaces(text: &str, start: usize) -> u64 {
    let end = start + CHUNK;
    let mut spaces = 0;
    // A character may begin before the chunk.
    let mut at = text.floor_char_boundary(start);
    for space in text[at..text.ceil_char_boundary(end)].chars() {
        let next = at + space.len_utf8();
        if !space.is_ascii() && space.is_whitespace() {
            (at.max(start)..next.min(end)).for_each(|byte| spaces |= 1 << (byte - start));
        }
        at = next;
    }
    spaces
}

impl<'a, S: Simd> Iterator for Words<'a, S> {
    type Item = Word<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Word<'a>> {
        let start = self.edge()?;
        (self.before, self.has_digit) = (start % CHUNK, false);
        let end = self.edge()?;
        let digits = self.chunk.digits >> self.before & !(u64::MAX << (end % CHUNK - self.before));
        let has_digit = self.has_digit || digits != 0;
        Some(Word { source: self.text, start, end, has_digit })
    }
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};

    use super::*;

    fn check(text: &str) {
        let [baseline, found] = [Level::baseline(), Level::new()]
            .map(|level| dispatch!(level, simd => Words::of(simd, text).collect::<Vec<_>>()));
        let texts = |words: &[Word<'_>]| words.iter().map(|word| word.text().to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(&found), text.split_whitespace().collect::<Vec<_>>(), "{text:?}");
        assert_eq!(texts(&baseline), texts(&found), "{text:?}");
        for word in found.iter().chain(&baseline) {
            assert_eq!(word.has_digit, word.text().bytes().any(|byte| byte.is_ascii_digit()), "{text:?}");
            assert_eq!(word.has_letter(), word.text().chars().any(char::is_alphabetic), "{text:?}");
        }
    }

    #[test]
    fn words_are_those_between_white_space_of_any_script() {
        for text in [
            "",
            " ",
            "one",
            "  a bc\tdef\r\nghij klmno pqrstu vwxyzab cdefghij klmnopqrs \u{b}t\u{c}u ",
            "caf\u{e9}\u{a0}au\u{3000}lait\u{85}na\u{ef}vet\u{e9}",
            "\u{65e5}\u{672c}\u{8a9e}\u{2003}text 3\u{20ac} \u{1c}\u{1f}x\u{7f} @[`{/:09",
        ] {
            check(text);
        }
        // Each kind of character at each place of eight bytes.
        for kind in [
            "7",
            "/",
            ":",
            "0",
            "9",
            "a",
            "\u{1f}",
            "!",
            " ",
            "\t",
            "\u{a0}",
            "\u{e9}",
            "\u{2028}",
            "\u{1f600}",
        ] {
            for before in (0..18).chain(54..84) {
                for after in 0..10 {
                    check(&format!("{}{kind}{}", "x".repeat(before), "y".repeat(after)));
                }
            }
        }
    }
}
