//! What can go wrong with an index.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// An error of an index: what, where, and what to do. Clones are cheap.
#[derive(Clone, Debug)]
pub struct IndexError {
    kind: IndexErrorKind,
    place: Option<PathBuf>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What went wrong, to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexErrorKind {
    /// What was asked cannot be: k above 7, an id that is too long, more languages than there is room for.
    Input,
    /// The index is made for another k or other features.
    Identity,
    /// Another process works on it.
    Locked,
    /// What is stored is not what was written.
    Damaged,
    /// It was written by a newer version, or it is no index.
    Format,
    /// No room is left, on the disk or in the server's memory.
    Full,
    /// A server cannot be reached, or does not answer.
    Unavailable,
    /// A server does not take the credentials, the user may not do this, or it takes no writes at all.
    Refused,
    /// The disk, the server or the system failed otherwise.
    Io,
}

impl IndexError {
    /// An error of a kind, with what happened.
    pub fn new(kind: IndexErrorKind, message: impl Into<String>) -> Self {
        Self { kind, place: None, message: message.into(), source: None }
    }

    /// Adds the file, the directory or the address of the server, without its credentials.
    pub fn at(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// A failure of the system: [`Full`](IndexErrorKind::Full) if no room is left, [`Io`](IndexErrorKind::Io) otherwise.
    ///
    /// `what` was being done, as in `writing the log`.
    pub fn io(what: &str, error: io::Error) -> Self {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let (kind, message) = match error.kind() {
            StorageFull => {
                (IndexErrorKind::Full, format!("{what}: no room is left on the disk; make room, then go on"))
            }
            QuotaExceeded => {
                (IndexErrorKind::Full, format!("{what}: the disk quota is used up; make room, then go on"))
            }
            FileTooLarge => (
                IndexErrorKind::Full,
                format!("{what}: the file may not grow further; raise the limit on file sizes, then go on"),
            ),
            _ => (IndexErrorKind::Io, format!("{what}: {error}")),
        };
        Self::new(kind, message).with_source(error)
    }

    /// The file, directory or server it is about.
    pub fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// What went wrong.
    pub fn kind(&self) -> IndexErrorKind {
        self.kind
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}: ", place.display())?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for IndexError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
