//! The captures of archives: which records answer which requests, and where they are.

mod index;
pub(crate) mod scan;

use std::fmt;
use std::io::{self, Read};

use crate::archive::Archive;
use crate::digest::Digest;
use crate::error::ReadError;
use crate::head::RecordHead;
use crate::key::CaptureKey;
use crate::moment::Moment;
use crate::named::Archives;
use crate::payload::Payload;
use crate::reader::WarcReader;

use scan::Scan;

pub use index::{IndexLine, index_lines};

/// Greatest length of the head of an HTTP message, which a limit for bodies does not count.
const MAX_HTTP_HEAD: u64 = 64 << 10;

/// Where the captures of URLs are in a set of archives.
///
/// The records of a WARC file are read once. A CDXJ index, also that of a WACZ file, is believed, and its files are read only where their captures
/// are ([`Archives::file_of`]). A capture takes about 50 bytes of memory.
///
/// ```
/// use huntsman_warc::{Archives, CaptureKey, Captures, Options, Record, RecordKind};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.warc.gz");
/// let page = Record::new(RecordKind::Response, "2026-01-01T00:00:01Z")
///     .field("WARC-Target-URI", "http://site.example/")
///     .http(b"HTTP/1.1 200 OK\r\n\r\n", b"hello");
/// std::fs::write(&path, page.to_member(Options::default()))?;
///
/// let captures = Captures::read(&Archives::named(&[path])?, |file, damage| eprintln!("{file}: {damage}"))?;
/// let key = CaptureKey::of("http://site.example/").unwrap();
/// let capture = captures.nearest(key, None).unwrap();
/// assert_eq!(captures.answer(capture, 1 << 20)?.payload.body(), b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Captures {
    files: Vec<Archive>,
    /// In the order of their keys, and those of a key in the order of their times.
    entries: Vec<(CaptureKey, Capture)>,
    /// Answers to other methods than GET by the keys of their URLs, for the revisits that refer to them.
    others: Vec<(CaptureKey, Capture)>,
    damaged: u64,
}

/// A record that answers a request, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    file: u32,
    /// The HTTP status; 0 if it is not known.
    status: u16,
    is_revisit: bool,
    offset: u64,
    /// Number of bytes in the file; 0 if it is not known.
    length: u64,
    moment: Moment,
}

impl Capture {
    /// When the capture was made.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// Whether its body is in another record.
    pub fn is_revisit(&self) -> bool {
        self.is_revisit
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The head of the record that was found.
    pub head: RecordHead,
    /// The message; a revisit has the body of its original, and the answer "not modified" all of the original's message.
    pub payload: Payload,
    /// Whether the limit cut the body.
    pub is_cut: bool,
    /// Why the body of the record is not whole (`WARC-Truncated`).
    pub truncated: Option<String>,
}

/// Why an archive, or a record of it, cannot be used.
#[derive(Debug)]
pub struct ArchiveError {
    archive: String,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Io(io::Error),
    Read(ReadError),
    Text(String),
    Unresolved(String),
}

impl ArchiveError {
    pub(crate) fn io(archive: &Archive, cause: io::Error) -> Self {
        Self { archive: archive.name().to_owned(), cause: Cause::Io(cause) }
    }

    pub(crate) fn read(archive: &Archive, cause: ReadError) -> Self {
        Self { archive: archive.name().to_owned(), cause: Cause::Read(cause) }
    }

    pub(crate) fn text(archive: &str, what: impl Into<String>) -> Self {
        Self { archive: archive.to_owned(), cause: Cause::Text(what.into()) }
    }

    /// Whether a revisit was found whose original is not in the archives.
    pub fn is_unresolved(&self) -> bool {
        matches!(self.cause, Cause::Unresolved(_))
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.archive)?;
        match &self.cause {
            Cause::Io(cause) => cause.fmt(f),
            Cause::Read(cause) => cause.fmt(f),
            Cause::Text(what) => f.write_str(what),
            Cause::Unresolved(of) => {
                write!(f, "the body is in an earlier record, of {of}, which is not in these archives")
            }
        }
    }
}

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Io(cause) => Some(cause),
            Cause::Read(cause) => Some(cause),
            Cause::Text(_) | Cause::Unresolved(_) => None,
        }
    }
}

impl Captures {
    /// Reads which captures archives have. `told` is called with the damage that is found; what is not damaged is used.
    ///
    /// # Errors
    /// A file cannot be read, is of another format, or is one gzip stream, in which no record can be read by itself.
    pub fn read(archives: &Archives, mut told: impl FnMut(&str, &ReadError)) -> Result<Self, ArchiveError> {
        let mut captures = Self { files: Vec::new(), entries: Vec::new(), others: Vec::new(), damaged: 0 };
        for file in archives.without_index() {
            captures.scan(file, &mut told)?;
        }
        for index in archives.indexes() {
            captures.add_index(index, archives)?;
        }
        let order =
            |(key, capture): &(CaptureKey, Capture)| (*key, capture.moment, capture.file, capture.offset);
        captures.entries.sort_unstable_by_key(order);
        captures.entries.dedup();
        captures.others.sort_unstable_by_key(order);
        Ok(captures)
    }

    fn scan(&mut self, file: &Archive, told: &mut dyn FnMut(&str, &ReadError)) -> Result<(), ArchiveError> {
        let mut scan = Scan::new(self.add_file(file)?);
        let reader = WarcReader::new(file.open().map_err(|cause| ArchiveError::io(file, cause))?);
        scan.read(reader, &mut |damage| told(file.name(), damage))
            .map_err(|cause| ArchiveError { archive: file.name().to_owned(), cause })?;
        self.damaged += scan.damaged;
        scan.finish(&mut self.entries, &mut self.others);
        Ok(())
    }

    /// Adds a file; returns its number.
    fn add_file(&mut self, file: &Archive) -> Result<u32, ArchiveError> {
        let number = u32::try_from(self.files.len());
        self.files.push(file.clone());
        number.map_err(|_| ArchiveError::text(file.name(), "there are too many files"))
    }

    /// Number of captures.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of places at which the archives are damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The captures of a request, the earliest first.
    pub fn of(&self, key: CaptureKey) -> impl DoubleEndedIterator<Item = &Capture> {
        of(&self.entries, key)
    }

    /// The capture of a request that is nearest to a time; without one, the last. A bare "not modified", which says nothing of the page, is none.
    pub fn nearest(&self, key: CaptureKey, at: Option<Moment>) -> Option<&Capture> {
        let mut usable = self.of(key).filter(|capture| capture.status != 304 || capture.is_revisit).rev();
        match at {
            Some(at) => usable.min_by_key(|capture| capture.moment.distance(at)),
            None => usable.next(),
        }
    }

    /// Reads the answer of a capture, of whose body at most `limit` bytes are kept.
    ///
    /// # Errors
    /// The record is damaged or cannot be read, or it is a revisit whose original is not in the archives ([`ArchiveError::is_unresolved`]).
    pub fn answer(&self, capture: &Capture, limit: u64) -> Result<Answer, ArchiveError> {
        let answer = self.record(capture, limit)?;
        if answer.head.kind() != "revisit" {
            return Ok(answer);
        }
        let original = self.original(capture, &answer.head, limit)?;
        let payload = match answer.payload.http() {
            Some(http) if http.status() != Some(304) => {
                Payload::of_message(http.clone(), original.payload.into_body())
            }
            _ => original.payload,
        };
        let (is_cut, truncated) = (original.is_cut, original.truncated);
        Ok(Answer { head: answer.head, payload, is_cut, truncated })
    }

    /// The record to which a revisit refers: of the URL that it names, the one with the same payload that is nearest to the time that it names.
    fn original(
        &self,
        of_capture: &Capture,
        revisit: &RecordHead,
        limit: u64,
    ) -> Result<Answer, ArchiveError> {
        let url = revisit.get("WARC-Refers-To-Target-URI").or(revisit.target()).unwrap_or_default();
        let moment = revisit.get("WARC-Refers-To-Date").and_then(Moment::parse).unwrap_or(of_capture.moment);
        let mut candidates: Vec<&Capture> = match CaptureKey::of(url) {
            Some(key) => self.of(key).chain(of(&self.others, key)).collect(),
            None => Vec::new(),
        };
        candidates.retain(|capture| !capture.is_revisit);
        candidates.sort_by_key(|capture| capture.moment.distance(moment));
        let digest = |head: &RecordHead| head.get("WARC-Payload-Digest").and_then(Digest::parse);
        let wanted = digest(revisit);
        for capture in candidates {
            let answer = self.record(capture, limit)?;
            let found = digest(&answer.head);
            if wanted.is_none() || found.is_none() || wanted == found {
                return Ok(answer);
            }
        }
        let archive = self.files[of_capture.file as usize].name().to_owned();
        Err(ArchiveError { archive, cause: Cause::Unresolved(url.to_owned()) })
    }

    fn record(&self, capture: &Capture, limit: u64) -> Result<Answer, ArchiveError> {
        let length = Some(capture.length).filter(|length| *length > 0);
        Answer::read(&self.files[capture.file as usize], capture.offset, length, limit)
    }
}

/// The captures of a key among entries in their order.
fn of(entries: &[(CaptureKey, Capture)], key: CaptureKey) -> impl DoubleEndedIterator<Item = &Capture> {
    let start = entries.partition_point(|(other, _)| *other < key);
    let length = entries[start..].partition_point(|(other, _)| *other == key);
    entries[start..start + length].iter().map(|(_, capture)| capture)
}

/// Reads the record with which a file begins; `None` as the error if there is none.
fn record(file: impl Read, limit: u64) -> Result<Answer, Option<ReadError>> {
    let mut reader = WarcReader::new(file);
    let head = reader.next_head()?.ok_or(None)?;
    let block = reader.block(limit.saturating_add(MAX_HTTP_HEAD))?;
    let truncated = head.get("WARC-Truncated").map(str::to_owned);
    let mut payload = Payload::new(&head, block.bytes);
    let is_cut = block.is_cut || payload.cut(limit);
    Ok(Answer { head, payload, is_cut, truncated })
}

impl Answer {
    /// Reads the record at an offset of an archive, which has this length if that is known. Revisits are not resolved.
    ///
    /// # Errors
    /// No whole record is there, or the archive cannot be read.
    pub fn read(
        archive: &Archive,
        offset: u64,
        length: Option<u64>,
        limit: u64,
    ) -> Result<Self, ArchiveError> {
        let bytes = archive.open_at(offset, length).map_err(|cause| ArchiveError::io(archive, cause))?;
        record(bytes, limit).map_err(|cause| match cause {
            Some(cause) => ArchiveError::read(archive, cause.behind(offset)),
            None => ArchiveError::text(archive.name(), format!("no record begins at byte {offset}")),
        })
    }

    /// Reads the record that stands in these bytes of a file, such as a range that an index names. Revisits are not resolved.
    ///
    /// # Errors
    /// No whole record is there.
    pub fn of_bytes(bytes: impl Read, limit: u64) -> Result<Self, ReadError> {
        record(bytes, limit)
            .map_err(|error| error.unwrap_or_else(|| ReadError::damage(0, "no record begins here")))
    }
}
