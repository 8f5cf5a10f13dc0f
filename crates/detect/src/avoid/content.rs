//! Groups pages by content: two pages have the same content if their words are the same, or at least nine tenths of their 4-word shingles.

use std::cell::RefCell;
use std::sync::Arc;

use fearless_simd::{Level, Simd, dispatch};
use hashbrown::HashMap;

use super::chrome::PageContent;
use super::fold::Fold;
use super::multimap::Multimap;
use super::packed_key::PackedKey;
use super::shape::Mix;

/// A text of fewer shingles is compared as a whole only: a tenth of its shingles is less than one.
const MIN_SHINGLES: usize = 8;
/// The number of words of a shingle.
const SHINGLE: usize = 4;
/// A text of fewer words has fewer shingles.
const MIN_WORDS: usize = MIN_SHINGLES + SHINGLE - 1;
/// Two texts with at least this Jaccard similarity have the same content.
pub(crate) const SIMILAR: f64 = 0.9;
/// The number of smallest hashes of a text that are kept. Up to this number the similarity is exact; above it, they are a bottom-k sketch
/// (Broder 1997).
const SKETCH: usize = 128;
/// The number of bands by which candidates are found, and of the values of each: with one-permutation hashing (Li, Owen and Zhang 2012) and
/// optimal densification (Shrivastava 2017). A pair of similarity 0.9 is found with probability 1 - (1 - 0.9^8)^16 = 0.9999.
const BANDS: usize = 16;
const BAND: usize = 8;
const BINS: usize = BANDS * BAND;
/// The number of smallest hashes by which candidates are found once texts without bands are known.
const LOOKED_UP: usize = 16;
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

/// A text: the hash of its words in order, and a sketch of its shingles. A short text has none, and a text that is known needs none.
#[derive(Clone, Debug)]
pub(crate) struct ContentText {
    pub(crate) key: u64,
    pub(crate) sketch: Option<Sketch>,
}

impl ContentText {
    /// The key of a text with this hash; `None` for a text without words: empty pages are never duplicates of each other.
    fn key(fold: Fold, words: impl FnOnce() -> Vec<u32>) -> Option<u64> {
        match fold.words as usize {
            0 => None,
            // Older journals have keys of this kind. Longer texts are found again by their sketches, but short ones have none.
            1..MIN_WORDS => {
                Some(words().iter().fold(Mix::new(7), |hash, word| hash.with(u64::from(*word))).0)
            }
            _ => Some(Mix::new(9).with(fold.value()).with(u64::from(fold.words)).0),
        }
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
    hashes: Arc<[u32]>,
    all: u32,
    /// Texts of older journals have none.
    bands: Option<[u32; BANDS]>,
}

impl Sketch {
    /// `None` for a short text.
    fn of(words: &[u32]) -> Option<Self> {
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
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.hashes)
    }

    /// The number of values beside the hashes.
    pub(crate) const NUMBERS: usize = BANDS + 1;

    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
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
        small.clear();
        small.extend(hashes.iter().copied().filter(|hash| *hash <= bound));
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

/// The Jaccard similarity of two sketches, each with the number of all its hashes; exact if both texts are short. `None` if it is below
/// [`SIMILAR`], which is mostly known after some hashes.
fn similarity(one: (&[u32], u32), other: (&[u32], u32)) -> Option<f64> {
    let is_exact = one.1 as usize <= SKETCH && other.1 as usize <= SKETCH;
    let most = if is_exact { one.0.len() + other.0.len() } else { SKETCH };
    let most_apart = ((1.0 - SIMILAR) * most as f64) as usize + 1;
    let (mut a, mut b, mut union, mut both) = (0, 0, 0usize, 0usize);
    while union < most && union - both <= most_apart && (a < one.0.len() || b < other.0.len()) {
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
    Some(both as f64 / union.max(1) as f64).filter(|similarity| *similarity >= SIMILAR)
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
    sketches: Sketches,
}

/// Sketches by the keys of texts, for relearning: what is content on a page seldom changes then.
#[derive(Clone, Debug, Default)]
struct Sketches {
    /// Those of the texts that are grouped.
    known: HashMap<u64, Option<Sketch>>,
    /// Those of the texts before relearning.
    before: HashMap<u64, Option<Sketch>>,
    bytes: usize,
    is_kept: bool,
}

impl Sketches {
    fn of(&mut self, key: u64, words: impl FnOnce() -> Vec<u32>) -> Option<Sketch> {
        if !self.is_kept {
            return Sketch::of(&words());
        }
        let sketch = self.before.remove(&key).unwrap_or_else(|| Sketch::of(&words()));
        self.bytes += size_of::<(u64, Option<Sketch>)>() + sketch.as_ref().map_or(0, Sketch::bytes);
        self.known.insert(key, sketch.clone());
        sketch
    }
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

    /// No contents, for relearning: sketches are kept until [`forget_sketches`](Self::forget_sketches).
    pub(crate) fn for_relearning() -> Self {
        Self { sketches: Sketches { is_kept: true, ..Sketches::default() }, ..Self::default() }
    }

    /// Forgets all contents, but not the sketches of their texts; the memory is used again.
    pub(crate) fn begin_relearning(&mut self) {
        let Self { contents, numbers, whole, without_own, sketches } = self;
        contents.clear();
        numbers.clear();
        whole.clear();
        without_own.clear();
        sketches.before = std::mem::take(&mut sketches.known);
        sketches.bytes = 0;
    }

    /// Forgets the sketches of texts that are content no more.
    pub(crate) fn end_relearning(&mut self) {
        self.sketches.before = HashMap::new();
    }

    pub(crate) fn forget_sketches(&mut self) {
        self.sketches = Sketches::default();
    }

    /// Bytes that this would free.
    pub(crate) fn sketch_bytes(&self) -> usize {
        self.sketches.bytes
    }

    /// The texts of a page, with the sketches of those that are new; `None` if the page has no words.
    pub(crate) fn texts(&mut self, page: &PageContent<'_>) -> Option<Texts> {
        let Self { whole, without_own, sketches, .. } = self;
        let mut text = |key: u64, groups: &Groups, words: &dyn Fn() -> Vec<u32>| {
            let is_known = groups.by_key.contains_key(&PackedKey::from(key));
            ContentText { key, sketch: if is_known { None } else { sketches.of(key, words) } }
        };
        let key = ContentText::key(page.fold(), || page.words())?;
        let whole = text(key, whole, &|| page.words());
        let others = page.fold_without_own();
        let key = others.and_then(|fold| ContentText::key(fold, || page.words_without_own()));
        let without_own = key.map(|key| text(key, without_own, &|| page.words_without_own()));
        Some(Texts { whole, without_own })
    }

    /// Finds the content of a page, or makes a new one.
    pub(crate) fn add(&mut self, texts: Texts, page: u32) -> Found {
        let (whole, is_new) = self.whole.number(texts.whole);
        let other = texts.without_own.map(|text| self.without_own.number(text));
        let found =
            (!is_new).then_some(whole).or(other.filter(|(_, is_new)| !is_new).map(|(other, _)| other));
        let without_own = other.map_or(NONE, |(member, _)| member.group);
        let next = self.contents.len() as ContentId;
        let id = *self.numbers.entry((whole.group, without_own)).or_insert(next);
        if id == next {
            self.contents.push(Content { whole: whole.group, without_own, page, size: whole.size });
        }
        Found { content: id, is_new: found.is_none(), apart: found.map_or(0, |member| member.apart) }
    }
}

/// Texts in groups of equal ones.
#[derive(Clone, Debug, Default)]
struct Groups {
    count: u32,
    /// The groups by the hash of the words: 20 bytes per text.
    by_key: HashMap<PackedKey, Member>,
    leaders: Vec<Leader>,
    /// By band and its value, the leaders: 8 bytes per entry, of which most have one.
    by_band: [Multimap<u32>; BANDS],
    /// By each of its smallest hashes, the leaders: in place of bands once there are texts without them.
    by_hash: Option<Multimap<u32>>,
    /// The number of searches for similar leaders.
    searches: u32,
}

/// A text of a group.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: u32,
    /// The number of shingles in which it differs from the first one.
    apart: u32,
    /// The number of its shingles; 0 for a short one.
    size: u32,
}

/// The first text of a group, to which others can be similar.
#[derive(Clone, Debug)]
struct Leader {
    group: u32,
    hashes: Arc<[u32]>,
    all: u32,
    /// The number of the last search that came upon it.
    seen: u32,
}

/// No group.
const NONE: u32 = u32::MAX;

impl Groups {
    fn clear(&mut self) {
        let Self { count, by_key, leaders, by_band, by_hash, searches } = self;
        (*count, *by_hash, *searches) = (0, None, 0);
        by_key.clear();
        leaders.clear();
        by_band.iter_mut().for_each(Multimap::clear);
    }

    /// The group of a text, and whether it is new.
    ///
    /// Equal words are always in the same group. Of several similar groups the first counts, so that a text which lies between two of them
    /// does not belong to the newer one at one time and to the older one at another.
    fn number(&mut self, text: ContentText) -> (Member, bool) {
        if let Some(known) = self.by_key.get(&PackedKey::from(text.key)) {
            return (*known, false);
        }
        if text.sketch.as_ref().is_some_and(|sketch| sketch.bands.is_none()) && self.by_hash.is_none() {
            self.by_hash = Some(Multimap::default());
            (0..self.leaders.len()).for_each(|number| self.index_by_hash(number));
        }
        let similar = text.sketch.as_ref().and_then(|sketch| self.first_similar(sketch));
        let size = text.sketch.as_ref().map_or(0, |sketch| sketch.all);
        let (group, apart) = similar.unwrap_or_else(|| {
            let group = self.count;
            self.count += 1;
            if let Some(sketch) = text.sketch {
                self.add_leader(group, sketch);
            }
            (group, 0)
        });
        let member = Member { group, apart, size };
        self.by_key.insert(text.key.into(), member);
        (member, similar.is_none())
    }

    /// The first group with a leader similar to a text, and the number of shingles in which they differ.
    fn first_similar(&mut self, sketch: &Sketch) -> Option<(u32, u32)> {
        self.searches = self.searches.wrapping_add(1);
        let Self { leaders, searches, by_hash, by_band, .. } = self;
        let mut first: Option<(u32, u32)> = None;
        let mut compare = |leader: &mut Leader| {
            let is_known = std::mem::replace(&mut leader.seen, *searches) == *searches;
            let is_older = first.is_none_or(|(group, _)| leader.group < group);
            if is_older && !is_known && may_equal(leader.all, sketch.all) {
                let similarity = similarity((&leader.hashes, leader.all), (&sketch.hashes, sketch.all));
                if let Some(similarity) = similarity {
                    let apart = (1.0 - similarity) * f64::from(leader.all.max(sketch.all));
                    first = Some((leader.group, apart.ceil() as u32));
                }
            }
        };
        if let Some(by_hash) = by_hash {
            for hash in sketch.hashes.iter().take(LOOKED_UP) {
                by_hash.numbers(*hash).rev().for_each(|number| compare(&mut leaders[number as usize]));
            }
            return first;
        }
        for (value, leaders_of) in sketch.bands.iter().flatten().zip(by_band) {
            leaders_of.numbers(*value).rev().for_each(|number| compare(&mut leaders[number as usize]));
        }
        first
    }

    fn add_leader(&mut self, group: u32, sketch: Sketch) {
        let number = self.leaders.len() as u32;
        for (value, leaders_of) in sketch.bands.iter().flatten().zip(&mut self.by_band) {
            leaders_of.remember(*value, number, MAX_CANDIDATES);
        }
        let Sketch { hashes, all, .. } = sketch;
        self.leaders.push(Leader { group, hashes, all, seen: 0 });
        self.index_by_hash(number as usize);
    }

    fn index_by_hash(&mut self, number: usize) {
        if let Some(by_hash) = &mut self.by_hash {
            for hash in self.leaders[number].hashes.iter().take(LOOKED_UP) {
                by_hash.remember(*hash, number as u32, MAX_CANDIDATES);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: impl Iterator<Item = u32>) -> ContentText {
        let words: Vec<u32> = words.collect();
        let key = ContentText::key(Fold::of(&words), || words.clone()).expect("it has words");
        ContentText { key, sketch: Sketch::of(&words) }
    }

    /// The group, and the number of shingles in which the text differs from its first one; `None` if the group is new.
    fn number(groups: &mut Groups, text: ContentText) -> (u32, Option<u32>) {
        let (member, is_new) = groups.number(text);
        (member.group, (!is_new).then_some(member.apart))
    }

    /// 100 words of which some at the end are others.
    fn changed(words: u32) -> ContentText {
        text((0..100).map(move |word| if word < 100 - words { word } else { 1_000 * words + word }))
    }

    #[test]
    fn a_text_between_two_contents_keeps_the_content_that_it_had() {
        let mut groups = Groups::default();
        // Each of the two is similar to the text between them, but not to the other one.
        let (first, _) = number(&mut groups, text(0..100));
        let (second, apart) = number(&mut groups, text((700..704).chain(4..96).chain(504..508)));
        assert!(apart.is_none() && second != first);
        let between = || text((700..704).chain(4..100));
        assert_eq!(
            number(&mut groups, between()),
            (first, Some(8)),
            "of two similar ones the first one counts"
        );
        for words in 3..40 {
            number(&mut groups, changed(words));
            assert_eq!(
                number(&mut groups, between()),
                (first, Some(8)),
                "equal words are one content at any time"
            );
        }
    }

    #[test]
    fn a_short_text_equals_only_itself() {
        let mut groups = Groups::default();
        assert!(ContentText::key(Fold::default(), Vec::new).is_none(), "an empty page equals none");
        let (one, _) = number(&mut groups, text(0..10));
        assert_eq!(number(&mut groups, text(0..9)).1, None);
        assert_eq!(number(&mut groups, text((0..9).chain([99]))).1, None);
        assert_eq!(number(&mut groups, text(0..10)), (one, Some(0)));
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
