//! What is wrong with addresses as pages write them.

use huntsman_crawler::Page;
use percent_encoding::percent_decode_str;
use url::Url;

/// Misspellings of http and https, which no program has as its scheme.
const MISSPELLED: [&str; 16] = [
    "hhtp", "hhtps", "hppt", "hppts", "hpps", "htp", "htps", "htpp", "htpps", "httpp", "httpss", "htttp",
    "htttps", "ttp", "ttps", "htttpss",
];

/// The code of what is wrong with the address of a link; `None` if nothing is.
pub(super) fn fault(page: &Page, href: &str) -> Option<&'static str> {
    let Ok(url) = Url::options().base_url(Some(page.url())).parse(href) else {
        return Some("link-malformed");
    };
    match url.scheme() {
        // The second scheme of `http://https://` is read as a host.
        "http" | "https" => matches!(url.host_str(), Some("http" | "https")).then_some("link-malformed"),
        "mailto" => (!is_mailto(&url)).then_some("mailto-invalid"),
        // A drive of Windows is read as a scheme of one letter.
        "file" => Some("file-link"),
        scheme if scheme.len() == 1 && url.path().starts_with(['/', '\\']) => Some("file-link"),
        scheme => MISSPELLED.contains(&scheme).then_some("link-malformed"),
    }
}

/// Whether a `mailto:` URL can be written to: it has addresses (RFC 6068), or fields of a letter that the reader addresses.
fn is_mailto(url: &Url) -> bool {
    let to = percent_decode_str(url.path()).decode_utf8_lossy();
    if to.trim().is_empty() {
        return url.query().is_some_and(|fields| !fields.is_empty());
    }
    // Names around addresses, quotation marks and semicolons are not in the standard, and work in mail programs.
    to.contains(['<', '"'])
        || to.split([',', ';']).map(str::trim).filter(|address| !address.is_empty()).all(|address| {
            let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
            address.rsplit_once('@').is_some_and(|(name, domain)| {
                is_part(name) && is_part(domain) && !name.contains('@') && !domain.starts_with('.')
            })
        })
}

/// A URL without what seldom makes another page: scheme, `www.`, fragment, slash at the end.
pub(super) fn folded(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{host}{port}{}{query}", url.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use huntsman_crawler::{Request, Response};

    #[test]
    fn addresses_are_judged_by_what_is_surely_wrong() {
        let url = Url::parse("https://a.example/b/").unwrap();
        let page = Page::new(Request::get(url.clone()), Response::new(url, StatusCode::OK, ""));
        for (href, code) in [
            ("http://https://a.example/", Some("link-malformed")),
            ("https://http//a.example/", Some("link-malformed")),
            ("http://", Some("link-malformed")),
            ("http://a b.example/", Some("link-malformed")),
            ("http://a.example:port/", Some("link-malformed")),
            ("htttp://a.example/", Some("link-malformed")),
            ("//b.example/", None),
            ("/a b", None),
            ("{{ url }}", None),
            ("http.html", None),
            ("tel:+1234", None),
            ("x-app://open", None),
            ("", None),
            ("mailto:", Some("mailto-invalid")),
            ("mailto:info.example", Some("mailto-invalid")),
            ("mailto:info@", Some("mailto-invalid")),
            ("mailto:in fo@a.example", Some("mailto-invalid")),
            ("mailto:info@a.example", None),
            ("mailto:info%40a.example,b@a.example?subject=Hello", None),
            ("mailto:?subject=Read%20this&body=x", None),
            ("mailto:Info <info@a.example>", None),
            ("mailto:root@localhost", None),
            ("file:///etc/hosts", Some("file-link")),
            ("C:\\prices.pdf", Some("file-link")),
            ("c:/prices.pdf", Some("file-link")),
            ("files:x", None),
        ] {
            assert_eq!(fault(&page, href), code, "{href}");
        }
    }
}
