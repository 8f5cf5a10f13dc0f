//! Hides secrets: users and passwords in URLs, and headers that carry credentials.

use std::borrow::Cow;

use http::{HeaderName, header};
use url::Url;

/// The replacement for a user and a password.
const HIDDEN: &str = "***";

/// The standard headers that carry credentials. Others are recognised by [`is_secret_name`], or marked by the code
/// that sets them.
pub static CREDENTIALS: [HeaderName; 3] =
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];

/// Hides the user and the password in a text that is a URL, or was meant to be one. Use it wherever a URL is shown or
/// written before it has become a [`Request`](crate::Request).
///
/// If the text cannot be parsed as an http URL, everything up to the last `@` is hidden: hiding too much is better
/// than showing a password.
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

/// Hides the user and the password of a URL. Returns whether it had any. The URL still has a user name (`***`), and
/// requests to it are refused for that.
pub fn redact(url: &mut Url) -> bool {
    if url.username().is_empty() && url.password().is_none() {
        return false;
    }
    url.set_password(None).and_then(|()| url.set_username(HIDDEN)).expect("what has a user has a host");
    true
}

/// Whether the name of a header says that it carries credentials: `Authorization`, `Cookie`, and usual names of APIs
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
            // Texts that are not URLs of pages, or not URLs at all.
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
