//! Access control: host names, origins, the token.

use std::fmt;
use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use url::Url;

use crate::server::HostNames;

/// Why [`Access`] cannot be controlled as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// Other machines can reach this address, and there is no token.
    NoToken(SocketAddr),
    /// The token is empty, or has a character that is not a visible one of ASCII.
    BadToken,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken(address) => {
                write!(f, "other machines can reach {address}: give a token, or listen at a loopback address")
            }
            Self::BadToken => {
                f.write_str("the token is empty or has other characters than visible ones of ASCII")
            }
        }
    }
}

impl std::error::Error for AccessError {}

/// Decides which requests are allowed: by the name of the host that they ask for, by the site whose page sends them,
/// and by the token, if there is one.
#[derive(Clone)]
pub struct Access {
    names: HostNames,
    token: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("names", &self.names).field("token", &self.token.is_some()).finish()
    }
}

impl Access {
    /// Access control for a server that listens at `address`. The token must be valid in a header, and must contain no
    /// character that a shell or a form would change.
    ///
    /// # Errors
    /// Other machines can reach the address and there is no token; or the token is empty, or has a character that is
    /// not a visible one of ASCII.
    pub fn new(address: SocketAddr, token: Option<String>) -> Result<Self, AccessError> {
        match &token {
            None if !address.ip().is_loopback() => Err(AccessError::NoToken(address)),
            Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(AccessError::BadToken)
            }
            _ => Ok(Self { names: HostNames::of(address), token }),
        }
    }

    /// The host names under which this server may be addressed.
    pub fn names(&self) -> HostNames {
        self.names
    }

    /// Whether a browser sends this request for a page of another site.
    pub fn is_cross_origin(headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(site) = headers.get("sec-fetch-site") {
            return !matches!(site.to_str(), Ok("same-origin" | "none"));
        }
        let Some(origin) = headers.get(ORIGIN) else { return false };
        let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
        // The scheme may differ if there is a proxy in front of the server.
        let place = origin.as_ref().and_then(|url| {
            let host = url.host_str()?;
            Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
        });
        place.is_none() || place.as_deref() != text(HOST.as_str())
    }

    /// Whether requests need a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether the header has the token, or none is needed.
    pub fn admits_header(&self, headers: &HeaderMap) -> bool {
        self.admits(Self::bearer(headers))
    }

    /// The token in the header `Authorization: Bearer TOKEN`.
    pub fn bearer(headers: &HeaderMap) -> Option<&str> {
        let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }

    /// Whether `given` is the token, or none is needed.
    pub fn admits(&self, given: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        given.is_some_and(|given| is_same(token.as_bytes(), given.as_bytes()))
    }
}

/// Compares in a time that does not depend on the contents: otherwise response times would tell how much of a guess
/// is right.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_request_for_a_page_of_another_site_is_recognised_by_its_headers() {
        for (pairs, is_cross) in [
            (&[][..], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")], false),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("origin", "http://localhost:8765")], false),
            (&[("origin", "https://localhost:8765")], false),
            (&[("origin", "http://localhost:1")], true),
            (&[("origin", "https://evil.example")], true),
            (&[("origin", "null")], true),
        ] {
            let mut headers = headers(pairs);
            headers.insert("host", HeaderValue::from_static("localhost:8765"));
            assert_eq!(Access::is_cross_origin(&headers), is_cross, "{pairs:?}");
        }
    }

    #[test]
    fn other_machines_need_the_token() {
        let everywhere = "0.0.0.0:8765".parse().unwrap();
        assert_eq!(Access::new(everywhere, None).unwrap_err(), AccessError::NoToken(everywhere));
        assert!(
            Access::new("127.0.0.1:1".parse().unwrap(), Some(String::new())).unwrap_err()
                == AccessError::BadToken
        );
        let access = Access::new(everywhere, Some("secret".to_owned())).unwrap();
        assert!(access.admits_header(&headers(&[("authorization", "bearer secret")])));
        for wrong in ["Bearer secre", "Bearer secrets", "Basic secret", "secret", "Bearer "] {
            assert!(!access.admits_header(&headers(&[("authorization", wrong)])), "{wrong}");
        }
        assert!(!access.admits(None) && access.admits(Some("secret")));
        assert!(!format!("{access:?}").contains("secret"));
    }
}
