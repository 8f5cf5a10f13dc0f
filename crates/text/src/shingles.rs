//! Texts as sets of shingles: runs of four words.
//!
//! The rules are those of MaybeDont 0.1.1, so that texts which it calls duplicates are duplicates here. They are for comparing whole pages.
//! Unlike the [`words`](crate::words) of the other detectors, the words of shingles are not normalised.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Words in a shingle, as in MaybeDont 0.1.1.
pub const SHINGLE_WORDS: usize = 4;

/// The number of shingles of a text that are read, repeated ones counted each time; the rest of the text is ignored. MaybeDont has no such
/// limit. A text this long is a book, and a hostile text must not fill the memory.
pub const MAX_SHINGLES: usize = 1 << 17;

/// A shingle in more than this share of a sample is too common, as in MaybeDont 0.1.1.
const TOO_COMMON_SHARE: f64 = 0.05;

/// Calls `visit` with each shingle of `text`, in order, with repetitions: at most [`MAX_SHINGLES`] times.
///
/// The text is cut into lines at LF, and lines into words at white space (as Python's `str.split` defines it: Unicode's white space, and
/// U+001C to U+001F). Each run of four words in a line is a shingle. A line with fewer words is one shingle, and an empty line has none.
/// The words of a shingle are joined by one space. Nothing is folded or normalised.
///
/// ```
/// use huntsman_text::shingles::for_each_shingle;
///
/// let mut found = Vec::new();
/// for_each_shingle("one  two three four five\nsix", |shingle| found.push(shingle.to_owned()));
/// assert_eq!(found, ["one two three four", "two three four five", "six"]);
/// ```
pub fn for_each_shingle(text: &str, mut visit: impl FnMut(&str)) {
    let mut line_words = String::new();
    let mut places: Vec<Range<usize>> = Vec::new();
    let mut left = MAX_SHINGLES;
    for line in text.split('\n') {
        line_words.clear();
        places.clear();
        for word in line.split(is_space).filter(|word| !word.is_empty()) {
            if !line_words.is_empty() {
                line_words.push(' ');
            }
            let start = line_words.len();
            line_words.push_str(word);
            places.push(start..line_words.len());
            if places.len() >= left + SHINGLE_WORDS {
                break;
            }
        }
        if places.is_empty() {
            continue;
        }
        for window in places.windows(SHINGLE_WORDS.min(places.len())) {
            let (first, last) = (&window[0], &window[window.len() - 1]);
            visit(&line_words[first.start..last.end]);
            left -= 1;
            if left == 0 {
                return;
            }
        }
    }
}

/// The white space at which Python's `str.split` splits.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The hash that stands for a shingle: XXH3-64 with seed 0 of its UTF-8 bytes. It is stable and may be stored.
pub fn shingle_hash(shingle: &str) -> u64 {
    xxh3_64(shingle.as_bytes())
}

/// The set of shingles of a text, as hashes.
///
/// ```
/// use huntsman_text::shingles::ShingleSet;
///
/// let one = ShingleSet::of("a b c d e");
/// let two = ShingleSet::of("b c d e\n a  b c d");
/// assert_eq!(one, two);
/// assert_eq!(one.len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct ShingleSet {
    /// Sorted, without repetitions.
    hashes: Vec<u64>,
}

impl ShingleSet {
    /// The shingles of `text`.
    pub fn of(text: &str) -> Self {
        let mut hashes = Vec::new();
        for_each_shingle(text, |shingle| hashes.push(shingle_hash(shingle)));
        hashes.into()
    }

    /// The hashes, in ascending order.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The number of different shingles.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The set without the shingles that are too common.
    pub fn without(mut self, common: &TooCommon) -> Self {
        if !common.hashes.is_empty() {
            self.hashes.retain(|hash| !common.hashes.contains(hash));
        }
        self
    }
}

impl From<Vec<u64>> for ShingleSet {
    fn from(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.shrink_to_fit();
        ShingleSet { hashes }
    }
}

impl From<ShingleSet> for Vec<u64> {
    fn from(set: ShingleSet) -> Self {
        set.hashes
    }
}

/// Shingles that say nothing about a page because many pages have them, such as those of menus and footers.
///
/// A shingle is too common if more than `max(1, 0.05 n)` of `n` sample texts have it, as in MaybeDont 0.1.1: 16 or more of 300, 2 or more
/// of 20. So if the sample has many copies of a page, that page loses all its shingles; MaybeDont does the same.
///
/// ```
/// use huntsman_text::shingles::{ShingleSet, TooCommon};
///
/// let sample: Vec<ShingleSet> =
///     ["home\nabout us", "home\ncontact", "news of today"].into_iter().map(ShingleSet::of).collect();
/// let common = TooCommon::among(&sample);
/// assert!(common.contains("home") && !common.contains("contact"));
/// assert_eq!(sample[0].clone().without(&common).len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TooCommon {
    hashes: HashSet<u64>,
}

impl TooCommon {
    /// The shingles that are too common among the texts of a sample. For an empty sample there are none.
    pub fn among<'a>(sample: impl IntoIterator<Item = &'a ShingleSet>) -> Self {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        let mut texts = 0_u32;
        for set in sample {
            texts += 1;
            for &hash in &set.hashes {
                *counts.entry(hash).or_default() += 1;
            }
        }
        let most = f64::max(1.0, TOO_COMMON_SHARE * f64::from(texts));
        let hashes =
            counts.into_iter().filter(|&(_, count)| f64::from(count) > most).map(|(hash, _)| hash).collect();
        TooCommon { hashes }
    }

    /// The number of shingles that are too common.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether no shingle is too common.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Whether this shingle (its words joined by one space) is too common.
    pub fn contains(&self, shingle: &str) -> bool {
        self.hashes.contains(&shingle_hash(shingle))
    }

    /// The hashes, in ascending order.
    pub fn hashes(&self) -> Vec<u64> {
        let mut hashes: Vec<u64> = self.hashes.iter().copied().collect();
        hashes.sort_unstable();
        hashes
    }
}

impl FromIterator<u64> for TooCommon {
    /// Makes a set from [`shingle_hash`]es, as [`hashes`](TooCommon::hashes) returned them.
    fn from_iter<T: IntoIterator<Item = u64>>(hashes: T) -> Self {
        TooCommon { hashes: hashes.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingles(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for_each_shingle(text, |shingle| found.push(shingle.to_owned()));
        found
    }

    #[test]
    fn white_space_is_what_python_takes_for_it() {
        let spaces = "\t\u{b}\u{c}\r\u{1c}\u{1d}\u{1e}\u{1f} \u{85}\u{a0}\u{1680}\u{2000}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";
        for space in spaces.chars() {
            assert_eq!(shingles(&format!("{space}a{space}{space}b")), ["a b"], "{space:?}");
        }
        for other in ['\u{200b}', '\u{180e}', '\u{feff}', '\0', '_'] {
            assert_eq!(shingles(&format!("a{other}b")), [format!("a{other}b")], "{other:?}");
        }
    }

    #[test]
    fn only_lf_ends_a_line() {
        assert_eq!(shingles("a b\u{2028}c\rd"), ["a b c d"]);
        assert_eq!(shingles("a b\nc d\n\n \n"), ["a b", "c d"]);
    }

    #[test]
    fn a_book_is_cut_and_costs_no_more_than_that() {
        let long = "word ".repeat(MAX_SHINGLES + 100);
        assert_eq!(shingles(&long).len(), MAX_SHINGLES);
        let lines = "w\n".repeat(MAX_SHINGLES + 100);
        assert_eq!(shingles(&lines).len(), MAX_SHINGLES);
        let exact: String = (0..MAX_SHINGLES + 3).map(|n| format!("{n} ")).collect();
        assert!(shingles(&exact).last().unwrap().ends_with(&format!(" {}", MAX_SHINGLES + 2)));
    }

    #[test]
    fn too_common_is_strictly_more_than_a_twentieth_and_than_one() {
        let sample = |texts: usize, with: usize| -> Vec<ShingleSet> {
            (0..texts)
                .map(|n| ShingleSet::of(&format!("own {n}{}", if n < with { "\nmenu" } else { "" })))
                .collect()
        };
        for (texts, with, common) in
            [(1, 1, 0), (2, 2, 1), (20, 1, 0), (20, 2, 1), (21, 2, 1), (300, 15, 0), (300, 16, 1)]
        {
            assert_eq!(TooCommon::among(&sample(texts, with)).len(), common, "{with} of {texts}");
        }
        assert!(TooCommon::among(&[]).is_empty());
    }
}
