//! Sorted texts in one block of memory, with look-ups by position and by text.

/// Texts per stored offset.
const BLOCK: usize = 16;

/// Distinct texts in ascending order of their bytes. Each takes its bytes and one or two more.
#[derive(Debug)]
pub(super) struct Texts {
    len: usize,
    /// The start of each block.
    starts: Box<[u64]>,
    /// Each text is preceded by its length in groups of 7 bits, the lowest first; all groups except the last have the 8th bit set.
    bytes: Box<[u8]>,
}

/// Builds [`Texts`] from texts in ascending order.
#[derive(Debug, Default)]
pub(super) struct TextsBuilder {
    len: usize,
    starts: Vec<u64>,
    bytes: Vec<u8>,
}

impl TextsBuilder {
    /// Adds a text, which must be larger than the previous one.
    pub(super) fn push(&mut self, text: &str) {
        if self.len.is_multiple_of(BLOCK) {
            self.starts.push(self.bytes.len() as u64);
        }
        self.len += 1;
        let mut length = text.len();
        while length >= 0x80 {
            self.bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.bytes.push(length as u8);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn finish(self) -> Texts {
        Texts { len: self.len, starts: self.starts.into(), bytes: self.bytes.into() }
    }
}

impl Texts {
    /// The number of texts.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The text at a position below [`len`](Self::len).
    pub(super) fn get(&self, at: usize) -> &str {
        let text = self.block(at / BLOCK).nth(at % BLOCK).expect("the place is below the length");
        std::str::from_utf8(text).expect("texts went in")
    }

    /// The position of a text.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let text = text.as_bytes();
        let is_before = |start: &u64| split(&self.bytes[*start as usize..]).0 <= text;
        let block = self.starts.partition_point(is_before).checked_sub(1)?;
        let at = self.block(block).position(|other| other >= text)?;
        (self.block(block).nth(at) == Some(text)).then_some(block * BLOCK + at)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + self.bytes.len()
    }

    /// The texts of a block.
    fn block(&self, block: usize) -> impl Iterator<Item = &[u8]> {
        let count = BLOCK.min(self.len - block * BLOCK);
        let mut rest = &self.bytes[self.starts[block] as usize..];
        (0..count).map(move |_| {
            let (text, behind) = split(rest);
            rest = behind;
            text
        })
    }
}

/// Splits off the first text from the texts that follow it.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (mut length, mut at) = (0, 0);
    loop {
        let byte = bytes[at];
        length |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte < 0x80 {
            return bytes[at..].split_at(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_text_is_found_at_its_place_and_no_other() {
        for count in [0, 1, 2, 15, 16, 17, 100] {
            let texts: BTreeSet<String> =
                (0..count).map(|n| format!("{}-{}", n * 7 % 10, "é".repeat(n * n % 300))).collect();
            let texts: Vec<String> = texts.into_iter().collect();
            let mut builder = TextsBuilder::default();
            texts.iter().for_each(|text| builder.push(text));
            let packed = builder.finish();
            assert_eq!(packed.len(), texts.len());
            for (at, text) in texts.iter().enumerate() {
                assert_eq!((packed.get(at), packed.find(text)), (text.as_str(), Some(at)));
                for other in [format!("{text}a"), format!("a{text}"), text.chars().skip(1).collect()] {
                    assert_eq!(packed.find(&other), texts.binary_search(&other).ok(), "{other}");
                }
            }
            assert_eq!(packed.find(""), None);
        }
    }

    #[test]
    fn the_empty_text_is_a_text() {
        let mut builder = TextsBuilder::default();
        builder.push("");
        builder.push("a");
        let packed = builder.finish();
        assert_eq!((packed.get(0), packed.find(""), packed.find("a")), ("", Some(0), Some(1)));
    }
}
