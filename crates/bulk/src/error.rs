//! The errors of the crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an export, a join or a clustering cannot begin or go on. The message says what failed, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input, or a request about it, is not one that can be carried out.
    Input {
        /// The file or folder.
        name: String,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The server that holds an input does not answer; it may answer later.
    Unavailable {
        /// The object or prefix.
        name: String,
        /// What was said, and what to do.
        message: String,
    },
    /// A file could not be read or written.
    File {
        /// What was being done: `reading`, `writing`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of the scratch directory could not be read or written.
    Scratch(huntsman_disk::Error),
    /// The disk is full.
    Full {
        /// How many more bytes may be needed at most.
        missing: u64,
        /// What could not be written.
        source: Box<Error>,
    },
    /// The join was told to stop; the same request goes on with it.
    Stopped,
    /// A thread panicked, which is a bug in this crate.
    Panicked,
}

/// A `Result` with [`Error`] as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn input(path: &Path, message: impl fmt::Display) -> Self {
        Self::Input { name: path.display().to_string(), message: message.to_string() }
    }

    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing: "reading", path: path.to_owned(), source }
    }

    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing: "writing", path: path.to_owned(), source }
    }

    /// Whether the request or its input is at fault, and not the system.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Input { .. })
    }

    /// Why there was no room on the disk, with advice; `None` if the error is another one.
    pub fn no_room(&self) -> Option<&'static str> {
        match self {
            Self::File { source, .. } => huntsman_files::no_room(source),
            Self::Scratch(error) => error.cause().and_then(huntsman_files::no_room),
            Self::Full { source, .. } => source.no_room(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { name, message } | Self::Unavailable { name, message } => {
                write!(f, "{name}: {message}")?
            }
            Self::File { doing, path, source } => write!(f, "{doing} {}: {source}", path.display())?,
            Self::Scratch(error) => error.fmt(f)?,
            Self::Full { missing, source } => {
                return write!(f, "{source}; up to {missing} bytes are missing");
            }
            Self::Stopped => f.write_str("stopped")?,
            Self::Panicked => f.write_str("a thread that compares ended in a panic; please report it")?,
        }
        self.no_room()
            .map_or(Ok(()), |_| f.write_str("; make room, then run the same command again to go on"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Scratch(error) => Some(error),
            Self::Full { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<huntsman_disk::Error> for Error {
    fn from(error: huntsman_disk::Error) -> Self {
        Self::Scratch(error)
    }
}
