//! An output directory that belongs to a run: taken, cleared, begun, finished or given up.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use url::Url;

use super::plan::{Start, Use};
use super::status::{STATUS, State, Status};
use super::{
    ARTICLES, LOCK, OWN_FILES, OWN_FOLDERS, PAIRS, REPORT, STATE, UNFINISHED, in_use, job_of, shown,
};
use crate::exit::{Failure, Outcome};

/// A directory that belongs to this run.
#[derive(Debug)]
pub(crate) struct OutputDir {
    path: PathBuf,
    /// Directories that did not exist before, outermost first.
    made: Vec<PathBuf>,
    resumes: bool,
    status: Status,
    /// Held until the end: a second run refuses the directory meanwhile.
    lock: File,
}

/// One change of a directory: it happens wholly or not at all, and a kill between two leaves what [`Plan::of`](super::Plan::of) can tell.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Changes what the status file says.
    Enter(State),
    /// Removes a file or a directory, if it is there.
    Remove(PathBuf),
}

impl Use {
    /// Makes the directory and takes it. A run that does not go on with an earlier one is [`State::Making`] until [`OutputDir::begin`].
    ///
    /// # Errors
    /// It cannot be written; what was made is taken away again. Or another process took it since it was looked at.
    pub(crate) fn create(self, seed: &Url, started: String) -> Outcome<OutputDir> {
        let made = missing(&self.path.join(STATE));
        let steps = self.steps();
        let mut dir = self.take(made, seed, started)?;
        match steps.into_iter().try_for_each(|step| dir.apply(step)) {
            Ok(()) => Ok(dir),
            Err(error) => {
                let failure = unwritable(&dir.path, &error);
                dir.discard();
                Err(failure)
            }
        }
    }

    /// Makes the directories and takes the lock; nothing in them is changed.
    pub(super) fn take(self, made: Vec<PathBuf>, seed: &Url, started: String) -> Outcome<OutputDir> {
        let lock = huntsman::files::create_dir_all(&self.path)
            .and_then(|()| huntsman::files::create_dir(self.path.join(STATE)))
            .and_then(|()| huntsman::files::open_append(self.path.join(LOCK)));
        let lock = lock.map_err(|error| {
            remove_made(&made);
            unwritable(&self.path, &error)
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&self.path)),
            // A file system without locks: two runs in one directory are then up to the user.
            Err(TryLockError::Error(_)) => {}
        }
        match Status::read(&self.path) {
            Ok(found) if found == self.seen => {}
            // A status that cannot be read, or could not be at first, is cleared with all else, if that was asked for.
            _ if self.seen.is_none() && self.start == Start::Cleared => {}
            Ok(_) => {
                return Err(Failure::crawl(format!(
                    "another huntsman worked in {} just now; give the command again",
                    shown(&self.path)
                )));
            }
            Err(failure) => return Err(failure),
        }
        let resumes = self.start == Start::Resumed;
        let status = match self.seen {
            Some(status) if resumes => status,
            _ => Status::new(self.run, seed, started, self.store),
        };
        Ok(OutputDir { path: self.path, made, resumes, status, lock })
    }

    /// What is to be done before the files of the run are made.
    pub(super) fn steps(&self) -> Vec<Step> {
        match self.start {
            Start::Resumed => Vec::new(),
            Start::Anew => vec![Step::Enter(State::Making)],
            Start::Cleared => {
                let mut steps = vec![Step::Enter(State::Clearing)];
                steps.extend(clearing(&self.path));
                steps.push(Step::Enter(State::Making));
                steps
            }
        }
    }
}

/// Removes all that a run makes, but the status and the lock.
fn clearing(path: &Path) -> impl Iterator<Item = Step> {
    let ours = OWN_FILES.iter().chain(&OWN_FOLDERS);
    let unfinished = OWN_FILES.iter().map(|name| format!("{name}{UNFINISHED}"));
    ours.map(|name| (*name).to_owned()).chain(unfinished).map(|name| Step::Remove(path.join(name)))
}

/// Takes all of a run away. The status goes last: what is left by a kill before is still known to be of no worth.
pub(super) fn discarding(path: &Path) -> impl Iterator<Item = Step> {
    clearing(path).chain([STATUS, LOCK].map(|name| Step::Remove(path.join(name))))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("--out {}: cannot be written: {error}", shown(path)))
}

impl OutputDir {
    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a further file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        huntsman::files::write(self.file(name), content)
    }

    /// Where the queue and the rest of the state live.
    pub(crate) fn job(&self) -> PathBuf {
        job_of(&self.path)
    }

    /// Where pairs of texts are kept for the report of a sweep.
    pub(crate) fn pairs(&self) -> PathBuf {
        self.path.join(PAIRS)
    }

    /// Where articles of a sweep wait for their check.
    pub(crate) fn articles(&self) -> PathBuf {
        self.path.join(ARTICLES)
    }

    /// All files of the run are made: from here on they count, and a run that is killed goes on.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.enter(State::Running)
    }

    /// Writes the report, and how the run ended. Whatever else the run writes must be there before.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub(crate) fn finish(&mut self, state: State, reason: &str, pages: u64, report: &[u8]) -> io::Result<()> {
        self.write(REPORT, report)?;
        self.status.finish_reason = Some(reason.to_owned());
        self.status.pages = pages;
        self.enter(state)?;
        if state == State::Finished {
            // No article waits any more; files of the last ones may be left.
            let _ = huntsman::files::remove_any(self.articles());
        }
        Ok(())
    }

    /// Takes the directory away again: the run did not start. One that was to go on stays as it was.
    pub(crate) fn discard(mut self) {
        if self.resumes {
            return;
        }
        if discarding(&self.path.clone()).try_for_each(|step| self.apply(step)).is_ok() {
            remove_made(&self.made);
        }
        drop(self.lock);
    }

    fn enter(&mut self, state: State) -> io::Result<()> {
        self.status.state = state;
        self.status.write(&self.path)
    }

    pub(super) fn apply(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Enter(state) => self.enter(state),
            Step::Remove(path) => huntsman::files::remove_any(path).map(|_| ()),
        }
    }
}

/// The directories on the way to a path that are not there, outermost first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let mut missing: Vec<_> = path.ancestors().take_while(missing).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Innermost first; a directory that is not empty stays.
fn remove_made(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let _ = huntsman::files::remove_dir(path);
    }
}

pub(super) fn is_locked(path: &Path) -> bool {
    let open = File::open(path.join(LOCK));
    open.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
