//! Attribute values kept by a scan: ranges of the document, or of an arena if they had to be decoded.

use crate::references::{Context, decode_into, is_plain};
use crate::tokenizer::Span;

/// Set in `length` if the value stands in the arena.
const ARENA: u32 = 1 << 31;
const NONE: u32 = u32::MAX;

/// A value of 8 bytes; `Value::NONE` for an attribute that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    start: u32,
    length: u32,
}

impl Value {
    pub(crate) const NONE: Self = Self { start: 0, length: NONE };

    /// Keeps a raw value. A value of 2 GiB or more is dropped.
    pub(crate) fn keep(raw: Span, doc: &str, arena: &mut String) -> Self {
        let text = raw.of(doc);
        if is_plain(text.as_bytes()) {
            return Self::new(raw.start as usize, raw.len(), 0);
        }
        let start = arena.len();
        decode_into(text, Context::Attribute, arena);
        Self::new(start, arena.len() - start, ARENA)
    }

    /// As [`Value::keep`] without the white space around it.
    pub(crate) fn keep_stripped(raw: Span, doc: &str, arena: &mut String) -> Self {
        Self::keep(raw, doc, arena).stripped(doc, arena)
    }

    /// Keeps text that was put into the arena, from `start` on.
    pub(crate) fn of_arena(start: usize, arena: &str) -> Self {
        Self::new(start, arena.len() - start, ARENA)
    }

    fn new(start: usize, length: usize, place: u32) -> Self {
        if start > u32::MAX as usize || length >= (ARENA - 1) as usize {
            return Self::NONE;
        }
        Self { start: start as u32, length: length as u32 | place }
    }

    fn stripped(self, doc: &str, arena: &str) -> Self {
        let Some(text) = self.get(doc, arena) else { return self };
        let is_ink = |byte: &u8| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0C');
        let bytes = text.as_bytes();
        let start = bytes.iter().position(is_ink).unwrap_or(bytes.len());
        let end = bytes.iter().rposition(is_ink).map_or(start, |last| last + 1);
        self.part(start, end)
    }

    /// A range of this value.
    pub(crate) fn part(self, start: usize, end: usize) -> Self {
        Self { start: self.start + start as u32, length: (end - start) as u32 | (self.length & ARENA) }
    }

    pub(crate) fn get<'a>(self, doc: &'a str, arena: &'a str) -> Option<&'a str> {
        if self.length == NONE {
            return None;
        }
        let text = if self.length & ARENA == 0 { doc } else { arena };
        let start = self.start as usize;
        text.get(start..start + (self.length & !ARENA) as usize)
    }
}

impl Default for Value {
    fn default() -> Self {
        Self::NONE
    }
}
