//! The folder of a browser: private, and removed also after its owner was killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use crate::Error;

/// What the names of the folders begin with.
const PREFIX: &str = "huntsman-browser-";
/// A file that the owner of a folder keeps locked.
const LOCK: &str = "owner.lock";

/// A folder in which each process of a browser has a profile.
#[derive(Debug)]
pub(crate) struct Profiles {
    folder: TempDir,
    made: AtomicU64,
    _lock: File,
}

impl Profiles {
    /// Makes the folder in another, and removes there those of owners that are gone.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Self, Error> {
        remove_left(parent);
        let parent = in_folder(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent);
        let folder = folder.map_err(Error::io("making a folder for the browser"))?;
        let lock = lock(folder.path()).map_err(Error::io("locking the folder of the browser"))?;
        Ok(Self { folder, made: AtomicU64::new(0), _lock: lock })
    }

    /// A new folder for the profile of a process.
    pub(crate) fn next(&self) -> Result<PathBuf, Error> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(number.to_string());
        huntsman_files::create_dir(&path).map_err(Error::io("making a folder for the browser"))?;
        Ok(path)
    }
}

/// The folder in which those of browsers are.
fn in_folder(parent: Option<&Path>) -> PathBuf {
    parent.map_or_else(std::env::temp_dir, Path::to_owned)
}

/// Locks a folder. The lock has its name only when it is held, so that nobody finds it free before.
fn lock(folder: &Path) -> io::Result<File> {
    let new = folder.join("owner.new");
    let lock = huntsman_files::create_new(&new)?;
    lock.lock()?;
    huntsman_files::rename(new, folder.join(LOCK))?;
    Ok(lock)
}

/// Removes folders of owners that are gone. What cannot be removed is left for another time.
pub(crate) fn remove_left(parent: Option<&Path>) {
    let Ok(entries) = fs::read_dir(in_folder(parent)) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_left(&entry.path()) {
            let removed = remove_with_lock(&entry.path());
            tracing::debug!(folder = %entry.path().display(), ?removed, "a browser left this folder");
        }
    }
}

/// Removes a folder whose owner is gone, its lock last: a browser that is still ending may write into it, and without the lock nobody would try again.
fn remove_with_lock(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.ends_with(LOCK) {
            huntsman_files::remove_any(path)?;
        }
    }
    huntsman_files::remove_dir_all(folder)
}

/// Whether nobody holds the lock of a folder. Without a lock it is one that is being made, or another user's.
fn is_left(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

/// Removes a folder. A process that was just killed may still be writing into it, so it is tried some times.
pub(crate) fn remove(folder: &Path) {
    const TIMES: usize = 5;
    for _ in 0..TIMES {
        if huntsman_files::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
    }
}
