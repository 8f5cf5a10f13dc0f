//! Fingerprints of texts: near-duplicates have fingerprints that differ in few bits.
//!
//! A text is treated as a vector with one dimension per feature (by default per distinct word). Each feature's 128-bit hash stands for 128
//! random hyperplanes, and bit i of the fingerprint says on which side of hyperplane i the vector lies. Two texts whose vectors enclose an
//! angle differ in `128 * angle / pi` bits on average: M. S. Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC
//! 2002; for pages of the web G. S. Manku, A. Jain, A. Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007.
//!
//! A distance of 3 is an angle of about 4 degrees: copies, other layouts, a few words exchanged. A text that is a part of another one is
//! not found. This module only compares two fingerprints; for an index see [`near`](crate::near).

use std::fmt;
use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use huntsman_text::words::Words;

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
    /// Takes 16 bytes of memory per word during the call.
    pub fn of(words: &Words) -> Self {
        Self::with(Features::WordsLog, words)
    }

    /// Computes the fingerprint of a text from these features.
    pub fn with(features: Features, words: &Words) -> Self {
        let mut sums = Sums::default();
        match features {
            Features::WordsLog => {
                // Three of four distinct words occur once in a text, one of ten twice, so these two weights are summed separately.
                let (mut once, mut twice) = (Equals::new(log_weight(1)), Equals::new(log_weight(2)));
                for (hash, count) in distinct(&mut words.hashes().to_vec()) {
                    match count {
                        1 => once.add(hash, &mut sums),
                        2 => twice.add(hash, &mut sums),
                        _ => sums.add(hash, log_weight(count)),
                    }
                }
                once.finish(&mut sums);
                twice.finish(&mut sums);
            }
            // The weight is the count, so each occurrence adds 1.
            Features::WordsTf => sums.add_equals(words.hashes().iter().copied(), 1),
            Features::Char5 => {
                sums.add_equals(runs_of_5(words.joined()).map(|run| xxh3_128(run.as_bytes())), 1);
            }
            Features::Words3 => {
                let mut hashes = runs_of_3(words);
                sums.add_equals(distinct(&mut hashes).map(|(hash, _)| hash), 1);
            }
        }
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

/// Each distinct hash with its count. The hashes are sorted and not put into a hash table, because the author of a page could choose words
/// that collide there.
fn distinct(hashes: &mut [u128]) -> impl Iterator<Item = (u128, usize)> {
    hashes.sort_unstable();
    hashes.chunk_by(|a, b| a == b).map(|same| (same[0], same.len()))
}

/// `round(16 * (1 + ln(count)))`, half away from zero. The result is below 800 for every `usize`.
fn log_weight(count: usize) -> u32 {
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

fn runs_of_3(words: &Words) -> Vec<u128> {
    let runs = words.iter().zip(words.iter().skip(1)).zip(words.iter().skip(2));
    let mut run = String::new();
    runs.map(|((first, second), third)| {
        run.clear();
        run.extend([first, "\u{1}", second, "\u{1}", third]);
        xxh3_128(run.as_bytes())
    })
    .collect()
}

/// For each bit, the sum of the weights of the features whose hash has it.
struct Sums {
    /// The sums since the last flush. They are half as wide as `ones`, so that twice as many are added at once.
    new: [u32; 128],
    /// An upper bound of the values in `new`.
    most_new: u32,
    ones: [u64; 128],
    /// The sum of all weights.
    total: u64,
}

/// Features of equal weight, of which 16 are added to the sums at once.
///
/// These are 128 binary counters, one per bit of a hash: bit i of `ones` to `eights` is a digit of the number of features with bit i that
/// are not yet in the sums. A few operations on whole words add to all counters (W. Mula, N. Kurz, D. Lemire, "Faster Population Counts
/// Using AVX2 Instructions", 2018, there after Harley and Seal). That is some 10 times faster than adding to each sum, and gives the same
/// result.
struct Equals {
    weight: u32,
    waiting: [u128; 16],
    /// The number of features that are not yet counted.
    len: usize,
    ones: u128,
    twos: u128,
    fours: u128,
    eights: u128,
}

/// For each byte value, a mask per bit: all ones if the bit is set, else 0.
static MASKS: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = if byte >> bit & 1 == 1 { u32::MAX } else { 0 };
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Default for Sums {
    fn default() -> Self {
        Self { new: [0; 128], most_new: 0, ones: [0; 128], total: 0 }
    }
}

impl Sums {
    /// Adds a feature.
    fn add(&mut self, hash: u128, weight: u32) {
        self.total += u64::from(weight);
        self.add_to(hash, weight);
    }

    /// Adds features of equal weight.
    fn add_equals(&mut self, hashes: impl Iterator<Item = u128>, weight: u32) {
        let mut equals = Equals::new(weight);
        hashes.for_each(|hash| equals.add(hash, self));
        equals.finish(self);
    }

    /// Adds a weight to the sums of some bits.
    fn add_to(&mut self, bits: u128, weight: u32) {
        if self.most_new.checked_add(weight).is_none() {
            self.flush();
        }
        self.most_new += weight;
        for (sums, byte) in self.new.chunks_exact_mut(8).zip(bits.to_le_bytes()) {
            for (sum, mask) in sums.iter_mut().zip(&MASKS[usize::from(byte)]) {
                *sum += weight & mask;
            }
        }
    }

    fn flush(&mut self) {
        for (sum, new) in self.ones.iter_mut().zip(&mut self.new) {
            *sum += u64::from(std::mem::take(new));
        }
        self.most_new = 0;
    }

    /// The bits for which the sum is more than half of all weights.
    fn majority(mut self) -> u128 {
        self.flush();
        let bits = self.ones.iter().enumerate();
        bits.fold(0, |hash, (bit, ones)| hash | u128::from(*ones > self.total - ones) << bit)
    }
}

impl Equals {
    fn new(weight: u32) -> Self {
        Self { weight, waiting: [0; 16], len: 0, ones: 0, twos: 0, fours: 0, eights: 0 }
    }

    fn add(&mut self, hash: u128, sums: &mut Sums) {
        self.waiting[self.len] = hash;
        self.len += 1;
        if self.len == self.waiting.len() {
            sums.total += 16 * u64::from(self.weight);
            let sixteens = self.count();
            sums.add_to(sixteens, 16 * self.weight);
            self.len = 0;
        }
    }

    /// Counts the waiting features and returns the carry.
    fn count(&mut self) -> u128 {
        let mut carries = [0; 8];
        for (carry, [a, b]) in carries.iter_mut().zip(self.waiting.as_chunks::<2>().0) {
            *carry = carry_over(&mut self.ones, *a, *b);
        }
        let [a, b, c, d, e, f, g, h] = carries;
        let a = carry_over(&mut self.twos, a, b);
        let b = carry_over(&mut self.twos, c, d);
        let c = carry_over(&mut self.twos, e, f);
        let d = carry_over(&mut self.twos, g, h);
        let a = carry_over(&mut self.fours, a, b);
        let b = carry_over(&mut self.fours, c, d);
        carry_over(&mut self.eights, a, b)
    }

    /// Adds the features that are not yet in the sums.
    fn finish(mut self, sums: &mut Sums) {
        sums.total += self.len as u64 * u64::from(self.weight);
        self.waiting[self.len..].fill(0);
        let sixteens = self.count();
        for (bits, times) in
            [(self.ones, 1), (self.twos, 2), (self.fours, 4), (self.eights, 8), (sixteens, 16)]
        {
            sums.add_to(bits, times * self.weight);
        }
    }
}

/// Adds two digits to `digit` in each bit, and returns the carry to the next digit.
fn carry_over(digit: &mut u128, a: u128, b: u128) -> u128 {
    let either = *digit ^ a;
    let carry = *digit & a | either & b;
    *digit = either ^ b;
    carry
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn weights_grow_with_the_logarithm() {
        let counts = [1, 2, 3, 4, 10, 100, 1000, usize::MAX];
        assert_eq!(counts.map(log_weight), [16, 27, 34, 38, 53, 90, 127, 726]);
    }

    #[test]
    fn no_weight_stands_on_the_last_digits_of_a_logarithm() {
        // Math libraries differ in the last bit of ln; this checks that the weight is the same for every count that a page can have.
        for count in 2..10_000_000_usize {
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
        assert_eq!(runs_of_3(&Words::of("a b")), []);
        assert_eq!(runs_of_3(&Words::of("A b, c d")), [xxh3_128(b"a\x01b\x01c"), xxh3_128(b"b\x01c\x01d")]);
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut sums = Sums::default();
        for _ in 0..5 {
            sums.add(0b01, u32::MAX);
            sums.add(0b11, u32::MAX - 1);
        }
        assert_eq!((sums.ones[0] + u64::from(sums.new[0])), 5 * (u64::from(u32::MAX) * 2 - 1));
        assert_eq!(sums.majority(), 0b01);
    }

    #[test]
    fn adding_many_at_once_gives_the_sums_of_adding_each() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0801);
        for count in (0..70).chain([100, 1000, 1024]) {
            for weight in [1, 16, 726] {
                let hashes: Vec<u128> = (0..count)
                    .map(|_| {
                        u128::from(random.next_u64()) << 64
                            | u128::from(random.next_u64() & random.next_u64())
                    })
                    .collect();
                let (mut at_once, mut each) = (Sums::default(), Sums::default());
                at_once.add_equals(hashes.iter().copied(), weight);
                hashes.iter().for_each(|hash| each.add(*hash, weight));
                at_once.flush();
                each.flush();
                assert_eq!((at_once.ones, at_once.total), (each.ones, each.total), "{count} of {weight}");
                let bit = |bit: u32| hashes.iter().filter(|hash| *hash >> bit & 1 == 1).count() as u64;
                let naive: Vec<u64> = (0..128).map(|at| bit(at) * u64::from(weight)).collect();
                assert_eq!(at_once.ones.as_slice(), naive, "{count} of {weight}");
            }
        }
    }

    #[test]
    fn ties_give_zero() {
        let mut sums = Sums::default();
        sums.add(0b011, 4);
        sums.add(0b110, 4);
        assert_eq!(sums.majority(), 0b010);
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
