//! The parts of an address, in their order, raw and decoded.

use std::borrow::Cow;

use url::Url;

/// The characters at which a query is cut into pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Separator {
    /// At `&` only, as the URL standard and today's servers do.
    #[default]
    Ampersand,
    /// At `&` and `;`, for gitweb and other older programs that write `?p=x;a=log`.
    AmpersandOrSemicolon,
}

/// The parts of an address, borrowed from it without copying.
///
/// Nothing is sorted, merged or dropped: a detector that needs names in order or repeated names numbered does so on its own copy. Nothing
/// is canonicalised either; if that is wanted, start from [`canonical`](super::canonical).
///
/// ```
/// use huntsman_text::urlparts::Parts;
/// use url::Url;
///
/// let url = Url::parse("https://example.com:8080/shop;v=2/item?q=a+b&x").unwrap();
/// let parts = Parts::of(&url);
/// assert_eq!(parts.authority(), "example.com:8080");
/// let segments: Vec<_> = parts.segments().map(|s| (s.name, s.params)).collect();
/// assert_eq!(segments, [("shop", Some("v=2")), ("item", None)]);
/// let pairs: Vec<_> = parts.pairs().map(|p| (p.name(), p.value())).collect();
/// assert_eq!(pairs, [("q".into(), "a b".into()), ("x".into(), "".into())]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    url: &'a Url,
}

impl<'a> Parts<'a> {
    /// The parts of `url`.
    pub fn of(url: &'a Url) -> Self {
        Parts { url }
    }

    /// The scheme, without the colon: `https`.
    pub fn scheme(self) -> &'a str {
        self.url.scheme()
    }

    /// The host, in ASCII form; empty for addresses without one (`mailto:`, `file:`).
    pub fn host(self) -> &'a str {
        self.url.host_str().unwrap_or_default()
    }

    /// The port, if it is not the scheme's default.
    pub fn port(self) -> Option<u16> {
        self.url.port()
    }

    /// User info, host and port as they stand in the address: `user@example.com:8080`.
    pub fn authority(self) -> &'a str {
        self.url.authority()
    }

    /// The path with its slashes, escapes and parameters as written.
    pub fn path(self) -> &'a str {
        self.url.path()
    }

    /// The path cut at its slashes. `/a/b/` has the segments `a`, `b` and an empty one; `/` has one empty segment.
    pub fn segments(self) -> Segments<'a> {
        let path = self.url.path();
        Segments { rest: Some(path.strip_prefix('/').unwrap_or(path)) }
    }

    /// The query without its question mark.
    pub fn query(self) -> Option<&'a str> {
        self.url.query()
    }

    /// The pairs of the query, cut at `&`, in their order, repeated names included.
    pub fn pairs(self) -> Pairs<'a> {
        self.pairs_at(Separator::Ampersand)
    }

    /// The pairs of the query, cut at the characters of `separator`.
    pub fn pairs_at(self, separator: Separator) -> Pairs<'a> {
        Pairs { rest: self.url.query(), separator }
    }

    /// The fragment without its `#`.
    pub fn fragment(self) -> Option<&'a str> {
        self.url.fragment()
    }
}

/// One piece of a path between two slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment<'a> {
    /// The segment as written: `item;v=2`.
    pub raw: &'a str,
    /// The part before the first `;`.
    pub name: &'a str,
    /// The part after the first `;`; `None` if there is no `;`.
    pub params: Option<&'a str>,
}

impl<'a> Segment<'a> {
    fn of(raw: &'a str) -> Self {
        match raw.split_once(';') {
            Some((name, params)) => Segment { raw, name, params: Some(params) },
            None => Segment { raw, name: raw, params: None },
        }
    }

    /// The parameters one by one: `v=2;w` gives `v=2` and `w`.
    pub fn param_pairs(self) -> impl Iterator<Item = Pair<'a>> {
        self.params.into_iter().flat_map(|params| params.split(';')).filter(|p| !p.is_empty()).map(Pair::of)
    }

    /// The name with its escapes undone; bytes that are not UTF-8 become U+FFFD. A `+` stays a `+`, because paths are not forms.
    pub fn decoded(self) -> Cow<'a, str> {
        unescaped(self.name, false)
    }
}

/// Iterator over the segments of a path, see [`Parts::segments`].
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let rest = self.rest?;
        let raw = match rest.split_once('/') {
            Some((first, more)) => {
                self.rest = Some(more);
                first
            }
            None => {
                self.rest = None;
                rest
            }
        };
        Some(Segment::of(raw))
    }
}

/// One name and value of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pair<'a> {
    /// The name as written.
    pub raw_name: &'a str,
    /// The value as written; `None` if there is no `=` (`?x`, as opposed to `?x=`).
    pub raw_value: Option<&'a str>,
}

impl<'a> Pair<'a> {
    fn of(raw: &'a str) -> Self {
        match raw.split_once('=') {
            Some((name, value)) => Pair { raw_name: name, raw_value: Some(value) },
            None => Pair { raw_name: raw, raw_value: None },
        }
    }

    /// The name, form-decoded: `+` is a space, bytes that are not UTF-8 become U+FFFD.
    pub fn name(self) -> Cow<'a, str> {
        unescaped(self.raw_name, true)
    }

    /// The value, form-decoded; empty if there is none.
    pub fn value(self) -> Cow<'a, str> {
        unescaped(self.raw_value.unwrap_or_default(), true)
    }
}

/// Iterator over the pairs of a query, see [`Parts::pairs`]. Empty pairs (`a=1&&b=2`) are skipped.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    rest: Option<&'a str>,
    separator: Separator,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        loop {
            let rest = self.rest?;
            let end = match self.separator {
                Separator::Ampersand => rest.find('&'),
                Separator::AmpersandOrSemicolon => rest.find(['&', ';']),
            };
            let raw = match end {
                Some(end) => {
                    self.rest = Some(&rest[end + 1..]);
                    &rest[..end]
                }
                None => {
                    self.rest = None;
                    rest
                }
            };
            if !raw.is_empty() {
                return Some(Pair::of(raw));
            }
        }
    }
}

fn unescaped(text: &str, form: bool) -> Cow<'_, str> {
    let special = |b: &u8| *b == b'%' || (form && *b == b'+');
    let Some(first) = text.as_bytes().iter().position(special) else { return Cow::Borrowed(text) };
    let bytes = text.as_bytes();
    let mut out = bytes[..first].to_vec();
    let mut at = first;
    while at < bytes.len() {
        let digit = |offset: usize| bytes.get(at + offset).and_then(|b| (*b as char).to_digit(16));
        match bytes[at] {
            b'+' if form => out.push(b' '),
            b'%' => match (digit(1), digit(2)) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => out.push(b'%'),
            },
            other => out.push(other),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &str, separator: Separator) -> Vec<(String, Option<String>)> {
        let url = Url::parse(&format!("http://h/?{query}")).unwrap();
        Parts::of(&url)
            .pairs_at(separator)
            .map(|p| (p.name().into_owned(), p.raw_value.map(str::to_owned)))
            .collect()
    }

    #[test]
    fn pairs_keep_order_repetition_and_blank_values() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            pairs("b=2&a=1&&b=2&x=&y&=5", Separator::Ampersand),
            [
                ("b".into(), some("2")),
                ("a".into(), some("1")),
                ("b".into(), some("2")),
                ("x".into(), some("")),
                ("y".into(), None),
                ("".into(), some("5"))
            ]
        );
    }

    #[test]
    fn semicolons_separate_only_where_asked() {
        assert_eq!(pairs("p=x;a=log", Separator::Ampersand).len(), 1);
        assert_eq!(pairs("p=x;a=log", Separator::AmpersandOrSemicolon).len(), 2);
    }

    #[test]
    fn decoding_is_lossy_but_total() {
        assert_eq!(unescaped("a+b%20c", true), "a b c");
        assert_eq!(unescaped("a+b%20c", false), "a+b c");
        assert_eq!(unescaped("%E9%", true), "\u{fffd}%");
        assert_eq!(unescaped("%zz%4", true), "%zz%4");
        assert!(matches!(unescaped("plain", true), Cow::Borrowed(_)));
    }

    #[test]
    fn segments_include_the_empty_last_one() {
        let names = |path: &str| -> Vec<String> {
            let url = Url::parse(&format!("http://h{path}")).unwrap();
            Parts::of(&url).segments().map(|s| s.raw.to_owned()).collect()
        };
        assert_eq!(names("/"), [""]);
        assert_eq!(names("/a/b"), ["a", "b"]);
        assert_eq!(names("/a//b/"), ["a", "", "b", ""]);
    }

    #[test]
    fn segment_parameters_are_split() {
        let url = Url::parse("http://h/a%20b;v=1;;w/c").unwrap();
        let first = Parts::of(&url).segments().next().unwrap();
        assert_eq!(first.decoded(), "a b");
        let params: Vec<_> = first.param_pairs().map(|p| (p.raw_name, p.raw_value)).collect();
        assert_eq!(params, [("v", Some("1")), ("w", None)]);
    }
}
