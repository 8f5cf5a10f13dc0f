//! The target of a feed: a file or standard output, plain or compressed, and the repair of a file with an incomplete
//! end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use huntsman_crawler::Error;
use huntsman_crawler::log;
use huntsman_files as files;

/// How a feed is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// The feed is not compressed.
    #[default]
    None,
    /// gzip, `.gz`.
    Gzip,
    /// Zstandard, `.zst`.
    Zstd,
}

impl Compression {
    /// The compression for the suffix of a file name.
    pub fn of_name(name: &str) -> Self {
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The writer of an open feed.
pub(crate) enum Writer {
    File {
        file: File,
        /// Up to this offset the file is final; after it there may be a tail that the next write replaces. `None` for a
        /// pipe or another file that is not regular: it cannot be rewound, so its tail is written only at the end.
        end: Option<u64>,
    },
    Gzip(GzEncoder<File>),
    Zstd(zstd::stream::write::Encoder<'static, File>),
    Stdout,
    GzipStdout(GzEncoder<io::Stdout>),
    ZstdStdout(zstd::stream::write::Encoder<'static, io::Stdout>),
}

impl Writer {
    /// Creates a writer to the end of an open file.
    pub(crate) fn new(mut file: File, compression: Compression) -> io::Result<Self> {
        let end = if file.metadata()?.is_file() { Some(file.seek(SeekFrom::End(0))?) } else { None };
        Ok(match compression {
            Compression::None => Self::File { file, end },
            Compression::Gzip => Self::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(file, 0)?),
        })
    }

    pub(super) fn stdout(compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::Stdout,
            Compression::Gzip => {
                Self::GzipStdout(GzEncoder::new(io::stdout(), flate2::Compression::default()))
            }
            Compression::Zstd => Self::ZstdStdout(zstd::stream::write::Encoder::new(io::stdout(), 0)?),
        })
    }

    /// Writes bytes and flushes them to the system, so that a killed process loses none of them. `tail` closes the
    /// document for current readers; the next write replaces it, if the target allows that.
    pub(crate) fn write(&mut self, bytes: &[u8], tail: &[u8]) -> io::Result<()> {
        fn flushed(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
            out.write_all(bytes)?;
            out.flush()
        }
        match self {
            Self::File { file, end: None } => file.write_all(bytes),
            Self::File { file, end: Some(end) } => {
                file.seek(SeekFrom::Start(*end))?;
                if let Err(error) = file.write_all(bytes) {
                    // An incomplete record is removed; if this fails too, the first error is returned.
                    let _ = file.set_len(*end);
                    return Err(error);
                }
                *end += bytes.len() as u64;
                file.write_all(tail)
            }
            Self::Gzip(out) => flushed(out, bytes),
            Self::Zstd(out) => flushed(out, bytes),
            Self::Stdout => flushed(&mut io::stdout().lock(), bytes),
            Self::GzipStdout(out) => flushed(out, bytes),
            Self::ZstdStdout(out) => flushed(out, bytes),
        }
    }

    /// The offset up to which a plain file is final.
    pub(crate) fn end(&self) -> Option<u64> {
        match self {
            Self::File { end, .. } => *end,
            _ => None,
        }
    }

    /// Syncs flushed bytes to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => files::sync(file),
            Self::Gzip(out) => files::sync(out.get_ref()),
            Self::Zstd(out) => files::sync(out.get_ref()),
            Self::Stdout | Self::GzipStdout(_) | Self::ZstdStdout(_) => Ok(()),
        }
    }

    /// Writes the last bytes and closes.
    pub(super) fn finish(mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes, b"")?;
        match self {
            Self::File { file, .. } => files::sync(&file),
            Self::Gzip(out) => files::sync(&out.finish()?),
            Self::Zstd(out) => files::sync(&out.finish()?),
            Self::Stdout => Ok(()),
            Self::GzipStdout(out) => out.finish()?.flush(),
            Self::ZstdStdout(out) => out.finish()?.flush(),
        }
    }
}

/// An error that names the operation and the file, and says what to do.
pub(crate) fn explain(doing: &str, name: &str, cause: io::Error) -> Error {
    let advice = match cause.kind() {
        io::ErrorKind::NotFound => "make its folder first",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a place that may be written to"
        }
        io::ErrorKind::AlreadyExists => "append to it, overwrite it, or choose another name",
        io::ErrorKind::IsADirectory => "it is a folder: give the name of a file",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room and run again; what was written is kept"
        }
        io::ErrorKind::BrokenPipe => "the reader of the output has gone",
        _ => "",
    };
    let doing = format!("{doing} {name}");
    match advice {
        "" => Error::from(cause).context(doing),
        advice => Error::from(cause).context(format!("{doing} ({advice})")),
    }
}

/// Opens a file to append to. An incomplete record left by a crash is cut off; `boundary` finds the end of the last
/// whole one.
///
/// Returns the file and the first bytes of its text, for formats with a header.
pub(crate) fn open_to_append(
    path: &Path,
    compression: Compression,
    mut boundary: impl Boundary,
) -> io::Result<(File, Vec<u8>)> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok((files::open_append(path)?, Vec::new()));
    }
    let file = files::open_write(path)?;
    // For a decoder, an empty file is one that lacks its beginning.
    if file.metadata()?.len() == 0 {
        return Ok((file, Vec::new()));
    }
    let reader = BufReader::new(&file);
    let (head, is_whole) = match compression {
        Compression::None => measure(reader, &mut boundary)?,
        Compression::Gzip => measure(MultiGzDecoder::new(reader), &mut boundary)?,
        Compression::Zstd => measure(zstd::stream::read::Decoder::new(reader)?, &mut boundary)?,
    };
    if is_whole {
        return Ok((file, head));
    }
    log::warn!(file = %path.display(), "cutting off a torn last record");
    let keep = boundary.end();
    if compression == Compression::None {
        file.set_len(keep)?;
        return Ok((file, head));
    }
    Ok((rewrite(path, compression, keep)?, head))
}

/// Finds the end of the last whole record in a text that is passed piece by piece.
pub(crate) trait Boundary {
    fn feed(&mut self, bytes: &[u8]);
    /// Offset behind the last whole record.
    fn end(&self) -> u64;
}

impl<B: Boundary> Boundary for &mut B {
    fn feed(&mut self, bytes: &[u8]) {
        B::feed(self, bytes);
    }

    fn end(&self) -> u64 {
        B::end(self)
    }
}

/// A record ends with a line break.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    seen: u64,
    end: u64,
}

impl Boundary for Lines {
    fn feed(&mut self, bytes: &[u8]) {
        if let Some(at) = memchr::memrchr(b'\n', bytes) {
            self.end = self.seen + at as u64 + 1;
        }
        self.seen += bytes.len() as u64;
    }

    fn end(&self) -> u64 {
        self.end
    }
}

/// A record ends with a line break that is not between quotes.
#[derive(Debug, Default)]
pub(super) struct QuotedLines {
    seen: u64,
    end: u64,
    quoted: bool,
}

impl Boundary for QuotedLines {
    fn feed(&mut self, bytes: &[u8]) {
        for at in memchr::memchr2_iter(b'"', b'\n', bytes) {
            if bytes[at] == b'"' {
                self.quoted = !self.quoted;
            } else if !self.quoted {
                self.end = self.seen + at as u64 + 1;
            }
        }
        self.seen += bytes.len() as u64;
    }

    fn end(&self) -> u64 {
        self.end
    }
}

/// Number of bytes of the text that are kept for the header.
const HEAD: usize = 64 << 10;

/// Reads a text up to its end or to an incomplete record; returns its first bytes, and whether it ends with a whole
/// record.
fn measure(mut text: impl Read, boundary: &mut impl Boundary) -> io::Result<(Vec<u8>, bool)> {
    let mut head = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match text.read(&mut buffer) {
            Ok(0) => return Ok((head, boundary.end() == total)),
            Ok(n) => {
                head.extend_from_slice(&buffer[..n.min(HEAD - head.len())]);
                boundary.feed(&buffer[..n]);
                total += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_torn(&error) => return Ok((head, false)),
            Err(error) => return Err(error),
        }
    }
}

/// Whether the error is that of a decoder at the end of the file, or at the data that a crash left there.
fn is_torn(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::UnexpectedEof | K::InvalidData | K::InvalidInput | K::Other)
}

/// Copies the first `keep` bytes of the text of a compressed file into a new one, which replaces it.
fn rewrite(path: &Path, compression: Compression, keep: u64) -> io::Result<File> {
    let old = BufReader::new(File::open(path)?);
    files::replace(path, |new| match compression {
        Compression::Gzip => {
            let mut out = GzEncoder::new(new, flate2::Compression::default());
            copy_exactly(MultiGzDecoder::new(old), &mut out, keep)?;
            out.finish().map(drop)
        }
        _ => {
            let mut out = zstd::stream::write::Encoder::new(new, 0)?;
            copy_exactly(zstd::stream::read::Decoder::new(old)?, &mut out, keep)?;
            out.finish().map(drop)
        }
    })?;
    files::open_write(path)
}

fn copy_exactly(from: impl Read, to: &mut impl Write, bytes: u64) -> io::Result<()> {
    let mut from = from;
    let mut buffer = vec![0; 64 << 10];
    let mut left = bytes;
    // It never reads past the kept bytes, because the decoder may fail there.
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let n = from.read(&mut buffer[..want])?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all(&buffer[..n])?;
        left -= n as u64;
    }
    Ok(())
}
