//! Origins: scheme, host and port, the unit that credentials are bound to.

use std::fmt;

use huntsman_crawler::{Error, Result};
use url::Url;

/// Scheme, host and port of an http or https URL. The default port is written out, so `https://h` equals `https://h:443`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of a URL; `None` for other schemes than http and https.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        Some(Self { scheme: url.scheme().to_owned(), host, port: url.port_or_known_default()? })
    }

    /// Parses the origin before the first `=` of a setting such as `https://host=user:password`, and returns it with
    /// the rest.
    pub(crate) fn split_setting<'a>(setting: &str, text: &'a str) -> Result<(Self, &'a str)> {
        // The value is a secret, so it is never part of the message.
        let wrong = || {
            Error::usage(format!(
                "setting {setting}: expected `https://host[:port]=value`, with an exact origin"
            ))
        };
        let (origin, value) = text.split_once('=').ok_or_else(wrong)?;
        let url = Url::parse(origin.trim()).map_err(|_| wrong())?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare || !url.username().is_empty() || url.password().is_some() {
            return Err(wrong());
        }
        Ok((Self::of(&url).ok_or_else(wrong)?, value))
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Whether two URLs share scheme, host and port. https and http of one host do not.
pub(crate) fn same_origin(a: &Url, b: &Url) -> bool {
    match (Origin::of(a), Origin::of(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// The host of a URL without the trailing dot of a full name; empty if it has none. The `url` crate has lower-cased it.
pub(crate) fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("").trim_end_matches('.')
}

/// Whether `host` is `domain` or a subdomain of it. Both in ASCII form and lower case.
pub(crate) fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| same_origin(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert!(same("https://h/a", "https://h:443/b"));
        assert!(same("http://H./", "http://h/"));
        assert!(!same("https://h/", "http://h/"));
        assert!(!same("http://h/", "http://h:8080/"));
        assert!(!same("http://h/", "http://g.h/"));
        assert!(!same("file:///a", "file:///a"));
    }

    #[test]
    fn a_setting_needs_an_exact_origin() {
        let (origin, value) = Origin::split_setting("http_auth", "https://h:8443=user:p=w").unwrap();
        assert_eq!((format!("{origin:?}").as_str(), value), ("https://h:8443", "user:p=w"));
        for wrong in ["h=user:pw", "https://h/path=user:pw", "https://u@h=x", "https://h", "ftp://h=x"] {
            let error = Origin::split_setting("http_auth", wrong).unwrap_err();
            assert!(error.is_usage() && !error.to_string().contains("pw"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_subdomain_is_within_and_a_lookalike_is_not() {
        assert!(is_within("a.example.org", "example.org"));
        assert!(is_within("example.org", "example.org"));
        assert!(!is_within("badexample.org", "example.org"));
        assert!(!is_within("example.org", "a.example.org"));
    }
}
