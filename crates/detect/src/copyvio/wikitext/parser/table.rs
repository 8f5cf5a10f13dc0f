//! Tables: their lines, cells and attributes.

use super::super::pieces::{Frame, Kind, NONE};
use super::{Item, Open, Parser, is_inline};

impl Parser<'_> {
    /// The table or cell whose markup may occur here. At the beginning of a line, this closes tags that were left open.
    pub(super) fn table_here(&self) -> Option<usize> {
        let at_line = self.is_indented_line_start();
        let is_within =
            |open| if at_line { is_inline(open) } else { matches!(open, Open::Italic | Open::Bold) };
        let index = self.stack.iter().rposition(|item| !is_within(item.open))?;
        matches!(self.stack[index].open, Open::Table | Open::Cell).then_some(index)
    }

    /// Handles a bar in the table or cell at `index` of the stack; returns whether it belongs to the table.
    pub(super) fn table_bar(&mut self, index: usize) -> bool {
        let Item { open, is_header, in_first_line, piece, .. } = self.stack[index];
        let is_cell = open == Open::Cell;
        if self.is_indented_line_start() {
            match self.byte(1) {
                Some(b'}') => {
                    self.end_cell(index);
                    let table = index - usize::from(is_cell);
                    self.close(table, Frame::Table, 2);
                }
                Some(b'-') => {
                    self.end_cell(index);
                    let rest = &self.bytes[self.at..];
                    let line = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
                    self.take(Kind::Markup, line);
                }
                _ => {
                    self.end_cell(index);
                    self.open(Open::Cell, Frame::Cell, 1);
                }
            }
            return true;
        }
        if !is_cell || !in_first_line {
            return false;
        }
        if self.byte(1) == Some(b'|') {
            self.end_cell(index);
            self.open(Open::Cell, Frame::Cell, 2);
            self.stack.last_mut().expect("it was opened").is_header = is_header;
            return true;
        }
        // The text before the first bar is attributes.
        if self.pieces[piece as usize].attributes != NONE {
            return false;
        }
        self.stack.truncate(index + 1);
        let bar = self.take(Kind::Bar, 1);
        self.pieces[piece as usize].attributes = bar;
        true
    }

    /// Closes the cell at `index` of the stack, if it is one.
    pub(super) fn end_cell(&mut self, index: usize) {
        if self.stack[index].open == Open::Cell {
            self.close(index, Frame::Cell, 0);
        } else {
            self.stack.truncate(index + 1);
        }
    }

    pub(super) fn exclamation_mark(&mut self) {
        if let Some(index) = self.table_here() {
            let Item { open, is_header, in_first_line, .. } = self.stack[index];
            let is_double = self.byte(1) == Some(b'!') && open == Open::Cell && is_header && in_first_line;
            if is_double || self.is_indented_line_start() {
                self.end_cell(index);
                self.open(Open::Cell, Frame::Cell, if is_double { 2 } else { 1 });
                self.stack.last_mut().expect("it was opened").is_header = true;
                return;
            }
        }
        self.skip(1);
    }
}
