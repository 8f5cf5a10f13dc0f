//! A store in one file, on redb.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use redb::backends::FileBackend;
use redb::{
    CommitError, CompactionError, Database, DatabaseError, Durability as Sync, ReadOnlyDatabase,
    ReadableDatabase, SetDurabilityError, StorageError, TableDefinition, TableError, TransactionError,
};

use crate::checksum;
use crate::error::{START_ANEW, StoreError, StoreErrorKind};
use crate::guard::guarded;
use crate::store::{Batch, Durability, Operation, Store};

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// A [`Store`] in one file.
///
/// Every write is synced to disk, whatever its [`Durability`], because redb keeps other commits only in the memory of
/// the process. As each write costs a sync, many small writes should go through a [`Writer`](crate::Writer). Scans read
/// while others write. Opening reads and verifies the whole file, so that damage is found before work begins.
pub struct RedbStore {
    path: PathBuf,
    database: Database,
    // The first error of a write: redb refuses all later writes, with less informative errors.
    failed: OnceLock<StoreError>,
}

impl RedbStore {
    /// Makes an empty store in a file that must not exist yet.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn create(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let file = huntsman_files::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                let exists = "there is a file already, which is not overwritten";
                StoreError::new(StoreErrorKind::Io, exists).at(path)
            }
            _ => StoreError::io("making the store", error).at(path),
        })?;
        let store = Self::with(path, || {
            Database::builder().set_cache_size(cache_bytes).create_with_backend(FileBackend::new(file)?)
        })?;
        // The first commit creates the table, so a file without it is not one of our stores.
        let made = guarded(path, || {
            let transaction = store.database.begin_write().map_err(|e| transaction_error(e, path))?;
            transaction.open_table(ENTRIES).map_err(|e| table_error(e, path))?;
            transaction.commit().map_err(|e| commit_error(e, path))
        });
        made.map(|()| store)
    }

    /// Opens the store in a file. It holds at most about `cache_bytes` of it in memory.
    ///
    /// A file whose process was killed is restored to its last commit. Opening reads the whole file to verify it: 0.5 s
    /// for a million entries of 140 bytes.
    ///
    /// # Errors
    /// The file is missing or damaged, open in another process, or was written by another version of redb.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, StoreError> {
        let length = path.metadata().map_err(|e| missing_or_io(e, path))?.len();
        if length == 0 {
            return Err(damaged("the file is empty", path));
        }
        huntsman_files::refuse_link(path).map_err(|e| StoreError::io("opening the store", e).at(path))?;
        let store = Self::with(path, || {
            // The repair callback is not used: with the check enabled, redb calls it on every open.
            Database::builder().set_cache_size(cache_bytes).set_check_integrity_on_open(true).open(path)
        })?;
        guarded(path, || {
            let transaction = store.database.begin_read().map_err(|e| transaction_error(e, path))?;
            transaction.open_table(ENTRIES).map(drop).map_err(|e| table_error(e, path))
        })?;
        Ok(store)
    }

    fn with(path: &Path, open: impl FnOnce() -> Result<Database, DatabaseError>) -> Result<Self, StoreError> {
        let database = guarded(path, || open().map_err(|e| database_error(e, path)))?;
        Ok(Self { path: path.to_owned(), database, failed: OnceLock::new() })
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let path = &*self.path;
        let mut transaction = self.database.begin_write().map_err(|e| transaction_error(e, path))?;
        transaction.set_durability(Sync::Immediate).map_err(|e| durability_error(&e, path))?;
        {
            let mut entries = transaction.open_table(ENTRIES).map_err(|e| table_error(e, path))?;
            for operation in batch.operations() {
                match operation {
                    Operation::Put { key, value } => {
                        let length = checksum::LENGTH + value.len();
                        let mut stored = entries
                            .insert_reserve(key.as_slice(), length)
                            .map_err(|e| storage_error(e, path))?;
                        let (sum, place) = stored.as_mut().split_at_mut(checksum::LENGTH);
                        sum.copy_from_slice(&checksum::of(key, value));
                        place.copy_from_slice(value);
                    }
                    Operation::Delete { key } => {
                        entries.remove(key.as_slice()).map_err(|e| storage_error(e, path))?;
                    }
                }
            }
        }
        transaction.commit().map_err(|e| commit_error(e, path))
    }

    fn written(&self) -> Result<(), StoreError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

impl Store for RedbStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get(&self.database, &self.path, key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        scan(&self.database, &self.path, prefix, visit)
    }

    fn write(&self, batch: &Batch, _: Durability) -> Result<(), StoreError> {
        self.written()?;
        if batch.is_empty() {
            return Ok(());
        }
        guarded(&self.path, || self.commit(batch)).map_err(|error| self.failed.get_or_init(|| error).clone())
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        self.written()?;
        let path = &*self.path;
        let database = &mut self.database;
        guarded(path, || match database.compact() {
            Ok(_) => Ok(()),
            // A running scan keeps its pages; the next compaction frees them.
            Err(CompactionError::TransactionInProgress) => Ok(()),
            Err(CompactionError::Storage(error)) => Err(storage_error(error, path)),
            Err(error) => Err(other("making the file smaller", error, path)),
        })
    }
}

impl fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbStore").field("path", &self.path).field("failed", &self.failed.get()).finish()
    }
}

fn get(database: &impl ReadableDatabase, path: &Path, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    guarded(path, || {
        let transaction = database.begin_read().map_err(|e| transaction_error(e, path))?;
        let entries = transaction.open_table(ENTRIES).map_err(|e| table_error(e, path))?;
        let stored = entries.get(key).map_err(|e| storage_error(e, path))?;
        stored.map(|stored| checksum::unseal(key, stored.value(), path).map(<[u8]>::to_vec)).transpose()
    })
}

fn scan(
    database: &impl ReadableDatabase,
    path: &Path,
    prefix: &[u8],
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<(), StoreError> {
    let mut found = guarded(path, || {
        let transaction = database.begin_read().map_err(|e| transaction_error(e, path))?;
        let entries = transaction.open_table(ENTRIES).map_err(|e| table_error(e, path))?;
        entries.range_owned(prefix..).map_err(|e| storage_error(e, path))
    })?;
    // Only redb's own steps are guarded: a panic in `visit` is the caller's.
    while let Some((key, stored)) =
        guarded(path, || found.next().transpose().map_err(|e| storage_error(e, path)))?
    {
        let key = key.value();
        if !key.starts_with(prefix) || !visit(key, checksum::unseal(key, stored.value(), path)?) {
            break;
        }
    }
    Ok(())
}

/// A read-only store, shared with other processes that only read; writes are refused.
///
/// Opening reads little: damage is found when the damaged part is read.
pub(crate) struct RedbReader {
    path: PathBuf,
    database: ReadOnlyDatabase,
}

impl RedbReader {
    /// Opens the store in a file; `None` if its process was killed, so that it must first be opened for writing.
    pub(crate) fn open(path: &Path, cache_bytes: usize) -> Result<Option<Self>, StoreError> {
        let length = path.metadata().map_err(|e| missing_or_io(e, path))?.len();
        if length == 0 {
            return Err(damaged("the file is empty", path));
        }
        guarded(path, || {
            let database = match Database::builder().set_cache_size(cache_bytes).open_read_only(path) {
                Ok(database) => database,
                Err(DatabaseError::RepairAborted) => return Ok(None),
                Err(error) => return Err(database_error(error, path)),
            };
            let transaction = database.begin_read().map_err(|e| transaction_error(e, path))?;
            transaction.open_table(ENTRIES).map(drop).map_err(|e| table_error(e, path))?;
            drop(transaction);
            Ok(Some(Self { path: path.to_owned(), database }))
        })
    }
}

impl Store for RedbReader {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get(&self.database, &self.path, key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        scan(&self.database, &self.path, prefix, visit)
    }

    fn write(&self, _: &Batch, _: Durability) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Io, "the store was opened to be read only").at(&self.path))
    }
}

impl fmt::Debug for RedbReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedbReader").field("path", &self.path).finish_non_exhaustive()
    }
}

fn damaged(what: &str, path: &Path) -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, format!("{what}; {START_ANEW}")).at(path)
}

fn other(
    what: &str,
    error: impl std::error::Error + Send + std::marker::Sync + 'static,
    path: &Path,
) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("{what}: {error}")).at(path).with_source(error)
}

fn missing_or_io(error: io::Error, path: &Path) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => damaged("the file is missing", path).with_source(error),
        _ => StoreError::io("opening the store", error).at(path),
    }
}

fn storage_error(error: StorageError, path: &Path) -> StoreError {
    match error {
        StorageError::Corrupted(what) => damaged(&format!("the file is damaged ({what})"), path),
        // If the file is too short or begins with other bytes, redb returns an error of the system's type.
        StorageError::Io(error)
            if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
        {
            damaged(&format!("the file is cut off or no store ({error})"), path).with_source(error)
        }
        StorageError::Io(error) => StoreError::io("reading or writing the store", error).at(path),
        error => other("reading or writing the store", error, path),
    }
}

fn database_error(error: DatabaseError, path: &Path) -> StoreError {
    match error {
        DatabaseError::Storage(error) => storage_error(error, path),
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => StoreError::new(
            StoreErrorKind::Locked,
            "another process works on it; wait until it ends, or choose another directory",
        )
        .at(path)
        .with_source(error),
        DatabaseError::UpgradeRequired(version) => StoreError::new(
            StoreErrorKind::Format,
            format!(
                "the file has the format {version} of redb, which this version does not read; {START_ANEW}"
            ),
        )
        .at(path)
        .with_source(error),
        error => other("opening the store", error, path),
    }
}

fn transaction_error(error: TransactionError, path: &Path) -> StoreError {
    match error {
        TransactionError::Storage(error) => storage_error(error, path),
        error => other("beginning a transaction", error, path),
    }
}

fn table_error(error: TableError, path: &Path) -> StoreError {
    match error {
        TableError::Storage(error) => storage_error(error, path),
        error => StoreError::new(
            StoreErrorKind::Format,
            format!("the file is not the store of a job ({error}); {START_ANEW}"),
        )
        .at(path)
        .with_source(error),
    }
}

fn commit_error(error: CommitError, path: &Path) -> StoreError {
    match error {
        CommitError::Storage(error) => storage_error(error, path),
        error => other("committing a batch", error, path),
    }
}

fn durability_error(error: &SetDurabilityError, path: &Path) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("beginning a transaction: {error}")).at(path)
}
