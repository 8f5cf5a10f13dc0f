//! The folder of a browser: private, and removed also after its owner was killed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use huntsman_files::Lock;
use tempfile::TempDir;

use crate::{Error, processes};

/// What the names of the folders begin with.
const PREFIX: &str = "huntsman-browser-";
/// A file that the owner of a folder keeps locked. It is the first one in the folder, and the last one that is removed.
const LOCK: &str = "owner.lock";

/// A folder in which each process of a browser has a profile.
#[derive(Debug)]
pub(crate) struct Profiles {
    folder: TempDir,
    made: AtomicU64,
    _lock: Lock,
}

impl Profiles {
    /// Makes the folder in another, and removes there those of owners that are gone.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Self, Error> {
        remove_left(parent);
        let parent = in_folder(parent);
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent);
            let folder = folder.map_err(Error::io("making a folder for the browser"))?;
            match lock(folder.path()) {
                Ok(lock) => return Ok(Self { folder, made: AtomicU64::new(0), _lock: lock }),
                // Until it was locked, another program took it for one that was left, and removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound && parent.is_dir() => {}
                Err(error) => return Err(Error::io("locking the folder of the browser")(error)),
            }
        }
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

/// Locks a new folder.
fn lock(folder: &Path) -> io::Result<Lock> {
    let path = folder.join(LOCK);
    let lock = Lock::wait(huntsman_files::create_new(&path)?)?;
    // What removes a folder holds the lock meanwhile.
    fs::metadata(path)?;
    Ok(lock)
}

/// Removes folders of owners that are gone, with the browsers that still run in them. What cannot be removed is left for another time.
pub(crate) fn remove_left(parent: Option<&Path>) {
    let Ok(entries) = fs::read_dir(in_folder(parent)) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match remove_if_left(&entry.path()) {
                Ok(false) => {}
                removed => {
                    tracing::debug!(folder = %entry.path().display(), ?removed, "a browser left this folder");
                }
            }
        }
    }
}

/// Removes a folder unless a process holds its lock, and returns whether it did. The lock goes last: without it, an empty folder may be one that is being made.
fn remove_if_left(folder: &Path) -> io::Result<bool> {
    let lock = match File::open(folder.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return remove_without_lock(folder),
        // It may be another user's.
        Err(_) => return Ok(false),
    };
    let Ok(_lock) = Lock::exclusive(lock) else { return Ok(false) };
    end_browsers(folder);
    for path in entries(folder)? {
        if !path.ends_with(LOCK) {
            huntsman_files::remove_any(path)?;
        }
    }
    huntsman_files::remove_dir_all(folder)?;
    Ok(true)
}

/// Removes a folder that has no lock: its owner was killed before it made one, or what removed it was killed.
fn remove_without_lock(folder: &Path) -> io::Result<bool> {
    let entries = entries(folder)?;
    if entries.iter().any(|path| path.ends_with(LOCK)) {
        return Ok(false);
    }
    match entries.is_empty() {
        // If it gets its lock now, it is not empty, and stays.
        true => huntsman_files::remove_dir(folder)?,
        false => huntsman_files::remove_dir_all(folder)?,
    }
    Ok(true)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Ends browsers whose owner is gone. They end by themselves, but one that has just started would write into the folder meanwhile.
fn end_browsers(folder: &Path) {
    const TIMES: usize = 100;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..TIMES {
        let left = processes::with_profile_in(folder);
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(processes::kill_group);
        std::thread::sleep(PAUSE);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<PathBuf> {
        entries(parent).unwrap()
    }

    #[test]
    fn what_an_owner_left_goes_at_whatever_moment_it_was_killed_and_what_is_used_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = Profiles::make(Some(parent.path())).unwrap();
        let left = |name: &str| {
            let path = parent.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&path).unwrap();
            path
        };
        // Before there was a lock, with a lock alone and with a profile, and after a process began to remove it.
        left("new");
        fs::write(left("locked").join(LOCK), "").unwrap();
        let whole = left("whole");
        fs::write(whole.join(LOCK), "").unwrap();
        fs::create_dir(whole.join("0")).unwrap();
        fs::create_dir(left("half").join("0")).unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        remove_left(Some(parent.path()));
        let mut stays = names(parent.path());
        stays.sort();
        assert_eq!(stays, [used.folder.path().to_owned(), other]);
        assert!(used.next().unwrap().is_dir());
    }

    #[test]
    fn folders_that_are_being_made_are_not_taken_from_their_owners() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let own = Profiles::make(Some(parent.path())).unwrap();
                        remove_left(Some(parent.path()));
                        assert!(own.next().unwrap().is_dir());
                    }
                });
            }
        });
        // Of two that remove the same folder, one may meet what the other is at.
        remove_left(Some(parent.path()));
        assert!(names(parent.path()).is_empty());
    }
}
