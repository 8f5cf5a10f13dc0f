//! Sketches: the smallest hashes of the shingles of a text, by which similar texts are found.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use fearless_simd::{Level, Simd, dispatch};

use super::shape::Mix;

/// A text of fewer shingles is compared as a whole only: a tenth of its shingles is less than one.
const MIN_SHINGLES: usize = 8;
/// The number of words of a shingle.
const SHINGLE: usize = 4;
/// A text of fewer words has fewer shingles.
pub(crate) const MIN_WORDS: usize = MIN_SHINGLES + SHINGLE - 1;
/// Two texts with at least this Jaccard similarity have the same content.
pub(crate) const SIMILAR: f64 = 0.9;
/// The number of smallest hashes of a text that are kept. Up to this number the similarity is exact; above it, they are a bottom-k sketch
/// (Broder 1997).
const SKETCH: usize = 128;
/// The number of bands by which candidates are found, and of the values of each: with one-permutation hashing (Li, Owen and Zhang 2012) and
/// optimal densification (Shrivastava 2017). A pair of similarity 0.9 is found with probability 1 - (1 - 0.9^8)^16 = 0.9999.
pub(crate) const BANDS: usize = 16;
const BAND: usize = 8;
const BINS: usize = BANDS * BAND;

/// The smallest hashes of the shingles of a text, sorted, and the number of all its shingles.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    hashes: Arc<[u32]>,
    all: u32,
    bands: Option<[u32; BANDS]>,
}

/// The hashes of a sketch as they are kept.
#[derive(Clone, Debug)]
pub(crate) enum KeptHashes {
    Exact(Arc<[u32]>),
    /// Hashes of a long text without some of their lowest bits, so that the largest one has 16. A hash that only one of two texts has is then taken for one of
    /// the other in one case of 250 at most, which is little beside the error of a sketch.
    Rounded {
        hashes: Box<[u16]>,
        bits: u32,
    },
}

impl Sketch {
    /// `None` for a short text.
    pub(crate) fn of(words: &[u32]) -> Option<Self> {
        if words.len() < MIN_WORDS {
            return None;
        }
        SCRATCH.with_borrow_mut(|Scratch { hashes, small, distinct }| {
            let count = words.len() + 1 - SHINGLE;
            hashes.resize(hashes.len().max(count), 0);
            let hashes = &mut hashes[..count];
            dispatch!(Level::new(), simd => hash_shingles(simd, words, hashes));
            let all = distinct.count(hashes);
            if all < MIN_SHINGLES {
                return None;
            }
            let bands = Some(bands(hashes));
            Some(Self { hashes: smallest(hashes, all, small).into(), all: all as u32, bands })
        })
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.hashes)
    }

    /// The number of values beside the hashes.
    pub(crate) const NUMBERS: usize = BANDS + 1;

    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// The number of different shingles.
    pub(crate) fn all(&self) -> u32 {
        self.all
    }

    /// The values by which similar texts are found. Texts of older journals have none.
    pub(crate) fn bands(&self) -> Option<&[u32; BANDS]> {
        self.bands.as_ref()
    }

    pub(crate) fn numbers(&self) -> [u32; Self::NUMBERS] {
        let bands = self.bands.unwrap_or_default();
        std::array::from_fn(|at| if at == 0 { self.all } else { bands[at - 1] })
    }

    /// Makes a sketch from [`hashes`](Self::hashes) and [`numbers`](Self::numbers). Bands of older journals are of another kind.
    pub(crate) fn from_parts(hashes: Vec<u32>, numbers: &[u32], has_bands: bool) -> Option<Self> {
        let (&all, bands) = numbers.split_first()?;
        let bands: [u32; BANDS] = bands.try_into().ok()?;
        Some(Self { hashes: hashes.into(), all, bands: has_bands.then_some(bands) })
    }

    /// The hashes to be kept: exactly, or those of a long text in half of the memory.
    pub(crate) fn kept(self, is_exact: bool) -> KeptHashes {
        // The similarity of two short texts is exact.
        if is_exact || self.all as usize <= SKETCH {
            return KeptHashes::Exact(self.hashes);
        }
        let largest = self.hashes.last().copied().unwrap_or_default();
        let bits = u16::BITS.saturating_sub(largest.leading_zeros());
        KeptHashes::Rounded { hashes: self.hashes.iter().map(|hash| (hash >> bits) as u16).collect(), bits }
    }

    /// The Jaccard similarity with a text of which these hashes and the number of all are kept; exact if both texts are short. `None` if it is below
    /// [`SIMILAR`], which is mostly known after some hashes.
    pub(crate) fn similarity(&self, kept: &KeptHashes, all: u32) -> Option<f64> {
        let (a, b) = (f64::from(self.all), f64::from(all));
        if a.min(b) < SIMILAR * a.max(b) {
            return None;
        }
        let is_exact = self.all as usize <= SKETCH && all as usize <= SKETCH;
        match kept {
            KeptHashes::Exact(hashes) => {
                similarity(self.hashes.iter().copied(), hashes.iter().copied(), is_exact)
            }
            KeptHashes::Rounded { hashes, bits } => {
                let own = self.hashes.iter().map(|hash| hash >> bits);
                similarity(own, hashes.iter().map(|hash| u32::from(*hash)), is_exact)
            }
        }
    }
}

impl KeptHashes {
    /// The hashes, or none if they are rounded.
    pub(crate) fn exact(&self) -> &[u32] {
        match self {
            Self::Exact(hashes) => hashes,
            Self::Rounded { .. } => &[],
        }
    }
}

/// The hashes of all shingles in their order, into a place for each. Shingles do not depend on each other, so that compilers hash as many at a time as the vectors of the
/// processor have lanes: eight in a fifth of the time of one by one.
#[inline(always)]
fn hash_shingles(simd: impl Simd, words: &[u32], hashes: &mut [u32]) {
    // In a closure of its own, which is not called but a part of the function that is made for the processor; so no iterators.
    simd.vectorize(
        #[inline(always)]
        || {
            let count = hashes.len();
            let words: [&[u32]; SHINGLE] = std::array::from_fn(|at| &words[at..][..count]);
            for shingle in 0..count {
                let mut hash = Mix::new(4);
                for word in words {
                    hash = hash.with(u64::from(word[shingle]));
                }
                hashes[shingle] = hash.0 as u32;
            }
        },
    );
}

thread_local! {
    /// Its memory is used again: it is several times as large as a text.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What is needed to make a sketch.
#[derive(Debug, Default)]
struct Scratch {
    /// The hashes of all shingles, and perhaps others after them.
    hashes: Vec<u32>,
    small: Vec<u32>,
    distinct: Distinct,
}

/// Counts different hashes.
#[derive(Clone, Debug, Default)]
struct Distinct {
    /// By some bits of a hash, the first one that has them; 0 where there is none.
    table: Vec<u32>,
    /// The hashes that did not find their places free.
    left: Vec<u32>,
}

impl Distinct {
    /// The number of different hashes.
    ///
    /// The places are taken in rounds: a hash whose place another one has waits for the next round, in which other bits count, and few are left. So
    /// nothing depends on a guess of the processor whether a place is free.
    fn count(&mut self, hashes: &[u32]) -> usize {
        let Self { table, left } = self;
        // 0 is the mark of a free place.
        let has_zero = hashes.contains(&0);
        let mut count = usize::from(has_zero);
        left.resize(left.len().max(hashes.len()), 0);
        let (mut waiting, mut factor) = (hashes.len(), 1u32);
        while waiting > 0 {
            let bits = (2 * waiting).next_power_of_two().ilog2();
            table.clear();
            table.resize(1 << bits, 0);
            let mut next = 0;
            let mut place = |hash: u32, left: &mut [u32]| {
                let place = &mut table[(hash.wrapping_mul(factor) >> (32 - bits)) as usize];
                let is_first = *place == 0 && hash != 0;
                *place = if is_first { hash } else { *place };
                left[next] = hash;
                next += usize::from(*place != hash && hash != 0);
                count += usize::from(is_first);
            };
            if factor == 1 {
                hashes.iter().for_each(|hash| place(*hash, left));
            } else {
                (0..waiting).for_each(|at| place(left[at], left));
            }
            waiting = next;
            factor = factor.wrapping_mul(0x9E37_79B1);
        }
        count
    }
}

/// The smallest hashes, each once and sorted; of all, this number are different.
fn smallest<'a>(hashes: &[u32], different: usize, small: &'a mut Vec<u32>) -> &'a [u32] {
    // Hashes are spread evenly, so that these hardly ever are too few, and not many more.
    let bound = u64::from(u32::MAX) * 3 * SKETCH as u64 / 2 / different.max(1) as u64;
    for bound in [bound.try_into().unwrap_or(u32::MAX), u32::MAX] {
        small.resize(small.len().max(hashes.len()), 0);
        // Written without a branch, because it is not foreseeable which hashes are small.
        let mut next = 0;
        for hash in hashes {
            small[next] = *hash;
            next += usize::from(*hash <= bound);
        }
        small.truncate(next);
        small.sort_unstable();
        small.dedup();
        small.truncate(SKETCH);
        if small.len() == SKETCH.min(different) {
            break;
        }
    }
    small
}

/// The bands of a set of hashes. Each hash is in one of the bins, whose value is the least; an empty bin takes that of another one, which
/// depends on the bin only. If hashes agree in a share of their union, so do values, and each value is independent of the others.
fn bands(hashes: &[u32]) -> [u32; BANDS] {
    let mut bins = [u32::MAX; BINS];
    let mut is_used = [false; BINS];
    for hash in hashes {
        let bin = (hash >> (32 - BINS.ilog2())) as usize;
        bins[bin] = bins[bin].min(*hash);
        is_used[bin] = true;
    }
    let mut values = bins;
    if !hashes.is_empty() {
        for bin in (0..BINS).filter(|bin| !is_used[*bin]) {
            let mut from = Mix::new(6).with(bin as u64);
            while !is_used[from.0 as usize % BINS] {
                from = from.with(0);
            }
            values[bin] = bins[from.0 as usize % BINS];
        }
    }
    let (values, _) = values.as_chunks::<BAND>();
    std::array::from_fn(|band| {
        values[band].iter().fold(Mix::new(5), |hash, value| hash.with(u64::from(*value))).0 as u32
    })
}

/// The Jaccard similarity of two texts by their sorted hashes: of all of them if these are all that the texts have, and otherwise of the smallest of both.
fn similarity(
    one: impl ExactSizeIterator<Item = u32>,
    other: impl ExactSizeIterator<Item = u32>,
    is_exact: bool,
) -> Option<f64> {
    let most = if is_exact { one.len() + other.len() } else { SKETCH };
    let most_apart = ((1.0 - SIMILAR) * most as f64) as usize + 1;
    let (mut one, mut other) = (one.peekable(), other.peekable());
    let (mut union, mut both) = (0usize, 0usize);
    while union < most && union - both <= most_apart {
        let order = match (one.peek(), other.peek()) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        union += 1;
        both += usize::from(order.is_eq());
        if order.is_le() {
            one.next();
        }
        if order.is_ge() {
            other.next();
        }
    }
    Some(both as f64 / union.max(1) as f64).filter(|similarity| *similarity >= SIMILAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_find_pairs_of_similarity_nine_tenths() {
        let mut state = Mix::new(1);
        let mut draw = |count: usize| -> Vec<u32> {
            let mut next = || {
                state = state.with(0);
                state.0 as u32
            };
            (0..count).map(|_| next()).collect()
        };
        // The hashes that both have, and those that only one or the other has.
        for (both, one, other) in
            [(9, 1, 0), (18, 1, 1), (90, 5, 5), (90, 10, 0), (180, 0, 20), (900, 50, 50), (1_800, 200, 0)]
        {
            let pairs = 4_000;
            let missed = (0..pairs).filter(|_| {
                let (both, one, other) = (draw(both), draw(one), draw(other));
                let (one, other) = (bands(&[&both[..], &one].concat()), bands(&[&other[..], &both].concat()));
                one.iter().zip(&other).all(|(one, other)| one != other)
            });
            let missed = missed.count();
            assert!(missed <= 4, "{missed} of {pairs} pairs of {both} common hashes are missed");
        }
        // What agrees in a third of its hashes is rarely looked at.
        let found = (0..1_000).filter(|_| {
            let (both, one, other) = (draw(100), draw(100), draw(100));
            let (one, other) = (bands(&[&both[..], &one].concat()), bands(&[&both[..], &other].concat()));
            one.iter().zip(&other).any(|(one, other)| one == other)
        });
        assert!(found.count() <= 20);
    }

    #[test]
    fn rounded_hashes_have_nearly_the_similarity_of_exact_ones() {
        let mut state = Mix::new(3);
        let mut sketch = |words: &[u32], changed: usize| {
            let mut words = words.to_vec();
            for _ in 0..changed {
                state = state.with(0);
                let at = state.0 as usize % words.len();
                words[at] = state.0 as u32 | 1 << 31;
            }
            Sketch::of(&words).expect("a long text")
        };
        for length in [200u32, 1_000, 20_000] {
            let words: Vec<u32> = (0..length).map(|word| Mix::new(u64::from(word)).0 as u32 >> 1).collect();
            let (mut same, mut compared) = (0, 0);
            for changed in 0..(length / 40) as usize {
                let (one, other) = (sketch(&words, 0), sketch(&words, changed));
                let [exact, rounded] = [true, false].map(|is_exact| one.clone().kept(is_exact));
                assert!(matches!(rounded, KeptHashes::Rounded { .. }), "{rounded:?}");
                let [exact, rounded] = [exact, rounded].map(|kept| other.similarity(&kept, one.all()));
                compared += 1;
                same += usize::from(exact == rounded);
                let apart = exact.zip(rounded).map_or(0.0, |(exact, rounded)| (exact - rounded).abs());
                assert!(apart <= 2.0 / SKETCH as f64, "{changed} of {length} words: {exact:?}, {rounded:?}");
            }
            assert!(10 * same >= 9 * compared, "{same} of {compared} at {length} words");
        }
    }

    #[test]
    fn short_texts_are_kept_exactly() {
        let words: Vec<u32> = (0..100).collect();
        let sketch = Sketch::of(&words).expect("long enough");
        assert!(matches!(sketch.kept(false), KeptHashes::Exact(_)));
    }

    #[test]
    fn the_smallest_hashes_are_kept_however_they_are_spread() {
        let spread = |shift: u32| {
            (0..2_000u32).map(move |at| at.wrapping_mul(0x9E37_79B9) >> shift << 12 | at).collect()
        };
        let all_large: Vec<u32> = (0..2_000).map(|at| u32::MAX - at).collect();
        for hashes in [spread(0), spread(20), spread(31), all_large, (0..128).rev().collect(), vec![3, 1, 2]]
        {
            let mut sorted = hashes.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let repeated = [&hashes[..], &hashes].concat();
            let small = &mut vec![9];
            assert_eq!(smallest(&repeated, sorted.len(), small), &sorted[..sorted.len().min(SKETCH)]);
        }
    }

    #[test]
    fn repeated_hashes_count_once() {
        let mut distinct = Distinct::default();
        assert_eq!(distinct.count(&[5, 0, u32::MAX, 5, 7, 0, u32::MAX, 6, 7, u32::MAX - 1]), 6);
        assert_eq!(distinct.count(&[]), 0);
        // Many that differ in their lowest or in their highest bits only, in both orders.
        let low = (0..5_000).chain((2_500..7_500).rev());
        let hashes: Vec<u32> = low.flat_map(|hash: u32| [hash, hash << 16]).collect();
        let set: std::collections::HashSet<u32> = hashes.iter().copied().collect();
        assert_eq!(distinct.count(&hashes), set.len());
    }
}
