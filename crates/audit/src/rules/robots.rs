//! What pages and links tell robots beyond noindex and nofollow.

use std::collections::HashMap;

use crate::code::Code;
use crate::code::PageClass::Indexable;
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::Site;

const GUIDE: &str = "Google Search Central: robots meta tag";

const fn code(name: &'static str) -> Code {
    Code::new("index", name).source(GUIDE)
}

const CODES: &[Code] = &[
    code("robots-conflict")
        .headline("Pages that ask both to be indexed and not to be")
        .text("A page says both index and noindex (or none), in meta elements or in `X-Robots-Tag`.", "Search engines follow the stricter one, which may not be meant.", "Keep one.")
        .example("<meta name=robots content=index> and X-Robots-Tag: noindex", "<meta name=robots content=index>"),
    code("nosnippet")
        .headline("Pages that forbid snippets").severity(Notice)
        .text("A page says nosnippet or max-snippet:0.", "Results show no text of it.", "Remove it if it is not meant.")
        .example("<meta name=robots content=nosnippet>", "<meta name=robots content=\"max-snippet:160\">"),
    code("noimageindex")
        .headline("Pages whose images may not be indexed").severity(Notice)
        .text("A page says noimageindex.", "Its images are not found.", "Remove it if it is not meant.")
        .example("<meta name=robots content=noimageindex>", "<meta name=robots content=\"max-image-preview:large\">"),
    code("only-nofollow-inlinks")
        .headline("Pages that are linked only with nofollow").of_site().judges(Indexable)
        .text("All links of other pages of the site to a page have `rel=nofollow`. It is not judged if the crawl ended early.", "Search engines may not find it.", "Take nofollow out.")
        .source("Google Search Central: qualify outbound links")
        .example("<a href=/about rel=nofollow> and no other link", "<a href=/about>"),
];

pub(super) struct RobotsRules;

impl Rule for RobotsRules {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let says = [
            ("robots-conflict", page.has_robots_conflict()),
            ("nosnippet", page.is_nosnippet()),
            ("noimageindex", page.is_noimageindex()),
        ];
        says.into_iter()
            .filter(|(_, is_said)| *is_said)
            .for_each(|(code, _)| findings.add(Finding::of(code)));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        if site.is_complete() {
            only_nofollow(site, findings);
        }
    }
}

/// Tells pages that are linked, and only with nofollow. Links in another spelling of the URL count, too.
fn only_nofollow(site: &Site, findings: &mut Findings) {
    let linked = || site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own());
    let is_judged = |number: u32| {
        let page = site.address(number);
        page.is(Indexable) && !page.is_start() && !page.is_redirect_target()
    };
    let marked = linked().filter(|target| target.is_followed().0);
    let mut pages: HashMap<u32, bool> =
        marked.filter_map(|target| Some((target.requested()?.number(), false))).collect();
    pages.retain(|number, _| is_judged(*number));
    for target in linked() {
        let Some(number) = target.requested().map(|page| page.number()) else { continue };
        let Some(is_followed) = pages.get_mut(&number).filter(|is_followed| !**is_followed) else { continue };
        *is_followed = target.links().any(|link| {
            let source = link.source();
            !link.nofollow() && source.kind() == Some(Kind::Page) && source.number() != number
        });
    }
    let mut only: Vec<u32> =
        pages.into_iter().filter(|(_, is_followed)| !is_followed).map(|(number, _)| number).collect();
    only.sort_unstable();
    for page in only.into_iter().map(|number| site.address(number)) {
        let others = || page.links().filter(|link| link.source() != page);
        let finding = site.told(Finding::of("only-nofollow-inlinks").url(&page.url()), others());
        if !finding.at.is_empty() {
            findings.add(finding);
        }
    }
}
