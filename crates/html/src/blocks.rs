//! Positions of text: the path of block elements around it, as one integer.

use crate::tags::{CONTAINER, TAGS, Tag, TagInfo, VOID};

/// Deeper elements are only counted.
const DEPTH: usize = 512;
/// The hash of the path of `body`.
const ROOT: u64 = 0x6875_6E74_736D_616E;

#[derive(Clone, Copy, Debug)]
struct Step {
    index: u8,
    tag: Tag,
    path: u64,
}

/// The open block elements, without a tree: missing end tags of `p`, `li`, `dd`, `dt` and table parts are implied as in
/// the standard, stray ones are ignored.
#[derive(Debug, Default)]
pub(crate) struct Path {
    stack: Vec<Step>,
    /// Number of open elements per tag index, and per [`Tag`]: an element that is not open need not be searched for.
    of_index: Counts,
    of_tag: Counts,
    deeper: u32,
}

#[derive(Debug)]
struct Counts([u16; TAGS]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; TAGS])
    }
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.stack.clear();
        self.of_index = Counts::default();
        self.of_tag = Counts::default();
        self.deeper = 0;
    }

    /// The path of the innermost block element and its tag.
    pub(crate) fn current(&self) -> (u64, u8) {
        self.stack.last().map_or((ROOT, u8::MAX), |top| (top.path, top.index))
    }

    pub(crate) fn open(&mut self, info: TagInfo, id: &[u8], class: &[u8]) {
        if matches!(info.tag, Tag::Html | Tag::Body) || info.name() == "head" {
            return;
        }
        self.imply(info);
        if info.flags & VOID != 0 {
            return;
        }
        if self.stack.len() == DEPTH {
            self.deeper += 1;
            return;
        }
        let path = step(self.current().0, info, id, class);
        self.stack.push(Step { index: info.index(), tag: info.tag, path });
        self.of_index.0[usize::from(info.index()) % TAGS] += 1;
        self.of_tag.0[info.tag as usize] += 1;
    }

    pub(crate) fn close(&mut self, info: TagInfo) {
        if self.of_index.0[usize::from(info.index()) % TAGS] == 0 {
            return;
        }
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let is_table = matches!(info.tag, Tag::Table | Tag::Rows | Tag::Row | Tag::Cell);
        for at in (0..self.stack.len()).rev() {
            let step = self.stack[at];
            if step.index == info.index() {
                self.truncate(at);
                return;
            }
            // Only a table's own parts close elements outside a cell or a table.
            if step.tag == Tag::Table || (!is_table && step.tag == Tag::Cell) {
                return;
            }
        }
    }

    /// Closes the elements that the start of this tag closes implicitly.
    fn imply(&mut self, info: TagInfo) {
        match info.tag {
            Tag::Cell => self.close_within(Tag::Cell, |step| step.tag == Tag::Table),
            Tag::Row => self.close_within(Tag::Row, |step| step.tag == Tag::Table),
            Tag::Rows => self.close_within(Tag::Rows, |step| step.tag == Tag::Table),
            Tag::Li | Tag::DefinitionPart => {
                self.close_within(info.tag, |step| {
                    !matches!(step.tag, Tag::P) && !is_transparent(step.index)
                });
                self.close_paragraph();
            }
            _ => self.close_paragraph(),
        }
    }

    fn close_paragraph(&mut self) {
        self.close_within(Tag::P, |step| matches!(step.tag, Tag::Cell | Tag::Table));
    }

    fn close_within(&mut self, tag: Tag, is_border: impl Fn(&Step) -> bool) {
        if self.of_tag.0[tag as usize] == 0 {
            return;
        }
        for at in (0..self.stack.len()).rev() {
            let step = self.stack[at];
            if step.tag == tag {
                self.truncate(at);
                return;
            }
            if is_border(&step) {
                return;
            }
        }
    }

    fn truncate(&mut self, length: usize) {
        self.deeper = 0;
        for step in self.stack.drain(length..) {
            self.of_index.0[usize::from(step.index) % TAGS] -= 1;
            self.of_tag.0[step.tag as usize] -= 1;
        }
    }
}

/// `address` and `div` do not keep an `li` or `dd` from being closed; every other block does.
fn is_transparent(index: u8) -> bool {
    matches!(crate::tags::name_of(index), "address" | "div")
}

fn step(parent: u64, info: TagInfo, id: &[u8], class: &[u8]) -> u64 {
    let mut path = mix(parent, 1);
    for &byte in info.name().as_bytes() {
        path = mix(path, u64::from(byte));
    }
    let is_named = info.flags & CONTAINER != 0 && !id.is_empty() && !id.iter().any(u8::is_ascii_digit);
    if is_named {
        path = mix(path, 2);
        return id.iter().fold(path, |path, &byte| mix(path, u64::from(byte)));
    }
    let first = class.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).unwrap_or_default();
    if !first.is_empty() {
        path = mix(path, 3);
    }
    let mut was_digit = false;
    for &byte in first {
        let is_digit = byte.is_ascii_digit();
        if !(is_digit && was_digit) {
            path = mix(path, u64::from(if is_digit { b'0' } else { byte }));
        }
        was_digit = is_digit;
    }
    path
}

/// One step of a 64-bit multiply-rotate hash; the value must not change between versions, since it is stored.
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(5) ^ value).wrapping_mul(0x517C_C1B7_2722_0A95)
}
