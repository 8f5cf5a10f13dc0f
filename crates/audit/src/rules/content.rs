//! Content: titles, descriptions, headings, texts, languages.

use std::collections::{BTreeMap, BTreeSet};

use super::language::{self, primary};
use crate::code::Code;
use crate::code::PageClass::{Content as C, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::measure::{Measure, Measured};
use crate::page::{AuditedPage, width};
use crate::record::HtmlRecord;
use crate::rule::Rule;
use crate::site::{Address, Site};
use xxhash_rust::xxh3::xxh3_128;

/// Texts with fewer words are alike by chance.
const MIN_DUPLICATE_WORDS: usize = 20;

const fn code(name: &'static str) -> Code {
    Code::new("content", name)
}

const CODES: &[Code] = &[
    code("title-missing")
        .headline("Pages without a title").severity(Error).judges(C)
        .text("A page has no title, or an empty one. Titles in SVG do not count.", "Results and tabs have no headline.", "Write one.")
        .source("WCAG 2.4.2").example("<head></head>", "<title>Hawk moths of Europe</title>"),
    code("title-short")
        .headline("Titles that are too short").judges(C)
        .text("The title has fewer characters than [title_min].", "It says little.", "Say what the page is about.")
        .source("Google Search Central: title links").example("<title>Home</title>", "<title>Hawk moths of Europe: a guide</title>"),
    code("title-long")
        .headline("Titles that are too long").judges(C)
        .text("The title has more characters than [title_max]; wide ones count twice.", "It is cut off.", "Shorten it, the important words first.")
        .source("Google Search Central: title links").example("<title>(80 characters)</title>", "<title>(50 characters)</title>"),
    code("title-duplicate")
        .headline("Pages that share a title").of_site().judges(C)
        .text("Two or more pages of one language have the same title, and are not translations of each other.", "They cannot be told apart.", "Give each its own title.")
        .source("Google Search Central: title links").example("<title>Shop</title> on two pages", "<title>Shop: boats</title>, <title>Shop: sails</title>"),
    code("title-multiple")
        .headline("Pages with several titles")
        .text("A page has more than one title outside of SVG and templates.", "Browsers take the first, search engines any.", "Keep one.")
        .source("HTML: the title element").example("<title>A</title><title>B</title>", "<title>A</title>"),
    code("description-missing")
        .headline("Pages without a description").judges(C)
        .text("The head has no description, or an empty one.", "Search engines make up a snippet.", "Write one.")
        .source("Google Search Central: snippets").example("<head><title>A</title></head>", "<meta name=description content=\"...\">"),
    code("description-short")
        .headline("Descriptions that are too short").judges(C)
        .text("The description has fewer characters than [description_min].", "It says little.", "Say what readers will find.")
        .source("Google Search Central: snippets").example("content=\"A page.\"", "content=\"(120 characters)\""),
    code("description-long")
        .headline("Descriptions that are too long").judges(C)
        .text("The description has more characters than [description_max]; wide ones count twice.", "It is cut off.", "Shorten it.")
        .source("Google Search Central: snippets").example("content=\"(300 characters)\"", "content=\"(120 characters)\""),
    code("description-duplicate")
        .headline("Pages that share a description").of_site().judges(C)
        .text("Two or more pages of one language have the same description, and are not translations of each other.", "They cannot be told apart.", "Give each its own.")
        .source("Google Search Central: snippets").example("the same on two pages", "one for each page"),
    code("description-multiple")
        .headline("Pages with several descriptions").judges(C)
        .text("The head has more than one description.", "One is taken by chance.", "Keep one.")
        .source("Google Search Central: snippets").example("two <meta name=description>", "one <meta name=description>"),
    code("h1-missing")
        .headline("Pages without a main heading").judges(C)
        .text("A page has no heading of level 1 with a text or the alternative text of an image.", "Readers do not hear what it is about.", "Add one.")
        .source("axe: page-has-heading-one").example("<h2>Moths</h2>", "<h1>Moths</h1>"),
    code("h1-multiple")
        .headline("Pages with several main headings").judges(C)
        .text("A page has more than one heading of level 1.", "Its subject is unclear.", "Keep one, and lower the others.")
        .source("axe: page-has-heading-one").example("<h1>A</h1><h1>B</h1>", "<h1>A</h1><h2>B</h2>"),
    code("heading-skip")
        .headline("Headings that skip a level")
        .text("A heading is more than one level deeper than the one before it.", "The outline breaks.", "Use the next level.")
        .source("WCAG 1.3.1").example("<h1>A</h1><h3>B</h3>", "<h1>A</h1><h2>B</h2>"),
    code("h1-long")
        .headline("Main headings that are too long").severity(Notice).judges(C)
        .text("The first heading of level 1 has more characters than [h1_max]; wide ones count twice.", "It is a sentence and no heading.", "Shorten it.")
        .source("editorial practice").example("<h1>(100 characters)</h1>", "<h1>(40 characters)</h1>"),
    code("h1-duplicate")
        .headline("Pages that share a main heading").severity(Notice).of_site().judges(C)
        .text("Two or more pages of one language have the same first heading of level 1, and are not translations of each other.", "They are hard to tell apart.", "Give each its own.")
        .source("editorial practice").example("<h1>News</h1> on two pages", "<h1>News of May</h1>, <h1>News of June</h1>"),
    code("heading-empty")
        .headline("Empty headings")
        .text("A heading that is not hidden has no text, no alternative text of an image, and no label.", "Screen readers announce a heading and say nothing.", "Fill it, or take it out.")
        .source("axe: empty-heading").example("<h2></h2>", "<h2>Prices</h2>"),
    code("description-is-title")
        .headline("Descriptions that repeat the title").severity(Notice).judges(C)
        .text("The description is the same as the title, but for letter case and white space.", "Results say the same twice.", "Say what readers will find.")
        .source("Google Search Central: snippets").example("<title>Boats</title><meta name=description content=Boats>", "<title>Boats</title><meta name=description content=\"...\">"),
    code("thin")
        .headline("Pages with little text").judges(C)
        .text("The own text of a page, without menus, has fewer words than [words_min].", "There is little to find.", "Say more, or merge pages.")
        .source("Google Search Central: helpful content").example("a paragraph", "an article"),
    code("exact-duplicate")
        .headline("Pages with the same text").of_site().judges(C)
        .text("Two or more pages have the same own text of 20 words or more, and are not translations of each other. All of them are told.", "They compete with each other.", "Merge them, or name a canonical URL.")
        .source("Google Search Central: duplicate URLs").example("/a and /b with one text", "/b with canonical /a"),
    code("lang-missing")
        .headline("Pages that do not state their language")
        .text("The html element has no `lang`, or an empty one.", "Screen readers use a wrong voice.", "Name the language.")
        .source("WCAG 3.1.1").example("<html>", "<html lang=en>"),
    code("lang-invalid")
        .headline("Languages that do not exist")
        .text("The `lang` of the html element is no tag of a language.", "Screen readers use a wrong voice.", "Use a tag of BCP 47.")
        .source("BCP 47").example("<html lang=english>", "<html lang=en>"),
    code("placeholder")
        .headline("Placeholder text").judges(Indexable)
        .text("A page has filler text (lorem ipsum) outside of code and quotations.", "It looks unfinished.", "Write the text.")
        .source("editorial practice").example("<p>Lorem ipsum dolor sit amet</p>", "<p>Hawk moths fly at dusk.</p>"),
    code("meta-in-body")
        .headline("Meta elements outside of the head")
        .text("A meta element with name or http-equiv stands behind the end of the head.", "Search engines ignore it.", "Move it into the head, or close what ended the head too early.")
        .source("HTML: the meta element").example("<body><meta name=robots content=noindex>", "<head><meta name=robots content=noindex></head>"),
];

pub(super) struct Content;

impl Rule for Content {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        titles(page, findings);
        descriptions(page, findings);
        headings(page, findings);
        findings.measure(Measure::new(Measured::Words, page.words() as u64));
        match page.lang() {
            None => findings.add(Finding::of("lang-missing")),
            Some(lang) if !language::is_valid(&lang) => findings.add(Finding::of("lang-invalid").value(lang)),
            Some(_) => {}
        }
        for offset in &page.facts().fillers {
            findings.add(Finding::of("placeholder").at(page.place(offset + 1)));
        }
        // A doctype with declarations ends the head of HTML, and not that of XML.
        for offset in page.facts().metas_in_body.iter().filter(|_| !page.is_xml()) {
            findings.add(Finding::of("meta-in-body").at(page.place(*offset)));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        duplicates(site, "title-duplicate", |html| html.title.as_deref(), findings);
        duplicates(site, "description-duplicate", |html| html.description.as_deref(), findings);
        duplicates(site, "h1-duplicate", |html| html.h1.as_deref(), findings);
        duplicates(site, "exact-duplicate", text_of, findings);
    }
}

fn titles(page: &AuditedPage<'_>, findings: &mut Findings) {
    let titles = &page.facts().titles;
    match page.title() {
        None => findings.add(Finding::of("title-missing")),
        Some(title) => {
            let place = titles.first().map(|title| page.place(title.offset));
            findings.measure(Measure::new(Measured::Title, width(title) as u64).at(place));
        }
    }
    if titles.len() > 1 {
        let finding = Finding::of("title-multiple").value(titles.len());
        findings.add(titles.iter().map(|title| page.place(title.offset)).fold(finding, Finding::at));
    }
}

fn descriptions(page: &AuditedPage<'_>, findings: &mut Findings) {
    let all: Vec<(String, u32)> = page.descriptions().collect();
    match all.iter().find(|(text, _)| !text.is_empty()) {
        None => findings.add(Finding::of("description-missing")),
        Some((text, offset)) => {
            let place = Some(page.place(*offset));
            findings.measure(Measure::new(Measured::Description, width(text) as u64).at(place.clone()));
            if page.title().is_some_and(|title| title.to_lowercase() == text.to_lowercase()) {
                findings.add(place.into_iter().fold(Finding::of("description-is-title"), Finding::at));
            }
        }
    }
    if all.len() > 1 {
        let finding = Finding::of("description-multiple").value(all.len());
        findings.add(all.iter().map(|(_, offset)| page.place(*offset)).fold(finding, Finding::at));
    }
}

fn headings(page: &AuditedPage<'_>, findings: &mut Findings) {
    let all = &page.facts().headings;
    let first: Vec<_> = all.iter().filter(|heading| heading.level == 1 && !heading.text.is_empty()).collect();
    if first.is_empty() {
        findings.add(Finding::of("h1-missing"));
    }
    let shown: Vec<_> = first.iter().filter(|heading| !heading.is_hidden).collect();
    if shown.len() > 1 {
        let finding = Finding::of("h1-multiple").value(shown.len());
        findings.add(shown.iter().map(|heading| page.place(heading.offset)).fold(finding, Finding::at));
    }
    if let Some(heading) = first.first() {
        let place = Some(page.place(heading.offset));
        findings.measure(Measure::new(Measured::H1, width(&heading.text) as u64).at(place));
    }
    let shown: Vec<_> = all.iter().filter(|heading| !heading.is_hidden).collect();
    for heading in shown.iter().filter(|heading| heading.text.is_empty() && !heading.is_named_otherwise) {
        findings.add(Finding::of("heading-empty").at(page.place(heading.offset)));
    }
    for pair in shown.windows(2).filter(|pair| pair[1].level > pair[0].level + 1) {
        let found = format!("h{} after h{}", pair[1].level, pair[0].level);
        findings.add(
            Finding::of("heading-skip").value(found).limit(pair[0].level + 1).at(page.place(pair[1].offset)),
        );
    }
}

/// The text of a page by which it is a duplicate of others.
fn text_of(html: &HtmlRecord) -> Option<&str> {
    (html.words >= MIN_DUPLICATE_WORDS).then_some(html.text_key.as_str())
}

/// Tells all pages that share a value, unless they are translations of each other. Pages of different languages do not share a title, but a
/// text that is the same is the same in any language.
fn duplicates(site: &Site, code: &str, value: fn(&HtmlRecord) -> Option<&str>, findings: &mut Findings) {
    let by_language = code != "exact-duplicate";
    let keys = site.pages(C).filter_map(|page| {
        let html = page.html.as_ref()?;
        let value = value(html).filter(|value| !value.is_empty())?;
        let lang =
            if by_language { primary(html.lang.as_deref().unwrap_or_default()) } else { String::new() };
        Some((xxh3_128(format!("{lang}\0{value}").as_bytes()), page.address()))
    });
    site.each_group(keys, |pages| {
        let shared = pages[0].answer();
        let shared = shared.as_ref().and_then(|page| value(page.html.as_ref()?)).unwrap_or_default();
        let translations = translations(site, pages);
        for (at, page) in pages.iter().enumerate() {
            let own = translations.get(&at);
            let is_own = |other: &usize| own.is_some_and(|own| own.contains(other));
            // All others but the translations: at most so many of the first ones are looked at.
            let Some(other) = (0..pages.len()).find(|other| *other != at && !is_own(other)) else { continue };
            let finding = Finding::of(code).url(&page.url()).target(&pages[other].url()).group(shared);
            findings.add(finding.value(pages.len() - own.map_or(0, BTreeSet::len)));
        }
    });
}

/// For each of these pages that has any, the numbers of those that are translations of it, as one of both says.
pub(super) fn translations(site: &Site, pages: &[Address<'_>]) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut translations: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (at, page) in pages.iter().enumerate().filter(|(_, page)| page.has_alternates()) {
        let Some(page) = page.answer() else { continue };
        for alternate in page.html.iter().flat_map(|html| &html.alternates) {
            let Some(target) = site.find(&alternate.url) else { continue };
            let other = pages.binary_search_by_key(&target.number(), |page| page.number());
            if let Some(other) = other.ok().filter(|other| *other != at) {
                translations.entry(at).or_default().insert(other);
                translations.entry(other).or_default().insert(at);
            }
        }
    }
    translations
}
