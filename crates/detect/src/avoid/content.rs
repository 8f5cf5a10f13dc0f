//! Contents: pages whose 4-word shingles agree to nine tenths have one content.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::shape::Mix;

/// A text of fewer shingles is no evidence: there are no "empty duplicates".
const LEAST_SHINGLES: usize = 8;
/// Two texts are one content from this Jaccard similarity on.
const SIMILAR: f64 = 0.9;
/// Smallest hashes of a text that are kept: exact below, a bottom-k sketch (Broder 1997) above.
const SKETCH: usize = 128;
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
}

/// Jaccard similarity of two sketches, each with the number of all hashes; exact if both texts are short.
fn similarity(one: (&[u32], u32), other: (&[u32], u32)) -> f64 {
    let is_exact = one.1 as usize <= SKETCH && other.1 as usize <= SKETCH;
    let most = if is_exact { usize::MAX } else { SKETCH };
    let (mut a, mut b, mut union, mut both) = (0, 0, 0usize, 0usize);
    while union < most && (a < one.0.len() || b < other.0.len()) {
        union += 1;
        match (one.0.get(a), other.0.get(b)) {
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

/// Whether the numbers of hashes allow two texts to be one content.
fn may_equal(one: u32, other: u32) -> bool {
    let (a, b) = (f64::from(one), f64::from(other));
    a.min(b) >= SIMILAR * a.max(b)
}

/// The first page of each content stands for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    leaders: Vec<Leader>,
    /// By band and its value, the newest content: 8 bytes an entry.
    newest: [HashMap<u32, ContentId>; BANDS],
}

#[derive(Clone, Debug)]
struct Leader {
    hashes: Box<[u32]>,
    all: u32,
    /// Number of the page.
    page: u32,
    /// The next older content of each band: lists that cost 4 bytes an entry.
    older: [ContentId; BANDS],
}

/// The end of a list.
const NONE: ContentId = ContentId::MAX;

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.leaders.len()
    }

    /// The page that stands for a content.
    pub(crate) fn leader(&self, id: ContentId) -> u32 {
        self.leaders[id as usize].page
    }

    /// The content of the text of a page, a new one if there is none like it.
    pub(crate) fn id(&mut self, sketch: Sketch, page: u32) -> ContentId {
        let mut looked_at: SmallVec<[ContentId; 32]> = SmallVec::new();
        for (band, value) in sketch.bands.iter().enumerate() {
            let mut next = self.newest[band].get(value).copied().unwrap_or(NONE);
            while next != NONE && looked_at.len() < MOST_CANDIDATES {
                let leader = &self.leaders[next as usize];
                if !looked_at.contains(&next) {
                    looked_at.push(next);
                    if may_equal(leader.all, sketch.all)
                        && similarity((&leader.hashes, leader.all), (&sketch.hashes, sketch.all)) >= SIMILAR
                    {
                        return next;
                    }
                }
                next = leader.older[band];
            }
        }
        let id = self.leaders.len() as ContentId;
        let mut older = [NONE; BANDS];
        for (band, value) in sketch.bands.iter().enumerate() {
            older[band] = self.newest[band].insert(*value, id).unwrap_or(NONE);
        }
        self.leaders.push(Leader { hashes: sketch.hashes, all: sketch.all, page, older });
        id
    }
}
