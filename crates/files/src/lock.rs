//! Locks of files, by which a process keeps others away from what it works on.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};

/// An open file that is locked until this value is dropped, or the process ends in any way.
///
/// The lock is released before the file is closed. To close it would not be enough: a child process that another thread is starting has the
/// file open, too, until its program begins, and the lock would be refused until then.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("lock");
/// let lock = huntsman_files::Lock::exclusive(huntsman_files::open_write(&path)?);
/// assert!(huntsman_files::Lock::shared(std::fs::File::open(&path)?).is_err());
/// drop(lock);
/// assert!(huntsman_files::Lock::shared(std::fs::File::open(&path)?).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lock(File);

/// A file that could not be locked.
#[derive(Debug)]
pub struct LockRefused {
    /// The file, without a lock.
    pub file: File,
    /// Whether another process, or this one, has a lock already, or the file system has no locks.
    pub cause: TryLockError,
}

impl LockRefused {
    /// Whether another process, or this one, has a lock that excludes the one that was asked for.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.cause, TryLockError::WouldBlock)
    }

    fn unless_held(self) -> Result<Lock, Self> {
        if self.is_held() { Err(self) } else { Ok(Lock(self.file)) }
    }
}

impl From<LockRefused> for io::Error {
    fn from(refused: LockRefused) -> Self {
        refused.cause.into()
    }
}

impl Lock {
    /// Takes the lock that excludes all others, without waiting.
    ///
    /// # Errors
    /// The file has a lock already, or its file system has no locks.
    pub fn exclusive(file: File) -> Result<Self, LockRefused> {
        let taken = file.try_lock();
        Self::taken(file, taken)
    }

    /// [`exclusive`](Self::exclusive), or no lock where the file system has none.
    ///
    /// # Errors
    /// The file has a lock already.
    pub fn exclusive_if_supported(file: File) -> Result<Self, LockRefused> {
        Self::exclusive(file).or_else(LockRefused::unless_held)
    }

    /// Takes a lock that excludes exclusive ones, without waiting.
    ///
    /// # Errors
    /// The file has an exclusive lock, or its file system has no locks.
    pub fn shared(file: File) -> Result<Self, LockRefused> {
        let taken = file.try_lock_shared();
        Self::taken(file, taken)
    }

    fn taken(file: File, taken: Result<(), TryLockError>) -> Result<Self, LockRefused> {
        match taken {
            Ok(()) => Ok(Self(file)),
            Err(cause) => Err(LockRefused { file, cause }),
        }
    }

    /// [`shared`](Self::shared), or no lock where the file system has none.
    ///
    /// # Errors
    /// The file has an exclusive lock.
    pub fn shared_if_supported(file: File) -> Result<Self, LockRefused> {
        Self::shared(file).or_else(LockRefused::unless_held)
    }

    /// Waits until no other lock is left, and takes the one that excludes all others.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn wait(file: File) -> io::Result<Self> {
        file.lock()?;
        Ok(Self(file))
    }

    /// A file without a lock, for code that keeps locked ones.
    #[must_use]
    pub fn without(file: File) -> Self {
        Self(file)
    }
}

impl Deref for Lock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Lock {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If that fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_lock_that_was_dropped_is_free_while_other_threads_start_processes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let program = std::env::current_exe().unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        let started = Command::new(&program).args(["--exact", "no such test"]).output();
                        started.expect("a process starts");
                    }
                });
            }
            let refused = (0..20_000).filter(|round| {
                let file = crate::open_write(&path).unwrap();
                let lock = if round % 2 == 0 { Lock::exclusive(file) } else { Lock::shared(file) };
                lock.is_err()
            });
            let refused = refused.count();
            is_done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }
}
