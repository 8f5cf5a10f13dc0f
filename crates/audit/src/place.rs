//! Lines and columns of offsets.

use std::cell::Cell;

use memchr::{memchr_iter, memmem, memrchr};

use crate::finding::Place;

/// Characters of an excerpt.
const EXCERPT: usize = 160;

/// Finds the lines of offsets that mostly ascend, counting only what lies between them.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    last: Cell<(usize, u32, u32)>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, last: Cell::new((0, 1, 1)) }
    }

    /// Line and column of an offset in bytes, both from 1.
    pub(crate) fn position(&self, offset: u32) -> (u32, u32) {
        let bytes = self.text.as_bytes();
        let offset = (offset as usize).min(bytes.len());
        let (from, mut line, mut column) = match self.last.get() {
            last if last.0 <= offset => last,
            _ => (0, 1, 1),
        };
        let between = &bytes[from..offset];
        let chars = |bytes: &[u8]| bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32;
        match memrchr(b'\n', between) {
            None => column += chars(between),
            Some(at) => {
                line += memchr_iter(b'\n', between).count() as u32;
                column = 1 + chars(&between[at + 1..]);
            }
        }
        self.last.set((offset, line, column));
        (line, column)
    }

    /// The place of a tag whose name begins at this offset.
    pub(crate) fn place(&self, offset: u32) -> Place {
        // The `<` stands right before the name.
        let start = offset.saturating_sub(1);
        let (line, column) = self.position(start);
        Place { line, column, ..Place::default() }
    }

    /// Such a place with the source there.
    pub(crate) fn shown(&self, offset: u32) -> Place {
        let rest = self.text.get(offset.saturating_sub(1) as usize..).unwrap_or_default();
        let cut: String = rest.chars().take(EXCERPT).collect();
        let excerpt = cut.split_whitespace().collect::<Vec<_>>().join(" ");
        Place { excerpt: Some(excerpt), ..self.place(offset) }
    }
}

/// Finds where texts stand that come in the order of the source, such as the addresses of a feed.
#[derive(Debug)]
pub(crate) struct Sought<'a> {
    text: &'a str,
    from: usize,
    lines: Lines<'a>,
}

impl<'a> Sought<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, from: 0, lines: Lines::new(text) }
    }

    /// Line and column of the next place of a text, also as markup or JSON writes it; `None` if it does not stand behind the one before.
    pub(crate) fn next(&mut self, sought: &str) -> Option<(u32, u32)> {
        if sought.is_empty() {
            return None;
        }
        let rest = &self.text.as_bytes()[self.from..];
        let find = |what: &str| memmem::find(rest, what.as_bytes());
        let written = || find(&sought.replace('&', "&amp;")).or_else(|| find(&sought.replace('/', "\\/")));
        let at = self.from + find(sought).or_else(written)?;
        self.from = at + 1;
        Some(self.lines.position(u32::try_from(at).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_those_of_an_editor() {
        let text = "a\nbé<p>x\r\n\n<i>";
        let lines = Lines::new(text);
        for (offset, expected) in
            [(0, (1, 1)), (2, (2, 1)), (5, (2, 3)), (11, (3, 1)), (12, (4, 1)), (2, (2, 1)), (99, (4, 4))]
        {
            assert_eq!(lines.position(offset), expected, "{offset}");
        }
        assert_eq!(
            lines.shown(6),
            Place { line: 2, column: 3, excerpt: Some("<p>x <i>".into()), ..Place::default() }
        );
    }

    #[test]
    fn texts_are_found_in_their_order_also_as_they_are_written() {
        let mut sought = Sought::of("a/b\na&amp;b é\n\"x\\/y\" a/b");
        let found = ["a/b", "a&b", "x/y", "a/b", "a/b", ""].map(|text| sought.next(text));
        assert_eq!(found, [Some((1, 1)), Some((2, 1)), Some((3, 2)), Some((3, 8)), None, None]);
    }
}
