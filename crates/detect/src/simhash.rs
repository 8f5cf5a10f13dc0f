//! Fingerprints of texts: near-duplicates have fingerprints that differ in few bits.
//!
//! A text is treated as a vector with one dimension per feature (by default per distinct word). Each feature's 128-bit hash stands for 128
//! random hyperplanes, and bit i of the fingerprint says on which side of hyperplane i the vector lies. Two texts whose vectors enclose an
//! angle differ in `128 * angle / pi` bits on average: M. S. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC
//! 2002; for pages of the web G. S. Manku, A. Jain, A. Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007.
//!
//! A distance of 3 is an angle of about 4 degrees: copies, other layouts, a few words exchanged. A text that is a part of another one is
//! not found. This module only compares two fingerprints; for an index see [`near`](crate::near).

mod sums;

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use huntsman_text::words::{WordCounts, Words};

use sums::{Equals, Sums};

/// Words that stand up to this many times in a text are summed by their counts.
const RARE: usize = 8;

/// The fingerprint of a text: 128 bits.
///
/// Bit i, 0 the least significant, is set if the weights of the features whose hash has bit i are more than half of all weights; a tie
/// clears the bit. A text without any feature gets the fingerprint 0, which carries no information and must not be compared. The
/// fingerprint of a short text (below some 50 words) carries little, because each word is a large part of it.
///
/// As text, a fingerprint has 32 lower-case hexadecimal digits; as bytes it is big-endian (`hash.0.to_be_bytes()`). The value for a text is
/// the same on every machine.
///
/// ```
/// use huntsman_detect::simhash::SimHash;
/// use huntsman_detect::words::Words;
///
/// let hash = SimHash::of(&Words::of("Hello, world!"));
/// assert_eq!(hash.to_string(), "b00900a903020050811849801c121818");
/// assert_eq!(hash, SimHash::of(&Words::of("WORLD \n hello")));
/// assert_eq!("b00900a903020050811849801c12181f".parse(), Ok(SimHash(hash.0 ^ 7)));
/// assert_eq!(hash.distance(SimHash(hash.0 ^ 7)), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimHash(pub u128);

/// A feature set: the features of a text and their weights.
///
/// Fingerprints of different feature sets cannot be compared. The hash of a feature is XXH3-128 with seed 0 of its
/// UTF-8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Features {
    /// Each distinct word, with weight `round(16 * (1 + ln(tf)))` for a word that stands tf times in the text.
    ///
    /// The logarithm keeps the few most frequent words of a language from deciding all bits. With 16 steps per unit the weights are whole
    /// numbers, so the order of summing changes no bit.
    #[default]
    WordsLog,
    /// Each run of 5 characters (Unicode scalar values) of the words joined by one space, with its count as weight.
    ///
    /// A typo changes 5 runs and not a whole word, and menus around a text weigh less; but paragraphs in another order make a difference.
    Char5,
    /// Each distinct run of 3 words, joined by U+0001, with weight 1.
    ///
    /// Each changed word changes three features, so this is nearly a test for exact copies.
    Words3,
    /// Each distinct word with its count as weight, as in older indexes.
    ///
    /// Unsafe for long texts: the frequent words of the language decide the bits, and texts on different subjects come within a few bits of
    /// each other.
    WordsTf,
}

/// The error for a text that is not a fingerprint: not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseSimHashError;

/// The error for a text that names no feature set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseFeaturesError;

impl SimHash {
    /// The number of bits of a fingerprint.
    pub const BITS: u32 = 128;

    /// Computes the fingerprint of a text from its distinct words ([`Features::WordsLog`]).
    ///
    /// Takes some 30 bytes of memory per distinct word during the call.
    pub fn of(words: &Words) -> Self {
        Self::with(Features::WordsLog, words)
    }

    /// Computes the fingerprint of a text from these features.
    pub fn with(features: Features, words: &Words) -> Self {
        let mut sums = Sums::default();
        match features {
            Features::WordsLog => return Self::of_counts(&words.hashes().iter().copied().collect()),
            // The weight is the count, so each occurrence adds 1.
            Features::WordsTf => sums.add_equals(words.hashes().iter().copied(), 1),
            Features::Char5 => {
                sums.add_equals(runs_of_5(words.joined()).map(|run| xxh3_128(run.as_bytes())), 1);
            }
            Features::Words3 => {
                let runs: WordCounts = runs_of_3(words).collect();
                sums.add_equals(runs.iter().map(|(hash, _)| hash), 1);
            }
        }
        Self(sums.majority())
    }

    /// Computes the fingerprint of a text by [`Features::WordsLog`], without its words in their order.
    ///
    /// ```
    /// use huntsman_detect::simhash::SimHash;
    /// use huntsman_detect::words::{WordCounts, Words};
    ///
    /// let text = "What is said once, and what is said twice";
    /// let mut counts = WordCounts::default();
    /// counts.add_text(text);
    /// assert_eq!(SimHash::of_counts(&counts), SimHash::of(&Words::of(text)));
    /// ```
    pub fn of_counts(counts: &WordCounts) -> Self {
        let mut sums = Sums::default();
        // Most distinct words of a text are rare, so these weights are summed separately.
        let mut rare: [Equals; RARE] =
            std::array::from_fn(|before| Equals::new(log_weight(before as u64 + 1)));
        for (hash, count) in counts.iter() {
            match rare.get_mut((count - 1) as usize) {
                Some(equals) => equals.add(hash, &mut sums),
                None => sums.add(hash, log_weight(count)),
            }
        }
        rare.into_iter().for_each(|equals| equals.finish(&mut sums));
        Self(sums.majority())
    }

    /// The number of bits in which two fingerprints differ, 0 to 128. For unrelated texts it is about 64.
    pub fn distance(self, other: SimHash) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    /// The eight bands of 16 bits, the most significant first: band 0 is the first four digits of the text form.
    ///
    /// Fingerprints that differ in at most 7 bits have a band in common, because 7 bits cannot change 8 bands.
    pub fn bands(self) -> [u16; 8] {
        std::array::from_fn(|band| (self.0 >> (112 - 16 * band)) as u16)
    }
}

impl fmt::Display for SimHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SimHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimHash({self})")
    }
}

impl FromStr for SimHash {
    type Err = ParseSimHashError;

    /// Reads 32 hexadecimal digits of either case, without anything around them.
    fn from_str(text: &str) -> Result<Self, ParseSimHashError> {
        // Checked here because `from_str_radix` would accept a sign.
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ParseSimHashError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ParseSimHashError)
    }
}

impl fmt::Display for ParseSimHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fingerprint has 32 hexadecimal digits")
    }
}

impl std::error::Error for ParseSimHashError {}

impl Features {
    /// All feature sets, the default first.
    pub const ALL: [Features; 4] = [Features::WordsLog, Features::Char5, Features::Words3, Features::WordsTf];

    /// The name in settings and indexes, as it is parsed: `words-log`, `char5`, `words3`, `words-tf`.
    pub fn name(self) -> &'static str {
        match self {
            Features::WordsLog => "words-log",
            Features::Char5 => "char5",
            Features::Words3 => "words3",
            Features::WordsTf => "words-tf",
        }
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Features {
    type Err = ParseFeaturesError;

    fn from_str(name: &str) -> Result<Self, ParseFeaturesError> {
        Self::ALL.into_iter().find(|features| features.name() == name).ok_or(ParseFeaturesError)
    }
}

impl fmt::Display for ParseFeaturesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("feature sets are words-log, char5, words3 and words-tf")
    }
}

impl std::error::Error for ParseFeaturesError {}

/// `round(16 * (1 + ln(count)))`, half away from zero. The result is below 800 for every count.
fn log_weight(count: u64) -> u32 {
    match count {
        1 => 16,
        _ => (16.0 * (1.0 + (count as f64).ln())).round() as u32,
    }
}

fn runs_of_5(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let ends = text.char_indices().skip(4).map(|(at, last)| at + last.len_utf8());
    starts.zip(ends).map(|(start, end)| &text[start..end])
}

fn runs_of_3(words: &Words) -> impl Iterator<Item = u128> {
    let runs = words.iter().zip(words.iter().skip(1)).zip(words.iter().skip(2));
    let mut run = String::new();
    runs.map(move |((first, second), third)| {
        run.clear();
        run.extend([first, "\u{1}", second, "\u{1}", third]);
        xxh3_128(run.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_grow_with_the_logarithm() {
        let counts = [1, 2, 3, 4, 10, 100, 1000, u64::MAX];
        assert_eq!(counts.map(log_weight), [16, 27, 34, 38, 53, 90, 127, 726]);
    }

    #[test]
    fn no_weight_stands_on_the_last_digits_of_a_logarithm() {
        // Math libraries differ in the last bit of ln; this checks that the weight is the same for every count that a page can have.
        for count in 2..10_000_000_u64 {
            let exact = 16.0 * (1.0 + (count as f64).ln());
            assert!((exact.fract() - 0.5).abs() > 1e-10, "{count}: {exact}");
        }
    }

    #[test]
    fn runs_are_of_characters_and_words() {
        let runs = |text| runs_of_5(text).collect::<Vec<_>>();
        assert_eq!(runs("abcd"), [""; 0]);
        assert_eq!(runs("äb de"), ["äb de"]);
        assert_eq!(runs("नई दि日"), ["नई दि", "ई दि日"]);
        assert_eq!(runs_of_3(&Words::of("a b")).count(), 0);
        let runs: Vec<u128> = runs_of_3(&Words::of("A b, c d")).collect();
        assert_eq!(runs, [xxh3_128(b"a\x01b\x01c"), xxh3_128(b"b\x01c\x01d")]);
    }

    #[test]
    fn only_32_hexadecimal_digits_are_a_fingerprint() {
        let text = "00ff00a903020050811849801c12181f";
        let hash: SimHash = text.parse().unwrap();
        assert_eq!((hash.0 >> 112, hash.to_string().as_str()), (0xff, text));
        assert_eq!(text.to_uppercase().parse(), Ok(hash));
        assert_eq!(format!("{hash:?}"), format!("SimHash({text})"));
        for wrong in [
            "",
            "0",
            &text[1..],
            &format!("{text}0"),
            &format!("+{}", &text[1..]),
            &format!(" {}", &text[1..]),
            "00ff00a903020050811849801c12181g",
            "éééééééééééééééé",
        ] {
            assert_eq!(wrong.parse::<SimHash>(), Err(ParseSimHashError), "{wrong}");
        }
    }

    #[test]
    fn feature_sets_have_names() {
        for features in Features::ALL {
            assert_eq!(features.to_string().parse(), Ok(features));
        }
        assert_eq!(Features::default().name(), "words-log");
        assert_eq!("words".parse::<Features>(), Err(ParseFeaturesError));
    }
}
