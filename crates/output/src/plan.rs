//! Decides what a command may do with a directory before it does anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Backend, Error, Result};

use crate::directory::is_locked;
use crate::render::counted;
use crate::status::{Run, State, Status};
use crate::{OWN_FILES, OWN_FOLDERS, in_use, shown};

/// What a command may do with a directory.
#[derive(Debug)]
pub enum Plan {
    /// The directory can be created or used.
    Use(Use),
    /// The run in it is finished; the sentence says so.
    Finished(String),
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

impl Plan {
    /// Looks at a directory; changes nothing. With `fresh`, the files of an earlier run may be deleted; otherwise its run is continued. `store`
    /// is that of the queue.
    ///
    /// # Errors
    /// The path is no directory, another process is using it, it holds something that this run may not overwrite, or
    /// its run can only be continued by another command or store.
    pub fn of(path: &Path, fresh: bool, run: Run, store: Backend) -> Result<Self> {
        let planned = |start, seen| Ok(Self::Use(Use { path: path.to_owned(), start, run, store, seen }));
        match fs::metadata(path) {
            Ok(meta) if !meta.is_dir() => {
                return Err(Error::usage(format!("--out {}: it is a file; name a directory", shown(path))));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return planned(Start::New, None),
            Err(error) => return Err(Error::usage(format!("--out {}: {error}", shown(path)))),
        }
        if is_locked(path) {
            return Err(in_use(path));
        }
        if fresh {
            return planned(Start::Cleared, Status::read(path).ok().flatten());
        }
        let Some(status) = Status::read(path)? else {
            let ours = OWN_FILES.iter().chain(&OWN_FOLDERS).find(|name| path.join(name).exists());
            return match ours {
                None => planned(Start::New, None),
                Some(name) => Err(Error::usage(format!(
                    "{} holds a {name} without the state of its crawl; \
                     name another directory with --out, or overwrite it with --fresh",
                    shown(path)
                ))),
            };
        };
        match status.state {
            State::Making | State::Clearing | State::Failed => planned(Start::Cleared, Some(status)),
            _ if status.run() != run => Err(another_run(path, &status, run)),
            State::Finished => Ok(Self::Finished(finished(path, &status))),
            State::Running | State::Interrupted => {
                may_go_on(path, &status, store)?;
                planned(Start::Resumed, Some(status))
            }
        }
    }
}

fn finished(path: &Path, status: &Status) -> String {
    format!(
        "{} holds a finished {} of {}: {}, ended as {}. Nothing to do; --fresh crawls anew.",
        shown(path),
        status.run().name(),
        escape(&status.seed_url),
        counted(status.pages, "page"),
        escape(status.finish_reason.as_deref().unwrap_or("finished"))
    )
}

fn another_run(path: &Path, status: &Status, run: Run) -> Error {
    let found = status.run().name();
    let (state, go_on) = match status.state {
        State::Finished => ("a finished", String::new()),
        _ => ("an unfinished", format!("go on with it by `huntsman {found}`, ")),
    };
    Error::usage(format!(
        "{} holds {state} {found} of {}, which is no {}: {go_on}name another directory with --out, or start anew with --fresh, \
         which deletes it",
        shown(path),
        escape(&status.seed_url),
        run.name()
    ))
}

/// Checks whether an unfinished run can be continued with this store.
fn may_go_on(path: &Path, status: &Status, store: Backend) -> Result<()> {
    let run = status.run().name();
    if status.is_in_memory() {
        return Err(Error::usage(format!(
            "{} holds an unfinished {run} whose queue was in memory and is gone, so it cannot go on; \
             --fresh deletes its files and starts anew",
            shown(path)
        )));
    }
    if status.store != store.name() {
        return Err(Error::usage(format!(
            "{} holds an unfinished {run} with --store {}; go on with that, or start anew with --fresh",
            shown(path),
            escape(&status.store)
        )));
    }
    if !status.can_go_on() {
        return Err(Error::usage(format!(
            "{} holds an unfinished {run} of an earlier version, which does not tell how far its files are written; \
             finish it with that version, or start anew with --fresh",
            shown(path)
        )));
    }
    Ok(())
}
