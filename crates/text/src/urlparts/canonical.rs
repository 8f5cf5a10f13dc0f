//! The canonical form of an address, in which addresses are compared.
//!
//! It follows w3lib's `canonicalize_url`, which Scrapy users' sets of seen requests are built on, with these intended differences: the
//! default port and the dot at the end of a host name are dropped, a stray `%` in a path becomes `%25` (w3lib escapes it in queries only),
//! `|` is escaped in paths too, and path parameters are not treated specially (w3lib drops empty ones and leaves the escapes in those of
//! the last segment alone).

use std::cmp::Ordering;
use std::ops::Range;

use url::{Position, Url};

/// Options of the canonical form: what it keeps and drops beyond the defaults.
///
/// ```
/// use huntsman_text::urlparts::CanonicalOptions;
/// use url::Url;
///
/// let options = CanonicalOptions {
///     strip_params: vec!["utm_*".into(), "phpsessid".into()],
///     strip_path_params: true,
///     ..CanonicalOptions::default()
/// };
/// let url = Url::parse("http://example.com/a;jsessionid=1F?utm_source=x&b=2#top").unwrap();
/// assert_eq!(options.canonical(&url), "http://example.com/a?b=2");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CanonicalOptions {
    /// Keep `#fragment`; off by default, as a fragment never reaches the server.
    pub keep_fragment: bool,
    /// Names of query parameters to drop, as they stand in the result (`x%5B%5D` for `x[]`), compared without regard to ASCII case. `*`
    /// stands for any run of characters (`utm_*`). Empty by default.
    pub strip_params: Vec<String>,
    /// Drop `;name=value` from the path segments of addresses with a host. Off by default.
    pub strip_path_params: bool,
}

impl CanonicalOptions {
    /// Returns the canonical form of `url` under these options.
    pub fn canonical(&self, url: &Url) -> String {
        let mut out = String::with_capacity(url.as_str().len());
        self.canonical_into(url, &mut out);
        out
    }

    /// Appends the canonical form of `url` under these options to `out`.
    pub fn canonical_into(&self, url: &Url, out: &mut String) {
        let plain = self.strip_params.is_empty() && !self.strip_path_params && !self.keep_fragment;
        if plain {
            canonical_into(url, out);
        } else {
            write_canonical(url, self, out);
        }
    }

    fn strips(&self, name: &str) -> bool {
        !self.strip_params.is_empty() && self.strip_params.iter().any(|pattern| name_matches(pattern, name))
    }
}

/// Returns the canonical form of `url`. If two addresses have equal forms, they are the same page to a crawler.
///
/// Query pairs are sorted by name, then value, and blank values are kept; escapes are written in one way; fragment, default port and the
/// dot at the end of the host are dropped. Differences that are more than spelling remain: case of the path, a slash at the end, `//`,
/// `%2F`, repeated pairs, user info.
///
/// ```
/// use huntsman_text::urlparts::canonical;
/// use url::Url;
///
/// let one = Url::parse("http://Example.com:80/%7Euser?b=2&a=1#top").unwrap();
/// assert_eq!(canonical(&one), "http://example.com/~user?a=1&b=2");
/// ```
pub fn canonical(url: &Url) -> String {
    let mut out = String::with_capacity(url.as_str().len() + 2);
    canonical_into(url, &mut out);
    out
}

/// Appends the [`canonical`] form of `url` to `out`.
///
/// Use this function on hot paths. If an address is canonical apart from its fragment, as most links are, it costs one look at each byte
/// and one copy.
pub fn canonical_into(url: &Url, out: &mut String) {
    const PLAIN: &CanonicalOptions =
        &CanonicalOptions { keep_fragment: false, strip_params: Vec::new(), strip_path_params: false };
    if is_canonical(url) {
        out.push_str(&url[..Position::AfterQuery]);
    } else {
        write_canonical(url, PLAIN, out);
    }
}

// Bits of `CLASS`: the meaning of a byte in a path or in a query.
const PATH_PLAIN: u8 = 1; // the byte stands for itself in a path
const QUERY_PLAIN: u8 = 2; // the byte stands for itself in a name or value
const PATH_DECODE: u8 = 4; // the escape of the byte is undone in a path

/// Unreserved characters are plain everywhere. The other characters that a path may contain are plain there, escaped or not, except `/` and
/// `;`: escaped they are data, bare they are structure. In a query everything except the unreserved characters is escaped, because servers
/// form-decode names and values.
static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~') {
            class[byte] = PATH_PLAIN | QUERY_PLAIN | PATH_DECODE;
        } else if matches!(
            b,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b':' | b'=' | b'@' | b'[' | b']'
        ) {
            class[byte] = PATH_PLAIN | PATH_DECODE;
        } else if matches!(b, b'/' | b';') {
            class[byte] = PATH_PLAIN;
        }
        byte += 1;
    }
    class
};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether the address without its fragment is canonical already. May return false for an address that is.
fn is_canonical(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if host.ends_with('.') {
        return false;
    }
    let path = url.path().as_bytes();
    if path.is_empty() || path.iter().any(|&b| CLASS[b as usize] & PATH_PLAIN == 0) {
        return false;
    }
    match url.query() {
        None => true,
        Some(query) => query_is_canonical(query.as_bytes()),
    }
}

fn query_is_canonical(query: &[u8]) -> bool {
    if query.is_empty() {
        return false;
    }
    let mut last: (&[u8], &[u8]) = (b"", b"");
    for pair in query.split(|&b| b == b'&') {
        let Some(equals) = pair.iter().position(|&b| b == b'=') else { return false };
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        let plain = |b: &u8| CLASS[*b as usize] & QUERY_PLAIN != 0 || *b == b'+';
        if !(name.iter().all(plain) && value.iter().all(plain) && last <= (name, value)) {
            return false;
        }
        last = (name, value);
    }
    true
}

fn write_canonical(url: &Url, options: &CanonicalOptions, out: &mut String) {
    if url.cannot_be_a_base() {
        // Addresses such as `mailto:` and `data:` have no structure that this crate knows. The URL parser drops spaces at the end of such
        // an address if nothing follows them; this function must do the same, or the canonical form of a canonical form would differ from
        // it.
        let end = if options.keep_fragment { Position::AfterFragment } else { Position::AfterQuery };
        out.push_str(url[..end].trim_end_matches(' '));
        return;
    }
    write_origin(url, out);
    // Without a host, if the first segment became empty, the next part would be parsed as a host.
    write_path(url.path(), options.strip_path_params && url.has_host(), out);
    if let Some(query) = url.query() {
        write_query(query, options, out);
    }
    if let (true, Some(fragment)) = (options.keep_fragment, url.fragment()) {
        out.push('#');
        out.push_str(fragment);
    }
}

fn write_origin(url: &Url, out: &mut String) {
    let host = url.host_str().unwrap_or_default();
    // One dot stands for the root of all names. If there are several dots, there are empty labels before the last one, and dropping it
    // could turn the name into an IP address: `1.2..` is a name, `1.2` is 1.0.0.2.
    match host.strip_suffix('.').filter(|short| !short.is_empty() && !short.ends_with('.')) {
        None => out.push_str(&url[..Position::BeforePath]),
        Some(short) => {
            out.push_str(&url[..Position::BeforeHost]);
            out.push_str(short);
            out.push_str(&url[Position::AfterHost..Position::BeforePath]);
        }
    }
}

fn write_path(path: &str, strip_params: bool, out: &mut String) {
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        // A segment of dots would get a meaning if its parameters were dropped.
        if byte == b';' && strip_params && !out.ends_with("/.") && !out.ends_with("/..") {
            at = bytes[at..].iter().position(|&b| b == b'/').map_or(bytes.len(), |slash| at + slash);
            continue;
        }
        let (decoded, width) = unescape(bytes, at);
        let class = CLASS[decoded as usize];
        if class & if width == 3 { PATH_DECODE } else { PATH_PLAIN } != 0 {
            out.push(decoded as char);
        } else {
            push_escape(decoded, out);
        }
        at += width;
    }
}

/// Up to this number of pairs are sorted without an allocation.
const FEW_PAIRS: usize = 16;

#[derive(Clone, Default)]
struct PairAt {
    name: Range<usize>,
    value: Range<usize>,
}

fn write_query(query: &str, options: &CanonicalOptions, out: &mut String) {
    let start = out.len();
    let mut few: [PairAt; FEW_PAIRS] = Default::default();
    let mut many: Vec<PairAt> = Vec::new();
    let mut count = 0;
    let mut sorted = true;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let before = out.len();
        out.push(if before == start { '?' } else { '&' });
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name_start = out.len();
        write_form(name, out);
        if options.strips(&out[name_start..]) {
            out.truncate(before);
            continue;
        }
        let name_end = out.len();
        out.push('=');
        write_form(value, out);
        let this = PairAt { name: name_start..name_end, value: name_end + 1..out.len() };
        let last = if count == 0 {
            None
        } else if count <= FEW_PAIRS {
            Some(&few[count - 1])
        } else {
            many.last()
        };
        sorted &= last.is_none_or(|last| compare_pairs(out, last, &this).is_le());
        if count < FEW_PAIRS {
            few[count] = this;
        } else {
            if count == FEW_PAIRS {
                many = few.to_vec();
            }
            many.push(this);
        }
        count += 1;
    }
    if sorted {
        return;
    }
    let pairs = if count <= FEW_PAIRS { &mut few[..count] } else { &mut many[..] };
    pairs.sort_unstable_by(|a, b| compare_pairs(out, a, b));
    let unsorted = out[start..].to_owned();
    let text = |range: &Range<usize>| &unsorted[range.start - start..range.end - start];
    out.truncate(start);
    for pair in pairs {
        out.push(if out.len() == start { '?' } else { '&' });
        out.push_str(text(&pair.name));
        out.push('=');
        out.push_str(text(&pair.value));
    }
}

/// Compares by name, then value, both decoded to bytes. `query_is_canonical` compares the bytes as written. The order is the same, because
/// that function accepts only unreserved characters and `+`, which all sort above a space.
fn compare_pairs(text: &str, a: &PairAt, b: &PairAt) -> Ordering {
    let meant = |range: &Range<usize>| meant_bytes(&text.as_bytes()[range.clone()]);
    meant(&a.name).cmp(meant(&b.name)).then_with(|| meant(&a.value).cmp(meant(&b.value)))
}

fn meant_bytes(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (decoded, width) = match *text.get(at)? {
            b'+' => (b' ', 1),
            _ => unescape(text, at),
        };
        at += width;
        Some(decoded)
    })
}

/// Writes a name or value of a query: form-decoded, then escaped again in one way.
fn write_form(part: &str, out: &mut String) {
    let bytes = part.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'+' {
            out.push('+');
            at += 1;
            continue;
        }
        let (decoded, width) = unescape(bytes, at);
        match decoded {
            b' ' => out.push('+'),
            plain if CLASS[plain as usize] & QUERY_PLAIN != 0 => out.push(plain as char),
            other => push_escape(other, out),
        }
        at += width;
    }
}

/// Returns the byte at `at`, unescaped, and the number of bytes that it takes there. A `%` that begins no escape is an ordinary byte.
fn unescape(bytes: &[u8], at: usize) -> (u8, usize) {
    let byte = bytes[at];
    if byte == b'%'
        && let Some(&[high, low]) = bytes.get(at + 1..at + 3).and_then(|pair| <&[u8; 2]>::try_from(pair).ok())
        && let (Some(high), Some(low)) = ((high as char).to_digit(16), (low as char).to_digit(16))
    {
        return ((high * 16 + low) as u8, 3);
    }
    (byte, 1)
}

fn push_escape(byte: u8, out: &mut String) {
    out.push('%');
    out.push(HEX[(byte >> 4) as usize] as char);
    out.push(HEX[(byte & 15) as usize] as char);
}

/// Whether a pattern matches the whole name of a parameter, without regard to ASCII case; `*` stands for any run of characters.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at_pattern, mut at_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at_name < name.len() {
        if pattern.get(at_pattern) == Some(&b'*') {
            star = Some((at_pattern, at_name));
            at_pattern += 1;
        } else if pattern.get(at_pattern).is_some_and(|b| b.eq_ignore_ascii_case(&name[at_name])) {
            at_pattern += 1;
            at_name += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            (at_pattern, at_name) = (after + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[at_pattern..].iter().all(|&b| b == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn already_canonical_addresses_take_the_fast_path() {
        for text in
            ["http://h/", "https://example.com/a/b.html", "http://h/a?b=1&c=2", "http://h/a?b=1&b=1#f"]
        {
            assert!(is_canonical(&url(text)), "{text}");
        }
        for text in [
            "http://h/?",
            "http://h/?b",
            "http://h/?b=1&a=2",
            "http://h/%7E",
            "http://h./",
            "http://h/?a=b=c",
        ] {
            assert!(!is_canonical(&url(text)), "{text}");
        }
    }

    #[test]
    fn fast_and_slow_path_agree_on_what_both_can_do() {
        for text in [
            "http://h/",
            "https://u:p@example.com:8/a;x/b.html",
            "http://h/a?b=1+2&c=2",
            "http://h/a?b=1&b=1#f",
        ] {
            let mut slow = String::new();
            write_canonical(&url(text), &CanonicalOptions::default(), &mut slow);
            assert_eq!(canonical(&url(text)), slow);
        }
    }

    #[test]
    fn more_than_a_handful_of_pairs_are_sorted_too() {
        let names: Vec<String> = (0..40).rev().map(|n| format!("n{n:02}={n}")).collect();
        let shuffled = url(&format!("http://h/?{}", names.join("&")));
        let mut ordered = names;
        ordered.sort();
        assert_eq!(canonical(&shuffled), format!("http://h/?{}", ordered.join("&")));
    }

    #[test]
    fn parameter_patterns_match_whole_names_without_case() {
        assert!(name_matches("utm_*", "UTM_source"));
        assert!(name_matches("phpsessid", "PHPSESSID"));
        assert!(name_matches("*id*", "sessionid2"));
        assert!(!name_matches("utm_*", "xutm_a"));
        assert!(!name_matches("sid", "sid2"));
    }

    #[test]
    fn options_drop_and_keep_what_they_name() {
        let dropping = CanonicalOptions {
            strip_params: vec!["utm_*".into(), "gclid".into()],
            strip_path_params: true,
            keep_fragment: true,
        };
        let form = dropping.canonical(&url("http://h/a;s=1/b;t?utm_x=1&gclid=2&q=3#top"));
        assert_eq!(form, "http://h/a/b?q=3#top");
        assert_eq!(dropping.canonical(&url("http://h/?utm_x=1")), "http://h/");
    }

    #[test]
    fn addresses_without_structure_pass_unchanged() {
        assert_eq!(canonical(&url("mailto:A@b.example?subject=x")), "mailto:A@b.example?subject=x");
        assert_eq!(canonical(&url("data:text/plain,a b")), "data:text/plain,a b");
    }
}
