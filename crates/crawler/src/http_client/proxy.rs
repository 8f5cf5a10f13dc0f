//! The address of a proxy: its location, its protocol, and the credentials for it.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::fetch::{FetchError, FetchErrorKind};

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// HTTP, over TLS if `tls` is set. Requests use absolute URLs for http and CONNECT for https.
    Http { tls: bool },
    /// SOCKS 5. Names are resolved by this process, or by the proxy if `remote_dns` is set (socks5h).
    Socks5 { remote_dns: bool },
}

/// A proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) scheme: Scheme,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) credentials: Option<(String, String)>,
}

impl Proxy {
    /// Reads a proxy URL; a bare `host:port` is an http proxy. Credentials are percent-decoded.
    pub(crate) fn parse(address: &str) -> Result<Self, FetchError> {
        // The address may contain a password, so the message does not repeat it.
        let invalid = |why: &str| FetchError::new(FetchErrorKind::Proxy, format!("the proxy address {why}"));
        let parsed = match address.contains("://") {
            true => Url::parse(address),
            false => Url::parse(&format!("http://{address}")),
        };
        let url = parsed.map_err(|_| invalid("is not a URL"))?;
        let (scheme, port) = match url.scheme() {
            "http" => (Scheme::Http { tls: false }, 80),
            "https" => (Scheme::Http { tls: true }, 443),
            "socks5" => (Scheme::Socks5 { remote_dns: false }, 1080),
            "socks5h" => (Scheme::Socks5 { remote_dns: true }, 1080),
            _ => return Err(invalid("has a scheme other than http, https, socks5 and socks5h")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid("has no host"))?;
        let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let credentials = (!url.username().is_empty() || url.password().is_some())
            .then(|| (decode(url.username()), decode(url.password().unwrap_or(""))));
        if let Some((user, password)) = &credentials
            && (user.len() > 255 || password.len() > 255 || user.contains(':'))
        {
            return Err(invalid("has credentials that cannot be sent"));
        }
        Ok(Self { scheme, host: host.to_owned(), port: url.port().unwrap_or(port), credentials })
    }

    /// The proxy in the form that the HTTP library needs; the library also sends the credentials.
    pub(crate) fn for_client(&self) -> reqwest::Result<reqwest::Proxy> {
        let scheme = match self.scheme {
            Scheme::Http { tls: false } => "http",
            Scheme::Http { tls: true } => "https",
            Scheme::Socks5 { remote_dns: false } => "socks5",
            Scheme::Socks5 { remote_dns: true } => "socks5h",
        };
        let proxy = reqwest::Proxy::all(format!("{scheme}://{}:{}", self.host, self.port))?;
        Ok(match &self.credentials {
            Some((user, password)) => proxy.basic_auth(user, password),
            None => proxy,
        })
    }
}

/// Prints the proxy without its password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("scheme", &self.scheme)
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded_and_kept_out_of_debug() {
        let proxy = Proxy::parse("http://us%40er:p%3Ass@proxy.example:3128").expect("valid");
        assert_eq!(proxy.credentials, Some(("us@er".to_owned(), "p:ss".to_owned())));
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.example", 3128));
        assert!(!format!("{proxy:?}").contains("p:ss"));
    }

    #[test]
    fn schemes_and_default_ports() {
        for (address, scheme, port) in [
            ("http://p", Scheme::Http { tls: false }, 80),
            ("https://p", Scheme::Http { tls: true }, 443),
            ("socks5://p", Scheme::Socks5 { remote_dns: false }, 1080),
            ("socks5h://p:9", Scheme::Socks5 { remote_dns: true }, 9),
            ("p:8080", Scheme::Http { tls: false }, 8080),
            ("127.0.0.1:8080", Scheme::Http { tls: false }, 8080),
            ("[::1]:8080", Scheme::Http { tls: false }, 8080),
        ] {
            let proxy = Proxy::parse(address).expect(address);
            assert_eq!((proxy.scheme, proxy.port), (scheme, port), "{address}");
        }
        for address in ["ftp://p", "socks4://p", "", "http://", "file:///x"] {
            let error = Proxy::parse(address).expect_err(address);
            assert_eq!(error.kind(), FetchErrorKind::Proxy);
        }
    }
}
