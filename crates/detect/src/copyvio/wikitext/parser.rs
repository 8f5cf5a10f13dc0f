//! Wikitext as pieces: one pass over the bytes with a stack of what is open.
//!
//! Every byte of the text is in exactly one piece, so the length of any range is the sum of its pieces. What was opened
//! and never closed is an [`Kind::Open`] without a partner, which reads as text; bars and equals signs belong to
//! whatever is around them in the end.

use super::super::words::is_space;
use super::tags::{OPEN_END, VERBATIM, VOID, scheme_len};

/// Constructs within constructs; what opens deeper stays as text. The reference's own limits are 40 and 100.
const MAX_DEPTH: usize = 100;
/// Bytes between the `&` and the `;` of an entity.
const MAX_ENTITY: usize = 34;
/// Bytes that may be looked at for the ends of tags, per byte of the page: `<a "<a "` would be read to its end from each
/// `<` else.
const TAG_LOOKS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Template,
    /// `{{{name|default}}}`.
    Argument,
    /// `[[title|text]]`.
    Link,
    /// `[address text]`.
    ExternalLink,
    Heading,
    Style,
    Tag,
    Table,
    Cell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Entity,
    /// Markup that shows nothing: comments, list marks, tags without content, separators of tables.
    Markup,
    /// The address of a bracketed link and the space behind it; text anywhere else.
    Address,
    Bar,
    Equals,
    /// The beginning of a construct; its partner is the end. Without a partner it is text.
    Open(Frame),
    /// The end of a construct; its partner is the beginning.
    Close(Frame),
}

/// No partner.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) partner: u32,
    /// Of the beginning of a cell: the bar behind its attributes.
    pub(super) attributes: u32,
}

#[derive(Debug)]
pub(super) struct Pieces<'t> {
    pub(super) text: &'t str,
    pub(super) list: Vec<Piece>,
    pub(super) links: Vec<&'t str>,
}

impl<'t> Pieces<'t> {
    pub(super) fn source(&self, piece: Piece) -> &'t str {
        &self.text[piece.start as usize..piece.end as usize]
    }
}

/// What a frame on the stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// A run of braces, of which so many are left: a template or an argument, as its end will show.
    Braces(u32),
    Link,
    ExternalLink,
    Heading,
    Italic,
    Bold,
    /// With a number for its name.
    Tag(u32),
    Table,
    Cell,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    open: Open,
    /// Its piece.
    piece: u32,
    /// Braces and links: before the first bar.
    in_name: bool,
    /// Braces: there is something in the name.
    has_name: bool,
    /// Braces: there was a line break behind the name.
    name_ended: bool,
    /// Braces: what cannot be in the name of a template is in it, so it can only be an argument.
    no_template: bool,
    /// Braces: behind a bar and before an equals sign.
    in_key: bool,
    /// Headings: the piece of the last run of equals signs.
    last: u32,
    /// Cells: of a line that began with `!`.
    is_header: bool,
    /// Cells: no line break so far.
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
    /// Where text begins that is in no piece yet.
    text_start: usize,
    pieces: Vec<Piece>,
    links: Vec<&'t str>,
    stack: Vec<Item>,
    /// Names of tags that are open, by number: at most as many as may be open at once.
    names: Vec<String>,
    /// For names of verbatim tags: where the next end tag begins, `usize::MAX` if there is none.
    ends: Vec<(usize, usize)>,
    no_comment_end: bool,
    looks: usize,
    /// Depth at which a `;` of this line waits for its `:`.
    term: Option<usize>,
    /// Where the first character of this line stands that is no white space.
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
            // Items of lists and cells may end with the page.
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

    /// How often the byte stands here in a row.
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

    /// At the beginning of a line, or behind nothing but white space in it.
    fn is_indented_line_start(&self) -> bool {
        self.at <= self.indent_end
    }

    /// Ends the text before this place.
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

    /// Ends the construct at `index` of the stack with the next `len` bytes; what is open within it stays text.
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

    /// Place of the innermost construct that is no style.
    fn below_styles(&self) -> Option<usize> {
        self.stack.iter().rposition(|item| !matches!(item.open, Open::Italic | Open::Bold))
    }

    /// Takes note of text for the rules on names of templates: there must be some, and a line break may only be at its
    /// ends.
    fn name_text(&mut self, start: usize, end: usize) {
        let text = &self.text[start..end];
        if let Some(Item { open: Open::Braces(_), in_name: true, has_name, name_ended, no_template, .. }) =
            self.stack.last_mut()
            && !text.chars().all(is_space)
        {
            *no_template |= *name_ended;
            *has_name = true;
        }
    }

    /// Something stands here that neither the name of a template nor the title of a link may have. Says whether what was
    /// open is text now, so that this place is to be read again.
    fn refuse_name(&mut self) -> bool {
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

    /// Whether the name of a template or the title of a link is being read.
    fn is_in_name(&self) -> bool {
        self.stack
            .last()
            .is_some_and(|item| matches!(item.open, Open::Braces(_) | Open::Link) && item.in_name)
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

    fn left_brace(&mut self) {
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
        // A piece per brace: how many belong to which construct shows at their ends.
        self.open(Open::Braces(count as u32), Frame::Template, 1);
        (1..count).for_each(|_| {
            self.take(Kind::Open(Frame::Template), 1);
        });
    }

    /// Runs of braces match as in MediaWiki's preprocessor: three make an argument, else two a template, and what is
    /// left of the opening run goes on around it.
    fn right_brace(&mut self) {
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

    fn left_bracket(&mut self) {
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
            // The second bracket is the link's.
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

    /// Where an address ends that begins at `start` with a scheme of `scheme` bytes; `None` if nothing follows that.
    fn address_end(&self, start: usize, scheme: usize) -> Option<usize> {
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

    fn right_bracket(&mut self) {
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

    /// Whether the construct at `index` of the stack is a link whose label is being read.
    fn is_label(&self, index: usize) -> bool {
        let item = self.stack[index];
        item.open == Open::Link && !item.in_name
    }

    fn less_than(&mut self) {
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

    fn end_tag(&mut self) {
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

    fn start_tag(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let is_name = |byte: &u8| !b"{}[]<>|=&'\"#*;:/-!\\".contains(byte) && !byte.is_ascii_whitespace();
        let len = rest.iter().take(MAX_NAME).take_while(|byte| is_name(byte)).count();
        let Some(after) = rest.get(len).filter(|_| len > 0) else { return self.skip(1) };
        let is_end = match after {
            b'>' => true,
            b'/' => rest.get(len + 1) == Some(&b'>'),
            byte => byte.is_ascii_whitespace(),
        };
        // A name that is cut at its limit ends within a character.
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

    /// The number of a name. Names of tags that are closed are forgotten when there are too many.
    fn number_of(&mut self, name: String) -> u32 {
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

    /// The place of the `>` that ends a tag, read from behind its name. A quoted value may have one in it, unless the
    /// quote never ends.
    fn tag_end(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        // Where a quote began, and which.
        let mut quote: Option<(usize, u8)> = None;
        let mut may_quote = false;
        loop {
            self.looks = self.looks.checked_sub(1)?;
            let Some(byte) = self.bytes.get(at).copied() else {
                // The quote was none: read on behind it.
                (at, may_quote) = (quote.take()?.0 + 1, false);
                continue;
            };
            match (byte, quote) {
                (byte, Some((_, mark))) if byte == mark => quote = None,
                (_, Some(_)) => {}
                (b'>', None) => return Some(at),
                // Another tag begins: this one was none.
                (b'<', None) => return None,
                (b'"' | b'\'', None) if may_quote => quote = Some((at, byte)),
                _ => {}
            }
            may_quote = byte == b'=' || may_quote && byte.is_ascii_whitespace();
            at += 1;
        }
    }

    /// A tag whose content is no markup but entities; text if it is not closed.
    fn verbatim(&mut self, number: usize, tag: usize) {
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

    /// The table or cell whose markup may stand here. At the beginning of a line it ends tags that were left open.
    fn table_here(&self) -> Option<usize> {
        let at_line = self.is_indented_line_start();
        let is_within =
            |open| if at_line { is_inline(open) } else { matches!(open, Open::Italic | Open::Bold) };
        let index = self.stack.iter().rposition(|item| !is_within(item.open))?;
        matches!(self.stack[index].open, Open::Table | Open::Cell).then_some(index)
    }

    /// A bar in the table or cell at `index` of the stack; says whether it belongs to the table.
    fn table_bar(&mut self, index: usize) -> bool {
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
        // What stands before the first bar are attributes.
        if self.pieces[piece as usize].attributes != NONE {
            return false;
        }
        self.stack.truncate(index + 1);
        let bar = self.take(Kind::Bar, 1);
        self.pieces[piece as usize].attributes = bar;
        true
    }

    /// Ends the cell at `index` of the stack, if it is one.
    fn end_cell(&mut self, index: usize) {
        if self.stack[index].open == Open::Cell {
            self.close(index, Frame::Cell, 0);
        } else {
            self.stack.truncate(index + 1);
        }
    }

    fn exclamation_mark(&mut self) {
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

    fn ticks(&mut self) {
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

    fn begin_style(&mut self, open: Open, len: usize) {
        if self.can_open() { self.open(open, Frame::Style, len) } else { self.skip(len) }
    }

    fn end_style(&mut self, index: usize, len: usize) {
        // Of two that began at once either may end first: that one is made the inner one.
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
        // A heading does not end within a style.
        let begin = self.stack[index].piece;
        if let Some(heading) = self.below_styles().map(|index| &mut self.stack[index])
            && heading.last != NONE
            && heading.last > begin
        {
            heading.last = NONE;
        }
        self.close(index, Frame::Style, len);
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

    /// Ends what ends with its line.
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

    /// A colon within a line: that of an address, or between a term and what it means.
    fn colon(&mut self) {
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

    /// Where the address ends whose scheme ends at this colon.
    fn free_address(&mut self) -> Option<usize> {
        if self.is_in_name() || self.top() == Some(Open::ExternalLink) {
            return None;
        }
        let before = &self.text[self.text_start..self.at];
        // The longest scheme has nine letters; one that is longer is none.
        let letters = before.bytes().rev().take(10).take_while(u8::is_ascii_alphanumeric).count();
        let scheme_start = self.at - letters;
        let in_word = self.text[self.text_start..scheme_start].chars().next_back();
        if letters == 0 || in_word.is_some_and(|c| c == '_' || c.is_alphanumeric()) {
            return None;
        }
        let scheme = scheme_len(&self.text[scheme_start..])?;
        let end = self.address_end(scheme_start, scheme)?;
        let address = &self.text[scheme_start..end];
        // A full stop behind an address is not its own; a bracket is if it has another one.
        let is_tail = |c: char| {
            matches!(c, ',' | ';' | '\\' | '.' | ':' | '!' | '?') || c == ')' && !address.contains('(')
        };
        self.links.push(address.trim_end_matches(is_tail));
        Some(end)
    }
}

/// What is often left open within a label or a cell.
fn is_inline(open: Open) -> bool {
    matches!(open, Open::Italic | Open::Bold | Open::Tag(_))
}

/// The longest name of a tag that is read.
const MAX_NAME: usize = 64;

/// The next end tag of that name: where it begins and ends.
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
            // Part of the name may be an old one, which needs no semicolon: then that is left over.
            let decoded = huntsman_html::decode(&text[..=end], huntsman_html::Context::Text);
            name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !decoded.ends_with(';')
        }
    };
    is_entity.then_some(end + 1)
}
