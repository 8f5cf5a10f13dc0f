//! Where inputs are: files, and objects of a bucket.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use globset::{Glob, GlobMatcher};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{Error, Result};
#[cfg(feature = "s3")]
use crate::object::{self, Object};

/// A file, or an object of a bucket.
#[derive(Clone)]
pub struct Place {
    path: PathBuf,
    bytes: u64,
    /// The time of the last change in nanoseconds, or a number that stands for a version of an object.
    version: u64,
    #[cfg(feature = "s3")]
    object: Option<Object>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// What has a name.
#[derive(Clone, Debug)]
pub enum Places {
    /// A file or an object.
    One(Place),
    /// The files of a folder, or the objects under a prefix, in the order of their names; not those of folders in it, and none whose name
    /// begins with `_` or `.`, which engines use for marks of their own.
    Folder(Vec<Place>),
    /// Those of them whose names match a pattern: at least one.
    Matching(Vec<Place>),
}

impl Place {
    /// Finds what a name stands for: a file, a folder, `s3://BUCKET/KEY` and `s3://BUCKET/PREFIX`, or those files of a folder whose names match
    /// a pattern (`lists/*.parquet`).
    ///
    /// # Errors
    /// There is nothing of this name, or the server cannot be asked.
    pub fn find(name: &Path) -> Result<Places> {
        let found = if is_in_bucket(name) { object_at(name)? } else { file_at(name)? };
        if let Some(place) = found {
            return Ok(Places::One(place));
        }
        let Some((folder, pattern)) = pattern_of(name)? else {
            return if is_in_bucket(name) { objects(name) } else { files(name) }.map(Places::Folder);
        };
        let mut places = if is_in_bucket(name) { objects(&folder)? } else { files(&folder)? };
        places.retain(|place| place.path.file_name().is_some_and(|name| pattern.is_match(name)));
        if places.is_empty() {
            return Err(Error::input(name, "no file of the folder matches the pattern"));
        }
        Ok(Places::Matching(places))
    }

    /// A file of a folder, or an object under a prefix; `None` if there is none of this name.
    pub(crate) fn in_folder(folder: &Path, name: &str) -> Result<Option<Self>> {
        let path = folder.join(name);
        if is_in_bucket(folder) { object_at(&path) } else { file_at(&path) }
    }

    fn file(path: &Path, metadata: &std::fs::Metadata) -> Self {
        let changed = metadata.modified().ok();
        let changed = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            path: path.to_owned(),
            bytes: metadata.len(),
            version: changed.map_or(0, |time| time.as_nanos() as u64),
            #[cfg(feature = "s3")]
            object: None,
        }
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A number that changes with the content.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether the content can be read twice at no cost.
    pub(crate) fn is_local(&self) -> bool {
        !is_in_bucket(&self.path)
    }

    /// Its first bytes: at most as many as this.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn head(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut head = Vec::with_capacity(bytes);
        self.open()?.take(bytes as u64).read_to_end(&mut head).map_err(Error::reading(&self.path))?;
        Ok(head)
    }

    /// Reads it as it is.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> Result<Box<dyn BufRead>> {
        let read = self.chunks()?.get_read(0).map_err(|error| Error::File {
            doing: "reading",
            path: self.path.clone(),
            source: io::Error::other(error),
        })?;
        Ok(Box::new(BufReader::with_capacity(1 << 18, read)))
    }

    /// Parts of it, as a reader of Parquet asks for them.
    pub(crate) fn chunks(&self) -> Result<Chunks> {
        #[cfg(feature = "s3")]
        if let Some(object) = &self.object {
            return Ok(Chunks::Object(object.clone()));
        }
        Ok(Chunks::File(File::open(&self.path).map_err(Error::reading(&self.path))?))
    }
}

/// A file; `None` if there is none of this name.
fn file_at(name: &Path) -> Result<Option<Place>> {
    match std::fs::metadata(name) {
        Ok(metadata) => Ok((!metadata.is_dir()).then(|| Place::file(name, &metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::input(name, error)),
    }
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<Place>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| Error::input(folder, error))? {
        let path = entry.map_err(Error::reading(folder))?.path();
        let metadata = std::fs::metadata(&path).map_err(|error| Error::input(&path, error))?;
        if !metadata.is_dir() && !is_mark(&path) {
            files.push(Place::file(&path, &metadata));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The folder and the pattern of a name whose last part is a pattern.
fn pattern_of(name: &Path) -> Result<Option<(PathBuf, GlobMatcher)>> {
    let Some(name) = name.to_str() else { return Ok(None) };
    let (folder, last) = match name.rfind('/') {
        Some(slash) => name.split_at(slash + 1),
        None => ("./", name),
    };
    if !last.contains(['*', '?', '[', '{']) {
        return Ok(None);
    }
    let glob = Glob::new(last).map_err(|error| {
        Error::input(Path::new(name), format!("the pattern is not valid: {}", error.kind()))
    })?;
    Ok(Some((folder.into(), glob.compile_matcher())))
}

/// Whether a name is that of an object, or of a prefix of them.
pub fn is_in_bucket(name: &Path) -> bool {
    name.as_os_str().as_encoded_bytes().starts_with(b"s3://")
}

fn is_mark(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    matches!(name.first(), Some(b'_' | b'.'))
}

#[cfg(feature = "s3")]
impl Place {
    fn object(object: Object) -> Self {
        Self {
            path: object.name().into(),
            bytes: object.bytes(),
            version: object.version(),
            object: Some(object),
        }
    }
}

#[cfg(feature = "s3")]
fn object_at(path: &Path) -> Result<Option<Place>> {
    Ok(object::head(&path.to_string_lossy())?.map(Place::object))
}

#[cfg(feature = "s3")]
fn objects(name: &Path) -> Result<Vec<Place>> {
    let mut places: Vec<Place> =
        object::list(&name.to_string_lossy())?.into_iter().map(Place::object).collect();
    if places.is_empty() {
        return Err(Error::input(name, "there is neither an object of this name nor one under it"));
    }
    places.retain(|place| !is_mark(&place.path));
    Ok(places)
}

#[cfg(not(feature = "s3"))]
fn object_at(path: &Path) -> Result<Option<Place>> {
    Err(Error::input(path, NO_BUCKETS))
}

#[cfg(not(feature = "s3"))]
fn objects(name: &Path) -> Result<Vec<Place>> {
    Err(Error::input(name, NO_BUCKETS))
}

#[cfg(not(feature = "s3"))]
const NO_BUCKETS: &str =
    "this build does not read s3://; build it with the feature `s3`, or copy the objects to a folder";

/// Parts of a file or an object.
pub(crate) enum Chunks {
    File(File),
    #[cfg(feature = "s3")]
    Object(Object),
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            #[cfg(feature = "s3")]
            Self::Object(object) => object.bytes(),
        }
    }
}

impl ChunkReader for Chunks {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        match self {
            Self::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(start))?;
                Ok(Box::new(BufReader::new(file)))
            }
            #[cfg(feature = "s3")]
            Self::Object(object) => Ok(Box::new(object.read_from(start))),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let mut bytes = Vec::with_capacity(length);
        self.get_read(start)?.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{} bytes are missing at its end", length - bytes.len())));
        }
        Ok(bytes.into())
    }
}
