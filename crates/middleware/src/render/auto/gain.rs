//! What rendering a page brought over its static form.

use std::collections::{HashMap, HashSet};

use huntsman_crawler::{Context, Page};
use huntsman_text::urlparts::canonical;

use crate::{Offsite, origin};

/// Words that a page must have gained to have needed the browser.
const WORDS: usize = 30;
/// The share of the words of its static form that these are at least, in per cent.
const PER_CENT: usize = 20;
/// Or the links.
const LINKS: usize = 3;

/// What the rendered form of a page has and its static form has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gain {
    words: usize,
    /// Words of the static form.
    of_words: usize,
    /// Links in the scope of the crawl.
    links: usize,
}

impl Gain {
    pub(super) fn between(before: &Page, after: &Page, cx: &Context) -> Self {
        let mut had: HashMap<&str, usize> = HashMap::new();
        for word in before.words().iter() {
            *had.entry(word).or_default() += 1;
        }
        let mut words = 0;
        for word in after.words().iter() {
            match had.get_mut(word).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => words += 1,
            }
        }
        let offsite = cx.component::<Offsite>();
        let links = |page: &Page| -> HashSet<String> {
            let is_in_scope = |url: &url::Url| match &offsite {
                Some(offsite) => offsite.rules().check(url).is_none(),
                None => origin::host(url) == origin::host(before.url()),
            };
            page.links().iter().filter(|url| is_in_scope(url)).map(canonical).collect()
        };
        let had_links = links(before);
        let links = links(after).iter().filter(|link| !had_links.contains(*link)).count();
        Self { words, of_words: before.words().len(), links }
    }

    /// Whether the page needed the browser.
    pub(super) fn is_needed(self) -> bool {
        let has_words = self.words >= WORDS && self.words * 100 >= self.of_words * PER_CENT;
        has_words || self.links >= LINKS
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::{Request, Response, Settings};
    use url::Url;

    use super::*;

    fn page(body: &str) -> Page {
        let url = Url::parse("http://a.test/").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, body.to_owned()))
    }

    fn gain(before: &str, after: &str) -> Gain {
        Gain::between(&page(before), &page(after), &Context::detached(Settings::default()))
    }

    fn words(from: usize, to: usize) -> String {
        (from..to).map(|n| format!("<p>word{n}</p>")).collect()
    }

    #[test]
    fn thirty_words_that_are_a_fifth_are_a_need() {
        assert!(gain("", &words(0, 30)).is_needed());
        assert!(!gain("", &words(0, 29)).is_needed());
        assert!(gain(&words(0, 150), &words(0, 180)).is_needed());
        assert!(!gain(&words(0, 151), &words(0, 181)).is_needed());
        // A word that is there twice counts twice, in either form.
        assert_eq!(gain("<p>a b</p>", "<p>a a b b c</p>").words, 3);
        assert_eq!(gain(&words(0, 50), &words(25, 50)).words, 0);
    }

    #[test]
    fn three_links_of_the_site_are_a_need() {
        let links = |hrefs: &[&str]| -> String {
            hrefs.iter().map(|href| format!("<a href='{href}'></a>")).collect()
        };
        assert!(gain("", &links(&["/1", "/2", "/3"])).is_needed());
        assert!(!gain("", &links(&["/1", "/2", "/2#x"])).is_needed(), "one address in two spellings");
        assert!(!gain("", &links(&["/1", "/2", "http://b.test/"])).is_needed(), "another site");
        assert!(!gain(&links(&["/?a=1&b=2", "/2", "/3"]), &links(&["/?b=2&a=1", "/2", "/3"])).is_needed());
    }
}
