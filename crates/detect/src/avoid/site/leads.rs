//! What copies lead to: the pages that are reached from them only.
//!
//! The text of a skipped page is known, but its links are not. The copies that were fetched are a sample of them: of those that tested a row,
//! the share which alone led to a page with new content is what the next one by this row leads to.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::avoid::packed_key::PackedKey;

/// The most URLs of which it is remembered which page links to them.
const MAX_FOUND: usize = 1_000_000;
/// Pages that are farther from the start are as far as this.
const FARTHEST: u64 = 63;
/// A rank has the number of links from the start in its highest bits, and then the places of the links on the way, a byte each.
const DEPTH_SHIFT: u32 = 58;
/// Places of links up to this one are told apart; of later ones, which are on long lists, neighbours have one place in ranks.
const EXACT_PLACES: u32 = 32;
/// The most copies of a row that are remembered.
const NEAREST_COPIES: usize = 16;
/// The most rows that are remembered for a page, with that of its kind.
const ROWS_OF_PAGE: usize = 9;
/// The number of pages before a page, and of those after it, that tell whether the crawl follows the links there.
const NEIGHBOURS: usize = 8;
/// The weight of the assumption that links are followed, as a number of pages on which all are.
const PRIOR_FOLLOWED: f32 = 0.5;
/// The most pages that are ordered by rank: of a site of up to twice as many every second one, and so on.
const MAX_ORDERED: usize = 65_536;
/// Pages are ordered anew once there are a thirty-second more of them.
const REORDER: usize = 32;
/// What is known of a kind of pages counts as so many copies by each of their rows: as what a more general row says counts in a finer one.
const COPIES_OF_KIND: f64 = 1.0;

/// The links between pages, as far as they say which copies were worth their download.
#[derive(Clone, Debug, Default)]
pub(super) struct Leads {
    /// By the hash of a URL, the pages that link to it.
    found: HashMap<PackedKey, Found>,
    /// By the number of a page.
    pages: Vec<LinkingPage>,
    /// By the number of a page, the number of pages with new content to which no other page links.
    only_from: HashMap<u32, u32>,
    /// By the number of a page, the numbers of the rows by which it was a copy.
    rows_of: HashMap<u32, SmallVec<[u32; 4]>>,
    number_of_row: HashMap<u64, u32>,
    /// By the number of a row, the number of copies that tested it, and of those that led to new content.
    rows: Vec<(u32, u32)>,
    /// By row, some copies that tested it: those that come first in a breadth-first crawl.
    nearest: HashMap<u64, SmallVec<[u32; 4]>>,
    /// Pages in the order of a breadth-first crawl: their ranks and the shares of their links that are followed.
    ordered: Vec<(u64, f32)>,
    /// The number of pages when they were ordered.
    ordered_at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct LinkingPage {
    /// The hash of its URL.
    url: u64,
    /// The number of its links so far that led to new URLs, or were nearer to the start than earlier links to the same URL.
    links: u32,
    /// The number of URLs that were found on it first.
    followed: u16,
    /// The number of URLs that the crawl does not fetch and that no page before it linked to.
    refused: u16,
}

/// What is known of a URL that was found. There is one for each, so it is small.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The page that comes first in a breadth-first crawl of those that link to it.
    nearest: u32,
    /// The place of the link there, as in ranks.
    place: u8,
    /// Whether no other page links to it.
    is_only: bool,
    /// Whether it was learnt and had new content.
    is_new: bool,
    /// The rank that it had by the nearest page when that was found.
    rank: PackedKey,
}

impl Leads {
    /// Records that a page links to a URL, which is remembered from now on.
    pub(super) fn find(&mut self, url: u64, page: u32) {
        if self.found.contains_key(&PackedKey::from(url)) {
            self.link(url, page);
        } else if self.found.len() < MAX_FOUND {
            let (place, rank) = self.next_link(page);
            let found = Found { nearest: page, place, is_only: true, is_new: false, rank: rank.into() };
            self.found.insert(url.into(), found);
            self.count_link(page);
            if let Some(page) = self.pages.get_mut(page as usize) {
                page.followed = page.followed.saturating_add(1);
            }
        }
    }

    /// Records that the URL with this hash has the content that was new on this page, or is skipped because it would have it; returns whether that changes
    /// anything. If different pages link to the two, the content is not lost with one of them: a copy that alone links to one has led to nothing.
    pub(super) fn has_content_of(&mut self, url: u64, first: u32) -> bool {
        let Some(first) = self.pages.get(first as usize).map(|page| PackedKey::from(page.url)) else {
            return false;
        };
        let other = self.found.get(&PackedKey::from(url)).copied();
        let Some(found) = self.found.get_mut(&first).filter(|found| found.is_only) else { return false };
        let Found { nearest: only, is_new, .. } = *found;
        if other.is_some_and(|other| other.is_only && other.nearest == only) {
            return false;
        }
        found.is_only = false;
        if is_new {
            self.count(only, -1);
        }
        true
    }

    /// Whether the URL with this hash may have been found on a page.
    pub(super) fn may_be_found(&self, url: u64) -> bool {
        self.found.len() >= MAX_FOUND || self.found.contains_key(&PackedKey::from(url))
    }

    /// Records that a page links to a URL that the crawl does not fetch, and that no page linked to before.
    pub(super) fn refuse(&mut self, page: u32) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.refused = page.refused.saturating_add(1);
        }
    }

    /// The share of links to new URLs that the crawl follows on pages of about this rank, by the pages that were [ordered](Self::order_pages) last. A crawl
    /// that ends at some depth follows nearly all links of the pages before that, and hardly any of those after it. The result is the higher share of both
    /// sides, so that a page at the very end is not given up for the pages after it.
    pub(super) fn share_followed(&self, rank: u64) -> f64 {
        let at = self.ordered.partition_point(|(other, _)| *other < rank);
        let share = |pages: &[(u64, f32)]| {
            let sum: f32 = pages.iter().map(|(_, share)| share).sum();
            f64::from((sum + PRIOR_FOLLOWED) / (pages.len() as f32 + PRIOR_FOLLOWED))
        };
        let (before, after) = self.ordered.split_at(at);
        let before = &before[before.len().saturating_sub(NEIGHBOURS)..];
        let after = &after[..after.len().min(NEIGHBOURS)];
        // Near an end of the order, one side has too few pages to say much.
        match (before.len() == NEIGHBOURS, after.len() == NEIGHBOURS) {
            (true, true) => share(before).max(share(after)),
            (true, false) => share(before),
            (false, true) => share(after),
            (false, false) => share(&self.ordered),
        }
    }

    /// Brings the pages into the order of a breadth-first crawl, if there are many more than when that was done last; returns whether it did.
    pub(super) fn order_pages(&mut self) -> bool {
        if self.ordered_at != 0 && self.pages.len() <= self.ordered_at + self.ordered_at / REORDER {
            return false;
        }
        self.ordered_at = self.pages.len();
        let step = self.pages.len() / MAX_ORDERED + 1;
        let pages = self.pages.iter().step_by(step).filter(|page| page.followed != 0 || page.refused != 0);
        let share = |page: &LinkingPage| {
            f32::from(page.followed) / (f32::from(page.followed) + f32::from(page.refused))
        };
        self.ordered = pages.map(|page| (self.rank(page.url), share(page))).collect();
        self.ordered.sort_by_key(|(rank, _)| *rank);
        true
    }

    /// Records that a page links to a URL, if the URL is remembered; returns whether that changes anything.
    pub(super) fn link(&mut self, url: u64, page: u32) -> bool {
        let (place, rank) = self.next_link(page);
        let Some(found) = self.found.get_mut(&PackedKey::from(url)) else { return false };
        let Found { nearest: only, is_new, .. } = *found;
        let is_second = found.is_only && only != page;
        found.is_only &= !is_second;
        let is_nearer = rank < found.rank.value();
        if is_nearer {
            (found.nearest, found.place, found.rank) = (page, place, rank.into());
            self.count_link(page);
        }
        if is_second && is_new {
            self.count(only, -1);
        }
        is_nearer || is_second
    }

    /// Records that the page of a URL was learnt and has this number.
    pub(super) fn learn(&mut self, url: u64, page: u32) {
        let missing = (page as usize + 1).saturating_sub(self.pages.len());
        self.pages.extend(std::iter::repeat_n(LinkingPage::default(), missing));
        self.pages[page as usize].url = url;
    }

    /// The place of the next link of a page, and the rank of its URL.
    fn next_link(&self, page: u32) -> (u8, u64) {
        let Some(LinkingPage { url, links, .. }) = self.pages.get(page as usize) else {
            return (0, below(0, 0));
        };
        let rank = self.found.get(&PackedKey::from(*url)).map_or(0, |found| found.rank.value());
        let place = coarse(*links);
        (place, below(rank, place))
    }

    fn count_link(&mut self, page: u32) {
        if let Some(page) = self.pages.get_mut(page as usize) {
            page.links = page.links.saturating_add(1);
        }
    }

    /// The rank of a page in a breadth-first crawl; see [`rank`](Self::rank).
    pub(super) fn rank_of_page(&self, page: u32) -> u64 {
        self.pages.get(page as usize).map_or(0, |page| self.rank(page.url))
    }

    /// The rank of a URL in a breadth-first crawl, by the links that are known: 0 for the start, and the higher the later it would be fetched.
    ///
    /// Each URL knows the page that comes first of those that link to it. Ways to that page which were found later are shorter ways to the URL, too.
    pub(super) fn rank(&self, url: u64) -> u64 {
        let mut places: SmallVec<[u8; 16]> = SmallVec::new();
        let mut url = url;
        while let Some(found) =
            self.found.get(&PackedKey::from(url)).filter(|_| (places.len() as u64) < FARTHEST)
        {
            places.push(found.place);
            let Some(page) = self.pages.get(found.nearest as usize) else { break };
            url = page.url;
        }
        places.iter().rev().fold(0, |rank, place| below(rank, *place))
    }

    /// Records that the page of a URL was learnt and had new content.
    pub(super) fn has_new_content(&mut self, url: u64) {
        let Some(found) = self.found.get_mut(&PackedKey::from(url)).filter(|found| !found.is_new) else {
            return;
        };
        found.is_new = true;
        if found.is_only {
            let page = found.nearest;
            self.count(page, 1);
        }
    }

    fn count(&mut self, page: u32, change: i32) {
        let count = self.only_from.entry(page).or_default();
        let before = *count > 0;
        *count = count.saturating_add_signed(change);
        let after = *count > 0;
        if before != after {
            for row in self.rows_of.get(&page).into_iter().flatten() {
                let (_, led) = &mut self.rows[*row as usize];
                *led = led.saturating_add_signed(change);
            }
        }
    }

    /// Records that a page is a copy by a row.
    pub(super) fn is_copy(&mut self, page: u32, row: u64) {
        let number = *self.number_of_row.entry(row).or_insert_with(|| {
            self.rows.push((0, 0));
            self.rows.len() as u32 - 1
        });
        let rows = self.rows_of.entry(page).or_default();
        if rows.len() == ROWS_OF_PAGE || rows.contains(&number) {
            return;
        }
        rows.push(number);
        self.comes_near(page, row);
        let led = self.only_from.get(&page).is_some_and(|count| *count > 0);
        let (copies, led_of_row) = &mut self.rows[number as usize];
        *copies += 1;
        *led_of_row += u32::from(led);
    }

    /// Whether a breadth-first crawl would fetch a URL before all copies that tested a row: then nothing is known about what it leads to. Copies farther
    /// away say little about that, because they may be where a crawl ends.
    pub(super) fn is_nearest(&self, url: u64, row: u64) -> bool {
        let Some(copies) = self.nearest.get(&row) else { return false };
        let rank = self.rank(url);
        copies.iter().all(|page| self.rank_of_page(*page) > rank)
    }

    /// Keeps a copy by a row among those that come first in a breadth-first crawl.
    fn comes_near(&mut self, page: u32, row: u64) {
        let mut nearest = self.nearest.remove(&row).unwrap_or_default();
        if nearest.len() == NEAREST_COPIES {
            // The page itself is not yet learnt, so its rank is not known.
            let farthest = (0..nearest.len()).max_by_key(|at| self.rank_of_page(nearest[*at]));
            nearest.swap_remove(farthest.unwrap_or_default());
        }
        nearest.push(page);
        self.nearest.insert(row, nearest);
    }

    /// Forgets which rows pages tested.
    pub(super) fn forget_rows(&mut self) {
        self.rows_of.clear();
        self.number_of_row.clear();
        self.rows.clear();
        self.nearest.clear();
    }

    /// The number of copies that tested a row, and of those that led to new content.
    fn counts(&self, row: u64) -> (u32, u32) {
        self.number_of_row.get(&row).map_or((0, 0), |number| self.rows[*number as usize])
    }

    /// The share of the copies by a row that led to new content.
    pub(super) fn share(&self, row: u64) -> f64 {
        let (copies, led) = self.counts(row);
        if copies == 0 { 0.0 } else { f64::from(led) / f64::from(copies) }
    }

    /// The same as far as it is known for pages of this kind. What a page links to depends on its kind and not on the row by which it is a copy, so the
    /// copies of the kind are what is expected of a row of few copies.
    pub(super) fn share_of_kind(&self, row: u64, kind: u64) -> f64 {
        let (copies, led) = self.counts(row);
        (f64::from(led) + COPIES_OF_KIND * self.share(kind)) / (f64::from(copies) + COPIES_OF_KIND)
    }
}

/// The number of links from the start to a URL with this rank, on the shortest way that is known.
pub(super) fn depth(rank: u64) -> u64 {
    rank >> DEPTH_SHIFT
}

/// The rank of the URL of the link at this place of a page with this rank.
fn below(rank: u64, place: u8) -> u64 {
    let depth = depth(rank);
    let shift = DEPTH_SHIFT.checked_sub(u8::BITS * (depth as u32 + 1));
    let place = shift.map_or(0, |shift| u64::from(place) << shift);
    let path = rank & ((1 << DEPTH_SHIFT) - 1);
    ((depth + 1).min(FARTHEST) << DEPTH_SHIFT) | path | place
}

/// A place as a byte: that of the first links exactly, and then sixteen for each doubling.
fn coarse(place: u32) -> u8 {
    let place = match place.checked_ilog2().filter(|_| place >= EXACT_PLACES) {
        None => place,
        Some(log) => EXACT_PLACES + 16 * (log - EXACT_PLACES.ilog2()) + ((place >> (log - 4)) & 15),
    };
    place.min(255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_leads_to_new_content_if_no_other_page_links_to_it() {
        let mut leads = Leads::default();
        for page in 0..4 {
            leads.is_copy(page, 7);
        }
        for (url, page) in [(100, 0), (101, 1), (102, 2)] {
            leads.find(url, page);
        }
        for url in [100, 101, 103] {
            leads.has_new_content(url);
        }
        assert_eq!(leads.share(7), 0.5, "nothing new is known of 102, and 103 was found nowhere");
        assert!(leads.link(100, 3) && !leads.link(100, 3) && !leads.link(103, 3));
        assert_eq!(leads.share(7), 0.25, "another page links to 100, too");
        leads.is_copy(0, 9);
        leads.is_copy(1, 9);
        assert_eq!(leads.share_of_kind(7, 9), (1.0 + 0.5) / (4.0 + 1.0));
        assert_eq!(leads.share_of_kind(6, 9), 0.5, "without copies by the row all is by the kind");
        leads.forget_rows();
        assert_eq!((leads.share(7), leads.share_of_kind(7, 9)), (0.0, 0.0));
        leads.is_copy(1, 8);
        assert_eq!(leads.share(8), 1.0);
    }

    #[test]
    fn a_copy_leads_to_nothing_if_another_page_leads_to_the_same_content() {
        let mut leads = Leads::default();
        leads.is_copy(0, 7);
        leads.learn(50, 0);
        for url in [100, 101] {
            leads.find(url, 0);
        }
        leads.find(102, 1);
        leads.learn(100, 2);
        leads.has_new_content(100);
        assert_eq!(leads.share(7), 1.0);
        assert!(!leads.has_content_of(100, 2) && !leads.has_content_of(101, 2), "only the copy links to 101");
        assert!(!leads.has_content_of(102, 9), "there is no such page");
        assert_eq!(leads.share(7), 1.0);
        assert!(leads.has_content_of(102, 2) && !leads.has_content_of(102, 2));
        assert_eq!(leads.share(7), 0.0);
    }

    /// The start (hash 1) links to 2 and 3, 2 to 4 and 3 to 5; the crawl is depth-first, from 3 on.
    fn depth_first() -> Leads {
        let mut leads = Leads::default();
        leads.learn(1, 0);
        leads.find(2, 0);
        leads.find(3, 0);
        leads.learn(3, 1);
        leads.find(5, 1);
        leads.learn(2, 2);
        leads.find(4, 2);
        leads
    }

    #[test]
    fn ranks_are_in_the_order_of_a_breadth_first_crawl() {
        let mut leads = depth_first();
        assert!([1, 2, 3, 4, 5].is_sorted_by_key(|url| leads.rank(*url)), "{leads:?}");
        leads.learn(5, 3);
        leads.find(6, 3);
        assert!(leads.rank(6) > leads.rank(4));
        assert!(leads.link(5, 2), "a page that comes earlier links to it, too");
        assert!(leads.rank(5) < below(leads.rank(3), 0) && leads.rank(4) < leads.rank(5), "{leads:?}");
        assert!(!leads.link(5, 1) && !leads.link(1, 3), "both are known by better ways");
        let places: Vec<u8> = [0, 1, 31, 32, 34, 63, 64, 1_000, u32::MAX].map(coarse).to_vec();
        assert!(places.is_sorted() && places[4] > places[3] && places[6] > places[5], "{places:?}");
    }

    #[test]
    fn ranks_below_the_lowest_level_keep_the_depth() {
        let ranks: Vec<u64> =
            std::iter::successors(Some(0), |rank| Some(below(*rank, 3))).take(100).collect();
        assert!(ranks[..64].is_sorted_by(|one, other| one < other));
        assert!(ranks[63..].iter().all(|rank| *rank == ranks[63]));
    }

    #[test]
    fn a_copy_before_all_that_tested_a_row_is_the_nearest_one() {
        let mut leads = depth_first();
        leads.is_copy(1, 7);
        assert!(leads.is_nearest(2, 7) && !leads.is_nearest(3, 7) && !leads.is_nearest(5, 7));
        leads.is_copy(2, 7);
        assert!(!leads.is_nearest(2, 7));
        assert!(!leads.is_nearest(2, 8), "no page tested that row");
    }

    #[test]
    fn links_are_followed_as_on_the_pages_before_or_after_whichever_follow_more() {
        let mut leads = Leads::default();
        leads.learn(1, 0);
        assert_eq!(leads.share_followed(0), 1.0, "nothing is known otherwise");
        // A hundred pages, of which the first fifty have links that are followed.
        for page in 1..=100 {
            let url = 1 + u64::from(page);
            leads.find(url, 0);
            leads.learn(url, page);
            match page {
                ..=50 => leads.find(1_000 + url, page),
                _ => leads.refuse(page),
            }
        }
        let at = |leads: &mut Leads, page: u32| {
            let rank = leads.rank_of_page(page);
            leads.order_pages();
            leads.share_followed(rank)
        };
        assert_eq!((at(&mut leads, 20), at(&mut leads, 50)), (1.0, 1.0));
        assert!(at(&mut leads, 53) > 0.5 && at(&mut leads, 80) < 0.1);
        // Pages that come later change it.
        for page in 101..=110 {
            leads.find(1 + u64::from(page), 0);
            leads.learn(1 + u64::from(page), page);
            leads.find(2_000 + u64::from(page), page);
        }
        assert!(leads.order_pages() && !leads.order_pages());
        let last = u64::MAX;
        assert!(leads.share_followed(last) > 0.9, "{}", leads.share_followed(last));
    }
}
