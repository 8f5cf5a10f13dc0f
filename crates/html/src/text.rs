//! Collects the visible text of a page: white space collapsed, one line per block.

use crate::references::{Context, reference};
use crate::tokenizer::Span;

/// The separator between the text so far and the next visible character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Pending {
    #[default]
    Nothing,
    Space,
    Line,
}

/// How a run of text is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// `&` begins a reference.
    pub(crate) references: bool,
    /// NUL is U+FFFD, else it vanishes.
    pub(crate) keep_nul: bool,
}

/// Collects text; separators are written only when something visible follows.
#[derive(Debug, Default)]
pub(crate) struct TextBuffer {
    text: String,
    pending: Pending,
    cut: bool,
}

const WINDOW: usize = 16;

impl TextBuffer {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.pending = Pending::Nothing;
        self.cut = false;
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Whether text was dropped because offsets are 32 bits.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Begins a new line for the following text.
    pub(crate) fn line(&mut self) {
        self.pending = Pending::Line;
    }

    /// The text written since the buffer had `start` bytes, without the separator before it.
    pub(crate) fn since(&self, start: usize) -> Span {
        let text = self.text.as_bytes();
        let separated = start > 0 && matches!(text.get(start), Some(b' ' | b'\n'));
        Span::new(start + usize::from(separated), text.len())
    }

    pub(crate) fn push(&mut self, raw: &str, reading: Reading) {
        let bytes = raw.as_bytes();
        // A NUL grows to three bytes, references to at most 6 from 5.
        if self.text.len() + 3 * bytes.len() > u32::MAX as usize {
            self.cut = true;
            return;
        }
        let mut at = 0;
        loop {
            while let Some(b' ' | b'\n' | b'\t' | b'\r' | b'\x0C') = bytes.get(at) {
                self.pending = self.pending.max(Pending::Space);
                at += 1;
            }
            let end = plain_end(bytes, at);
            if end > at {
                // A run may end in one space; whether it is kept depends on what follows.
                let trailing = bytes[end - 1] == b' ';
                self.separate();
                self.text.push_str(&raw[at..end - usize::from(trailing)]);
                if trailing {
                    self.pending = Pending::Space;
                }
                at = end;
            }
            match bytes.get(at) {
                None => return,
                Some(b'&') => at += self.ampersand(&bytes[at..], reading),
                Some(0) => {
                    if reading.keep_nul {
                        self.visible(char::REPLACEMENT_CHARACTER);
                    }
                    at += 1;
                }
                Some(b' ' | b'\n' | b'\t' | b'\r' | b'\x0C') => {}
                Some(&control) => {
                    self.visible(char::from(control));
                    at += 1;
                }
            }
        }
    }

    fn ampersand(&mut self, raw: &[u8], reading: Reading) -> usize {
        let found = if reading.references { reference(raw, Context::Text) } else { None };
        let Some(found) = found else {
            self.visible('&');
            return 1;
        };
        for character in std::iter::once(found.first).chain(found.second) {
            match character {
                ' ' | '\n' | '\t' | '\r' | '\x0C' => self.pending = self.pending.max(Pending::Space),
                other => self.visible(other),
            }
        }
        found.length
    }

    fn visible(&mut self, character: char) {
        self.separate();
        self.text.push(character);
    }

    fn separate(&mut self) {
        if self.pending != Pending::Nothing {
            if !self.text.is_empty() {
                self.text.push(if self.pending == Pending::Line { '\n' } else { ' ' });
            }
            self.pending = Pending::Nothing;
        }
    }
}

/// First offset from `at` of a control byte, an `&` or a space before a space; the end if there is none.
///
/// Sixteen bytes at a time, in a form that compiles to vector instructions (32 were slower on real pages).
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(window) = bytes[at..].first_chunk::<{ WINDOW + 1 }>() {
        let mut special = 0;
        for place in 0..WINDOW {
            let byte = window[place];
            special |= u8::from(byte < b' ') | u8::from(byte == b'&');
            special |= u8::from(byte == b' ') & u8::from(window[place + 1] == b' ');
        }
        if special != 0 {
            break;
        }
        at += WINDOW;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte < b' ' || byte == b'&' || (byte == b' ' && bytes.get(at + 1) == Some(&b' ')) {
            break;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collapsed(raw: &str) -> String {
        let mut buffer = TextBuffer::default();
        buffer.push(raw, Reading { references: true, keep_nul: false });
        buffer.as_str().to_owned()
    }

    #[test]
    fn white_space_collapses_at_every_place_of_a_window() {
        for length in 0..40 {
            let word = "x".repeat(length);
            for gap in [" ", "  ", "\n", " \n ", "\t\t\t", "&#32;", " &Tab; "] {
                let wanted = if length == 0 { String::new() } else { format!("{word} {word}") };
                assert_eq!(collapsed(&format!("{gap}{word}{gap}{word}{gap}")), wanted, "{length} {gap:?}");
            }
        }
    }

    #[test]
    fn nul_vanishes_and_other_controls_stay() {
        assert_eq!(collapsed("a\0b\u{1}c & d &amp &bogus;"), "ab\u{1}c & d & &bogus;");
    }
}
