//! A cookie jar (RFC 6265): which cookies servers set, for which hosts, and until when. Its size is bounded, and
//! programs can read, seed and save it.
//!
//! The jar that reqwest uses (`cookie_store`) was rejected: reqwest runs it without a list of public suffixes, so a
//! site could set cookies for all of `co.uk`, and a client has one jar whereas a crawl has as many as its requests
//! name. Single `Set-Cookie` lines are parsed by the crate `cookie`.

use std::collections::HashMap;
use std::path::Path;

use huntsman_crawler::{Error, Result, Timestamp, registrable_part};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::origin;

/// Maximum number of cookies of one domain; the oldest is removed first.
const MAX_PER_DOMAIN: usize = 50;
/// Maximum bytes of the name and value of a cookie together.
const MAX_COOKIE: usize = 4_096;
/// Maximum bytes of one `Cookie` header.
const MAX_HEADER: usize = 8_192;
/// Maximum bytes of a whole jar, so that a crawl of a million hosts does not keep the cookies of all of them. The least
/// recently used domains are removed first.
const MAX_JAR: usize = 16 << 20;
/// Approximate memory in bytes that a cookie takes besides its texts.
const OVERHEAD: usize = 120;

/// One cookie with its domain, path and expiry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCookie {
    /// The name of the cookie.
    pub name: String,
    /// The value, as the server set it.
    pub value: String,
    /// The host or domain, in ASCII and lower case, without a leading dot.
    pub domain: String,
    /// Whether it is for this host only and not for its subdomains.
    #[serde(default)]
    pub host_only: bool,
    /// The path that it is for, with the paths below it.
    #[serde(default = "root")]
    pub path: String,
    /// Whether it is for https only.
    #[serde(default)]
    pub secure: bool,
    /// Whether scripts must not see it; kept so that a saved jar is complete.
    #[serde(default)]
    pub http_only: bool,
    /// Expiry in seconds since 1970; `None` means the end of the crawl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

fn root() -> String {
    "/".to_owned()
}

impl StoredCookie {
    /// A cookie for one host and all its paths; for https only if the URL is https.
    pub fn new(url: &Url, name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: origin::host(url).to_owned(),
            host_only: true,
            path: root(),
            secure: url.scheme() == "https",
            http_only: false,
            expires: None,
        }
    }

    fn size(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len() + OVERHEAD
    }

    fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now.0 / 1_000_000)
    }

    /// Whether the two are the same cookie (in one domain), so that this one replaces the other.
    fn replaces(&self, other: &Self) -> bool {
        self.name == other.name && self.path == other.path
    }
}

/// Cookies by domain.
///
/// It holds at most 50 cookies per domain, 4 KiB per cookie, 8 KiB per `Cookie` header, and 16 MiB in all. A clone is
/// an independent copy.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    domains: HashMap<String, Domain>,
    clock: u64,
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Domain {
    /// In order of creation.
    cookies: Vec<StoredCookie>,
    used: u64,
}

impl CookieJar {
    /// An empty jar.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of cookies, expired ones included.
    pub fn len(&self) -> usize {
        self.domains.values().map(|domain| domain.cookies.len()).sum()
    }

    /// Whether the jar has no cookies.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// All cookies, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &StoredCookie> {
        self.domains.values().flat_map(|domain| &domain.cookies)
    }

    /// Removes all cookies.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a cookie, or replaces the one of the same name, domain and path; returns whether the jar changed. A cookie
    /// that is too large, has expired (it then removes the old one), or contains characters that a header cannot is not
    /// kept.
    pub fn insert(&mut self, cookie: StoredCookie, now: Timestamp) -> bool {
        let is_too_large =
            cookie.name.len() + cookie.value.len() > MAX_COOKIE || cookie.path.len() > MAX_COOKIE;
        let breaks_out = |text: &str| text.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f || b == b';');
        if is_too_large || breaks_out(&cookie.name) || breaks_out(&cookie.value) || cookie.name.contains('=')
        {
            return false;
        }
        self.clock += 1;
        let domain = match self.domains.get_mut(&cookie.domain) {
            Some(domain) => domain,
            None if cookie.is_expired(now) => return false,
            None => self.domains.entry(cookie.domain.clone()).or_default(),
        };
        domain.used = self.clock;
        let before: usize = domain.cookies.iter().map(StoredCookie::size).sum();
        let name = cookie.domain.clone();
        let old = domain.cookies.iter().position(|old| cookie.replaces(old));
        let changed = match old {
            Some(at) if cookie.is_expired(now) => {
                domain.cookies.remove(at);
                true
            }
            // The cookie keeps its place: its creation order is that of the first one (RFC 6265, 5.3).
            Some(at) => {
                let is_new = domain.cookies[at].value != cookie.value;
                domain.cookies[at] = cookie;
                is_new
            }
            None if cookie.is_expired(now) => false,
            None => {
                if domain.cookies.len() >= MAX_PER_DOMAIN {
                    domain.cookies.retain(|old| !old.is_expired(now));
                }
                if domain.cookies.len() >= MAX_PER_DOMAIN {
                    domain.cookies.remove(0);
                }
                domain.cookies.push(cookie);
                true
            }
        };
        let after: usize = domain.cookies.iter().map(StoredCookie::size).sum();
        if domain.cookies.is_empty() {
            self.domains.remove(&name);
        }
        self.bytes = self.bytes + after - before;
        if self.bytes > MAX_JAR {
            self.shrink();
        }
        changed
    }

    /// Stores a `Set-Cookie` header if it is valid for this URL; returns whether the jar changed.
    ///
    /// It rejects cookies for another host, for a public suffix (private section included) that is not the host itself,
    /// for an IP address that is not the host, cookies with a `Domain` that is no host name or ends with a dot,
    /// `Secure` cookies over http, and cookies that would hide a `Secure` one over http.
    pub fn store(&mut self, url: &Url, set_cookie: &str, now: Timestamp) -> bool {
        let Some(cookie) = self.accept(url, set_cookie, now) else { return false };
        self.insert(cookie, now)
    }

    fn accept(&self, url: &Url, set_cookie: &str, now: Timestamp) -> Option<StoredCookie> {
        let parsed = cookie::Cookie::parse(set_cookie).ok()?;
        let host = origin::host(url);
        let is_https = url.scheme() == "https";
        let secure = parsed.secure() == Some(true);
        if host.is_empty() || secure && !is_https {
            return None;
        }
        let (domain, host_only) = match parsed.domain() {
            // An empty attribute counts as absent; a lone dot is a bad domain.
            None => (host.to_owned(), true),
            Some(domain) => domain_for(url, host, domain)?,
        };
        let path = match parsed.path() {
            Some(path) if path.starts_with('/') => path.to_owned(),
            _ => default_path(url).to_owned(),
        };
        let name = parsed.name();
        let prefix =
            |prefix: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
        if prefix("__Secure-") && !secure || prefix("__Host-") && !(secure && host_only && path == "/") {
            return None;
        }
        let cookie = StoredCookie {
            name: name.to_owned(),
            value: parsed.value().to_owned(),
            domain,
            host_only,
            path,
            secure,
            http_only: parsed.http_only() == Some(true),
            expires: expiry(&parsed, now),
        };
        (is_https || !self.hides_secure(host, &cookie)).then_some(cookie)
    }

    /// Whether a cookie that came over http would hide a secure one (RFC 6265bis, "leave secure cookies alone").
    fn hides_secure(&self, host: &str, cookie: &StoredCookie) -> bool {
        domains_of(host)
            .filter_map(|domain| self.domains.get(domain))
            .flat_map(|domain| &domain.cookies)
            .any(|old| old.secure && old.name == cookie.name && path_matches(&cookie.path, &old.path))
    }

    /// The `Cookie` header for a URL: longer paths first, then older cookies. `None` if there is nothing to send.
    pub fn header(&mut self, url: &Url, now: Timestamp) -> Option<String> {
        if self.domains.is_empty() {
            return None;
        }
        let host = origin::host(url);
        let is_address = !matches!(url.host(), Some(Host::Domain(_)));
        let is_https = url.scheme() == "https";
        self.clock += 1;
        let mut found: Vec<&StoredCookie> = Vec::new();
        for name in domains_of(host).take(if is_address { 1 } else { usize::MAX }) {
            if let Some(domain) = self.domains.get_mut(name) {
                domain.used = self.clock;
            }
        }
        for name in domains_of(host).take(if is_address { 1 } else { usize::MAX }) {
            let Some(domain) = self.domains.get(name) else { continue };
            found.extend(domain.cookies.iter().filter(|cookie| {
                (!cookie.host_only || name == host)
                    && (is_https || !cookie.secure)
                    && path_matches(url.path(), &cookie.path)
                    && !cookie.is_expired(now)
            }));
        }
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut header = String::new();
        for cookie in found {
            let separator = if header.is_empty() { "" } else { "; " };
            if header.len() + separator.len() + cookie.name.len() + 1 + cookie.value.len() <= MAX_HEADER {
                header.extend([separator, &cookie.name, "=", &cookie.value]);
            }
        }
        (!header.is_empty()).then_some(header)
    }

    /// Removes the least recently used domains until a tenth of the jar is free.
    fn shrink(&mut self) {
        let mut ages: Vec<(u64, String)> =
            self.domains.iter().map(|(name, domain)| (domain.used, name.clone())).collect();
        ages.sort_unstable();
        for (_, name) in ages {
            if self.bytes <= MAX_JAR / 10 * 9 {
                return;
            }
            if let Some(domain) = self.domains.remove(&name) {
                self.bytes -= domain.cookies.iter().map(StoredCookie::size).sum::<usize>();
            }
        }
    }

    /// The cookies as JSON: a list of objects.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.sorted()).expect("cookies are text and numbers")
    }

    /// Reads JSON that [`CookieJar::to_json`] wrote.
    ///
    /// # Errors
    /// The text is not JSON of that shape.
    pub fn from_json(text: &str) -> Result<Self> {
        let cookies: Vec<StoredCookie> = serde_json::from_str(text)?;
        Ok(Self::of(cookies))
    }

    /// The cookies in the format of Netscape's `cookies.txt`, which curl, wget and browser extensions read and write.
    pub fn to_netscape(&self) -> String {
        let mut out = "# Netscape HTTP Cookie File\n".to_owned();
        let flag = |set: bool| if set { "TRUE" } else { "FALSE" };
        for cookie in self.sorted() {
            // A tab or a line break in a value would start another field or cookie.
            if [&cookie.name, &cookie.value, &cookie.path]
                .iter()
                .any(|text| text.contains(['\t', '\n', '\r']))
            {
                continue;
            }
            let fields = [
                if cookie.http_only { "#HttpOnly_" } else { "" },
                if cookie.host_only { "" } else { "." },
                &cookie.domain,
                "\t",
                flag(!cookie.host_only),
                "\t",
                &cookie.path,
                "\t",
                flag(cookie.secure),
                "\t",
                &cookie.expires.unwrap_or(0).to_string(),
                "\t",
                &cookie.name,
                "\t",
                &cookie.value,
                "\n",
            ];
            out.extend(fields);
        }
        out
    }

    /// Reads a `cookies.txt`.
    ///
    /// # Errors
    /// A line does not have seven fields; the error names it.
    pub fn from_netscape(text: &str) -> Result<Self> {
        let mut cookies = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (http_only, line) = match line.strip_prefix("#HttpOnly_") {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').collect();
            let [domain, subdomains, path, secure, expires, name, value] = fields[..] else {
                return Err(Error::usage(format!(
                    "cookies.txt line {}: expected 7 fields with tabs between",
                    index + 1
                )));
            };
            // Some writers give fractions, and 0 or -1 for a cookie that ends with the session.
            let expires = expires.trim().parse::<f64>().ok().filter(|at| *at > 0.0).map(|at| at as u64);
            cookies.push(StoredCookie {
                name: name.to_owned(),
                value: value.to_owned(),
                domain: domain.trim_start_matches('.').to_ascii_lowercase(),
                host_only: !subdomains.eq_ignore_ascii_case("TRUE"),
                path: path.to_owned(),
                secure: secure.eq_ignore_ascii_case("TRUE"),
                http_only,
                expires,
            });
        }
        Ok(Self::of(cookies))
    }

    /// Reads a file: as JSON if it begins with a bracket, else in the Netscape format.
    ///
    /// # Errors
    /// The file cannot be read, or is in neither format.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let doing = || format!("reading cookies from {}", path.display());
        let text = std::fs::read_to_string(path).map_err(|cause| Error::from(cause).context(doing()))?;
        let jar = if text.trim_start().starts_with('[') {
            Self::from_json(&text)
        } else {
            Self::from_netscape(&text)
        };
        jar.map_err(|error| error.context(doing()))
    }

    /// Writes a file, as JSON if its name ends with `.json`, else in the Netscape format. Only its owner can read it,
    /// and it is replaced atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = if is_json { self.to_json() } else { self.to_netscape() };
        huntsman_files::write(path, text)
            .map_err(|cause| Error::from(cause).context(format!("writing cookies to {}", path.display())))
    }

    fn of(cookies: Vec<StoredCookie>) -> Self {
        let mut jar = Self::new();
        for cookie in cookies {
            // With time 0 expired cookies are kept too; they are left out when a header is made.
            jar.insert(cookie, Timestamp(0));
        }
        jar
    }

    fn sorted(&self) -> Vec<&StoredCookie> {
        let mut cookies: Vec<_> = self.iter().collect();
        // Stable, so within a domain the order of creation stays.
        cookies.sort_by(|a, b| a.domain.cmp(&b.domain));
        cookies
    }
}

/// The domain of a cookie with this `Domain` attribute, and whether it is for the host only. `None` if this host may
/// not set it.
fn domain_for(url: &Url, host: &str, domain: &str) -> Option<(String, bool)> {
    // The URL parser normalises the case, IDNA, and unusual spellings of IP addresses.
    match (Host::parse(domain).ok()?, url.host()?) {
        (Host::Domain(name), Host::Domain(_)) if !name.ends_with('.') => {
            let is_public = registrable_part(&name).is_none();
            if name == host {
                Some((name, is_public))
            } else {
                (!is_public && origin::is_within(host, &name)).then_some((name, false))
            }
        }
        (Host::Ipv4(address), Host::Ipv4(own)) if address == own => Some((host.to_owned(), true)),
        (Host::Ipv6(address), Host::Ipv6(own)) if address == own => Some((host.to_owned(), true)),
        _ => None,
    }
}

/// The host itself and each domain above it.
fn domains_of(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, rest)| rest))
}

/// RFC 6265, 5.1.4: the path up to its last slash.
fn default_path(url: &Url) -> &str {
    match url.path().rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &url.path()[..slash],
    }
}

/// RFC 6265, 5.1.4.
fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || of_cookie.ends_with('/'))
}

/// The expiry in seconds since 1970; Max-Age takes precedence over Expires.
fn expiry(cookie: &cookie::Cookie<'_>, now: Timestamp) -> Option<u64> {
    let now = now.0 / 1_000_000;
    match (cookie.max_age(), cookie.expires_datetime()) {
        (Some(age), _) => Some(now.saturating_add(u64::try_from(age.whole_seconds()).unwrap_or(0))),
        (None, Some(at)) => Some(u64::try_from(at.unix_timestamp()).unwrap_or(0)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn jar(from: &str, cookies: &[&str]) -> CookieJar {
        let mut jar = CookieJar::new();
        for cookie in cookies {
            jar.store(&url(from), cookie, NOW);
        }
        jar
    }

    fn sent(jar: &mut CookieJar, to: &str) -> String {
        jar.header(&url(to), NOW).unwrap_or_default()
    }

    #[test]
    fn a_cookie_goes_where_its_domain_says() {
        for (from, cookie, to, goes) in [
            ("http://a.example.com/", "k=v", "http://a.example.com/x", true),
            ("http://a.example.com/", "k=v", "http://b.a.example.com/", false),
            ("http://a.example.com/", "k=v; Domain=example.com", "http://b.example.com/", true),
            ("http://a.example.com/", "k=v; Domain=.EXAMPLE.com", "http://example.com/", true),
            ("http://a.example.com/", "k=v; domain=a.example.com", "http://b.a.example.com/", true),
            ("http://a.example.com./", "k=v", "http://a.example.com/", true),
            ("http://a.example.com/", "k=v; Domain=", "http://a.example.com/", true),
            ("http://example.com/", "k=v; Domain=example.com", "http://badexample.com/", false),
            ("http://example.com:8080/", "k=v", "http://example.com/", true),
            ("http://127.0.0.1/", "k=v", "http://127.0.0.1/", true),
            ("http://127.0.0.1/", "k=v; Domain=127.0.0.1", "http://127.0.0.1/", true),
            ("http://[::1]/", "k=v; Domain=[::1]", "http://[::1]:9/", true),
            ("http://localhost/", "k=v; Domain=localhost", "http://localhost/", true),
            ("http://localhost/", "k=v; Domain=localhost", "http://a.localhost/", false),
            ("http://github.io/", "k=v; Domain=github.io", "http://github.io/", true),
            ("http://github.io/", "k=v; Domain=github.io", "http://me.github.io/", false),
            (
                "http://x.b\u{fc}cher.example/",
                "k=v; Domain=B\u{dc}CHER.example",
                "http://xn--bcher-kva.example/",
                true,
            ),
        ] {
            assert_eq!(sent(&mut jar(from, &[cookie]), to) == "k=v", goes, "{from} {cookie} -> {to}");
        }
    }

    #[test]
    fn cookies_for_others_are_dropped() {
        for (from, cookie) in [
            ("http://a.example.com/", "k=v; Domain=b.example.com"),
            ("http://a.example.com/", "k=v; Domain=b.a.example.com"),
            ("http://a.example.com/", "k=v; Domain=other.org"),
            ("http://a.example.com/", "k=v; Domain=com"),
            ("http://a.example.com/", "k=v; Domain=COM"),
            ("http://a.example.com/", "k=v; Domain=com."),
            ("http://a.example.com/", "k=v; Domain=example.com."),
            ("http://a.co.uk/", "k=v; Domain=.Co.Uk"),
            ("http://me.github.io/", "k=v; Domain=github.io"),
            ("http://a.test/", "k=v; Domain=test"),
            ("http://127.0.0.1/", "k=v; Domain=0.0.1"),
            ("http://127.0.0.1/", "k=v; Domain=1"),
            ("http://127.0.0.1/", "k=v; Domain=127.0.0.2"),
            ("http://1.example.com/", "k=v; Domain=0x7f.1"),
            ("http://a.example.com/", "k=v; Domain=exa mple.com"),
            ("http://a.example.com/", "k=v; Domain=.."),
            ("http://a.example.com/", "k=v; Domain=."),
            ("http://127.0.0.38/", "k=v; Domain=."),
            ("http://127.0.0.38/", "k=v; Domain=127.0.0."),
            ("http://127.0.0.38/", "k=v; Domain=*"),
            ("http://127.0.0.38/", "k=v; Domain=%00"),
            ("http://a.example.com/", "k=v; Secure"),
            ("https://a.example.com/", "__Secure-k=v"),
            ("https://a.example.com/", "__host-k=v; Secure; Path=/; Domain=a.example.com"),
            ("http://a.example.com/", "=v"),
            ("http://a.example.com/", "no pair"),
            ("http://a.example.com/", ""),
            ("http://a.example.com/", "k=v; Max-Age=0"),
            ("http://a.example.com/", "k=v; Max-Age=-5"),
            ("http://a.example.com/", "k=v; Expires=Thu, 01 Jan 1970 00:00:01 GMT"),
        ] {
            assert!(jar(from, &[cookie]).is_empty(), "{from} {cookie}");
        }
    }

    #[test]
    fn secure_cookies_never_travel_over_http_and_are_not_hidden_by_it() {
        let mut jar = jar(
            "https://example.com/",
            &["k=secret; Secure; Domain=example.com", "__Host-h=1; Secure; Path=/"],
        );
        assert_eq!(sent(&mut jar, "http://example.com/"), "");
        assert_eq!(sent(&mut jar, "https://example.com/"), "k=secret; __Host-h=1");
        assert!(!jar.store(&url("http://a.example.com/"), "k=forged", NOW));
        assert!(!jar.store(&url("http://example.com/"), "k=forged; Path=/deep", NOW));
        assert!(jar.store(&url("http://example.com/"), "other=1", NOW));
    }

    #[test]
    fn paths_match_whole_segments() {
        let from = "http://h/docs/a/page";
        for (cookie, path, goes) in [
            ("k=v", "/docs/a/x", true),
            ("k=v", "/docs/a", true),
            ("k=v", "/docs/ab", false),
            ("k=v", "/", false),
            ("k=v; Path=/", "/anything", true),
            ("k=v; Path=/docs/", "/docs", false),
            ("k=v; Path=/docs/", "/docs/x", true),
            ("k=v; Path=docs", "/docs/a/x", true),
        ] {
            assert_eq!(
                sent(&mut jar(from, &[cookie]), &format!("http://h{path}")) == "k=v",
                goes,
                "{cookie} {path}"
            );
        }
        let mut both = jar("http://h/", &["a=1; Path=/", "b=2; Path=/x/y", "c=3; Path=/x", "d=4; Path=/"]);
        assert_eq!(sent(&mut both, "http://h/x/y"), "b=2; c=3; a=1; d=4");
    }

    #[test]
    fn a_cookie_ends_with_its_time() {
        let mut jar = jar(
            "http://h/",
            &[
                "short=1; Max-Age=60; Expires=Wed, 01 Jan 2098 00:00:00 GMT",
                "long=1; Expires=Tue, 14-Nov-2023 22:15:00 GMT",
                "huge=1; Max-Age=99999999999999999999999",
                "odd=1; Expires=whenever",
            ],
        );
        let mut at =
            |seconds: u64| jar.header(&url("http://h/"), Timestamp(NOW.0 + seconds * 1_000_000)).unwrap();
        assert_eq!(at(59), "short=1; long=1; huge=1; odd=1");
        assert_eq!(at(60), "long=1; huge=1; odd=1");
        // 22:15:00 is 100 s after NOW.
        assert_eq!(at(100), "huge=1; odd=1");
    }

    #[test]
    fn setting_again_tells_whether_anything_changed() {
        let mut jar = CookieJar::new();
        let mut set = |cookie| jar.store(&url("http://h/"), cookie, NOW);
        assert!(set("a=1"));
        assert!(!set("a=1"));
        assert!(set("a=2"));
        assert!(set("a=; Max-Age=0"));
        assert!(!set("a=; Max-Age=0"));
        assert!(jar.is_empty());
    }

    #[test]
    fn a_jar_is_bounded_in_every_way() {
        let mut jar = CookieJar::new();
        for n in 0..60 {
            jar.store(&url("http://h/"), &format!("k{n}=v"), NOW);
        }
        assert_eq!(jar.len(), 50);
        assert!(sent(&mut jar, "http://h/").starts_with("k10=v"), "the oldest go first");
        assert!(!jar.store(&url("http://h/"), &format!("big={}", "x".repeat(4_094)), NOW));
        assert!(jar.store(&url("http://h/"), &format!("big={}", "x".repeat(4_093)), NOW));
        for n in 0..5 {
            jar.store(&url("http://h/"), &format!("large{n}={}", "x".repeat(3_000)), NOW);
        }
        assert!(sent(&mut jar, "http://h/").len() <= 8_192);

        for n in 0..6_000 {
            jar.store(&url(&format!("http://h{n}.example/")), &format!("k={}", "x".repeat(4_000)), NOW);
            sent(&mut jar, "http://h/");
        }
        let held: usize = jar.iter().map(StoredCookie::size).sum();
        assert_eq!(held, jar.bytes);
        assert!(held <= MAX_JAR, "{held}");
        assert!(!sent(&mut jar, "http://h/").is_empty(), "what is used stays");
    }

    #[test]
    fn both_formats_read_back_what_they_wrote() {
        let mut jar = jar(
            "https://a.example.com/dir/",
            &["a=1; Domain=example.com; Secure; HttpOnly; Max-Age=60", "b=x=y z; Path=/", "c="],
        );
        jar.insert(StoredCookie::new(&url("http://[::1]/"), "n", "1"), NOW);
        let sorted = |jar: &CookieJar| jar.sorted().into_iter().cloned().collect::<Vec<_>>();
        let folder = tempfile::tempdir().unwrap();
        for name in ["jar.json", "cookies.txt"] {
            let path = folder.path().join(name);
            jar.save(&path).unwrap();
            assert_eq!(sorted(&CookieJar::load(&path).unwrap()), sorted(&jar), "{name}");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn a_cookies_txt_of_curl_is_read() {
        let text = "# Netscape HTTP Cookie File\n\n#HttpOnly_.example.com\tTRUE\t/\tFALSE\t1700000100\tsid\tabc\n\
            h.example\tFALSE\t/x\tTRUE\t0\tn\tv\n";
        let mut jar = CookieJar::from_netscape(text).unwrap();
        assert_eq!(sent(&mut jar, "http://www.example.com/"), "sid=abc");
        assert_eq!(sent(&mut jar, "https://h.example/x"), "n=v");
        let error = CookieJar::from_netscape("a\tb\n").unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
