//! The normal form in which patterns and paths are compared (RFC 9309, section 2.2.2).
//!
//! Escapes of unreserved characters are decoded; everything outside ASCII and every character that is not allowed in
//! a URL is escaped, with upper-case hexadecimal digits. `*` and `$` of a path are escaped, so that those of a
//! pattern can be special and `%2A` matches a star (section 2.2.3).
//!
//! The RFC requires reserved characters to be escaped before the comparison, which makes `:` and `%3A` equal. This
//! module does the reverse for those that structure neither path nor query, with the same effect. `/ ? # & = + %` and
//! their escapes remain different, as `%2F` is not a slash to a server; but inside a query `%2F` and `%3F` equal `/`
//! and `?` for patterns that contain a `?` themselves, as the RFC's example `?baz=https%3A%2F%2Ffoo.bar` requires.

use std::borrow::Cow;

/// The kind of a text to be normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The value of a rule: `*` is special and is kept; the caller has removed a `$` at the end.
    Pattern,
    /// A path and query, for patterns without `?`.
    Path,
    /// A path and query, for patterns with `?`: `%2F` and `%3F` in the query are decoded.
    PathForQueries,
}

const KEEP: u8 = 1; // kept as it is
const DECODE: u8 = 2; // its escape is decoded

static CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'.' | b'_' | b'~')
            || matches!(b, b':' | b'@' | b'!' | b'\'' | b'(' | b')' | b',' | b';' | b'[' | b']')
        {
            class[byte] = KEEP | DECODE;
        } else if matches!(b, b'/' | b'?' | b'#' | b'&' | b'=' | b'+') {
            class[byte] = KEEP;
        }
        byte += 1;
    }
    class
};

/// `text` in normal form; borrowed if it is in that form already.
pub(super) fn normal(text: &[u8], side: Side) -> Cow<'_, [u8]> {
    let Some(first) = text.iter().position(|&b| CLASS[b as usize] & KEEP == 0) else {
        return Cow::Borrowed(text);
    };
    let mut out = Vec::with_capacity(text.len() + 16);
    out.extend_from_slice(&text[..first]);
    let mut in_query = text[..first].contains(&b'?');
    let mut at = first;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        if let (b'%', Some(decoded)) = (byte, escaped_byte(&text[at..])) {
            at += 2;
            let undo = CLASS[decoded as usize] & DECODE != 0
                || (in_query && side != Side::Path && matches!(decoded, b'/' | b'?'));
            if undo { out.push(decoded) } else { push_escape(decoded, &mut out) }
        } else if CLASS[byte as usize] & KEEP != 0 || (byte == b'*' && side == Side::Pattern) {
            in_query |= byte == b'?';
            out.push(byte);
        } else {
            push_escape(byte, &mut out);
        }
    }
    Cow::Owned(out)
}

/// Whether the normal forms of a path for patterns with and without `?` differ. `path` must be in the form
/// [`Side::Path`].
pub(super) fn forms_differ(path: &[u8]) -> bool {
    let Some(query) = memchr::memchr(b'?', path) else { return false };
    path[query..].windows(3).any(|escape| matches!(escape, b"%2F" | b"%3F"))
}

fn escaped_byte(after_percent: &[u8]) -> Option<u8> {
    let digit = |b: u8| (b as char).to_digit(16);
    let (high, low) = (digit(*after_percent.first()?)?, digit(*after_percent.get(1)?)?);
    Some((high * 16 + low) as u8)
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form_of_paths_and_patterns() {
        for (text, side, expected) in [
            ("/a%7eb/%c3%a9", Side::Path, "/a~b/%C3%A9"),
            ("/é", Side::Path, "/%C3%A9"),
            ("/a%2fb", Side::Path, "/a%2Fb"),
            ("/a*b$c", Side::Path, "/a%2Ab%24c"),
            ("/a*b$c", Side::Pattern, "/a*b%24c"),
            ("/%2a%24", Side::Pattern, "/%2A%24"),
            ("/100%", Side::Path, "/100%25"),
            ("/a b|", Side::Path, "/a%20b%7C"),
            ("/x%3Ay", Side::Path, "/x:y"),
            ("/p?u=%2f%3f%26", Side::Path, "/p?u=%2F%3F%26"),
            ("/p?u=%2f%3f%26", Side::PathForQueries, "/p?u=/?%26"),
            ("/p%2f?u=%2f", Side::Pattern, "/p%2F?u=/"),
        ] {
            assert_eq!(normal(text.as_bytes(), side), expected.as_bytes(), "{text}");
        }
        assert!(matches!(normal(b"/plain/path?a=b", Side::Path), Cow::Borrowed(_)));
    }

    #[test]
    fn only_escaped_slashes_in_queries_make_a_second_form() {
        assert!(forms_differ(b"/p?u=%2F"));
        assert!(!forms_differ(b"/p%2F?u=1"));
        assert!(!forms_differ(b"/p%2F"));
    }
}
