//! What makes pages slow, as far as it does not depend on the time of the audit.

use std::collections::BTreeSet;

use super::security::by_host;
use crate::code::Code;
use crate::code::PageClass::{Any, Html};
use crate::code::Severity::Notice;
use crate::finding::{Finding, Findings};
use crate::measure::{Measure, Measured};
use crate::page::{AuditedPage, resource_kind};
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::{Address, End, MAX_WEIGHT, Resolution, Site};

/// Smaller files fit into one packet, where compression saves nothing.
const MIN_COMPRESSED: u64 = 1_400;

/// Elements that may be open at once (Lighthouse's limit).
const MAX_DEPTH: usize = 32;

/// Bytes on the wire that a script or a style sheet may have.
const MAX_FILE: u64 = 500_000;

const fn code(name: &'static str) -> Code {
    Code::new("performance", name)
}

const CODES: &[Code] = &[
    code("ttfb-slow")
        .headline("Pages whose first byte comes late").of_site()
        .text("The first byte of a page comes more than [ttfb_max_ms] ms after the request, and does so again when it is asked for a second time, when its host has nothing else to do for the crawl. At most 1,000 pages are asked for twice.", "Nothing is shown until it comes.", "Look for what the server waits for; keep answers that are made slowly.")
        .source("web.dev: time to first byte").example("2,300 ms, and 1,900 ms", "150 ms"),
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
    code("resource-redirect")
        .headline("Files that are loaded through a redirect").severity(Notice).of_site().judges(Any)
        .text("A page loads a script, style sheet, image, frame or medium from a URL of the site that redirects once. More redirects are `redirect-chain`.", "Each load waits for two answers.", "Name the final URL.")
        .source("Google Search Central: redirects").example("<script src=/app.js>  (301 to /app.2.js)", "<script src=/app.2.js>"),
    code("js-large")
        .headline("Large scripts").severity(Notice).of_site().judges(Any)
        .text("A script of the site has more than 500,000 bytes on the wire.", "It is slow to load and to start.", "Split it, load parts when they are needed, or compress it.")
        .source("Lighthouse: network payloads").example("900 kB", "150 kB"),
    code("css-large")
        .headline("Large style sheets").severity(Notice).of_site().judges(Any)
        .text("A style sheet of the site has more than 500,000 bytes on the wire.", "Nothing is shown until it is there.", "Leave out what no page uses, or compress it.")
        .source("Lighthouse: network payloads").example("900 kB", "50 kB"),
    code("page-weight")
        .headline("Pages that load too many bytes").of_site()
        .text("The HTML of a page and the scripts, style sheets and images that it loads from the site have more than 3,000,000 bytes on the wire. Of the candidates of an image none counts, and neither do audio and video.", "It is slow to load, and costs readers their data volume.", "Make the largest file smaller, which the issue names, or load it when it is needed.")
        .source("Lighthouse: total byte weight").example("40 photos of 200 kB each", "40 photos of 30 kB each"),
    code("dom-deep")
        .headline("Pages whose elements are nested too deep").severity(Notice)
        .text("More than 32 elements are open at once, from the body on.", "It is slow to style and to lay out.", "Leave out elements that only wrap others.")
        .source("Lighthouse: DOM size").example("40 div in each other", "12 div in each other"),
    code("render-blocking")
        .headline("Scripts that a page waits for").severity(Notice)
        .text("A script of the head has a src, and neither async, defer nor type=module.", "Nothing is shown until it is there and has run.", "Add defer.")
        .source("Lighthouse: render-blocking requests").example("<head><script src=/app.js>", "<head><script src=/app.js defer>"),
];

pub(super) struct Performance;

impl Rule for Performance {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        findings.measure(Measure::new(Measured::PageBytes, page.page().response().body.len() as u64));
        let semantics = &page.facts().semantics;
        if semantics.depth > MAX_DEPTH {
            findings.add(Finding::of("dom-deep").value(semantics.depth).limit(MAX_DEPTH));
        }
        for offset in &semantics.blocking_scripts {
            findings.add(Finding::of("render-blocking").at(page.place(*offset)));
        }
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
        for target in site.targets(EdgeKind::is_resource) {
            redirect(site, target, findings);
            large(site, target, findings);
        }
        slow(site, findings);
        for (page, bytes, largest) in site.heavy_pages() {
            let finding = Finding::of("page-weight").url(&page.url()).value(bytes).limit(MAX_WEIGHT);
            findings.add(match largest {
                Some(file) => finding.target(&file.url()),
                None => finding,
            });
        }
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

fn slow(site: &Site, findings: &mut Findings) {
    let max = site.limits().audit_ttfb_max_ms;
    let is_slow_again = |address: Address<'_>| address.second_ttfb_ms().is_some_and(|time| time > max);
    let pages = site.records_of(|address| address.is(Html) && is_slow_again(address));
    for page in pages.filter(|page| page.ttfb_ms > max) {
        let again = page.address().second_ttfb_ms().unwrap_or(page.ttfb_ms);
        findings.add(Finding::of("ttfb-slow").url(&page.url).value(page.ttfb_ms.min(again)).limit(max));
    }
}

fn redirect(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let Resolution { hops, end } = target.resolve();
    let (&[hop], End::At(answered)) = (hops.as_slice(), end) else { return };
    let is_own = hop.kind().is_some_and(|kind| kind != Kind::External);
    if is_own && answered.fault().is_none() {
        let references = target.references().filter(|found| found.kind().is_resource());
        let finding = Finding::of("resource-redirect").url(&target.url()).target(&answered.url());
        findings.add(site.told(finding.value(hop.status()), references));
    }
}

fn large(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let kinds = [(EdgeKind::Script, "js-large"), (EdgeKind::Style, "css-large")];
    for (kind, code) in kinds.into_iter().filter(|(kind, _)| target.is_referred_by(|found| found == *kind)) {
        let answer = target.requested().filter(|found| found.kind() == Some(Kind::Resource));
        let answer = answer.filter(|found| found.status() == Some(200)).and_then(Address::answer);
        if let Some(answer) = answer.filter(|answer| answer.wire_bytes > MAX_FILE) {
            let finding = Finding::of(code).url(&target.url()).value(answer.wire_bytes).limit(MAX_FILE);
            findings.add(site.told(finding, target.references().filter(|found| found.kind() == kind)));
        }
    }
}
