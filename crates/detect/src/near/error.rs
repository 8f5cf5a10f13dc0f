//! The errors of an index.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// An error of an index: what happened, where, and what to do. Clones are cheap.
#[derive(Clone, Debug)]
pub struct IndexError {
    kind: IndexErrorKind,
    place: Option<PathBuf>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kind of an error, to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexErrorKind {
    /// The arguments are invalid: k above 7, an id that is too long, more languages than there is room for.
    Input,
    /// The index was made for another k or other features.
    Identity,
    /// Another process has the index open.
    Locked,
    /// The stored data is not as it was written.
    Damaged,
    /// The data was written by a newer version, or is not an index.
    Format,
    /// The disk or the server's memory is full.
    Full,
    /// A server cannot be reached, or does not answer.
    Unavailable,
    /// The server rejects the credentials or the user's command, or it accepts no writes at all.
    Refused,
    /// Another failure of the disk, the server or the system.
    Io,
}

impl IndexError {
    /// An error of this kind, with a description of what happened.
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

    /// An error from the system: [`Full`](IndexErrorKind::Full) if there is no room left, [`Io`](IndexErrorKind::Io) otherwise.
    ///
    /// `what` names the failed action, such as `writing the log`.
    pub fn io(what: &str, error: io::Error) -> Self {
        let (kind, message) = match huntsman_files::no_room(&error) {
            Some(advice) => (IndexErrorKind::Full, format!("{what}: {advice}")),
            None => (IndexErrorKind::Io, format!("{what}: {error}")),
        };
        Self::new(kind, message).with_source(error)
    }

    /// The file, directory or server that the error is about.
    pub fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// The kind of the error.
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
