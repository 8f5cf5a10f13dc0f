//! Contents: pages whose 4-word shingles agree to nine tenths have one content.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::shape::Mix;

/// A text of fewer shingles is no evidence: there are no "empty duplicates".
const LEAST_SHINGLES: usize = 8;
/// Two texts are one content from this Jaccard similarity on.
const SIMILAR: f64 = 0.9;
/// Smallest hashes of a text that are kept: exact below, a bottom-k sketch (Broder 1997) above.
const SKETCH: usize = 256;
/// Bands of the MinHash signature by which candidates are found, and values of each: a similarity of 0.9 is found in
/// 1 - (1 - 0.9^8)^16 = 0.9999 of all cases.
const BANDS: usize = 16;
const BAND: usize = 8;
/// Candidates that are compared.
const MOST_CANDIDATES: usize = 32;

/// Number of a content on its site.
pub(crate) type ContentId = u32;

/// The smallest hashes of the shingles of a text, sorted, and how many there are.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    hashes: Box<[u32]>,
    all: u32,
    bands: [u32; BANDS],
}

impl Sketch {
    pub(crate) fn of(words: &[u32]) -> Option<Self> {
        if words.len() < LEAST_SHINGLES + 3 {
            return None;
        }
        let mut hashes: Vec<u32> = words
            .windows(4)
            .map(|words| words.iter().fold(Mix::new(4), |hash, word| hash.with(u64::from(*word))).0 as u32)
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        let all = hashes.len();
        let wide: Vec<u64> = hashes.iter().map(|hash| u64::from(*hash)).collect();
        let signature = crate::minhash::Signature::of(&wide);
        let mut bands = [0; BANDS];
        for (band, values) in bands.iter_mut().zip(signature.values().chunks_exact(BAND)) {
            *band = values.iter().fold(Mix::new(5), |hash, value| hash.with(u64::from(*value))).0 as u32;
        }
        if all < LEAST_SHINGLES {
            return None;
        }
        hashes.truncate(SKETCH);
        Some(Self { hashes: hashes.into(), all: all as u32, bands })
    }

    /// Numbers beside the hashes.
    pub(crate) const NUMBERS: usize = BANDS + 1;

    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    pub(crate) fn numbers(&self) -> [u32; Self::NUMBERS] {
        std::array::from_fn(|at| if at == 0 { self.all } else { self.bands[at - 1] })
    }

    /// From [`hashes`](Self::hashes) and [`numbers`](Self::numbers).
    pub(crate) fn from_parts(hashes: Vec<u32>, numbers: &[u32]) -> Option<Self> {
        let (&all, bands) = numbers.split_first()?;
        Some(Self { hashes: hashes.into(), all, bands: bands.try_into().ok()? })
    }

    fn bands(&self) -> [(u8, u32); BANDS] {
        std::array::from_fn(|band| (band as u8, self.bands[band]))
    }

    /// Jaccard similarity; exact if both texts are short.
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        let is_exact = self.all as usize <= SKETCH && other.all as usize <= SKETCH;
        let most = if is_exact { usize::MAX } else { SKETCH };
        let (mut a, mut b, mut union, mut both) = (0, 0, 0usize, 0usize);
        while union < most && (a < self.hashes.len() || b < other.hashes.len()) {
            union += 1;
            match (self.hashes.get(a), other.hashes.get(b)) {
                (Some(x), Some(y)) if x == y => {
                    both += 1;
                    a += 1;
                    b += 1;
                }
                (Some(x), Some(y)) if x < y => a += 1,
                (Some(_), None) => a += 1,
                _ => b += 1,
            }
        }
        both as f64 / union.max(1) as f64
    }

    /// Whether sizes allow the similarity.
    fn may_equal(&self, other: &Self) -> bool {
        let (a, b) = (f64::from(self.all), f64::from(other.all));
        a.min(b) >= SIMILAR * a.max(b)
    }
}

/// The first page of each content stands for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The sketch and the number of the page that stands for it.
    leaders: Vec<(Sketch, u32)>,
    by_band: HashMap<(u8, u32), SmallVec<[ContentId; 2]>>,
}

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.leaders.len()
    }

    /// The page that stands for a content.
    pub(crate) fn leader(&self, id: ContentId) -> u32 {
        self.leaders[id as usize].1
    }

    /// The content of the text of a page, a new one if there is none like it.
    pub(crate) fn id(&mut self, sketch: Sketch, page: u32) -> ContentId {
        let mut looked_at: SmallVec<[ContentId; 32]> = SmallVec::new();
        for band in sketch.bands() {
            for id in self.by_band.get(&band).into_iter().flatten() {
                if looked_at.len() < MOST_CANDIDATES && !looked_at.contains(id) {
                    looked_at.push(*id);
                    let leader = &self.leaders[*id as usize].0;
                    if leader.may_equal(&sketch) && leader.similarity(&sketch) >= SIMILAR {
                        return *id;
                    }
                }
            }
        }
        let id = self.leaders.len() as ContentId;
        for band in sketch.bands() {
            self.by_band.entry(band).or_default().push(id);
        }
        self.leaders.push((sketch, page));
        id
    }
}
