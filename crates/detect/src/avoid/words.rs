//! The words of a text: what is between white space, found eight bytes at a time.

/// A word, and whether it has an ASCII digit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) has_digit: bool,
}

impl Word<'_> {
    pub(crate) fn has_letter(&self) -> bool {
        let first = self.text.as_bytes().first();
        first.is_some_and(u8::is_ascii_alphabetic) || self.text.chars().any(char::is_alphabetic)
    }
}

/// The words of a text in order: those of [`str::split_whitespace`].
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The length of the white space at a place of the text; 0 if there is a letter.
    #[inline]
    fn space(&self, at: usize) -> usize {
        match self.text.as_bytes()[at] {
            b' ' | b'\t'..=b'\r' => 1,
            0..0x80 => 0,
            _ => match self.text[at..].chars().next() {
                Some(space) if space.is_whitespace() => space.len_utf8(),
                _ => 0,
            },
        }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The bytes of eight that are below a bound, by their high bits. Bytes from 128 on must not be there, bounds are at most 128.
#[inline]
const fn below(bytes: u64, bound: u64) -> u64 {
    !(bytes | HIGH).wrapping_sub(ONES * bound) & HIGH
}

/// The bytes of eight that may be white space or begin a character that is: all up to the blank, and all that are not ASCII.
#[inline]
const fn may_be_space(bytes: u64) -> u64 {
    let ascii = bytes & !HIGH;
    (bytes & HIGH) | below(ascii, 0x21)
}

/// Whether some of eight bytes are digits.
#[inline]
const fn digits(bytes: u64) -> u64 {
    let ascii = bytes & !HIGH;
    below(ascii, 0x3A) & !below(ascii, 0x30) & !bytes
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    #[inline]
    fn next(&mut self) -> Option<Word<'a>> {
        let bytes = self.text.as_bytes();
        let mut start = self.at;
        loop {
            if start >= bytes.len() {
                self.at = start;
                return None;
            }
            match self.space(start) {
                0 => break,
                space => start += space,
            }
        }
        let mut end = start;
        let mut has_digit = false;
        while end < bytes.len() {
            if let Some(eight) = bytes[end..].first_chunk::<8>() {
                let eight = u64::from_le_bytes(*eight);
                let stop = may_be_space(eight);
                if stop == 0 {
                    has_digit |= digits(eight) != 0;
                    end += 8;
                    continue;
                }
                let before = stop.trailing_zeros() / 8;
                // The high bits of the bytes before the first that stops.
                has_digit |= digits(eight) & (stop & stop.wrapping_neg()).wrapping_sub(1) != 0;
                end += before as usize;
            }
            if end < bytes.len() {
                if self.space(end) > 0 {
                    break;
                }
                has_digit |= bytes[end].is_ascii_digit();
                end += 1;
                while !self.text.is_char_boundary(end) {
                    end += 1;
                }
            }
        }
        self.at = end;
        Some(Word { text: &self.text[start..end], has_digit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let found: Vec<&str> = Words::of(text).map(|word| word.text).collect();
        assert_eq!(found, text.split_whitespace().collect::<Vec<_>>(), "{text:?}");
        for word in Words::of(text) {
            assert_eq!(word.has_digit, word.text.bytes().any(|byte| byte.is_ascii_digit()), "{text:?}");
            assert_eq!(word.has_letter(), word.text.chars().any(char::is_alphabetic), "{text:?}");
        }
    }

    #[test]
    fn words_are_those_between_white_space_of_any_script() {
        for text in [
            "",
            " ",
            "one",
            "  a bc\tdef\r\nghij klmno pqrstu vwxyzab cdefghij klmnopqrs \u{b}t\u{c}u ",
            "caf\u{e9}\u{a0}au\u{3000}lait\u{85}na\u{ef}vet\u{e9}",
            "\u{65e5}\u{672c}\u{8a9e}\u{2003}text 3\u{20ac} \u{1c}\u{1f}x\u{7f} @[`{/:09",
        ] {
            check(text);
        }
        // Each kind of character at each place of eight bytes.
        for kind in [
            "7",
            "/",
            ":",
            "0",
            "9",
            "a",
            "\u{1f}",
            "!",
            " ",
            "\t",
            "\u{a0}",
            "\u{e9}",
            "\u{2028}",
            "\u{1f600}",
        ] {
            for before in 0..18 {
                for after in 0..10 {
                    check(&format!("{}{kind}{}", "x".repeat(before), "y".repeat(after)));
                }
            }
        }
    }
}
