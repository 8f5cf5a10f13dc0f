//! Numbers and texts as bytes: numbers take seven bits a byte, and texts have their length before them.

/// Appends a number: one byte below 128, two below 16,384, and so on.
pub fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes with their length.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Reads what was appended, in the same order. `None` says that the bytes are not what was written.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of bytes that are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All that is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next number.
    pub fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// The next number, if it has at most 32 bits.
    pub fn number_u32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// The next bytes, as many as asked for.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next bytes with their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// The next bytes with their length, if they are UTF-8.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|number| put_number(*number, &mut out));
        put_bytes("moth".as_bytes(), &mut out);
        let mut fields = Fields::new(&out);
        assert!(numbers.iter().all(|number| fields.number() == Some(*number)));
        assert_eq!((fields.text(), fields.is_empty(), fields.byte()), (Some("moth"), true, None));
    }

    #[test]
    fn bytes_that_were_not_written_are_no_number_and_no_text() {
        assert_eq!(Fields::new(&[0xFF; 12]).number(), None);
        assert_eq!(Fields::new(&[0x80]).number(), None);
        assert_eq!(Fields::new(&[5, b'a']).bytes(), None);
        assert_eq!(Fields::new(&[1, 0xFF]).text(), None);
        assert_eq!(Fields::new(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).number_u32(), None);
    }
}
