//! The directory of an index: its lock, and the file that identifies it as an index.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use huntsman_files::Lock;

use super::error::{IndexError, IndexErrorKind};
use super::identity::Identity;
use super::log::Log;
use super::segment::{Segment, advice};

/// The format version that this program writes.
const FORMAT: u32 = 1;

const LOCK_FILE: &str = "lock";
const IDENTITY_FILE: &str = "index.txt";
const FIRST_LINE: &str = "near-duplicate index";

/// An identity file has some tens of bytes; a longer file is not one.
const MAX_IDENTITY_FILE: u64 = 4096;

/// A directory that this process has locked.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    _lock: Lock,
}

impl Directory {
    /// Opens a directory for an index with `identity`, and makes the index if there is none.
    pub(super) fn open(path: &Path, identity: &Identity) -> Result<Self, IndexError> {
        let directory = Self::lock(path)?;
        match identity_of(path)? {
            Some(found) => found.check(identity).map_err(|error| error.at(path))?,
            None => directory.make(identity)?,
        }
        Ok(directory)
    }

    /// Locks a directory whatever it contains.
    pub(super) fn lock(path: &Path) -> Result<Self, IndexError> {
        huntsman_files::create_dir_all(path)
            .map_err(|e| IndexError::io("making the directory", e).at(path))?;
        Ok(Self { path: path.to_owned(), _lock: locked(path)? })
    }

    /// Locks an existing index against writers, and creates nothing.
    ///
    /// # Errors
    /// There is no index, or another process has it open.
    pub(super) fn lock_shared(path: &Path) -> Result<Option<Lock>, IndexError> {
        let lock_file = path.join(LOCK_FILE);
        if !path.is_dir() || (matches!(identity_of(path), Ok(None)) && Segment::all(path)?.is_empty()) {
            return Err(IndexError::new(IndexErrorKind::Format, "there is no index").at(path));
        }
        let lock = match File::open(&lock_file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|e| IndexError::io("locking the directory", e).at(&lock_file))?,
        };
        Lock::shared_if_supported(lock).map(Some).map_err(|refused| in_use(path, &refused.file))
    }

    /// Makes an empty index. The identity is written last, so if it exists, a log exists.
    fn make(&self, identity: &Identity) -> Result<(), IndexError> {
        if let Some(segment) = Segment::all(&self.path)?.first() {
            // If an earlier process died while making the index, it left a log without records.
            let is_empty = matches!(segment.read(&mut |_| {}), Ok(end) if end.is_empty());
            if !is_empty || segment.number != 1 {
                let advice = advice(&self.path);
                let message = format!("{IDENTITY_FILE} is missing, but there is a log of an index; {advice}");
                return Err(IndexError::new(IndexErrorKind::Damaged, message).at(&self.path));
            }
        }
        Log::create(&self.path)?;
        self.write_identity(identity)
    }

    pub(super) fn write_identity(&self, identity: &Identity) -> Result<(), IndexError> {
        let path = self.path.join(IDENTITY_FILE);
        let (k, features) = (identity.k(), identity.features());
        let text = format!("{FIRST_LINE}\nformat {FORMAT}\nk {k}\nfeatures {features}\n");
        let written = huntsman_files::write(&path, text);
        written.map_err(|e| IndexError::io("writing what the index is made for", e).at(&path))
    }
}

/// The identity of the index in a directory; `None` if there is no index.
pub(super) fn identity_of(directory: &Path) -> Result<Option<Identity>, IndexError> {
    let path = directory.join(IDENTITY_FILE);
    let mut text = String::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_IDENTITY_FILE).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return Err(damaged(&path)),
        Err(error) => return Err(IndexError::io("reading what the index is made for", error).at(path)),
    }
    let mut lines = text.lines();
    if lines.next() != Some(FIRST_LINE) {
        return Err(damaged(&path));
    }
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    let format: u32 = value("format").and_then(|value| value.parse().ok()).ok_or_else(|| damaged(&path))?;
    if format > FORMAT {
        let message = format!("the index has format {format}, of a newer program; this one knows {FORMAT}");
        return Err(IndexError::new(IndexErrorKind::Format, message).at(path));
    }
    let k = value("k").and_then(|value| value.parse().ok());
    let features = value("features").and_then(|value| value.parse().ok());
    let identity = k.zip(features).and_then(|(k, features)| Identity::new(k, features).ok());
    identity.map(Some).ok_or_else(|| damaged(&path))
}

fn damaged(path: &Path) -> IndexError {
    let advice = advice(path.parent().expect("a file is in a directory"));
    let message = format!("damaged: the identity of the index is missing; {advice}");
    IndexError::new(IndexErrorKind::Damaged, message).at(path)
}

/// Locks a directory, or returns an error that names the process that has it locked. The system releases the lock when this process ends,
/// however it ends.
fn locked(directory: &Path) -> Result<Lock, IndexError> {
    let path = directory.join(LOCK_FILE);
    let failed = |e| IndexError::io("locking the directory", e).at(&path);
    // The file is not truncated, because before it is locked, the process number in it belongs to another process.
    let file = huntsman_files::open_write(&path).map_err(failed)?;
    let mut file = Lock::exclusive(file).map_err(|refused| match refused.is_held() {
        true => in_use(directory, &refused.file),
        false => failed(refused.into()),
    })?;
    // The process number is for people and for the error message; nothing depends on it.
    let noted =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    noted.map_err(failed)?;
    Ok(file)
}

/// The error if another process, whose number is in the file, has the lock.
fn in_use(directory: &Path, lock: &File) -> IndexError {
    let mut text = String::new();
    let number = lock.take(20).read_to_string(&mut text).ok();
    let number = number.and_then(|_| text.trim().parse::<u32>().ok());
    let holder = number.map(|number| format!(" (number {number})")).unwrap_or_default();
    let message = format!("another process{holder} works on this index; wait until it ends, or use another");
    IndexError::new(IndexErrorKind::Locked, message).at(directory)
}
