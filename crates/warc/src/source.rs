//! The bytes of a file, with a few of those that were read kept, so that a reader can go back to look for the next record.

use std::io::{self, Read};

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// Bytes that are kept after they were read: a torn member is noticed only after some bytes of the next one were taken for its own.
const KEPT: usize = 64 << 10;

/// A file that is read once from its beginning.
#[derive(Debug)]
pub(crate) struct Source<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Index in `buffer` of the next byte.
    at: usize,
    /// Offset in the file of `buffer[0]`.
    base: u64,
    is_at_end: bool,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, buffer: Vec::new(), at: 0, base: 0, is_at_end: false }
    }

    /// Offset in the file of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The bytes that are next: `least` of them, or more, or fewer at the end of the file.
    pub(crate) fn peek(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.at < least && !self.is_at_end {
            self.read_chunk()?;
        }
        Ok(&self.buffer[self.at..])
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.buffer.len());
    }

    /// Goes to an offset among the bytes that are kept, or to the nearest of them.
    pub(crate) fn go_to(&mut self, offset: u64) {
        let at = offset.saturating_sub(self.base);
        self.at = usize::try_from(at).unwrap_or(usize::MAX).min(self.buffer.len());
    }

    fn read_chunk(&mut self) -> io::Result<()> {
        if self.at > KEPT + CHUNK {
            let dropped = self.at - KEPT;
            self.buffer.drain(..dropped);
            self.at -= dropped;
            self.base += dropped as u64;
        }
        let length = self.buffer.len();
        self.buffer.resize(length + CHUNK, 0);
        let read = loop {
            match self.inner.read(&mut self.buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(length + read.as_ref().map_or(0, |read| *read));
        self.is_at_end = read? == 0;
        Ok(())
    }
}
