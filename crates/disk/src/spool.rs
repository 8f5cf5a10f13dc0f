//! Spools: bytes that are kept in memory while they are few, and in a file otherwise.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{Error, Result};
use tempfile::TempDir;

/// Bytes of a spool that are kept in memory.
const IN_MEMORY: usize = 256 * 1_024;
/// Bytes that are written to a file at once.
const WRITTEN_AT_ONCE: usize = 256 * 1_024;

/// A directory for files that nobody needs after the program has ended. It is made when the first file is, and removed with all that is in it
/// when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    made: OnceLock<PathBuf>,
    files: AtomicU64,
}

#[derive(Debug)]
enum Place {
    /// A directory with this path.
    Named(PathBuf),
    /// A directory of the system for temporary files.
    Temporary(OnceLock<TempDir>),
}

impl Scratch {
    /// A directory with this path. What an earlier process left there is removed when the directory is made.
    pub fn at(path: PathBuf) -> Self {
        Self::new(Place::Named(path))
    }

    /// A directory among the temporary files of the system, which only this user can read.
    pub fn temporary() -> Self {
        Self::new(Place::Temporary(OnceLock::new()))
    }

    fn new(place: Place) -> Self {
        Self(Arc::new(Inner { place, made: OnceLock::new(), files: AtomicU64::new(0) }))
    }

    /// The path of a new file. Only one thread may ask for the first one.
    fn file(&self) -> Result<PathBuf> {
        let directory = match self.0.made.get() {
            Some(made) => made,
            None => {
                let made = self.make()?;
                self.0.made.get_or_init(|| made)
            }
        };
        let number = self.0.files.fetch_add(1, Ordering::Relaxed);
        Ok(directory.join(format!("{number}")))
    }

    fn make(&self) -> Result<PathBuf> {
        match &self.0.place {
            Place::Named(path) => {
                let made =
                    huntsman_files::remove_any(path).and_then(|_| huntsman_files::create_dir_all(path));
                made.map_err(|error| Error::io(format!("making {}", path.display()), error))?;
                Ok(path.clone())
            }
            Place::Temporary(made) => {
                let directory = tempfile::Builder::new()
                    .prefix("huntsman-")
                    .tempdir()
                    .map_err(|error| Error::io("making a directory for temporary files", error))?;
                Ok(made.get_or_init(|| directory).path().to_owned())
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let (Place::Named(path), Some(_)) = (&self.place, self.made.get()) {
            // What cannot be removed now is removed by the next process that needs the directory.
            let _ = huntsman_files::remove_any(path);
        }
    }
}

/// Bytes that are appended to and read again.
#[derive(Debug)]
pub struct Spool {
    scratch: Scratch,
    /// All bytes, or those that are not in the file yet.
    tail: Vec<u8>,
    file: Option<SpoolFile>,
    /// Bytes in the file.
    written: u64,
}

#[derive(Debug)]
struct SpoolFile {
    path: PathBuf,
    file: Mutex<File>,
    is_scratch: bool,
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if self.is_scratch {
            // The directory is removed later, with all that is in it. Without a sync of the directory this is quick.
            #[expect(clippy::disallowed_methods, reason = "a scratch file needs no durable end")]
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Spool {
    /// An empty spool, whose file is in this directory if it needs one.
    pub fn new(scratch: &Scratch) -> Self {
        Self { scratch: scratch.clone(), tail: Vec::new(), file: None, written: 0 }
    }

    /// The bytes of a file, which is left as it is.
    pub fn open(path: &Path, scratch: &Scratch) -> Result<Self> {
        let context = |error| Error::io(format!("reading {}", path.display()), error);
        let file = File::open(path).map_err(context)?;
        let written = file.metadata().map_err(context)?.len();
        let file = SpoolFile { path: path.to_owned(), file: Mutex::new(file), is_scratch: false };
        Ok(Self { scratch: scratch.clone(), tail: Vec::new(), file: Some(file), written })
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it is called in errors.
    pub fn name(&self) -> String {
        match &self.file {
            Some(file) => file.path.display().to_string(),
            None => "a list in memory".to_owned(),
        }
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.tail.extend_from_slice(bytes);
        let limit = if self.file.is_some() { WRITTEN_AT_ONCE } else { IN_MEMORY };
        if self.tail.len() <= limit { Ok(()) } else { self.write_out() }
    }

    fn write_out(&mut self) -> Result<()> {
        if self.file.is_none() {
            let path = self.scratch.file()?;
            let file = huntsman_files::open_empty(&path)
                .map_err(|error| Error::io(format!("making {}", path.display()), error))?;
            self.file = Some(SpoolFile { path, file: Mutex::new(file), is_scratch: true });
        }
        let opened = self.file.as_ref().expect("it was made above");
        let mut file = opened.file.lock().unwrap_or_else(PoisonError::into_inner);
        let done = file.seek(SeekFrom::Start(self.written)).and_then(|_| file.write_all(&self.tail));
        done.map_err(|error| Error::io(format!("writing {}", opened.path.display()), error))?;
        drop(file);
        self.written += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }

    /// Reads this many bytes from an offset; fewer at the end.
    pub fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let end = self.len().min(offset.saturating_add(length as u64));
        if let (Some(opened), true) = (&self.file, offset < self.written) {
            let in_file = end.min(self.written) - offset;
            let mut file = opened.file.lock().unwrap_or_else(PoisonError::into_inner);
            let done =
                file.seek(SeekFrom::Start(offset)).and_then(|_| (&mut *file).take(in_file).read_to_end(out));
            done.map_err(|error| Error::io(format!("reading {}", opened.path.display()), error))?;
        }
        let first = (offset + out.len() as u64).saturating_sub(self.written) as usize;
        let last = end.saturating_sub(self.written) as usize;
        out.extend_from_slice(self.tail.get(first..last).unwrap_or_default());
        Ok(())
    }

    /// Copies all bytes.
    pub fn copy(&self, to: &mut dyn Write) -> Result<()> {
        let (mut offset, mut buffer) = (0, Vec::new());
        while offset < self.len() {
            self.read(offset, WRITTEN_AT_ONCE, &mut buffer)?;
            if buffer.is_empty() {
                return Err(Error::msg(format!("{} was cut while it was read", self.name())));
            }
            to.write_all(&buffer).map_err(|error| Error::io(format!("copying {}", self.name()), error))?;
            offset += buffer.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_memory_in_a_file_and_between_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let scratch = Scratch::at(path.clone());
        let mut spool = Spool::new(&scratch);
        let expected: Vec<u8> = (0..700_000_u32).map(|number| (number % 251) as u8).collect();
        let mut out = Vec::new();
        for piece in expected.chunks(1_000) {
            spool.write(piece).unwrap();
        }
        assert!(path.is_dir() && spool.written > 0 && !spool.tail.is_empty());
        let border = spool.written;
        for (offset, length) in [(0, 10), (border - 5, 10), (border, 7), (699_990, 100), (0, 700_000)] {
            spool.read(offset, length, &mut out).unwrap();
            let end = expected.len().min(offset as usize + length);
            assert_eq!(out, expected[offset as usize..end]);
        }
        let mut copied = Vec::new();
        spool.copy(&mut copied).unwrap();
        assert_eq!(copied, expected);
        drop(spool);
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn little_needs_no_directory_and_what_an_earlier_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let mut spool = Spool::new(&Scratch::at(path.clone()));
        spool.write(b"little").unwrap();
        assert!(!path.exists());
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("left"), "by a killed process").unwrap();
        spool.write(&vec![1; IN_MEMORY]).unwrap();
        assert!(!path.join("left").exists() && spool.len() == 6 + IN_MEMORY as u64);
    }
}
