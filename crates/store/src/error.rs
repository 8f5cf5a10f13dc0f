//! What can go wrong with what is kept on disk.

use std::fmt;
use std::path::PathBuf;

/// An error of a store: what, where, and what to do.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    path: Option<PathBuf>,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
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
        self.source = Some(source.into());
        self
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
