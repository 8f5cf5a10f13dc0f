//! Security: transport, headers, forms, cookies.

use std::collections::HashSet;

use huntsman_crawler::registrable_domain;
use huntsman_html::ResourceKind;
use url::{Host, Url};

use super::csp;
use super::leaks;
use crate::code::Code;
use crate::code::PageClass::{Any, Html};
use crate::code::Severity::{Error, Notice};
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
        .text("A page that came by https loads a script, style sheet, frame, image or medium by http. On a page of another computer, what is loaded from this very one (`localhost`, 127.0.0.0/8, ::1) is none: browsers trust it.", "Browsers block it, or try https.", "Load it by https.")
        .source("W3C Mixed Content").example("<script src=\"http://example.org/a.js\">", "<script src=\"https://example.org/a.js\">"),
    code("form-insecure")
        .headline("Forms that send without encryption").severity(Error)
        .text("A form of an https page is sent to an http URL, other than from another computer to this very one; or a form with POST or a password field stands on an http page or is sent by http.", "What readers type can be read on its way.", "Use https.")
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
    code("hsts-short")
        .headline("Strict-Transport-Security that soon ends").severity(Notice)
        .text("The max-age of `Strict-Transport-Security` is above 0 and below 180 days (15,552,000 seconds).", "A visitor who returns later may begin with http.", "Send a max-age of a year.")
        .source("OWASP: HTTP Strict Transport Security").example("max-age=86400", "max-age=31536000"),
    code("csp-weak")
        .headline("Content-Security-Policies that let any script run").severity(Notice)
        .text("No policy that is enforced limits scripts: its script-src (or default-src) is missing, allows every source (`*`, `http:`, `https:`, `data:`), or has 'unsafe-inline' without a nonce, a hash or 'strict-dynamic'.", "Injected scripts run as if there were no policy.", "Name the sources of scripts, and mark inline ones by nonces or hashes.")
        .source("CSP Level 3").example("script-src 'self' 'unsafe-inline'", "script-src 'self' 'nonce-...'"),
    code("csp-report-only")
        .headline("Content-Security-Policies that only report").severity(Notice)
        .text("A page has `Content-Security-Policy-Report-Only`, and no policy that is enforced.", "What is reported is not stopped.", "Enforce it once its reports are clean.")
        .source("CSP Level 3").example("Content-Security-Policy-Report-Only: default-src 'self'", "Content-Security-Policy: default-src 'self'"),
    code("directory-listing")
        .headline("Folders whose files are listed")
        .text("The title of a page is that of the list of files which a web server makes of a folder, and names the folder of its URL, or the page has a link to the parent directory.", "Files show that nobody meant to publish.", "Switch the lists off, or add an index page.")
        .source("OWASP: web server configuration").example("<title>Index of /backup</title>", "403, or a page"),
    code("error-leak")
        .headline("Pages that tell the insides of programs").judges(Any)
        .text("An error page has a stack trace, a debug page of a framework or an error of a database; or another page has an error of PHP with file and line, or a stack trace, and does not write of errors.", "It helps attackers, and readers cannot use it.", "Show a plain error page, and write the rest into a log.")
        .source("OWASP: improper error handling").example("500 Traceback (most recent call last): ...", "500 Something went wrong."),
    code("cors-any-credentials")
        .headline("Answers that other sites may read with cookies")
        .text("`Access-Control-Allow-Credentials: true` comes with `Access-Control-Allow-Origin: *` or `null`.", "Browsers refuse the first, and any sandboxed frame has the origin null.", "Name the origins that may read, or leave credentials out.")
        .source("Fetch: CORS protocol").example("Allow-Origin: null, Allow-Credentials: true", "Allow-Origin: https://app.example.org"),
    code("sri-missing")
        .headline("Files of other sites that nobody checks").severity(Notice)
        .text("A page loads a script or a style sheet of another site (another registrable domain) without `integrity`. Well-known services whose files change by themselves are left out.", "A change of the file there changes the page here.", "Add integrity and crossorigin, or keep the file on the site.")
        .source("Subresource Integrity").example("<script src=https://cdn.example/a-1.2.js>", "<script src=https://cdn.example/a-1.2.js integrity=sha384-... crossorigin>"),
];

/// Codes about headers: a fault of all pages of a host is one of the host.
pub(crate) const OF_HEADERS: [&str; 9] = [
    "hsts-missing",
    "csp-missing",
    "nosniff-missing",
    "frame-options-missing",
    "referrer-policy-missing",
    "hsts-short",
    "csp-weak",
    "csp-report-only",
    "cors-any-credentials",
];

/// A max-age of half a year in seconds: 180 days.
const HALF_A_YEAR: u64 = 180 * 86_400;

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
        unchecked(page, findings);
        if leaks::is_listing(page) {
            findings.add(Finding::of("directory-listing").value(page.title()));
        }
        let text = page.page().scanned().1;
        let php = leaks::php_errors(text);
        let others = if php.is_empty() { leaks::trace(page) } else { None };
        for (offset, message) in php.into_iter().chain(others) {
            findings.add(Finding::of("error-leak").value(message).at(page.place(offset)));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        by_host("http-page", || site.pages(Html), |page| page.url.starts_with("http://"), findings);
        let is_error = |address: Address<'_>| {
            let is_page = matches!(address.kind(), Some(Kind::Page | Kind::Probe));
            is_page && address.status().is_some_and(|status| status >= 400)
        };
        for answer in site.records_of(is_error) {
            if let Some(leak) = &answer.leak {
                findings.add(Finding::of("error-leak").url(&answer.url).value(leak.as_str()));
            }
        }
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

/// Whether a browser takes a URL of a secure page for insecure: it is loaded by http, and not from this very computer (W3C Mixed Content, 4.1). A
/// site that this computer serves itself is tried before others read it, and is judged as it will be for them.
fn is_insecure(url: &Url, page: &Url) -> bool {
    url.scheme() == "http" && (is_loopback(page) || !is_loopback(url))
}

/// Whether the host of a URL is this very computer, so that its origin is potentially trustworthy by http (W3C Secure Contexts, 3.1).
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
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
    let preloads = page.preloads().map(|(href, _, offset)| (href, offset));
    for (href, offset) in resources.chain(styles).chain(preloads) {
        if let Some(url) =
            page.page().join(href).filter(|url| is_insecure(url, page.url()) && page.is_for_others(url))
        {
            findings.add(Finding::of("mixed-content").target(url.as_str()).at(page.place(offset)));
        }
    }
}

/// Hosts whose scripts and styles change by design, so that no hash can be named, with the hosts below them.
const CHANGING: [&str; 24] = [
    "accounts.google.com",
    "apis.google.com",
    "challenges.cloudflare.com",
    "cloudflareinsights.com",
    "connect.facebook.net",
    "consent.cookiebot.com",
    "google-analytics.com",
    "googleapis.com",
    "googlesyndication.com",
    "googletagmanager.com",
    "gstatic.com",
    "hcaptcha.com",
    "hotjar.com",
    "hs-scripts.com",
    "js.stripe.com",
    "kit.fontawesome.com",
    "licdn.com",
    "paypal.com",
    "platform.twitter.com",
    "plausible.io",
    "typekit.net",
    "vimeo.com",
    "www.google.com",
    "youtube.com",
];

/// Tells scripts and styles of other sites that a browser runs whatever they are.
fn unchecked(page: &AuditedPage<'_>, findings: &mut Findings) {
    let checked: HashSet<u32> = page.facts().semantics.checked_files.iter().copied().collect();
    let scripts =
        page.page().resources().filter(|found| !found.in_noscript && found.kind == ResourceKind::Script);
    let scripts = scripts.map(|found| (found.url, found.offset));
    let styles = page.link_elements().filter(|link| link.has_rel("stylesheet") && !link.has_rel("alternate"));
    let styles = styles.filter_map(|link| Some((link.href?, link.offset)));
    let domain = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        registrable_domain(url).unwrap_or(host).to_owned()
    };
    let own = domain(page.url());
    for (href, offset) in scripts.chain(styles).filter(|(_, offset)| !checked.contains(offset)) {
        let Some(url) = page.page().join(href) else { continue };
        let host = url.host_str().unwrap_or_default();
        let is_changing = CHANGING
            .iter()
            .any(|known| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
        if domain(&url) != own && !is_changing {
            findings.add(Finding::of("sri-missing").target(url.as_str()).at(page.place(offset)));
        }
    }
}

fn forms(page: &AuditedPage<'_>, is_https: bool, findings: &mut Findings) {
    for form in &page.facts().forms {
        let action = form.action.as_deref().filter(|action| !action.is_empty());
        let to_http = match action {
            None => !is_https,
            // What a secure page sends to this very computer does not leave it.
            Some(action) if is_https => {
                page.page().join(action).is_some_and(|url| is_insecure(&url, page.url()))
            }
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

/// The longest time in seconds for which a `Strict-Transport-Security` holds; `None` without one.
fn max_age(page: &AuditedPage<'_>) -> Option<u64> {
    let ages = page.header("strict-transport-security").filter_map(|value| {
        let value = value.to_ascii_lowercase();
        let age = value.split(';').find_map(|part| part.trim().strip_prefix("max-age="))?;
        age.trim_matches('"').parse::<u64>().ok()
    });
    ages.max()
}

/// Whether any site may read the page with the cookies of its reader.
fn shares_all(page: &AuditedPage<'_>) -> bool {
    let says = |name: &str, values: &[&str]| page.header(name).any(|value| values.contains(&value.trim()));
    says("access-control-allow-origin", &["*", "null"]) && says("access-control-allow-credentials", &["true"])
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
    let has_hsts = max_age(page).is_some_and(|age| age > 0);
    let policies = csp::policies(page);
    let is_policy = |value: &str| value.split(',').any(|part| POLICIES.contains(&part.trim()));
    let has_referrer = lower("referrer-policy").iter().any(|value| is_policy(value))
        || page.metas().any(|meta| {
            is_named(&meta, "referrer")
                && meta.content.is_some_and(|content| is_policy(&content.to_ascii_lowercase()))
        });
    let checks = [
        ("hsts-missing", is_https && !has_hsts),
        ("csp-missing", policies.is_empty()),
        ("nosniff-missing", !lower("x-content-type-options").iter().any(|value| value.contains("nosniff"))),
        (
            "frame-options-missing",
            lower("x-frame-options").is_empty()
                && !lower("content-security-policy").iter().any(|policy| policy.contains("frame-ancestors")),
        ),
        ("referrer-policy-missing", !has_referrer),
        ("hsts-short", is_https && max_age(page).is_some_and(|age| (1..HALF_A_YEAR).contains(&age))),
        ("csp-weak", !policies.is_empty() && !policies.iter().any(|policy| csp::limits_scripts(policy))),
        ("csp-report-only", policies.is_empty() && !lower("content-security-policy-report-only").is_empty()),
        ("cors-any-credentials", shares_all(page)),
    ];
    for (code, _) in checks.into_iter().filter(|(_, is_missing)| *is_missing) {
        findings.add(Finding::of(code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_very_computer_serves_is_trusted_by_http() {
        for (url, is_trusted) in [
            ("http://localhost/a.js", true),
            ("http://LOCALHOST.:8080/a.js", true),
            ("http://app.localhost/a.js", true),
            ("http://127.0.0.1/a.js", true),
            ("http://127.255.255.254:81/a.js", true),
            ("http://2130706433/a.js", true),
            ("http://[::1]:8080/a.js", true),
            ("http://localhost.example/a.js", false),
            ("http://notlocalhost/a.js", false),
            ("http://128.0.0.1/a.js", false),
            ("http://0.0.0.0/a.js", false),
            ("http://192.168.0.1/a.js", false),
            ("http://[::2]/a.js", false),
        ] {
            let url = Url::parse(url).unwrap();
            let page = Url::parse("https://example.org/").unwrap();
            assert_eq!((is_loopback(&url), is_insecure(&url, &page)), (is_trusted, !is_trusted), "{url}");
            let local = Url::parse("https://127.0.0.1:8443/").unwrap();
            assert!(is_insecure(&url, &local), "{url} on a page of this computer");
            assert!(!is_insecure(&local, &page) && !is_insecure(&local, &local));
        }
    }
}
