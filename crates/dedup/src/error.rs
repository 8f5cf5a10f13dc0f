//! The errors of a run.

use std::fmt;
use std::io;
use std::path::PathBuf;

use huntsman_detect::near::IndexError;

/// Why a run cannot begin or go on. The message says what failed, where, and what to do about it.
///
/// A document that cannot be read is not such an error, but a [`RejectedDocument`](crate::RejectedDocument) in its batch.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The input does not exist, or its name is not one that an input can have. Nothing was done.
    Input {
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The server that holds an input does not answer. Nothing was done; the server may answer later.
    Unavailable {
        /// The name as it was given.
        name: String,
        /// What the server said, and what to do.
        message: String,
    },
    /// The list of ids cannot be read. Nothing was done.
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The query that chooses the documents cannot be carried out. Nothing was done.
    Query {
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// The file of flags cannot be opened, or it contains something other than flags. Nothing was done.
    Flags {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// Another process is writing the file of flags.
    FlagsLocked {
        /// The file.
        path: PathBuf,
    },
    /// The file of flags could not be read or written.
    FlagsFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Flags could not be written to an output that is not a file.
    Output(io::Error),
    /// There is no index in the given directory.
    NoIndex {
        /// The directory.
        path: PathBuf,
    },
    /// The index failed.
    Index(IndexError),
    /// A thread, or the runtime for requests to a bucket, could not be started.
    Start {
        /// What could not be started: `a thread`, `the runtime`.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A fingerprinting thread panicked, which is a bug in this crate.
    Panicked,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input { name, message } | Self::Unavailable { name, message } => {
                write!(f, "{name}: {message}")
            }
            Self::Manifest { path, message } => write!(f, "list of ids {}: {message}", path.display()),
            Self::Query { message } => write!(f, "query for ids: {message}"),
            Self::Flags { path, message } => write!(f, "flags {}: {message}", path.display()),
            Self::FlagsLocked { path } => write!(
                f,
                "flags {}: another process writes it; wait for its end, or name another file",
                path.display()
            ),
            Self::FlagsFile { path, source } => {
                write!(f, "writing the flags to {}: {source}", path.display())?;
                match huntsman_files::no_room(source) {
                    Some(_) => f.write_str("; make room, then run the same command again"),
                    None => Ok(()),
                }
            }
            Self::Output(source) => write!(f, "{source}"),
            Self::NoIndex { path } => write!(f, "{}: there is no index", path.display()),
            Self::Index(error) => write!(f, "index {error}"),
            Self::Start { what, source } => write!(f, "starting {what}: {source}"),
            Self::Panicked => f.write_str("a thread that fingerprints ended in a panic; please report it"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::FlagsFile { source, .. } | Self::Output(source) | Self::Start { source, .. } => {
                Some(source)
            }
            Self::Index(error) => Some(error),
            _ => None,
        }
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        Self::Index(error)
    }
}
