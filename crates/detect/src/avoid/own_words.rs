//! Finds where the text of a page repeats values of the page's own URL.
//!
//! Such words say where a page is, not what it shows: the title of an edit form, the revision in a headline. Two pages that differ in
//! nothing else show the same.

use url::Url;

use super::overrides::Overrides;
use super::shape::raw_slots;
use super::words::Word;

/// The least number of letters and digits of a value that is looked for; shorter ones are words of other texts too.
const MIN_LETTERS: usize = 5;
/// The most words of a value; longer ones are searches or texts.
const MAX_WORDS: usize = 12;
/// The most values of a URL that are looked for.
const MAX_VALUES: usize = 32;
/// The least number of bytes of an identifier.
const IDENTIFIER: usize = 5;
/// The least number of bytes of an abbreviated identifier: those to which `git` shortens the name of a commit.
const ABBREVIATION: usize = 7;

/// The values of a URL, for finding them in the text of its page.
#[derive(Debug)]
pub(crate) struct OwnWords {
    /// The values as lower-case words, those with most words first.
    values: Vec<Vec<String>>,
    /// Values with a digit, such as revisions, sessions and dates. A word that contains one is the value.
    identifiers: Vec<String>,
    /// The identifiers of the path, which names what the page shows, if they are letters and digits only. A word that begins one is the value, too:
    /// `28c5666` of a commit, but not `release-2` of `release-2024`.
    named: Vec<String>,
    /// The set of the first bytes of the values in lower case; the last one stands for all other scripts.
    starts: u128,
    /// By the first byte of a value, of either case, the lower bits of its second byte, which are the same in both cases. Full for bytes that are no
    /// letters or digits of ASCII.
    second: [u32; 256],
}

impl Default for OwnWords {
    fn default() -> Self {
        let second =
            std::array::from_fn(|byte| if (byte as u8).is_ascii_alphanumeric() { 0 } else { u32::MAX });
        Self { values: Vec::new(), identifiers: Vec::new(), named: Vec::new(), starts: 0, second }
    }
}

impl OwnWords {
    pub(crate) fn of(url: &Url) -> Self {
        let slots = raw_slots(url, &Overrides::default());
        let mut own = Self::default();
        let segments = slots.iter().filter(|slot| slot.name.is_segment());
        let path: Vec<&str> = segments.map(|slot| slot.value.as_str()).collect();
        own.add_value(&path.join("/"));
        for slot in slots.iter().skip(1) {
            own.add_value(&slot.value);
            let identifiers = slot.value.split_whitespace();
            let identifiers = identifiers.filter(|value| value.len() >= IDENTIFIER && has_digit(value));
            own.identifiers.extend(identifiers.map(str::to_owned));
            let is_plain = slot.value.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if slot.name.is_segment() && is_plain && has_digit(&slot.value) {
                own.named.push(slot.value.clone());
            }
        }
        own.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        own.values.dedup();
        own.values.truncate(MAX_VALUES);
        for value in &own.values {
            let first = value[0].as_bytes();
            own.starts |= start_of(&value[0]);
            // A value of one byte may be followed by any other.
            let second = first.get(1).map_or(u32::MAX, |second| 1 << low_bits(*second));
            own.second[usize::from(first[0])] |= second;
            own.second[usize::from(first[0].to_ascii_uppercase())] |= second;
        }
        own
    }

    /// Adds a value, and what remains of it after each colon or slash: a page without its namespace, a file without its directory.
    fn add_value(&mut self, value: &str) {
        let mut rest = value;
        loop {
            let words: Vec<String> = words_of(rest).collect();
            let letters: usize =
                words.iter().map(|word| word.chars().filter(|c| c.is_alphanumeric()).count()).sum();
            if letters < MIN_LETTERS {
                return;
            }
            if words.len() <= MAX_WORDS {
                self.values.push(words);
            }
            match rest.find([':', '/']) {
                Some(at) => rest = &rest[at + 1..],
                None => return,
            }
        }
    }

    /// Whether a value of the URL may begin with this word; `false` for most words of a text.
    #[inline(always)]
    pub(crate) fn may_begin(&self, word: &Word<'_>) -> bool {
        let bytes = word.bytes();
        let second = bytes.get(1).copied().unwrap_or(0);
        // Most words are told apart by two bytes. In other scripts, the second byte of a letter may depend on its case.
        let may_begin = self.second[usize::from(bytes[0])] >> low_bits(second) & 1 | u32::from(second >> 7);
        (word.has_digit && self.is_identifier(word)) || (may_begin != 0 && self.may_begin_value(word))
    }

    fn is_identifier(&self, word: &Word<'_>) -> bool {
        let is_one = || self.identifiers.iter().any(|own| word.text().contains(own.as_str()));
        let abbreviates = || {
            let word = trim(word.text());
            word.len() >= ABBREVIATION && self.named.iter().any(|own| own.starts_with(word))
        };
        word.has_digit && word.bytes().len() >= IDENTIFIER && (is_one() || abbreviates())
    }

    fn may_begin_value(&self, word: &Word<'_>) -> bool {
        let is_trimmed = word.bytes()[0].is_ascii_alphanumeric();
        let word = if is_trimmed { word.text() } else { trim(word.text()) };
        match *word.as_bytes() {
            [] => false,
            [first, second, ..] if first.is_ascii() && second.is_ascii() => {
                self.second[usize::from(first)] & (1 << low_bits(second)) != 0
            }
            _ => self.starts & start_of(word) != 0,
        }
    }

    /// The number of words at the beginning of these that are a value of the URL; 0 if they are not.
    fn at(&self, text: &[Word<'_>]) -> usize {
        let Some(first) = text.first() else { return 0 };
        if self.is_identifier(first) {
            return 1;
        }
        if !self.may_begin_value(first) {
            return 0;
        }
        self.values.iter().map(|value| matching(value, text)).find(|words| *words > 0).unwrap_or(0)
    }
}

/// The number of words of a text that a value is, 0 if the text does not begin with it.
fn matching(value: &[String], text: &[Word<'_>]) -> usize {
    let mut rest = value;
    for (at, word) in text.iter().enumerate() {
        for part in parts_of(word.text()) {
            match rest.split_first() {
                Some((own, others)) if is_equal(own, part) => rest = others,
                _ => return 0,
            }
        }
        if rest.is_empty() {
            return at + 1;
        }
    }
    0
}

fn is_equal(own: &str, word: &str) -> bool {
    if own.is_ascii() && word.is_ascii() {
        return own.eq_ignore_ascii_case(word);
    }
    own.chars().eq(word.chars().flat_map(char::to_lowercase))
}

/// The member of [`OwnWords::starts`].
fn start_of(word: &str) -> u128 {
    1 << word.as_bytes()[0].to_ascii_lowercase().min(127)
}

fn low_bits(byte: u8) -> u32 {
    u32::from(byte & 31)
}

fn words_of(value: &str) -> impl Iterator<Item = String> {
    value.split_whitespace().flat_map(parts_of).map(str::to_lowercase)
}

/// The parts of a word that are written as words of their own in some places: `A,_part_5` and `A, part 5`.
fn parts_of(word: &str) -> impl Iterator<Item = &str> {
    word.split(['_', '+']).map(trim).filter(|part| !part.is_empty())
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// A range of words of a text that is a value of the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnRange {
    pub(crate) start: u32,
    pub(crate) words: u32,
}

/// The ranges of the words of a block that are values of the URL. `start` is the number of the first word.
pub(crate) fn ranges(own: &OwnWords, words: &[Word<'_>], start: u32, found: &mut Vec<OwnRange>) {
    let mut at = 0;
    while at < words.len() {
        let length = own.at(&words[at..]);
        if length > 0 {
            found.push(OwnRange { start: start + at as u32, words: length as u32 });
        }
        at += length.max(1);
    }
}

/// The words of a block, as they are written.
pub(crate) type Written<'a> = Vec<Word<'a>>;

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};

    use super::*;
    use crate::avoid::words::Words;

    fn found(url: &str, text: &str) -> Vec<(u32, u32)> {
        let own = OwnWords::of(&Url::parse(url).expect("a URL"));
        let words: Vec<Word<'_>> = dispatch!(Level::new(), simd => Words::of(simd, text).collect());
        let mut found = Vec::new();
        ranges(&own, &words, 0, &mut found);
        found.into_iter().map(|range| (range.start, range.words)).collect()
    }

    #[test]
    fn a_value_is_found_in_each_spelling() {
        for url in
            ["https://h.example/wiki/The_Long_Name,_part_5", "https://h.example/?title=The+long+name,+part+5"]
        {
            assert_eq!(found(url, "Editing The Long Name, part 5 (section)"), [(1, 5)], "{url}");
            assert_eq!(found(url, "see The_Long_Name,_part_5. And more"), [(1, 1)], "{url}");
            assert_eq!(found(url, "The Long Name, part 6"), [], "{url}");
        }
    }

    #[test]
    fn what_remains_after_a_separator_is_found_too_and_short_values_are_not() {
        let url = "https://h.example/doku.php?id=library:zip_import&rev=1712345&n=ab";
        assert_eq!(
            found(url, "zip import [Manual wiki] ab rev=1712345; library:zip_import"),
            [(0, 2), (5, 1), (6, 1)]
        );
        assert_eq!(
            found("https://h.example/tree/lib/io/file.c", "in lib/io/file.c and file.c"),
            [(1, 1), (3, 1)]
        );
    }

    #[test]
    fn an_identifier_of_the_path_is_found_if_it_is_abbreviated() {
        let commit = "28c566647a630ede002d252efc882a2294333c08";
        let text = "io.c @ 28c5666 (28c566647a) by 28c566 and 28c5667";
        assert_eq!(found(&format!("https://h.example/blob/{commit}/io.c"), text), [(2, 1), (3, 1)]);
        let parameter = format!("https://h.example/timeline?around={commit}");
        assert_eq!(found(&parameter, text), [], "a list around a commit names it as one of many");
        assert_eq!(found("https://h.example/notes/release-2024", "since release-2 of 2020"), []);
    }
}
