//! Groups pages by content: two pages have the same content if their words are the same, or at least nine tenths of their 4-word shingles.

use std::borrow::Cow;
use std::num::NonZeroU32;

use hashbrown::HashMap;

use super::chrome::PageContent;
use super::fold::Fold;
use super::multimap::Multimap;
use super::packed_key::PackedKey;
use super::shape::Mix;
use super::sketch::{BANDS, KeptHashes, MIN_WORDS, Sketch};

/// The number of smallest hashes by which candidates are found once texts without bands are known.
const LOOKED_UP: usize = 16;
/// The most candidates of a band that are examined.
const MAX_CANDIDATES: usize = 256;

/// The number of a content within its site.
pub(crate) type ContentId = u32;

/// A content, or none, in four bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedContent(Option<NonZeroU32>);

impl PackedContent {
    pub(crate) fn get(self) -> Option<ContentId> {
        self.0.map(|number| number.get() - 1)
    }
}

impl From<Option<ContentId>> for PackedContent {
    fn from(content: Option<ContentId>) -> Self {
        // No content has the highest number: there are at most as many as pages, a million.
        Self(content.and_then(|content| NonZeroU32::new(content.wrapping_add(1))))
    }
}

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
    fn key<'a>(fold: Fold, words: impl FnOnce() -> Cow<'a, [u32]>) -> Option<u64> {
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
        let hashes = sketch.hashes().iter().fold(Mix::new(8), |hash, value| hash.with(u64::from(*value)));
        Self { key: hashes.with(u64::from(sketch.all())).0, sketch: Some(sketch) }
    }
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
    fn of<'a>(&mut self, key: u64, words: impl FnOnce() -> Cow<'a, [u32]>) -> Option<Sketch> {
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
    pub(crate) fn texts<'a>(&mut self, page: &'a PageContent<'_>) -> Option<Texts> {
        let Self { whole, without_own, sketches, .. } = self;
        let mut text = |key: u64, groups: &Groups, words: &dyn Fn() -> Cow<'a, [u32]>| {
            let is_known = groups.by_key.contains_key(&PackedKey::from(key));
            ContentText { key, sketch: if is_known { None } else { sketches.of(key, words) } }
        };
        let key = ContentText::key(page.fold(), || page.words())?;
        let whole = text(key, whole, &|| page.words());
        let others = page.fold_without_own();
        let words = || Cow::Owned(page.words_without_own());
        let key = others.and_then(|fold| ContentText::key(fold, words));
        let without_own = key.map(|key| text(key, without_own, &words));
        Some(Texts { whole, without_own })
    }

    /// Finds the content of a page, or makes a new one.
    pub(crate) fn add(&mut self, texts: Texts, page: u32) -> Found {
        // Texts of older journals without bands come after all texts of the log, and are compared with these by exact hashes.
        let is_exact = self.sketches.is_kept;
        let (whole, is_new) = self.whole.number(texts.whole, is_exact);
        let other = texts.without_own.map(|text| self.without_own.number(text, is_exact));
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
    hashes: KeptHashes,
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

    /// The group of a text, and whether it is new; the hashes of a new text are kept exactly or rounded.
    ///
    /// Equal words are always in the same group. Of several similar groups the first counts, so that a text which lies between two of them
    /// does not belong to the newer one at one time and to the older one at another.
    fn number(&mut self, text: ContentText, is_exact: bool) -> (Member, bool) {
        if let Some(known) = self.by_key.get(&PackedKey::from(text.key)) {
            return (*known, false);
        }
        if text.sketch.as_ref().is_some_and(|sketch| sketch.bands().is_none()) && self.by_hash.is_none() {
            let mut by_hash = Multimap::default();
            for (number, leader) in (0..).zip(&self.leaders) {
                index_by_hash(&mut by_hash, number, leader.hashes.exact());
            }
            self.by_hash = Some(by_hash);
        }
        let similar = text.sketch.as_ref().and_then(|sketch| self.first_similar(sketch));
        let size = text.sketch.as_ref().map_or(0, Sketch::all);
        let (group, apart) = similar.unwrap_or_else(|| {
            let group = self.count;
            self.count += 1;
            if let Some(sketch) = text.sketch {
                self.add_leader(group, sketch, is_exact);
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
            if is_older
                && !is_known
                && let Some(similarity) = sketch.similarity(&leader.hashes, leader.all)
            {
                let apart = (1.0 - similarity) * f64::from(leader.all.max(sketch.all()));
                first = Some((leader.group, apart.ceil() as u32));
            }
        };
        if let Some(by_hash) = by_hash {
            for hash in sketch.hashes().iter().take(LOOKED_UP) {
                by_hash.numbers(*hash).rev().for_each(|number| compare(&mut leaders[number as usize]));
            }
            return first;
        }
        for (value, leaders_of) in sketch.bands().into_iter().flatten().zip(by_band) {
            leaders_of.numbers(*value).rev().for_each(|number| compare(&mut leaders[number as usize]));
        }
        first
    }

    fn add_leader(&mut self, group: u32, sketch: Sketch, is_exact: bool) {
        let number = self.leaders.len() as u32;
        for (value, leaders_of) in sketch.bands().into_iter().flatten().zip(&mut self.by_band) {
            leaders_of.remember(*value, number, MAX_CANDIDATES);
        }
        if let Some(by_hash) = &mut self.by_hash {
            index_by_hash(by_hash, number, sketch.hashes());
        }
        let all = sketch.all();
        self.leaders.push(Leader { group, hashes: sketch.kept(is_exact), all, seen: 0 });
    }
}

fn index_by_hash(by_hash: &mut Multimap<u32>, number: u32, hashes: &[u32]) {
    for hash in hashes.iter().take(LOOKED_UP) {
        by_hash.remember(*hash, number, MAX_CANDIDATES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: impl Iterator<Item = u32>) -> ContentText {
        let words: Vec<u32> = words.collect();
        let key = ContentText::key(Fold::of(&words), || Cow::Borrowed(&words)).expect("it has words");
        ContentText { key, sketch: Sketch::of(&words) }
    }

    /// The group, and the number of shingles in which the text differs from its first one; `None` if the group is new.
    fn number(groups: &mut Groups, text: ContentText) -> (u32, Option<u32>) {
        let (member, is_new) = groups.number(text, false);
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
    fn a_text_without_bands_is_found_by_exact_hashes_of_the_log() {
        let page = |whole: ContentText| Texts { whole, without_own: None };
        let without_bands = || {
            let sketch = text((0..990).chain(2_000..2_010)).sketch.expect("a long text");
            let sketch = Sketch::from_parts(sketch.hashes().to_vec(), &sketch.numbers(), false);
            ContentText::of_sketch(sketch.expect("its own parts"))
        };
        let mut contents = Contents::for_relearning();
        let of_log = contents.add(page(text(0..1_000)), 0).content;
        contents.forget_sketches();
        assert_eq!(contents.add(page(without_bands()), 1).content, of_log);
        assert_eq!(contents.add(page(text((0..980).chain(3_000..3_020))), 2).content, of_log);
    }

    #[test]
    fn a_short_text_equals_only_itself() {
        let mut groups = Groups::default();
        assert!(ContentText::key(Fold::default(), Cow::default).is_none(), "an empty page equals none");
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
}
