//! The position in an output file, saved in the job. Content after it that a crash left belongs to pages that are
//! fetched again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Persist, Result};
use huntsman_files as files;
use xxhash_rust::xxh3::xxh3_64;

use super::target::explain;

/// The position of a file that belongs to a job. Register it with the builder, so that the job saves it:
/// `builder.persist(position)`.
///
/// The job saves the offset and a hash of the bytes before it. The file is synced before its offset is saved. A resumed
/// job detects whether the file was truncated or changed since, and reports an error instead of appending after a gap.
#[derive(Clone, Debug)]
pub struct FilePosition(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Mutex<File>,
    written: AtomicU64,
    /// Set after a failed write: the bytes before the position may belong to pages that are not acknowledged.
    broken: AtomicBool,
    /// Whether the job goes on with the file. A new one does not.
    resumed: AtomicBool,
    /// Set until the feed knows that it may write. Nothing is saved before, or else a job that was refused would count as one that goes on.
    unsettled: AtomicBool,
}

/// Number of bytes before the position that are hashed: one page of the disk, the unit that a power cut leaves empty.
const TAIL: u64 = 4096;

const ADVICE: &str = "restore it from a copy, or start the job anew with --fresh";

/// The saved state: the offset, and the hash in hexadecimal, which an early version did not write.
struct SavedPosition {
    written: u64,
    tail: Option<u64>,
}

impl SavedPosition {
    fn parse(state: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(state).ok()?;
        let (written, tail) = match text.split_once(' ') {
            Some((written, tail)) => (written, Some(u64::from_str_radix(tail, 16).ok()?)),
            None => (text, None),
        };
        Some(Self { written: written.parse().ok()?, tail })
    }
}

impl FilePosition {
    /// Creates the position of a file; the file is created if it does not exist.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = files::open_append(&path)
            .map_err(|cause| explain("opening", &path.display().to_string(), cause))?;
        Ok(Self(Arc::new(Inner {
            path,
            file: Mutex::new(file),
            written: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            resumed: AtomicBool::new(false),
            unsettled: AtomicBool::new(false),
        })))
    }

    /// Whether the job has saved a position before. It is known when the crawl begins.
    pub(super) fn is_resumed(&self) -> bool {
        self.0.resumed.load(Ordering::Acquire)
    }

    /// Saves nothing until [`settle`](Self::settle) is called.
    pub(super) fn unsettle(&self) {
        self.0.unsettled.store(true, Ordering::Release);
    }

    /// The feed may write its file.
    pub(super) fn settle(&self) {
        self.0.unsettled.store(false, Ordering::Release);
    }

    /// Sets the offset. All bytes before it were flushed to the system and will not change.
    pub fn set(&self, written: u64) {
        self.0.written.store(written, Ordering::Release);
    }

    /// Notes a failed write: nothing more is committed.
    pub fn fail(&self) {
        self.0.broken.store(true, Ordering::Release);
    }

    fn name_of_file(&self) -> String {
        self.0.path.display().to_string()
    }

    fn file(&self) -> MutexGuard<'_, File> {
        self.0.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hash of the bytes before an offset.
    fn tail(&self, written: u64) -> io::Result<u64> {
        let start = written.saturating_sub(TAIL);
        let mut file = self.file();
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&mut *file).take(written - start).read_to_end(&mut tail)?;
        Ok(xxh3_64(&tail))
    }

    /// Truncates the file to the offset that the job saved; a new job truncates it to zero.
    fn cut(&self, state: Option<&[u8]>) -> Result<()> {
        let name = self.name_of_file();
        let saved = match state {
            None => SavedPosition { written: 0, tail: None },
            Some(state) => SavedPosition::parse(state)
                .ok_or_else(|| Error::msg(format!("the job has no position of {name}; {ADVICE}")))?,
        };
        let SavedPosition { written, tail } = saved;
        let length = self.file().metadata().map_err(|cause| explain("opening", &name, cause))?.len();
        if length < written {
            return Err(Error::msg(format!(
                "{name} has {length} bytes, but the crawl had written {written}: it was changed since; {ADVICE}"
            )));
        }
        let found = self.tail(written).map_err(|cause| explain("reading", &name, cause))?;
        if tail.is_some_and(|tail| tail != found) {
            return Err(Error::msg(format!(
                "{name} is damaged: what stands before byte {written} is not what the crawl had written there; {ADVICE}"
            )));
        }
        if length > written {
            self.file().set_len(written).map_err(|cause| explain("cutting", &name, cause))?;
        }
        self.set(written);
        Ok(())
    }
}

impl Persist for FilePosition {
    fn name(&self) -> String {
        let name = self.0.path.file_name().unwrap_or_default().to_string_lossy();
        format!("file/{name}")
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        self.0.resumed.store(state.is_some(), Ordering::Release);
        self.cut(state)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        if self.0.broken.load(Ordering::Acquire) {
            return Err(Error::msg(format!("{} could not be written", self.name_of_file())));
        }
        if self.0.unsettled.load(Ordering::Acquire) {
            return Ok(None);
        }
        let written = self.0.written.load(Ordering::Acquire);
        let tail = self.tail(written).map_err(|cause| explain("reading", &self.name_of_file(), cause))?;
        Ok(Some(format!("{written} {tail:016x}").into_bytes()))
    }

    fn sync(&self) -> Result<()> {
        self.file().sync_data().map_err(|cause| {
            // After a failed sync the system may drop the data and report success the next time.
            self.fail();
            explain("syncing", &self.name_of_file(), cause)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Creates a file of a job that was written and committed; returns the saved state.
    fn committed(path: &Path, text: &str) -> Vec<u8> {
        fs::write(path, text).unwrap();
        let position = FilePosition::new(path).unwrap();
        position.set(text.len() as u64);
        position.sync().unwrap();
        position.save().unwrap().unwrap()
    }

    #[test]
    fn what_stands_behind_the_position_is_cut_off_and_what_stands_before_it_is_proved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages.jsonl");
        for text in [String::new(), "{}\n".to_owned(), "{\"n\":1}\n".repeat(2_000)] {
            let state = committed(&path, &text);
            fs::write(&path, format!("{text}{{\"half\":")).unwrap();
            FilePosition::new(&path).unwrap().load(Some(&state)).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            if text.is_empty() {
                continue;
            }
            // A power cut leaves a file of full length with zeros, a truncated file, or a flipped byte.
            let cut = &text.as_bytes()[..text.len() - 1];
            let mut flipped = text.clone().into_bytes();
            *flipped.last_mut().unwrap() ^= 1;
            let damaged =
                [(vec![0; text.len()], "damaged"), (flipped, "damaged"), (cut.to_vec(), "bytes, but")];
            for (damaged, what) in damaged {
                fs::write(&path, &damaged).unwrap();
                let error = FilePosition::new(&path).unwrap().load(Some(&state)).unwrap_err().to_string();
                assert!(error.contains(what) && error.contains("pages.jsonl"), "{error}");
                assert!(error.contains(&text.len().to_string()) && error.contains("--fresh"), "{error}");
                assert_eq!(fs::read(&path).unwrap(), damaged, "left as it is");
            }
        }
    }

    #[test]
    fn a_job_of_an_early_version_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        fs::write(&path, "{}\n{}\n{").unwrap();
        FilePosition::new(&path).unwrap().load(Some(b"6")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{}\n");
        for nonsense in ["", "x", "6 ", "6 xyz", "-1", "6 1 2"] {
            let error = FilePosition::new(&path).unwrap().load(Some(nonsense.as_bytes())).unwrap_err();
            assert!(error.to_string().contains("a.jsonl"), "{nonsense:?}: {error}");
        }
    }

    #[test]
    fn a_new_job_begins_the_file_anew_and_a_failed_write_is_committed_never() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        fs::write(&path, "of another run\n").unwrap();
        let position = FilePosition::new(&path).unwrap();
        position.load(None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        position.fail();
        assert!(position.save().is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("precious"), folder.path().join("pages.jsonl"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let error = FilePosition::new(&path).unwrap_err().to_string();
        assert!(error.contains("symbolic link") && error.contains("pages.jsonl"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}
