//! The errors of stores on disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// Advice for a damaged store.
pub(crate) const START_ANEW: &str = "start anew (the state of a crawl with --fresh, a cache by removing its directory), \
    or restore the directory from a copy; `huntsman verify` tells what is whole";

/// An error of a store: what failed, where, and what to do. Clones are cheap.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    path: Option<PathBuf>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kind of an error, for callers that handle some kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another process uses the directory.
    Locked,
    /// The stored data differs from what was written.
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

    /// An error of the system: [`StoreErrorKind::Full`] if no room is left, [`StoreErrorKind::Io`] otherwise.
    ///
    /// `what` names the operation, as in `writing the format file`.
    pub fn io(what: &str, error: io::Error) -> Self {
        let (kind, message) = match huntsman_files::no_room(&error) {
            Some(advice) => (StoreErrorKind::Full, format!("{what}: {advice}")),
            None => (StoreErrorKind::Io, format!("{what}: {error}")),
        };
        Self::new(kind, message).with_source(error)
    }

    /// The file or directory that the error is about.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The kind of the error.
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
