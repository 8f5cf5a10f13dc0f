//! Places of pages whose text changes from visit to visit: the pages that were visited last, a quotation, the time.
//!
//! Where the text of such a place is different on each page, no two pages have the same content. The place of a title is like that, too. They are told apart
//! by fetching some pages again, which is done only where pages differ in few places.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::fold::Fold;
use super::page::PageText;

/// So many pages of a site are fetched again, if the first of them changed.
const PAGES: usize = 3;
/// The text of a place changes if so many of these pages have another one there.
const CHANGED: u32 = 2;
/// Pages are fetched again once so many pairs of them differ in few places.
const MIN_PAIRS: u32 = 8;
/// A place is suspected if this share of those pairs differ there: not all, because other pages are nearly equal for other reasons, and two visits may be
/// alike by chance.
const SUSPECTED: f64 = 0.5;
/// Requests for pages may fail. No more than so many are made.
const MAX_REQUESTS: usize = 6;

/// Pairs of pages that are the same but for some places.
#[derive(Clone, Debug, Default)]
pub(crate) struct NearPairs {
    count: u32,
    /// The number of pairs that are the same.
    equal: u32,
    /// By position, the number of pairs that differ there.
    differ: HashMap<u32, u32>,
    /// The indexes of one page of each of the first pairs.
    pages: SmallVec<[usize; MAX_REQUESTS]>,
}

impl NearPairs {
    /// Adds a pair that is the same.
    pub(crate) fn add_equal(&mut self) {
        self.equal += 1;
    }

    /// Adds a pair with the index of one of its pages, and the positions in which they differ.
    pub(crate) fn add(&mut self, page: usize, positions: impl Iterator<Item = u32>) {
        self.count += 1;
        positions.for_each(|position| *self.differ.entry(position).or_default() += 1);
        if self.pages.len() < MAX_REQUESTS && !self.pages.contains(&page) {
            self.pages.push(page);
        }
    }
}

/// What is known of the places of a site whose text changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changing {
    /// The positions in which at least half of the pairs of nearly equal pages differ.
    suspected: HashSet<u32>,
    /// The numbers of pages that are to be fetched again.
    wanted: SmallVec<[u32; PAGES]>,
    /// The numbers of pages that were asked for.
    asked: SmallVec<[u32; MAX_REQUESTS]>,
    /// Whether a page was asked for and has not come yet.
    is_waiting: bool,
    /// The number of pages that were fetched again, and by position how many of them have another text now.
    compared: u32,
    changed: HashMap<u32, u32>,
    /// The positions whose text changes.
    pub(crate) positions: HashSet<u32>,
}

impl Changing {
    /// Suspects the places in which nearly equal pages differ. `number` is that of the page with an index; `None` if its URL is not known.
    pub(crate) fn suspect(&mut self, near: &NearPairs, number: impl Fn(usize) -> Option<u32>) {
        self.suspected.clear();
        self.wanted.clear();
        // If it did not come by now, it is not waited for.
        self.is_waiting = false;
        if near.count < MIN_PAIRS || near.count < near.equal {
            return;
        }
        let is_suspected = |differ: u32| f64::from(differ) >= SUSPECTED * f64::from(near.count);
        let suspected = near.differ.iter().filter(|(_, differ)| is_suspected(**differ));
        self.suspected = suspected.map(|(position, _)| *position).collect();
        let missing = PAGES.saturating_sub(self.compared as usize);
        if !self.suspected.is_empty() {
            // The pages that were fetched first are asked for first: most visits were between.
            let pages = near.pages.iter().filter_map(|page| number(*page));
            self.wanted = pages.filter(|page| !self.asked.contains(page)).take(missing).collect();
            self.wanted.reverse();
        }
    }

    /// The number of a page that is to be fetched again, one after the other. If nothing changed on the first one, it is the last.
    pub(crate) fn next(&mut self) -> Option<u32> {
        let is_constant =
            self.compared > 0 && !self.changed.keys().any(|place| self.suspected.contains(place));
        if self.is_waiting || is_constant || self.asked.len() == MAX_REQUESTS {
            return None;
        }
        let next = self.wanted.pop()?;
        self.asked.push(next);
        self.is_waiting = true;
        Some(next)
    }

    /// Compares the texts of two visits to a page; returns whether more places are known to change. A page of which half is another one now tells nothing.
    pub(crate) fn compare(&mut self, first: &PageText, second: &PageText) -> bool {
        self.is_waiting = false;
        let (first, second) = (by_position(first), by_position(second));
        let only = |one: &HashMap<u32, Fold>, other: &HashMap<u32, Fold>| -> Vec<(u32, Fold)> {
            let one = one.iter().filter(|(position, text)| other.get(*position) != Some(text));
            one.map(|(position, text)| (*position, *text)).collect()
        };
        let words = |texts: &[(u32, Fold)]| texts.iter().map(|(_, text)| text.words).sum::<u32>();
        let (gone, new) = (only(&first, &second), only(&second, &first));
        let all: u32 = first.values().map(|text| text.words).sum();
        if 2 * words(&gone).max(words(&new)) > all {
            return false;
        }
        self.compared += 1;
        let changed: HashSet<u32> = gone.iter().chain(&new).map(|(position, _)| *position).collect();
        let known = self.positions.len();
        for position in changed {
            let pages = self.changed.entry(position).or_default();
            *pages += 1;
            if *pages >= CHANGED && self.suspected.contains(&position) {
                self.positions.insert(position);
            }
        }
        self.positions.len() > known
    }
}

/// The text of a page at each position.
fn by_position(page: &PageText) -> HashMap<u32, Fold> {
    let mut texts: HashMap<u32, Fold> = HashMap::new();
    for block in &page.blocks {
        texts.entry(block.position).or_default().append(block.fold);
    }
    texts
}
