//! The wire protocol (RESP 2): writes commands and reads replies.
//!
//! This is own code and not a client library's for speed: a query reads some 400 numbers. A general parser that makes a value of each took
//! 210 to 500 ns per number, where this takes 12 to 45 (same run); the page of the crate has what that makes of queries.

use std::io::{self, Read};

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The null reply.
    Nil,
    /// `+OK` and the like.
    Status(String),
    /// A whole number.
    Number(i64),
    /// A string.
    Bytes(Vec<u8>),
    /// A list of replies.
    List(Vec<Reply>),
    /// The members of a set of numbers, if the batch asked for them.
    Numbers(Vec<u64>),
    /// An error reply as it was sent: a code in capitals, followed by text.
    Error(String),
}

impl Reply {
    /// The bytes of a string reply, or an inner `None` for the null reply; `None` for any other reply.
    pub fn into_bytes(self) -> Option<Option<Vec<u8>>> {
        match self {
            Reply::Nil => Some(None),
            Reply::Bytes(bytes) => Some(Some(bytes)),
            _ => None,
        }
    }

    /// The value of a reply that is a whole number, sent as an integer or as digits.
    pub fn number(&self) -> Option<i64> {
        match self {
            Reply::Number(number) => Some(*number),
            Reply::Bytes(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The replies of a list; `None` for any other reply.
    pub fn into_list(self) -> Option<Vec<Reply>> {
        match self {
            Reply::List(list) => Some(list),
            _ => None,
        }
    }

    /// The values of a list whose items are strings or null; `None` for any other reply.
    pub fn into_values(self) -> Option<Vec<Option<Vec<u8>>>> {
        self.into_list()?.into_iter().map(Reply::into_bytes).collect()
    }
}

/// The expected shape of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any reply.
    Any,
    /// A set whose members are whole numbers of 64 bits; they are read without an allocation per member.
    Numbers,
}

/// Writes one command: its name and arguments.
pub(crate) fn encode(out: &mut Vec<u8>, parts: &[&[u8]]) {
    head(out, b'*', parts.len());
    for part in parts {
        head(out, b'$', part.len());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

fn head(out: &mut Vec<u8>, kind: u8, length: usize) {
    out.push(kind);
    decimal(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal digits.
pub(crate) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The longest string in a reply: the protocol's own limit, 512 MiB.
const MAX_BYTES: usize = 512 << 20;
/// The most bytes of a whole reply: four of the longest strings.
const MAX_REPLY: u64 = 4 * MAX_BYTES as u64;
/// The most items of all lists of a reply: 2^26 members of a set would be 1.5 GB on the wire.
const MAX_PARTS: usize = 1 << 26;
/// The most items for which memory is reserved before they arrive, because the other side may claim any length.
const TRUSTED_PARTS: usize = 1 << 12;
const MAX_DEPTH: usize = 8;
const READ: usize = 64 << 10;

/// Reads replies from a stream.
#[derive(Debug)]
pub(crate) struct Reader<S> {
    stream: S,
    buffer: Vec<u8>,
    /// The start of the bytes in the buffer that were not yet consumed.
    start: usize,
    end: usize,
    /// What the reply that is being read may still have.
    bytes_left: u64,
    parts_left: usize,
}

impl<S: Read> Reader<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: vec![0; READ], start: 0, end: 0, bytes_left: 0, parts_left: 0 }
    }

    pub(crate) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Reads the next reply.
    ///
    /// # Errors
    ///
    /// Those of the stream; `UnexpectedEof` if it ends; `InvalidData` for an invalid reply. After an error the stream cannot be used any
    /// more.
    pub(crate) fn reply(&mut self, shape: Shape) -> io::Result<Reply> {
        self.reply_within(shape, MAX_REPLY)
    }

    fn reply_within(&mut self, shape: Shape, bytes: u64) -> io::Result<Reply> {
        (self.bytes_left, self.parts_left) = (bytes, MAX_PARTS);
        self.read(shape, 0)
    }

    fn read(&mut self, shape: Shape, depth: usize) -> io::Result<Reply> {
        let (kind, line) = self.line()?;
        let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
        match kind {
            b'+' => Ok(Reply::Status(text(&self.buffer[line.0..line.1]))),
            b'-' => Ok(Reply::Error(text(&self.buffer[line.0..line.1]))),
            b':' => Ok(Reply::Number(self.signed(line)?)),
            b'$' => match self.signed(line)? {
                -1 => Ok(Reply::Nil),
                length => {
                    let bytes = self.bytes(length)?;
                    Ok(Reply::Bytes(self.buffer[bytes.0..bytes.1].to_vec()))
                }
            },
            b'*' => match self.signed(line)? {
                -1 => Ok(Reply::Nil),
                length => {
                    let length = usize::try_from(length).ok();
                    let left = length.and_then(|length| Some((length, self.parts_left.checked_sub(length)?)));
                    let (length, left) = left.ok_or_else(|| invalid("a list of an impossible length"))?;
                    self.parts_left = left;
                    if depth == MAX_DEPTH {
                        return Err(invalid("lists in lists in lists"));
                    }
                    if shape == Shape::Numbers {
                        let mut numbers = Vec::with_capacity(length.min(TRUSTED_PARTS));
                        for _ in 0..length {
                            numbers.push(self.member()?);
                        }
                        return Ok(Reply::Numbers(numbers));
                    }
                    let mut list = Vec::with_capacity(length.min(TRUSTED_PARTS));
                    for _ in 0..length {
                        list.push(self.read(Shape::Any, depth + 1)?);
                    }
                    Ok(Reply::List(list))
                }
            },
            _ => Err(invalid("no answer of a Redis server")),
        }
    }

    /// Reads a member of a set of numbers. They are signed in Redis, unsigned here: the same 64 bits.
    fn member(&mut self) -> io::Result<u64> {
        let (kind, line) = self.line()?;
        if kind != b'$' {
            return Err(invalid("a set with a member that is not a string"));
        }
        let length = self.signed(line)?;
        let (start, end) = self.bytes(length)?;
        signed(&self.buffer[start..end])
            .map(i64::cast_unsigned)
            .ok_or_else(|| invalid("a set with a member that is not a number of 64 bits"))
    }

    fn signed(&self, line: (usize, usize)) -> io::Result<i64> {
        signed(&self.buffer[line.0..line.1]).ok_or_else(|| invalid("a number was expected"))
    }

    /// The first byte of the next line, and the range of the rest of it in the buffer.
    fn line(&mut self) -> io::Result<(u8, (usize, usize))> {
        let mut seen = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = unread[seen..].iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.start, self.start + seen + at);
                self.start = end + 1;
                if end < start + 2 || self.buffer[end - 1] != b'\r' {
                    return Err(invalid("no answer of a Redis server"));
                }
                self.spend(end - start)?;
                return Ok((self.buffer[start], (start + 1, end - 1)));
            }
            seen = unread.len();
            if seen > READ {
                return Err(invalid("no answer of a Redis server: its line does not end"));
            }
            self.fill(seen + 1)?;
        }
    }

    /// The range of the next `length` bytes in the buffer. The line end after them is skipped.
    fn bytes(&mut self, length: i64) -> io::Result<(usize, usize)> {
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_BYTES);
        let length = length.ok_or_else(|| invalid("a string of an impossible length"))?;
        self.spend(length)?;
        self.fill(length + 2)?;
        let (start, end) = (self.start, self.start + length);
        if self.buffer[end..end + 2] != *b"\r\n" {
            return Err(invalid("a string that is longer than was said"));
        }
        self.start = end + 2;
        Ok((start, end))
    }

    /// Counts bytes of the reply that is being read.
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or_else(|| invalid("a reply that does not end"))?;
        Ok(())
    }

    /// Reads until the buffer holds `length` unread bytes.
    fn fill(&mut self, length: usize) -> io::Result<()> {
        if self.end - self.start >= length {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < length {
            // The buffer is doubled as bytes arrive, instead of growing at once to the length that the other side claims.
            if self.end == self.buffer.len() {
                self.buffer.resize(self.end * 2, 0);
            }
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    let why = "the server closed the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // The memory for a long reply is freed before the short ones after it.
        if self.buffer.len() > 16 * READ && self.end < READ {
            self.buffer.truncate(READ);
            self.buffer.shrink_to_fit();
        }
        Ok(())
    }
}

fn signed(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut number = 0_u64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // A number of 19 digits is less than 2^64.
        number = number * 10 + u64::from(digit);
    }
    match negative {
        false => i64::try_from(number).ok(),
        true => 0_i64.checked_sub_unsigned(number),
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, so that every boundary is tested.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn read(bytes: &[u8], shape: Shape) -> io::Result<Reply> {
        let whole = Reader::new(bytes).reply(shape);
        let drip = Reader::new(Drip(bytes)).reply(shape);
        assert_eq!(whole.as_ref().map_err(io::Error::kind), drip.as_ref().map_err(io::Error::kind));
        whole
    }

    #[test]
    fn a_command_is_a_list_of_strings() {
        let mut out = Vec::new();
        encode(&mut out, &[b"SADD", b"k", b"", b"\r\n"]);
        assert_eq!(out, b"*4\r\n$4\r\nSADD\r\n$1\r\nk\r\n$0\r\n\r\n$2\r\n\r\n\r\n");
        for number in [0, 9, 10, u64::MAX] {
            let mut digits = Vec::new();
            decimal(&mut digits, number);
            assert_eq!(digits, number.to_string().as_bytes());
        }
    }

    #[test]
    fn answers_are_read_over_any_boundary() {
        let list = b"*5\r\n+OK\r\n:-7\r\n$-1\r\n$4\r\na\r\nb\r\n*1\r\n-ERR no\r\n";
        let expected = Reply::List(vec![
            Reply::Status("OK".into()),
            Reply::Number(-7),
            Reply::Nil,
            Reply::Bytes(b"a\r\nb".to_vec()),
            Reply::List(vec![Reply::Error("ERR no".into())]),
        ]);
        assert_eq!(read(list, Shape::Any).unwrap(), expected);
        assert_eq!(read(b"*-1\r\n", Shape::Numbers).unwrap(), Reply::Nil);
        let set = b"*3\r\n$1\r\n0\r\n$20\r\n-9223372036854775808\r\n$2\r\n-1\r\n";
        assert_eq!(read(set, Shape::Numbers).unwrap(), Reply::Numbers(vec![0, 1 << 63, u64::MAX]));
        assert_eq!(read(b"-OOM full\r\n", Shape::Numbers).unwrap(), Reply::Error("OOM full".into()));
    }

    #[test]
    fn a_long_answer_is_read_whole_and_its_memory_given_back() {
        let long = vec![b'x'; 5 << 20];
        let mut bytes = format!("${}\r\n", long.len()).into_bytes();
        bytes.extend(&long);
        bytes.extend(b"\r\n:1\r\n:2\r\n");
        let mut reader = Reader::new(io::Cursor::new(bytes));
        assert_eq!(reader.reply(Shape::Any).unwrap(), Reply::Bytes(long));
        assert_eq!(reader.reply(Shape::Any).unwrap(), Reply::Number(1));
        assert_eq!(reader.reply(Shape::Any).unwrap(), Reply::Number(2));
    }

    #[test]
    fn a_reply_is_bounded_as_a_whole() {
        // Each string is short, and each list is one that a server may send.
        let mut strings = b"*1000\r\n".to_vec();
        strings
            .extend(b"$1000\r\n".iter().chain(&[b'x'; 1000]).chain(b"\r\n").copied().cycle().take(1_000_000));
        let within =
            |bytes| Reader::new(&*strings).reply_within(Shape::Any, bytes).map_err(|error| error.kind());
        assert_eq!(within(500_000), Err(io::ErrorKind::InvalidData));
        assert_eq!(within(2_000_000), Err(io::ErrorKind::UnexpectedEof), "it was cut after a million bytes");
        for (lists, kind) in [
            ("*2\r\n*67108862\r\n", io::ErrorKind::UnexpectedEof),
            ("*2\r\n*67108863\r\n", io::ErrorKind::InvalidData),
            ("*2\r\n*2\r\n:1\r\n:2\r\n*67108863\r\n", io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(lists.as_bytes(), Shape::Any).unwrap_err().kind(), kind, "{lists:?}");
        }
        // The next reply has its own limit.
        let mut reader = Reader::new(&b"+one\r\n+two\r\n"[..]);
        for text in ["one", "two"] {
            assert_eq!(reader.reply_within(Shape::Any, 20).unwrap(), Reply::Status(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let long = format!("+{}", "x".repeat(READ * 2));
        for (bytes, kind) in [
            ("", io::ErrorKind::UnexpectedEof),
            ("$5\r\nab", io::ErrorKind::UnexpectedEof),
            ("*2\r\n:1\r\n", io::ErrorKind::UnexpectedEof),
            ("HTTP/1.1 400 Bad Request\r\n", io::ErrorKind::InvalidData),
            ("\n", io::ErrorKind::InvalidData),
            (":12x\r\n", io::ErrorKind::InvalidData),
            (":\r\n", io::ErrorKind::InvalidData),
            ("$-2\r\n", io::ErrorKind::InvalidData),
            ("$99999999999\r\n", io::ErrorKind::InvalidData),
            ("$9223372036854775808\r\n", io::ErrorKind::InvalidData),
            ("$1\r\nabc\r\n", io::ErrorKind::InvalidData),
            ("*99999999999\r\n", io::ErrorKind::InvalidData),
            (&"*1\r\n".repeat(20), io::ErrorKind::InvalidData),
            (&long, io::ErrorKind::InvalidData),
        ] {
            assert_eq!(read(bytes.as_bytes(), Shape::Any).unwrap_err().kind(), kind, "{bytes:.40}");
        }
        let text = b"*1\r\n$1\r\nx\r\n";
        assert_eq!(read(text, Shape::Numbers).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
