//! The places at which a page links to other pages of its site.

use hashbrown::HashMap;
use huntsman_html::Link;
use smallvec::SmallVec;
use url::{Position, Url};

use super::predictor::{hash_of, hash_of_text};
use super::site::{LINKS, LinkContext};

/// The most places of links to one URL that are kept for a page.
const PLACES: usize = LINKS;
/// Space for at most so many links is allotted at first.
const USUAL_LINKS: usize = 256;
/// Space for so many bytes of each URL is allotted at first.
const USUAL_BYTES: usize = 64;

/// The places of the links of a page, by the URL to which they lead, without fragment. A page may link to a URL several times; the first
/// six distinct places are kept.
#[derive(Clone, Debug, Default)]
pub struct LinkPlaces {
    /// In the order of the document.
    links: Vec<LinkedUrl>,
    /// By the hash of the URL.
    numbers: HashMap<u64, usize>,
    /// The URLs, one after the other.
    text: String,
}

/// A URL to which a page links.
#[derive(Clone, Debug)]
struct LinkedUrl {
    /// The end of its text.
    end: usize,
    /// The hash of the URL.
    hash: u64,
    /// The places of the links.
    places: SmallVec<[u64; 2]>,
}

impl LinkPlaces {
    /// Collects links. `resolve` makes a URL of an address; it returns `None` for links that lead away from the site.
    ///
    /// `base` is the http or https URL to which addresses are relative, if that is one of the site. Addresses that need nothing but its beginning are
    /// resolved without `resolve`, which takes much longer; it is called once for each other one.
    pub fn of<'a>(
        links: impl Iterator<Item = Link<'a>>,
        base: Option<&Url>,
        resolve: impl Fn(&str) -> Option<Url>,
    ) -> Self {
        let expected = links.size_hint().0.min(USUAL_LINKS);
        let mut linked = Self {
            links: Vec::with_capacity(expected),
            numbers: HashMap::with_capacity(expected),
            text: String::with_capacity(expected * USUAL_BYTES),
        };
        let mut resolved: HashMap<&'a str, Option<usize>> = HashMap::new();
        let mut plain = base.map(PlainAddresses::of);
        for link in links {
            let to = match plain.as_mut().and_then(|plain| plain.resolved(link.href)) {
                Some(url) => Some(linked.number(url)),
                None => *resolved.entry(link.href).or_insert_with(|| {
                    let mut url = resolve(link.href)?;
                    url.set_fragment(None);
                    Some(linked.number(url.as_str()))
                }),
            };
            let Some(LinkedUrl { places, .. }) = to.map(|to| &mut linked.links[to]) else { continue };
            if places.len() < PLACES && !places.contains(&link.path) {
                places.push(link.path);
            }
        }
        linked
    }

    /// The number of a URL among those of the page.
    fn number(&mut self, url: &str) -> usize {
        let (hash, next) = (hash_of_text(url), self.links.len());
        let number = *self.numbers.entry(hash).or_insert(next);
        if number == next {
            self.text.push_str(url);
            self.links.push(LinkedUrl { end: self.text.len(), hash, places: SmallVec::new() });
        }
        number
    }

    /// The links to a URL from the page with this number, in the order of the document.
    pub fn contexts(&self, url: &Url, page: u32) -> impl Iterator<Item = LinkContext> {
        let number = self.numbers.get(&hash_of(url));
        let places = number.map(|number| self.links[*number].places.as_slice()).unwrap_or_default();
        places.iter().map(move |position| LinkContext { page, position: *position })
    }

    /// All URLs, in the order of the document.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.linked().map(|(url, _, _)| url)
    }

    /// The URLs with their hashes and the places of their links, in the order of the document.
    pub(super) fn linked(&self) -> impl Iterator<Item = (&str, u64, &[u64])> {
        let mut start = 0;
        self.links.iter().map(move |LinkedUrl { end, hash, places }| {
            let url = &self.text[std::mem::replace(&mut start, *end)..*end];
            (url, *hash, places.as_slice())
        })
    }
}

/// Resolves addresses that are the end of a URL as they are written, which those of most links are: nothing in them is encoded, and they have no
/// segments of dots.
struct PlainAddresses<'a> {
    base: &'a Url,
    /// The URL resolved last.
    url: String,
}

impl<'a> PlainAddresses<'a> {
    fn of(base: &'a Url) -> Self {
        Self { base, url: String::new() }
    }

    /// The URL of an address; `None` if that takes more.
    fn resolved(&mut self, address: &str) -> Option<&str> {
        let bytes = address.as_bytes();
        let (&first, rest) = bytes.split_first()?;
        let is_http = matches!(self.base.scheme(), "http" | "https");
        // Two slashes begin a host, and a colon may end a scheme.
        let is_rooted = first == b'/' && rest.first() != Some(&b'/');
        let is_below = !matches!(first, b'/' | b'?' | b'.') && !bytes.contains(&b':');
        let is_plain = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'/' | b'.' | b'-' | b'_' | b'?' | b'=' | b'&' | b';' | b',' | b'+' | b':' | b'~'
                )
        };
        let has_dots = bytes.array_windows().any(|pair| pair == b"/.");
        if !is_http || !(is_rooted || is_below) || !bytes.iter().all(is_plain) || has_dots {
            return None;
        }
        let kept = match is_rooted {
            true => &self.base[..Position::BeforePath],
            false => self.base[..Position::AfterPath].rsplit_once('/')?.0,
        };
        self.url.clear();
        self.url.push_str(kept);
        if !is_rooted {
            self.url.push('/');
        }
        self.url.push_str(address);
        Some(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use huntsman_html::{Scan, ScanOptions};

    use super::*;
    use crate::avoid::shape::Mix;

    #[test]
    fn all_places_of_a_link_are_kept() {
        let page = "<nav><a href='/a#top'>a</a></nav><p><a href='/a'>a</a><footer><a href='/a'>a</a><a href='/b'>b</a></footer>";
        let scan = Scan::of(page, &ScanOptions { blocks: true, ..ScanOptions::default() });
        let base = Url::parse("https://h.example/").expect("a URL");
        let places = LinkPlaces::of(scan.links(page), Some(&base), |address| base.join(address).ok());
        let to = base.join("/a").expect("a URL");
        let links: Vec<LinkContext> = places.contexts(&to, 7).collect();
        assert_eq!(links.len(), 3, "{places:?}");
        assert!(links.iter().all(|link| link.page == 7));
        let urls: Vec<&str> = places.urls().collect();
        assert_eq!(urls, ["https://h.example/a", "https://h.example/b"], "in the order of the document");
    }

    #[test]
    fn plain_addresses_lead_where_the_standard_says() {
        let parts = [
            "/", "//", "a", "b.html", "..", ".", "?", "?x=1", "&y=2", ":", ";", "c,d+e", "%2e", "%41", "#f",
            " ", "\\", "é", "'", "~", "_", "-", "http:", "mailto:", "@", "\t", "|", "..a", "[", "8080",
        ];
        let mut state = Mix::new(1);
        let mut plain = 0;
        for base in [
            "https://h.example/",
            "http://u:p@h.example:8080/a/b.html?q=/x/y#f",
            "https://h.example/a/../b/./c/?q",
            "http://127.0.0.1:81/a;b=c/d",
            "file:///a/b",
            "mailto:a@h.example",
        ] {
            let base = Url::parse(base).expect("a URL");
            let mut addresses = PlainAddresses::of(&base);
            for _ in 0..20_000 {
                let mut address = String::new();
                for _ in 0..1 + state.0 % 5 {
                    state = state.with(1);
                    address.push_str(parts[(state.0 >> 32) as usize % parts.len()]);
                }
                state = state.with(2);
                if let Some(url) = addresses.resolved(&address) {
                    assert_eq!(base.join(&address).expect("a URL").as_str(), url, "{base} {address:?}");
                    plain += 1;
                }
            }
        }
        assert!(plain > 2_000, "{plain}");
    }
}
