//! Answers: broken links, server errors, redirects.

use http::Uri;

use crate::code::Code;
use crate::code::PageClass::{Any, Html};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::record::{EdgeKind, Kind, Record};
use crate::rule::Rule;
use crate::site::{Address, Answer, End, Fault, Resolution, Site};

const fn code(name: &'static str) -> Code {
    Code::new("status", name).of_site().judges(Any)
}

const CODES: &[Code] = &[
    code("broken-internal-link")
        .headline("Broken internal links").severity(Error)
        .text("A link leads to a URL of the site that answers 4xx (other than 401, 403, 407, 429) or cannot be connected to.",
            "Readers and robots meet a dead end.", "Correct the address of the link, or take the link out.")
        .source("RFC 9110")
        .example("<a href=\"/pricing-old\">Prices</a>  (404)", "<a href=\"/pricing\">Prices</a>  (200)"),
    code("server-error")
        .headline("Server errors").severity(Error)
        .text("A URL of the site answers 5xx, also after retries.",
            "The page is broken for everybody.", "Look for the cause in the log of the server.")
        .source("RFC 9110").example("GET /cart -> 500", "GET /cart -> 200"),
    code("timeout")
        .headline("Pages that do not answer in time").severity(Error)
        .text("A URL of the site gave no whole answer within the time limit in any try.",
            "Nobody waits for so long.", "Find what blocks the answer.")
        .source("Google Search Central: crawl errors").example("GET /search -> no answer in 30 s", "GET /search -> 200 in 0.3 s"),
    code("dns-failure")
        .headline("Links to hosts that do not exist").severity(Error)
        .text("The host of a link or of a loaded file has no address.",
            "The host is gone.", "Take the reference out, or name the new host.")
        .source("RFC 1034").example("<a href=\"https://gone.invalid/\">", "<a href=\"https://example.org/\">"),
    code("external-broken")
        .headline("Broken links to other sites").severity(Error)
        .text("A link to another site answers 4xx or 5xx (other than 401, 403, 406, 407, 429, 451, 503, 999 and challenges), cannot be connected to, or redirects to such a URL. It was tried three times.",
            "Readers meet a dead end.", "Replace the link.")
        .source("RFC 9110").example("<a href=\"https://example.org/gone\">  (404)", "<a href=\"https://example.org/\">  (200)"),
    code("external-redirect")
        .headline("Links to other sites that have moved").severity(Notice)
        .text("A link to another site answers 301 or 308 and ends at a page.",
            "Such links rot first.", "Link to the final URL.")
        .source("RFC 9110").example("<a href=\"http://example.org/\">  (301)", "<a href=\"https://example.org/\">  (200)"),
    code("redirect-chain")
        .headline("Chains of redirects")
        .text("A link or a loaded file passes more redirects than [redirect_hops_max].",
            "Each hop costs time, and robots give up.", "Refer to the last URL, and let each redirect lead there at once.")
        .source("Google Search Central: redirects").example("/a -> /b -> /c", "/a -> /c"),
    code("redirect-loop")
        .headline("Redirects that never end").severity(Error)
        .text("Redirects come back to a URL in their chain, or do not end within ten hops.",
            "The page never loads.", "Correct the rules of the redirects.")
        .source("RFC 9110").example("/a -> /b -> /a", "/a -> /b"),
    code("redirect-to-error")
        .headline("Redirects to errors").severity(Error)
        .text("A link or a loaded file is redirected within the site to a URL that answers 4xx or 5xx, or not at all; or the redirect names no URL in its `Location`, or one that browsers do not follow.",
            "Readers meet a dead end.", "Let the redirect lead to a page, or remove it with its links.")
        .source("RFC 9110").example("/old -> /new (404)", "/old -> /new (200)"),
    code("link-to-redirect")
        .headline("Links to redirects")
        .text("A link leads to a URL of the site that answers 301 or 308 to a page.",
            "Each click costs a needless request.", "Link to the target.")
        .source("RFC 9110").example("<a href=\"/about\">  (301 to /about/)", "<a href=\"/about/\">"),
    code("temporary-redirect")
        .headline("Links to temporary redirects").severity(Notice)
        .text("A link leads to a URL of the site that answers 302, 303 or 307.",
            "Search engines keep the old URL.", "Answer 301 or 308 if the move is permanent.")
        .source("Google Search Central: redirects").example("/shop -> 302 /store", "/shop -> 301 /store"),
    Code::new("status", "meta-refresh")
        .headline("Pages that reload by themselves").judges(Html)
        .text("A page is replaced or loaded again by `meta http-equiv=refresh` within 20 hours.",
            "It takes readers away while they read.", "Use a redirect of HTTP.")
        .source("WCAG 2.2.1").example("<meta http-equiv=refresh content=\"5; url=/new\">", "301 to /new"),
    code("soft-404")
        .headline("Error pages that answer 200").judges(Html)
        .text("A page answers 2xx, but its title or heading and its short text say that it is missing, or it equals the answer of a path that no site has.",
            "Error pages get into the index.", "Answer 404 or 410.")
        .source("Google Search Central: soft 404").example("200 <h1>Page not found</h1>", "404 <h1>Page not found</h1>"),
    code("blocked-by-robots")
        .headline("Links that robots.txt disallows")
        .text("A link leads to a URL of the site that robots.txt disallows.",
            "Robots cannot read what is linked.", "Allow it, or take the link out.")
        .source("RFC 9309").example("Disallow: /docs  with  <a href=\"/docs/\">", "Allow: /docs"),
    code("blocked-resource")
        .headline("Files that robots.txt keeps from search engines")
        .text("robots.txt disallows a script, a style sheet or an image that a page of the site loads from the site.",
            "Search engines render the page without it.", "Allow it.")
        .source("Google Search Central: robots.txt").example("Disallow: /css/", "Allow: /css/"),
];

pub(super) struct Status;

impl Rule for Status {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        const TWENTY_HOURS: f64 = 20.0 * 3_600.0;
        let metas = page
            .metas()
            .filter(|meta| meta.http_equiv.is_some_and(|name| name.trim().eq_ignore_ascii_case("refresh")));
        for meta in metas {
            let refresh = meta.content.and_then(huntsman_html::MetaRefresh::parse);
            if refresh.is_some_and(|refresh| refresh.delay < TWENTY_HOURS) {
                findings.add(Finding::of("meta-refresh").value(meta.content).at(page.place(meta.offset)));
            }
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let is_judged = |address: Address<'_>| {
            let kind = address.kind();
            address.fault().is_some() && matches!(kind, Some(Kind::Page | Kind::Resource | Kind::External))
        };
        for answer in site.records_of(is_judged) {
            faults(site, &answer, findings);
        }
        for page in site.records_of(|address| address.is(Html) && address.is_soft_404()) {
            let title = page.html.as_ref().and_then(|html| html.title.clone());
            findings.add(Finding::of("soft-404").url(&page.url).value(title));
        }
        for target in site.targets(|kind| kind != EdgeKind::Sitemap) {
            redirects(site, target, findings);
            blocked(site, target, findings);
        }
    }
}

/// A finding about a URL, at all references to it.
fn at_references(site: &Site, code: &str, target: Address<'_>) -> Finding {
    site.told(Finding::of(code).url(&target.url()), target.references())
}

fn at_links(site: &Site, code: &str, target: Address<'_>) -> Finding {
    site.told(Finding::of(code).url(&target.url()), target.links())
}

/// What an answer was, for people.
fn said(record: &Record) -> serde_json::Value {
    match (&record.error, record.status) {
        (Some(_), _) => record.detail.clone().into(),
        (None, status) => status.into(),
    }
}

fn faults(site: &Site, answer: &Answer<'_>, findings: &mut Findings) {
    let target = answer.address();
    let Some(fault) = target.fault() else { return };
    let is_own = answer.kind != Kind::External;
    let has_links = target.is_referred_by(|kind| kind == EdgeKind::Link);
    let is_referred = target.is_referred_by(|kind| kind != EdgeKind::Sitemap);
    match fault {
        Fault::Client(_) | Fault::Connection if is_own && has_links => {
            findings.add(at_links(site, "broken-internal-link", target).value(said(answer)));
        }
        // A file that pages load is told as broken where it is loaded.
        Fault::Server(_) if is_own && answer.kind != Kind::Resource => {
            findings.add(at_references(site, "server-error", target).value(said(answer)))
        }
        Fault::Timeout if is_own => findings.add(at_references(site, "timeout", target).value(said(answer))),
        Fault::Nowhere if is_referred || target.is_start() => {
            findings.add(at_references(site, "redirect-to-error", target).value(answer.detail.clone()));
        }
        Fault::Dns if is_referred => {
            let host = answer.url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
            let finding = at_references(site, "dns-failure", target).value(said(answer));
            findings.add(finding.group(host.unwrap_or_default()));
        }
        Fault::Client(_) | Fault::Server(_) | Fault::Connection
            if !is_own && has_links && answer.status != Some(503) =>
        {
            findings.add(at_links(site, "external-broken", target).value(said(answer)));
        }
        _ => {}
    }
}

/// The one thing that is most wrong with the redirects of a URL.
fn redirects(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let Resolution { hops, end } = target.resolve();
    let Some(first) = hops.first() else { return };
    let is_own = first.kind() != Some(Kind::External);
    let has_links = target.is_referred_by(|kind| kind == EdgeKind::Link);
    let fault = match end {
        End::At(answered) => answered.fault(),
        End::Loop | End::Unknown(_) => None,
    };
    let code = match (end, fault) {
        (End::Loop, _) => "redirect-loop",
        (End::Unknown(_), _) | (_, Some(Fault::Unverified)) => return,
        (_, Some(Fault::Timeout)) if !is_own => return,
        (_, Some(_)) if is_own => "redirect-to-error",
        (_, Some(_)) => "external-broken",
        (_, None) if hops.len() > site.limits().audit_redirect_hops_max => "redirect-chain",
        _ if !has_links => return,
        _ => match (first.status(), is_own) {
            (Some(301 | 308), true) => "link-to-redirect",
            (Some(301 | 308), false) => "external-redirect",
            (_, true) => "temporary-redirect",
            (_, false) => return,
        },
    };
    let finding = match code {
        "redirect-loop" | "redirect-chain" | "redirect-to-error" => at_references(site, code, target),
        _ => at_links(site, code, target),
    };
    if finding.at.is_empty() {
        return;
    }
    let last = hops.last().and_then(|hop| hop.redirect());
    let chain: Vec<String> = hops.iter().copied().chain(last).map(Address::url).collect();
    let limit = match code {
        "redirect-chain" => serde_json::Value::from(site.limits().audit_redirect_hops_max),
        _ => serde_json::Value::Null,
    };
    let end = chain.last().map(String::as_str).unwrap_or_default();
    findings.add(finding.target(end).value(chain.join(" -> ")).limit(limit));
}

fn blocked(site: &Site, target: Address<'_>, findings: &mut Findings) {
    // Whether another site may be read by robots is no fault of this one.
    if !target.is_refused() || !target.is_own() {
        return;
    }
    let Some(refused) = target.refused().filter(|refused| refused.reason == "robots") else { return };
    let line = refused.detail;
    let is_shown = |kind| matches!(kind, EdgeKind::Script | EdgeKind::Style | EdgeKind::Image);
    if target.is_referred_by(is_shown) {
        let finding = Finding::of("blocked-resource").url(&target.url()).value(line.clone());
        findings.add(site.told(finding, target.references().filter(|found| is_shown(found.kind()))));
    }
    if target.is_referred_by(|kind| kind == EdgeKind::Link) {
        findings.add(at_links(site, "blocked-by-robots", target).value(line));
    }
}
