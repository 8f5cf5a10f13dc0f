//! What is not for everybody's eyes: users and passwords in addresses, and headers that carry credentials.

use std::borrow::Cow;

use http::{HeaderName, header};
use url::Url;

/// What stands in the place of a user and a password.
const HIDDEN: &str = "***";

/// The headers that carry credentials by their definition. Others are told apart by [`is_secret_name`], or marked by whoever
/// sets them.
pub static CREDENTIALS: [HeaderName; 3] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];

/// A text that is an address, or was meant to be one, without the user and the password in it. To be used wherever
/// an address is shown or written that no [`Request`](crate::Request) has been made of.
///
/// Of what cannot be read as an http address, everything up to the last `@` is hidden: rather too much than a
/// password.
///
/// ```
/// use huntsman_crawler::redacted;
///
/// assert_eq!(redacted("https://user:pw@site.example/a"), "https://***@site.example/a");
/// assert_eq!(redacted("https://site.example/a@b"), "https://site.example/a@b");
/// assert_eq!(redacted("https://user:p/w@site.example"), "https://***@site.example");
/// ```
pub fn redacted(text: &str) -> Cow<'_, str> {
    let Some(end) = text.rfind('@') else { return Cow::Borrowed(text) };
    if let Ok(mut url) = Url::parse(text.trim())
        && matches!(url.scheme(), "http" | "https")
    {
        return if redact(&mut url) { Cow::Owned(url.into()) } else { Cow::Borrowed(text) };
    }
    let start = text.find("://").map(|at| at + 3).filter(|start| *start <= end).unwrap_or(0);
    Cow::Owned(format!("{}{HIDDEN}{}", &text[..start], &text[end..]))
}

/// Hides the user and the password of an address; whether it had any. It is still one with a user, and refused as such.
pub fn redact(url: &mut Url) -> bool {
    if url.username().is_empty() && url.password().is_none() {
        return false;
    }
    url.set_password(None).and_then(|()| url.set_username(HIDDEN)).expect("what has a user has a host");
    true
}

/// Whether a header is called as one that carries credentials: `Authorization`, `Cookie`, and what APIs call theirs
/// (`X-Api-Key`, `X-Auth-Token`, `Private-Token`).
pub fn is_secret_name(name: &HeaderName) -> bool {
    const WORDS: [&str; 9] = [
        "auth",
        "authentication",
        "authorization",
        "apikey",
        "credential",
        "credentials",
        "password",
        "secret",
        "token",
    ];
    const PAIRS: [[&str; 2]; 3] = [["api", "key"], ["access", "key"], ["subscription", "key"]];
    let words: Vec<&str> = name.as_str().split(['-', '_']).collect();
    CREDENTIALS.contains(name)
        || words.iter().any(|word| WORDS.contains(word))
        || words.windows(2).any(|pair| PAIRS.iter().any(|known| known == pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords_are_hidden_in_whatever_may_be_an_address() {
        for (text, shown) in [
            ("http://h/", "http://h/"),
            ("http://h/a@b?c=d@e#f@g", "http://h/a@b?c=d@e#f@g"),
            ("http://user@h/", "http://***@h/"),
            ("http://:SECRET@h/", "http://***@h/"),
            ("  https://u:SECRET@h:8443/a?b#c", "https://***@h:8443/a?b#c"),
            ("http://u:SEC@RET@h/x@y", "http://***@h/x@y"),
            ("http:u:SECRET@h/", "http://***@h/"),
            ("http:\\\\u:SECRET@h", "http://***@h/"),
            // No addresses of pages, or none at all.
            ("http://u:SEC/RET@h/", "http://***@h/"),
            ("http://u s:SECRET@[bad/", "http://***@[bad/"),
            ("u:SECRET@h/x", "***@h/x"),
            ("ftp://u:SECRET@h/x", "ftp://***@h/x"),
            ("u@x://h", "***@x://h"),
            ("@", "***@"),
        ] {
            assert_eq!(redacted(text), shown, "{text}");
        }
    }

    #[test]
    fn headers_with_credentials_are_known_by_their_names() {
        for (name, expected) in [
            ("authorization", true),
            ("proxy-authorization", true),
            ("cookie", true),
            ("x-api-key", true),
            ("x-apikey", true),
            ("x-auth-token", true),
            ("private-token", true),
            ("x-goog-api-key", true),
            ("x-amz-security-token", true),
            ("accept", false),
            ("accept-language", false),
            ("user-agent", false),
            ("x-requested-with", false),
            ("x-author", false),
            ("idempotency-key", false),
            ("sec-websocket-key", false),
        ] {
            assert_eq!(is_secret_name(&HeaderName::from_static(name)), expected, "{name}");
        }
    }
}
