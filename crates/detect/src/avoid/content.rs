//! Groups pages by content: two pages have the same content if at least nine tenths of their 4-word shingles agree.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::shape::Mix;

/// A text of fewer shingles is no evidence, so empty pages are never duplicates of each other.
const MIN_SHINGLES: usize = 8;
/// Two texts with at least this Jaccard similarity have the same content.
const SIMILAR: f64 = 0.9;
/// The number of smallest hashes of a text that are kept. Up to this number the similarity is exact; above it, they are a bottom-k sketch
/// (Broder 1997).
const SKETCH: usize = 128;
/// The number of bands of the MinHash signature by which candidates are found. With 8 values per band, a pair of similarity 0.9 is found
/// with probability 1 - (1 - 0.9^8)^16 = 0.9999.
const BANDS: usize = 16;
const BAND: usize = 8;
/// The most candidates that are compared.
const MAX_CANDIDATES: usize = 32;

/// The number of a content within its site.
pub(crate) type ContentId = u32;

/// The smallest hashes of the shingles of a text, sorted, and the number of all its shingles.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    hashes: Box<[u32]>,
    all: u32,
    bands: [u32; BANDS],
}

impl Sketch {
    pub(crate) fn of(words: &[u32]) -> Option<Self> {
        if words.len() < MIN_SHINGLES + 3 {
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
        if all < MIN_SHINGLES {
            return None;
        }
        hashes.truncate(SKETCH);
        Some(Self { hashes: hashes.into(), all: all as u32, bands })
    }

    /// The number of values beside the hashes.
    pub(crate) const NUMBERS: usize = BANDS + 1;

    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    pub(crate) fn numbers(&self) -> [u32; Self::NUMBERS] {
        std::array::from_fn(|at| if at == 0 { self.all } else { self.bands[at - 1] })
    }

    /// Makes a sketch from [`hashes`](Self::hashes) and [`numbers`](Self::numbers).
    pub(crate) fn from_parts(hashes: Vec<u32>, numbers: &[u32]) -> Option<Self> {
        let (&all, bands) = numbers.split_first()?;
        Some(Self { hashes: hashes.into(), all, bands: bands.try_into().ok()? })
    }
}

/// The Jaccard similarity of two sketches, each with the number of all its hashes; exact if both texts are short.
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

/// Whether two texts with these numbers of hashes can have the same content.
fn may_equal(one: u32, other: u32) -> bool {
    let (a, b) = (f64::from(one), f64::from(other));
    a.min(b) >= SIMILAR * a.max(b)
}

/// The contents of a site. The first page of each content represents it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    leaders: Vec<Leader>,
    /// By band and its value, the newest content: 8 bytes per entry.
    newest: [HashMap<u32, ContentId>; BANDS],
}

#[derive(Clone, Debug)]
struct Leader {
    hashes: Box<[u32]>,
    all: u32,
    /// The number of the page.
    page: u32,
    /// The next older content of each band: linked lists of 4 bytes per entry.
    older: [ContentId; BANDS],
}

/// The end of a list.
const NONE: ContentId = ContentId::MAX;

impl Contents {
    pub(crate) fn len(&self) -> usize {
        self.leaders.len()
    }

    /// The page that represents a content.
    pub(crate) fn leader(&self, id: ContentId) -> u32 {
        self.leaders[id as usize].page
    }

    /// The content of a page's text; a new one if no similar one exists.
    pub(crate) fn id(&mut self, sketch: Sketch, page: u32) -> ContentId {
        let mut looked_at: SmallVec<[ContentId; 32]> = SmallVec::new();
        for (band, value) in sketch.bands.iter().enumerate() {
            let mut next = self.newest[band].get(value).copied().unwrap_or(NONE);
            while next != NONE && looked_at.len() < MAX_CANDIDATES {
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
