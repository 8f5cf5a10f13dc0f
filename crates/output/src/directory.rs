//! An output directory that belongs to a run: it is locked, cleared, begun, and finished or discarded.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use huntsman_crawler::Backend;
use huntsman_files::Lock;
use url::Url;

use crate::error::{Error, Result};
use crate::plan::{Start, Use};
use crate::status::{STATUS, State, Status};
use crate::{
    ARTICLES, AUDIT_EXPORTS, LOCK, OWN_FILES, OWN_FOLDERS, PAIRS, REPORT, STATE, UNFINISHED, job_of,
};

/// A directory that belongs to this run. It is locked until this value is dropped: another run in it is refused.
#[derive(Debug)]
pub struct OutputDir {
    path: PathBuf,
    /// Directories that were created for this run, outermost first.
    made: Vec<PathBuf>,
    resumes: bool,
    store: Backend,
    status: Status,
    /// Held until the end: a second run refuses the directory while it is locked.
    lock: Lock,
}

/// One change of a directory. It happens entirely or not at all, and after a kill between two changes
/// [`Plan::of`](crate::Plan::of) can tell the state.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Sets the state in the status file.
    Enter(State),
    /// Removes a file or a directory, if it exists.
    Remove(PathBuf),
}

impl Use {
    /// Creates the directory and locks it. A run that does not continue an earlier one is in the state
    /// [`State::Making`] until [`OutputDir::begin`]. `seed` is the first start URL, and `started` the present time in RFC 3339; both are
    /// recorded in the status file.
    ///
    /// # Errors
    /// The directory cannot be written; then everything that was created is removed again. Or another process locked
    /// it since it was looked at.
    pub fn create(self, seed: &Url, started: String) -> Result<OutputDir> {
        let made = missing(&self.path.join(STATE));
        let steps = self.steps();
        let mut dir = self.take(made, seed, started)?;
        match steps.into_iter().try_for_each(|step| dir.apply(step)) {
            Ok(()) => Ok(dir),
            Err(error) => {
                let path = dir.path.clone();
                dir.discard();
                Err(Error::Unwritable { path, source: error })
            }
        }
    }

    /// Creates the directories and takes the lock; nothing in them is changed.
    pub(super) fn take(self, made: Vec<PathBuf>, seed: &Url, started: String) -> Result<OutputDir> {
        let lock = huntsman_files::create_dir_all(&self.path)
            .and_then(|()| huntsman_files::create_dir(self.path.join(STATE)))
            .and_then(|()| huntsman_files::open_append(self.path.join(LOCK)));
        let lock = lock.map_err(|error| {
            remove_made(&made);
            Error::Unwritable { path: self.path.clone(), source: error }
        })?;
        // Where the file system has no locks, the user has to make sure that no two runs use one directory.
        let Ok(lock) = Lock::exclusive_if_supported(lock) else {
            return Err(Error::InUse { path: self.path });
        };
        match Status::read(&self.path) {
            Ok(found) if found == self.seen => {}
            // If the user asked for clearing, a status file that cannot be read, or could not be read at first, is
            // deleted with everything else.
            _ if self.seen.is_none() && self.start == Start::Cleared => {}
            Ok(_) => {
                return Err(Error::Changed { path: self.path });
            }
            Err(error) => return Err(error),
        }
        let resumes = self.start == Start::Resumed;
        let store = self.store;
        let status = match self.seen {
            Some(status) if resumes => status,
            _ => Status::new(self.run, seed, started, store),
        };
        Ok(OutputDir { path: self.path, made, resumes, store, status, lock })
    }

    /// The steps to do before the files of the run are created.
    pub(super) fn steps(&self) -> Vec<Step> {
        match self.start {
            Start::Resumed => Vec::new(),
            Start::New => vec![Step::Enter(State::Making)],
            Start::Cleared => {
                let mut steps = vec![Step::Enter(State::Clearing)];
                steps.extend(clearing(&self.path));
                steps.push(Step::Enter(State::Making));
                steps
            }
        }
    }
}

/// Steps that remove everything that a run creates, except the status and the lock.
fn clearing(path: &Path) -> impl Iterator<Item = Step> {
    let ours = OWN_FILES.iter().chain(&AUDIT_EXPORTS).chain(&OWN_FOLDERS);
    let unfinished = OWN_FILES.iter().map(|name| format!("{name}{UNFINISHED}"));
    ours.map(|name| (*name).to_owned()).chain(unfinished).map(|name| Step::Remove(path.join(name)))
}

/// Steps that remove everything of a run. The status goes last, so that files left by a kill in between are still
/// known to be worthless.
pub(super) fn discarding(path: &Path) -> impl Iterator<Item = Step> {
    clearing(path).chain([STATUS, LOCK].map(|name| Step::Remove(path.join(name))))
}

impl OutputDir {
    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The store of the run's queue.
    pub fn store(&self) -> Backend {
        self.store
    }

    /// When the run started, in RFC 3339; a run that goes on keeps the time of its first start.
    pub fn started(&self) -> &str {
        &self.status.started
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a further file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        huntsman_files::write(self.file(name), content)
    }

    /// The directory of the queue and the rest of the state.
    pub fn job(&self) -> PathBuf {
        job_of(&self.path)
    }

    /// The directory of the pairs of texts for the report of a sweep.
    pub fn pairs(&self) -> PathBuf {
        self.path.join(PAIRS)
    }

    /// The directory of the articles of a sweep that wait to be checked.
    pub fn articles(&self) -> PathBuf {
        self.path.join(ARTICLES)
    }

    /// Marks that all files of the run are created: from here on they count, and a run that is killed can be
    /// continued.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn begin(&mut self) -> io::Result<()> {
        self.enter(State::Running)
    }

    /// Writes the report and how the run ended: the content of `report.json`, the reason, and the number of pages. All other files of the
    /// run must be written before.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn finish(&mut self, state: State, reason: &str, pages: u64, report: &[u8]) -> io::Result<()> {
        self.write(REPORT, report)?;
        self.status.finish_reason = Some(reason.to_owned());
        self.status.pages = pages;
        self.enter(state)?;
        if state == State::Finished {
            // No article waits any more; files of the last ones may be left.
            let _ = huntsman_files::remove_any(self.articles());
        }
        Ok(())
    }

    /// Removes the directory again because the run did not start. If it was to continue an earlier run, the directory
    /// stays as it was.
    pub fn discard(mut self) {
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
            Step::Remove(path) => huntsman_files::remove_any(path).map(|_| ()),
        }
    }
}

/// The directories on the way to a path that do not exist, outermost first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let mut missing: Vec<_> = path.ancestors().take_while(missing).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes directories, innermost first; a directory that is not empty stays.
fn remove_made(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let _ = huntsman_files::remove_dir(path);
    }
}

pub(super) fn is_locked(path: &Path) -> bool {
    let open = File::open(path.join(LOCK));
    open.is_ok_and(|file| Lock::shared_if_supported(file).is_err())
}
