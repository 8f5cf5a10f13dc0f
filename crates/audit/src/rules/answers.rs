//! Answers that are no faults of the page itself: refusals, what could not be checked, files that pages load, and answers to what is not there.

use crate::code::Code;
use crate::code::PageClass::Any;
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::record::{EdgeKind, Kind};
use crate::rule::Rule;
use crate::site::{Address, End, Fault, Site, authority, front_of};

const fn code(name: &'static str) -> Code {
    Code::new("status", name).of_site().judges(Any).source("RFC 9110")
}

const CODES: &[Code] = &[
    code("link-forbidden")
        .headline("Links to pages that are refused")
        .text("A link leads to a URL of the site that answers 401, 403 or 407.", "Readers without an account are turned away.", "Take the link out where it is shown to everybody, or let readers in.")
        .example("<a href=\"/admin/\">  (403)", "<a href=\"/login\">  (200)"),
    code("rate-limited")
        .headline("URLs that answered \"too many requests\"").severity(Notice)
        .text("A URL of the site answers 429, also after retries. It was not judged.", "It is not known what is wrong with it.", "Audit more slowly (`--delay`), or let this audit pass.")
        .source("RFC 6585").example("GET /a -> 429", "GET /a -> 200"),
    code("external-unverified")
        .headline("Links to other sites that could not be checked").severity(Notice)
        .text("A link to another site answers 401, 403, 406, 407, 429, 451, 503 or 999 or with a challenge, not in time, by a redirect that names no URL, or is disallowed by robots.txt. Or its host did so [host_refusals_in_a_row] times in a row or [host_refusals] times in all and was left alone, or rests after failures.", "It may work for readers and may not.", "Look at it in a browser.")
        .example("<a href=\"https://example.org/\">  (403)", "<a href=\"https://example.org/\">  (200)"),
    code("resource-broken")
        .headline("Broken scripts, styles, frames and media").severity(Error)
        .text("A script, style sheet, frame, or an audio or video file that a page of the site loads answers 4xx (other than 401, 403, 406, 407, 429, 451) or 5xx, or not at all.", "The page looks or works wrong.", "Correct the address, or take the element out.")
        .source("HTML: fetching resources").example("<script src=\"/app-old.js\">  (404)", "<script src=\"/app.js\">  (200)"),
    code("not-found-200")
        .headline("Sites that answer 200 for what they do not have")
        .text("A path that no site has answers 2xx.", "Every wrong link becomes a page that can be indexed.", "Answer 404.")
        .source("Google Search Central: soft 404").example("GET /no-such-page -> 200", "GET /no-such-page -> 404"),
    code("robots-unreachable")
        .headline("robots.txt files that cannot be read").severity(Error)
        .text("The robots.txt of a host of the site answers 5xx or 429, redirects without end, or does not answer, so that its pages were not asked for.", "Robots must not visit the host.", "Answer 200 with the file, or 404.")
        .source("RFC 9309").example("GET /robots.txt -> 503", "GET /robots.txt -> 200"),
    code("content-type-wrong")
        .headline("Files with a wrong media type")
        .text("A URL of the site answers 2xx with content and without `Content-Type`, HTML is delivered as plain text, JSON, a script, a style sheet or a PDF, or a PDF, ZIP file or image as a text, or a script, style sheet or image that a page loads from the site is delivered as HTML.", "Browsers guess, or refuse the file.", "State the type of the content; answer 404 for a file that is not there.")
        .example("GET /app.js -> 200 text/html", "GET /app.js -> 200 text/javascript"),
    code("truncated-body")
        .headline("Answers that end too early")
        .text("The body of a URL of the site ends before the length that its headers state, or in the middle of its compression, also after retries.", "Readers and robots get a part of it, or nothing.", "Look for what breaks off in the log of the server, or for a wrong Content-Length.")
        .example("Content-Length: 5000, and 3,000 bytes", "Content-Length: 3000, and 3,000 bytes"),
];

/// Why URLs of other sites were not asked for, though they were wanted: the rules of their hosts, and hosts that rest after failures.
const UNASKED: [&str; 5] = ["robots", "crawl_delay", "robots_unreachable", "host_parked", "host_down"];

pub(super) struct Answers;

impl Rule for Answers {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for address in site.addresses().filter(|address| address.is_answered()) {
            of_answer(site, address, findings);
        }
        for target in site.targets(|kind| kind == EdgeKind::Link) {
            if let Some(said) = unverified(target) {
                let finding = Finding::of("external-unverified").url(&target.url()).value(said);
                findings.add(site.told(finding, target.links()));
            }
        }
        for target in site.targets(is_loaded) {
            loaded(site, target, findings);
        }
        for target in site.targets(is_never_page) {
            as_page(site, target, findings);
        }
        for answer in site.records_of(|address| address.is_own() && address.is_cut_short()) {
            let said = answer.detail.clone().unwrap_or_else(|| format!("{} bytes came", answer.wire_bytes));
            let finding = Finding::of("truncated-body").url(&answer.url).value(said);
            findings.add(site.told(finding, answer.address().references()));
        }
        for answer in site.records_of(|address| address.is_own() && is_without_type(address)) {
            if answer.content_type.is_none() && answer.wire_bytes > 0 && answer.redirect.is_none() {
                findings.add(Finding::of("content-type-wrong").url(&answer.url));
            } else if let Some(said) = &answer.contradiction {
                findings.add(Finding::of("content-type-wrong").url(&answer.url).value(said.as_str()));
            }
        }
    }
}

/// What a page loads and does not show as an image, whose faults have codes of their own.
fn is_loaded(kind: EdgeKind) -> bool {
    matches!(kind, EdgeKind::Script | EdgeKind::Style | EdgeKind::Frame | EdgeKind::Media)
}

fn is_without_type(address: Address<'_>) -> bool {
    matches!(address.kind(), Some(Kind::Page | Kind::Resource))
        && address.status().is_some_and(|status| (200..300).contains(&status) && !matches!(status, 204 | 205))
}

fn of_answer(site: &Site, address: Address<'_>, findings: &mut Findings) {
    let is_own = address.is_own();
    let status = address.status();
    match address.kind() {
        Some(Kind::Page) if is_own => match status {
            Some(429) => findings.add(Finding::of("rate-limited").url(&address.url()).value(429)),
            // A test of the browser refuses robots, and lets readers in.
            Some(status @ (401 | 403 | 407))
                if address.is_referred_by(|kind| kind == EdgeKind::Link)
                    && address.answer().is_some_and(|answer| !answer.is_challenge) =>
            {
                let finding = Finding::of("link-forbidden").url(&address.url()).value(status);
                findings.add(site.told(finding, address.links()));
            }
            _ => {}
        },
        Some(Kind::Probe) if status.is_some_and(|status| (200..300).contains(&status)) => {
            let url = address.url();
            findings.add(Finding::of("not-found-200").url(&front_of(&url)).target(&url).value(status));
        }
        Some(Kind::Robots)
            if is_own
                && is_unreachable(address)
                // A certificate that is refused is told as that.
                && site.tls(authority(&address.url())).is_none_or(|tls| tls.fault.is_none()) =>
        {
            let said = address.answer().map(|answer| match (answer.status, &answer.detail) {
                (Some(status), _) => serde_json::Value::from(status),
                (None, detail) => detail.clone().into(),
            });
            findings.add(Finding::of("robots-unreachable").url(&address.url()).value(said));
        }
        _ => {}
    }
}

/// Whether the answer for a robots.txt means that robots must not visit the host (RFC 9309, section 2.3.1).
fn is_unreachable(robots: Address<'_>) -> bool {
    match robots.status() {
        // A redirect that does not end, too.
        Some(status) => status == 429 || status >= 500 || (300..400).contains(&status),
        None => !matches!(robots.fault(), None | Some(Fault::Dns)),
    }
}

/// Why it is not known whether a URL of another site answers; `None` if it is known.
fn unverified(target: Address<'_>) -> Option<serde_json::Value> {
    if target.is_own() {
        return None;
    }
    let resolution = target.resolve();
    let end = match resolution.end {
        End::At(end) if !end.is_own() => end,
        End::Unknown(end) if !end.is_own() => {
            let refused = end.refused().filter(|refused| UNASKED.contains(&refused.reason.as_str()))?;
            return Some(refused.detail.unwrap_or(refused.reason).into());
        }
        _ => return None,
    };
    let is_unverified = match end.fault()? {
        Fault::Unverified | Fault::Timeout => true,
        Fault::Server(status) => status == 503,
        Fault::Client(_) | Fault::Dns | Fault::Connection | Fault::Nowhere => false,
    };
    is_unverified.then(|| match end.status() {
        Some(status) if !(300..400).contains(&status) => status.into(),
        _ => end.answer().and_then(|answer| answer.detail.clone()).into(),
    })
}

/// Tells a file that pages load and that is not there.
fn loaded(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let Some(answered) = target.requested() else { return };
    let is_down = match answered.fault() {
        Some(Fault::Server(503)) => answered.is_own(),
        Some(Fault::Client(_) | Fault::Server(_) | Fault::Connection) => true,
        Some(Fault::Timeout) => answered.is_own(),
        _ => false,
    };
    if is_down {
        let said: serde_json::Value = match answered.status() {
            Some(status) => status.into(),
            None => answered.answer().and_then(|answer| answer.detail.clone()).into(),
        };
        let finding = Finding::of("resource-broken").url(&target.url()).value(said);
        findings.add(site.told(finding, target.references().filter(|found| is_loaded(found.kind()))));
    }
}

/// Tells a script, style sheet or image that the site delivers as HTML, unless pages link to it as a page, too.
fn as_page(site: &Site, target: Address<'_>, findings: &mut Findings) {
    let Some(answered) = target.requested().filter(|found| found.is_own()) else { return };
    let is_page = |kind| matches!(kind, EdgeKind::Link | EdgeKind::Frame);
    if answered.status() != Some(200) || answered.is_referred_by(is_page) {
        return;
    }
    let answer = answered.answer().filter(|answer| answer.content_type.as_deref() == Some("text/html"));
    if answer.is_some() {
        let references = target.references().filter(|found| is_never_page(found.kind()));
        let finding = Finding::of("content-type-wrong").url(&target.url()).value("text/html");
        findings.add(site.told(finding, references));
    }
}

/// What a page loads that browsers do not take as HTML.
fn is_never_page(kind: EdgeKind) -> bool {
    matches!(kind, EdgeKind::Script | EdgeKind::Style | EdgeKind::Image)
}
