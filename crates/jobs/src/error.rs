//! Why a daemon does not start, and why it refuses an order.

use std::path::PathBuf;
use std::{fmt, io};

/// Why a daemon does not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is wrong.
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong in it, and where.
        why: String,
    },
    /// A project or a line of cron of the configuration cannot be used.
    Unusable(String),
    /// A file or a directory cannot be read or written.
    File {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another daemon uses the directory.
    InUse(PathBuf),
    /// The file with the queue and the history is not one that this version can read.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The port cannot be bound.
    Port(u16, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Unusable(why) => f.write_str(why),
            Self::File { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            Self::InUse(path) => {
                write!(f, "{}: another daemon uses this directory; give this one its own", path.display())
            }
            Self::Damaged { path, why } => write!(
                f,
                "{}: {why}; use the version that wrote it, or move the file away to begin with an empty queue",
                path.display()
            ),
            Self::Port(port, error) => {
                write!(f, "port {port}: {error}; name another port, or 0 for a free one")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            Self::Port(_, error) => Some(error),
            Self::Config { .. } | Self::Unusable(_) | Self::InUse(_) | Self::Damaged { .. } => None,
        }
    }
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The order is wrong.
    Wrong(String),
    /// There is no such project, spider or job.
    Unknown(String),
    /// The daemon cannot do it now.
    NotNow(String),
    /// The disk fails, or a program of a project does.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Wrong(why) | Self::Unknown(why) | Self::NotNow(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}
