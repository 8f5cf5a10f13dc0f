//! Canonical URLs that search engines pass over, besides those whose targets are wrong.

use url::Url;

use crate::code::Code;
use crate::code::PageClass::Html;
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::rule::Rule;
use crate::site::{Answer, Site};

const GUIDE: &str = "Google Search Central: canonical URLs";

const fn code(name: &'static str) -> Code {
    Code::new("index", name).source(GUIDE)
}

const CODES: &[Code] = &[
    code("canonical-outside-head")
        .headline("Canonical URLs outside of the head").severity(Error)
        .text("A `link rel=canonical` stands behind the end of the head.", "Search engines ignore it.", "Move it into the head, or close what ended the head too early.")
        .example("<body><link rel=canonical href=\"https://example.org/a\">", "<head><link rel=canonical href=\"https://example.org/a\"></head>"),
    code("canonical-invalid")
        .headline("Canonical URLs that are not valid").severity(Error)
        .text("The address of a canonical URL is empty, no http or https URL, or has a scheme in the place of the host.", "Search engines ignore it.", "Name the URL of the page.")
        .example("<link rel=canonical href=\"https://https://example.org/a\">", "<link rel=canonical href=\"https://example.org/a\">"),
    code("canonical-fragment")
        .headline("Canonical URLs with a fragment")
        .text("The address of a canonical URL has a fragment (`#...`).", "A place of a page is no page that can be indexed.", "Take the fragment off.")
        .example("<link rel=canonical href=\"https://example.org/a#top\">", "<link rel=canonical href=\"https://example.org/a\">"),
    code("canonical-to-blocked")
        .headline("Canonical URLs that robots.txt disallows").of_site()
        .text("robots.txt disallows the canonical URL of a page.", "Search engines cannot read the page that is meant.", "Allow it, or name a page that is allowed.")
        .example("canonical under Disallow", "canonical that is allowed"),
    code("canonical-other-host")
        .headline("Canonical URLs on other hosts").severity(Notice)
        .text("The canonical URL of a page is on another host.", "This page is left out of the index in favour of the other.", "Name the page itself if that is not meant.")
        .example("https://example.org/a with canonical https://example.com/a", "https://example.org/a with canonical https://example.org/a"),
    code("pagination-canonical")
        .headline("Later pages of a series that name the first one as canonical").of_site()
        .text("A later page of a series names the first page as its canonical URL, and has another text. Later pages say rel=prev, or have their number in the URL.", "What only the later pages have is not indexed.", "Let each page of the series name itself.")
        .source("Google Search Central: pagination")
        .example("/list?page=2 with canonical /list", "/list?page=2 with canonical /list?page=2"),
];

pub(super) struct CanonicalRules;

impl Rule for CanonicalRules {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let end_of_head = page.end_of_head();
        for canonical in page.canonicals() {
            let told = |code: &str| {
                let place = canonical.offset.map(|offset| page.place(offset));
                place.into_iter().fold(Finding::of(code).value(canonical.href.as_str()), Finding::at)
            };
            if canonical.offset.is_some_and(|offset| offset >= end_of_head) {
                findings.add(told("canonical-outside-head"));
            }
            if canonical.url.is_none() {
                findings.add(told("canonical-invalid"));
            } else if canonical.href.split_once('#').is_some_and(|(_, fragment)| !fragment.is_empty()) {
                findings.add(told("canonical-fragment"));
            }
        }
        if page.has_several_canonicals() {
            return;
        }
        let stated =
            page.canonicals().first().and_then(|canonical| Url::parse(canonical.url.as_deref()?).ok());
        if let Some(url) = stated.filter(|url| url.host_str() != page.url().host_str()) {
            findings.add(Finding::of("canonical-other-host").value(url.as_str()));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for page in site.records_of(|page| page.is(Html) && page.other_canonical().is_some()) {
            let Some(target) = page.address().other_canonical() else { continue };
            let refused = if target.requested().is_none() { target.refused() } else { None };
            if let Some(refused) = refused.filter(|refused| refused.reason == "robots") {
                let finding = Finding::of("canonical-to-blocked").url(&page.url).target(&target.url());
                findings.add(finding.value(refused.detail));
            } else if hides_its_content(site, &page) {
                findings.add(Finding::of("pagination-canonical").url(&page.url).target(&target.url()));
            }
        }
    }
}

/// Whether a later page of a series names the first one as canonical, though it has another text.
fn hides_its_content(site: &Site, page: &Answer<'_>) -> bool {
    let Some(html) = page.html.as_ref().filter(|html| !html.noindex) else { return false };
    let Some(canonical) = html.canonical.as_deref() else { return false };
    let is_later = is_numbered_page_of(&page.url, canonical) || comes_after(site, page, canonical);
    let first = if is_later { site.get(canonical) } else { None };
    first.is_some_and(|first| first.html.as_ref().is_some_and(|first| first.text_key != html.text_key))
}

/// Whether the links of a series lead from a page back to this first one.
fn comes_after(site: &Site, page: &Answer<'_>, first: &str) -> bool {
    const MAX_PAGES: usize = 50;
    let previous = |page: &Answer<'_>| page.html.as_ref()?.prev.first().cloned();
    let mut at = previous(page);
    for _ in 0..MAX_PAGES {
        let Some(url) = at else { return false };
        let before = site.get(&url).and_then(|answer| previous(&answer));
        if url == first {
            return before.is_none();
        }
        at = before;
    }
    false
}

/// Whether a URL is that of a later page of a series by its number, and another one is the same without a number, or with the number 1.
fn is_numbered_page_of(url: &str, first: &str) -> bool {
    const PARAMETERS: [&str; 4] = ["page", "paged", "pagenum", "seite"];
    let (Ok(url), Ok(first)) = (Url::parse(url), Url::parse(first)) else { return false };
    let is_later = |value: &str| value.parse::<u32>().is_ok_and(|number| number >= 2);
    let split = |url: &Url| -> (Vec<(String, String)>, Option<String>) {
        let pairs = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned()));
        let (numbers, others): (Vec<_>, Vec<_>) =
            pairs.partition(|(name, _)| PARAMETERS.contains(&name.to_ascii_lowercase().as_str()));
        (others, numbers.into_iter().next().map(|(_, value)| value))
    };
    let ((own, number), (others, start)) = (split(&url), split(&first));
    let is_of_query = url.path() == first.path() && number.as_deref().is_some_and(is_later);
    if url.origin() != first.origin() || own != others || start.is_some_and(|start| start != "1") {
        return false;
    }
    let of_path = url.path().trim_end_matches('/').rsplit_once("/page/");
    let is_of_path = of_path.is_some_and(|(before, number)| {
        is_later(number) && first.path().trim_end_matches('/') == before.trim_end_matches('/')
    });
    is_of_query || is_of_path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_page_of_a_series_has_its_number_in_the_url() {
        let base = "https://a.example";
        let is =
            |url: &str, first: &str| is_numbered_page_of(&format!("{base}{url}"), &format!("{base}{first}"));
        for (url, first) in
            [("/l?page=2", "/l"), ("/l?a=1&page=3", "/l?a=1&page=1"), ("/blog/page/2/", "/blog/")]
        {
            assert!(is(url, first), "{url} {first}");
        }
        for (url, first) in [
            ("/l?page=1", "/l"),
            ("/l?page=2", "/m"),
            ("/l?page=2", "/l?page=2&a=1"),
            ("/page/two", "/"),
            ("/?p=7", "/"),
        ] {
            assert!(!is(url, first), "{url} {first}");
        }
    }
}
