//! What can go wrong with what is kept on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// What to do about a damaged store.
pub(crate) const START_ANEW: &str = "start anew (the state of a crawl with --fresh, a cache by removing its directory), \
    or restore the directory from a copy; `huntsman verify` tells what is whole";

/// An error of a store: what, where, and what to do. Clones are cheap.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    path: Option<PathBuf>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What went wrong, to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another process works on it.
    Locked,
    /// What is stored is not what was written.
    Damaged,
    /// It was written by a newer version, or by another backend.
    Format,
    /// No room is left on the disk.
    Full,
    /// The disk or the system failed otherwise.
    Io,
}

impl StoreError {
    /// An error of a kind, with what happened.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, path: None, message: message.into(), source: None }
    }

    /// Adds the file or directory.
    pub fn at(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// A failure of the system: [`StoreErrorKind::Full`] if no room is left, [`StoreErrorKind::Io`] otherwise.
    ///
    /// `what` was being done, as in `writing the format file`.
    pub fn io(what: &str, error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let (kind, message) = match error.kind() {
            StorageFull => {
                (StoreErrorKind::Full, format!("{what}: no room is left on the disk; make room, then go on"))
            }
            QuotaExceeded => {
                (StoreErrorKind::Full, format!("{what}: the disk quota is used up; make room, then go on"))
            }
            FileTooLarge => (
                StoreErrorKind::Full,
                format!("{what}: the file may not grow further; raise the limit on file sizes, then go on"),
            ),
            _ => (StoreErrorKind::Io, format!("{what}: {error}")),
        };
        Self::new(kind, message).with_source(error)
    }

    /// The file or directory it is about.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What went wrong.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
