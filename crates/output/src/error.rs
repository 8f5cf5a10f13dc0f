//! Why a directory cannot be used.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use huntsman_crawler::WorkName;
use huntsman_crawler::terminal::escape;

use crate::status::{Run, State};

/// Why a directory cannot be used for a run, or the run in it cannot be read. The message says what was found where; it does not name the
/// flags of a program, which adds what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The path is a file.
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory cannot be looked at.
    Inaccessible {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The directory cannot be made or written.
    Unwritable {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process is running in the directory.
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// Another process changed the directory after it was looked at.
    Changed {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has a file with a name that a run writes, but no status of a run.
    UnknownFile {
        /// The directory.
        path: PathBuf,
        /// The name of the file.
        name: &'static str,
    },
    /// The directory has another kind of run.
    OtherRun {
        /// The directory.
        path: PathBuf,
        /// The kind of run in it.
        found: Run,
        /// How far that run came.
        state: State,
        /// Its first start URL.
        seed_url: String,
        /// The kind of run that was asked for.
        wanted: Run,
    },
    /// The unfinished run in the directory had its queue in memory.
    QueueLost {
        /// The directory.
        path: PathBuf,
        /// The kind of run.
        run: Run,
    },
    /// The unfinished run in the directory has its queue in another store.
    OtherStore {
        /// The directory.
        path: PathBuf,
        /// The kind of run.
        run: Run,
        /// The name of its store.
        store: String,
    },
    /// The unfinished run in the directory is of a version that did not record how far its files are written.
    OldVersion {
        /// The directory.
        path: PathBuf,
        /// The kind of run.
        run: Run,
    },
    /// The status file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The status file was written by a newer version.
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// That version.
        version: String,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is no state of a crawl in the directory.
    NoState {
        /// The directory.
        path: PathBuf,
    },
    /// There is no state of a crawl in the directory, because its queue was in memory.
    StateLost {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no records to be collected.
    NoRecords {
        /// The directory.
        path: PathBuf,
    },
    /// The directory to collect into has records already.
    HoldsRecords {
        /// The directory.
        path: PathBuf,
        /// The name of their file.
        name: &'static str,
    },
    /// Two directories are of different crawls.
    OtherCrawl {
        /// A directory.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
        /// A request that has another address there.
        work: WorkName,
    },
    /// Lines cannot be sorted.
    Sorting(huntsman_disk::Error),
}

impl From<huntsman_disk::Error> for Error {
    fn from(source: huntsman_disk::Error) -> Self {
        Self::Sorting(source)
    }
}

/// Result of an operation on a directory.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether the caller named the wrong directory or the wrong kind of run, and nothing is damaged or in use.
    pub fn is_usage(&self) -> bool {
        !matches!(
            self,
            Self::InUse { .. }
                | Self::Changed { .. }
                | Self::Damaged { .. }
                | Self::NewerVersion { .. }
                | Self::Unreadable { .. }
                | Self::Sorting(_)
        )
    }
}

/// A path as it may be printed.
fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).into_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADirectory { path } => write!(f, "{}: it is a file; name a directory", shown(path)),
            Self::Inaccessible { path, source } => write!(f, "{}: {source}", shown(path)),
            Self::Unwritable { path, source } => write!(f, "{}: cannot be written: {source}", shown(path)),
            Self::InUse { path } => write!(f, "another huntsman crawls into {}", shown(path)),
            Self::Changed { path } => write!(f, "another huntsman worked in {} just now", shown(path)),
            Self::UnknownFile { path, name } => {
                write!(f, "{} holds a {name} without the state of its crawl", shown(path))
            }
            Self::OtherRun { path, found, state, seed_url, wanted } => {
                let state = if *state == State::Finished { "a finished" } else { "an unfinished" };
                let (found, wanted) = (found.name(), wanted.name());
                write!(
                    f,
                    "{} holds {state} {found} of {}, which is no {wanted}",
                    shown(path),
                    escape(seed_url)
                )
            }
            Self::QueueLost { path, run } => write!(
                f,
                "{} holds an unfinished {} whose queue was in memory and is gone, so it cannot go on",
                shown(path),
                run.name()
            ),
            Self::OtherStore { path, run, store } => {
                write!(
                    f,
                    "{} holds an unfinished {} with the store {}",
                    shown(path),
                    run.name(),
                    escape(store)
                )
            }
            Self::OldVersion { path, run } => write!(
                f,
                "{} holds an unfinished {} of an earlier version, which does not tell how far its files are written",
                shown(path),
                run.name()
            ),
            Self::Damaged { path, source } => write!(f, "the state in {} is damaged ({source})", shown(path)),
            Self::NewerVersion { path, version } => {
                write!(f, "the state in {} was written by a newer version, {}", shown(path), escape(version))
            }
            Self::Unreadable { path, source } => write!(f, "reading {}: {source}", shown(path)),
            Self::NoState { path } => write!(f, "{}: there is no state of a crawl", shown(path)),
            Self::StateLost { path } => {
                write!(f, "{}: its crawl had the queue in memory, so nothing of it is left", shown(path))
            }
            Self::NoRecords { path } => {
                write!(f, "{}: there are no records; name the directories of the nodes", shown(path))
            }
            Self::HoldsRecords { path, name } => {
                write!(f, "{} holds a {name} already; name a new directory", shown(path))
            }
            Self::OtherCrawl { one, other, work } => write!(
                f,
                "{} and {} are not of one crawl: the request {work} has another address there",
                shown(one),
                shown(other)
            ),
            Self::Sorting(source) => write!(f, "sorting the records: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Inaccessible { source, .. }
            | Self::Unwritable { source, .. }
            | Self::Unreadable { source, .. } => Some(source),
            Self::Damaged { source, .. } => Some(source),
            Self::Sorting(source) => Some(source),
            _ => None,
        }
    }
}
