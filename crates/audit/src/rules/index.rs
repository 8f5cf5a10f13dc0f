//! What search engines may index: robots directives, canonical URLs, sitemaps, depth.

use std::collections::{BTreeSet, HashSet};

use crate::code::Code;
use crate::code::PageClass::{Any, Html, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::{Address, Answer, Fault, Site};

const fn code(name: &'static str) -> Code {
    Code::new("index", name)
}

const CODES: &[Code] = &[
    code("noindex")
        .headline("Pages that ask not to be indexed").severity(Notice)
        .text("A page says noindex or none, in a meta element or in `X-Robots-Tag`.", "Search engines leave it out.", "Remove it if it is not meant.")
        .source("Google Search Central: robots meta tag").example("<meta name=robots content=noindex>", "<meta name=robots content=index>"),
    code("nofollow-page")
        .headline("Pages whose links are not followed").severity(Notice)
        .text("A page says nofollow or none for all its links.", "Its links lead search engines nowhere.", "Remove it if it is not meant.")
        .source("Google Search Central: robots meta tag").example("<meta name=robots content=nofollow>", "<meta name=robots content=index>"),
    code("internal-nofollow")
        .headline("Internal links with nofollow").severity(Notice).of_site().judges(Any)
        .text("A link within the site has `rel=nofollow`.", "The value of the link is lost.", "Take the rel out.")
        .source("Google Search Central: qualify outbound links").example("<a href=/about rel=nofollow>", "<a href=/about>"),
    code("canonical-missing")
        .headline("Pages without a canonical URL")
        .text("A page that may be indexed has no canonical URL, neither in the HTML nor in a `Link` header.", "Search engines guess which of several URLs is meant.", "Name the URL of the page itself.")
        .source("RFC 6596").example("<head><title>A</title></head>", "<link rel=canonical href=\"https://example.org/a\">"),
    code("canonical-multiple")
        .headline("Pages with several canonical URLs").severity(Error)
        .text("A page names two different canonical URLs, in the HTML or in the headers.", "Search engines ignore both.", "Keep one.")
        .source("Google Search Central: canonical URLs").example("<link rel=canonical href=/a><link rel=canonical href=/b>", "<link rel=canonical href=\"https://example.org/a\">"),
    code("canonical-mismatch")
        .headline("Canonical URLs that contradict each other")
        .text("The canonical URL in the HTML differs from that in the headers.", "Search engines cannot tell which one is meant.", "State the same in both, or only one.")
        .source("Google Search Central: canonical URLs").example("Link: </b>; rel=canonical  and  <link rel=canonical href=/a>", "only one of them"),
    code("canonical-relative")
        .headline("Relative canonical URLs")
        .text("The address of a canonical URL is not absolute.", "A copy of the page names itself.", "Write it with scheme and host.")
        .source("Google Search Central: canonical URLs").example("<link rel=canonical href=/a>", "<link rel=canonical href=\"https://example.org/a\">"),
    code("canonical-to-redirect")
        .headline("Canonical URLs that redirect").severity(Error).of_site()
        .text("The canonical URL answers with a redirect.", "Search engines ignore it.", "Name the final URL.")
        .source("Google Search Central: canonical URLs").example("canonical -> 301", "canonical -> 200"),
    code("canonical-to-error")
        .headline("Canonical URLs that do not answer").severity(Error).of_site()
        .text("The canonical URL answers 4xx or 5xx, or not at all.", "Search engines ignore it.", "Name a page that is there.")
        .source("Google Search Central: canonical URLs").example("canonical -> 404", "canonical -> 200"),
    code("canonical-to-noindex")
        .headline("Canonical URLs that may not be indexed").of_site()
        .text("The canonical URL is a page that says noindex.", "Both pages may vanish from the index.", "Decide for one of both.")
        .source("Google Search Central: canonical URLs").example("canonical -> noindex", "canonical -> index"),
    code("canonical-chain")
        .headline("Canonical URLs that name yet another page").of_site()
        .text("The page that is named as canonical names another one.", "Search engines may ignore both.", "Name the last one.")
        .source("Google Search Central: canonical URLs").example("/a -> /b -> /c", "/a -> /c"),
    code("orphan")
        .headline("Pages that no page links to").of_site().judges(Indexable)
        .text("A page that may be indexed stands in a sitemap or in a server log (`--log`), but no other page links to it. It is not judged if the crawl ended early.", "Readers do not find it.", "Link to it, or take it out of the sitemap.")
        .source("Google Search Central: crawlable links").example("only in sitemap.xml", "linked from a menu"),
    code("dead-end")
        .headline("Pages without a way out").judges(Indexable)
        .text("A page has no link to any other URL.", "Readers are stuck.", "Add navigation.")
        .source("Google Search Central: crawlable links").example("<main>text</main>", "<nav><a href=\"/\">Home</a></nav>"),
    code("too-deep")
        .headline("Pages too many clicks away").of_site().judges(Indexable)
        .text("A page is more clicks away from the start URLs than [depth_max].", "Search engines crawl such pages rarely.", "Link to it from higher up.")
        .source("Google Search Central: site structure").example("start -> a -> b -> c -> d -> e", "start -> e"),
    code("noindex-in-sitemap")
        .headline("Sitemap entries that may not be indexed").of_site().judges(Any)
        .text("A sitemap lists a page that says noindex.", "The signals contradict each other.", "Take it out of the sitemap, or allow indexing.")
        .source("sitemaps.org").example("<loc> of a noindex page", "<loc> of pages to index"),
    code("blocked-in-sitemap")
        .headline("Sitemap entries that robots.txt disallows").of_site().judges(Any)
        .text("A sitemap lists a URL that robots.txt disallows.", "The signals contradict each other.", "Take it out of the sitemap, or allow it.")
        .source("sitemaps.org").example("<loc> under Disallow", "<loc> that is allowed"),
    code("noncanonical-in-sitemap")
        .headline("Sitemap entries that name another page as canonical").of_site().judges(Any)
        .text("A sitemap lists a page whose canonical URL is another one.", "The signals contradict each other.", "List the canonical URL.")
        .source("sitemaps.org").example("<loc> of a copy", "<loc> of the canonical URL"),
    code("non200-in-sitemap")
        .headline("Sitemap entries that do not answer 200").severity(Error).of_site().judges(Any)
        .text("A sitemap lists a URL that does not answer 200; redirects count, too.", "Search engines crawl for nothing.", "List final URLs that answer 200.")
        .source("sitemaps.org").example("<loc> that answers 404", "<loc> that answers 200"),
    code("conflicting-follow")
        .headline("Pages linked both with and without nofollow").of_site().judges(Indexable)
        .text("Links of other pages of the site lead to a page both with and without `rel=nofollow`.", "The signals contradict each other.", "Take nofollow out.")
        .source("Google Search Central: qualify outbound links").example("<a href=/a rel=nofollow>  and  <a href=/a>", "<a href=/a>"),
    code("pagination-rel")
        .headline("Broken series of pages").of_site()
        .text("A target of `rel=next` or `rel=prev` does not point back, is no page, says noindex, or is not linked; or there are two targets.", "The series breaks.", "Pair the elements, and link the pages.")
        .source("HTML: link types").example("page 1: rel=next page 2; page 2: nothing", "page 2: rel=prev page 1"),
];

pub(super) struct Index;

impl Rule for Index {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        if page.is_noindex() {
            findings.add(Finding::of("noindex"));
        }
        if page.is_nofollow() {
            findings.add(Finding::of("nofollow-page"));
        }
        canonicals(page, findings);
        let own = crate::page::without_fragment(page.url());
        let leads_on =
            page.page().anchors().filter_map(|link| page.resolved(link.href)).any(|url| url != own);
        if !leads_on {
            findings.add(Finding::of("dead-end"));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for target in site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own()) {
            follows(site, target, findings);
        }
        for page in site.records_of(|page| page.is(Html) && page.other_canonical().is_some()) {
            canonical_target(&page, findings);
        }
        for page in site.records_of(|page| page.is(Html) && page.is_of_series()) {
            series(site, &page, findings);
        }
        // Pages to which links lead in another spelling of their URLs.
        let others: HashSet<u32> = site
            .addresses()
            .filter(|address| address.is_linked() && !address.is_answered())
            .filter_map(|address| Some(address.requested()?.number()))
            .collect();
        for page in site.addresses().filter(|address| address.is(Indexable)) {
            reachable(site, page, others.contains(&page.number()), findings);
        }
        for listed in site.addresses().filter(|address| address.is_listed()) {
            in_sitemap(listed, findings);
        }
    }
}

fn canonicals(page: &AuditedPage<'_>, findings: &mut Findings) {
    let canonicals = page.canonicals();
    if canonicals.is_empty() && !page.is_noindex() {
        findings.add(Finding::of("canonical-missing"));
    }
    let place = |offset: Option<u32>| offset.map(|offset| page.place(offset));
    if page.has_several_canonicals() {
        let hrefs: Vec<&str> = canonicals.iter().map(|canonical| canonical.href.as_str()).collect();
        let finding = Finding::of("canonical-multiple").value(hrefs);
        findings.add(
            canonicals.iter().filter_map(|canonical| place(canonical.offset)).fold(finding, Finding::at),
        );
        return;
    }
    let in_html = canonicals.iter().find(|canonical| canonical.offset.is_some());
    let in_header = canonicals.iter().find(|canonical| canonical.offset.is_none());
    if let (Some(html), Some(header)) = (in_html, in_header)
        && html.url != header.url
    {
        findings.add(Finding::of("canonical-mismatch").value(html.href.as_str()).limit(header.href.as_str()));
    }
    for canonical in canonicals {
        let is_absolute = canonical.href.to_ascii_lowercase().starts_with("http");
        if !is_absolute && canonical.url.is_some() {
            let finding = Finding::of("canonical-relative")
                .value(canonical.href.as_str())
                .limit(canonical.url.as_deref());
            findings.add(place(canonical.offset).into_iter().fold(finding, Finding::at));
        }
    }
}

fn canonical_target(page: &Answer<'_>, findings: &mut Findings) {
    let Some(target) = page.address().other_canonical().and_then(|target| target.requested()) else { return };
    let Some(url) = page.html.as_ref().and_then(|html| html.canonical.as_ref()) else { return };
    let told = |code: &str| Finding::of(code).url(&page.url).target(url);
    let found = match target.fault() {
        Some(Fault::Unverified) => return,
        Some(_) => told("canonical-to-error").value(target.status()),
        None => match (target.redirect(), target.other_canonical()) {
            (Some(redirect), _) => told("canonical-to-redirect").value(redirect.url()),
            _ if target.is_noindex() => told("canonical-to-noindex"),
            (None, Some(next)) => told("canonical-chain").value(next.url()),
            _ => return,
        },
    };
    findings.add(found);
}

fn follows(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let (has_nofollow, has_follow) = target.is_followed();
    if !has_nofollow {
        return;
    }
    let is_other = |page: Address<'_>| page.kind() == Some(Kind::Page) && Some(page) != target.requested();
    let marked = || target.links().filter(|link| link.nofollow() && is_other(link.source()));
    let told = |code: &str| site.told(Finding::of(code).url(&target.url()), marked());
    findings.add(told("internal-nofollow"));
    if has_follow && target.requested().is_some_and(|answered| answered.is(Indexable)) {
        findings.add(told("conflicting-follow"));
    }
}

fn reachable(site: &Site, page: Address<'_>, is_spelled_otherwise: bool, findings: &mut Findings) {
    let is_found = is_spelled_otherwise || page.is_linked() || page.is_redirect_target();
    let is_in_log = page.log_hits().is_some_and(|[hits, _]| hits > 0);
    if site.is_complete() && (page.is_listed() || is_in_log) && !page.is_start() && !is_found {
        let finding = Finding::of("orphan").url(&page.url());
        findings.add(if page.is_listed() { finding } else { finding.value("only in server logs") });
    }
    let max = site.limits().audit_depth_max;
    if let Some(depth) = page.depth().filter(|depth| *depth > max) {
        findings.add(Finding::of("too-deep").url(&page.url()).value(depth).limit(max));
    }
}

fn in_sitemap(listed: Address<'_>, findings: &mut Findings) {
    let told = |code: &str| {
        let sitemap = listed.references().find(|found| found.kind() == EdgeKind::Sitemap);
        let sitemap = sitemap.map(|found| found.source().url()).unwrap_or_default();
        Finding::of(code).url(&listed.url()).target(&sitemap)
    };
    if let Some(refused) = listed.refused().filter(|refused| refused.reason == "robots") {
        return findings.add(told("blocked-in-sitemap").value(refused.detail));
    }
    let Some(page) = listed.requested().filter(|page| page.kind() == Some(Kind::Page)) else { return };
    if page.fault() == Some(Fault::Unverified) && page.status().is_none() {
        return;
    }
    if page.status() != Some(200) {
        let said: serde_json::Value = match page.status() {
            Some(status) => status.into(),
            None => page.answer().and_then(|answer| answer.detail.clone()).into(),
        };
        return findings.add(told("non200-in-sitemap").value(said));
    }
    if page.is_noindex() {
        findings.add(told("noindex-in-sitemap"));
    }
    if let Some(other) = page.other_canonical().filter(|_| page.is_html()) {
        findings.add(told("noncanonical-in-sitemap").value(other.url()));
    }
}

fn series(site: &Site, page: &Answer<'_>, findings: &mut Findings) {
    let Some(html) = &page.html else { return };
    for (rel, targets, is_next) in [("next", &html.next, true), ("prev", &html.prev, false)] {
        let distinct: BTreeSet<&String> = targets.iter().collect();
        let told =
            |why: &str| Finding::of("pagination-rel").url(&page.url).value(format!("rel={rel}: {why}"));
        if distinct.len() > 1 {
            findings.add(told("there are two targets"));
            continue;
        }
        let Some(target) = distinct.first() else { continue };
        let why = series_fault(site, page, target, is_next);
        if let Some(why) = why {
            findings.add(told(why).target(target));
        }
    }
}

fn series_fault(site: &Site, page: &Answer<'_>, target: &str, is_next: bool) -> Option<&'static str> {
    let found = site.get(target)?;
    match found.address().fault() {
        Some(Fault::Unverified) => return None,
        Some(_) => return Some("the target is no page"),
        None if found.redirect.is_some() => return Some("the target redirects"),
        None => {}
    }
    let html = found.html.as_ref()?;
    let back = if is_next { &html.prev } else { &html.next };
    if html.noindex {
        Some("the target says noindex")
    } else if !back.contains(&page.url) {
        Some("the target does not point back")
    } else if !page.address().edges().iter().any(|edge| edge.kind == EdgeKind::Link && edge.to == target) {
        Some("no link of the page leads to the target")
    } else {
        None
    }
}
