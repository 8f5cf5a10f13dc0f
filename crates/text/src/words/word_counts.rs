//! How often each word stands in a text.

use std::hash::{BuildHasher, RandomState};

use fearless_simd::{Level, Simd, dispatch};
use xxhash_rust::xxh3::xxh3_128;

use super::scan::{SHORT, scan};

/// The distinct words of a text, each with its hash and with how often it stands in the text: what fingerprints are made of. Takes a fraction of the time
/// of [`Words`](super::Words), which keeps the words in their order.
///
/// ```
/// use huntsman_text::words::{WordCounts, Words};
///
/// let mut counts = WordCounts::default();
/// counts.add_text("What is said once, and what is said TWICE");
/// assert_eq!(counts.total(), 9);
/// let twice = counts.iter().find(|(hash, _)| *hash == Words::of("said").hashes()[0]);
/// assert_eq!(twice.map(|(_, count)| count), Some(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct WordCounts {
    /// The words of at most 16 bytes, as numbers.
    short: Counts,
    /// Others, by their hashes.
    hashed: Counts,
    scratch: String,
}

impl WordCounts {
    /// Counts the words of a text, such as the next block of a page. The end of a block ends a word.
    pub fn add_text(&mut self, text: &str) {
        dispatch!(Level::new(), simd => self.add_text_with(simd, text));
    }

    #[inline(always)]
    fn add_text_with<S: Simd>(&mut self, simd: S, text: &str) {
        let Self { short, hashed, scratch } = self;
        let mut lower = String::new();
        let (mut batch, mut len) = ([0; BATCH], 0);
        scan(simd, text, scratch, |word| match word.packed() {
            Some(packed) => {
                batch[len] = packed;
                len += 1;
                if len == BATCH {
                    short.add(&batch);
                    len = 0;
                }
            }
            None => hashed.add(&[word.with(&mut lower, |word| xxh3_128(word.as_bytes()))]),
        });
        short.add(&batch[..len]);
    }

    /// Counts a word by its hash. Other things with 128-bit hashes can be counted, too, but not together with words.
    pub fn add_hash(&mut self, hash: u128) {
        self.hashed.add(&[hash]);
    }

    /// Removes all words, and keeps the memory for the next text unless this one had very many.
    ///
    /// ```
    /// use huntsman_text::words::WordCounts;
    ///
    /// let mut counts = WordCounts::default();
    /// counts.add_text("one page");
    /// counts.clear();
    /// counts.add_text("another");
    /// assert_eq!(counts.total(), 1);
    /// ```
    pub fn clear(&mut self) {
        self.short.clear();
        self.hashed.clear();
    }

    /// The number of words, repeated ones counted each time.
    pub fn total(&self) -> usize {
        self.short.total + self.hashed.total
    }

    /// The hashes of the distinct words with their counts, in any order. A word that was counted by its text and by its hash is there twice.
    pub fn iter(&self) -> impl Iterator<Item = (u128, u64)> {
        let hash = |(packed, count): (u128, u64)| {
            let len = SHORT - packed.leading_zeros() as usize / 8;
            (xxh3_128(&packed.to_le_bytes()[..len]), count)
        };
        self.short.iter().map(hash).chain(self.hashed.iter())
    }
}

impl FromIterator<u128> for WordCounts {
    fn from_iter<T: IntoIterator<Item = u128>>(hashes: T) -> Self {
        let mut counts = Self::default();
        hashes.into_iter().for_each(|hash| counts.add_hash(hash));
        counts
    }
}

/// How often each number came.
#[derive(Clone, Debug)]
struct Counts {
    /// A table: one more than the index of the number that is there; 0 if there is none. A number is in the first free slot from its place on.
    slots: Vec<u32>,
    /// The distinct numbers in the order in which they came first, and then space for more.
    numbers: Vec<u128>,
    counts: Vec<u32>,
    distinct: usize,
    total: usize,
    /// Random, so that the author of a page cannot choose words that all have the same place.
    key: u128,
}

/// The number of words that are counted at once: their places in the table are known before the first is looked up, so that one that is looked up in vain does
/// not hold up the others.
const BATCH: usize = 64;
/// The size of a table that has something in it.
const SLOTS: usize = 1 << 12;
/// A table with more slots is not kept for the next text, so that one long text does not make all later ones clear a large table.
const MOST_KEPT: usize = 1 << 14;

impl Default for Counts {
    fn default() -> Self {
        let random = RandomState::new();
        let key = u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1));
        // One slot, which is free: the table grows with the first number.
        Self { slots: vec![0], numbers: vec![0], counts: vec![0], distinct: 0, total: 0, key }
    }
}

impl Counts {
    /// Counts at most [`BATCH`] numbers.
    #[inline(always)]
    fn add(&mut self, numbers: &[u128]) {
        if numbers.is_empty() {
            return;
        }
        while 2 * (self.distinct + numbers.len()) >= self.slots.len() {
            self.grow();
        }
        self.total += numbers.len();
        let mask = self.slots.len() - 1;
        let mut places = [0; BATCH];
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = self.place(*number) & mask;
        }
        let mut distinct = self.distinct;
        let (slots, known, counts) = (&mut self.slots[..], &mut self.numbers[..], &mut self.counts[..]);
        for (number, mut at) in numbers.iter().zip(places) {
            loop {
                match slots[at] as usize {
                    0 => {
                        slots[at] = distinct as u32 + 1;
                        (known[distinct], counts[distinct]) = (*number, 1);
                        distinct += 1;
                        break;
                    }
                    index if known[index - 1] == *number => {
                        counts[index - 1] += 1;
                        break;
                    }
                    _ => at = (at + 1) & mask,
                }
            }
        }
        self.distinct = distinct;
    }

    fn clear(&mut self) {
        if self.slots.len() > MOST_KEPT {
            *self = Self::default();
            return;
        }
        if self.total > 0 {
            self.slots.fill(0);
            (self.distinct, self.total) = (0, 0);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u128, u64)> {
        let counts = self.counts[..self.distinct].iter().map(|count| u64::from(*count));
        self.numbers[..self.distinct].iter().copied().zip(counts)
    }

    #[inline]
    fn place(&self, number: u128) -> usize {
        let keyed = number ^ self.key;
        let product = u128::from(keyed as u64) * u128::from((keyed >> 64) as u64);
        (product as u64 ^ (product >> 64) as u64) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (2 * self.slots.len()).max(SLOTS);
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.numbers.resize(slots / 2, 0);
        self.counts.resize(slots / 2, 0);
        for (index, number) in self.numbers[..self.distinct].iter().enumerate() {
            let mut at = self.place(*number) & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = index as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::words::Words;

    fn naive(hashes: &[u128]) -> HashMap<u128, u64> {
        let mut counts = HashMap::new();
        hashes.iter().for_each(|hash| *counts.entry(*hash).or_default() += 1);
        counts
    }

    #[test]
    fn counts_are_those_of_a_map() {
        let mut random = SplitMix64::seed_from_u64(0x5eed_0802);
        let mut kept = WordCounts::default();
        for (all, kinds) in
            [(0, 1), (1, 1), (3_000, 500), (20_000, 9_000), (200, 90), (20_000, u64::MAX), (2, 2)]
        {
            // Half of the hashes differ in their upper half only.
            let mut draw = || match random.next_u64() % 2 {
                0 => u128::from(random.next_u64() % kinds),
                _ => u128::from(random.next_u64() % kinds) << 64,
            };
            let hashes: Vec<u128> = (0..all).map(|_| draw()).collect();
            let counts: WordCounts = hashes.iter().copied().collect();
            assert_eq!(counts.total(), hashes.len());
            let found: Vec<(u128, u64)> = counts.iter().collect();
            assert_eq!(found.len(), naive(&hashes).len(), "each once");
            assert_eq!(HashMap::from_iter(found), naive(&hashes), "{all} of {kinds}");
            kept.clear();
            hashes.iter().for_each(|hash| kept.add_hash(*hash));
            assert_eq!(kept.total(), hashes.len(), "in the memory of those before");
            assert_eq!(HashMap::from_iter(kept.iter()), naive(&hashes), "in the memory of those before");
        }
    }

    #[test]
    fn words_have_the_hashes_that_they_have_in_order() {
        let mut random = SplitMix64::seed_from_u64(0x5eed_0803);
        let pieces = ["a", "Q", "z", "\u{e9}", "7", "_", "\u{65e5}", "'", " ", "\n", "@", "[", "`", "{", "."];
        for longest in [10, 100, 3_000] {
            let mut text = String::new();
            for _ in 0..longest {
                // Words of 1 to some 20 letters, so that some are too long for a number.
                for _ in 0..random.next_u64() % 20 {
                    text.push_str(pieces[random.next_u64() as usize % 3]);
                }
                text.push_str(pieces[random.next_u64() as usize % pieces.len()]);
            }
            let mut counts = WordCounts::default();
            let (first, rest) = text.split_at(text.find(' ').unwrap_or_default());
            counts.add_text(first);
            counts.add_text(rest);
            let words = Words::of(&text);
            assert_eq!(counts.total(), words.len());
            assert_eq!(counts.iter().collect::<HashMap<_, _>>(), naive(words.hashes()), "{text:?}");
        }
    }
}
