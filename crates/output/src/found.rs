//! Finds the state of a crawl on disk from any of the directories that belong to it, and locks it while it is
//! inspected.

use std::path::{Path, PathBuf};

use huntsman_files::Lock;

use crate::error::{Error, Result};
use crate::status::{STATUS, Status};
use crate::{JOB, LOCK};

/// The state of a crawl on disk.
#[derive(Debug)]
pub struct Found {
    /// The directory with the records, if it is known.
    pub out: Option<PathBuf>,
    /// Queue, seen set and the rest.
    pub job: PathBuf,
}

impl Found {
    /// Looks in a directory that was given to `--out`, in its subdirectory `state`, and in a job directory of a
    /// program.
    ///
    /// # Errors
    /// There is no state.
    pub fn of(dir: &Path) -> Result<Self> {
        const FORMAT_FILE: &str = "format.json";
        let is_job = |path: &Path| path.join(FORMAT_FILE).is_file();
        if is_job(&dir.join(JOB)) {
            return Ok(Self { out: Some(dir.to_owned()), job: dir.join(JOB) });
        }
        let in_state = dir.join("job");
        let job = match () {
            () if is_job(&in_state) => in_state,
            () if is_job(dir) => dir.to_owned(),
            () => return Err(Self::missing(dir)),
        };
        // The path has to be resolved first: `.` and links do not contain their parent directory in their names.
        let out = job.canonicalize().ok().and_then(|job| Some(job.parent()?.parent()?.to_owned()));
        Ok(Self { out: out.filter(|out| is_job(&out.join(JOB)) && out.join(STATUS).is_file()), job })
    }

    fn missing(dir: &Path) -> Error {
        let above = dir.join("..");
        let status = [dir, &above].into_iter().find_map(|dir| Status::read(dir).ok().flatten());
        match status {
            Some(status) if status.is_in_memory() => Error::StateLost { path: dir.to_owned() },
            _ => Error::NoState { path: dir.to_owned() },
        }
    }

    /// How far the crawl came according to its status file; `None` for the job of a program.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn status(&self) -> Result<Option<Status>> {
        self.out.as_deref().map_or(Ok(None), Status::read)
    }
}

/// A lock on an output directory: no crawl runs in it until this value is dropped.
#[derive(Debug)]
pub struct Hold {
    _lock: Lock,
}

impl Hold {
    /// Locks a directory.
    ///
    /// # Errors
    /// A crawl is using it, or it cannot be written.
    pub fn of(out: &Path) -> Result<Self> {
        let path = out.join(LOCK);
        let lock = huntsman_files::open_append(&path).map_err(|source| Error::Unwritable { path, source })?;
        // As for crawls, a file system without locks is accepted.
        let lock = Lock::exclusive_if_supported(lock);
        lock.map(|lock| Self { _lock: lock }).map_err(|_| Error::InUse { path: out.to_owned() })
    }
}
