//! Links: in double brackets, in single brackets, and bare addresses.

use super::super::pieces::{Frame, Kind};
use super::super::tags::scheme_len;
use super::{Item, Open, Parser, is_inline};

impl Parser<'_> {
    pub(super) fn left_bracket(&mut self) {
        if self.is_in_name() {
            if !self.refuse_name() {
                self.skip(1);
            }
            return;
        }
        let is_double = self.byte(1) == Some(b'[');
        let address = self.at + 1 + usize::from(is_double);
        let scheme = match &self.text[address..] {
            rest if rest.starts_with("//") => Some(2),
            rest => scheme_len(rest),
        };
        let end = scheme.and_then(|scheme| self.address_end(address, scheme));
        let is_link = end.is_some_and(|end| !matches!(self.bytes.get(end), None | Some(b'\n')));
        match (end, is_double) {
            // The second bracket belongs to the link.
            (Some(_), true) if is_link => self.skip(1),
            (Some(end), false) if is_link && self.can_open() && self.top() != Some(Open::ExternalLink) => {
                self.links.push(&self.text[address..end]);
                self.open(Open::ExternalLink, Frame::ExternalLink, 1);
                self.take(Kind::Address, end - address);
                if self.byte(0) == Some(b' ') {
                    self.take(Kind::Address, 1);
                }
            }
            (_, true) if self.can_open() => self.open(Open::Link, Frame::Link, 2),
            (_, is_double) => self.skip(1 + usize::from(is_double)),
        }
    }

    /// The end of the address that begins at `start` with a scheme of `scheme` bytes; `None` if nothing follows the scheme.
    pub(super) fn address_end(&self, start: usize, scheme: usize) -> Option<usize> {
        let begin = start + scheme;
        if matches!(self.bytes.get(begin), None | Some(b'\n' | b' ' | b'[' | b']')) {
            return None;
        }
        let (in_braces, in_key) = match self.stack.last() {
            Some(Item { open: Open::Braces(_), in_key, .. }) => (true, *in_key),
            Some(Item { open: Open::Heading, .. }) => (false, true),
            _ => (false, false),
        };
        let mut at = begin;
        let mut braces = 0;
        while let Some(byte) = self.bytes.get(at) {
            let doubled = self.bytes.get(at + 1) == Some(byte);
            match byte {
                b'\n' => break,
                b'{' if doubled => {
                    braces += 1;
                    at += 1;
                }
                b'}' if doubled && braces > 0 => {
                    braces -= 1;
                    at += 1;
                }
                _ if braces > 0 => {}
                b' ' | b'[' | b']' | b'<' | b'>' | b'"' => break,
                b'\'' if doubled => break,
                b'|' if in_braces => break,
                b'}' if doubled && in_braces => break,
                b'=' if in_key => break,
                _ => {}
            }
            at += 1;
        }
        (braces == 0).then_some(at)
    }

    pub(super) fn right_bracket(&mut self) {
        let is_double = self.byte(1) == Some(b']');
        let below_tags = self.stack.iter().rposition(|item| !is_inline(item.open));
        if let Some(index) = below_tags.filter(|index| is_double && self.is_label(*index)) {
            return self.close(index, Frame::Link, 2);
        }
        if let Some(index) = self.below_styles() {
            let item = self.stack[index];
            match item.open {
                Open::ExternalLink => return self.close(index, Frame::ExternalLink, 1),
                Open::Link if is_double => return self.close(index, Frame::Link, 2),
                Open::Link if item.in_name => return self.stack.truncate(index),
                Open::Braces(_) if item.in_name && self.refuse_name() => return,
                _ => {}
            }
        }
        self.skip(1 + usize::from(is_double));
    }

    /// Whether the construct at `index` of the stack is a link in whose label the position is.
    pub(super) fn is_label(&self, index: usize) -> bool {
        let item = self.stack[index];
        item.open == Open::Link && !item.in_name
    }

    /// A colon within a line: part of an address, or the separator between a term and its definition.
    pub(super) fn colon(&mut self) {
        if let Some(end) = self.free_address() {
            while self.at < end {
                match self.bytes[self.at..end].iter().position(|byte| *byte == b'&') {
                    Some(0) => self.entity(),
                    Some(len) => self.at += len,
                    None => self.at = end,
                }
            }
        } else if self.term == Some(self.stack.len()) {
            self.term = None;
            self.take(Kind::Markup, 1);
        } else {
            self.skip(1);
        }
    }

    /// The end of the address whose scheme ends at this colon.
    pub(super) fn free_address(&mut self) -> Option<usize> {
        if self.is_in_name() || self.top() == Some(Open::ExternalLink) {
            return None;
        }
        let before = &self.text[self.text_start..self.at];
        // The longest scheme has nine letters; a longer word is not a scheme.
        let letters = before.bytes().rev().take(10).take_while(u8::is_ascii_alphanumeric).count();
        let scheme_start = self.at - letters;
        let in_word = self.text[self.text_start..scheme_start].chars().next_back();
        if letters == 0 || in_word.is_some_and(|c| c == '_' || c.is_alphanumeric()) {
            return None;
        }
        let scheme = scheme_len(&self.text[scheme_start..])?;
        let end = self.address_end(scheme_start, scheme)?;
        let address = &self.text[scheme_start..end];
        // A full stop after an address is not part of it; a closing bracket is if the address contains an opening one.
        let is_tail = |c: char| {
            matches!(c, ',' | ';' | '\\' | '.' | ':' | '!' | '?') || c == ')' && !address.contains('(')
        };
        self.links.push(address.trim_end_matches(is_tail));
        Some(end)
    }
}
