//! Italic and bold text: runs of apostrophes.

use super::super::pieces::{Frame, NONE};
use super::{Open, Parser};

impl Parser<'_> {
    pub(super) fn ticks(&mut self) {
        let count = self.run_len(b'\'');
        match count {
            4 => self.skip(1),
            6.. => self.skip(count - 5),
            _ => {}
        }
        let count = self.run_len(b'\'');
        let styles = self.below_styles().map_or(0, |index| index + 1);
        let place =
            |open| self.stack[styles..].iter().position(|item| item.open == open).map(|at| styles + at);
        let (italic, bold) = (place(Open::Italic), place(Open::Bold));
        match (count, italic, bold) {
            (2, Some(index), _) => self.end_style(index, 2),
            (2, None, _) => self.begin_style(Open::Italic, 2),
            (3, _, Some(index)) => self.end_style(index, 3),
            (3, _, None) => self.begin_style(Open::Bold, 3),
            (_, Some(italic), Some(bold)) if italic > bold => {
                self.end_style(italic, 2);
                self.end_style(bold, 3);
            }
            (_, Some(italic), Some(bold)) => {
                self.end_style(bold, 3);
                self.end_style(italic, 2);
            }
            (_, Some(index), None) => {
                self.end_style(index, 2);
                self.begin_style(Open::Bold, 3);
            }
            (_, None, Some(index)) => {
                self.end_style(index, 3);
                self.begin_style(Open::Italic, 2);
            }
            (_, None, None) => {
                self.begin_style(Open::Italic, 2);
                self.begin_style(Open::Bold, 3);
            }
        }
    }

    pub(super) fn begin_style(&mut self, open: Open, len: usize) {
        if self.can_open() { self.open(open, Frame::Style, len) } else { self.skip(len) }
    }

    pub(super) fn end_style(&mut self, index: usize, len: usize) {
        // If two styles began at once, either may end first; the one that does becomes the inner one.
        let mut index = index;
        if let [outer, inner] = self.stack[index..]
            && inner.piece == outer.piece + 1
        {
            let length = if inner.open == Open::Bold { 3 } else { 2 };
            let middle = self.pieces[outer.piece as usize].start + length;
            self.pieces[outer.piece as usize].end = middle;
            self.pieces[inner.piece as usize].start = middle;
            self.stack[index].open = inner.open;
            self.stack[index + 1].open = outer.open;
            index += 1;
        }
        // A heading cannot end within a style, so equals signs there do not end it.
        let begin = self.stack[index].piece;
        if let Some(heading) = self.below_styles().map(|index| &mut self.stack[index])
            && heading.last != NONE
            && heading.last > begin
        {
            heading.last = NONE;
        }
        self.close(index, Frame::Style, len);
    }
}
