//! Data for machines: what a page tells of itself to programs that show it elsewhere.

use std::collections::{HashMap, HashSet};

use serde::de::IgnoredAny;

use super::security::by_host;
use crate::code::Code;
use crate::code::PageClass::{Any, Content, Html, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings, Place};
use crate::page::{AuditedPage, without_fragment};
use crate::record::{Kind, NamedFile, NamedFor};
use crate::rule::Rule;
use crate::site::{Address, Fault, Site, authority};

/// Feeds whose state is remembered while pages are read.
const MAX_FEEDS: usize = 10_000;

const fn code(name: &'static str) -> Code {
    Code::new("data", name)
}

const CODES: &[Code] = &[
    code("jsonld-invalid")
        .headline("JSON-LD that is not valid JSON")
        .severity(Error)
        .text(
            "A script with the type application/ld+json has content that is no JSON.",
            "Search engines ignore all of it.",
            "Correct it at the place that the issue names.",
        )
        .source("JSON-LD 1.1, RFC 8259")
        .example("{\"name\": \"Moths\",}", "{\"name\": \"Moths\"}"),
    code("og-missing")
        .headline("Pages without data for previews")
        .severity(Notice)
        .judges(Content)
        .text(
            "A page has no `og:title` or no `og:image`.",
            "Where the page is shared, its preview is guessed or has no image.",
            "Add both.",
        )
        .source("Open Graph protocol")
        .example("<title>Moths</title> alone", "<meta property=og:title content=Moths>"),
    code("og-url-mismatch")
        .headline("Pages whose data for previews name another URL")
        .severity(Notice)
        .judges(Indexable)
        .text(
            "The `og:url` of a page is neither its URL nor its canonical URL.",
            "Shares of the page count for another one.",
            "Name the canonical URL.",
        )
        .source("Open Graph protocol")
        .example(
            "<meta property=og:url content=\"https://example.org/\"> on /moths",
            "content=\"https://example.org/moths\"",
        ),
    code("og-image-broken")
        .headline("Broken images for previews")
        .of_site()
        .judges(Any)
        .text(
            "The `og:image` of a page answers 4xx or 5xx (other than 401, 403, 406, 407, 429, 451, 503, 999), or not at all.",
            "Where the page is shared, its preview has no image.",
            "Correct the address, or put the file there.",
        )
        .source("Open Graph protocol")
        .example(
            "<meta property=og:image content=\"https://example.org/gone.png\">  (404)",
            "content=\"https://example.org/moth.png\"  (200)",
        ),
    code("feed-invalid")
        .headline("Feeds that programs cannot read")
        .of_site()
        .judges(Any)
        .text(
            "A feed that a page names (`link rel=alternate` with the type of RSS, Atom or JSON Feed) answers 4xx or 5xx or not at all; or one of the site is no feed, no well-formed XML, or no JSON Feed.",
            "Readers who follow the site get nothing.",
            "Correct the feed, or its address.",
        )
        .source("RSS 2.0, RFC 4287, JSON Feed 1.1")
        .example("<title>Moths&nbsp;&amp; more</title> in RSS", "<title>Moths &amp; more</title>"),
    code("icon-missing")
        .headline("Pages without an icon")
        .severity(Notice)
        .of_site()
        .text(
            "A page names no icon (`link rel=icon`), and its host has no /favicon.ico.",
            "Tabs, bookmarks and results show an empty place, and each browser asks for the file in vain.",
            "Add a link to an icon, or put the file there.",
        )
        .source("HTML: link type icon")
        .example("no link, /favicon.ico -> 404", "<link rel=icon href=/icon.svg>"),
];

pub(super) struct Data;

impl Rule for Data {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        json_ld(page, findings);
        let missing: Vec<&str> = ["og:title", "og:image"]
            .into_iter()
            .filter(|name| !page.properties(name).any(|(content, _)| !content.trim().is_empty()))
            .collect();
        if !missing.is_empty() {
            findings.add(Finding::of("og-missing").value(missing));
        }
        let own = without_fragment(page.url());
        for (content, offset) in page.properties("og:url") {
            let Some(url) = page.resolved(content.trim()) else { continue };
            let is_canonical = page.canonicals().iter().any(|canonical| canonical.url.as_ref() == Some(&url));
            if url != own && !is_canonical && !content.trim().is_empty() {
                findings.add(
                    Finding::of("og-url-mismatch").target(&url).limit(own.as_str()).at(page.place(offset)),
                );
            }
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        named_files(site, findings);
        icons(site, findings);
    }
}

/// What is wrong with a file that a page names for programs, if it is known.
fn file_fault(site: &Site, file: &NamedFile) -> Option<String> {
    let end = site.find(&file.url)?.resolve();
    let crate::site::End::At(found) = end.end else { return None };
    let answer = found.answer()?;
    match found.fault() {
        Some(Fault::Unverified | Fault::Timeout | Fault::Server(503)) if !found.is_own() => None,
        Some(Fault::Unverified) => None,
        Some(_) => Some(match (answer.status, &answer.detail) {
            (Some(status), _) => status.to_string(),
            (None, detail) => detail.clone().unwrap_or_default(),
        }),
        // What is not of the site was looked at without its content.
        None if file.named_for == NamedFor::Preview || !found.is_own() => None,
        None if found.is_html() => Some("it is HTML".to_owned()),
        None => answer.feed_fault.clone(),
    }
}

/// Files for programs that cannot be had or read, with the pages that name them.
fn named_files(site: &Site, findings: &mut Findings) {
    let mut feeds: HashMap<String, Option<String>> = HashMap::new();
    for page in site.pages(Html) {
        for file in page.html.iter().flat_map(|html| &html.files) {
            // The pages of a site name the same few feeds.
            let fault = match file.named_for {
                NamedFor::Feed if feeds.len() < MAX_FEEDS || feeds.contains_key(&file.url) => {
                    feeds.entry(file.url.clone()).or_insert_with(|| file_fault(site, file)).clone()
                }
                _ => file_fault(site, file),
            };
            let Some(fault) = fault else { continue };
            let code = match file.named_for {
                NamedFor::Preview => "og-image-broken",
                NamedFor::Feed => "feed-invalid",
            };
            let place = Place {
                line: file.line,
                column: file.column,
                page: Some(page.url.clone()),
                ..Place::default()
            };
            findings.add(Finding::of(code).url(&file.url).value(fault).at(place));
        }
    }
}

/// Pages without an icon, of hosts that have none at the usual place.
fn icons(site: &Site, findings: &mut Findings) {
    let is_missing = |address: Address<'_>| {
        address.kind() == Some(Kind::Icon) && matches!(address.fault(), Some(Fault::Client(_)))
    };
    let lacking: HashSet<String> =
        site.records_of(is_missing).map(|icon| authority(&icon.url).to_owned()).collect();
    if lacking.is_empty() {
        return;
    }
    let pages = || site.pages(Html).filter(|page| lacking.contains(authority(&page.url)));
    by_host("icon-missing", pages, |page| page.html.as_ref().is_some_and(|html| !html.has_icon), findings);
}

fn json_ld(page: &AuditedPage<'_>, findings: &mut Findings) {
    let text = page.page().scanned().1;
    for span in &page.facts().semantics.json_ld {
        if let Err(error) = read_json(span.of(text)) {
            findings.add(Finding::of("jsonld-invalid").value(error.to_string()).at(page.place(span.start)));
        }
    }
}

/// Reads JSON-LD. Nothing at all is no fault.
fn read_json(text: &str) -> Result<(), serde_json::Error> {
    let text = json_ld_text(text);
    if text.is_empty() { Ok(()) } else { serde_json::from_str::<IgnoredAny>(text).map(|_| ()) }
}

/// JSON-LD without the comments and CDATA sections that old templates put around scripts.
pub(crate) fn json_ld_text(text: &str) -> &str {
    let mut text = text.trim();
    for (start, end) in
        [("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("/*<![CDATA[*/", "/*]]>*/"), ("<![CDATA[", "]]>")]
    {
        text = text.strip_prefix(start).unwrap_or(text).trim();
        text = text.strip_suffix(end).unwrap_or(text).trim();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_strictly_as_the_standard_says() {
        for text in [
            "{}",
            " [{\"a\": 1}]\n",
            "<!-- {} -->",
            "//<![CDATA[\n{}\n//]]>",
            "  ",
            "{\"a\": \"\\u00e9</b>\"}",
        ] {
            assert!(read_json(text).is_ok(), "{text}");
        }
        for text in
            ["{\"a\": 1,}", "{'a': 1}", "{\"a\": 1} {}", "{", "{\"a\": \"line\nbreak\"}", "{\"a\": 1};"]
        {
            assert!(read_json(text).is_err(), "{text}");
        }
    }
}
