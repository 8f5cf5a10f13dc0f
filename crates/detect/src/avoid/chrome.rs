//! Chrome: the text of pages that is not their content, such as menus and footers.

use std::borrow::Cow;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::changing::NearPairs;
use super::fold::Fold;
use super::page::{PageText, TextBlock};
use super::shape::Mix;
use super::sketch::SIMILAR;

/// A common block is on this share of the pages of a signature,
const COMMON_SHARE: f64 = 0.5;
/// of at least this many signatures, which make up half of all by weight.
const COMMON_SIGNATURES: usize = 3;

/// The most pairs of pages with a common value that are compared, per value and per slot.
const PAIRS_OF_VALUE: usize = 4;
const PAIRS_OF_SLOT: usize = 600;
/// If the equal words of a pair are more than this share of its different ones, the pages are duplicates themselves, and the pair is
/// ignored.
const MAX_EQUAL: f64 = 0.6;
/// A position is identity chrome if at least this many pairs compare it, and this share of them finds it equal.
const MIN_PAIRS: u32 = 5;
const MIN_EQUAL: f64 = 0.85;
/// It surrounds most views of an identity: of the pairs with it, at least this share has it on both pages. What one view only has, such as the
/// author of a change, is a part of what that view shows.
const MIN_BOTH: f64 = 0.5;

/// A page with fewer words beside its chrome, of so many in all, has no other content than its chrome: a list of filters that are the same
/// on every page, above a list that is always the same, too.
const MIN_CONTENT: u32 = 4;
const WHOLE_PAGE: usize = 30;
/// A page is compared without the words that its URL has, too, if so many others remain: with fewer, the words of the URL are the content
/// (a search that found nothing, a page that is not there).
const MIN_WITHOUT_OWN: u32 = 12;
/// The same, as the largest share of such words: as many as equal pages may differ in. On a page with more of them they are content: a table of
/// facts about something that does not exist has little else.
const MAX_OWN: f64 = 1.0 - SIMILAR;

/// The blocks that are on pages of all kinds, and the positions whose text depends only on the identity of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chrome {
    common: HashSet<(u32, u32)>,
    sentences: Sentences,
    identity: HashSet<u32>,
    /// The positions whose text changes from visit to visit.
    pub(crate) changing: HashSet<u32>,
}

/// The common sentences with numbers, by position. `Changed on 7 May by page_3` is the same sentence as `Changed on 9 May by alice`, although
/// only the first one has nothing but numbers in the places that differ.
type Sentences = HashMap<u32, SmallVec<[Sentence; 1]>>;

/// The words of a sentence; `None` in the places where its numbers are.
type Sentence = Box<[Option<u32>]>;

/// Whether a block says the same as a common sentence at its position, with any words in the places of the numbers.
fn is_sentence(sentences: &Sentences, page: &PageText, block: &TextBlock) -> bool {
    let is_same = |sentence: &Sentence| {
        let words = page.words_of_block(block);
        let mut pairs = sentence.iter().zip(words);
        sentence.len() == words.len() && pairs.all(|(place, word)| place.is_none_or(|place| place == *word))
    };
    !sentences.is_empty() && sentences.get(&block.position).is_some_and(|known| known.iter().any(is_same))
}

/// The number of a block of a site: of its position and its text.
type BlockNumber = u32;

/// Numbers the blocks of the pages of a site, so that chrome is learnt from arrays.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockNumbers {
    numbers: HashMap<(u32, u32), BlockNumber>,
    /// By the number, how many pages have the block.
    pages: Vec<u32>,
}

/// The blocks of a page as numbers.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    blocks: Box<[BlockNumber]>,
    /// The indexes of the blocks, sorted by position.
    by_position: Box<[u16]>,
}

impl BlockNumbers {
    /// Numbers the blocks of a page that was not seen before.
    pub(crate) fn outline(&mut self, page: &PageText) -> Outline {
        let mut new: SmallVec<[BlockNumber; 64]> = SmallVec::new();
        let blocks = page.blocks.iter().map(|block| {
            let next = self.pages.len() as BlockNumber;
            let number = *self.numbers.entry((block.position, block.text)).or_insert(next);
            if number == next {
                self.pages.push(0);
            }
            new.push(number);
            number
        });
        let blocks = blocks.collect();
        new.sort_unstable();
        new.dedup();
        new.iter().for_each(|number| self.pages[*number as usize] += 1);
        let mut by_position: Box<[u16]> = (0..page.blocks.len() as u16).collect();
        by_position.sort_by_key(|index| page.blocks[usize::from(*index)].position);
        Outline { blocks, by_position }
    }
}

/// A page from which chrome is learnt.
pub(crate) struct Sample<'a> {
    pub(crate) text: &'a PageText,
    pub(crate) outline: &'a Outline,
    pub(crate) signature: u64,
    /// The values of its free slots.
    pub(crate) values: SmallVec<[(u32, u64); 4]>,
}

impl Chrome {
    /// Also returns by the number of each block whether it is common, and the pages that are nearly equal.
    pub(crate) fn learn(samples: &[Sample<'_>], numbers: &BlockNumbers) -> (Self, Vec<bool>, NearPairs) {
        let mut is_common = common_blocks(samples, &numbers.pages);
        let sentences = common_sentences(samples, &is_common);
        for sample in samples.iter().filter(|_| !sentences.is_empty()) {
            for (block, number) in sample.text.blocks.iter().zip(&sample.outline.blocks) {
                let is_common = &mut is_common[*number as usize];
                *is_common = *is_common || is_sentence(&sentences, sample.text, block);
            }
        }
        let (identity, near) = identity_positions(samples, &is_common);
        let common = numbers.numbers.iter().filter(|(_, number)| is_common[**number as usize]);
        let common = common.map(|(block, _)| *block).collect();
        (Self { common, sentences, identity, changing: HashSet::new() }, is_common, near)
    }

    /// Whether the text at a position is chrome whatever it says, if enough other text remains.
    fn is_beside(&self, position: u32) -> bool {
        self.identity.contains(&position) || self.changing.contains(&position)
    }

    /// What remains of a page without chrome.
    pub(crate) fn content<'a>(&self, page: &'a PageText) -> PageContent<'a> {
        self.content_without(page, |_, block| {
            self.common.contains(&(block.position, block.text)) || is_sentence(&self.sentences, page, block)
        })
    }

    /// The same for a page from which chrome was learnt.
    pub(crate) fn content_of_outline<'a>(
        &self,
        page: &'a PageText,
        outline: &Outline,
        is_common: &[bool],
    ) -> PageContent<'a> {
        self.content_without(page, |index, _| is_common[outline.blocks[index] as usize])
    }

    fn content_without<'a>(
        &self,
        page: &'a PageText,
        is_common: impl Fn(usize, &TextBlock) -> bool,
    ) -> PageContent<'a> {
        let mut blocks = Blocks::with_capacity(page.blocks.len());
        let all = page.blocks.iter().enumerate();
        blocks
            .extend(all.filter(|(index, block)| !is_common(*index, block)).map(|(number, _)| number as u32));
        if !(self.identity.is_empty() && self.changing.is_empty()) {
            let restored = self.restored(page, &blocks);
            let is_content = |position: u32| !self.is_beside(position) || restored.contains(&position);
            blocks.retain(|number| is_content(page.blocks[*number as usize].position));
        }
        let words: u32 = blocks.iter().map(|block| page.blocks[*block as usize].words()).sum();
        if words < MIN_CONTENT && page.words.len() >= WHOLE_PAGE {
            blocks = (0..page.blocks.len() as u32).collect();
        }
        PageContent { page, blocks }
    }

    /// The positions of chrome that are content on this page, because little else would remain: chrome is what surrounds a content,
    /// so at least half of the words are content. The positions with most words come first: a headline stays chrome where a table does not.
    fn restored(&self, page: &PageText, own: &[u32]) -> SmallVec<[u32; 4]> {
        let mut restored = SmallVec::new();
        let (mut all, mut identity) = (0, 0);
        let mut positions: SmallVec<[(u32, u32); 8]> = SmallVec::new();
        for block in own.iter().map(|number| &page.blocks[*number as usize]) {
            all += block.words();
            if self.is_beside(block.position) {
                identity += block.words();
                match positions.iter_mut().find(|(_, position)| *position == block.position) {
                    Some((words, _)) => *words += block.words(),
                    None => positions.push((block.words(), block.position)),
                }
            }
        }
        positions.sort_unstable_by(|a, b| b.cmp(a));
        for (words, position) in positions {
            if 2 * identity <= all {
                break;
            }
            identity -= words;
            restored.push(position);
        }
        restored
    }
}

type Blocks = SmallVec<[u32; 64]>;

/// The blocks of a page that are not chrome.
#[derive(Debug)]
pub(crate) struct PageContent<'a> {
    page: &'a PageText,
    /// Their numbers.
    blocks: Blocks,
}

impl PageContent<'_> {
    pub(crate) fn fold(&self) -> Fold {
        let mut fold = Fold::default();
        self.blocks.iter().for_each(|block| fold.append(self.page.blocks[*block as usize].fold));
        fold
    }

    pub(crate) fn words(&self) -> Cow<'_, [u32]> {
        self.page.words_of(&self.blocks)
    }

    /// The words without those that the page's URL has, too; `None` if there are none, or if little else would remain.
    pub(crate) fn fold_without_own(&self) -> Option<Fold> {
        let mut others = self.page.without_own.iter().peekable();
        others.peek()?;
        let (mut fold, mut words, mut own) = (Fold::default(), 0, 0);
        for number in &self.blocks {
            let block = &self.page.blocks[*number as usize];
            words += block.words();
            while others.next_if(|other| other.block < *number).is_some() {}
            match others.next_if(|other| other.block == *number) {
                Some(other) => {
                    own += other.replaced;
                    fold.append(other.fold);
                }
                None => fold.append(block.fold),
            }
        }
        let is_compared =
            own > 0 && words - own >= MIN_WITHOUT_OWN && f64::from(own) <= MAX_OWN * f64::from(words);
        is_compared.then_some(fold)
    }

    pub(crate) fn words_without_own(&self) -> Vec<u32> {
        self.page.words_without_own(&self.blocks)
    }
}

/// By the number of a block, whether it is on pages of all kinds. `pages` says on how many pages it is.
fn common_blocks(samples: &[Sample<'_>], pages: &[u32]) -> Vec<bool> {
    let mut by_signature: Vec<&Sample<'_>> = samples.iter().collect();
    by_signature.sort_by_key(|sample| sample.signature);
    let weight = |pages: usize| (pages as f64).sqrt();
    // By number: the page that had it last, and on how many pages of the signature it is.
    let mut on: Vec<(u32, u32)> = vec![(0, 0); pages.len()];
    let mut found: Vec<(u32, f64)> = vec![(0, 0.0); pages.len()];
    let (mut all, mut page) = (0.0, 0);
    let mut touched: Vec<BlockNumber> = Vec::new();
    for group in by_signature.chunk_by(|one, other| one.signature == other.signature) {
        all += weight(group.len());
        for sample in group {
            page += 1;
            for number in &sample.outline.blocks {
                if (pages[*number as usize] as usize) < COMMON_SIGNATURES {
                    continue;
                }
                let (last, count) = &mut on[*number as usize];
                if *last != page {
                    *last = page;
                    *count += 1;
                    if *count == 1 {
                        touched.push(*number);
                    }
                }
            }
        }
        for number in touched.drain(..) {
            let count = std::mem::take(&mut on[number as usize].1);
            if f64::from(count) >= COMMON_SHARE * group.len() as f64 {
                let (signatures, sum) = &mut found[number as usize];
                *signatures += 1;
                *sum += weight(group.len());
            }
        }
    }
    let is_common =
        |(signatures, weight): &(u32, f64)| *signatures as usize >= COMMON_SIGNATURES && *weight >= all / 2.0;
    found.iter().map(is_common).collect()
}

/// The common blocks with numbers that differ from page to page.
fn common_sentences(samples: &[Sample<'_>], is_common: &[bool]) -> Sentences {
    // By number, the first block with it.
    let mut first: Vec<Option<(&PageText, &TextBlock)>> = vec![None; is_common.len()];
    let mut sentences: HashMap<BlockNumber, (u32, Sentence)> = HashMap::new();
    for sample in samples {
        for (block, number) in sample.text.blocks.iter().zip(&sample.outline.blocks) {
            if !is_common[*number as usize] {
                continue;
            }
            let (page, known) = *first[*number as usize].get_or_insert((sample.text, block));
            if known.fold == block.fold || known.words() != block.words() {
                continue;
            }
            let words = || page.words_of_block(known).iter().map(|word| Some(*word)).collect();
            let (_, sentence) = sentences.entry(*number).or_insert_with(|| (block.position, words()));
            for (place, word) in sentence.iter_mut().zip(sample.text.words_of_block(block)) {
                *place = place.filter(|known| known == word);
            }
        }
    }
    let mut by_position = Sentences::new();
    for (position, sentence) in sentences.into_values() {
        by_position.entry(position).or_default().push(sentence);
    }
    by_position.values_mut().for_each(|sentences| sentences.sort_unstable());
    by_position
}

/// The text at a position of a page, without common blocks.
#[derive(Clone, Copy, Debug)]
struct Passage {
    position: u32,
    text: Mix,
    words: u32,
}

/// The texts of a page by position, in the order of positions.
fn passages(sample: &Sample<'_>, is_common: &[bool]) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    for index in sample.outline.by_position.iter().map(|index| usize::from(*index)) {
        if is_common[sample.outline.blocks[index] as usize] {
            continue;
        }
        let block = &sample.text.blocks[index];
        let text = u64::from(block.text);
        match passages.last_mut().filter(|last| last.position == block.position) {
            Some(last) => {
                last.text = last.text.with(text);
                last.words += block.words();
            }
            None => {
                let text = Mix(0).with(text);
                passages.push(Passage { position: block.position, text, words: block.words() });
            }
        }
    }
    passages
}

fn identity_positions(samples: &[Sample<'_>], is_common: &[bool]) -> (HashSet<u32>, NearPairs) {
    // By slot and value, the pages of different signatures, in the order in which the values came.
    let mut numbers: HashMap<(u32, u64), usize> = HashMap::new();
    let mut by_value: Vec<(u32, SmallVec<[u32; 2 * PAIRS_OF_VALUE]>)> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        for value in &sample.values {
            let number = *numbers.entry(*value).or_insert(by_value.len());
            if number == by_value.len() {
                by_value.push((value.0, SmallVec::new()));
            }
            let pages = &mut by_value[number].1;
            let is_other = |page: &u32| samples[*page as usize].signature != sample.signature;
            if pages.len() < 2 * PAIRS_OF_VALUE && pages.iter().all(is_other) {
                pages.push(index as u32);
            }
        }
    }
    let mut known: Vec<Option<Vec<Passage>>> = vec![None; samples.len()];
    let mut pairs_of: HashMap<u32, usize> = HashMap::new();
    let mut compared: HashMap<(u32, u32), Compared> = HashMap::new();
    let mut near = NearPairs::default();
    for (slot, pages) in &by_value {
        for (pairs, pair) in pages.chunks_exact(2).enumerate() {
            let of_slot = pairs_of.entry(*slot).or_default();
            if pairs == PAIRS_OF_VALUE || *of_slot == PAIRS_OF_SLOT {
                break;
            }
            *of_slot += 1;
            for index in pair.iter().map(|index| *index as usize) {
                known[index].get_or_insert_with(|| passages(&samples[index], is_common));
            }
            if let [Some(first), Some(second)] = [&known[pair[0] as usize], &known[pair[1] as usize]] {
                let (positions, equality) = compare(first, second);
                match equality {
                    Equality::All => near.add_equal(),
                    Equality::Most => {
                        let differ = positions.iter().filter(|(_, is_equal)| *is_equal != Some(true));
                        near.add(pair[0] as usize, differ.map(|(position, _)| *position));
                    }
                    Equality::Little => add_to(&mut compared, *slot, &positions),
                }
            }
        }
    }
    let identity = compared.into_iter().filter(|(_, compared)| compared.is_identity());
    (identity.map(|((_, position), _)| position).collect(), near)
}

/// The pairs of pages with a position, by slot.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    /// Those that have it on both pages, and those of them that have the same text there.
    both: u32,
    equal: u32,
    /// Those that have it on one page only.
    one: u32,
}

impl Compared {
    fn is_identity(self) -> bool {
        let share = |part: u32, of: u32| f64::from(part) / f64::from(of);
        self.both >= MIN_PAIRS
            && share(self.equal, self.both) >= MIN_EQUAL
            && share(self.both, self.both + self.one) >= MIN_BOTH
    }
}

/// The positions of two pages, whether they have the same text there (`None` if only one page has it), and how much of them is the same.
fn compare(first: &[Passage], second: &[Passage]) -> (Positions, Equality) {
    let (mut equal, mut different) = (0, 0);
    let mut positions = Positions::new();
    let mut others = second.iter().peekable();
    for passage in first {
        while let Some(other) = others.next_if(|other| other.position < passage.position) {
            different += other.words;
            positions.push((other.position, None));
        }
        match others.next_if(|other| other.position == passage.position) {
            Some(other) => {
                let is_equal = other.text == passage.text;
                positions.push((passage.position, Some(is_equal)));
                match is_equal {
                    true => equal += passage.words,
                    false => different += passage.words.max(other.words),
                }
            }
            None => {
                different += passage.words;
                positions.push((passage.position, None));
            }
        }
    }
    for other in others {
        different += other.words;
        positions.push((other.position, None));
    }
    let (equal, different) = (f64::from(equal), f64::from(different));
    let equality = match () {
        () if different <= (1.0 - SIMILAR) * (equal + different) => Equality::All,
        () if equal > MAX_EQUAL * different => Equality::Most,
        () => Equality::Little,
    };
    (positions, equality)
}

fn add_to(compared: &mut HashMap<(u32, u32), Compared>, slot: u32, positions: &[(u32, Option<bool>)]) {
    for (position, is_equal) in positions {
        let entry = compared.entry((slot, *position)).or_default();
        match is_equal {
            Some(is_equal) => {
                entry.both += 1;
                entry.equal += u32::from(*is_equal);
            }
            None => entry.one += 1,
        }
    }
}

/// How much of two pages is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Equality {
    Little,
    /// They may be duplicates but for some places.
    Most,
    /// They are duplicates.
    All,
}

type Positions = SmallVec<[(u32, Option<bool>); 64]>;
