//! Character references (`&amp;`, `&#228;`, `&copy`) as the HTML standard reads them.
//!
//! The names come from `entities.txt`: one line per name in byte order, the name without its `;`, then `*` if it also
//! works without the `;` (old names) or a space, then the code points in hex. The table is built by the compiler.

use std::borrow::Cow;

use memchr::memchr3;

static TABLE: &[u8] = include_bytes!("entities.txt");
const NAMES: usize = 2125;
/// The longest name, `CounterClockwiseContourIntegral`.
const MAX_NAME: usize = 31;
/// Names that work without `;` have two to six letters.
const MAX_OLD_NAME: usize = 6;

#[derive(Clone, Copy)]
struct Entry {
    start: u16,
    length: u8,
    old: bool,
    first: u32,
    second: u32,
}

struct Index {
    entries: [Entry; NAMES],
    /// The index in `entries` of the first name that begins with each byte; the range ends where that of the next byte
    /// starts.
    first_byte: [u16; 129],
}

static INDEX: Index = build();

const fn build() -> Index {
    let table = include_bytes!("entities.txt");
    let mut entries = [Entry { start: 0, length: 0, old: false, first: 0, second: 0 }; NAMES];
    let mut first_byte = [0; 129];
    let mut count = 0;
    let mut byte = 0; // first_byte is filled below this one
    let mut at = 0;
    while at < table.len() {
        let start = at;
        while byte <= table[start] {
            first_byte[byte as usize] = count as u16;
            byte += 1;
        }
        while table[at] != b' ' && table[at] != b'*' {
            at += 1;
        }
        let length = at - start;
        let old = table[at] == b'*';
        let mut points = [0; 2];
        let mut point = 0;
        at += 1;
        while table[at] != b'\n' {
            if table[at] == b' ' {
                point += 1;
            } else {
                let digit = table[at];
                points[point] =
                    points[point] << 4 | if digit <= b'9' { digit - b'0' } else { digit - b'A' + 10 } as u32;
            }
            at += 1;
        }
        at += 1;
        assert!(start <= u16::MAX as usize);
        entries[count] =
            Entry { start: start as u16, length: length as u8, old, first: points[0], second: points[1] };
        count += 1;
    }
    assert!(count == NAMES);
    while (byte as usize) < first_byte.len() {
        first_byte[byte as usize] = count as u16;
        byte += 1;
    }
    Index { entries, first_byte }
}

fn lookup(name: &[u8]) -> Option<&'static Entry> {
    let first = usize::from(*name.first()?);
    if first >= 128 {
        return None;
    }
    let range = usize::from(INDEX.first_byte[first])..usize::from(INDEX.first_byte[first + 1]);
    let bucket = &INDEX.entries[range];
    let text = |entry: &Entry| &TABLE[usize::from(entry.start)..][..usize::from(entry.length)];
    bucket.binary_search_by(|entry| text(entry).cmp(name)).ok().map(|found| &bucket[found])
}

/// The context of a reference; it decides how a name without `;` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// In text: old names work without `;`.
    Text,
    /// In an attribute value: a name without `;` before `=`, a letter or a digit stays as it is, so that
    /// `?a=1&copy=2` is no copyright sign.
    Attribute,
}

/// One decoded reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) first: char,
    /// 93 names stand for two characters.
    pub(crate) second: Option<char>,
    /// Bytes read, the `&` included.
    pub(crate) length: usize,
}

/// Reads the reference at the start of `raw`, which begins with `&`; `None` if it is only an ampersand.
pub(crate) fn reference(raw: &[u8], context: Context) -> Option<Reference> {
    match *raw.get(1)? {
        b'#' => numeric(raw),
        first if first.is_ascii_alphabetic() => named(raw, context),
        _ => None,
    }
}

fn named(raw: &[u8], context: Context) -> Option<Reference> {
    let rest = &raw[1..];
    let limit = rest.len().min(MAX_NAME + 1);
    let run = rest[..limit].iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(limit);
    let found = |entry: &Entry, length| {
        let first = char::from_u32(entry.first)?;
        let second = if entry.second == 0 { None } else { char::from_u32(entry.second) };
        Some(Reference { first, second, length })
    };
    if rest.get(run) == Some(&b';')
        && let Some(entry) = lookup(&rest[..run])
    {
        return found(entry, run + 2);
    }
    for length in (2..=run.min(MAX_OLD_NAME)).rev() {
        if let Some(entry) = lookup(&rest[..length]).filter(|entry| entry.old) {
            let next = rest.get(length).copied().unwrap_or(b' ');
            if context == Context::Attribute && (next == b'=' || next.is_ascii_alphanumeric()) {
                return None;
            }
            return found(entry, length + 1);
        }
    }
    None
}

fn numeric(raw: &[u8]) -> Option<Reference> {
    let (radix, start) = if matches!(raw.get(2), Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let mut at = start;
    let mut value = 0_u32;
    while let Some(digit) = raw.get(at).and_then(|&byte| char::from(byte).to_digit(radix)) {
        value = value.saturating_mul(radix).saturating_add(digit);
        at += 1;
    }
    if at == start {
        return None;
    }
    if raw.get(at) == Some(&b';') {
        at += 1;
    }
    let first = match value {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9F => WINDOWS_1252[value as usize - 0x80],
        _ => char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    Some(Reference { first, second: None, length: at })
}

/// The characters for references to the C1 controls; five of them have no character in windows-1252 and stay as they
/// are.
static WINDOWS_1252: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2C6}',
    '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}', '\u{90}', '\u{2018}',
    '\u{2019}', '\u{201C}', '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2DC}', '\u{2122}', '\u{161}',
    '\u{203A}', '\u{153}', '\u{9D}', '\u{17E}', '\u{178}',
];

/// Whether decoding `raw` would change it.
pub(crate) fn is_plain(raw: &[u8]) -> bool {
    memchr3(b'&', b'\r', 0, raw).is_none()
}

/// Appends `raw` to `out` with its references decoded, CR and CRLF as LF, and NUL as U+FFFD.
pub(crate) fn decode_into(raw: &str, context: Context, out: &mut String) {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr3(b'&', b'\r', 0, &bytes[at..]) {
        out.push_str(&raw[at..at + found]);
        at += found;
        match bytes[at] {
            b'&' => match reference(&bytes[at..], context) {
                Some(reference) => {
                    out.push(reference.first);
                    out.extend(reference.second);
                    at += reference.length;
                }
                None => {
                    out.push('&');
                    at += 1;
                }
            },
            b'\r' => {
                if bytes.get(at + 1) != Some(&b'\n') {
                    out.push('\n');
                }
                at += 1;
            }
            _ => {
                out.push(char::REPLACEMENT_CHARACTER);
                at += 1;
            }
        }
    }
    out.push_str(&raw[at..]);
}

/// Decodes the references of a raw text or attribute value; also CR and CRLF become LF, and NUL U+FFFD.
///
/// Borrows if there is nothing to decode. Linear in the length.
///
/// ```
/// use huntsman_html::{Context, decode};
///
/// assert_eq!(decode("a &amp; b &copy 2", Context::Text), "a & b \u{A9} 2");
/// assert_eq!(decode("?a=1&copy=2", Context::Attribute), "?a=1&copy=2");
/// ```
pub fn decode(raw: &str, context: Context) -> Cow<'_, str> {
    if is_plain(raw.as_bytes()) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    decode_into(raw, context, &mut out);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_the_table_is_sorted() {
        let names: Vec<&[u8]> = INDEX
            .entries
            .iter()
            .map(|entry| &TABLE[usize::from(entry.start)..][..usize::from(entry.length)])
            .collect();
        assert!(names.is_sorted());
        assert_eq!(INDEX.entries.iter().filter(|entry| entry.old).count(), 106);
        assert_eq!(names.iter().map(|name| name.len()).max(), Some(MAX_NAME));
        for name in names {
            assert!(lookup(name).is_some(), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn the_longest_name_wins() {
        for (raw, text) in [
            ("&notin;", "\u{2209}"),
            ("&notit;", "\u{AC}it;"),
            ("&not", "\u{AC}"),
            ("&ampamp;", "&amp;"),
            ("&NotEqualTilde;", "\u{2242}\u{338}"),
            ("&hellip", "&hellip"),
            ("&;", "&;"),
            ("&", "&"),
            ("&CounterClockwiseContourIntegral;", "\u{2233}"),
            ("&CounterClockwiseContourIntegralx;", "&CounterClockwiseContourIntegralx;"),
        ] {
            assert_eq!(decode(raw, Context::Text), text, "{raw}");
        }
    }

    #[test]
    fn an_attribute_keeps_what_looks_like_a_query() {
        for (raw, value) in [
            ("?a=1&copy=2", "?a=1&copy=2"),
            ("?a=1&copyx", "?a=1&copyx"),
            ("?a=1&copy", "?a=1\u{A9}"),
            ("?a=1&copy;=2", "?a=1\u{A9}=2"),
            ("?a=1&copy&b", "?a=1\u{A9}&b"),
            ("?a=1&amp;b=2", "?a=1&b=2"),
        ] {
            assert_eq!(decode(raw, Context::Attribute), value, "{raw}");
        }
    }

    #[test]
    fn numbers_map_c1_controls_and_replace_what_is_no_character() {
        for (raw, text) in [
            ("&#228;&#xe4&#XE4;", "\u{E4}\u{E4}\u{E4}"),
            ("&#128;&#x9f", "\u{20AC}\u{178}"),
            ("&#0;&#xD800;&#x110000;&#99999999999999999999;", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("&#;&#x;&#xg", "&#;&#x;&#xg"),
        ] {
            assert_eq!(decode(raw, Context::Text), text, "{raw}");
        }
    }

    #[test]
    fn line_ends_and_nul_are_normalised() {
        assert_eq!(decode("a\r\nb\rc\0d", Context::Attribute), "a\nb\nc\u{FFFD}d");
        assert!(matches!(decode("plain", Context::Text), Cow::Borrowed("plain")));
    }
}
