//! What URLs carry that should not be in them, and URLs that differ only in what no server should tell apart.

use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::code::Code;
use crate::code::PageClass::{Any, Indexable};
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::record::EdgeKind;
use crate::rule::Rule;
use crate::site::{Address, Site};

const SOURCE: &str = "Google Search Central: URL structure";

const fn code(name: &'static str) -> Code {
    Code::new("url", name).source(SOURCE)
}

const CODES: &[Code] = &[
    code("url-variant-duplicate")
        .headline("Pages under several variants of a URL").of_site().judges(Indexable)
        .text("Two URLs answer 200 with the same own text that differ only in letter case, a slash at the end, a name such as index.html, the scheme, or `www.`.", "The variants compete with each other in search results.", "Answer 301 to one of them, or name a canonical URL.")
        .example("/about and /about/ with one text", "/about/ with 301 to /about"),
    code("url-tracking")
        .headline("Internal links with tracking parameters").of_site().judges(Any)
        .text("A link within the site has a parameter of campaigns (`utm_source` and the like).", "It makes further URLs for a page, and hides where visitors came from.", "Take the parameters out of internal links.")
        .example("<a href=\"/prices?utm_source=home\">", "<a href=\"/prices\">"),
    code("url-escaped-twice")
        .headline("URLs that are percent-encoded twice").judges(Indexable)
        .text("The path has percent codes that were encoded again, such as `%2520` for a space.", "It is another URL than was meant.", "Encode once.")
        .example("/a%2520b", "/a%20b"),
    code("url-private")
        .headline("URLs with private data").of_site().judges(Any)
        .text("A URL of the site that is linked has an e-mail address, a password, or a token that opens something.", "URLs are kept in logs and histories, and are sent to other sites.", "Send it in the body of a request, or in a cookie.")
        .source("OWASP: information exposure through query strings")
        .example("/unsubscribe?email=ann@example.org", "/unsubscribe"),
];

pub(super) struct UrlContents;

impl Rule for UrlContents {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let path = page.url().path();
        if is_escaped_twice(path) {
            findings.add(Finding::of("url-escaped-twice").value(path));
        }
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for target in site.targets(|kind| kind == EdgeKind::Link).filter(|target| target.is_own()) {
            let url = target.url();
            let Ok(parsed) = Url::parse(&url) else { continue };
            let tracking = parsed.query_pairs().find(|(name, _)| is_tracking(name));
            for (code, name) in [
                ("url-tracking", tracking.map(|(name, _)| name.into_owned())),
                ("url-private", private(&parsed)),
            ] {
                if let Some(name) = name {
                    findings.add(site.told(Finding::of(code).url(&url).value(name), target.links()));
                }
            }
        }
        let keys = site.pages(Indexable).filter_map(|page| {
            let html = page.html.as_ref().filter(|html| html.words > 0)?;
            let key = format!("{}\0{}", html.text_key, variant(&page.url));
            (page.status == Some(200)).then(|| (xxh3_128(key.as_bytes()), page.address()))
        });
        site.each_group(keys, |pages| variants(pages, findings));
    }
}

fn variants(pages: &[Address<'_>], findings: &mut Findings) {
    let form = variant(&pages[0].url());
    for (at, page) in pages.iter().enumerate() {
        let other = if at == 0 { pages[1] } else { pages[0] };
        let finding = Finding::of("url-variant-duplicate").url(&page.url()).target(&other.url());
        findings.add(finding.group(form.as_str()).value(pages.len()));
    }
}

/// A URL without what differs between its variants.
fn variant(url: &str) -> String {
    const INDEXES: [&str; 9] = [
        "index.html",
        "index.htm",
        "index.php",
        "index.asp",
        "index.aspx",
        "index.jsp",
        "index.shtml",
        "default.asp",
        "default.aspx",
    ];
    let Ok(url) = Url::parse(url) else { return url.to_owned() };
    let host = url.host_str().unwrap_or_default();
    let path = url.path().to_ascii_lowercase();
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    let path = if INDEXES.contains(&file) { folder } else { path.trim_end_matches('/') };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}{path}?{}", host.strip_prefix("www.").unwrap_or(host), url.query().unwrap_or_default())
}

fn is_tracking(name: &str) -> bool {
    const CAMPAIGN: [&str; 7] = [
        "utm_source",
        "utm_medium",
        "utm_campaign",
        "utm_term",
        "utm_content",
        "utm_id",
        "utm_source_platform",
    ];
    CAMPAIGN.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether a percent code stands in a path that was encoded again. A lone `%25` may be a percent sign, and what follows it chance: only codes count
/// that encoders make.
fn is_escaped_twice(path: &str) -> bool {
    const MADE: [&str; 10] = ["20", "2f", "3a", "3f", "3d", "26", "28", "29", "2c", "2b"];
    let is_code = |rest: &str| {
        let rest = rest.to_ascii_lowercase();
        let first = rest.get(..2).unwrap_or_default();
        let is_long = u8::from_str_radix(first, 16).is_ok_and(|byte| (0xC2..=0xF4).contains(&byte));
        let next = rest.get(2..).and_then(|rest| rest.strip_prefix("%25"));
        let is_continued = next.is_some_and(|next| next.starts_with(['8', '9', 'a', 'b']));
        MADE.contains(&first) || (is_long && is_continued)
    };
    path.match_indices("%25").any(|(at, code)| is_code(&path[at + code.len()..]))
}

/// What of a URL is private: the name of the parameter, or the address.
fn private(url: &Url) -> Option<String> {
    const PASSWORDS: [&str; 4] = ["password", "passwd", "pwd", "passphrase"];
    const TOKENS: [&str; 10] = [
        "token",
        "access_token",
        "auth_token",
        "id_token",
        "refresh_token",
        "reset_token",
        "api_key",
        "apikey",
        "client_secret",
        "jwt",
    ];
    const MIN_TOKEN: usize = 16;
    let of_query = url.query_pairs().find_map(|(name, value)| {
        let folded = name.to_ascii_lowercase();
        let is_token = value.len() >= MIN_TOKEN
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte));
        let is_private = is_email(&value)
            || (PASSWORDS.contains(&folded.as_str()) && !value.is_empty())
            || (TOKENS.contains(&folded.as_str()) && is_token);
        is_private.then(|| name.into_owned())
    });
    of_query.or_else(|| {
        let segments = url.path_segments()?;
        let decoded = segments.map(|part| percent_encoding::percent_decode_str(part).decode_utf8_lossy());
        decoded.into_iter().find(|part| is_email(part)).map(|part| part.into_owned())
    })
}

/// Whether a text is an e-mail address. `lodash@4.17.21` and `2x@photo.png` are none.
fn is_email(text: &str) -> bool {
    const FILES: [&str; 10] = ["png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "html", "json"];
    let Some((name, host)) = text.trim().split_once('@') else { return false };
    let is_word = |text: &str, others: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
    };
    let Some((domain, top)) = host.rsplit_once('.') else { return false };
    is_word(name, b"._%+-")
        && is_word(domain, b".-")
        && top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !FILES.contains(&top.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_that_encoders_make_are_encoded_twice() {
        for path in ["/a%2520b", "/a%252Fb", "/caf%25C3%25A9"] {
            assert!(is_escaped_twice(path), "{path}");
        }
        for path in ["/a%20b", "/100%25", "/100%25abc", "/caf%C3%A9", "/%25C3A"] {
            assert!(!is_escaped_twice(path), "{path}");
        }
    }

    #[test]
    fn addresses_passwords_and_tokens_are_private() {
        let is = |path: &str| private(&Url::parse(&format!("https://a.example{path}")).unwrap()).is_some();
        for path in ["/?email=ann%40b.example", "/user/ann@b.example", "/?pwd=x", "/?token=0123456789abcdef"]
        {
            assert!(is(path), "{path}");
        }
        for path in [
            "/?q=ann",
            "/npm/lodash@4.17.21",
            "/img@2x.png",
            "/@ann",
            "/?token=next",
            "/?password=",
            "/?tokens=0123456789abcdef",
        ] {
            assert!(!is(path), "{path}");
        }
    }
}
