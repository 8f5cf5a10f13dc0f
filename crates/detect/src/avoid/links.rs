//! The places at which a page links to other pages of its site.

use hashbrown::HashMap;
use huntsman_html::Link;
use smallvec::SmallVec;
use url::Url;

use super::predictor::hash_of;
use super::site::{LINKS, LinkContext};

/// The most places of links to one URL that are kept for a page.
const PLACES: usize = LINKS;
/// Space for at most so many links is allotted at first.
const USUAL_LINKS: usize = 256;

/// The places of the links of a page, by the URL to which they lead, without fragment. A page may link to a URL several times; the first
/// six distinct places are kept.
#[derive(Clone, Debug, Default)]
pub struct LinkPlaces {
    /// In the order of the document.
    links: Vec<LinkedUrl>,
    /// By the hash of the URL.
    numbers: HashMap<u64, usize>,
}

/// A URL to which a page links.
#[derive(Clone, Debug)]
pub(super) struct LinkedUrl {
    pub(super) url: Url,
    /// The hash of the URL.
    pub(super) hash: u64,
    /// The places of the links.
    pub(super) places: SmallVec<[u64; 2]>,
}

impl LinkPlaces {
    /// Collects links. `resolve` makes a URL of an address; it returns `None` for links that lead away from the site. It is called once for
    /// each distinct address.
    pub fn of<'a>(links: impl Iterator<Item = Link<'a>>, resolve: impl Fn(&str) -> Option<Url>) -> Self {
        let expected = links.size_hint().0.min(USUAL_LINKS);
        let mut linked =
            Self { links: Vec::with_capacity(expected), numbers: HashMap::with_capacity(expected) };
        let mut resolved: HashMap<&'a str, Option<usize>> = HashMap::with_capacity(expected);
        for link in links {
            let to = *resolved.entry(link.href).or_insert_with(|| {
                let mut url = resolve(link.href)?;
                let (hash, next) = (hash_of(&url), linked.links.len());
                let number = *linked.numbers.entry(hash).or_insert(next);
                if number == next {
                    url.set_fragment(None);
                    linked.links.push(LinkedUrl { url, hash, places: SmallVec::new() });
                }
                Some(number)
            });
            let Some(LinkedUrl { places, .. }) = to.map(|to| &mut linked.links[to]) else { continue };
            if places.len() < PLACES && !places.contains(&link.path) {
                places.push(link.path);
            }
        }
        linked
    }

    /// The links to a URL from the page with this number, in the order of the document.
    pub fn contexts(&self, url: &Url, page: u32) -> impl Iterator<Item = LinkContext> {
        let number = self.numbers.get(&hash_of(url));
        let places = number.map(|number| self.links[*number].places.as_slice()).unwrap_or_default();
        places.iter().map(move |position| LinkContext { page, position: *position })
    }

    /// All URLs, in the order of the document.
    pub fn urls(&self) -> impl Iterator<Item = &Url> {
        self.links.iter().map(|link| &link.url)
    }

    /// The URLs with the places of their links, in the order of the document.
    pub(super) fn linked(&self) -> &[LinkedUrl] {
        &self.links
    }
}

#[cfg(test)]
mod tests {
    use huntsman_html::{Scan, ScanOptions};

    use super::*;

    #[test]
    fn all_places_of_a_link_are_kept() {
        let page = "<nav><a href='/a#top'>a</a></nav><p><a href='/a'>a</a><footer><a href='/a'>a</a><a href='/b'>b</a></footer>";
        let scan = Scan::of(page, &ScanOptions { blocks: true, ..ScanOptions::default() });
        let base = Url::parse("https://h.example/").expect("a URL");
        let places = LinkPlaces::of(scan.links(page), |address| base.join(address).ok());
        let to = base.join("/a").expect("a URL");
        let links: Vec<LinkContext> = places.contexts(&to, 7).collect();
        assert_eq!(links.len(), 3, "{places:?}");
        assert!(links.iter().all(|link| link.page == 7));
        let urls: Vec<&str> = places.urls().map(Url::path).collect();
        assert_eq!(urls, ["/a", "/b"], "in the order of the document");
    }
}
