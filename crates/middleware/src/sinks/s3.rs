//! Files that become objects of a bucket: uploads, and those that an earlier run could not finish.
//!
//! A whole file that is not uploaded yet has a marker beside it, a file whose name has `.upload` at its end. The process that writes or uploads a
//! file holds a lock on it, so two crawls in one directory do not get in each other's way.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use huntsman_bucket::{bad_name, connected};
use huntsman_crawler::{Error, Result, log};
use huntsman_files::{self as files, Lock};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, WriteMultipart};
use tokio::io::AsyncReadExt;

use super::place::{Object, UPLOADS, with_suffix};

/// What the credentials must allow, for advice in errors.
const USE: &str = "read and write it";
/// A request is sent so many times at most, with growing pauses.
const ATTEMPTS: usize = 10;
/// How long a request is tried at most.
const PATIENCE: Duration = Duration::from_secs(180);
/// Bytes of a part; a file up to this size is one request.
const PART: usize = 8 << 20;
/// The number of parts that S3 allows.
const MOST_PARTS: u64 = 10_000;
/// Parts of one file that are sent at the same time.
const PARTS_AT_ONCE: usize = 3;
const MARKER: &str = ".upload";

/// Whether an object exists. It also shows early whether the bucket can be used.
pub(super) async fn exists(object: &Object) -> Result<bool> {
    let store = store(object, 3, Duration::from_secs(15))?;
    let failed = |error: object_store::Error| Err(Error::msg(huntsman_bucket::describe(&error, USE)));
    match store.head(&key(object)?).await {
        Ok(_) => return Ok(true),
        Err(object_store::Error::NotFound { .. }) => {}
        Err(error) => return failed(error),
    }
    // The answer does not say whether it is the bucket that is missing. Credentials that allow only writing cannot ask, which is no fault.
    let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
    match store.list_paginated(Some(object.key.as_str()), options).await {
        Err(error) if huntsman_bucket::is_missing_bucket(&error) => failed(error),
        _ => Ok(false),
    }
}

/// Uploads a file.
pub(super) async fn upload(object: &Object, path: &Path) -> Result<()> {
    let store = store(object, ATTEMPTS, PATIENCE)?;
    let key = key(object)?;
    let failed = |error: object_store::Error| Error::msg(huntsman_bucket::describe(&error, USE));
    let mut file = tokio::fs::File::open(path).await?;
    let length = file.metadata().await?.len();
    if length <= PART as u64 {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).await?;
        return store.put(&key, bytes.into()).await.map(drop).map_err(failed);
    }
    let part = PART.max(usize::try_from(length / MOST_PARTS + 1).unwrap_or(usize::MAX));
    let mut parts =
        WriteMultipart::new_with_chunk_size(store.put_multipart(&key).await.map_err(failed)?, part);
    let sent = async {
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = file.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            parts.wait_for_capacity(PARTS_AT_ONCE).await.map_err(failed)?;
            parts.write(&buffer[..read]);
        }
    };
    match sent.await {
        Ok(()) => parts.finish().await.map(drop).map_err(failed),
        Err(error) => {
            // Parts that are not taken together cost storage until they are given up.
            let _ = parts.abort().await;
            Err(error)
        }
    }
}

/// Notes that a file is whole and waits for its upload. Returns the file, locked.
pub(super) fn mark(path: &Path) -> Result<Lock> {
    // A job may be syncing it at this moment, which ends soon.
    let file = Lock::wait(File::open(path)?)?;
    if let Err(cause) = files::open_write(with_suffix(path, MARKER)) {
        log::warn!(file = %path.display(), "an upload that fails will not be done again by itself: {cause}");
    }
    Ok(file)
}

/// Whether a file waits for its upload.
pub(super) fn is_marked(path: &Path) -> bool {
    with_suffix(path, MARKER).exists()
}

/// Notes that a file is written again.
pub(super) fn unmark(path: &Path) -> Result<()> {
    if is_marked(path) {
        files::remove_file(with_suffix(path, MARKER))?;
    }
    Ok(())
}

/// Removes a file that was uploaded.
pub(super) fn remove(path: &Path) -> Result<()> {
    files::remove_file(path)?;
    unmark(path)
}

/// An upload that an earlier run could not finish.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) object: Object,
    pub(super) path: PathBuf,
    /// The file, locked.
    pub(super) lock: Lock,
}

/// The files for a bucket whose upload an earlier run could not finish.
pub(super) fn unfinished(bucket: &str) -> Vec<Unfinished> {
    let root = Path::new(UPLOADS).join(bucket);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(file) = path.to_str().and_then(|path| path.strip_suffix(MARKER)).map(PathBuf::from)
            else {
                continue;
            };
            let Some(key) = file.strip_prefix(&root).ok().and_then(Path::to_str) else { continue };
            let object =
                Object { bucket: bucket.to_owned(), key: key.replace(std::path::MAIN_SEPARATOR, "/") };
            if let Some(lock) = File::open(&file).ok().and_then(|file| Lock::exclusive(file).ok()) {
                found.push(Unfinished { object, path: file, lock });
            }
        }
    }
    found
}

fn store(object: &Object, attempts: usize, patience: Duration) -> Result<AmazonS3> {
    connected(&object.bucket, attempts, patience, USE).map_err(Error::usage)
}

fn key(object: &Object) -> Result<Key> {
    Key::parse(&object.key).map_err(|cause| Error::usage(bad_name(&cause)))
}
