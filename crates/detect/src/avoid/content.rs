//! Groups pages by content: two pages have the same content if their words are the same, or at least nine tenths of their 4-word shingles.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::shape::Mix;

/// A text of fewer shingles is compared as a whole only: a tenth of its shingles is less than one.
const MIN_SHINGLES: usize = 8;
/// The number of words of a shingle.
const SHINGLE: usize = 4;
/// Two texts with at least this Jaccard similarity have the same content.
pub(crate) const SIMILAR: f64 = 0.9;
/// The number of smallest hashes of a text that are kept. Up to this number the similarity is exact; above it, they are a bottom-k sketch
/// (Broder 1997).
const SKETCH: usize = 128;
/// The number of bands of the MinHash signature by which candidates are found. With 8 values per band, a pair of similarity 0.9 is found
/// with probability 1 - (1 - 0.9^8)^16 = 0.9999.
const BANDS: usize = 16;
const BAND: usize = 8;
/// The most candidates of a band that are examined.
const MAX_CANDIDATES: usize = 256;

/// The number of a content within its site.
pub(crate) type ContentId = u32;

/// The texts by which a page is compared with others.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// All words of the content.
    pub(crate) whole: ContentText,
    /// The words without those that the page's URL has, too; `None` if there are none, or if little else would remain.
    pub(crate) without_own: Option<ContentText>,
}

/// A text: the hash of its words in order, and a sketch of its shingles unless it is short.
#[derive(Clone, Debug)]
pub(crate) struct ContentText {
    pub(crate) key: u64,
    pub(crate) sketch: Option<Sketch>,
}

impl ContentText {
    /// `None` for a text without words: empty pages are never duplicates of each other.
    pub(crate) fn of(words: &[u32]) -> Option<Self> {
        if words.is_empty() {
            return None;
        }
        let key = words.iter().fold(Mix::new(7), |hash, word| hash.with(u64::from(*word))).0;
        Some(Self { key, sketch: Sketch::of(words) })
    }

    /// A text of which only the sketch is known, as journals of the first format have it.
    pub(crate) fn of_sketch(sketch: Sketch) -> Self {
        let hashes = sketch.hashes.iter().fold(Mix::new(8), |hash, value| hash.with(u64::from(*value)));
        Self { key: hashes.with(u64::from(sketch.all)).0, sketch: Some(sketch) }
    }
}

/// The smallest hashes of the shingles of a text, sorted, and the number of all its shingles.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    hashes: Box<[u32]>,
    all: u32,
    bands: [u32; BANDS],
}

impl Sketch {
    /// `None` for a short text.
    fn of(words: &[u32]) -> Option<Self> {
        if words.len() < MIN_SHINGLES + SHINGLE - 1 {
            return None;
        }
        let mut hashes: Vec<u32> = words
            .windows(SHINGLE)
            .map(|words| words.iter().fold(Mix::new(4), |hash, word| hash.with(u64::from(*word))).0 as u32)
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        let all = hashes.len();
        if all < MIN_SHINGLES {
            return None;
        }
        let wide: Vec<u64> = hashes.iter().map(|hash| u64::from(*hash)).collect();
        let signature = crate::minhash::Signature::of(&wide);
        let mut bands = [0; BANDS];
        for (band, values) in bands.iter_mut().zip(signature.values().chunks_exact(BAND)) {
            *band = values.iter().fold(Mix::new(5), |hash, value| hash.with(u64::from(*value))).0 as u32;
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

/// The contents of a site. The first page of each represents it.
///
/// A page has two texts, so there are two groupings: by the whole text, and by the text without the words that the URL has, too. They are
/// never merged: pages that are equal in one way to this one and in the other way to that one would form chains without end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    contents: Vec<Content>,
    /// The contents by their groups.
    numbers: HashMap<(u32, u32), ContentId>,
    whole: Groups,
    without_own: Groups,
}

/// The content of a page that was learnt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) content: ContentId,
    /// Whether both texts of the page are new.
    pub(crate) is_new: bool,
    /// The number of shingles in which it differs from the first page with this content.
    pub(crate) apart: u32,
}

#[derive(Clone, Copy, Debug)]
struct Content {
    whole: u32,
    /// [`NONE`] if the page has no such text.
    without_own: u32,
    page: u32,
    size: u32,
}

impl Contents {
    /// The number of shingles of the whole text; 0 for a short one.
    pub(crate) fn size(&self, id: ContentId) -> u32 {
        self.contents[id as usize].size
    }

    /// The page that represents a content.
    pub(crate) fn page(&self, id: ContentId) -> u32 {
        self.contents[id as usize].page
    }

    /// The group of a content by its whole text.
    pub(crate) fn group(&self, id: ContentId) -> u32 {
        self.contents[id as usize].whole
    }

    /// The groups of a content by its whole text, and by its text without its own words if it has one.
    pub(crate) fn groups(&self, id: ContentId) -> (u32, Option<u32>) {
        let Content { whole, without_own, .. } = self.contents[id as usize];
        (whole, (without_own != NONE).then_some(without_own))
    }

    /// Whether two contents have the same whole text.
    pub(crate) fn is_equal(&self, one: ContentId, other: ContentId) -> bool {
        one == other || self.group(one) == self.group(other)
    }

    /// Whether two contents have the same whole text, or differ only in words that the URL of each has.
    pub(crate) fn is_equal_but_own(&self, one: ContentId, other: ContentId) -> bool {
        let without_own = |id: ContentId| self.contents[id as usize].without_own;
        self.is_equal(one, other) || (without_own(one) != NONE && without_own(one) == without_own(other))
    }

    /// Finds the content of a page, or makes a new one.
    pub(crate) fn add(&mut self, texts: Texts, page: u32) -> Found {
        let size = texts.whole.sketch.as_ref().map_or(0, |sketch| sketch.all);
        let (whole, apart) = self.whole.number(texts.whole);
        let other = texts.without_own.map(|text| self.without_own.number(text));
        let apart = apart.or(other.and_then(|(_, apart)| apart));
        let without_own = other.map_or(NONE, |(number, _)| number);
        let next = self.contents.len() as ContentId;
        let id = *self.numbers.entry((whole, without_own)).or_insert(next);
        if id == next {
            self.contents.push(Content { whole, without_own, page, size });
        }
        Found { content: id, is_new: apart.is_none(), apart: apart.unwrap_or_default() }
    }
}

/// Texts in groups of equal ones.
#[derive(Clone, Debug, Default)]
struct Groups {
    count: u32,
    /// The groups by the hash of the words: 16 bytes per text.
    by_key: HashMap<u64, Member>,
    leaders: Vec<Leader>,
    /// By band and its value, the newest leader: 8 bytes per entry.
    newest: [HashMap<u32, u32>; BANDS],
}

/// A text of a group, and the number of shingles in which it differs from the first one.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: u32,
    apart: u32,
}

/// The first text of a group, to which others can be similar.
#[derive(Clone, Debug)]
struct Leader {
    group: u32,
    hashes: Box<[u32]>,
    all: u32,
    /// The next older leader of each band: linked lists of 4 bytes per entry.
    older: [u32; BANDS],
}

/// The end of a list.
const NONE: u32 = u32::MAX;

impl Groups {
    /// The group of a text, and the number of shingles in which it differs from the group's first one; `None` if the group is new.
    ///
    /// Equal words are always in the same group. Of several similar groups the first counts, so that a text which lies between two of them
    /// does not belong to the newer one at one time and to the older one at another.
    fn number(&mut self, text: ContentText) -> (u32, Option<u32>) {
        if let Some(known) = self.by_key.get(&text.key) {
            return (known.group, Some(known.apart));
        }
        let similar = text.sketch.as_ref().and_then(|sketch| self.first_similar(sketch));
        let group = similar.map(|member| member.group).unwrap_or_else(|| {
            let group = self.count;
            self.count += 1;
            if let Some(sketch) = text.sketch {
                self.add_leader(group, sketch);
            }
            group
        });
        let apart = similar.map(|member| member.apart);
        self.by_key.insert(text.key, Member { group, apart: apart.unwrap_or_default() });
        (group, apart)
    }

    fn first_similar(&self, sketch: &Sketch) -> Option<Member> {
        let mut compared: SmallVec<[u32; 32]> = SmallVec::new();
        let mut first: Option<Member> = None;
        for (band, value) in sketch.bands.iter().enumerate() {
            let mut next = self.newest[band].get(value).copied().unwrap_or(NONE);
            for _ in 0..MAX_CANDIDATES {
                let Some(leader) = self.leaders.get(next as usize) else { break };
                let is_older = first.is_none_or(|first| leader.group < first.group);
                if is_older && may_equal(leader.all, sketch.all) && !compared.contains(&next) {
                    compared.push(next);
                    let similarity = similarity((&leader.hashes, leader.all), (&sketch.hashes, sketch.all));
                    if similarity >= SIMILAR {
                        let apart = (1.0 - similarity) * f64::from(leader.all.max(sketch.all));
                        first = Some(Member { group: leader.group, apart: apart.ceil() as u32 });
                    }
                }
                next = leader.older[band];
            }
        }
        first
    }

    fn add_leader(&mut self, group: u32, sketch: Sketch) {
        let number = self.leaders.len() as u32;
        let mut older = [NONE; BANDS];
        for (band, value) in sketch.bands.iter().enumerate() {
            older[band] = self.newest[band].insert(*value, number).unwrap_or(NONE);
        }
        self.leaders.push(Leader { group, hashes: sketch.hashes, all: sketch.all, older });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: impl Iterator<Item = u32>) -> ContentText {
        ContentText::of(&words.collect::<Vec<u32>>()).expect("it has words")
    }

    /// 100 words of which some at the end are others.
    fn changed(words: u32) -> ContentText {
        text((0..100).map(move |word| if word < 100 - words { word } else { 1_000 * words + word }))
    }

    #[test]
    fn a_text_between_two_contents_keeps_the_content_that_it_had() {
        let mut groups = Groups::default();
        // Each of the two is similar to the text between them, but not to the other one.
        let (first, _) = groups.number(text(0..100));
        let (second, apart) = groups.number(text((700..704).chain(4..96).chain(504..508)));
        assert!(apart.is_none() && second != first);
        let between = || text((700..704).chain(4..100));
        assert_eq!(groups.number(between()), (first, Some(8)), "of two similar ones the first one counts");
        for words in 3..40 {
            groups.number(changed(words));
            assert_eq!(groups.number(between()), (first, Some(8)), "equal words are one content at any time");
        }
    }

    #[test]
    fn a_short_text_equals_only_itself() {
        let mut groups = Groups::default();
        assert!(ContentText::of(&[]).is_none(), "an empty page equals none");
        let (one, _) = groups.number(text(0..10));
        assert_eq!(groups.number(text(0..9)).1, None);
        assert_eq!(groups.number(text((0..9).chain([99]))).1, None);
        assert_eq!(groups.number(text(0..10)), (one, Some(0)));
    }

    #[test]
    fn two_ways_to_be_equal_are_never_chained() {
        let mut contents = Contents::default();
        let texts = |whole: u32, own: Option<u32>| Texts {
            whole: text(whole..whole + 50),
            without_own: own.map(|own| text(own..own + 50)),
        };
        let a = contents.add(texts(0, Some(1_000)), 0).content;
        let b = contents.add(texts(0, Some(2_000)), 1).content;
        let c = contents.add(texts(100, Some(2_000)), 2).content;
        assert!(contents.is_equal(a, b) && contents.is_equal_but_own(b, c) && !contents.is_equal(b, c));
        assert!(!contents.is_equal_but_own(a, c));
    }
}
