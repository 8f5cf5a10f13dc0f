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
/// Of a text with so many shingles all hashes are sorted, which also counts the different ones.
const SORTED: usize = 2 * SKETCH;

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
        SCRATCH.with_borrow_mut(|Scratch { hashes, small, marks }| {
            let count = words.len() + 1 - SHINGLE;
            hashes.resize(hashes.len().max(count), 0);
            let hashes = &mut hashes[..count];
            dispatch!(Level::new(), simd => hash_shingles(simd, words, hashes));
            let all = smallest(hashes, small, marks);
            if all < MIN_SHINGLES {
                return None;
            }
            let bands = Some(bands(hashes));
            Some(Self { hashes: small.as_slice().into(), all: all as u32, bands })
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

    /// The number of different shingles: exact if there are few, and otherwise within about 1 %.
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
    marks: Vec<u64>,
}

/// Collects the smallest hashes, each once and sorted. Returns the number of all different ones, which is estimated if there are many.
fn smallest(hashes: &[u32], small: &mut Vec<u32>, marks: &mut Vec<u64>) -> usize {
    let mut up_to = |bound: u32| {
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
        let found = small.len();
        small.truncate(SKETCH);
        found
    };
    if hashes.len() > SORTED {
        let different = count_different(hashes, marks);
        // Hashes are spread evenly, so that these hardly ever are too few, and not many more.
        let bound = u64::from(u32::MAX) * 3 * SKETCH as u64 / 2 / different.max(1) as u64;
        if let Ok(bound) = u32::try_from(bound)
            && up_to(bound) >= SKETCH
        {
            return different;
        }
    }
    up_to(u32::MAX)
}

/// Estimates the number of different hashes by linear counting (Whang, Vander-Zanden and Taylor 1990): each hash marks a place, and the share of places without
/// a mark tells how many hashes there are. The standard error is 0.3 % for all texts that are read. It takes a quarter of
/// the time of exact counting, and is compared with other texts by 128 hashes, whose error is ten times as large.
fn count_different(hashes: &[u32], marks: &mut Vec<u64>) -> usize {
    const PLACES: u32 = 1 << 16;
    marks.clear();
    marks.resize((PLACES / u64::BITS) as usize, 0);
    for place in hashes.iter().map(|hash| hash % PLACES) {
        marks[(place / u64::BITS) as usize] |= 1 << (place % u64::BITS);
    }
    let marked: u32 = marks.iter().map(|places| places.count_ones()).sum();
    let (all, free) = (f64::from(PLACES), f64::from(PLACES - marked));
    let different = all * (all / free.max(1.0)).ln();
    (different.round() as usize).min(hashes.len())
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
            let (small, marks) = (&mut vec![9], &mut vec![u64::MAX; 9]);
            smallest(&repeated, small, marks);
            assert_eq!(small, &sorted[..sorted.len().min(SKETCH)]);
        }
    }

    #[test]
    fn different_hashes_are_counted_exactly_if_they_are_few_and_otherwise_within_one_percent() {
        let mut state = Mix::new(2);
        for different in [0, 1, 7, 100, 127, 128, 129, 250, 300, 1_000, 5_000, 19_997] {
            let mut next = || {
                state = state.with(0);
                state.0 as u32
            };
            let hashes: Vec<u32> = (0..different).map(|_| next()).collect();
            for repeats in [1, 3] {
                let hashes = hashes.repeat(repeats);
                let all = smallest(&hashes, &mut Vec::new(), &mut Vec::new());
                let is_exact = different < SKETCH || hashes.len() <= SORTED;
                let error = if is_exact { 0 } else { (different / 100).max(3) };
                assert!(all.abs_diff(different) <= error, "{all} of {different}, {repeats} times");
            }
        }
        // Hashes of a text that was made to have one place only, or one hash only.
        let one_place: Vec<u32> = (0..5_000).map(|hash| hash << 16).collect();
        assert!((1..=5_000).contains(&smallest(&one_place, &mut Vec::new(), &mut Vec::new())));
        assert_eq!(smallest(&[7; 5_000], &mut Vec::new(), &mut Vec::new()), 1);
    }
}
