//! How far a file is written, kept in the job: what stands behind it after a crash is of pages that are fetched again.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use huntsman_crawler::{Error, Persist, Result};

use super::target::explain;

/// The position of a file that belongs to a job. Register it with the builder, so that the job keeps it:
/// `builder.persist(position)`.
#[derive(Clone, Debug)]
pub struct FilePosition(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    written: AtomicU64,
    /// A write failed: what stands before the position may be of pages that are not settled.
    broken: AtomicBool,
}

impl FilePosition {
    /// Of a file, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let made = File::options().append(true).create(true).open(&path);
        made.map_err(|cause| explain("opening", &path.display().to_string(), cause))?;
        Ok(Self(Arc::new(Inner { path, written: AtomicU64::new(0), broken: AtomicBool::new(false) })))
    }

    /// All before this offset was handed to the system.
    pub fn set(&self, written: u64) {
        self.0.written.store(written, Ordering::Release);
    }

    /// A write failed: nothing is committed any more.
    pub fn fail(&self) {
        self.0.broken.store(true, Ordering::Release);
    }

    pub(super) fn state(&self) -> Vec<u8> {
        self.0.written.load(Ordering::Acquire).to_string().into_bytes()
    }

    /// Cuts the file off where the job says that it ended; a new job begins it anew.
    pub(super) fn cut(&self, state: Option<&[u8]>) -> Result<()> {
        let path = &self.0.path;
        let name = path.display().to_string();
        let written = match state {
            None => 0,
            Some(state) => std::str::from_utf8(state)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| Error::msg(format!("the job does not tell how far {name} was written")))?,
        };
        let file =
            File::options().write(true).open(path).map_err(|cause| explain("opening", &name, cause))?;
        let cut = || -> io::Result<u64> {
            let length = file.metadata()?.len();
            if length > written {
                file.set_len(written)?;
            }
            Ok(length)
        };
        let length = cut().map_err(|cause| explain("cutting", &name, cause))?;
        if length < written {
            return Err(Error::msg(format!(
                "{name} has {length} bytes, but the crawl had written {written}: it was changed since; put it back, or crawl anew"
            )));
        }
        self.set(written);
        Ok(())
    }

    pub(super) fn key(&self) -> String {
        let name = self.0.path.file_name().unwrap_or_default().to_string_lossy();
        format!("file/{name}")
    }
}

impl Persist for FilePosition {
    fn name(&self) -> String {
        self.key()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        self.cut(state)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        if self.0.broken.load(Ordering::Acquire) {
            return Err(Error::msg(format!("{} could not be written", self.0.path.display())));
        }
        Ok(Some(self.state()))
    }
}
