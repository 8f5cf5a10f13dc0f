//! The sources of documents.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_detect::simhash::Features;
use huntsman_warc::{Archive, Archives, NameError, is_archive_name, is_wacz_name};

use crate::archive::{self, ArchiveId};
use crate::error::Error;
use crate::manifest::Manifest;
use crate::members::Members;
use crate::record::{Body, Position, RawDocument};
#[cfg(feature = "s3")]
use crate::s3::Objects;

/// How documents are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<'a> {
    /// Files of documents that are not on this list are not opened (default: all are).
    pub list: Option<&'a Arc<Manifest>>,
    /// Longest document in bytes (default 32 MiB).
    pub max_document: u64,
    /// The ids of documents in WARC files (default: their URLs).
    pub archive_id: ArchiveId,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self { list: None, max_document: 32 << 20, archive_id: ArchiveId::default() }
    }
}

/// A source of documents.
#[derive(Debug)]
pub enum Source {
    /// JSON lines on stdin.
    Stdin,
    /// A file of JSON lines, a WARC file, or a file that is one document.
    File(PathBuf),
    /// Files that a pattern matched, in the order of their paths, or the archives in a WACZ file.
    Files(Vec<Archive>),
    /// Single records of archives, which an index names.
    Members(Members),
    /// A folder of files that are JSON lines, WARC files or documents.
    Folder(PathBuf),
    /// Fingerprints in Parquet files, on disk or in a bucket.
    #[cfg(feature = "parquet")]
    Table(huntsman_bulk::Fingerprints),
    /// Objects of a bucket: one object, or all objects under a prefix.
    #[cfg(feature = "s3")]
    S3(Objects),
}

impl Source {
    /// Finds the source with this name: `-` is stdin, `s3://BUCKET/KEY` or `s3://BUCKET/PREFIX` is in a bucket, any other name is a file, a
    /// folder, or a pattern such as `crawl-*.warc.gz`. A WACZ file stands for the archives in it; a `.parquet` file and a folder of such files are
    /// tables.
    ///
    /// # Errors
    /// Nothing has this name, a table is not whole, or the server cannot be asked for it.
    pub fn find(name: &str) -> Result<Self, Error> {
        #[cfg(feature = "parquet")]
        {
            Self::find_with(name, &huntsman_bulk::Columns::default(), None)
        }
        #[cfg(not(feature = "parquet"))]
        Self::find_by(name, &|_| {
            let message = "this build does not read Parquet; build it with the feature `parquet`";
            Err(Error::Input { name: name.to_owned(), message: message.to_owned() })
        })
    }

    /// The same with the names of the columns of tables, and the language of rows that name none.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    #[cfg(feature = "parquet")]
    pub fn find_with(
        name: &str,
        columns: &huntsman_bulk::Columns,
        lang: Option<huntsman_detect::near::Language>,
    ) -> Result<Self, Error> {
        Self::find_by(name, &|paths| crate::table::find(paths, columns, lang).map(Self::Table))
    }

    fn find_by(name: &str, table: &dyn Fn(Vec<PathBuf>) -> Result<Self, Error>) -> Result<Self, Error> {
        if name == "-" {
            return Ok(Self::Stdin);
        }
        let archives = || Archives::named(&[name]).map_err(|error| unusable(&error));
        if is_wacz_name(name) {
            return Ok(Self::Files(archives()?.files().to_vec()));
        }
        if name.starts_with("s3://") {
            return s3(name, table);
        }
        let path = PathBuf::from(name);
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() && has_tables(&path) => table(vec![path]),
            Ok(found) if found.is_dir() => Ok(Self::Folder(path)),
            Ok(_) if Kind::of(name) == Some(Kind::Table) => table(vec![path]),
            Ok(_) => Ok(Self::File(path)),
            Err(_) if name.contains(['*', '?', '[', '{']) => {
                let files = archives()?.files().to_vec();
                let is_table = |file: &Archive| Kind::of(file.name()) == Some(Kind::Table);
                if !files.is_empty() && files.iter().all(is_table) {
                    return table(files.iter().map(|file| PathBuf::from(file.name())).collect());
                }
                Ok(Self::Files(files))
            }
            Err(error) => Err(Error::Input { name: name.to_owned(), message: error.to_string() }),
        }
    }

    /// The features of the fingerprints in a table; `None` if it names none, or for a source of texts.
    pub fn features(&self) -> Option<Features> {
        match self {
            #[cfg(feature = "parquet")]
            Self::Table(table) => table.features(),
            _ => None,
        }
    }

    /// The records that an index names: a CDXJ file, whose lines say of which file each is and where. The files are looked for beside the index and among
    /// the archives, folders, and prefixes of buckets that are named.
    ///
    /// # Errors
    /// A name leads to no archive, or the index cannot be opened.
    pub fn members(index: &Path, names: &[String]) -> Result<Self, Error> {
        let named: Vec<&Path> = std::iter::once(index).chain(names.iter().map(Path::new)).collect();
        Archives::named(&named)
            .map(|archives| Self::Members(Members::new(archives)))
            .map_err(|error| unusable(&error))
    }

    /// Reads all documents in order: the files of a folder by name, the lines of a file as they stand. `each` is called with each document and
    /// with each failure to read a source to its end, and returns whether to go on.
    pub fn read(
        &self,
        options: &ReadOptions<'_>,
        each: &mut dyn FnMut(Result<RawDocument, SourceError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        #[cfg(feature = "parquet")]
        if let Self::Table(table) = self {
            return crate::table::read(table, each);
        }
        if let Self::Members(members) = self {
            return members.read(options, each);
        }
        for entry in entries(self, options.list, options.max_document) {
            match entry {
                Ok(entry) => read_entry(entry, options, each)?,
                Err(failure) => each(Err(SourceError(failure)))?,
            }
        }
        ControlFlow::Continue(())
    }
}

/// The error of names that lead to no archive.
fn unusable(error: &NameError) -> Error {
    let (name, message) = (error.name.to_string_lossy().into_owned(), error.reason());
    match error.is_of_the_server() {
        true => Error::Unavailable { name, message },
        false => Error::Input { name, message },
    }
}

/// Whether a folder is a table: an export, or one that was not finished.
fn has_tables(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.into_iter().any(|name| is_of_table(&name.to_string_lossy()))
}

/// Whether a file of this name makes its folder a table.
pub(super) fn is_of_table(name: &str) -> bool {
    name == "_DONE.json" || Kind::of(name) == Some(Kind::Table)
}

type MakeTable<'m> = &'m dyn Fn(Vec<PathBuf>) -> Result<Source, Error>;

#[cfg(feature = "s3")]
fn s3(name: &str, table: MakeTable<'_>) -> Result<Source, Error> {
    let objects = Objects::find(name)?;
    if objects.are_tables() { table(vec![name.into()]) } else { Ok(Source::S3(objects)) }
}

#[cfg(not(feature = "s3"))]
fn s3(name: &str, _: MakeTable<'_>) -> Result<Source, Error> {
    let message = "this build does not read s3://; build it with the feature `s3`, copy the objects to a folder, or pipe them into `-`";
    Err(Error::Input { name: name.to_owned(), message: message.to_owned() })
}

/// A source, or one of its files, that could not be read to its end: which one, and why. The run goes on with the next file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub(crate) String);

impl SourceError {
    #[cfg(feature = "parquet")]
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

/// The callback for documents and for failures to read a file to its end.
pub(crate) type Each<'a> = &'a mut dyn FnMut(Result<RawDocument, SourceError>) -> ControlFlow<()>;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One document.
    Document { is_html: bool },
    /// JSON lines, each a document.
    Lines,
    /// A WARC file, whose pages and texts are documents.
    Archive,
    /// A Parquet file, which is a source of its own.
    Table,
}

impl Kind {
    /// The kind by the name of the file; `None` if it is of none.
    pub(super) fn of(name: &str) -> Option<Self> {
        const LINES: [&str; 2] = [".jsonl", ".ndjson"];
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        if is_archive_name(&name) {
            return Some(Self::Archive);
        }
        let unpacked = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        if LINES.iter().any(|end| unpacked.ends_with(end)) {
            return Some(Self::Lines);
        }
        match name.rsplit_once('.')?.1 {
            "txt" => Some(Self::Document { is_html: false }),
            "html" | "htm" | "xhtml" => Some(Self::Document { is_html: true }),
            "parquet" => Some(Self::Table),
            _ => None,
        }
    }

    /// The kind of a file that the caller named: any file that is neither a document nor an archive has JSON lines.
    pub(super) fn of_named(name: &str) -> Self {
        Self::of(name).unwrap_or(Self::Lines)
    }

    /// Whether a file of this path is read. Documents are read only if they are on the list.
    pub(super) fn is_wanted(self, path: &str, list: Option<&Manifest>) -> bool {
        !matches!(self, Self::Document { .. }) || list.is_none_or(|list| list.has_path(path))
    }
}

/// A file, an object, or stdin.
pub(super) struct Entry {
    /// The name of the entry in messages.
    pub(super) shown: Arc<str>,
    /// Its path in the source, which is the id of the document; `None` if it is not UTF-8.
    pub(super) path: Option<String>,
    pub(super) kind: Kind,
    pub(super) open: Open,
}

/// Opens the entry for reading.
pub(super) type Open = Box<dyn FnOnce() -> io::Result<Box<dyn BufRead>> + Send>;

impl Entry {
    /// A file that the caller named.
    fn named(path: PathBuf) -> Self {
        let name = path.file_name().unwrap_or_default();
        let (kind, name) = (Kind::of_named(&name.to_string_lossy()), name.to_str().map(str::to_owned));
        Self::file(path, name, kind)
    }

    /// A file that a pattern matched, or an archive in a WACZ file.
    fn matched(archive: Archive) -> Self {
        let name = archive.file_name().to_owned();
        let (kind, shown) = (Kind::of_named(&name), archive.name().into());
        let open = move || -> io::Result<Box<dyn BufRead>> {
            Ok(Box::new(BufReader::with_capacity(1 << 16, archive.open()?)))
        };
        Self { shown, path: Some(name), kind, open: Box::new(open) }
    }

    fn file(file: PathBuf, path: Option<String>, kind: Kind) -> Self {
        let shown = file.to_string_lossy().into();
        let open = move || -> io::Result<Box<dyn BufRead>> {
            Ok(Box::new(BufReader::with_capacity(1 << 16, File::open(file)?)))
        };
        Self { shown, path, kind, open: Box::new(open) }
    }
}

/// The entries of a source, in order. If a part cannot be listed, the reason stands in its place.
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
        #[cfg(feature = "parquet")]
        Source::Table(_) => Box::new(std::iter::empty()),
        Source::File(path) => one(Entry::named(path.clone())),
        Source::Files(files) => Box::new(files.clone().into_iter().map(|file| Ok(Entry::matched(file)))),
        Source::Members(_) => Box::new(std::iter::empty()),
        Source::Folder(folder) => Box::new(Walk::new(folder.clone(), list.cloned())),
        #[cfg(feature = "s3")]
        Source::S3(objects) => objects.entries(list.cloned(), max_document),
    }
}

/// The files of a folder, in the order of the bytes of their paths, which is the order in which a bucket lists objects.
struct Walk {
    root: PathBuf,
    list: Option<Arc<Manifest>>,
    /// The entries still to be visited, one list for the root and for each folder on the way down; the next entry of a list is its last
    /// element.
    left: Vec<Vec<(PathBuf, bool)>>,
}

impl Walk {
    fn new(root: PathBuf, list: Option<Arc<Manifest>>) -> Self {
        Self { left: vec![vec![(root.clone(), true)]], root, list }
    }

    /// Links to folders are not followed, because they may form cycles.
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

/// Reads the documents of a file. If a file that is itself a document cannot be read, only that document is lost.
fn read_entry(entry: Entry, options: &ReadOptions<'_>, each: Each<'_>) -> ControlFlow<()> {
    let Entry { shown, path, kind, open } = entry;
    let max_document = options.max_document;
    match kind {
        Kind::Document { is_html } => {
            let body = match (path, whole(open, max_document)) {
                (None, _) => {
                    Body::Unreadable("the name is not UTF-8, and so no id; rename the file".to_owned())
                }
                (_, Err(message)) => Body::Unreadable(message),
                (Some(path), Ok(bytes)) => Body::File { path, is_html, bytes },
            };
            each(Ok(RawDocument { position: Position { source: shown, line: None }, body }))
        }
        Kind::Lines => {
            let reader = open().map_err(|error| format!("{shown}: {error}"));
            let read = reader.and_then(|reader| lines(reader, &shown, max_document, each));
            read.unwrap_or_else(|broken| each(Err(SourceError(broken))))
        }
        Kind::Archive => {
            let reader = open().map_err(|error| format!("{shown}: {error}"));
            let read = reader.and_then(|reader| {
                archive::documents(reader, &shown, max_document, options.archive_id, each)
            });
            read.unwrap_or_else(|broken| each(Err(SourceError(broken))))
        }
        Kind::Table => {
            let message = "a table among documents was not read; give it, or the folder that it is in, as an input of its own";
            each(Err(SourceError(format!("{shown}: {message}"))))
        }
    }
}

fn whole(open: Open, max_document: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open().and_then(|reader| reader.take(max_document + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_document { Err(too_long(max_document)) } else { Ok(bytes) }
}

pub(crate) fn too_long(max_document: u64) -> String {
    format!("longer than {max_document} bytes; raise --max-document if that is right")
}

/// Reads lines, compressed or not; the first bytes of the file tell which.
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
        let position = Position { source: Arc::clone(name), line: Some(number) };
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 > max_document {
            drop(line);
            reader.skip_until(b'\n').map_err(broken)?;
            let body = Body::Unreadable(too_long(max_document));
            if each(Ok(RawDocument { position, body })).is_break() {
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
        if each(Ok(RawDocument { position, body: Body::Line(line) })).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}
