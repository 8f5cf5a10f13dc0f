//! The directory of a job: locked, versioned, with one store in it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_files::{self as files, Lock};
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, DEFAULT_CACHE_BYTES};
use crate::error::{START_ANEW, StoreError, StoreErrorKind};
use crate::memory::MemoryStore;
use crate::store::{Batch, Durability, Store};

/// The directory format that this version writes; it reads this and all earlier ones.
pub const FORMAT: u32 = 1;

const LOCK_FILE: &str = "lock";
const FORMAT_FILE: &str = "format.json";
/// Suffix of the name of a file that is incomplete; such a file can be deleted.
const UNFINISHED: &str = ".new";
/// Maximum size of a store that is compacted in the time that a stopping crawl has; 230 MB took 3 to 6 s.
const QUICKLY_COMPACTED: u64 = 128 << 20;
/// Maximum size of a format file; a real one has a few tens of bytes.
const MAX_FORMAT_FILE: u64 = 64 << 10;

/// A job's directory, locked by this process, and the store in it.
///
/// | file | content |
/// |---|---|
/// | `lock` | locked while a process works on the job; the system unlocks it when that process dies, however it dies |
/// | `format.json` | `{"format":1,"store":"redb"}` |
/// | `store.redb`, `store.sled/` | the entries, by [`Backend`] |
///
/// A job is never silently restarted: if the format file names a store, that store must exist and be complete. A
/// directory whose process died while creating it counts as new. The lock is held until the directory and every clone
/// of its store are dropped.
#[derive(Debug)]
pub struct JobDirectory {
    path: PathBuf,
    backend: Backend,
    format: u32,
    is_new: bool,
    store: Arc<LockedStore>,
}

/// `format.json`. Unknown fields of a later version are ignored as long as the format number is the same.
#[derive(Debug, Serialize, Deserialize)]
struct Format {
    format: u32,
    store: String,
}

impl JobDirectory {
    /// Opens the directory of a job, or creates it, with a cache of [`DEFAULT_CACHE_BYTES`].
    ///
    /// # Errors
    /// - [`Locked`](StoreErrorKind::Locked): another process uses it.
    /// - [`Damaged`](StoreErrorKind::Damaged): a file is missing, truncated or corrupt.
    /// - [`Format`](StoreErrorKind::Format): it was written by a newer version or with another backend, or this build
    ///   lacks the backend.
    /// - [`Full`](StoreErrorKind::Full), [`Io`](StoreErrorKind::Io): the disk is full, or fails otherwise.
    pub fn open(path: impl AsRef<Path>, backend: Backend) -> Result<Self, StoreError> {
        Self::open_with_cache(path, backend, DEFAULT_CACHE_BYTES)
    }

    /// As [`open`](Self::open), with a cache of about `cache_bytes` at most.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_cache(
        path: impl AsRef<Path>,
        backend: Backend,
        cache_bytes: usize,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref();
        require_compiled_in(path, backend)?;
        files::create_dir_all(path).map_err(|e| StoreError::io("making the directory", e).at(path))?;
        let lock = locked(path)?;
        let (store, format): (Box<dyn Store>, u32) = match format_of(path)? {
            Some((found, _)) if found != backend => return Err(other_backend(path, found, backend)),
            Some((_, format)) => (open_store(path, backend, cache_bytes)?, format),
            None => (make_store(path, backend, cache_bytes)?, FORMAT),
        };
        let is_new = is_empty(&*store)?;
        let store = Arc::new(LockedStore { store, _lock: Some(lock) });
        Ok(Self { path: path.to_owned(), backend, format, is_new, store })
    }

    /// Opens an existing directory for reading: any number of processes at once, as long as none writes. Nothing is
    /// created.
    ///
    /// A store whose process was killed is first restored to its last commit, which needs exclusive access for a
    /// moment; a store on sled needs it for the whole time. While the directory is open for reading, no process can
    /// open it for writing.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Io`](StoreErrorKind::Io) if there is no job. Writes to its store fail.
    pub fn open_read_only(path: impl AsRef<Path>, cache_bytes: usize) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let Some((backend, format)) = format_of(path)? else {
            return Err(
                StoreError::new(StoreErrorKind::Io, "there is no stored state in this directory").at(path)
            );
        };
        require_compiled_in(path, backend)?;
        let (store, lock) = open_to_read(path, backend, cache_bytes)?;
        let is_new = is_empty(&*store)?;
        let store = Arc::new(LockedStore { store, _lock: lock });
        Ok(Self { path: path.to_owned(), backend, format, is_new, store })
    }

    /// The backend of the job in a directory; `None` if there is no job.
    ///
    /// # Errors
    /// As [`open`](Self::open): the job was written by a newer version, or its format file is damaged.
    pub fn backend_of(path: impl AsRef<Path>) -> Result<Option<Backend>, StoreError> {
        Ok(format_of(path.as_ref())?.map(|(backend, _)| backend))
    }

    /// Whether the store was empty when it was opened, that is, the job has not begun.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The store; it stays usable, and the directory locked, as long as a clone of it exists.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as _
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The backend of the store.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The format of the directory, at most [`FORMAT`].
    pub fn format(&self) -> u32 {
        self.format
    }

    /// Closes the store, and compacts its file if that is quick: if it has at most 128 MiB.
    ///
    /// Dropping closes it, too. Space that is not returned to the disk is reused by the next run.
    ///
    /// # Errors
    /// The disk fails; everything that was written is stored.
    pub fn close(mut self) -> Result<(), StoreError> {
        let file = self.backend.file_name().map(|name| self.path.join(name));
        let bytes = file.and_then(|file| file.metadata().ok()).map_or(0, |file| file.len());
        if bytes <= QUICKLY_COMPACTED {
            self.compact()?;
        }
        Ok(())
    }

    /// Reclaims the space of deleted entries; does nothing while clones of the store exist.
    ///
    /// # Errors
    /// As [`Store::compact`].
    pub fn compact(&mut self) -> Result<(), StoreError> {
        Arc::get_mut(&mut self.store).map_or(Ok(()), Store::compact)
    }
}

/// A store with the lock of its directory: the store is closed first, then the lock is released.
#[derive(Debug)]
struct LockedStore {
    store: Box<dyn Store>,
    /// `None` on a read-only file system, where no process can write.
    _lock: Option<Lock>,
}

impl Store for LockedStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.store.scan(prefix, visit)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        self.store.write(batch, durability)
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        self.store.compact()
    }
}

fn require_compiled_in(path: &Path, backend: Backend) -> Result<(), StoreError> {
    if backend.is_compiled_in() {
        return Ok(());
    }
    let message = format!(
        "this build has no store named {backend}: build it with the feature `{backend}`, or choose another store"
    );
    Err(StoreError::new(StoreErrorKind::Format, message).at(path))
}

/// Locks a directory; the error names the process that holds the lock.
fn locked(directory: &Path) -> Result<Lock, StoreError> {
    let path = directory.join(LOCK_FILE);
    let failed = |e| StoreError::io("locking the directory", e).at(&path);
    // Not truncated: until the file is locked, the number in it belongs to another process.
    let mut file = match Lock::exclusive(files::open_write(&path).map_err(failed)?) {
        Ok(file) => file,
        Err(refused) if !refused.is_held() => return Err(failed(refused.into())),
        // The number is that of the last writer; readers do not write theirs.
        Err(refused) => {
            return Err(match Lock::shared(refused.file) {
                Ok(_) => being_read(directory),
                Err(mut refused) => in_use(directory, &mut refused.file),
            });
        }
    };
    // The number is for people and for the message above; nothing depends on it.
    let noted =
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    noted.map_err(failed)?;
    Ok(file)
}

/// Takes a shared lock of a directory, for the backend that supports readers; `None` on a read-only file system without
/// a lock file.
#[cfg(feature = "redb")]
fn shared(directory: &Path) -> Result<Option<Lock>, StoreError> {
    let path = directory.join(LOCK_FILE);
    let failed = |e| StoreError::io("locking the directory", e).at(&path);
    let opened = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => files::open_write(&path),
        opened => opened,
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    Lock::shared(file).map(Some).map_err(|mut refused| match refused.is_held() {
        true => in_use(directory, &mut refused.file),
        false => failed(refused.into()),
    })
}

fn in_use(directory: &Path, lock: &mut File) -> StoreError {
    let holder = holder(lock).map(|id| format!(" (number {id})")).unwrap_or_default();
    let message = format!(
        "another process{holder} works in this directory; wait until it ends, or choose another directory"
    );
    StoreError::new(StoreErrorKind::Locked, message).at(directory)
}

fn being_read(directory: &Path) -> StoreError {
    let message = "another process reads this directory; wait until it ends, or choose another directory";
    StoreError::new(StoreErrorKind::Locked, message).at(directory)
}

/// The id of the process that holds a lock, if it can be read.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// The backend that the format file names, and the format; `None` if there is no format file.
fn format_of(directory: &Path) -> Result<Option<(Backend, u32)>, StoreError> {
    let path = directory.join(FORMAT_FILE);
    let failed = |e| StoreError::io("reading the format file", e).at(&path);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FORMAT_FILE).read_to_end(&mut text).map_err(failed)?;
    let newer = |what: String| {
        let message =
            format!("the job was made by a newer version ({what}); use that version, or {START_ANEW}");
        StoreError::new(StoreErrorKind::Format, message).at(&path)
    };
    // The number is read first, because everything else may be different in a newer format.
    let damaged = |error: serde_json::Error| {
        let message = format!("the file is damaged ({error}); {START_ANEW}");
        StoreError::new(StoreErrorKind::Damaged, message).at(&path)
    };
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
    if let Some(number) = value.get("format").and_then(serde_json::Value::as_u64)
        && number > u64::from(FORMAT)
    {
        return Err(newer(format!("format {number}; this version knows formats up to {FORMAT}")));
    }
    let format: Format = serde_json::from_value(value).map_err(damaged)?;
    if format.format == 0 {
        let message = format!("the file is damaged (there is no format 0); {START_ANEW}");
        return Err(StoreError::new(StoreErrorKind::Damaged, message).at(&path));
    }
    let backend =
        format.store.parse().map_err(|_| newer(format!("with a store named {:?}", format.store)))?;
    Ok(Some((backend, format.format)))
}

fn other_backend(path: &Path, found: Backend, wanted: Backend) -> StoreError {
    let message = format!(
        "the job in this directory has the store {found}, not {wanted}; choose {found}, or {START_ANEW}"
    );
    StoreError::new(StoreErrorKind::Format, message).at(path)
}

/// The store of a directory without a format file: a new one, unless the directory holds more than an interrupted
/// creation can have left.
fn make_store(directory: &Path, backend: Backend, cache_bytes: usize) -> Result<Box<dyn Store>, StoreError> {
    // A store is renamed to its final name when it is complete, and the format file is written after that. So a store
    // without a format file is empty, or the format file was lost.
    let mut there = None;
    for found in Backend::ALL {
        let Some(name) = found.file_name() else { continue };
        let path = directory.join(name);
        let unfinished = directory.join(format!("{name}{UNFINISHED}"));
        files::remove_any(&unfinished)
            .map_err(|e| StoreError::io("removing an unfinished store", e).at(&unfinished))?;
        if !path.try_exists().map_err(|e| StoreError::io("opening the store", e).at(&path))? {
            continue;
        }
        if found != backend {
            return Err(other_backend(directory, found, backend));
        }
        there = Some(path);
    }
    let Some(name) = backend.file_name() else { return Ok(Box::new(MemoryStore::new())) };
    if let Some(path) = there {
        if !is_empty(&*open_store(directory, backend, cache_bytes)?)? {
            let message = format!(
                "there are entries, but the file {FORMAT_FILE} that describes them is missing; {START_ANEW}"
            );
            return Err(StoreError::new(StoreErrorKind::Damaged, message).at(path));
        }
    } else {
        let path = directory.join(name);
        let unfinished = directory.join(format!("{name}{UNFINISHED}"));
        create(backend, &unfinished, cache_bytes)?;
        files::rename(&unfinished, &path).map_err(|e| StoreError::io("making the store", e).at(&path))?;
    }
    write_format(directory, backend)?;
    open_store(directory, backend, cache_bytes)
}

/// Writes the format file atomically.
fn write_format(directory: &Path, backend: Backend) -> Result<(), StoreError> {
    let path = directory.join(FORMAT_FILE);
    let format = Format { format: FORMAT, store: backend.name().to_owned() };
    let text = serde_json::to_string(&format).expect("a number and a string are JSON");
    files::write(&path, text + "\n").map_err(|e| StoreError::io("writing the format file", e).at(&path))
}

fn is_empty(store: &dyn Store) -> Result<bool, StoreError> {
    let mut empty = true;
    store.scan(b"", &mut |_, _| {
        empty = false;
        false
    })?;
    Ok(empty)
}

/// Makes an empty store on disk and closes it.
fn create(backend: Backend, path: &Path, cache_bytes: usize) -> Result<(), StoreError> {
    match backend {
        #[cfg(feature = "redb")]
        Backend::Redb => crate::redb::RedbStore::create(path, cache_bytes).map(drop),
        #[cfg(feature = "sled")]
        Backend::Sled => crate::sled::SledStore::create(path, cache_bytes).map(drop),
        // A backend that is not compiled in was refused before.
        _ => {
            let _ = (path, cache_bytes);
            Ok(())
        }
    }
}

/// Opens the store of a directory for reading, with the lock that keeps writers away.
fn open_to_read(
    directory: &Path,
    backend: Backend,
    cache_bytes: usize,
) -> Result<(Box<dyn Store>, Option<Lock>), StoreError> {
    #[cfg(feature = "redb")]
    if let (Backend::Redb, Some(name)) = (backend, backend.file_name()) {
        let path = directory.join(name);
        // Two attempts: the first may find that the writing process was killed.
        for _ in 0..2 {
            let lock = shared(directory)?;
            if let Some(store) = crate::redb::RedbReader::open(&path, cache_bytes)? {
                return Ok((Box::new(store), lock));
            }
            drop(lock);
            let _alone = locked(directory)?;
            drop(crate::redb::RedbStore::open(&path, cache_bytes)?);
        }
        return Err(
            StoreError::new(StoreErrorKind::Locked, "another process was killed on it just now").at(path)
        );
    }
    let lock = locked(directory)?;
    Ok((open_store(directory, backend, cache_bytes)?, Some(lock)))
}

/// Opens the store of a directory that has a format file.
fn open_store(directory: &Path, backend: Backend, cache_bytes: usize) -> Result<Box<dyn Store>, StoreError> {
    let path = backend.file_name().map(|name| directory.join(name));
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        // An earlier version, or a library, may have created it readable for other users; it contains cookies.
        files::make_private(path).map_err(|e| StoreError::io("opening the store", e).at(path))?;
    }
    match (backend, path) {
        #[cfg(feature = "redb")]
        (Backend::Redb, Some(path)) => Ok(Box::new(crate::redb::RedbStore::open(&path, cache_bytes)?)),
        #[cfg(feature = "sled")]
        (Backend::Sled, Some(path)) => Ok(Box::new(crate::sled::SledStore::open(&path, cache_bytes)?)),
        _ => {
            let _ = cache_bytes;
            Ok(Box::new(MemoryStore::new()))
        }
    }
}
