//! The references of all pages as numbers, by the URL to which they lead: about five bytes a reference.

use crate::record::EdgeKind;
use huntsman_disk::{Entry, Fields, Numbered, put_bytes, put_number};

/// A reference without its place, which is in the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pointer {
    /// The URL that was requested for the target.
    pub(crate) to: u32,
    /// The target as it is spelled.
    pub(crate) spelled: u32,
    /// The page that has it.
    pub(crate) source: u32,
    /// Its number among those of the page.
    pub(crate) index: u32,
    flags: u8,
}

const KIND: u8 = 0b111;
const NOFOLLOW: u8 = 1 << 3;
const SPELLED: u8 = 1 << 4;
/// The pointer stands for a redirect and not for a reference in a page.
const REDIRECT: u8 = 1 << 5;

impl Pointer {
    pub(crate) fn new([to, spelled]: [u32; 2], source: u32, index: u32, edge: (EdgeKind, bool)) -> Self {
        let flags =
            edge.0.number() | if edge.1 { NOFOLLOW } else { 0 } | if spelled == to { 0 } else { SPELLED };
        Self { to, spelled, source, index, flags }
    }

    pub(crate) fn redirect(to: u32, source: u32) -> Self {
        Self { to, spelled: to, source, index: 0, flags: REDIRECT }
    }

    /// How the page refers to the target; `None` for a redirect.
    pub(crate) fn kind(self) -> Option<EdgeKind> {
        EdgeKind::of_number(self.flags & KIND).filter(|_| self.flags & REDIRECT == 0)
    }

    pub(crate) fn nofollow(self) -> bool {
        self.flags & NOFOLLOW != 0
    }

    pub(crate) fn is_redirect(self) -> bool {
        self.flags & REDIRECT != 0
    }
}

impl Entry for Pointer {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let start = Self { to: 0, spelled: 0, source: 0, index: 0, flags: 0 };
        let before = before.unwrap_or(&start);
        out.push(self.flags);
        put_number(u64::from(self.to - before.to), out);
        if self.flags & SPELLED != 0 {
            put_number(u64::from(self.spelled), out);
        }
        let is_same = self.to == before.to && self.spelled == before.spelled;
        let source = if is_same { before.source } else { 0 };
        put_number(u64::from(self.source - source), out);
        let index = if is_same && self.source == before.source { before.index } else { 0 };
        put_number(u64::from(self.index - index), out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let start = Self { to: 0, spelled: 0, source: 0, index: 0, flags: 0 };
        let before = before.unwrap_or(&start);
        let flags = from.byte()?;
        let to = before.to.checked_add(from.number_u32()?)?;
        let spelled = if flags & SPELLED != 0 { from.number_u32()? } else { to };
        let is_same = to == before.to && spelled == before.spelled;
        let source = if is_same { before.source } else { 0 };
        let source = source.checked_add(from.number_u32()?)?;
        let index = if is_same && source == before.source { before.index } else { 0 };
        Some(Self { to, spelled, source, index: index.checked_add(from.number_u32()?)?, flags })
    }
}

impl Numbered for Pointer {
    fn number(&self) -> u32 {
        self.to
    }
}

/// A fragment that a link names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fragment {
    /// The URL that was requested for the target.
    pub(crate) to: u32,
    pub(crate) fragment: Box<str>,
    pub(crate) source: u32,
    pub(crate) index: u32,
}

impl Entry for Fragment {
    fn heap_size(&self) -> usize {
        self.fragment.len() + 16
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(u64::from(self.to - before.map_or(0, |before| before.to)), out);
        put_bytes(self.fragment.as_bytes(), out);
        put_number(u64::from(self.source), out);
        put_number(u64::from(self.index), out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let to = before.map_or(0, |before| before.to).checked_add(from.number_u32()?)?;
        Some(Self {
            to,
            fragment: from.text()?.into(),
            source: from.number_u32()?,
            index: from.number_u32()?,
        })
    }
}

impl Numbered for Fragment {
    fn number(&self) -> u32 {
        self.to
    }
}

/// Whether a fragment has to be looked up in its target: those that are none for the browser or for scripts, and were not found on the page
/// itself.
pub(crate) fn is_looked_up(edge: EdgeKind, is_within: bool, fragment: &str) -> bool {
    let folded = fragment.to_ascii_lowercase();
    edge == EdgeKind::Link
        && !is_within
        && folded != "top"
        && !folded.contains(":~:")
        && !fragment.starts_with(['!', '/'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_disk::{List, Scratch};

    #[test]
    fn references_come_back_as_numbers() {
        let mut pointers = vec![
            Pointer::new([3, 3], 9, 0, (EdgeKind::Link, false)),
            Pointer::new([3, 3], 9, 4, (EdgeKind::Link, true)),
            Pointer::new([3, 1], 2, 7, (EdgeKind::Image, false)),
            Pointer::redirect(3, 2),
            Pointer::new([70_000, 70_000], 1 << 31, 1 << 20, (EdgeKind::Sitemap, false)),
            Pointer::new([70_001, 5], 0, 0, (EdgeKind::Media, false)),
        ];
        pointers.sort();
        let list = List::of(pointers.iter().map(|pointer| Ok(*pointer)), &Scratch::temporary()).unwrap();
        let (mut cursor, mut found) = (list.cursor(), Vec::new());
        while let Some(pointer) = cursor.next().unwrap() {
            found.push(*pointer);
        }
        assert_eq!(found, pointers);
        assert_eq!(found.iter().filter(|pointer| pointer.is_redirect()).count(), 1);
        assert_eq!(found.iter().filter(|pointer| pointer.kind().is_none()).count(), 1);
        assert_eq!(found.iter().filter(|pointer| pointer.nofollow()).count(), 1);
    }

    #[test]
    fn fragments_for_browsers_and_scripts_are_not_looked_up() {
        for fragment in ["top", "TOP", ":~:text=moths", "!/moths", "/moths"] {
            assert!(!is_looked_up(EdgeKind::Link, false, fragment), "{fragment}");
        }
        assert!(is_looked_up(EdgeKind::Link, false, "moths"));
        assert!(
            !is_looked_up(EdgeKind::Link, true, "moths") && !is_looked_up(EdgeKind::Image, false, "moths")
        );
    }
}
