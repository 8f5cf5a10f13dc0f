//! A store in a directory, on sled.

use std::fs::File;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, fs, io, mem};

use huntsman_files::{self as files, Lock};
use sled::{Config, Db, IVec};

use crate::checksum;
use crate::error::{START_ANEW, StoreError, StoreErrorKind};
use crate::guard::guarded;
use crate::store::{Batch, Durability, Operation, Store};

/// Keys above which sled takes more memory than other backends, whatever its cache may hold.
///
/// Measured: 798 MB for a million rows of a frontier with a cache of 256 MiB; redb took 177 MB.
const MANY_KEYS: usize = 200_000;

/// sled's own files.
const CONFIG_FILE: &str = "conf";
const LOG_FILE: &str = "db";

/// Beginning and end of the name of a snapshot that sled is writing; it is renamed once it is whole.
const UNFINISHED_SNAPSHOT: (&str, &str) = ("snap.", ".generating");

/// File next to sled's own, with the summary of the entries when the store was closed.
const SUMMARY_FILE: &str = "summary.json";

/// A [`Store`] in a directory, for small jobs.
///
/// Memory grows with the number of keys and not only with the cache; above 200,000 keys a warning is logged once. Every
/// write is synced to disk, whatever its [`Durability`], because sled writes its log late. Opening reads and verifies
/// all entries; so does closing. After a failed write, the store stays locked until the process ends. A scan copies the entries it visits, because sled's own scan would see
/// later writes.
pub struct SledStore {
    path: PathBuf,
    // The lock makes each scan see one state.
    database: RwLock<Closing>,
    keys: Mutex<Keys>,
    // The first error of a write.
    failed: OnceLock<StoreError>,
}

/// A database that can fail to close: sled panics if the disk fails then.
struct Closing(Option<Db>);

impl Deref for Closing {
    type Target = Db;

    fn deref(&self) -> &Db {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let database = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(database))).is_err() {
            tracing::warn!("the store sled could not be closed; what was committed is there");
        }
    }
}

/// An upper bound on the number of keys, made exact when it passes [`MANY_KEYS`].
#[derive(Debug, Default)]
struct Keys {
    at_most: usize,
    told: bool,
}

/// Number of all entries and sum of their checksums: equal if nothing was lost.
///
/// sled takes a damaged part of its log for the end of the log and continues with the part before; without this summary
/// the loss would not be detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Summary {
    entries: u64,
    checksums: u64,
}

impl SledStore {
    /// Makes an empty store in a directory that must not exist yet.
    ///
    /// # Errors
    /// It exists or cannot be made.
    pub fn create(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        if path.exists() {
            let exists = "there is a directory already, which is not overwritten";
            return Err(StoreError::new(StoreErrorKind::Io, exists).at(path));
        }
        let failed = |e| StoreError::io("making the store", e).at(path);
        files::create_dir(path).map_err(failed)?;
        let store = Self::with(path, cache_bytes)?;
        File::open(path.join(CONFIG_FILE)).and_then(|file| file.sync_all()).map_err(failed)?;
        sync(path).map_err(failed)?;
        Ok(store)
    }

    /// Opens the store in a directory. It holds at most about `cache_bytes` of values in memory, but all keys.
    ///
    /// Writes that a killed process had not flushed are cut off. Reads all entries to verify them.
    ///
    /// # Errors
    /// The directory is missing or damaged, open in another process, or was written by another version of sled.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        files::refuse_link(path).map_err(|e| StoreError::io("opening the store", e).at(path))?;
        // sled would create the missing files.
        for name in [CONFIG_FILE, LOG_FILE] {
            let file = path.join(name);
            match file.metadata() {
                Ok(there) if there.len() > 0 => {}
                Ok(_) => return Err(damaged("the file is empty", &file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(damaged("the file is missing", &file).with_source(error));
                }
                Err(error) => return Err(StoreError::io("opening the store", error).at(file)),
            }
        }
        remove_unfinished_snapshots(path).map_err(|e| StoreError::io("opening the store", e).at(path))?;
        Self::with(path, cache_bytes)
    }

    fn with(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let config = Config::default()
            .path(path)
            .cache_capacity(cache_bytes as u64)
            // Every batch is flushed explicitly.
            .flush_every_ms(None);
        let database = retry_open(|| {
            guarded(path, || config.open().map_err(|e| error_of("opening the store", e, path)))
        })?;
        let database = Closing(Some(database));
        let found = summary(&database, path)?;
        let summary_file = path.join(SUMMARY_FILE);
        if let Some(closed) = read_summary(&summary_file)? {
            if closed != found {
                let what = format!(
                    "there were {} entries when it was closed, now {} are found, or others",
                    closed.entries, found.entries
                );
                return Err(damaged(&what, path));
            }
            // From here on the summary is outdated, and must not reappear after a power cut.
            files::remove_file(&summary_file)
                .map_err(|e| StoreError::io("opening the store", e).at(&summary_file))?;
        }
        let store = Self {
            path: path.to_owned(),
            database: RwLock::new(database),
            keys: Mutex::default(),
            failed: OnceLock::new(),
        };
        store.count(usize::try_from(found.entries).unwrap_or(usize::MAX), |known| known);
        Ok(store)
    }

    /// Counts keys that were put, and logs a warning when there are many.
    fn count(&self, put: usize, exact: impl FnOnce(usize) -> usize) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.at_most = keys.at_most.saturating_add(put);
        if keys.told || keys.at_most <= MANY_KEYS {
            return;
        }
        keys.at_most = exact(keys.at_most);
        if keys.at_most > MANY_KEYS {
            keys.told = true;
            tracing::warn!(
                keys = keys.at_most,
                path = %self.path.display(),
                "the store sled holds all keys in memory; for jobs of this size choose redb"
            );
        }
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut steps = sled::Batch::default();
        let mut put = 0;
        for operation in batch.operations() {
            match operation {
                Operation::Put { key, value } => {
                    steps.insert(key.as_slice(), checksum::seal(key, value));
                    put += 1;
                }
                Operation::Delete { key } => steps.remove(key.as_slice()),
            }
        }
        let database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        let _waker = Waker::of(&database);
        database.apply_batch(steps).map_err(|e| error_of("writing a batch", e, &self.path))?;
        database.flush().map_err(|e| error_of("writing a batch", e, &self.path))?;
        sync(&self.path).map_err(|e| StoreError::io("writing a batch", e).at(&self.path))?;
        self.count(put, |_| database.len());
        Ok(())
    }
}

impl Store for SledStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let path = &*self.path;
        guarded(path, || {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            let stored = database.get(key).map_err(|e| error_of("reading the store", e, path))?;
            stored.map(|stored| checksum::unseal(key, &stored, path).map(<[u8]>::to_vec)).transpose()
        })
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let path = &*self.path;
        let found: Vec<(IVec, IVec)> = guarded(path, || {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            let found = database.scan_prefix(prefix).collect::<Result<_, _>>();
            found.map_err(|e| error_of("reading the store", e, path))
        })?;
        for (key, stored) in found {
            if !visit(&key, checksum::unseal(&key, &stored, path)?) {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, batch: &Batch, _: Durability) -> Result<(), StoreError> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        if batch.is_empty() {
            return Ok(());
        }
        guarded(&self.path, || self.commit(batch)).map_err(|error| self.failed.get_or_init(|| error).clone())
    }
}

impl fmt::Debug for SledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // sled's own implementation would print every page.
        f.debug_struct("SledStore").field("path", &self.path).field("failed", &self.failed.get()).finish()
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        let database = self.database.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.failed.get().is_some() {
            // If it is dropped after a failed write, sled waits for that write forever (seen on a full disk). Its files
            // stay locked until the process ends; the next process finds no summary, and accepts the entries that are
            // left.
            mem::forget(Db::clone(database));
            return;
        }
        let written = guarded(&self.path, || summary(database, &self.path))
            .and_then(|summary| write_summary(&self.path.join(SUMMARY_FILE), summary));
        if let Err(error) = written {
            tracing::warn!(%error, "closing the store");
        }
    }
}

/// Wakes a write that would wait for ever, until the waker is dropped.
///
/// sled 0.34 wakes the threads that wait for a part of its log when that part was written, and after most failures. If the thread that leaves a
/// buffer last fails to write it (`Log::exit_reservation`), sled keeps the error but wakes nobody. Any flush that begins afterwards finds the
/// error and wakes all threads, so flushes begin now and then while a write takes long. If there is no error, they wait for the same write.
struct Waker {
    ended: Option<mpsc::Sender<()>>,
    // `None` if no thread could be started: then nothing wakes the write, which matters only if the disk fails, too.
    watch: Option<JoinHandle<()>>,
}

impl Waker {
    /// How long a write may take before the first flush. The time doubles, because a slow disk is no failure.
    const PATIENCE: Duration = Duration::from_secs(2);

    fn of(database: &Db) -> Self {
        let (ended, wait) = mpsc::channel();
        let database = database.clone();
        let watch = move || {
            let mut patience = Self::PATIENCE;
            while wait.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let database = database.clone();
                // The write itself returns the error.
                let flush = move || drop(catch_unwind(AssertUnwindSafe(|| database.flush())));
                let _ = thread::Builder::new().name("sled-flush".to_owned()).spawn(flush);
                patience *= 2;
            }
        };
        let watch = thread::Builder::new().name("sled-waker".to_owned()).spawn(watch);
        Self { ended: Some(ended), watch: watch.ok() }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        drop(self.ended.take());
        // It has a handle of the database, which must be closed by its owner.
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}

/// Opens a database, retrying for a moment while a closed one still holds the lock: sled's own threads release it after
/// the drop.
fn retry_open(open: impl Fn() -> Result<Db, StoreError>) -> Result<Db, StoreError> {
    for _ in 0..500 {
        match open() {
            Err(error) if error.kind() == StoreErrorKind::Locked => thread::sleep(Duration::from_millis(10)),
            result => return result,
        }
    }
    open()
}

/// Reads all entries; a wrong checksum is an error.
fn summary(database: &Db, path: &Path) -> Result<Summary, StoreError> {
    guarded(path, || {
        let mut summary = Summary::default();
        for entry in database.iter() {
            let (key, stored) = entry.map_err(|e| error_of("reading the store", e, path))?;
            checksum::unseal(&key, &stored, path)?;
            let checksum = stored.first_chunk().expect("what is unsealed has a checksum");
            summary.entries += 1;
            summary.checksums = summary.checksums.wrapping_add(u64::from_le_bytes(*checksum));
        }
        Ok(summary)
    })
}

/// Syncs flushed data to disk. sled only asks the system to write its log, which does not sync the size of the file,
/// the cache of the disk or the names of files. Large values are in separate files, which sled syncs.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path.join(LOG_FILE))?.sync_data()?;
    files::sync_dir(path)?;
    match files::sync_dir(path.join("blobs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

fn read_summary(path: &Path) -> Result<Option<Summary>, StoreError> {
    match fs::read(path) {
        // An incomplete summary is ignored.
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("opening the store", error).at(path)),
    }
}

fn write_summary(path: &Path, summary: Summary) -> Result<(), StoreError> {
    let text = serde_json::to_string(&summary).expect("two numbers are JSON");
    files::write(path, text).map_err(|e| StoreError::io("closing the store", e).at(path))
}

fn damaged(what: &str, path: &Path) -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, format!("{what}; {START_ANEW}")).at(path)
}

/// Removes the snapshot that a killed process was writing. sled 0.34 would take it for the newest one and refuse the
/// store as damaged; the snapshot before it and the log have everything. A store that is open elsewhere is left alone.
fn remove_unfinished_snapshots(path: &Path) -> io::Result<()> {
    // sled locks the same file in the same way for as long as it is open.
    let Ok(_lock) = Lock::exclusive(File::open(path.join(LOG_FILE))?) else { return Ok(()) };
    let (begin, end) = UNFINISHED_SNAPSHOT;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(begin) && name.ends_with(end)) {
            files::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn error_of(what: &str, error: sled::Error, path: &Path) -> StoreError {
    match error {
        sled::Error::Corruption { .. } => damaged("the files are damaged", path).with_source(error),
        // sled reports a held lock as an I/O error with this text.
        sled::Error::Io(error) if error.to_string().contains("could not acquire lock") => StoreError::new(
            StoreErrorKind::Locked,
            "another process works on it; wait until it ends, or choose another directory",
        )
        .at(path)
        .with_source(error),
        sled::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            damaged(&format!("a file is cut off ({error})"), path).with_source(error)
        }
        sled::Error::Io(error) => StoreError::io(what, error).at(path),
        sled::Error::Unsupported(text) => {
            StoreError::new(StoreErrorKind::Format, format!("{what}: {text}; {START_ANEW}")).at(path)
        }
        error => StoreError::new(StoreErrorKind::Io, format!("{what}: {error}")).at(path).with_source(error),
    }
}
