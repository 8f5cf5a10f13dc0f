//! The links that people follow, and the resources that browsers load.

use crate::region::Region;

/// The element that carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkTag {
    /// `<a href>`.
    A,
    /// `<area href>` of an image map.
    Area,
    /// `<a>` inside SVG, by `href` or `xlink:href`.
    SvgA,
}

impl LinkTag {
    /// The tag name: `a` or `area`.
    pub fn name(self) -> &'static str {
        match self {
            Self::A | Self::SvgA => "a",
            Self::Area => "area",
        }
    }
}

/// One link of a page, borrowed from the document and its scan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Link<'a> {
    /// The address as written: references decoded, white space around it stripped, not resolved. May be empty.
    pub href: &'a str,
    /// The anchor text, collapsed as in [`Scan::text`](crate::Scan::text): it holds a line feed where it spans
    /// blocks, and nothing of images. Empty for `area` and inside `noscript`.
    pub text: &'a str,
    /// The `rel` attribute, as written.
    pub rel: Option<&'a str>,
    /// The element.
    pub tag: LinkTag,
    /// The attribute that holds the address: `href` or `xlink:href`.
    pub attribute: &'static str,
    /// Position among the links of the page, from 0.
    pub index: u32,
    /// Offset in bytes of the tag's name in the document.
    pub offset: u32,
    /// Whether it stands in a `noscript` element that was read as markup.
    pub in_noscript: bool,
    /// The landmark around it.
    pub region: Region,
    /// Tag path of the block around it, as in [`Block::path`](crate::Block::path); 0 without
    /// [`ScanOptions::blocks`](crate::ScanOptions::blocks).
    pub path: u64,
}

impl Link<'_> {
    /// Whether `rel` contains `nofollow`.
    pub fn nofollow(&self) -> bool {
        self.has_rel("nofollow")
    }

    /// Whether `rel` contains `ugc`: written by users of the site.
    pub fn ugc(&self) -> bool {
        self.has_rel("ugc")
    }

    /// Whether `rel` contains `sponsored`.
    pub fn sponsored(&self) -> bool {
        self.has_rel("sponsored")
    }

    /// Whether `rel` contains this word, in any letter case.
    pub fn has_rel(&self, word: &str) -> bool {
        self.rel.is_some_and(|rel| has_word(rel, word))
    }
}

/// The element that loads a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceKind {
    /// `img src`, and `src` of an `input` of the type `image`.
    Image,
    /// One candidate of a `srcset` (of `img` or `source`).
    ImageCandidate,
    /// `script src`.
    Script,
    /// `iframe src`.
    Iframe,
    /// `frame src`.
    Frame,
    /// `form action`.
    Form,
    /// `src` of `audio`, `video`, `source` or `track`.
    Media,
    /// `video poster`.
    Poster,
    /// `embed src` or `object data`.
    Embed,
}

/// An address that a page loads or submits to; only with [`ScanOptions::resources`](crate::ScanOptions::resources).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResourceLink<'a> {
    /// The address as written: references decoded, white space stripped, not resolved.
    pub url: &'a str,
    /// The element that loads it.
    pub kind: ResourceKind,
    /// Offset in bytes of the tag's name in the document.
    pub offset: u32,
    /// Whether it stands in a `noscript` element that was read as markup.
    pub in_noscript: bool,
}

/// Whether a list of words separated by white space has this one, in any letter case.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|entry| entry.eq_ignore_ascii_case(word))
}

/// The addresses of a `srcset` as ranges of it, by the standard's rules.
pub(crate) fn srcset(value: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = value.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b',') {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
            at += 1;
        }
        if start == at {
            return None;
        }
        let mut end = at;
        if bytes[end - 1] == b',' {
            while bytes[end - 1] == b',' {
                end -= 1;
            }
        } else {
            // Descriptors go on to the next comma outside parentheses.
            let mut depth = 0_u32;
            while let Some(&byte) = bytes.get(at) {
                match byte {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    b',' if depth == 0 => break,
                    _ => {}
                }
                at += 1;
            }
        }
        Some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_srcset_splits_at_commas_behind_descriptors_only() {
        for (value, urls) in [
            ("a.png, b.png 2x", &["a.png", "b.png"][..]),
            ("a,b.png 1x,c.png", &["a,b.png", "c.png"]),
            (" ,, a.png ,", &["a.png"]),
            ("data:x;base64,AA 1x, b (1,2) 3w, c", &["data:x;base64,AA", "b", "c"]),
            ("", &[]),
        ] {
            let found: Vec<&str> = srcset(value).map(|(start, end)| &value[start..end]).collect();
            assert_eq!(found, urls, "{value}");
        }
    }
}
