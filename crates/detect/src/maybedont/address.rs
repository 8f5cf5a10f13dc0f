//! An address in the form that MaybeDont uses: identity, path, query.

use std::borrow::Cow;

use url::Url;

use huntsman_text::urlparts::{CanonicalOptions, Parts};

/// The most parameters of an address that count: the first ones by name. MaybeDont has no such limit. For each parameter the rest of the
/// query is kept, so the memory for a hostile address would grow with the square of their number.
const MAX_PARAMS: usize = 64;

/// An address, split by the rules of MaybeDont 0.1.1.
///
/// - The **identity** is the canonical form of w3lib with fragment and blank values kept: query pairs sorted, escapes in one form. Unlike
///   [`canonical`](huntsman_text::urlparts::canonical) it also keeps the port as written (even `:80`), and the dot at the end of a host name.
/// - The **path** is authority and path, without scheme, query and fragment, so `http` and `https` share it.
/// - The **query** is a map of form-decoded names and values. Blank values are left out first, and then names that occur more than once; so
///   different addresses may have equal paths and queries.
///
/// Parsing follows the URL standard: dot segments are resolved (as w3lib does since 2.5), `\` is a slash, query pairs are cut at `&` only
/// (w3lib 2.1 also cuts at `;`). A text that is not an address is a path of its own.
///
/// ```
/// use huntsman_detect::maybedont::Address;
///
/// let address = Address::parse("HTTP://Example.com:80/a?b=2&a=1&x=&r=1&r=2#top");
/// assert_eq!(address.identity(), "http://example.com:80/a?a=1&b=2&r=1&r=2&x=#top");
/// assert_eq!(address.path(), "example.com:80/a");
/// assert_eq!(address.query(), [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    identity: String,
    path: String,
    query: Vec<(String, String)>,
}

impl Address {
    /// Splits an address. Never fails: a text that is not an address is a path without query.
    pub fn parse(text: &str) -> Self {
        let Ok(url) = Url::parse(text) else {
            let path = text.trim().to_owned();
            return Address { identity: path.clone(), path, query: Vec::new() };
        };
        let options = CanonicalOptions { keep_fragment: true, ..CanonicalOptions::default() };
        let mut identity = options.canonical(&url);
        if url.fragment() == Some("") {
            identity.pop();
        }
        let path_end = |form: &str| form.find(['?', '#']).unwrap_or(form.len());
        let path = if url.has_host() {
            let origin = url.scheme().len() + "://".len();
            let authority_end =
                identity[origin..].find(['/', '?', '#']).map_or(identity.len(), |at| origin + at);
            let mut authority = authority_as_written(text, &url);
            if !identity[authority_end..].starts_with('/') {
                authority.push('/');
            }
            identity.replace_range(origin..authority_end, &authority);
            identity[origin..path_end(&identity)].to_owned()
        } else {
            let rest = &identity[url.scheme().len() + 1..path_end(&identity)];
            rest.strip_prefix("//").unwrap_or(rest).to_owned()
        };
        Address { identity, path, query: query(&url) }
    }

    /// The canonical form: pages with equal identities are the same page.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Authority and path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The parameters that count, sorted by name: at most 64.
    pub fn query(&self) -> &[(String, String)] {
        &self.query
    }
}

/// User info, host and port; user info and port are as in `text`, from which `url` was parsed.
fn authority_as_written(text: &str, url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let written = text
        .trim_start_matches(|c: char| c <= ' ')
        .get(url.scheme().len()..)
        .and_then(|rest| rest.strip_prefix("://"))
        .map(|rest| &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())])
        .filter(|authority| authority.bytes().all(|b| b > b' ' && b != 0x7f));
    let Some(written) = written else { return url.authority().to_owned() };
    let (user, host_and_port) = match written.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, written),
    };
    let port = match host_and_port.rsplit_once(':') {
        Some((_, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => Some(port),
        _ => None,
    };
    let mut authority = String::with_capacity(written.len());
    if let Some(user) = user {
        authority.push_str(user);
        authority.push('@');
    }
    authority.push_str(host);
    if let Some(port) = port {
        authority.push(':');
        authority.push_str(port);
    }
    authority
}

/// The pairs that have a value, of names that occur once among them.
fn query(url: &Url) -> Vec<(String, String)> {
    // Blank values are recognised before decoding, as in Python's `parse_qs`.
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = Parts::of(url)
        .pairs()
        .filter(|pair| pair.raw_value.is_some_and(|value| !value.is_empty()))
        .map(|pair| (pair.name(), pair.value()))
        .collect();
    pairs.sort_by(|one, two| one.0.cmp(&two.0));
    let mut kept = Vec::with_capacity(pairs.len());
    for same_name in pairs.chunk_by(|one, two| one.0 == two.0) {
        if let [(name, value)] = same_name {
            kept.push((name.clone().into_owned(), value.clone().into_owned()));
            if kept.len() == MAX_PARAMS {
                break;
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, Vec<(String, String)>) {
        let address = Address::parse(text);
        (address.identity, address.path, address.query)
    }

    #[test]
    fn identities_are_w3libs_with_fragments() {
        for (given, identity) in [
            ("http://h", "http://h/"),
            ("http://h?", "http://h/"),
            ("http://h/a?#", "http://h/a"),
            ("http://h/a#Top", "http://h/a#Top"),
            ("HTTPS://EXAMPLE.com:443/A", "https://example.com:443/A"),
            ("http://example.com:/a", "http://example.com/a"),
            ("http://example.com./a", "http://example.com./a"),
            ("http://User:Pass%2f@Example.com:80/a", "http://User:Pass%2f@example.com:80/a"),
            ("http://[::1]:80/a", "http://[::1]:80/a"),
            ("http://[::1]/a", "http://[::1]/a"),
            ("http://bücher.example/ü?q=ü", "http://xn--bcher-kva.example/%C3%BC?q=%C3%BC"),
            ("http://h/a b?c d=e%20f", "http://h/a%20b?c+d=e+f"),
            ("http://h/50%?x=%", "http://h/50%25?x=%25"),
            ("http://h/a;b=1//c", "http://h/a;b=1//c"),
            ("http://h/?x&&b=1&a=2&", "http://h/?a=2&b=1&x="),
            ("  http://h/a\n", "http://h/a"),
            ("http:/h/a", "http://h/a"),
        ] {
            let (found, _, _) = parts(given);
            assert_eq!(found, identity, "{given}");
            assert_eq!(Address::parse(&found).identity, identity, "the form of the form");
        }
    }

    #[test]
    fn scheme_query_and_fragment_are_not_in_the_path() {
        for text in ["http://h:8080/a/b?x=1#y", "https://h:8080/a/b", "https://h:8080/a/b?"] {
            assert_eq!(parts(text).1, "h:8080/a/b");
        }
        assert_eq!(parts("http://me@h/%7Ea%2fb").1, "me@h/~a%2Fb");
    }

    #[test]
    fn blank_and_repeated_parameters_do_not_count() {
        let some = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
        };
        for (query, expected) in [
            ("x=1&x=", &[("x", "1")][..]),
            ("x=1&x=2&y=3", &[("y", "3")]),
            ("x=1&x=1", &[]),
            ("=5", &[("", "5")]),
            ("x=+&y=%20", &[("x", " "), ("y", " ")]),
            ("X=1&x=2", &[("X", "1"), ("x", "2")]),
            ("%E9=1&%E8=2", &[]),
            ("a=%E9t%C3%A9", &[("a", "\u{fffd}té")]),
            ("a=b=c;d", &[("a", "b=c;d")]),
        ] {
            assert_eq!(parts(&format!("http://h/?{query}")).2, some(expected), "{query}");
        }
    }

    #[test]
    fn at_most_64_parameters_count() {
        let pairs: Vec<String> = (0..1000).rev().map(|n| format!("p{n:03}={n}")).collect();
        let query = parts(&format!("http://h/?{}", pairs.join("&"))).2;
        assert_eq!((query.len(), &*query[63].0), (64, "p063"));
    }

    #[test]
    fn what_is_no_address_is_a_path_of_its_own() {
        assert_eq!(parts(" no address?x=1 ").1, "no address?x=1");
        assert_eq!(parts("mailto:a@b?subject=x").1, "a@b");
        assert_eq!(parts("file:///etc/x").1, "/etc/x");
        for text in [
            "",
            ":",
            "http://",
            "http://:80",
            "data:,",
            "foo:",
            "foo://",
            "foo:?",
            "http://%/",
            "http://a@@b:1:2/",
        ] {
            let _ = Address::parse(text);
        }
    }
}
