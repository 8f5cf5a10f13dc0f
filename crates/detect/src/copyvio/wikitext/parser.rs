//! Parses wikitext into pieces, in one pass over the bytes with a stack of open constructs.
//!
//! Every byte of the text is in exactly one piece, so the length of any range is the sum of its pieces. A construct that was opened and
//! never closed is a [`Kind::Open`] without a partner, which is read as text; its bars and equals signs then belong to the construct around
//! it.

mod brace;
mod link;
mod style;
mod table;
mod tag;

use super::super::words::is_space;
use super::pieces::{Frame, Kind, NONE, Piece, Pieces};
use super::tags::OPEN_END;

/// The greatest depth of nested constructs; deeper ones stay as text. The reference's own limits are 40 and 100.
const MAX_DEPTH: usize = 100;
/// The most bytes between the `&` and the `;` of an entity.
const MAX_ENTITY: usize = 34;
/// The most bytes that are read in search of the ends of tags, per byte of the page. Otherwise `<a "<a "` would be read to its end from
/// each `<`.
const TAG_LOOKS: usize = 16;

/// The kind of an open construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// A run of braces, of which this many are left: a template or an argument, which its end decides.
    Braces(u32),
    Link,
    ExternalLink,
    Heading,
    Italic,
    Bold,
    /// A tag, by the number of its name.
    Tag(u32),
    Table,
    Cell,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    open: Open,
    /// The index of its piece.
    piece: u32,
    /// Braces and links: whether the position is before the first bar.
    in_name: bool,
    /// Braces: whether the name is not empty.
    has_name: bool,
    /// Braces: whether there was a line break after the name.
    name_ended: bool,
    /// Braces: whether the name contains something that the name of a template cannot contain, so that this can only be an argument.
    no_template: bool,
    /// Braces: whether the position is after a bar and before an equals sign.
    in_key: bool,
    /// Headings: the index of the piece of the last run of equals signs.
    last: u32,
    /// Cells: whether the line began with `!`.
    is_header: bool,
    /// Cells: whether there was no line break so far.
    in_first_line: bool,
}

pub(super) fn parse(text: &str) -> Pieces<'_> {
    let mut parser = Parser {
        text,
        bytes: text.as_bytes(),
        at: 0,
        text_start: 0,
        pieces: Vec::new(),
        links: Vec::new(),
        stack: Vec::new(),
        names: Vec::new(),
        ends: Vec::new(),
        no_comment_end: false,
        looks: text.len() * TAG_LOOKS + 1024,
        term: None,
        indent_end: 0,
    };
    parser.begin_line(0);
    parser.run();
    Pieces { text, list: parser.pieces, links: parser.links }
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The start of the text that is not yet in a piece.
    text_start: usize,
    pieces: Vec<Piece>,
    links: Vec<&'t str>,
    stack: Vec<Item>,
    /// The names of open tags, by number: at most as many as may be open at once.
    names: Vec<String>,
    /// For the names of verbatim tags: the position of the next end tag, or `usize::MAX` if there is none.
    ends: Vec<(usize, usize)>,
    no_comment_end: bool,
    looks: usize,
    /// The stack depth at which a `;` of this line waits for its `:`.
    term: Option<usize>,
    /// The position of the first character of this line that is not white space.
    indent_end: usize,
}

/// Bytes that may begin markup.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"{}[]<|=&'#*;:-!\n";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

impl<'t> Parser<'t> {
    fn run(&mut self) {
        while let Some(byte) = self.byte(0) {
            if SPECIAL[usize::from(byte)] {
                self.special(byte);
            } else {
                let rest = &self.bytes[self.at..];
                let end = rest.iter().position(|byte| SPECIAL[usize::from(*byte)]).unwrap_or(rest.len());
                self.name_text(self.at, self.at + end);
                self.at += end;
            }
        }
        self.flush();
        self.end_line();
        while let Some(item) = self.stack.pop() {
            // Items of lists and cells may be ended by the end of the page.
            if let Open::Tag(name) = item.open
                && OPEN_END.contains(&&*self.names[name as usize])
            {
                self.pieces[item.piece as usize].kind = Kind::Markup;
            }
        }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The number of times that the byte occurs here in a row.
    fn run_len(&self, byte: u8) -> usize {
        self.bytes[self.at..].iter().take_while(|other| **other == byte).count()
    }

    fn is_line_start(&self) -> bool {
        self.at == 0 || self.bytes[self.at - 1] == b'\n'
    }

    fn begin_line(&mut self, start: usize) {
        let rest = &self.text[start..];
        let indent = rest.find(|c| c == '\n' || !is_space(c)).unwrap_or(rest.len());
        self.indent_end = start + indent;
    }

    /// Whether only white space precedes this position in its line.
    fn is_indented_line_start(&self) -> bool {
        self.at <= self.indent_end
    }

    /// Makes a piece of the text before this position.
    fn flush(&mut self) {
        if self.text_start < self.at {
            self.push(Kind::Text, self.text_start, self.at);
        }
        self.text_start = self.at;
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) -> u32 {
        // The text is far shorter than 2^32 bytes.
        self.pieces.push(Piece {
            kind,
            start: start as u32,
            end: end as u32,
            partner: NONE,
            attributes: NONE,
        });
        self.pieces.len() as u32 - 1
    }

    /// Makes a piece of the next `len` bytes.
    fn take(&mut self, kind: Kind, len: usize) -> u32 {
        self.flush();
        let start = self.at;
        self.at += len;
        self.text_start = self.at;
        if let Some(end) = self.text[start..self.at].rfind('\n') {
            self.begin_line(start + end + 1);
        }
        self.push(kind, start, self.at)
    }

    /// Leaves the next `len` bytes as text.
    fn skip(&mut self, len: usize) {
        self.name_text(self.at, self.at + len);
        self.at += len;
    }

    fn open(&mut self, open: Open, frame: Frame, len: usize) {
        let piece = self.take(Kind::Open(frame), len);
        self.stack.push(Item {
            open,
            piece,
            in_name: true,
            has_name: false,
            name_ended: false,
            no_template: false,
            in_key: false,
            last: NONE,
            is_header: false,
            in_first_line: true,
        });
    }

    fn can_open(&self) -> bool {
        self.stack.len() < MAX_DEPTH
    }

    /// Closes the construct at `index` of the stack with the next `len` bytes; constructs that are open within it stay text.
    fn close(&mut self, index: usize, frame: Frame, len: usize) {
        let close = self.take(Kind::Close(frame), len);
        self.join(self.stack[index].piece, close, frame);
        self.stack.truncate(index);
    }

    fn join(&mut self, open: u32, close: u32, frame: Frame) {
        self.pieces[open as usize].kind = Kind::Open(frame);
        self.pieces[open as usize].partner = close;
        self.pieces[close as usize].partner = open;
    }

    fn top(&self) -> Option<Open> {
        self.stack.last().map(|item| item.open)
    }

    /// The stack index of the innermost construct that is not a style.
    fn below_styles(&self) -> Option<usize> {
        self.stack.iter().rposition(|item| !matches!(item.open, Open::Italic | Open::Bold))
    }

    fn special(&mut self, byte: u8) {
        match byte {
            b'{' => self.left_brace(),
            b'}' => self.right_brace(),
            b'[' => self.left_bracket(),
            b']' => self.right_bracket(),
            b'<' => self.less_than(),
            b'|' => self.bar(),
            b'=' => self.equals(),
            b'&' => self.entity(),
            b'\'' if self.byte(1) == Some(b'\'') => self.ticks(),
            b'\n' => self.line_break(),
            b'*' | b'#' | b';' | b':' if self.is_line_start() => self.list_marks(),
            b':' => self.colon(),
            b'-' if self.is_line_start() && self.run_len(b'-') >= 4 => {
                self.take(Kind::Markup, self.run_len(b'-'));
            }
            b'!' => self.exclamation_mark(),
            _ => self.skip(1),
        }
    }

    fn bar(&mut self) {
        if let Some(index) = self.table_here()
            && self.table_bar(index)
        {
            return;
        }
        match self.stack.last_mut() {
            None => self.skip(1),
            // A template needs a name.
            Some(Item { open: Open::Braces(..3), has_name: false, .. }) => {
                self.stack.pop();
            }
            Some(item) => {
                item.in_name = false;
                item.in_key = matches!(item.open, Open::Braces(2));
                self.take(Kind::Bar, 1);
            }
        }
    }

    fn equals(&mut self) {
        let count = self.run_len(b'=');
        if let Some(index) = self.below_styles()
            && self.stack[index].open == Open::Heading
        {
            self.stack[index].last = self.take(Kind::Text, count);
            return;
        }
        let in_key = match self.stack.last() {
            Some(Item { open: Open::Braces(_), in_key, .. }) => Some(*in_key),
            _ => None,
        };
        let may_begin = match in_key {
            None => true,
            Some(in_key) => in_key && count > 1,
        };
        let in_heading = self.stack.iter().any(|item| item.open == Open::Heading);
        if may_begin && self.is_line_start() && !in_heading && self.can_open() {
            return self.open(Open::Heading, Frame::Heading, count);
        }
        match self.stack.last_mut() {
            None => self.skip(count),
            Some(item) => {
                item.in_key = false;
                if item.in_name {
                    self.skip(1);
                } else {
                    self.take(Kind::Equals, 1);
                }
            }
        }
    }

    fn entity(&mut self) {
        match entity_len(self.rest()) {
            Some(len) => {
                self.name_text(self.at, self.at + 1);
                self.take(Kind::Entity, len);
            }
            None => self.skip(1),
        }
    }

    fn line_break(&mut self) {
        self.end_line();
        if self.term.is_some() {
            self.term = None;
        }
        if let Some(Item { open: Open::Braces(_), in_name: true, has_name: true, name_ended, .. }) =
            self.stack.last_mut()
        {
            *name_ended = true;
        }
        self.at += 1;
        self.begin_line(self.at);
    }

    /// Closes the constructs that end with their line.
    fn end_line(&mut self) {
        while let Some(index) = self.below_styles() {
            let item = &mut self.stack[index];
            match item.open {
                Open::Heading => {
                    if item.last != NONE {
                        let (open, close) = (item.piece, item.last);
                        self.pieces[close as usize].kind = Kind::Close(Frame::Heading);
                        self.join(open, close, Frame::Heading);
                    }
                    self.stack.truncate(index);
                }
                Open::ExternalLink => self.stack.truncate(index),
                Open::Link if item.in_name => self.stack.truncate(index),
                Open::Cell => {
                    item.in_first_line = false;
                    return;
                }
                _ => return,
            }
        }
    }

    fn list_marks(&mut self) {
        let marks = self.bytes[self.at..].iter().take_while(|byte| b"*#;:".contains(byte));
        let len = marks.clone().count();
        if marks.clone().any(|byte| *byte == b';') {
            self.term = Some(self.stack.len());
        }
        if self.is_in_name() {
            self.skip(len);
        } else {
            self.take(Kind::Markup, len);
        }
    }
}

/// Whether a construct of this kind is often left open within a label or a cell.
fn is_inline(open: Open) -> bool {
    matches!(open, Open::Italic | Open::Bold | Open::Tag(_))
}

/// The length of the entity that `text` begins with.
fn entity_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = bytes.iter().take(MAX_ENTITY).position(|byte| *byte == b';')?;
    let name = &text[1..end];
    let is_entity = match name.strip_prefix('#') {
        Some(number) => {
            let (digits, radix) = match number.strip_prefix(['x', 'X']) {
                Some(digits) => (digits, 16),
                None => (number, 10),
            };
            digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && u32::from_str_radix(digits, radix).is_ok_and(|point| (1..=0x10_FFFF).contains(&point))
        }
        None => {
            // A part of the name may be an old entity, which needs no semicolon; then characters are left over.
            let decoded = huntsman_html::decode(&text[..=end], huntsman_html::Context::Text);
            name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !decoded.ends_with(';')
        }
    };
    is_entity.then_some(end + 1)
}
