//! What makes pages slow, as far as it does not depend on the time of the audit.

use std::collections::BTreeSet;

use super::security::by_host;
use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings};
use crate::measure::{Measure, Measured};
use crate::page::{AuditedPage, resource_kind};
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::{Address, Site};

/// Smaller files fit into one packet, where compression saves nothing.
const MIN_COMPRESSED: u64 = 1_400;

const fn code(name: &'static str) -> Code {
    Code::new("performance", name)
}

const CODES: &[Code] = &[
    code("page-heavy")
        .headline("Heavy pages")
        .text("The HTML of a page has more bytes, decoded, than [page_bytes_max].", "It is slow, and search engines may read only its beginning.", "Split it, or move data out of it.")
        .source("Google Search Central: file size limits").example("5 MB", "100 kB"),
    code("no-compression")
        .headline("Answers that are not compressed").of_site().judges(Any)
        .text("HTML, a style sheet, a script or an SVG of the site of 1,400 bytes or more is sent without compression.", "It takes several times as long.", "Compress it with br or gzip.")
        .source("Lighthouse: text compression").example("no Content-Encoding", "Content-Encoding: gzip"),
    code("no-cache")
        .headline("Files that are fetched again and again").severity(Notice).of_site().judges(Any)
        .text("A script, style sheet or image of the site may not be kept for [asset_ttl_min] seconds.", "It is fetched again and again.", "Send a long max-age, and change the name with the content.")
        .source("Lighthouse: cache lifetimes").example("no Cache-Control", "Cache-Control: max-age=31536000"),
    code("dom-large")
        .headline("Pages with too many elements")
        .text("A page has more elements than [dom_max].", "It is slow to lay out.", "Show less at once.")
        .source("Lighthouse: DOM size").example("5,000 elements", "800 elements"),
    code("too-many-requests")
        .headline("Pages that load too many files")
        .text("A page loads more different files than [requests_max].", "It is slow to load.", "Merge them, or load them when they are needed.")
        .source("Lighthouse: requests").example("250 files", "40 files"),
];

pub(super) struct Performance;

impl Rule for Performance {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        findings.measure(Measure::new(Measured::PageBytes, page.page().response().body.len() as u64));
        findings.measure(Measure::new(Measured::Elements, page.facts().elements as u64));
        // Browsers load one of the candidates of an image, so those of a srcset do not count.
        let is_loaded =
            |kind| resource_kind(kind).is_some() && kind != huntsman_html::ResourceKind::ImageCandidate;
        let resources = page
            .page()
            .resources()
            .filter(|found| !found.in_noscript && is_loaded(found.kind))
            .map(|found| found.url);
        let styles =
            page.link_elements().filter(|link| link.has_rel("stylesheet")).filter_map(|link| link.href);
        let loaded: BTreeSet<String> =
            resources.chain(styles).filter_map(|href| page.resolved(href)).collect();
        findings.measure(Measure::new(Measured::Requests, loaded.len() as u64));
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let is_own = |address: Address<'_>| {
            matches!(address.kind(), Some(Kind::Page | Kind::Resource)) && address.status() == Some(200)
        };
        let answers = || {
            site.records_of(is_own).filter(|answer| {
                let is_whole = !answer.is_head && answer.bytes >= MIN_COMPRESSED;
                is_whole && is_text(answer.content_type.as_deref().unwrap_or_default())
            })
        };
        by_host("no-compression", answers, |answer| answer.wire_bytes >= answer.bytes, findings);
        let is_asset = |kind| matches!(kind, EdgeKind::Script | EdgeKind::Style | EdgeKind::Image);
        for target in site.targets(is_asset) {
            let answer = target.requested().filter(|found| found.kind() == Some(Kind::Resource));
            let Some(answer) = answer.filter(|found| found.status() == Some(200)).and_then(Address::answer)
            else {
                continue;
            };
            let min = site.limits().audit_asset_ttl_min;
            if answer.max_age.is_none_or(|age| age < min) {
                let finding = Finding::of("no-cache").url(&target.url()).value(answer.max_age).limit(min);
                let references = target.references().filter(|found| is_asset(found.kind()));
                findings.add(site.told(finding, references));
            }
        }
    }
}

fn is_text(media_type: &str) -> bool {
    matches!(
        media_type,
        "text/html"
            | "application/xhtml+xml"
            | "text/css"
            | "text/javascript"
            | "application/javascript"
            | "image/svg+xml"
    )
}
