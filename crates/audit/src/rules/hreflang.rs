//! Pages in other languages, as `hreflang` names them.

use std::collections::{BTreeMap, BTreeSet};

use super::language::{is_hreflang, primary};
use crate::code::Code;
use crate::code::PageClass::{Html, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::page::{AuditedPage, without_fragment};
use crate::record::Kind;
use crate::robots_files::Translations;
use crate::rule::Rule;
use crate::site::{Answer, Fault, Site};

const DEFAULT: &str = "x-default";

/// A page in another language, as [`AuditedPage::alternates`] gives it.
type Entry = (String, String, Option<String>, Option<u32>);

const fn code(name: &'static str) -> Code {
    Code::new("hreflang", name).judges(Indexable).source("Google Search Central: localized versions")
}

const CODES: &[Code] = &[
    code("hreflang-no-return")
        .headline("Translations that do not link back")
        .of_site()
        .text(
            "A page in another language that the page names does not name this page.",
            "Search engines ignore both entries.",
            "Name each other.",
        )
        .example("/en names /de; /de names nothing", "/de names /en, too"),
    code("hreflang-non200")
        .headline("Translations that do not answer")
        .severity(Error)
        .of_site()
        .text(
            "A page in another language redirects, answers 4xx or 5xx, or not at all.",
            "Search engines ignore the entry.",
            "Name the final URL.",
        )
        .example("hreflang=de href=/de (404)", "hreflang=de href=/de (200)"),
    code("hreflang-noindex")
        .headline("Translations that may not be indexed")
        .of_site()
        .text(
            "A page in another language says noindex.",
            "Search engines ignore the entry.",
            "Allow indexing, or take the entry out.",
        )
        .example("hreflang=de to a noindex page", "hreflang=de to a page to index"),
    code("hreflang-noncanonical")
        .headline("Translations that name another page as canonical")
        .of_site()
        .text(
            "The canonical URL of a page in another language is another URL.",
            "Search engines ignore the entry.",
            "Name the canonical URL.",
        )
        .example("hreflang=de to a copy", "hreflang=de to the canonical URL"),
    code("hreflang-no-self")
        .headline("Pages missing from their own list of translations")
        .text(
            "The languages that a page names do not include the page itself.",
            "The set is incomplete.",
            "Add the page with its language.",
        )
        .example("/en names only /de", "/en names /en and /de"),
    code("hreflang-no-x-default")
        .headline("Translations without a fallback")
        .severity(Notice)
        .text(
            "A page names two languages or more, and no x-default.",
            "Readers of other languages get any page.",
            "Add one.",
        )
        .example("en and de", "en, de and x-default"),
    code("hreflang-relative")
        .headline("Translations with a relative address")
        .text(
            "The address of a page in another language is not absolute.",
            "Search engines do not understand it.",
            "Write it with scheme and host.",
        )
        .example("href=/de", "href=\"https://example.org/de\""),
    code("hreflang-mismatch")
        .headline("Translations whose language contradicts the page")
        .text(
            "The language of the page's own entry is not that of its html element.",
            "They contradict each other.",
            "Correct one of both.",
        )
        .example("<html lang=fr> with hreflang=en for itself", "<html lang=en>"),
    code("hreflang-several")
        .headline("Pages listed under several languages")
        .text(
            "One URL is named for two languages; regions of one language are none.",
            "Search engines cannot tell which one is meant.",
            "Name one language for each URL.",
        )
        .example("en and de for one URL", "en for /en, de for /de"),
    code("hreflang-invalid-code")
        .headline("Translations with a language that does not exist")
        .severity(Error)
        .text(
            "The language of an entry is none, or its region is no country (ISO 639, ISO 3166-1).",
            "Search engines ignore the entry.",
            "Correct the code.",
        )
        .example("hreflang=en-UK", "hreflang=en-GB"),
    code("hreflang-conflict")
        .headline("Languages with several pages")
        .text(
            "A page names several URLs for one language.",
            "Search engines cannot tell which one is meant.",
            "Name one URL for each language and region.",
        )
        .example("de for /de and for /deutsch", "de for /de"),
    code("hreflang-blocked")
        .headline("Translations that robots.txt disallows")
        .of_site()
        .text(
            "robots.txt disallows a page in another language that the page names.",
            "Search engines cannot see that it links back, and ignore the entry.",
            "Allow it, or take the entry out.",
        )
        .example("hreflang=de href=/de with Disallow: /de", "Allow: /de"),
    code("hreflang-outside-head")
        .headline("Translations that are named outside of the head")
        .text(
            "A link element with hreflang stands after the end of the head, which ends at the first element that does not belong there.",
            "Search engines ignore the entry.",
            "Put it into the head.",
        )
        .example("<body><link rel=alternate hreflang=de>", "<head><link rel=alternate hreflang=de>"),
    code("hreflang-sources-differ")
        .headline("Translations that HTML and headers name differently")
        .severity(Notice)
        .text(
            "The languages and URLs of the link elements of a page are not those of its Link headers.",
            "One of both is out of date.",
            "Name them in one place.",
        )
        .example("a link element for de, a Link header for fr", "link elements for both"),
];

pub(super) struct Hreflang;

impl Rule for Hreflang {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let alternates = page.alternates();
        if alternates.is_empty() {
            return;
        }
        entries(page, &alternates, findings);
        for (_, href, url, offset) in &alternates {
            if url.is_some() && !href.to_ascii_lowercase().starts_with("http") {
                let finding = Finding::of("hreflang-relative").value(href.as_str()).limit(url.as_deref());
                findings.add(offset.map(|offset| page.place(offset)).into_iter().fold(finding, Finding::at));
            }
        }
        let named: Vec<_> =
            alternates.iter().map(|(lang, _, url, _)| (lang.as_str(), url.as_deref())).collect();
        let own = without_fragment(page.url());
        set(&own, page.lang().as_deref(), &named).into_iter().for_each(|finding| findings.add(finding));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for page in site.records_of(|page| page.is(Indexable) && page.has_alternates()) {
            for url in targets(&page) {
                target(site, &page, url, findings);
            }
        }
        for sitemap in sitemaps(site) {
            for entry in sitemap.sitemap.iter().flat_map(|file| &file.translations) {
                of_entry(site, entry, findings);
            }
        }
        let with_alternates = site.records_of(|page| page.is(Html) && page.has_alternates());
        let pairs = with_alternates.chain(sitemaps(site)).flat_map(|answer| {
            let named = answer.translations().filter_map(|(page, alternate)| {
                let page = site.find(page)?.requested().filter(|page| page.is(Html))?;
                Some((page, site.find(&alternate.url)?.requested()?))
            });
            named.filter(|(page, other)| page != other).collect::<Vec<_>>()
        });
        site.each_one_way(pairs, |from, to| {
            let is_judged = from.is(Indexable) && to.is(Indexable);
            if is_judged && to.fault().is_none() && to.redirect().is_none() {
                findings.add(Finding::of("hreflang-no-return").url(&from.url()).target(&to.url()));
            }
        });
    }
}

/// The sitemaps of the site.
fn sitemaps(site: &Site) -> impl Iterator<Item = Answer<'_>> {
    site.records_of(|address| address.is_own() && address.kind() == Some(Kind::Sitemap))
}

/// Judges what an entry of a sitemap names, as far as the page does not name it itself.
fn of_entry(site: &Site, entry: &Translations, findings: &mut Findings) {
    let page = site.find(&entry.url).and_then(|found| found.requested()).filter(|page| page.is(Indexable));
    let Some(page) = page.and_then(|page| page.answer()) else { return };
    let of_page = page.html.as_ref().map_or(&[][..], |html| html.alternates.as_slice());
    for alternate in &entry.alternates {
        let is_told = of_page.iter().any(|found| found.lang == alternate.lang);
        if !is_told && !is_hreflang(&alternate.lang) {
            let finding = Finding::of("hreflang-invalid-code").url(&page.url).group(&alternate.lang);
            findings.add(finding.value(alternate.lang.as_str()));
        }
    }
    if of_page.is_empty() {
        let named: Vec<_> = entry
            .alternates
            .iter()
            .map(|alternate| (alternate.lang.as_str(), Some(alternate.url.as_str())))
            .collect();
        let lang = page.html.as_ref().and_then(|html| html.lang.as_deref());
        set(&page.url, lang, &named).into_iter().for_each(|finding| findings.add(finding.url(&page.url)));
    }
    let known = targets(&page);
    let urls: BTreeSet<&str> = entry.alternates.iter().map(|alternate| alternate.url.as_str()).collect();
    for url in urls.into_iter().filter(|url| *url != page.url && !known.contains(url)) {
        target(site, &page, url, findings);
    }
}

/// What is wrong with a set of languages and URLs that a page names, or a sitemap for it. `lang` is the language of the page.
fn set(own: &str, lang: Option<&str>, named: &[(&str, Option<&str>)]) -> Vec<Finding> {
    let mut found = Vec::new();
    let of_own = || named.iter().filter(|(_, url)| *url == Some(own));
    if of_own().next().is_none() {
        found.push(Finding::of("hreflang-no-self"));
    }
    let primaries = |(lang, _): &(&str, Option<&str>)| (*lang != DEFAULT).then(|| primary(lang));
    let languages: BTreeSet<String> = named.iter().filter_map(primaries).collect();
    if languages.len() > 1 && named.iter().all(|(lang, _)| *lang != DEFAULT) {
        found.push(Finding::of("hreflang-no-x-default").value(languages.into_iter().collect::<Vec<_>>()));
    }
    let mut by_lang: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut by_url: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (lang, url) in named.iter().filter_map(|(lang, url)| Some((*lang, (*url)?))) {
        by_lang.entry(lang).or_default().insert(url);
        if lang != DEFAULT {
            by_url.entry(url).or_default().insert(primary(lang));
        }
    }
    for (url, languages) in by_url.into_iter().filter(|(_, languages)| languages.len() > 1) {
        let languages = languages.into_iter().collect::<Vec<_>>();
        found.push(Finding::of("hreflang-several").target(url).value(languages));
    }
    for (lang, urls) in by_lang.into_iter().filter(|(_, urls)| urls.len() > 1) {
        let urls = urls.into_iter().collect::<Vec<_>>();
        found.push(Finding::of("hreflang-conflict").group(lang).value(urls));
    }
    let said: BTreeSet<String> = of_own().filter_map(primaries).collect();
    if let Some(lang) = lang.filter(|lang| !said.is_empty() && !said.contains(&primary(lang))) {
        let said = said.into_iter().collect::<Vec<_>>();
        found.push(Finding::of("hreflang-mismatch").value(lang).limit(said));
    }
    found
}

/// What is wrong with single entries, and what contradicts each other.
fn entries(page: &AuditedPage<'_>, alternates: &[Entry], findings: &mut Findings) {
    let mut sources: [BTreeSet<(&str, &str)>; 2] = Default::default();
    for (lang, _, url, offset) in alternates {
        let at = |code: &str| {
            offset.map(|offset| page.place(offset)).into_iter().fold(Finding::of(code), Finding::at)
        };
        if !is_hreflang(lang) {
            findings.add(at("hreflang-invalid-code").group(lang).value(lang.as_str()));
        }
        if offset.is_some_and(|offset| offset > page.end_of_head()) {
            findings.add(at("hreflang-outside-head"));
        }
        if let Some(url) = url {
            sources[usize::from(offset.is_none())].insert((lang, url));
        }
    }
    let [of_html, of_headers] = sources;
    if !of_html.is_empty() && !of_headers.is_empty() && of_html != of_headers {
        let differ = of_html.symmetric_difference(&of_headers).map(|(lang, url)| format!("{lang} {url}"));
        findings.add(Finding::of("hreflang-sources-differ").value(differ.collect::<Vec<_>>()));
    }
}

/// The other pages that a page names, each once.
fn targets<'a>(page: &'a Answer<'_>) -> BTreeSet<&'a str> {
    let alternates = page.html.iter().flat_map(|html| &html.alternates);
    alternates.map(|alternate| alternate.url.as_str()).filter(|url| *url != page.url).collect()
}

fn target(site: &Site, page: &Answer<'_>, url: &str, findings: &mut Findings) {
    let Some(named) = site.find(url) else { return };
    if named.is_own() && named.refused().is_some_and(|refused| refused.reason == "robots") {
        findings.add(Finding::of("hreflang-blocked").url(&page.url).target(url));
    }
    let Some(found) = named.requested() else { return };
    let told = |code: &str| Finding::of(code).url(&page.url).target(url);
    match (found.fault(), found.redirect()) {
        (Some(Fault::Unverified), _) => {}
        (Some(_), _) => findings.add(told("hreflang-non200").value(found.status())),
        (None, Some(redirect)) => {
            findings.add(told("hreflang-non200").value(found.status()).limit(redirect.url()));
        }
        (None, None) if found.is_noindex() => findings.add(told("hreflang-noindex")),
        (None, None) => {
            if let Some(other) = found.other_canonical() {
                findings.add(told("hreflang-noncanonical").value(other.url()));
            }
        }
    }
}
