//! Braces: templates, arguments, and the rules for their names.

use super::super::pieces::{Frame, Kind};
use super::{Item, Open, Parser, is_space};

impl Parser<'_> {
    /// Applies the rules for names of templates to a piece of text: a name must not be empty, and a line break may only be at its ends.
    pub(super) fn name_text(&mut self, start: usize, end: usize) {
        let text = &self.text[start..end];
        if let Some(Item { open: Open::Braces(_), in_name: true, has_name, name_ended, no_template, .. }) =
            self.stack.last_mut()
            && !text.chars().all(is_space)
        {
            *no_template |= *name_ended;
            *has_name = true;
        }
    }

    /// Called for markup that neither the name of a template nor the title of a link may contain. Returns whether an open construct became
    /// text because of it, so that this position must be read again.
    pub(super) fn refuse_name(&mut self) -> bool {
        match self.stack.last_mut() {
            Some(Item { open: Open::Braces(3..), in_name: true, no_template, .. }) => {
                *no_template = true;
                false
            }
            Some(Item { open: Open::Braces(_) | Open::Link, in_name: true, .. }) => {
                self.stack.pop();
                true
            }
            _ => false,
        }
    }

    /// Whether the position is in the name of a template or the title of a link.
    pub(super) fn is_in_name(&self) -> bool {
        self.stack
            .last()
            .is_some_and(|item| matches!(item.open, Open::Braces(_) | Open::Link) && item.in_name)
    }

    pub(super) fn left_brace(&mut self) {
        let count = self.run_len(b'{');
        if count == 1 && self.byte(1) == Some(b'|') && self.is_indented_line_start() && self.can_open() {
            // A table has at least two lines.
            if let Some(line) = self.bytes[self.at..].iter().position(|byte| *byte == b'\n') {
                self.open(Open::Table, Frame::Table, line + 1);
                return;
            }
        }
        if count < 2 || !self.can_open() {
            if self.is_in_name() && self.refuse_name() {
                return;
            }
            self.skip(count);
            return;
        }
        if let Some(item) = self.stack.last_mut() {
            item.has_name = true;
        }
        // Each brace is a piece of its own, because only their ends show how many belong to which construct.
        self.open(Open::Braces(count as u32), Frame::Template, 1);
        (1..count).for_each(|_| {
            self.take(Kind::Open(Frame::Template), 1);
        });
    }

    /// Runs of braces match as in MediaWiki's preprocessor: three make an argument, otherwise two make a template, and the rest of the
    /// opening run stays open around it.
    pub(super) fn right_brace(&mut self) {
        let count = self.run_len(b'}');
        let braces = self.stack.iter().enumerate().rev().find_map(|(index, item)| match item.open {
            Open::Braces(left) => Some((index, left, *item)),
            _ => None,
        });
        let Some((index, left, item)) = braces.filter(|_| count >= 2) else {
            if self.top() == Some(Open::Link) && self.refuse_name() {
                return;
            }
            self.skip(count);
            return;
        };
        let (frame, len) = match (left, count) {
            (3.., 3..) => (Frame::Argument, 3),
            _ if item.has_name && !item.no_template => (Frame::Template, 2),
            _ => {
                self.stack.truncate(index);
                self.skip(2);
                return;
            }
        };
        let close = self.take(Kind::Close(frame), len as usize);
        let left = left - len;
        let open = item.piece + left;
        (1..len).for_each(|brace| self.pieces[(open + brace) as usize].kind = Kind::Markup);
        self.join(open, close, frame);
        self.stack.truncate(index);
        if left >= 2 {
            let open = Open::Braces(left);
            let state =
                Item { open, in_name: true, has_name: true, name_ended: false, no_template: false, ..item };
            self.stack.push(Item { in_key: false, ..state });
        }
    }
}
