//! The words of a text, normalised in one way for all detectors.
//!
//! The text is put into NFKC, without U+200C, U+200D, U+FEFF and U+00AD, and into full lower case, and each run of white space counts as
//! one space. A word is then a segment between word boundaries (UAX 29) with at least one alphanumeric character, trimmed. The trimming
//! matters because NFKC turns U+037A into a space and U+0345, which UAX 29 keeps together, and no word may begin with a space.
//!
//! White space always separates words, so the text is processed token by token. Tokens of ASCII need no normalising, and their words are
//! found 64 bytes at a time. That is many times faster than normalising the whole text, and gives the same words.

mod scan;
mod word_counts;

use std::fmt;

use fearless_simd::{Level, dispatch};
use xxhash_rust::xxh3::xxh3_128;

use scan::scan;
pub use word_counts::WordCounts;

/// The words of a text in their order, each with a 128-bit hash.
///
/// The hash is XXH3-128 with seed 0 of the word's UTF-8 bytes: it is the same on every machine and in every version.
///
/// ```
/// use huntsman_text::words::Words;
///
/// let words = Words::of("Hello, \"WORLD\": can't stop!");
/// assert_eq!(words.iter().collect::<Vec<_>>(), ["hello", "world", "can't", "stop"]);
/// assert_eq!(words.hashes()[0], Words::of("(hello)").hashes()[0]);
/// ```
#[derive(Clone, Default)]
pub struct Words {
    /// The words one after the other, each followed by a space.
    text: String,
    /// Where each word ends in `text`.
    ends: Vec<usize>,
    hashes: Vec<u128>,
    /// Buffer for tokens that must be normalised; empty between calls.
    scratch: String,
}

impl Words {
    /// The words of `text`.
    pub fn of(text: &str) -> Self {
        let mut words = Words::default();
        words.extend(text);
        words
    }

    /// Appends the words of `text`, such as the next block of a page. The end of a block ends a word.
    pub fn extend(&mut self, text: &str) {
        let Words { text: all, ends, hashes, scratch } = self;
        let mut lower = String::new();
        dispatch!(Level::new(), simd => scan(simd, text, scratch, |word| {
            word.with(&mut lower, |word| {
                all.push_str(word);
                hashes.push(xxh3_128(word.as_bytes()));
            });
            ends.push(all.len());
            all.push(' ');
        }));
    }

    /// Removes all words and keeps the memory for the next text.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.hashes.clear();
    }

    /// The number of words, repeated ones counted each time.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The word at a position.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        Some(&self.text[self.start(index)..end])
    }

    /// The words in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|index| &self.text[self.start(index)..self.ends[index]])
    }

    /// The hashes of the words, in their order.
    pub fn hashes(&self) -> &[u128] {
        &self.hashes
    }

    /// All words joined by one space.
    pub fn joined(&self) -> &str {
        self.text.strip_suffix(' ').unwrap_or(&self.text)
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before] + 1)
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start: Vec<&str> = self.iter().take(8).collect();
        f.debug_struct("Words").field("len", &self.len()).field("start", &start).finish_non_exhaustive()
    }
}

/// Counts the words of `text` without keeping them.
pub fn count(text: &str) -> usize {
    let mut count = 0;
    dispatch!(Level::new(), simd => scan(simd, text, &mut String::new(), |_| count += 1));
    count
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};
    use unicode_normalization::UnicodeNormalization;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        Words::of(text).iter().map(str::to_owned).collect()
    }

    /// The definition of words, implemented directly over the whole text.
    fn naive(text: &str) -> Vec<String> {
        let text: String =
            text.nfkc().filter(|c| !matches!(c, '\u{200c}' | '\u{200d}' | '\u{feff}' | '\u{ad}')).collect();
        let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        text.unicode_words().map(|w| w.trim().to_owned()).filter(|w| !w.is_empty()).collect()
    }

    #[test]
    fn words_of_many_scripts() {
        for (text, expected) in [
            ("", &[][..]),
            (" \t\n", &[]),
            ("Hello, world!", &["hello", "world"]),
            ("(\"'quoted'\")", &["quoted"]),
            ("can't stop 3.14 a.b_c _x_ __", &["can't", "stop", "3.14", "a.b_c", "_x_"]),
            ("hello\u{200d} WOR\u{ad}LD\u{feff}", &["hello", "world"]),
            ("ﬁne café Ⅷ", &["fine", "café", "viii"]),
            ("cafe\u{301}", &["café"]),
            ("a\u{a0}b\u{3000}c\u{2028}d\u{85}e\u{b}f", &["a", "b", "c", "d", "e", "f"]),
            ("ΟΔΟΣ ΟΔΟΣ.", &["οδος", "οδος"]),
            ("İstanbul", &["i\u{307}stanbul"]),
            ("नई प्रारंभ में", &["नई", "प्रारंभ", "में"]),
            ("日本 カタカナ", &["日", "本", "カタカナ"]),
            ("x-ray R2D2 C++ #3", &["x", "ray", "r2d2", "c", "3"]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
            assert_eq!(naive(text), expected, "{text:?}");
        }
    }

    #[test]
    fn no_word_begins_with_a_space() {
        // U+037A is a space and U+0345 in NFKC.
        assert_eq!(
            words("α\u{37a} \u{37a}β x\u{37a}y"),
            ["α", "\u{345}", "\u{345}", "β", "x", "\u{345}", "y"].map(lower)
        );
        assert_eq!(words("\u{37a}"), naive("\u{37a}"));

        fn lower(word: &str) -> String {
            word.to_lowercase()
        }
    }

    #[test]
    fn token_by_token_is_the_definition() {
        // All sequences of 1 to 4 of these pieces: letters of several classes, marks, joiners, spaces, numbers.
        let pieces = [
            "a", "B", "1", " ", "'", ".", "_", "-", ",", "\u{a0}", "é", "Σ", "\u{301}", "\u{345}", "\u{37a}",
            "\u{200d}", "\u{ad}", "क", "ि", "日", "ア", "\u{2028}", "\u{b}", "ﬁ", "א", "\"", "🇩", "😀", "İ",
            "\u{b4}", "\u{1c}", ":", ";", "/", "\n", "\u{7f}", "Zy", "42",
        ];
        let n = pieces.len();
        for code in 0..n * n * n {
            let text = [pieces[code % n], pieces[code / n % n], pieces[code / n / n]].concat();
            assert_eq!(words(&text), naive(&text), "{text:?}");
        }
        let mut random = SplitMix64::seed_from_u64(0x5eed_0901);
        for _ in 0..20_000 {
            let mut text = String::new();
            // Some are longer than what is looked at at once, and half of them are ASCII.
            let longest = [12, 12, 200][random.next_u64() as usize % 3];
            let is_ascii = random.next_u64() % 2 == 0;
            for _ in 0..4 + random.next_u64() % longest {
                let piece = pieces[random.next_u64() as usize % n];
                text.push_str(if is_ascii && !piece.is_ascii() { "b" } else { piece });
            }
            assert_eq!(words(&text), naive(&text), "{text:?}");
        }
    }

    #[test]
    fn hashes_are_fixed() {
        let words = Words::of("The the");
        assert_eq!(words.hashes(), [xxh3_128(b"the"); 2]);
        // The hash itself is checked, because it is stored in indexes.
        assert_eq!(Words::of("hello").hashes(), [0xb5e9_c1ad_071b_3e7f_c779_cfaa_5e52_3818]);
    }

    #[test]
    fn blocks_are_separate_and_memory_is_reused() {
        let mut words = Words::of("one two");
        words.extend("Three");
        assert_eq!((words.len(), words.get(2), words.get(3)), (3, Some("three"), None));
        assert_eq!(words.joined(), "one two three");
        words.clear();
        assert!(words.is_empty());
        assert_eq!(words.joined(), "");
        words.extend("x");
        assert_eq!(words.iter().collect::<Vec<_>>(), ["x"]);
        assert_eq!(count("one, two – three"), 3);
    }

    #[test]
    fn one_endless_word_is_linear() {
        for piece in ["a", "é", "\u{301}", "a'", "日", "\u{200d}", "a\u{301}'"] {
            // If the work grew with the square of the length, this would not end.
            let long = piece.repeat(1_000_000 / piece.len());
            let words = Words::of(&long);
            assert!(words.joined().len() <= 2 * long.len(), "{piece:?}");
        }
    }
}
