//! Tags: their names, their ends, and tags whose content is not markup.

use super::super::pieces::{Frame, Kind};
use super::super::tags::{VERBATIM, VOID};
use super::{MAX_DEPTH, Open, Parser};

impl Parser<'_> {
    pub(super) fn less_than(&mut self) {
        if self.rest().starts_with("<!--") {
            let end = if self.no_comment_end { None } else { self.text[self.at + 4..].find("-->") };
            match end {
                Some(end) => {
                    self.take(Kind::Markup, end + 7);
                }
                None => {
                    self.no_comment_end = true;
                    self.skip(4);
                }
            }
            return;
        }
        if self.is_in_name() && self.refuse_name() {
            return;
        }
        if self.byte(1) == Some(b'/') { self.end_tag() } else { self.start_tag() }
    }

    pub(super) fn end_tag(&mut self) {
        let rest = &self.bytes[self.at + 2..];
        let len = rest.iter().take(MAX_NAME).position(|byte| matches!(byte, b'>' | b'<'));
        let Some(len) = len.filter(|len| rest[*len] == b'>') else { return self.skip(2) };
        let name = self.text[self.at + 2..self.at + 2 + len].trim_end().to_lowercase();
        let tag = self
            .stack
            .iter()
            .enumerate()
            .rev()
            .take_while(|(_, item)| !matches!(item.open, Open::Braces(_) | Open::Table | Open::Cell))
            .find(|(_, item)| matches!(item.open, Open::Tag(number) if self.names[number as usize] == name));
        match tag {
            Some((index, _)) => self.close(index, Frame::Tag, len + 3),
            None if VOID.contains(&&*name) => {
                self.take(Kind::Markup, len + 3);
            }
            None => self.skip(2),
        }
    }

    pub(super) fn start_tag(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let is_name = |byte: &u8| !b"{}[]<>|=&'\"#*;:/-!\\".contains(byte) && !byte.is_ascii_whitespace();
        let len = rest.iter().take(MAX_NAME).take_while(|byte| is_name(byte)).count();
        let Some(after) = rest.get(len).filter(|_| len > 0) else { return self.skip(1) };
        let is_end = match after {
            b'>' => true,
            b'/' => rest.get(len + 1) == Some(&b'>'),
            byte => byte.is_ascii_whitespace(),
        };
        // A name that is cut at its length limit may end within a character.
        if !is_end || !self.can_open() {
            return self.skip(1);
        }
        let Some(end) = self.tag_end(self.at + 1 + len) else { return self.skip(1) };
        let name = self.text[self.at + 1..self.at + 1 + len].to_lowercase();
        let is_empty = self.bytes[end - 1] == b'/';
        let tag = end + 1 - self.at;
        if is_empty || VOID.contains(&&*name) {
            self.take(Kind::Markup, tag);
        } else if let Some(verbatim) = VERBATIM.iter().position(|other| *other == name) {
            self.verbatim(verbatim, tag);
        } else {
            let number = self.number_of(name);
            self.open(Open::Tag(number), Frame::Tag, tag);
        }
    }

    /// The number of a name. If there are too many names, those of closed tags are forgotten.
    pub(super) fn number_of(&mut self, name: String) -> u32 {
        if let Some(at) = self.names.iter().position(|other| *other == name) {
            return at as u32;
        }
        if self.names.len() < 2 * MAX_DEPTH {
            self.names.push(name);
            return self.names.len() as u32 - 1;
        }
        let is_open = |at: usize| self.stack.iter().any(|item| item.open == Open::Tag(at as u32));
        let free =
            (0..self.names.len()).find(|at| !is_open(*at)).expect("fewer tags are open than there are names");
        self.names[free] = name;
        free as u32
    }

    /// The position of the `>` that ends a tag, searched from the end of its name. A quoted value may contain a `>`, unless the quote never
    /// ends.
    pub(super) fn tag_end(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        // The position and kind of the open quote.
        let mut quote: Option<(usize, u8)> = None;
        let mut may_quote = false;
        loop {
            self.looks = self.looks.checked_sub(1)?;
            let Some(byte) = self.bytes.get(at).copied() else {
                // The quote never ends, so it is not a quote: continue after it.
                (at, may_quote) = (quote.take()?.0 + 1, false);
                continue;
            };
            match (byte, quote) {
                (byte, Some((_, mark))) if byte == mark => quote = None,
                (_, Some(_)) => {}
                (b'>', None) => return Some(at),
                // Another tag begins here, so this one is not a tag.
                (b'<', None) => return None,
                (b'"' | b'\'', None) if may_quote => quote = Some((at, byte)),
                _ => {}
            }
            may_quote = byte == b'=' || may_quote && byte.is_ascii_whitespace();
            at += 1;
        }
    }

    /// Handles a tag whose content has entities but no markup. If it is not closed, it is text.
    pub(super) fn verbatim(&mut self, number: usize, tag: usize) {
        let name = VERBATIM[number];
        let from = self.at + tag;
        if self.ends.is_empty() {
            self.ends = vec![(0, 0); VERBATIM.len()];
        }
        let (mut start, mut end) = self.ends[number];
        if start < from && start != usize::MAX {
            (start, end) = find_end_tag(self.text, from, name).unwrap_or((usize::MAX, 0));
            self.ends[number] = (start, end);
        }
        if start == usize::MAX {
            return self.skip(1);
        }
        let open = self.take(Kind::Open(Frame::Tag), tag);
        while self.at < start {
            let rest = &self.bytes[self.at..start];
            match rest.iter().position(|byte| *byte == b'&') {
                Some(0) => self.entity(),
                Some(len) => self.at += len,
                None => self.at = start,
            }
        }
        self.at = self.at.min(start);
        let close = self.take(Kind::Close(Frame::Tag), end - start);
        self.join(open, close, Frame::Tag);
    }
}

/// The longest name of a tag.
const MAX_NAME: usize = 64;

/// The start and end of the next end tag with this name.
fn find_end_tag(text: &str, from: usize, name: &str) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let start = at + text[at..].find("</")?;
        let rest = &text[start + 2..];
        at = start + 2;
        let Some(end) = rest.bytes().take(MAX_NAME).position(|byte| matches!(byte, b'>' | b'<')) else {
            continue;
        };
        if rest.as_bytes()[end] == b'>' && rest[..end].trim_end().eq_ignore_ascii_case(name) {
            return Some((start, at + end + 1));
        }
    }
}
