//! Parameters of URLs that change nothing.

use std::collections::{BTreeMap, HashMap};

use huntsman_text::urlparts::{Pair, Parts, Separator};
use url::{Position, Url};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::code::Code;
use crate::code::PageClass::Indexable;
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings, Place};
use crate::rule::Rule;
use crate::site::{Answer, Site, front_of};

/// Pages with the text of another one that differs from them in the parameter alone, from which on it is told.
const MIN_SAME: usize = 20;
/// Words of a page's own text below which its equality says nothing.
const MIN_WORDS: usize = 20;

const CODES: &[Code] = &[
    Code::new("url", "url-equivalent").of_site().severity(Notice).judges(Indexable)
        .headline("Parameters that change nothing")
        .text("A parameter of the URLs of a host never mattered: at least 20 pages have the text of another one whose URL differs in it alone, and no page has another text than such a one. At most [compared_pages] pages that may be indexed are compared.", "Each page is crawled and indexed several times.", "Leave the parameter out of links, or name the URL without it as canonical.")
        .source("Google Search Central: duplicate URLs").example("/item?id=7&ref=list and /item?id=7&ref=home", "/item?id=7"),
];

pub(super) struct Parameters;

impl Rule for Parameters {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let pages = || site.pages(Indexable).filter_map(|page| Compared::of(&page));
        let mut parameters = Seen::default();
        let most = site.limits().audit_compared_pages;
        for (number, page) in pages().filter(|page| page.url.query().is_some()).enumerate() {
            if number >= most {
                site.note("url-equivalent", format!("of the pages with parameters the first {most} were compared to find parameters that change nothing (audit_compared_pages)"));
                break;
            }
            parameters.add(&page);
        }
        let mut idle = parameters.idle();
        if idle.is_empty() {
            return;
        }
        // A parameter that is there or not matters, too, and its pages are listed.
        for page in pages() {
            parameters.compare_without(&page, &mut idle);
        }
        for ((front, name), parameter) in idle {
            let mut finding = Finding::of("url-equivalent").url(&front).group(name.as_str());
            for url in parameter.urls {
                finding = finding.at_made(|| Place { page: Some(url), ..Place::default() });
            }
            let value = format!("{name} never mattered in {} pages", parameter.same);
            findings.add(finding.value(value));
        }
    }
}

/// A page whose text is compared.
struct Compared {
    url: Url,
    front: String,
    text: u64,
}

impl Compared {
    /// `None` if it is too short.
    fn of(page: &Answer<'_>) -> Option<Self> {
        let html = page.html.as_ref().filter(|html| html.words >= MIN_WORDS)?;
        let url = Url::parse(&page.url).ok()?;
        Some(Self { url, front: front_of(&page.url), text: xxh3_64(html.text_key.as_bytes()) })
    }

    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        Parts::of(&self.url).pairs_at(Separator::AmpersandOrSemicolon)
    }

    /// The names of its parameters, each once.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.pairs().map(|pair| pair.name().into_owned()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Stands for the URL without a parameter, of which there is one number for each name.
    fn key(&self, without: &str) -> u128 {
        let mut key = format!("{without}\n{}", &self.url[..Position::AfterPath]);
        for pair in self.pairs().filter(|pair| pair.name() != without) {
            key.push('\n');
            key.push_str(pair.raw_name);
            key.push('=');
            key.push_str(pair.raw_value.unwrap_or_default());
        }
        xxh3_128(key.as_bytes())
    }
}

/// A parameter of a host, and how the texts compare of pages whose URLs differ in it alone.
#[derive(Debug, Default)]
struct Parameter {
    /// Pages with the text of the first such page.
    same: usize,
    others: usize,
    /// Pages that have the parameter.
    urls: Vec<String>,
}

impl Parameter {
    fn is_idle(&self) -> bool {
        self.others == 0 && self.same >= MIN_SAME
    }
}

/// Parameters by the front page of their host and their name.
type ByName = BTreeMap<(String, String), Parameter>;

#[derive(Debug, Default)]
struct Seen {
    /// The text of the first page of each URL without one of its parameters.
    texts: HashMap<u128, u64>,
    parameters: ByName,
}

impl Seen {
    fn add(&mut self, page: &Compared) {
        for name in page.names() {
            let before = self.texts.len();
            let first = *self.texts.entry(page.key(&name)).or_insert(page.text);
            let parameter = self.parameters.entry((page.front.clone(), name)).or_default();
            match (self.texts.len() > before, first == page.text) {
                (true, _) => {}
                (false, true) => parameter.same += 1,
                (false, false) => parameter.others += 1,
            }
        }
    }

    /// The parameters that never mattered.
    fn idle(&mut self) -> ByName {
        let parameters = std::mem::take(&mut self.parameters);
        parameters.into_iter().filter(|(_, parameter)| parameter.is_idle()).collect()
    }

    /// Lists a page with the parameters that it has, and drops those of which it shows that they matter: if it has another text without one.
    fn compare_without(&self, page: &Compared, idle: &mut ByName) {
        let names = page.names();
        idle.retain(|(front, name), parameter| {
            if *front != page.front {
                return true;
            }
            if names.contains(name) {
                parameter.urls.push(page.url.to_string());
                return true;
            }
            self.texts.get(&page.key(name)).is_none_or(|text| *text == page.text)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(pages: &[(String, u64)]) -> Vec<String> {
        let compared = |(path, text): &(String, u64)| {
            let url = Url::parse(&format!("https://a.example{path}")).unwrap();
            Compared { front: front_of(url.as_str()), url, text: *text }
        };
        let mut seen = Seen::default();
        for page in pages.iter().filter(|(path, _)| path.contains('?')) {
            seen.add(&compared(page));
        }
        let mut idle = seen.idle();
        for page in pages {
            seen.compare_without(&compared(page), &mut idle);
        }
        idle.into_iter()
            .map(|((_, name), of)| format!("{name}: {} same of {}", of.same, of.urls.len()))
            .collect()
    }

    #[test]
    fn a_parameter_is_idle_if_enough_pages_repeat_each_other_and_none_contradicts() {
        let logins = |number: u64| (0..number).map(|to| (format!("/login?next=/page/{to}"), 7)).collect();
        let mut pages: Vec<(String, u64)> = logins(21);
        assert_eq!(idle(&pages), ["next: 20 same of 21"]);
        assert!(idle(&logins(20)).is_empty(), "the first page of a URL repeats none");
        pages.push(("/login".to_owned(), 7));
        assert_eq!(idle(&pages).len(), 1);
        pages.push(("/login".to_owned(), 8));
        assert!(idle(&pages).is_empty(), "without it another text comes");
        let mut pages: Vec<(String, u64)> = logins(40);
        pages.push(("/login?next=/page/41".to_owned(), 9));
        assert!(idle(&pages).is_empty(), "one value shows another text");
    }

    #[test]
    fn parameters_are_judged_apart_and_between_all_separators() {
        let pages: Vec<(String, u64)> = (0..30)
            .flat_map(|item| ["list", "home"].map(|way| (format!("/item?id={item};ref={way}"), item)))
            .collect();
        assert_eq!(idle(&pages), ["ref: 30 same of 60"]);
    }
}
