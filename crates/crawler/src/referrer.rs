//! The `Referer` header of a request (W3C Referrer Policy).

use std::fmt;
use std::str::FromStr;

use url::{Origin, Position, Url};

/// How much of the page's URL is sent with the next request.
///
/// There are the eight standard policies, and the default policy of Scrapy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReferrerPolicy {
    /// No `Referer` is sent.
    NoReferrer,
    /// The URL is sent, except from a secure page to an insecure one.
    NoReferrerWhenDowngrade,
    /// The URL is sent within one origin, and nothing to other origins.
    SameOrigin,
    /// Only the origin is sent.
    Origin,
    /// Only the origin is sent, and nothing from a secure page to an insecure one.
    StrictOrigin,
    /// The URL is sent within one origin, and the origin to other origins.
    OriginWhenCrossOrigin,
    /// The URL is sent within one origin, the origin to other origins, and nothing from a secure page to an insecure
    /// one. Browsers do the same, and it is the default here (Scrapy's is [`ScrapyDefault`](Self::ScrapyDefault)).
    #[default]
    StrictOriginWhenCrossOrigin,
    /// The URL is sent to every origin.
    UnsafeUrl,
    /// Scrapy's default: like [`NoReferrerWhenDowngrade`](Self::NoReferrerWhenDowngrade), but nothing from `file:`
    /// and similar schemes.
    ScrapyDefault,
}

impl ReferrerPolicy {
    /// All policies with their names.
    pub const NAMES: [(&'static str, ReferrerPolicy); 9] = [
        ("no-referrer", ReferrerPolicy::NoReferrer),
        ("no-referrer-when-downgrade", ReferrerPolicy::NoReferrerWhenDowngrade),
        ("same-origin", ReferrerPolicy::SameOrigin),
        ("origin", ReferrerPolicy::Origin),
        ("strict-origin", ReferrerPolicy::StrictOrigin),
        ("origin-when-cross-origin", ReferrerPolicy::OriginWhenCrossOrigin),
        ("strict-origin-when-cross-origin", ReferrerPolicy::StrictOriginWhenCrossOrigin),
        ("unsafe-url", ReferrerPolicy::UnsafeUrl),
        ("scrapy-default", ReferrerPolicy::ScrapyDefault),
    ];

    /// The policy of a `Referrer-Policy` header: the last token that names a policy, since sites put the newest one
    /// last and expect clients to ignore tokens that they do not know (Referrer Policy, section 8.1).
    /// `scrapy-default` is only a setting and not accepted in the header.
    ///
    /// ```
    /// use huntsman_crawler::referrer::ReferrerPolicy;
    ///
    /// let policy = ReferrerPolicy::from_header("no-referrer, strict-origin, future-policy");
    /// assert_eq!(policy, Some(ReferrerPolicy::StrictOrigin));
    /// ```
    pub fn from_header(value: &str) -> Option<Self> {
        let known =
            |token: &str| token.parse().ok().filter(|policy| *policy != ReferrerPolicy::ScrapyDefault);
        value.rsplit(',').find_map(known)
    }

    /// The policy's name.
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(_, policy)| *policy == self);
        named.expect("every policy has a name").0
    }
}

impl fmt::Display for ReferrerPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a word that is not a referrer policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a referrer policy; known are", self.0)?;
        for (index, (name, _)) in ReferrerPolicy::NAMES.iter().enumerate() {
            write!(f, "{} {name}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for ReferrerPolicy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let name = name.trim();
        let found = Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, policy)| *policy).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// The value of `Referer` for a request to `to` that was found at `from`; `None` if none may be sent.
///
/// User info and fragment are never included, and a URL without an HTTP scheme (`file:`, `data:`) is never sent. A
/// "downgrade" is a request from `https` to another scheme.
pub fn referrer(policy: ReferrerPolicy, from: &Url, to: &Url) -> Option<String> {
    use ReferrerPolicy as P;
    if !matches!(from.scheme(), "http" | "https") {
        return None;
    }
    let downgrade = from.scheme() == "https" && to.scheme() != "https";
    let same_origin = same_origin(from, to);
    let address = || Some(address_of(from));
    let origin = || Some(format!("{}/", from.origin().ascii_serialization()));
    match policy {
        P::NoReferrer => None,
        P::NoReferrerWhenDowngrade | P::ScrapyDefault | P::StrictOrigin if downgrade => None,
        P::NoReferrerWhenDowngrade | P::ScrapyDefault | P::UnsafeUrl => address(),
        P::Origin | P::StrictOrigin => origin(),
        P::SameOrigin | P::OriginWhenCrossOrigin | P::StrictOriginWhenCrossOrigin if same_origin => address(),
        P::OriginWhenCrossOrigin => origin(),
        P::StrictOriginWhenCrossOrigin if !downgrade => origin(),
        P::SameOrigin | P::StrictOriginWhenCrossOrigin => None,
    }
}

fn same_origin(a: &Url, b: &Url) -> bool {
    matches!((a.origin(), b.origin()), (Origin::Tuple(..), Origin::Tuple(..))) && a.origin() == b.origin()
}

/// The URL without user info and fragment.
fn address_of(url: &Url) -> String {
    let (scheme, rest) = (&url[..Position::BeforeUsername], &url[Position::BeforeHost..Position::AfterQuery]);
    format!("{scheme}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [(&str, &str); 4] = [
        ("https://u:p@a.com/x?q#f", "https://a.com/y"),
        ("https://a.com/x", "http://a.com/y"),
        ("http://a.com/x", "https://b.com/y"),
        ("https://a.com:443/x", "https://b.com/"),
    ];

    fn sent(policy: ReferrerPolicy, from: &str, to: &str) -> String {
        referrer(policy, &Url::parse(from).unwrap(), &Url::parse(to).unwrap()).unwrap_or_else(|| "-".into())
    }

    #[test]
    fn golden_table() {
        let table = [
            ("no-referrer", ["-", "-", "-", "-"]),
            ("no-referrer-when-downgrade", ["https://a.com/x?q", "-", "http://a.com/x", "https://a.com/x"]),
            ("scrapy-default", ["https://a.com/x?q", "-", "http://a.com/x", "https://a.com/x"]),
            ("same-origin", ["https://a.com/x?q", "-", "-", "-"]),
            ("origin", ["https://a.com/", "https://a.com/", "http://a.com/", "https://a.com/"]),
            ("strict-origin", ["https://a.com/", "-", "http://a.com/", "https://a.com/"]),
            (
                "origin-when-cross-origin",
                ["https://a.com/x?q", "https://a.com/", "http://a.com/", "https://a.com/"],
            ),
            (
                "strict-origin-when-cross-origin",
                ["https://a.com/x?q", "-", "http://a.com/", "https://a.com/"],
            ),
            ("unsafe-url", ["https://a.com/x?q", "https://a.com/x", "http://a.com/x", "https://a.com/x"]),
        ];
        for (name, expected) in table {
            let policy: ReferrerPolicy = name.parse().unwrap();
            assert_eq!(PAIRS.map(|(from, to)| sent(policy, from, to)), expected, "{name}");
        }
    }

    #[test]
    fn addresses_without_http_are_never_sent() {
        for (_, policy) in ReferrerPolicy::NAMES {
            assert_eq!(sent(policy, "file:///doc", "http://a.com/"), "-");
            assert_eq!(sent(policy, "data:text/html,x", "http://a.com/"), "-");
        }
    }

    #[test]
    fn user_info_and_fragment_are_never_sent() {
        let from = "http://u:p@a.com:8080/x?q=1#secret";
        for (_, policy) in ReferrerPolicy::NAMES {
            for to in ["http://u:p@a.com:8080/y", "http://b.com/", "https://a.com:8080/"] {
                let sent = sent(policy, from, to);
                assert!(!sent.contains('@') && !sent.contains('#'), "{policy}: {sent}");
            }
        }
        assert_eq!(sent(ReferrerPolicy::UnsafeUrl, from, "http://b/"), "http://a.com:8080/x?q=1");
        assert_eq!(sent(ReferrerPolicy::Origin, from, "http://b/"), "http://a.com:8080/");
    }

    #[test]
    fn the_last_known_token_of_a_header_counts() {
        use ReferrerPolicy as P;
        for (value, expected) in [
            ("origin", Some(P::Origin)),
            (" No-Referrer , Unsafe-URL", Some(P::UnsafeUrl)),
            ("no-referrer, new-policy", Some(P::NoReferrer)),
            ("scrapy-default", None),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(P::from_header(value), expected, "{value}");
        }
    }

    #[test]
    fn names_round_trip() {
        for (name, policy) in ReferrerPolicy::NAMES {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.to_string(), name);
        }
        assert_eq!(
            "".parse::<ReferrerPolicy>().unwrap_err().to_string().split(';').next(),
            Some("`` is not a referrer policy")
        );
        assert_eq!(ReferrerPolicy::default().name(), "strict-origin-when-cross-origin");
    }
}
