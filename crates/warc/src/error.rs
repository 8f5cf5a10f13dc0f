//! What can be wrong with a file.

use std::fmt;
use std::io;

/// Why a record cannot be read, and where in the file.
#[derive(Debug)]
pub struct ReadError {
    offset: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Damage(String),
    Unsupported(String),
    Io(io::Error),
}

impl ReadError {
    pub(crate) fn damage(offset: u64, what: impl Into<String>) -> Self {
        Self { offset, kind: Kind::Damage(what.into()) }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self { offset: 0, kind: Kind::Unsupported(what.into()) }
    }

    pub(crate) fn io(offset: u64, cause: io::Error) -> Self {
        Self { offset, kind: Kind::Io(cause) }
    }

    /// The same error of a reader that began at an offset of the file.
    pub fn behind(self, offset: u64) -> Self {
        Self { offset: self.offset + offset, kind: self.kind }
    }

    /// Offset in the file, in bytes, of the record that is damaged.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether reading can go on with the next record. It cannot if the file is of another format, or if the system fails to read it.
    pub fn is_damage(&self) -> bool {
        matches!(self.kind, Kind::Damage(_))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Damage(what) => write!(f, "damaged at byte {}: {what}", self.offset),
            Kind::Unsupported(what) => f.write_str(what),
            Kind::Io(cause) => write!(f, "reading at byte {}: {cause}", self.offset),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Io(cause) => Some(cause),
            Kind::Damage(_) | Kind::Unsupported(_) => None,
        }
    }
}
