//! Decides what a command may do with a directory before it does anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use huntsman_crawler::Backend;

use crate::directory::is_locked;
use crate::error::{Error, Result};
use crate::status::{Run, State, Status};
use crate::{OWN_FILES, OWN_FOLDERS};

/// What may happen to the files of an earlier run in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRun {
    /// The run continues where the earlier one ended; a finished run is left alone.
    Continue,
    /// They are deleted, and the run starts anew.
    Delete,
}

impl EarlierRun {
    /// `Delete` if a run has to start anew (`--fresh`), else `Continue`.
    pub fn of(fresh: bool) -> Self {
        if fresh { Self::Delete } else { Self::Continue }
    }
}

/// What a command may do with a directory.
#[derive(Debug)]
pub enum Plan {
    /// The directory can be created or used.
    Use(Use),
    /// The run in it is finished.
    Finished(Status),
}

/// A directory that a run may use.
#[derive(Debug)]
pub struct Use {
    pub(super) path: PathBuf,
    pub(super) start: Start,
    pub(super) run: Run,
    pub(super) store: Backend,
    /// The status file when it was first read; it must be the same when the directory is locked.
    pub(super) seen: Option<Status>,
}

/// How a run starts in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// There are no files of ours.
    New,
    /// All our files are deleted first.
    Cleared,
    /// The run continues where the last one ended.
    Resumed,
}

impl Use {
    /// Whether the run continues an earlier one.
    pub fn continues(&self) -> bool {
        self.start == Start::Resumed
    }
}

impl Plan {
    /// Looks at a directory; changes nothing. `earlier` says what may happen to the files of an earlier run, and `store` keeps the queue.
    ///
    /// # Errors
    /// The path is no directory, another process is using it, it holds something that this run may not overwrite, or
    /// its run can only be continued by another command or store.
    pub fn of(path: &Path, earlier: EarlierRun, run: Run, store: Backend) -> Result<Self> {
        let planned = |start, seen| Ok(Self::Use(Use { path: path.to_owned(), start, run, store, seen }));
        match fs::metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Error::NotADirectory { path: path.to_owned() });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return planned(Start::New, None),
            Err(source) => return Err(Error::Inaccessible { path: path.to_owned(), source }),
        }
        if is_locked(path) {
            return Err(Error::InUse { path: path.to_owned() });
        }
        if earlier == EarlierRun::Delete {
            return planned(Start::Cleared, Status::read(path).ok().flatten());
        }
        let Some(status) = Status::read(path)? else {
            let ours = OWN_FILES.iter().chain(&OWN_FOLDERS).find(|name| path.join(name).exists());
            return match ours {
                None => planned(Start::New, None),
                Some(name) => Err(Error::UnknownFile { path: path.to_owned(), name }),
            };
        };
        match status.state {
            State::Making | State::Clearing | State::Failed => planned(Start::Cleared, Some(status)),
            _ if status.run() != run => Err(Error::OtherRun {
                path: path.to_owned(),
                found: status.run(),
                state: status.state,
                seed_url: status.seed_url,
                wanted: run,
            }),
            State::Finished => Ok(Self::Finished(status)),
            State::Running | State::Interrupted => {
                may_go_on(path, &status, store)?;
                planned(Start::Resumed, Some(status))
            }
        }
    }
}

/// Checks whether an unfinished run can be continued with this store.
fn may_go_on(path: &Path, status: &Status, store: Backend) -> Result<()> {
    let (path, run) = (path.to_owned(), status.run());
    if status.is_in_memory() {
        return Err(Error::QueueLost { path, run });
    }
    if status.store != store.name() {
        return Err(Error::OtherStore { path, run, store: status.store.clone() });
    }
    if !status.can_go_on() {
        return Err(Error::OldVersion { path, run });
    }
    Ok(())
}
