//! Reads the records of a file one at a time, within bounded memory.

use std::io::Read;

use crate::error::ReadError;
use crate::head::RecordHead;
use crate::source::Source;
use crate::stream::Stream;

/// Greatest length of the head of a record.
const MAX_HEAD: usize = 64 << 10;
/// Longest version line that is looked at.
const MAX_VERSION_LINE: usize = 64;

/// Reads the records of a file, of the versions 0.17 to 1.1: not compressed, with a gzip member for each record, or in one gzip stream.
///
/// [`next_head`](Self::next_head) gives the head of a record. Its block can be read then; what is not read is skipped. Damage is an error that names its
/// offset ([`ReadError::is_damage`]), and the next call goes on with the next record that is found behind it. The memory is bounded, whatever the file
/// says: heads have at most 64 KiB, and blocks pass in parts.
#[derive(Debug)]
pub struct WarcReader<R> {
    state: State<R>,
    record: Option<Open>,
    /// Whether the next record has to be looked for.
    is_lost: bool,
    /// Whether a gzip member with several records was met.
    is_one_stream: bool,
}

#[derive(Debug)]
enum State<R> {
    New(Option<Source<R>>),
    Open(Box<Stream<R>>),
    Done,
}

/// The record whose block is read.
#[derive(Debug)]
struct Open {
    offset: u64,
    left: u64,
    length: u64,
    /// Whether the end of the record was read.
    span: Option<Span>,
}

/// Where a record is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of its first byte, or of its gzip member.
    pub offset: u64,
    /// Length in bytes in the file, compressed if the file is.
    pub length: u64,
    /// Whether the record can be read by itself from there; not so in one gzip stream.
    pub is_separate: bool,
}

/// The block of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// Whether the block is longer.
    pub is_cut: bool,
}

impl<R: Read> WarcReader<R> {
    /// Reads from the beginning of a file, which needs no buffer of its own.
    pub fn new(file: R) -> Self {
        Self {
            state: State::New(Some(Source::new(file))),
            record: None,
            is_lost: false,
            is_one_stream: false,
        }
    }

    /// The head of the next record; `None` at the end of the file.
    ///
    /// # Errors
    /// The file is damaged there, is of another format, or cannot be read. After damage the next call goes on behind it; after other errors there are no
    /// more records.
    pub fn next_head(&mut self) -> Result<Option<RecordHead>, ReadError> {
        let found = self.find_head();
        if matches!(found, Ok(None)) {
            self.state = State::Done;
        }
        self.noted(found)
    }

    /// Notes an error: what follows has to be looked for, or there is nothing more.
    fn noted<T>(&mut self, result: Result<T, ReadError>) -> Result<T, ReadError> {
        match &result {
            Ok(_) => {}
            Err(error) if error.is_damage() => (self.record, self.is_lost) = (None, true),
            Err(_) => (self.record, self.state) = (None, State::Done),
        }
        result
    }

    /// The block of the current record, or the first `limit` bytes of it.
    ///
    /// # Errors
    /// As [`next_head`](Self::next_head).
    pub fn block(&mut self, limit: u64) -> Result<Block, ReadError> {
        let length = self.record.as_ref().map_or(0, |record| record.left);
        let mut bytes = Vec::new();
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        self.each_part(|part| {
            let room = most - bytes.len();
            bytes.extend_from_slice(&part[..part.len().min(room)]);
            bytes.len() < most
        })?;
        Ok(Block { bytes, is_cut: length > limit })
    }

    /// Passes on the block of the current record in parts, until there is no more or `visit` returns false.
    ///
    /// # Errors
    /// As [`next_head`](Self::next_head).
    pub fn each_part(&mut self, visit: impl FnMut(&[u8]) -> bool) -> Result<(), ReadError> {
        let read = self.read_parts(visit);
        self.noted(read)
    }

    fn read_parts(&mut self, mut visit: impl FnMut(&[u8]) -> bool) -> Result<(), ReadError> {
        let (State::Open(stream), Some(record)) = (&mut self.state, &mut self.record) else { return Ok(()) };
        while record.left > 0 {
            let part = stream.fill()?;
            if part.is_empty() {
                let has = record.length - record.left;
                let what = format!("the block of the record ends after {has} of {} bytes", record.length);
                return Err(ReadError::damage(record.offset, what));
            }
            let length = part.len().min(usize::try_from(record.left).unwrap_or(usize::MAX));
            let goes_on = visit(&part[..length]);
            stream.consume(length);
            record.left -= length as u64;
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// Skips what is left of the current record, and says where it is in the file; `None` if there is no current record.
    ///
    /// # Errors
    /// As [`next_head`](Self::next_head).
    pub fn finish(&mut self) -> Result<Option<Span>, ReadError> {
        if let Some(span) = self.record.as_ref().and_then(|record| record.span) {
            return Ok(Some(span));
        }
        self.each_part(|_| true)?;
        let end = self.read_end();
        self.noted(end)
    }

    fn read_end(&mut self) -> Result<Option<Span>, ReadError> {
        let (State::Open(stream), Some(record)) = (&mut self.state, &mut self.record) else {
            return Ok(None);
        };
        let mut ends = 0;
        let mut has_more = false;
        // Two line ends; some programs write more or fewer of them.
        while let Some(next) = stream.fill()?.first().copied() {
            if !matches!(next, b'\r' | b'\n') || (ends >= 4 && !stream.is_gzip()) {
                has_more = true;
                break;
            }
            stream.consume(1);
            ends += 1;
        }
        self.is_one_stream |= stream.is_gzip() && has_more;
        let span = Span {
            offset: record.offset,
            length: stream.file_offset() - record.offset,
            is_separate: !self.is_one_stream,
        };
        record.span = Some(span);
        Ok(Some(span))
    }

    fn open(&mut self) -> Result<Option<&mut Stream<R>>, ReadError> {
        if let State::New(source) = &mut self.state {
            let Some(source) = source.take() else { return Ok(None) };
            self.state = State::Open(Box::new(Stream::new(source)?));
        }
        match &mut self.state {
            State::Open(stream) => Ok(Some(stream)),
            State::New(_) | State::Done => Ok(None),
        }
    }

    fn find_head(&mut self) -> Result<Option<RecordHead>, ReadError> {
        self.finish()?;
        self.record = None;
        let (is_lost, is_one_stream) = (self.is_lost, self.is_one_stream);
        let Some(stream) = self.open()? else { return Ok(None) };
        let version = match is_lost {
            true => look_for_version(stream, is_one_stream)?,
            false => next_version(stream)?,
        };
        let Some((version, offset)) = version else { return Ok(None) };
        let head = read_fields(stream, version, offset)?;
        let Some(length) = head.content_length() else {
            return Err(ReadError::damage(offset, "the record has no valid Content-Length"));
        };
        self.is_lost = false;
        self.record = Some(Open { offset, left: length, length, span: None });
        Ok(Some(head))
    }
}

/// The version of a version line, if it is one that is read.
fn version_of(line: &[u8]) -> Option<String> {
    let version = std::str::from_utf8(line).ok()?.strip_prefix("WARC/")?.trim_end();
    matches!(version, "0.17" | "0.18" | "1.0" | "1.1").then(|| version.to_owned())
}

/// Reads a line without its end, or its first `most` bytes; `None` at the end of the stream.
fn read_line<R: Read>(stream: &mut Stream<R>, most: usize) -> Result<Option<Vec<u8>>, ReadError> {
    let mut line = Vec::new();
    let mut has_any = false;
    loop {
        let bytes = stream.fill()?;
        if bytes.is_empty() {
            break;
        }
        has_any = true;
        let end = bytes.iter().position(|b| *b == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let room = most - line.len();
        line.extend_from_slice(&part[..part.len().min(room)]);
        let passed = end.map_or(bytes.len(), |end| end + 1);
        stream.consume(passed);
        if end.is_some() {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(has_any.then_some(line))
}

/// The version line that is next, after empty lines, and its offset.
fn next_version<R: Read>(stream: &mut Stream<R>) -> Result<Option<(String, u64)>, ReadError> {
    loop {
        if stream.fill()?.is_empty() && !(stream.is_gzip() && stream.begin_member()?) {
            return Ok(None);
        }
        let offset = stream.offset();
        let Some(line) = read_line(stream, MAX_VERSION_LINE)? else { continue };
        if line.is_empty() {
            continue;
        }
        return match version_of(&line) {
            Some(version) => Ok(Some((version, offset))),
            None => {
                Err(ReadError::damage(offset, format!("no record begins here, but \"{}\"", shown(&line))))
            }
        };
    }
}

/// The next version line after damage, and its offset. Damage on the way was told already.
fn look_for_version<R: Read>(
    stream: &mut Stream<R>,
    is_one_stream: bool,
) -> Result<Option<(String, u64)>, ReadError> {
    let is_gzip = stream.is_gzip();
    if !is_gzip || is_one_stream {
        loop {
            let offset = stream.offset();
            match read_line(stream, MAX_VERSION_LINE) {
                Ok(Some(line)) => {
                    if let Some(version) = version_of(&line) {
                        return Ok(Some((version, offset)));
                    }
                }
                Ok(None) => break,
                Err(error) if error.is_damage() => break,
                Err(error) => return Err(error),
            }
        }
    }
    if !is_gzip {
        return Ok(None);
    }
    while stream.find_member()? {
        // A short member is at its end when its first line is read.
        let member = stream.file_offset();
        let first = stream.begin_member().and_then(|_| read_line(stream, MAX_VERSION_LINE));
        match first {
            Ok(Some(line)) => {
                if let Some(version) = version_of(&line) {
                    return Ok(Some((version, member)));
                }
            }
            Ok(None) => {}
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn read_fields<R: Read>(
    stream: &mut Stream<R>,
    version: String,
    offset: u64,
) -> Result<RecordHead, ReadError> {
    let mut head = RecordHead::new(version);
    let mut room = MAX_HEAD;
    loop {
        let Some(line) = read_line(stream, room)? else {
            return Err(ReadError::damage(offset, "the head of the record does not end"));
        };
        if line.is_empty() {
            return Ok(head);
        }
        room = room.saturating_sub(line.len() + 2);
        if room == 0 {
            return Err(ReadError::damage(
                offset,
                format!("the head of the record has more than {MAX_HEAD} bytes"),
            ));
        }
        if !head.add_line(&line) {
            let what = format!("a line of the head is no field: \"{}\"", shown(&line));
            return Err(ReadError::damage(offset, what));
        }
    }
}

fn shown(line: &[u8]) -> String {
    line[..line.len().min(40)].escape_ascii().to_string()
}
