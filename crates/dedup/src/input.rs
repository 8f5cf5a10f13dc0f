//! Where documents come from.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::manifest::Manifest;
use crate::record::{Body, Raw, Where};
#[cfg(feature = "s3")]
use crate::s3::Objects;

/// One of the things that are read.
#[derive(Debug)]
pub enum Source {
    /// JSON lines on stdin.
    Stdin,
    /// A file of JSON lines, or one document.
    File(PathBuf),
    /// A folder of either.
    Folder(PathBuf),
    /// The same in a bucket: one object, or those under a prefix.
    #[cfg(feature = "s3")]
    S3(Objects),
}

impl Source {
    /// What is named: `-` is stdin, `s3://BUCKET/KEY` or `s3://BUCKET/PREFIX` a bucket, all else a file or a folder.
    ///
    /// # Errors
    /// There is nothing of this name, or it cannot be asked for.
    pub fn find(name: &str) -> Result<Self, Error> {
        if name == "-" {
            return Ok(Self::Stdin);
        }
        if name.starts_with("s3://") {
            return s3(name);
        }
        let path = PathBuf::from(name);
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Self::Folder(path)),
            Ok(_) => Ok(Self::File(path)),
            Err(error) => Err(Error::Input { name: name.to_owned(), message: error.to_string() }),
        }
    }

    /// Reads all documents in order: files of a folder by name, lines as they stand. Files of documents that are not on the list are not
    /// opened, and documents are `max_document` bytes long at most. `each` takes them, and what could not be read to its end, and says whether
    /// to go on.
    pub fn read(
        &self,
        list: Option<&Arc<Manifest>>,
        max_document: u64,
        each: &mut dyn FnMut(Result<Raw, Broken>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for entry in entries(self, list, max_document) {
            match entry {
                Ok(entry) => give(entry, max_document, each)?,
                Err(failure) => each(Err(Broken(failure)))?,
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(feature = "s3")]
fn s3(name: &str) -> Result<Source, Error> {
    Objects::find(name).map(Source::S3)
}

#[cfg(not(feature = "s3"))]
fn s3(name: &str) -> Result<Source, Error> {
    let message = "this build does not read s3://; build it with the feature `s3`, copy the objects to a folder, or pipe them into `-`";
    Err(Error::Input { name: name.to_owned(), message: message.to_owned() })
}

/// A source, or a file of it, that could not be read to its end: which one, and why. What comes behind it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// Takes documents, and what could not be read to its end.
type Each<'a> = &'a mut dyn FnMut(Result<Raw, Broken>) -> ControlFlow<()>;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One document.
    Document { is_html: bool },
    /// JSON lines, each a document.
    Lines,
}

impl Kind {
    /// By its name; none if it is neither.
    pub(super) fn of(name: &str) -> Option<Self> {
        const LINES: [&str; 2] = [".jsonl", ".ndjson"];
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let unpacked = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        if LINES.iter().any(|end| unpacked.ends_with(end)) {
            return Some(Self::Lines);
        }
        match name.rsplit_once('.')?.1 {
            "txt" => Some(Self::Document { is_html: false }),
            "html" | "htm" | "xhtml" => Some(Self::Document { is_html: true }),
            _ => None,
        }
    }

    /// Of a file that is named itself: whatever is no document has lines.
    pub(super) fn of_named(name: &str) -> Self {
        Self::of(name).unwrap_or(Self::Lines)
    }

    /// Whether a file of this path is read: documents only if they are on the list.
    pub(super) fn is_wanted(self, path: &str, list: Option<&Manifest>) -> bool {
        self == Self::Lines || list.is_none_or(|list| list.has_path(path))
    }
}

/// A file, an object, or stdin.
pub(super) struct Entry {
    /// How it is called where something is said of it.
    pub(super) shown: Arc<str>,
    /// Its path in the source, which is the id of a document; none if it is not UTF-8.
    pub(super) path: Option<String>,
    pub(super) kind: Kind,
    pub(super) open: Open,
}

/// Begins to read.
pub(super) type Open = Box<dyn FnOnce() -> io::Result<Box<dyn BufRead>> + Send>;

impl Entry {
    fn file(file: PathBuf, path: Option<String>, kind: Kind) -> Self {
        let shown = file.to_string_lossy().into();
        let open = move || -> io::Result<Box<dyn BufRead>> {
            Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(file)?)))
        };
        Self { shown, path, kind, open: Box::new(open) }
    }
}

/// What there is in a source, in order; what could not be listed, and why, in its place.
pub(super) type Entries = Box<dyn Iterator<Item = Result<Entry, String>>>;

#[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "files are not fetched"))]
fn entries(source: &Source, list: Option<&Arc<Manifest>>, max_document: u64) -> Entries {
    let one = |entry| -> Entries { Box::new(std::iter::once(Ok(entry))) };
    match source {
        Source::Stdin => one(Entry {
            shown: "stdin".into(),
            path: None,
            kind: Kind::Lines,
            open: Box::new(|| Ok(Box::new(io::stdin().lock()))),
        }),
        Source::File(path) => {
            let name = path.file_name().unwrap_or_default();
            let kind = Kind::of_named(&name.to_string_lossy());
            one(Entry::file(path.clone(), name.to_str().map(str::to_owned), kind))
        }
        Source::Folder(folder) => Box::new(Walk::new(folder.clone(), list.cloned())),
        #[cfg(feature = "s3")]
        Source::S3(objects) => objects.entries(list.cloned(), max_document),
    }
}

/// The files of a folder, in the order of their paths as bytes, which is that of a bucket.
struct Walk {
    root: PathBuf,
    list: Option<Arc<Manifest>>,
    /// What is still to be visited, of the root and each folder on the way; the first is last.
    left: Vec<Vec<(PathBuf, bool)>>,
}

impl Walk {
    fn new(root: PathBuf, list: Option<Arc<Manifest>>) -> Self {
        Self { left: vec![vec![(root.clone(), true)]], root, list }
    }

    /// Links to folders are not followed: they may lead in circles.
    fn enter(&mut self, folder: &Path) -> io::Result<()> {
        let mut inside = fs::read_dir(folder)?
            .map(|entry| {
                let entry = entry?;
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                Ok((entry.path(), is_folder))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let key = |(path, is_folder): &(PathBuf, bool)| {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(if *is_folder { "/" } else { "" });
            name.into_encoded_bytes()
        };
        inside.sort_by_cached_key(|entry| std::cmp::Reverse(key(entry)));
        self.left.push(inside);
        Ok(())
    }
}

impl Iterator for Walk {
    type Item = Result<Entry, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((path, is_folder)) = self.left.last_mut()?.pop() else {
                self.left.pop();
                continue;
            };
            if is_folder {
                if let Err(error) = self.enter(&path) {
                    return Some(Err(format!("{}: {error}", path.to_string_lossy())));
                }
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(kind) = Kind::of(&name) else { continue };
            let below = path.strip_prefix(&self.root).unwrap_or(&path).to_str();
            let below = below.map(|path| path.replace('\\', "/"));
            if below.as_ref().is_none_or(|path| kind.is_wanted(path, self.list.as_deref())) {
                return Some(Ok(Entry::file(path, below, kind)));
            }
        }
    }
}

/// Gives the documents of a file. A file that is a document costs no more than itself if it cannot be read.
fn give(entry: Entry, max_document: u64, each: Each<'_>) -> ControlFlow<()> {
    let Entry { shown, path, kind, open } = entry;
    match kind {
        Kind::Document { is_html } => {
            let body = match (path, whole(open, max_document)) {
                (None, _) => {
                    Body::Unreadable("the name is not UTF-8, and so no id; rename the file".to_owned())
                }
                (_, Err(message)) => Body::Unreadable(message),
                (Some(path), Ok(bytes)) => Body::File { path, is_html, bytes },
            };
            each(Ok(Raw { place: Where { source: shown, line: None }, body }))
        }
        Kind::Lines => {
            let reader = open().map_err(|error| format!("{shown}: {error}"));
            let read = reader.and_then(|reader| lines(reader, &shown, max_document, each));
            read.unwrap_or_else(|broken| each(Err(Broken(broken))))
        }
    }
}

fn whole(open: Open, max_document: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open().and_then(|reader| reader.take(max_document + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_document { Err(too_long(max_document)) } else { Ok(bytes) }
}

fn too_long(max_document: u64) -> String {
    format!("longer than {max_document} bytes; raise --max-document if that is right")
}

/// Lines, packed or not: the first bytes tell.
fn lines(
    mut reader: impl BufRead,
    name: &Arc<str>,
    max_document: u64,
    each: Each<'_>,
) -> Result<ControlFlow<()>, String> {
    let head = reader.fill_buf().map_err(|error| format!("{name}: {error}"))?;
    if head.starts_with(b"\x1f\x8b") {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        plain_lines(BufReader::with_capacity(1 << 16, unpacked), name, max_document, each)
    } else if head.starts_with(b"\x28\xb5\x2f\xfd") {
        let unpacked = zstd::Decoder::with_buffer(reader).map_err(|error| format!("{name}: {error}"))?;
        plain_lines(BufReader::with_capacity(1 << 16, unpacked), name, max_document, each)
    } else {
        plain_lines(reader, name, max_document, each)
    }
}

fn plain_lines(
    mut reader: impl BufRead,
    name: &Arc<str>,
    max_document: u64,
    each: Each<'_>,
) -> Result<ControlFlow<()>, String> {
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        number += 1;
        let broken = |error: io::Error| {
            format!("{name}:{number}: {error}; what stands before it was read, what is behind it is lost")
        };
        if (&mut reader).take(max_document + 1).read_until(b'\n', &mut line).map_err(broken)? == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let place = Where { source: Arc::clone(name), line: Some(number) };
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 > max_document {
            drop(line);
            reader.skip_until(b'\n').map_err(broken)?;
            let body = Body::Unreadable(too_long(max_document));
            if each(Ok(Raw { place, body })).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        }
        if number == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if each(Ok(Raw { place, body: Body::Line(line) })).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}
