//! The errors of a server.

use std::fmt;
use std::sync::Arc;

/// What went wrong with a server, where, and what to do. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    place: Option<String>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kind of an error, to branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The address or a setting is invalid.
    Input,
    /// A key holds data of another type.
    Format,
    /// The memory or the disk of the server is full.
    Full,
    /// The server cannot be reached, or does not answer.
    Unavailable,
    /// The server rejects the credentials or the user's command, is not to be trusted, or accepts no writes at all.
    Refused,
    /// Another failure of the server or the system.
    Io,
}

impl Error {
    /// An error of this kind, with a description of what happened and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, place: None, message: message.into(), source: None }
    }

    /// Adds the address of the server, without its credentials, or the file.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened and what to do, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The server or file that the error is about.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
