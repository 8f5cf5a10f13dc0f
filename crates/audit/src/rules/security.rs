//! Security: transport, headers, forms, cookies.

use crate::code::Code;
use crate::code::PageClass::{Any, Html};
use crate::code::Severity::Error;
use crate::finding::{Finding, Findings, Place};
use crate::hosts::HostCounts;
use crate::page::{AuditedPage, is_named, resource_kind};
use crate::record::Kind;
use crate::rule::Rule;
use crate::site::{Address, Answer, Site, front_of};

const fn code(name: &'static str) -> Code {
    Code::new("security", name)
}

const CODES: &[Code] = &[
    code("http-page")
        .headline("Pages without encryption").of_site()
        .text("A page is delivered over http.", "It can be read and changed on its way.", "Deliver it over https, and redirect http there.")
        .source("RFC 9110").example("http://example.org/", "https://example.org/"),
    code("mixed-content")
        .headline("Encrypted pages that load over http").severity(Error)
        .text("A page that came by https loads a script, style sheet, frame, image or medium by http.", "Browsers block it, or try https.", "Load it by https.")
        .source("W3C Mixed Content").example("<script src=\"http://example.org/a.js\">", "<script src=\"https://example.org/a.js\">"),
    code("form-insecure")
        .headline("Forms that send without encryption").severity(Error)
        .text("A form of an https page is sent to an http URL; or a form with POST or a password field stands on an http page or is sent by http.", "What readers type can be read on its way.", "Use https.")
        .source("W3C Mixed Content").example("<form action=\"http://example.org/login\" method=post>", "<form action=\"/login\" method=post> on https"),
    code("hsts-missing")
        .headline("No Strict-Transport-Security")
        .text("A page that came by https has no `Strict-Transport-Security` with a max-age above 0.", "The next visit may begin by http.", "Send it.")
        .source("RFC 6797").example("no header", "Strict-Transport-Security: max-age=31536000"),
    code("csp-missing")
        .headline("No Content-Security-Policy")
        .text("A page has no Content-Security-Policy that is enforced, in a header or a meta element.", "There is no second line against injected scripts.", "Send one.")
        .source("CSP Level 3").example("no header", "Content-Security-Policy: default-src 'self'"),
    code("nosniff-missing")
        .headline("No X-Content-Type-Options")
        .text("A page has no `X-Content-Type-Options: nosniff`.", "Browsers guess types of files.", "Send it.")
        .source("Fetch").example("no header", "X-Content-Type-Options: nosniff"),
    code("frame-options-missing")
        .headline("No protection against framing")
        .text("A page has neither X-Frame-Options nor frame-ancestors in its Content-Security-Policy.", "Others may frame it, and catch clicks.", "Send one.")
        .source("RFC 7034").example("no header", "X-Frame-Options: DENY"),
    code("referrer-policy-missing")
        .headline("No Referrer-Policy")
        .text("A page has no valid Referrer-Policy, in a header or a meta element.", "Its URL is told to other sites as each browser likes.", "Send one.")
        .source("Referrer Policy").example("no header", "Referrer-Policy: strict-origin-when-cross-origin"),
    code("cookie-flags")
        .headline("Cookies without their flags").of_site().judges(Any)
        .text("A cookie lacks SameSite, HttpOnly (not those against forged requests) or, by https, Secure.", "It can be stolen or sent along.", "Add the flags.")
        .source("RFC 6265bis").example("Set-Cookie: sid=1", "Set-Cookie: sid=1; Secure; HttpOnly; SameSite=Lax"),
    code("server-version")
        .headline("Servers that tell their version").of_site().judges(Any)
        .text("A header tells the version of a program of the server.", "It helps attackers to choose.", "Send the name alone, or nothing.")
        .source("OWASP").example("Server: nginx/1.18.0", "Server: nginx"),
];

/// Codes about headers: a fault of all pages of a host is one of the host.
pub(crate) const OF_HEADERS: [&str; 5] =
    ["hsts-missing", "csp-missing", "nosniff-missing", "frame-options-missing", "referrer-policy-missing"];

pub(super) struct Security;

impl Rule for Security {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let is_https = page.url().scheme() == "https";
        if is_https {
            mixed(page, findings);
        }
        forms(page, is_https, findings);
        headers(page, is_https, findings);
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        by_host("http-page", || site.pages(Html), |page| page.url.starts_with("http://"), findings);
        let is_own = |address: Address<'_>| matches!(address.kind(), Some(Kind::Page | Kind::Resource));
        for answer in site.records_of(is_own) {
            let cookies = answer.cookies.iter().map(|cookie| ("cookie-flags", cookie));
            let versions = answer.versions.iter().map(|version| ("server-version", version));
            for (code, (name, value)) in cookies.chain(versions) {
                // One issue for each host, name and value, with the pages that have it.
                let finding = Finding::of(code).url(&front_of(&answer.url)).group(format!("{name}: {value}"));
                let place = Place { page: Some(answer.url.clone()), ..Place::default() };
                findings.add(finding.value(value.as_str()).at(place));
            }
        }
    }
}

/// Tells the answers that have a fault; if all of a host have it, it is one fault of the host.
pub(super) fn by_host<'a, I: Iterator<Item = Answer<'a>>>(
    code: &'static str,
    judged: impl Fn() -> I,
    is_faulty: impl Fn(&Answer<'_>) -> bool,
    findings: &mut Findings,
) {
    let mut hosts = HostCounts::default();
    for answer in judged() {
        hosts.count(&answer.url);
        if is_faulty(&answer) {
            hosts.count_fault(&answer.url, code);
        }
    }
    if hosts.has_faults() {
        judged()
            .filter(|answer| is_faulty(answer))
            .for_each(|answer| findings.add(hosts.told(&answer.url, code)));
    }
}

fn mixed(page: &AuditedPage<'_>, findings: &mut Findings) {
    let resources =
        page.page().resources().filter(|found| !found.in_noscript && resource_kind(found.kind).is_some());
    let resources = resources.map(|found| (found.url, found.offset));
    let styles = page
        .link_elements()
        .filter(|link| link.has_rel("stylesheet"))
        .filter_map(|link| Some((link.href?, link.offset)));
    for (href, offset) in resources.chain(styles) {
        if let Some(url) =
            page.page().join(href).filter(|url| url.scheme() == "http" && crate::spider::is_public(url))
        {
            findings.add(Finding::of("mixed-content").target(url.as_str()).at(page.place(offset)));
        }
    }
}

fn forms(page: &AuditedPage<'_>, is_https: bool, findings: &mut Findings) {
    for form in &page.facts().forms {
        let action = form.action.as_deref().filter(|action| !action.is_empty());
        let to_http = match action {
            None => !is_https,
            Some(action) => page.page().join(action).is_some_and(|url| url.scheme() == "http"),
        };
        let is_secret = form.is_post || form.has_password;
        let is_insecure = if is_https { to_http } else { is_secret };
        if is_insecure {
            let finding = Finding::of("form-insecure").value(form.action.clone());
            findings.add(finding.at(page.place(form.offset)));
        }
    }
}

fn headers(page: &AuditedPage<'_>, is_https: bool, findings: &mut Findings) {
    const POLICIES: [&str; 8] = [
        "no-referrer",
        "no-referrer-when-downgrade",
        "same-origin",
        "origin",
        "strict-origin",
        "origin-when-cross-origin",
        "strict-origin-when-cross-origin",
        "unsafe-url",
    ];
    let lower = |name: &str| -> Vec<String> { page.header(name).map(str::to_ascii_lowercase).collect() };
    let max_age = |value: &String| {
        let age = value.split(';').find_map(|part| part.trim().strip_prefix("max-age="))?;
        age.trim_matches('"').parse::<u64>().ok()
    };
    let has_hsts =
        lower("strict-transport-security").iter().any(|value| max_age(value).is_some_and(|age| age > 0));
    let policies = lower("content-security-policy");
    let in_meta = page.metas().any(|meta| {
        let is_policy =
            meta.http_equiv.is_some_and(|name| name.trim().eq_ignore_ascii_case("content-security-policy"));
        is_policy && meta.content.is_some_and(|content| !content.trim().is_empty())
    });
    let is_policy = |value: &str| value.split(',').any(|part| POLICIES.contains(&part.trim()));
    let has_referrer = lower("referrer-policy").iter().any(|value| is_policy(value))
        || page.metas().any(|meta| {
            is_named(&meta, "referrer")
                && meta.content.is_some_and(|content| is_policy(&content.to_ascii_lowercase()))
        });
    let checks = [
        ("hsts-missing", is_https && !has_hsts),
        ("csp-missing", policies.iter().all(|policy| policy.trim().is_empty()) && !in_meta),
        ("nosniff-missing", !lower("x-content-type-options").iter().any(|value| value.contains("nosniff"))),
        (
            "frame-options-missing",
            lower("x-frame-options").is_empty()
                && !policies.iter().any(|policy| policy.contains("frame-ancestors")),
        ),
        ("referrer-policy-missing", !has_referrer),
    ];
    for (code, _) in checks.into_iter().filter(|(_, is_missing)| *is_missing) {
        findings.add(Finding::of(code));
    }
}
