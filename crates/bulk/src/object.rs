//! An object of a bucket, which is read in pieces.
//!
//! A reader of Parquet goes through several columns at once, and a column is many small reads. So the last pieces stay in memory, more of
//! them than an input has columns.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use huntsman_bucket::{bad_name, connected, describe, is_of_the_server};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Bytes of a piece.
const PIECE: u64 = 2 << 20;
/// Pieces of an object that stay in memory.
const KEPT: usize = 8;
/// What the credentials must allow, for advice in errors.
const USE: &str = "list and read it";

/// An object, of which each reading checks that it has not changed.
#[derive(Clone)]
pub(crate) struct Object(Arc<Inner>);

struct Inner {
    store: Arc<AmazonS3>,
    runtime: &'static Runtime,
    name: String,
    meta: ObjectMeta,
    /// Pieces by their number, the last one used at the end.
    pieces: Mutex<Vec<(u64, Bytes)>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl Object {
    fn new(store: &Arc<AmazonS3>, runtime: &'static Runtime, name: String, meta: ObjectMeta) -> Self {
        Self(Arc::new(Inner { store: Arc::clone(store), runtime, name, meta, pieces: Mutex::default() }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.meta.size
    }

    /// A number that stands for its content.
    pub(crate) fn version(&self) -> u64 {
        let changed = self.0.meta.last_modified.to_string();
        xxh3_64(self.0.meta.e_tag.as_deref().unwrap_or(&changed).as_bytes())
    }

    pub(crate) fn read_from(&self, start: u64) -> ObjectReader {
        ObjectReader { object: self.clone(), at: start }
    }

    fn piece(&self, number: u64) -> io::Result<Bytes> {
        let inner = &*self.0;
        let mut pieces = inner.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pieces.iter().position(|(one, _)| *one == number) {
            let piece = pieces.remove(at);
            let bytes = piece.1.clone();
            pieces.push(piece);
            return Ok(bytes);
        }
        let start = number * PIECE;
        let range = start..inner.meta.size.min(start + PIECE);
        let options = GetOptions {
            if_match: inner.meta.e_tag.clone(),
            range: Some(GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let changed = || io::Error::other("it was changed while it was read; run the command again");
        let fetched = inner.runtime.block_on(async {
            let found = inner.store.get_opts(&inner.meta.location, options).await?;
            let is_same = found.range == range && found.meta.size == inner.meta.size;
            Ok((is_same, found.bytes().await?))
        });
        let bytes = match fetched {
            Ok((true, bytes)) if bytes.len() as u64 == range.end - range.start => bytes,
            Ok(_) | Err(StoreError::Precondition { .. }) => return Err(changed()),
            Err(error) => return Err(io::Error::other(describe(&error, USE))),
        };
        if pieces.len() == KEPT {
            pieces.remove(0);
        }
        pieces.push((number, bytes.clone()));
        Ok(bytes)
    }
}

/// Reads an object from a place on.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    object: Object,
    at: u64,
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.object.bytes() {
            return Ok(0);
        }
        let piece = self.object.piece(self.at / PIECE)?;
        let rest = &piece[(self.at % PIECE) as usize..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

/// A bucket, and what is asked of it.
struct Asked<'n> {
    name: &'n str,
    bucket: &'n str,
    key: &'n str,
    runtime: &'static Runtime,
    /// Gives up soon, so that a user at a terminal learns quickly that the server does not answer.
    quick: AmazonS3,
    /// Reads objects.
    patient: Arc<AmazonS3>,
}

impl<'n> Asked<'n> {
    fn of(name: &'n str) -> Result<Self> {
        let wrong = |message: String| Error::Input { name: name.to_owned(), message };
        let address = name.strip_prefix("s3://").unwrap_or(name);
        let (bucket, key) = address.split_once('/').unwrap_or((address, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(wrong("use s3://BUCKET, s3://BUCKET/PREFIX or s3://BUCKET/KEY".to_owned()));
        }
        let runtime = runtime().map_err(|error| wrong(format!("starting the runtime: {error}")))?;
        let store = |attempts, seconds| connected(bucket, attempts, Duration::from_secs(seconds), USE);
        let quick = store(3, 10).map_err(wrong)?;
        let patient = Arc::new(store(10, 120).map_err(wrong)?);
        Ok(Self { name, bucket, key, runtime, quick, patient })
    }

    fn failed(&self, error: &StoreError) -> Error {
        let (name, message) = (self.name.to_owned(), describe(error, USE));
        if is_of_the_server(error) {
            Error::Unavailable { name, message }
        } else {
            Error::Input { name, message }
        }
    }

    fn object(&self, meta: ObjectMeta) -> Object {
        let name = format!("s3://{}/{}", self.bucket, meta.location);
        Object::new(&self.patient, self.runtime, name, meta)
    }
}

/// The object of a name; `None` if there is none.
pub(crate) fn head(name: &str) -> Result<Option<Object>> {
    let asked = Asked::of(name)?;
    if asked.key.is_empty() || asked.key.ends_with('/') {
        return Ok(None);
    }
    let key = Key::parse(asked.key)
        .map_err(|error| Error::Input { name: name.to_owned(), message: bad_name(&error) })?;
    match asked.runtime.block_on(asked.quick.head(&key)) {
        Ok(meta) => Ok(Some(asked.object(meta))),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(asked.failed(&error)),
    }
}

/// The objects directly under a prefix, in the order of their names.
pub(crate) fn list(name: &str) -> Result<Vec<Object>> {
    let asked = Asked::of(name)?;
    let is_whole = asked.key.is_empty() || asked.key.ends_with('/');
    let prefix = if is_whole { asked.key.to_owned() } else { format!("{}/", asked.key) };
    let (mut objects, mut token) = (Vec::new(), None);
    loop {
        let options = PaginatedListOptions {
            delimiter: Some("/".into()),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let some = Some(prefix.as_str()).filter(|prefix| !prefix.is_empty());
        let page = asked.runtime.block_on(asked.quick.list_paginated(some, options));
        let page = page.map_err(|error| asked.failed(&error))?;
        objects.extend(page.result.objects.into_iter().map(|meta| asked.object(meta)));
        token = page.page_token;
        if token.is_none() {
            return Ok(objects);
        }
    }
}

/// The runtime for requests, which lives from the first object to the end of the process.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("s3").enable_all().build()?;
    Ok(RUNTIME.get_or_init(|| runtime))
}
