//! The references of a page as bytes.
//!
//! The links of a page begin alike and stand in the order of the source, so each is written as its difference from the one before it: about
//! 25 bytes, of which compression leaves ten.

use huntsman_crawler::Error;

use crate::finding::Place;
use crate::record::{Edge, EdgeKind};
use huntsman_disk::{Fields, put_bytes, put_number};

const REGIONS: [&str; 5] = ["nav", "header", "footer", "main", "aside"];

const KIND: u8 = 0b111;
const NOFOLLOW: u8 = 1 << 3;
const HAS_FRAGMENT: u8 = 1 << 4;
const HAS_TEXT: u8 = 1 << 5;
const IS_WITHIN: u8 = 1 << 6;
const IS_CANDIDATE: u8 = 1 << 7;

/// Appends references.
pub(crate) fn put_edges(edges: &[Edge], out: &mut Vec<u8>) {
    put_number(edges.len() as u64, out);
    let (mut before, mut line) = ("", 0);
    for edge in edges {
        let has = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        out.push(
            edge.kind.number()
                | has(NOFOLLOW, edge.nofollow)
                | has(HAS_FRAGMENT, edge.fragment.is_some())
                | has(HAS_TEXT, edge.place.link.is_some())
                | has(IS_WITHIN, edge.is_within)
                | has(IS_CANDIDATE, edge.is_candidate),
        );
        let region = edge.place.region.as_deref();
        let region = region.and_then(|region| REGIONS.iter().position(|known| *known == region));
        out.push(region.map_or(0, |at| at as u8 + 1));
        let common = common(before, &edge.to);
        put_number(common as u64, out);
        put_bytes(&edge.to.as_bytes()[common..], out);
        put_number(zigzag(i64::from(edge.place.line) - i64::from(line)), out);
        put_number(u64::from(edge.place.column), out);
        for text in [&edge.fragment, &edge.place.link].into_iter().flatten() {
            put_bytes(text.as_bytes(), out);
        }
        (before, line) = (&edge.to, edge.place.line);
    }
}

/// Number of bytes with which both texts begin, up to the end of a character.
pub(crate) fn common(a: &str, b: &str) -> usize {
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=equal).rev().find(|at| b.is_char_boundary(*at)).unwrap_or(0)
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads references one by one.
#[derive(Debug)]
pub(crate) struct EdgeReader<'a> {
    fields: Fields<'a>,
    left: u64,
    to: String,
    line: u32,
}

/// A reference as it is read. Its URL is in [`EdgeReader::to`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeParts<'a> {
    pub(crate) kind: EdgeKind,
    pub(crate) nofollow: bool,
    pub(crate) is_within: bool,
    pub(crate) is_candidate: bool,
    pub(crate) fragment: Option<&'a str>,
    region: u8,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) link: Option<&'a str>,
}

impl EdgeParts<'_> {
    /// The landmark around it.
    pub(crate) fn region(&self) -> Option<&'static str> {
        usize::from(self.region).checked_sub(1).and_then(|at| REGIONS.get(at)).copied()
    }
}

impl<'a> EdgeReader<'a> {
    /// `None` if the bytes are no references.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        let left = fields.number()?;
        Some(Self { fields, left, to: String::new(), line: 0 })
    }

    /// The URL of the reference that was read last.
    pub(crate) fn to(&self) -> &str {
        &self.to
    }

    /// The next reference; `Ok(None)` after the last one, and an error if the bytes are no references.
    pub(crate) fn next(&mut self) -> Result<Option<EdgeParts<'a>>, NoEdge> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.parts().map(Some).ok_or(NoEdge)
    }

    fn parts(&mut self) -> Option<EdgeParts<'a>> {
        let flags = self.fields.byte()?;
        let region = self.fields.byte()?;
        let common = usize::try_from(self.fields.number()?).ok()?;
        if !self.to.is_char_boundary(common) {
            return None;
        }
        self.to.truncate(common);
        self.to.push_str(self.fields.text()?);
        let line = i64::from(self.line).checked_add(unzigzag(self.fields.number()?))?;
        self.line = u32::try_from(line).ok()?;
        let column = self.fields.number_u32()?;
        let mut text = |flag: u8| match flags & flag {
            0 => Some(None),
            _ => self.fields.text().map(Some),
        };
        let (fragment, link) = (text(HAS_FRAGMENT)?, text(HAS_TEXT)?);
        Some(EdgeParts {
            kind: EdgeKind::of_number(flags & KIND)?,
            nofollow: flags & NOFOLLOW != 0,
            is_within: flags & IS_WITHIN != 0,
            is_candidate: flags & IS_CANDIDATE != 0,
            fragment,
            region,
            line: self.line,
            column,
            link,
        })
    }

    /// All references that are left.
    pub(crate) fn all(&mut self) -> Result<Vec<Edge>, NoEdge> {
        let mut edges = Vec::new();
        while let Some(parts) = self.next()? {
            edges.push(self.edge(&parts));
        }
        Ok(edges)
    }

    /// The reference that was read last, as a value of its own.
    pub(crate) fn edge(&self, parts: &EdgeParts<'_>) -> Edge {
        Edge {
            to: self.to.clone(),
            kind: parts.kind,
            fragment: parts.fragment.map(str::to_owned),
            nofollow: parts.nofollow,
            is_within: parts.is_within,
            is_candidate: parts.is_candidate,
            place: Place {
                line: parts.line,
                column: parts.column,
                link: parts.link.map(str::to_owned),
                region: parts.region().map(str::to_owned),
                ..Place::default()
            },
        }
    }
}

/// The bytes are no references.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoEdge;

impl From<NoEdge> for Error {
    fn from(_: NoEdge) -> Self {
        Self::msg("references of a page were not written as they are")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_edges(bytes: &[u8]) -> Option<Vec<Edge>> {
        EdgeReader::new(bytes)?.all().ok()
    }

    #[test]
    fn references_come_back_as_they_were() {
        let edge = |to: &str, line: u32, link: Option<&str>, region: Option<&str>| Edge {
            to: to.to_owned(),
            kind: EdgeKind::Link,
            fragment: None,
            nofollow: false,
            is_within: false,
            is_candidate: false,
            place: Place {
                line,
                column: line * 1_000,
                link: link.map(str::to_owned),
                region: region.map(str::to_owned),
                ..Place::default()
            },
        };
        let edges = [
            edge("https://a.example/moths/hawk", 12, Some("Hawk moths"), Some("nav")),
            edge("https://a.example/moths/é", 12, Some(""), None),
            edge("https://a.example/moths/è", 70_000, None, Some("main")),
            Edge { fragment: Some("top".to_owned()), nofollow: true, ..edge("", 3, None, Some("aside")) },
            Edge {
                kind: EdgeKind::Image,
                is_within: true,
                is_candidate: true,
                ..edge("https://b.example/", 0, None, None)
            },
        ];
        let mut out = Vec::new();
        put_edges(&edges, &mut out);
        // The second letters of é and è differ, the first ones do not: no text may begin between them.
        assert_eq!(read_edges(&out).as_deref(), Some(&edges[..]));
        (0..out.len()).for_each(|length| assert!(read_edges(&out[..length]).is_none(), "cut at {length}"));
    }
}
