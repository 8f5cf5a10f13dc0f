//! Windows of words as hashes: the windows of a source, the chain of an article, and the windows that they share.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::words::for_each_word;

/// The number of words in a window: 1 to 16; 5 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "usize", into = "usize")]
pub struct Degree(u8);

impl Degree {
    /// The largest degree. Deliberately different: the reference has no upper bound.
    pub const MAX: usize = 16;

    /// A degree of this number of words.
    ///
    /// # Errors
    ///
    /// [`DegreeError`] if it is 0 or more than [`Degree::MAX`].
    pub fn new(words: usize) -> Result<Self, DegreeError> {
        match u8::try_from(words) {
            Ok(small) if (1..=Self::MAX).contains(&words) => Ok(Self(small)),
            _ => Err(DegreeError(words)),
        }
    }

    /// Words per window.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Degree {
    fn default() -> Self {
        Self(5)
    }
}

impl TryFrom<usize> for Degree {
    type Error = DegreeError;

    fn try_from(words: usize) -> Result<Self, DegreeError> {
        Self::new(words)
    }
}

impl From<Degree> for usize {
    fn from(degree: Degree) -> usize {
        degree.get()
    }
}

/// The error for a number of words per window that is not between 1 and [`Degree::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DegreeError(usize);

impl fmt::Display for DegreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "windows of {} words: should be 1 to {}", self.0, Degree::MAX)
    }
}

impl std::error::Error for DegreeError {}

/// Hash of a word: XXH3-64 with seed 0 of its UTF-8 bytes, the same on every machine.
pub(super) fn word_hash(word: &str) -> u64 {
    xxh3_64(word.as_bytes())
}

/// The hash of the mark that stands before the first and after the last word of a text. Because no word contains a space, no word has this
/// hash, except by a collision of probability 2^-64.
pub(super) fn start_mark() -> u64 {
    word_hash(" start")
}

pub(super) fn end_mark() -> u64 {
    word_hash(" end")
}

/// A rolling hash of the last k words: a polynomial in an odd number modulo 2^64 over their hashes, so one step costs two multiplications
/// for any k. Word hashes are evenly distributed over 64 bits, and so is this one.
#[derive(Clone)]
pub(super) struct Roller {
    last: [u64; Degree::MAX],
    at: usize,
    degree: usize,
    /// BASE to the power of k - 1: the weight of the word that leaves the window.
    top: u64,
    sum: u64,
}

const BASE: u64 = 0x9E37_79B9_7F4A_7C15; // 2^64 / golden ratio, odd

impl Roller {
    pub(super) fn new(degree: Degree) -> Self {
        let degree = degree.get();
        let top = (1..degree).fold(1_u64, |top, _| top.wrapping_mul(BASE));
        Self { last: [0; Degree::MAX], at: 0, degree, top, sum: 0 }
    }

    /// Adds a word and returns the hash of the window that ends with it, which is complete after k calls.
    pub(super) fn push(&mut self, word: u64) -> u64 {
        let leaving = self.last[self.at];
        self.last[self.at] = word;
        self.at += 1;
        if self.at == self.degree {
            self.at = 0;
        }
        self.sum =
            self.sum.wrapping_sub(leaving.wrapping_mul(self.top)).wrapping_mul(BASE).wrapping_add(word);
        self.sum
    }
}

/// The windows of a text in their order, 8 bytes each. This is the form in which a source is kept until it is compared.
///
/// The text is extended by k - 1 marks before its first and after its last word, as in the reference; so n words make n + k - 1 windows,
/// and the empty text has k - 1. With k = 1 there are no marks.
///
/// Windows are 64-bit hashes. Two different windows have equal hashes with a probability of 2^-64: among all pairs of two texts of 5,000
/// words, 1 in 10^12.
#[derive(Clone, PartialEq, Eq)]
pub struct Windows {
    degree: Degree,
    hashes: Vec<u64>,
}

impl Windows {
    /// The windows of `text`. Linear in its length; at most 4 bytes of memory per byte of text.
    pub fn of(text: &str, degree: Degree) -> Self {
        let padding = degree.get() - 1;
        // English has about six bytes per word.
        let mut hashes = Vec::with_capacity(text.len() / 6 + 2 * padding);
        let mut roller = Roller::new(degree);
        (0..padding).for_each(|_| {
            roller.push(start_mark());
        });
        for_each_word(text, |word| hashes.push(roller.push(word_hash(word))));
        (0..padding).for_each(|_| hashes.push(roller.push(end_mark())));
        Self { degree, hashes }
    }

    /// Words per window.
    pub fn degree(&self) -> Degree {
        self.degree
    }

    /// The number of windows, repeated ones counted each time: the size of the chain.
    pub fn size(&self) -> usize {
        self.hashes.len()
    }

    /// The hashes, in the order of the text.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }
}

impl fmt::Debug for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Windows")
            .field("degree", &self.degree)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// The number of windows that two texts share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// The sum over all windows of the smaller of their two counts: `D` of the confidence.
    pub size: usize,
    /// The number of distinct windows that are shared.
    pub distinct: usize,
}

/// The windows of a text with their counts, prepared for comparison with many sources.
///
/// At most 14 bytes per distinct window: the hashes in ascending order, their counts, and for every four to eight hashes the position where
/// those with the same leading bits begin. (The original's maps of tuples take 100 to 180.)
///
/// ```
/// use huntsman_detect::copyvio::{Chain, Confidence, Degree, Windows};
///
/// let article = Chain::of("The old mill stands on the bank of the river.", Degree::default());
/// let source = Windows::of("They say the old mill stands on the bank.", Degree::default());
/// let delta = article.delta(&source);
/// assert_eq!((article.size(), source.size(), delta.size), (14, 13, 3));
/// assert!(Confidence::of(article.size(), delta.size).value() < 0.3);
/// ```
#[derive(Clone)]
pub struct Chain {
    degree: Degree,
    size: usize,
    /// The distinct windows, in ascending order.
    keys: Vec<u64>,
    counts: Vec<u32>,
    /// The start of each bucket's keys, followed by the end of the last one.
    starts: Vec<u32>,
    /// The number of low bits of a hash that do not select its bucket.
    shift: u32,
}

/// Buckets with up to this many keys are searched linearly, larger ones by binary search. So if an attacker chooses hashes that fall into
/// one bucket, a look-up costs no more than a binary search.
const SHORT_BUCKET: usize = 16;

impl Chain {
    /// The chain of `text`.
    pub fn of(text: &str, degree: Degree) -> Self {
        Self::from(&Windows::of(text, degree))
    }

    /// The chain of several sources as one: its counts are the sums of the counts of `parts`. `None` without parts, or if their degrees
    /// differ.
    pub fn union<'a>(parts: impl IntoIterator<Item = &'a Windows>) -> Option<Self> {
        let parts: Vec<&Windows> = parts.into_iter().collect();
        let degree = parts.first()?.degree;
        if parts.iter().any(|part| part.degree != degree) {
            return None;
        }
        let parts: Vec<&[u64]> = parts.iter().map(|part| &*part.hashes).collect();
        Some(Self::build(degree, &parts))
    }

    /// Sorts by buckets: one pass to count, one to place, and then each bucket is sorted by itself.
    fn build(degree: Degree, parts: &[&[u64]]) -> Self {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        // Offsets are u32. Four thousand million words would not fit in memory as a text.
        assert!(u32::try_from(size).is_ok(), "texts are far smaller than 2^32 words");
        let bits = (size / 4).max(1).next_power_of_two().trailing_zeros();
        let shift = 64 - bits;
        let bucket = |hash: u64| hash.checked_shr(shift).unwrap_or(0) as usize;
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for hash in parts.iter().copied().flatten() {
            starts[bucket(*hash) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut keys = vec![0_u64; size];
        for hash in parts.iter().copied().flatten() {
            let place = &mut next[bucket(*hash)];
            keys[*place as usize] = *hash;
            *place += 1;
        }
        drop(next);
        let mut counts = Vec::with_capacity(size);
        let mut kept = 0;
        for index in 0..starts.len() - 1 {
            let (from, to) = (starts[index] as usize, starts[index + 1] as usize);
            keys[from..to].sort_unstable();
            starts[index] = kept as u32; // at most `size`
            for at in from..to {
                // Equal keys are in one bucket.
                if at > from && keys[kept - 1] == keys[at] {
                    counts[kept - 1] += 1;
                } else {
                    keys[kept] = keys[at];
                    counts.push(1);
                    kept += 1;
                }
            }
        }
        *starts.last_mut().expect("there is one more than buckets") = kept as u32;
        if kept < size {
            keys.truncate(kept);
            keys.shrink_to_fit();
            counts.shrink_to_fit();
        }
        Self { degree, size, keys, counts, starts, shift }
    }

    /// Words per window.
    pub fn degree(&self) -> Degree {
        self.degree
    }

    /// The sum of all counts: n + k - 1 for n words; `A` of the confidence.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The number of distinct windows.
    pub fn distinct(&self) -> usize {
        self.keys.len()
    }

    /// Number of bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.keys.capacity() * 8 + self.counts.capacity() * 4 + self.starts.capacity() * 4
    }

    /// The number of times that a window occurs.
    pub fn count(&self, window: u64) -> usize {
        self.place(window).map_or(0, |at| self.counts[at] as usize)
    }

    fn place(&self, window: u64) -> Option<usize> {
        let bucket = window.checked_shr(self.shift).unwrap_or(0) as usize;
        let from = self.starts[bucket] as usize;
        let keys = &self.keys[from..self.starts[bucket + 1] as usize];
        let at = if keys.len() <= SHORT_BUCKET {
            keys.iter().position(|key| *key == window)
        } else {
            keys.binary_search(&window).ok()
        };
        at.map(|at| from + at)
    }

    /// The windows that this text shares with a source: the reference's intersection. Empty if the degrees differ.
    ///
    /// Costs one look-up per window of the source; the source need not be sorted.
    pub fn delta(&self, source: &Windows) -> Delta {
        self.delta_of_all([source])
    }

    /// The windows that this text shares with several sources taken as one (their counts added).
    pub fn delta_of_all<'a>(&self, sources: impl IntoIterator<Item = &'a Windows>) -> Delta {
        let mut left = self.counts.clone();
        let mut delta = Delta::default();
        for source in sources.into_iter().filter(|source| source.degree == self.degree) {
            for window in &source.hashes {
                let Some(at) = self.place(*window) else { continue };
                // Each window of the source is matched with one occurrence in this text, as long as there are any left.
                if left[at] > 0 {
                    delta.distinct += usize::from(left[at] == self.counts[at]);
                    left[at] -= 1;
                    delta.size += 1;
                }
            }
        }
        delta
    }

    /// The windows that two chains share. Empty if their degrees differ.
    pub fn delta_of_chain(&self, other: &Chain) -> Delta {
        let mut delta = Delta::default();
        if self.degree != other.degree {
            return delta;
        }
        let (mut a, mut b) = (0, 0);
        while let (Some(x), Some(y)) = (self.keys.get(a), other.keys.get(b)) {
            if x == y {
                delta.size += self.counts[a].min(other.counts[b]) as usize;
                delta.distinct += 1;
            }
            a += usize::from(x <= y);
            b += usize::from(y <= x);
        }
        delta
    }
}

impl From<&Windows> for Chain {
    fn from(windows: &Windows) -> Self {
        Self::build(windows.degree, &[&windows.hashes])
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("degree", &self.degree)
            .field("size", &self.size)
            .field("distinct", &self.distinct())
            .finish_non_exhaustive()
    }
}
