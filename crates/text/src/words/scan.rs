//! Finds the words of a text.

use fearless_simd::Simd;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::bytes64::{Bytes64, CHUNK};

/// Calls `each` with each word of `text`. `scratch` is empty before and after. The caller chooses the level of the processor, so that what it does with the words is
/// compiled for it, too.
#[inline(always)]
pub(super) fn scan<S: Simd>(simd: S, text: &str, scratch: &mut String, mut each: impl FnMut(Found<'_>)) {
    let mut window = Window::default();
    let mut at = 0;
    while at < text.len() {
        window.read(simd, text.as_bytes(), at);
        window.each_word(|start, end, has_upper| {
            each(Found {
                source: text,
                at: at + start,
                len: end - start,
                has_upper,
                bytes: &window.bytes,
                start,
            });
        });
        at += window.len;
        if window.is_cut {
            at = token(text, at, scratch, &mut each);
            // In most scripts the next token begins with no ASCII either; a window would be of no use there.
            while text.as_bytes().get(at + 1).is_some_and(|byte| !byte.is_ascii()) {
                at = token(text, at + 1, scratch, &mut each);
            }
        }
    }
}

/// A word that was found.
pub(super) struct Found<'a> {
    /// The text that has the word, perhaps with capital letters of ASCII. Most words are packed; taking each out as a text would check that it begins and ends with whole characters.
    source: &'a str,
    /// Where the word begins in the text, in bytes.
    at: usize,
    len: usize,
    has_upper: bool,
    /// It is from `start` on in these bytes, after which others follow.
    bytes: &'a [u8; CHUNK + SHORT],
    start: usize,
}

/// The most bytes of a word that is [packed](Found::packed).
pub(super) const SHORT: usize = size_of::<u128>();

impl Found<'_> {
    /// The word, in lower case. `scratch` is empty before and after.
    #[inline(always)]
    pub(super) fn with<T>(&self, scratch: &mut String, then: impl FnOnce(&str) -> T) -> T {
        let written = &self.source[self.at..self.at + self.len];
        if !self.has_upper {
            return then(written);
        }
        scratch.push_str(written);
        scratch.make_ascii_lowercase();
        let result = then(scratch);
        scratch.clear();
        result
    }

    /// The bytes of the word in lower case as a number, the first one lowest; `None` if there are more than 16. Different words are different numbers,
    /// because no word has a NUL.
    #[inline(always)]
    pub(super) fn packed(&self) -> Option<u128> {
        let len = self.len;
        let (_, from_start) = self.bytes.split_at_checked(self.start)?;
        let bytes = from_start.first_chunk::<SHORT>().filter(|_| len <= SHORT)?;
        let packed = u128::from_le_bytes(*bytes) & u128::MAX >> (8 * (SHORT - len));
        Some(if self.has_upper { lower_case(packed) } else { packed })
    }
}

/// Turns the capital letters of ASCII among sixteen bytes of ASCII into small ones.
#[inline(always)]
fn lower_case(bytes: u128) -> u128 {
    const EACH: u128 = u128::MAX / 255;
    const HIGHEST: u128 = EACH * 0x80;
    // The highest bit of each byte says whether it is at least an A, and whether it is beyond Z.
    let from_a = bytes + EACH * (0x80 - b'A') as u128;
    let beyond_z = bytes + EACH * (0x7F - b'Z') as u128;
    bytes | ((from_a & !beyond_z & HIGHEST) >> 2)
}

/// 64 bytes from the beginning of a token on, a bit each.
struct Window {
    bytes: [u8; CHUNK + SHORT],
    /// The bytes of words. Those of a word are side by side, and words are apart.
    words: u64,
    alphanumeric: u64,
    upper: u64,
    /// The length of the part that consists of whole tokens of ASCII, and of white space.
    len: usize,
    /// Whether a token begins there that is longer than a window, or is not ASCII.
    is_cut: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: [b' '; CHUNK + SHORT], words: 0, alphanumeric: 0, upper: 0, len: 0, is_cut: false }
    }
}

impl Window {
    #[inline(always)]
    fn read<S: Simd>(&mut self, simd: S, text: &[u8], start: usize) {
        let rest = &text[start..];
        match rest.first_chunk::<CHUNK>() {
            Some(chunk) => self.bytes[..CHUNK].copy_from_slice(chunk),
            None => {
                self.bytes[..rest.len()].copy_from_slice(rest);
                self.bytes[rest.len()..].fill(b' ');
            }
        }
        let bytes = Bytes64::of(simd, self.bytes.first_chunk().expect("a window is longer"));
        // White space of ASCII has no vertical tab.
        let spaces = bytes.equal(b' ') | bytes.within(b'\t'..=b'\r') & !bytes.equal(0x0B);
        let upper = bytes.within(b'A'..=b'Z');
        let letters = upper | bytes.within(b'a'..=b'z');
        let digits = bytes.within(b'0'..=b'9');
        let alphanumeric = letters | digits;
        let others = bytes.not_ascii();
        // The bits below the lowest one of the others; all if there are none.
        let before_others = !others & others.wrapping_sub(1);
        let len = CHUNK - (spaces & before_others).leading_zeros() as usize;
        let whole = if len == CHUNK { u64::MAX } else { !(u64::MAX << len) };
        let both = bytes.equal(b'.') | bytes.equal(b'\'');
        let of_letters = both | bytes.equal(b':');
        let of_digits = both | bytes.equal(b',') | bytes.equal(b';');
        let underscores = bytes.equal(b'_');
        let between = |kind: u64| kind << 1 & kind >> 1;
        // The punctuation within words by UAX 29: the underscore joins whatever is beside it, and others join two letters or two digits.
        let joints = underscores | of_letters & between(letters) | of_digits & between(digits);
        let words = alphanumeric | joints;
        (self.words, self.alphanumeric, self.upper) = (words & whole, alphanumeric, upper);
        (self.len, self.is_cut) = (len, others != 0 || len == 0);
    }

    /// Calls `word` with where each word begins and ends, and whether it has capital letters.
    #[inline(always)]
    fn each_word(&self, mut word: impl FnMut(usize, usize, bool)) {
        let mut starts = self.words & !(self.words << 1);
        let mut ends = !self.words & self.words << 1;
        while starts != 0 {
            let (start, end) = (starts.trailing_zeros(), ends.trailing_zeros());
            let range = u64::MAX << start & !(u64::MAX << end);
            // Underscores alone are no word.
            if self.alphanumeric & range != 0 {
                word(start as usize, end as usize, self.upper & range != 0);
            }
            starts &= starts - 1;
            ends &= ends - 1;
        }
    }
}

/// Calls `each` with each word of the token that begins at `start`; returns where it ends.
fn token(text: &str, start: usize, scratch: &mut String, each: &mut impl FnMut(Found<'_>)) -> usize {
    let rest = &text.as_bytes()[start..];
    let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let token = &text[start..start + len];
    if token.is_ascii() {
        scratch.push_str(token);
        scratch.make_ascii_lowercase();
    } else {
        normalise(token, scratch);
    }
    for word in scratch.unicode_words().map(str::trim).filter(|word| !word.is_empty()) {
        let mut bytes = [0; CHUNK + SHORT];
        let packed = word.len().min(SHORT);
        bytes[..packed].copy_from_slice(&word.as_bytes()[..packed]);
        each(Found { source: word, at: 0, len: word.len(), has_upper: false, bytes: &bytes, start: 0 });
    }
    scratch.clear();
    start + len
}

/// Appends the token to `out` in NFKC, without the invisible characters, in lower case.
fn normalise(token: &str, out: &mut String) {
    out.extend(token.nfkc().filter(|c| !matches!(c, '\u{200c}' | '\u{200d}' | '\u{feff}' | '\u{ad}')));
    // The whole string is lower-cased at once, because a sigma at the end of a word has a lower case of its own.
    if out.chars().any(char::is_uppercase) || out.contains(|c: char| c.to_lowercase().ne([c])) {
        *out = out.to_lowercase();
    }
}
