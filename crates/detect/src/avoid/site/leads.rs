//! What copies lead to: the pages that are reached from them only.
//!
//! The text of a skipped page is known, but its links are not. The copies that were fetched are a sample of them: of those that tested a row,
//! the share which alone led to a page with new content is what the next one by this row leads to.

use hashbrown::HashMap;
use smallvec::SmallVec;

/// The most URLs of which it is remembered which page links to them.
const MAX_FOUND: usize = 1_000_000;
/// Pages that are farther from the start are as far as this.
const FARTHEST: u8 = 64;
/// The most rows that are remembered for a page.
const ROWS_OF_PAGE: usize = 8;

/// The links between pages, as far as they say which copies were worth their download.
#[derive(Clone, Debug, Default)]
pub(super) struct Leads {
    /// By the hash of a URL, the pages that link to it.
    found: HashMap<u64, Found>,
    /// By the number of a page, the hash of its URL, and how far it was from the start when it was learnt.
    pages: Vec<(u64, u8)>,
    /// By the number of a page, the number of pages with new content to which no other page links.
    only_from: HashMap<u32, u32>,
    /// By the number of a page, the rows by which it was a copy.
    rows_of: HashMap<u32, SmallVec<[u64; 4]>>,
    /// By row, the number of copies that tested it, and of those that led to new content.
    rows: HashMap<u64, (u32, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    /// The first page.
    page: u32,
    /// The page that is nearest to the start, and how far the URL is by it.
    nearest: u32,
    depth: u8,
    is_only: bool,
    /// Whether it was learnt and had new content.
    is_new: bool,
}

impl Leads {
    /// Records that a page links to a URL, which is remembered from now on.
    pub(super) fn find(&mut self, url: u64, page: u32) {
        if self.found.contains_key(&url) {
            self.link(url, page);
        } else if self.found.len() < MAX_FOUND {
            let depth = self.depth_below(page);
            self.found.insert(url, Found { page, nearest: page, depth, is_only: true, is_new: false });
        }
    }

    /// Records that a page links to a URL, if the URL is remembered; returns whether that changes anything.
    pub(super) fn link(&mut self, url: u64, page: u32) -> bool {
        let depth = self.depth_below(page);
        let Some(found) = self.found.get_mut(&url) else { return false };
        let is_nearer = depth < found.depth;
        if is_nearer {
            (found.nearest, found.depth) = (page, depth);
        }
        if !found.is_only || found.page == page {
            return is_nearer;
        }
        found.is_only = false;
        let Found { page, is_new, .. } = *found;
        if is_new {
            self.count(page, -1);
        }
        true
    }

    /// Records that the page of a URL was learnt and has this number.
    pub(super) fn learn(&mut self, url: u64, page: u32) {
        let depth = self.found.get(&url).map_or(0, |found| found.depth);
        let missing = (page as usize + 1).saturating_sub(self.pages.len());
        self.pages.extend(std::iter::repeat_n((0, 0), missing));
        self.pages[page as usize] = (url, depth);
    }

    /// How far a URL is from the start if this page links to it.
    fn depth_below(&self, page: u32) -> u8 {
        self.pages.get(page as usize).map_or(1, |(_, depth)| depth.saturating_add(1).min(FARTHEST))
    }

    /// The number of links from the start to a page.
    pub(super) fn depth_of_page(&self, page: u32) -> u8 {
        self.pages.get(page as usize).map_or(0, |(url, _)| self.depth(*url))
    }

    /// The number of links from the start to a URL, by the shortest way that is known.
    ///
    /// Each URL knows the page that is nearest to the start of those that link to it. Ways to that page which were found later shorten the way, too.
    pub(super) fn depth(&self, url: u64) -> u8 {
        let (mut depth, mut url) = (0, url);
        while let Some(found) = self.found.get(&url).filter(|_| depth < FARTHEST) {
            depth += 1;
            let Some((nearer, _)) = self.pages.get(found.nearest as usize) else { break };
            url = *nearer;
        }
        depth
    }

    /// Records that the page of a URL was learnt and had new content.
    pub(super) fn has_new_content(&mut self, url: u64) {
        let Some(found) = self.found.get_mut(&url).filter(|found| !found.is_new) else { return };
        found.is_new = true;
        if found.is_only {
            let page = found.page;
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
                let (_, led) = self.rows.entry(*row).or_default();
                *led = led.saturating_add_signed(change);
            }
        }
    }

    /// Records that a page is a copy by a row.
    pub(super) fn is_copy(&mut self, page: u32, row: u64) {
        let rows = self.rows_of.entry(page).or_default();
        if rows.len() == ROWS_OF_PAGE || rows.contains(&row) {
            return;
        }
        rows.push(row);
        let led = self.only_from.get(&page).is_some_and(|count| *count > 0);
        let row = self.rows.entry(row).or_default();
        *row = (row.0 + 1, row.1 + u32::from(led));
    }

    /// Forgets which rows pages tested.
    pub(super) fn forget_rows(&mut self) {
        self.rows_of.clear();
        self.rows.clear();
    }

    /// The share of the copies by a row that led to new content.
    pub(super) fn share(&self, row: u64) -> f64 {
        let (copies, led) = self.rows.get(&row).copied().unwrap_or_default();
        if copies == 0 { 0.0 } else { f64::from(led) / f64::from(copies) }
    }
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
        leads.forget_rows();
        assert_eq!(leads.share(7), 0.0);
        leads.is_copy(1, 8);
        assert_eq!(leads.share(8), 1.0);
    }
}
