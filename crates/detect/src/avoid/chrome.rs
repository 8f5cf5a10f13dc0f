//! Chrome: the text of pages that is not their content, such as menus and footers.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::content::{ContentText, Texts};
use super::page::{PageText, TextBlock};

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

/// A page with fewer words beside its chrome, of so many in all, has no other content than its chrome: a list of filters that are the same
/// on every page, above a list that is always the same, too.
const MIN_CONTENT: u32 = 4;
const WHOLE_PAGE: u32 = 30;
/// A page is compared without the words that its URL has, too, if so many others remain: with fewer, the words of the URL are the content
/// (a search that found nothing, a page that is not there).
const MIN_WITHOUT_OWN: usize = 12;
/// The same, as the largest share of such words: one word in three.
const MAX_OWN: f64 = 0.34;

/// The blocks that are on pages of all kinds, and the positions whose text depends only on the identity of the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chrome {
    common: HashSet<(u32, u32)>,
    identity: HashSet<u32>,
}

/// A page from which chrome is learnt.
pub(crate) struct Sample<'a> {
    pub(crate) text: &'a PageText,
    pub(crate) signature: u64,
    /// The values of its free slots.
    pub(crate) values: Vec<(u32, u64)>,
}

impl Chrome {
    pub(crate) fn learn(samples: &[Sample<'_>]) -> Self {
        let common = common_blocks(samples);
        let identity = identity_positions(samples, &common);
        Self { common, identity }
    }

    /// The texts of a page without chrome.
    pub(crate) fn texts(&self, page: &PageText) -> Option<Texts> {
        let blocks = self.content(page);
        let words: Vec<u32> = blocks
            .iter()
            .flat_map(|block| &page.words[block.start as usize..][..block.words as usize])
            .copied()
            .collect();
        let (others, own) = page.without_own(&blocks);
        let is_compared =
            own > 0 && words.len() - own >= MIN_WITHOUT_OWN && own as f64 <= MAX_OWN * words.len() as f64;
        let without_own = is_compared.then(|| ContentText::of(&others)).flatten();
        Some(Texts { whole: ContentText::of(&words)?, without_own })
    }

    /// The blocks of a page that are not chrome.
    fn content(&self, page: &PageText) -> Vec<TextBlock> {
        let is_own = |block: &&TextBlock| !self.common.contains(&(block.position, block.text));
        let own: Vec<TextBlock> = page.blocks.iter().filter(is_own).copied().collect();
        let restored = self.restored(&own);
        let is_content = |block: &&TextBlock| {
            !self.identity.contains(&block.position) || restored.contains(&block.position)
        };
        let content: Vec<TextBlock> = own.iter().filter(is_content).copied().collect();
        let words = |blocks: &[TextBlock]| blocks.iter().map(|block| block.words).sum::<u32>();
        if words(&content) < MIN_CONTENT && words(&page.blocks) >= WHOLE_PAGE {
            return page.blocks.clone();
        }
        content
    }

    /// The positions of identity chrome that are content on this page, because little else would remain: chrome is what surrounds a content,
    /// so at least half of the words are content. The positions with most words come first: a headline stays chrome where a table does not.
    fn restored(&self, own: &[TextBlock]) -> SmallVec<[u32; 4]> {
        let mut restored = SmallVec::new();
        let (mut all, mut identity) = (0, 0);
        let mut positions: SmallVec<[(u32, u32); 8]> = SmallVec::new();
        for block in own {
            all += block.words;
            if self.identity.contains(&block.position) {
                identity += block.words;
                match positions.iter_mut().find(|(_, position)| *position == block.position) {
                    Some((words, _)) => *words += block.words,
                    None => positions.push((block.words, block.position)),
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

fn common_blocks(samples: &[Sample<'_>]) -> HashSet<(u32, u32)> {
    let mut pages: HashMap<u64, u32> = HashMap::new();
    for sample in samples {
        *pages.entry(sample.signature).or_default() += 1;
    }
    let weight = |pages: u32| f64::from(pages).sqrt();
    let all: f64 = pages.values().map(|pages| weight(*pages)).sum();
    let mut on: HashMap<(u64, u32, u32), u32> = HashMap::new();
    let mut of_page = HashSet::new();
    for sample in samples {
        of_page.clear();
        for block in &sample.text.blocks {
            if of_page.insert((block.position, block.text)) {
                *on.entry((sample.signature, block.position, block.text)).or_default() += 1;
            }
        }
    }
    let mut found: HashMap<(u32, u32), (usize, f64)> = HashMap::new();
    for ((signature, position, text), count) in on {
        let of = pages[&signature];
        if f64::from(count) >= COMMON_SHARE * f64::from(of) {
            let entry = found.entry((position, text)).or_default();
            entry.0 += 1;
            entry.1 += weight(of);
        }
    }
    let is_common = |(_, (signatures, weight)): &(_, (usize, f64))| {
        *signatures >= COMMON_SIGNATURES && *weight >= all / 2.0
    };
    found.into_iter().filter(is_common).map(|(block, _)| block).collect()
}

/// The text of each position of a page as hash and number of words, without common blocks.
fn positions(page: &PageText, common: &HashSet<(u32, u32)>) -> HashMap<u32, (u64, u32)> {
    let mut positions: HashMap<u32, (u64, u32)> = HashMap::new();
    for block in &page.blocks {
        if common.contains(&(block.position, block.text)) {
            continue;
        }
        let entry = positions.entry(block.position).or_default();
        entry.0 = super::shape::Mix(entry.0).with(u64::from(block.text)).0;
        entry.1 += block.words;
    }
    positions
}

fn identity_positions(samples: &[Sample<'_>], common: &HashSet<(u32, u32)>) -> HashSet<u32> {
    // By slot and value, the pages of different signatures.
    let mut by_value: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    let mut order = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        for value in &sample.values {
            let pages = by_value.entry(*value).or_insert_with(|| {
                order.push(*value);
                Vec::new()
            });
            if pages.len() < 2 * PAIRS_OF_VALUE
                && pages.iter().all(|other| samples[*other].signature != sample.signature)
            {
                pages.push(index);
            }
        }
    }
    let mut known: HashMap<usize, HashMap<u32, (u64, u32)>> = HashMap::new();
    let mut pairs_of: HashMap<u32, usize> = HashMap::new();
    // By slot and position, the number of pairs that compare it and the number that find it equal.
    let mut compared: HashMap<(u32, u32), (u32, u32)> = HashMap::new();
    for value in order {
        let pages = &by_value[&value];
        for (pairs, pair) in pages.chunks_exact(2).enumerate() {
            let of_slot = pairs_of.entry(value.0).or_default();
            if pairs == PAIRS_OF_VALUE || *of_slot == PAIRS_OF_SLOT {
                break;
            }
            *of_slot += 1;
            for index in pair {
                known.entry(*index).or_insert_with(|| positions(samples[*index].text, common));
            }
            compare(value.0, &known[&pair[0]], &known[&pair[1]], &mut compared);
        }
    }
    compared
        .into_iter()
        .filter(|(_, (all, equal))| *all >= MIN_PAIRS && f64::from(*equal) >= MIN_EQUAL * f64::from(*all))
        .map(|((_, position), _)| position)
        .collect()
}

fn compare(
    slot: u32,
    first: &HashMap<u32, (u64, u32)>,
    second: &HashMap<u32, (u64, u32)>,
    compared: &mut HashMap<(u32, u32), (u32, u32)>,
) {
    let (mut equal, mut different) = (0, 0);
    for (position, (text, words)) in first {
        match second.get(position) {
            Some((other, _)) if other == text => equal += words,
            Some((_, others)) => different += words.max(others),
            None => different += words,
        }
    }
    different +=
        second.iter().filter(|(at, _)| !first.contains_key(*at)).map(|(_, (_, words))| words).sum::<u32>();
    if f64::from(equal) > MAX_EQUAL * f64::from(different) {
        return;
    }
    for (position, (text, _)) in first {
        if let Some((other, _)) = second.get(position) {
            let entry = compared.entry((slot, *position)).or_default();
            entry.0 += 1;
            entry.1 += u32::from(other == text);
        }
    }
}
