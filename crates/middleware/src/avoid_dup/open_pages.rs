//! Open pages: those that were learnt while their links are not in the queue yet.
//!
//! A model knows a page from the moment at which its text was read. The callback, the pipelines and the queue come after that, and may take a while.
//! Until they are done, an empty queue does not mean that nothing else is left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The open pages by site.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenPages(Arc<Mutex<HashMap<Arc<str>, Count>>>);

#[derive(Debug, Default)]
struct Count {
    open: usize,
    /// The number of pages that ended while others were open.
    ended: u64,
}

/// A page of a site that is open as long as this value exists. The engine drops it with the extensions of the page, once the links are in the queue.
#[derive(Debug)]
pub(super) struct OpenPage {
    site: Arc<str>,
    pages: OpenPages,
}

impl OpenPages {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a page of a site.
    pub(super) fn open(&self, site: Arc<str>) -> OpenPage {
        self.lock().entry(Arc::clone(&site)).or_default().open += 1;
        OpenPage { site, pages: self.clone() }
    }

    /// Whether a page of the site is open.
    pub(super) fn has(&self, site: &str) -> bool {
        self.lock().contains_key(site)
    }

    /// The number of pages of the site that ended since it had no open page.
    pub(super) fn ended(&self, site: &str) -> u64 {
        self.lock().get(site).map_or(0, |count| count.ended)
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.pages.lock().entry(Arc::clone(&self.site)) {
            let count = entry.get_mut();
            (count.open, count.ended) = (count.open - 1, count.ended + 1);
            if count.open == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_open_pages_until_the_last_of_them_is_dropped() {
        let pages = OpenPages::default();
        let (first, second, other) = (pages.open("a".into()), pages.open("a".into()), pages.open("b".into()));
        assert_eq!(pages.ended("a"), 0);
        drop(first);
        assert!(pages.has("a") && pages.has("b"));
        assert_eq!((pages.ended("a"), pages.ended("b")), (1, 0));
        drop(second);
        assert!(!pages.has("a") && pages.has("b"));
        drop(other);
        assert!(pages.lock().is_empty(), "sites without open pages take no memory");
    }
}
