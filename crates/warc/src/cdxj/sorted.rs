//! The index of many files: all lines sorted by bytes, of which only so many bytes are in memory.

use std::io::{self, Read};

use huntsman_disk::{Entry, Fields, Scratch, Sorter, put_bytes, put_number};

use super::index_file;
use crate::error::ReadError;
use crate::reader::WarcReader;

/// Bytes of lines that are kept in memory by default.
const MEMORY: usize = 100_000_000;

/// Collects the lines of the index of many files, and gives them sorted by bytes. Lines beyond its memory are sorted among the temporary files of
/// the system, which are gone when it is.
///
/// ```
/// use huntsman_warc::{CdxjIndex, Options, Record, RecordKind, WarcReader, WarcWriter};
///
/// let mut warc = WarcWriter::new(Vec::new(), Options::default());
/// for path in ["b", "a"] {
///     let page = Record::new(RecordKind::Response, "2026-01-01T00:00:01Z")
///         .field("WARC-Target-URI", &format!("http://site.example/{path}"))
///         .http(b"HTTP/1.1 200 OK\r\n\r\n", b"hello");
///     warc.write(&page)?;
/// }
/// let mut index = CdxjIndex::default();
/// let damaged = index.add(&mut WarcReader::new(&warc.finish()?[..]), "a.warc.gz")?;
/// assert!(damaged.is_empty());
/// let lines = index.lines()?.collect::<Result<Vec<String>, _>>()?;
/// assert!(lines[0].starts_with("example,site)/a 20260101000001 {") && lines.len() == 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CdxjIndex {
    sorter: Sorter<Line>,
    /// What failed first. Nothing is added after it.
    failure: Option<io::Error>,
}

impl Default for CdxjIndex {
    /// Keeps 100 MB of lines in memory.
    fn default() -> Self {
        Self::with_memory(MEMORY)
    }
}

impl CdxjIndex {
    /// Keeps so many bytes of lines in memory.
    pub fn with_memory(bytes: usize) -> Self {
        Self { sorter: Sorter::new(&Scratch::temporary(), bytes), failure: None }
    }

    /// Adds the lines of a file, as [`index_file`] makes them. Returns what is damaged in the file.
    ///
    /// # Errors
    /// The file is of another format, or cannot be read. That a temporary file cannot be written is told by [`lines`](Self::lines); what is added
    /// after that is not read.
    pub fn add<R: Read>(
        &mut self,
        reader: &mut WarcReader<R>,
        file_name: &str,
    ) -> Result<Vec<ReadError>, ReadError> {
        let Self { sorter, failure } = self;
        if failure.is_some() {
            return Ok(Vec::new());
        }
        index_file(reader, file_name, |line| {
            if failure.is_none() {
                *failure = sorter.push(Line(line.into_bytes())).map_err(io::Error::other).err();
            }
        })
    }

    /// All lines, sorted by bytes, each once.
    ///
    /// # Errors
    /// A temporary file cannot be written or read.
    pub fn lines(self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut sorted = self.sorter.finish().map_err(io::Error::other)?;
        let mut before: Option<Vec<u8>> = None;
        Ok(std::iter::from_fn(move || {
            loop {
                let line = match sorted.next()? {
                    Ok(Line(line)) => line,
                    Err(error) => return Some(Err(io::Error::other(error))),
                };
                if before.as_ref() != Some(&line) {
                    before = Some(line.clone());
                    return Some(String::from_utf8(line).map_err(io::Error::other));
                }
            }
        }))
    }
}

/// A line, in bytes because what it shares with the one before may end within a character.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line(Vec<u8>);

impl Entry for Line {
    fn heap_size(&self) -> usize {
        self.0.capacity()
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let before = before.map_or(&[][..], |before| &before.0);
        let shared = self.0.iter().zip(before).take_while(|(own, other)| own == other).count();
        put_number(shared as u64, out);
        put_bytes(&self.0[shared..], out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let shared = usize::try_from(from.number()?).ok()?;
        let before = before.map_or(&[][..], |before| &before.0);
        Some(Self([before.get(..shared)?, from.bytes()?].concat()))
    }
}
