//! One storage for all crawls of a process that name the same directory.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};

use huntsman_crawler::{Error, Result, log};

use super::storage::Storage;

/// A storage, open until its last owner is gone.
#[derive(Debug)]
pub(crate) struct Shared {
    /// `None` while it is being closed.
    storage: Option<Storage>,
    path: PathBuf,
}

type OpenCaches = HashMap<PathBuf, Weak<Shared>>;

/// The storages of this process, by directory; a storage that is being closed is listed until its directory is free.
static OPEN: LazyLock<(Mutex<OpenCaches>, Condvar)> = LazyLock::new(Default::default);

impl Shared {
    /// Opens a storage, or shares one that is open: what was stored before this call is found. The lowest bound of all
    /// its users applies.
    pub(crate) fn open(directory: &str, max_bytes: u64) -> Result<Arc<Self>> {
        let path = Self::create(Path::new(directory)).map_err(|error| {
            Error::from(error)
                .context(format!("making the HTTP cache (setting httpcache_dir) in {directory}"))
        })?;
        let (open, closed) = &*OPEN;
        let mut all = open.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = loop {
            match all.get(&path).map(Weak::upgrade) {
                Some(Some(shared)) => break shared,
                Some(None) => all = closed.wait(all).unwrap_or_else(PoisonError::into_inner),
                None => {
                    let shared = Arc::new(Self { storage: Some(Storage::open(&path)?), path: path.clone() });
                    all.insert(path, Arc::downgrade(&shared));
                    break shared;
                }
            }
        };
        drop(all);
        // An earlier crawl whose report still keeps the storage open may have writes in the queue.
        if let Err(error) = shared.flush() {
            // The storage has failed before, and stores nothing more; what it has is still used.
            log::debug!("the HTTP cache in {directory} was not flushed: {error}");
        }
        shared.set_max_bytes(max_bytes);
        Ok(shared)
    }

    /// Creates a directory and returns its canonical name.
    fn create(directory: &Path) -> std::io::Result<PathBuf> {
        huntsman_files::create_dir_all(directory)?;
        directory.canonicalize()
    }
}

impl Deref for Shared {
    type Target = Storage;

    fn deref(&self) -> &Storage {
        self.storage.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.storage.take());
        let (open, closed) = &*OPEN;
        open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
        closed.notify_all();
    }
}
