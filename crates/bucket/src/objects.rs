//! Objects that are read: found by an address, listed, and fetched ahead of their reader.
//!
//! Each piece of an object has a request of its own, so that an object of any size is read at the reader's speed without an idle connection.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::{Error as NameError, Path};
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::{bad_name, connected, is_of_the_server};

/// Bytes per request at most.
const PIECE: u64 = 1 << 20;
/// Bytes that are fetched ahead at most, of many objects and of one. Some dozen of single ones may be read at once.
const MANY_BYTES: usize = 16 << 20;
const ONE_BYTES: usize = 4 << 20;
/// Requests at the same time at most. With many of them, small objects do not wait for one round trip each.
pub const REQUESTS: usize = 64;
/// Names per page of a listing, which is the most that S3 gives.
const PAGE: usize = 1_000;
/// What the credentials must allow, for advice in errors.
const USE: &str = "list and read it";

/// What an address in a bucket stands for.
#[derive(Debug)]
pub enum Found {
    /// The object of this name.
    One(Object),
    /// The objects under a prefix, or those that match a pattern.
    Many(Listing),
}

/// Why an address cannot be used.
#[derive(Debug)]
pub struct FindError {
    /// What is wrong, and what to do.
    pub message: String,
    /// Whether the server does not answer, rather than that nothing is there.
    pub is_of_the_server: bool,
}

impl FindError {
    fn named(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_of_the_server: false }
    }

    fn asking(error: &Error) -> Self {
        Self { message: describe(error), is_of_the_server: is_of_the_server(error) }
    }
}

/// A bucket that is read.
#[derive(Clone)]
pub struct Bucket {
    runtime: &'static Runtime,
    store: Arc<AmazonS3>,
    name: Arc<str>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.name)
    }
}

impl Bucket {
    fn new(runtime: &'static Runtime, name: &str) -> Result<Self, FindError> {
        let store = connected(name, 10, Duration::from_secs(120), USE).map_err(FindError::named)?;
        Ok(Self { runtime, store: Arc::new(store), name: name.into() })
    }

    /// The address of a key in messages.
    pub fn address(&self, key: &str) -> String {
        format!("s3://{}/{key}", self.name)
    }

    /// Runs a task that asks for objects.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }

    /// An object by its key, about which nothing is asked before it is read.
    ///
    /// # Errors
    /// No request can have this name.
    pub fn object(&self, key: &str) -> Result<Object, String> {
        let location = Path::parse(key).map_err(|error| bad_name(&error))?;
        Ok(Object { bucket: self.clone(), location, meta: Arc::default() })
    }

    /// Waits for an answer, on any thread.
    fn wait<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, blocking::RecvError> {
        let (done, answer) = blocking::sync_channel(1);
        self.spawn(async move {
            // The receiver waits below.
            let _ = done.send(task.await);
        });
        answer.recv()
    }
}

/// Finds the address `s3://BUCKET/KEY`: an object; else the objects that match `KEY` if it is a pattern (`crawl-*.warc.gz`), or those under `KEY/`.
///
/// # Errors
/// The address is not valid, nothing is there, or the server cannot be asked.
pub fn find(address: &str) -> Result<Found, FindError> {
    let address = address.strip_prefix("s3://").unwrap_or(address);
    let (name, key) = address.split_once('/').unwrap_or((address, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(FindError::named("use s3://BUCKET, s3://BUCKET/PREFIX or s3://BUCKET/KEY"));
    }
    let bucket = Bucket::new(runtime()?, name)?;
    // The first request gives up soon, so that a user at a terminal learns quickly that the server does not answer; the requests of a
    // long run wait longer.
    let quick = connected(name, 3, Duration::from_secs(10), USE).map_err(FindError::named)?;
    let quick = Bucket { store: Arc::new(quick), ..bucket.clone() };
    let lost = |_| FindError::named("asking for it ended in a panic; please report it");
    let mut denied = None;
    if !key.is_empty() && !key.ends_with('/') {
        let location = Path::parse(key).map_err(|error| FindError::named(bad_name(&error)))?;
        let (store, asked) = (Arc::clone(&quick.store), location.clone());
        match quick.wait(async move { store.head(&asked).await }).map_err(lost)? {
            Ok(meta) => {
                return Ok(Found::One(Object { bucket, location, meta: Arc::new(OnceLock::from(meta)) }));
            }
            Err(Error::NotFound { .. }) => {}
            // Without permission to list, S3 answers 403 for missing objects; the error says so.
            Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. })) => {
                denied = Some(error)
            }
            Err(error) => return Err(FindError::asking(&error)),
        }
    }
    let pattern = pattern_of(key).map_err(FindError::named)?;
    let prefix = match &pattern {
        Some((prefix, _)) => prefix.clone(),
        None if key.is_empty() || key.ends_with('/') => key.to_owned(),
        None => format!("{key}/"),
    };
    let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
    let (store, asked) = (Arc::clone(&quick.store), prefix.clone());
    let mut first = None;
    let page = quick.wait(async move { store.list_paginated(some(&asked), options).await }).map_err(lost)?;
    match page {
        // Whether an object of that name can be read turns out later.
        Err(Error::InvalidPath { .. }) => {}
        Err(error) => return Err(FindError::asking(&error)),
        Ok(page) if page.result.objects.is_empty() && page.page_token.is_none() => {
            return Err(match denied {
                Some(error) => FindError::asking(&error),
                None => FindError::named("there is neither an object of this name nor one under it"),
            });
        }
        Ok(page) => first = page.result.objects.first().map(|object| object.location.to_string()),
    }
    let pattern = pattern.map(|(_, pattern)| pattern);
    Ok(Found::Many(Listing { bucket, prefix: prefix.into(), first, pattern }))
}

/// The part of a pattern before its first wildcard, up to a slash, and the pattern; `None` if the key is none.
fn pattern_of(key: &str) -> Result<Option<(String, GlobMatcher)>, String> {
    let Some(wildcard) = key.find(['*', '?', '[', '{']) else { return Ok(None) };
    let glob = GlobBuilder::new(key).literal_separator(true).build();
    let glob = glob.map_err(|error| format!("the pattern is not valid: {}", error.kind()))?;
    let folder = key[..wildcard].rfind('/').map_or(0, |slash| slash + 1);
    Ok(Some((key[..folder].to_owned(), glob.compile_matcher())))
}

/// The runtime for requests, which lives from the first address in a bucket to the end of the process.
fn runtime() -> Result<&'static Runtime, FindError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("s3").enable_all().build();
    let runtime = runtime.map_err(|error| FindError::named(format!("the runtime for requests: {error}")))?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

fn some(prefix: &str) -> Option<&str> {
    Some(prefix).filter(|prefix| !prefix.is_empty())
}

/// Objects that are listed page after page, in the order of their keys.
#[derive(Clone, Debug)]
pub struct Listing {
    bucket: Bucket,
    /// The prefix: empty, or with a `/` at its end.
    prefix: Arc<str>,
    first: Option<String>,
    pattern: Option<GlobMatcher>,
}

/// A part of a listing.
#[derive(Debug)]
pub enum Page {
    /// Objects.
    Objects(Vec<Object>),
    /// An object whose name cannot be used in a request, and why.
    BadName(String, String),
    /// The listing failed here and cannot go on.
    Failed(String),
}

impl Listing {
    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// What all keys begin with: empty, or with a `/` at its end.
    pub fn prefix(&self) -> &Arc<str> {
        &self.prefix
    }

    /// The first key under the prefix, whether or not a pattern matches it; `None` if no request can have its name.
    pub fn first_key(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Whether only what matches a pattern is listed.
    pub fn has_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Lists page after page. If a page contains a name that cannot be used in a request, the whole page fails. It is then listed in smaller
    /// pages, until that name stands alone and is skipped.
    pub async fn send(self, pages: mpsc::Sender<Page>) {
        let Self { bucket, prefix, pattern, first: _ } = self;
        let is_listed = |key: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(key));
        let mut next = PaginatedListOptions::default();
        let mut most = PAGE;
        let (hashes, mut seen) = (RandomState::new(), HashSet::new());
        loop {
            let options = PaginatedListOptions { max_keys: Some(most), ..next.clone() };
            let (page, then) = match bucket.store.list_paginated(some(&prefix), options).await {
                // If a server gives a token that it gave before, at once or after others, the listing would never end.
                Ok(PaginatedListResult { page_token: Some(token), .. })
                    if !seen.insert(hashes.hash_one(&token)) =>
                {
                    let why = "the server says again where to go on, with a token that it gave before";
                    (Page::Failed(why.to_owned()), None)
                }
                Ok(page) => {
                    most = (2 * most).min(PAGE);
                    let then = page.page_token.map(|token| PaginatedListOptions {
                        page_token: Some(token),
                        ..PaginatedListOptions::default()
                    });
                    let listed = page.result.objects.into_iter();
                    let listed = listed.filter(|meta| is_listed(meta.location.as_ref()));
                    (Page::Objects(listed.map(|meta| Object::listed(&bucket, meta)).collect()), then)
                }
                Err(Error::InvalidPath { .. }) if most > 1 => {
                    most /= 2;
                    continue;
                }
                Err(Error::InvalidPath { source }) => {
                    let name = match &source {
                        NameError::EmptySegment { path } | NameError::BadSegment { path, .. } => path.clone(),
                        _ => String::new(),
                    };
                    // Continues behind that name, unless the listing makes no progress from there.
                    let is_next =
                        name.starts_with(&*prefix) && next.offset.as_ref().is_none_or(|last| *last < name);
                    let then = PaginatedListOptions {
                        offset: Some(name.clone()),
                        ..PaginatedListOptions::default()
                    };
                    let page = match is_listed(&name) {
                        true => Page::BadName(name, bad_name(&source)),
                        false => Page::Objects(Vec::new()),
                    };
                    (page, is_next.then_some(then))
                }
                Err(error) => (Page::Failed(describe(&error)), None),
            };
            if pages.send(page).await.is_err() {
                return;
            }
            let Some(then) = then else { return };
            next = then;
        }
    }

    /// Lists all objects whose key is wanted, and waits for them.
    ///
    /// # Errors
    /// The listing broke off, or a wanted object has a name that cannot be used in a request.
    pub fn objects(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Object>, String> {
        let (out, listed) = blocking::channel();
        let listing = self.clone();
        self.bucket.spawn(async move {
            let (pages, mut taken) = mpsc::channel(1);
            let send = listing.send(pages);
            let pass_on = async {
                while let Some(page) = taken.recv().await {
                    if out.send(page).is_err() {
                        return;
                    }
                }
            };
            tokio::join!(send, pass_on);
        });
        let mut objects = Vec::new();
        for page in listed {
            match page {
                Page::Objects(page) => {
                    objects.extend(page.into_iter().filter(|object| is_wanted(object.key())));
                }
                Page::BadName(key, why) if is_wanted(&key) => return Err(format!("{key}: {why}")),
                Page::BadName(..) => {}
                Page::Failed(why) => return Err(format!("the listing broke off: {why}")),
            }
        }
        Ok(objects)
    }
}

/// An object of a bucket.
#[derive(Clone)]
pub struct Object {
    bucket: Bucket,
    location: Path,
    /// What the server said of it; empty until it is asked.
    meta: Arc<OnceLock<ObjectMeta>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl Object {
    fn listed(bucket: &Bucket, meta: ObjectMeta) -> Self {
        Self { bucket: bucket.clone(), location: meta.location.clone(), meta: Arc::new(OnceLock::from(meta)) }
    }

    /// Its bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Its key.
    pub fn key(&self) -> &str {
        self.location.as_ref()
    }

    /// Its address: `s3://BUCKET/KEY`.
    pub fn address(&self) -> String {
        self.bucket.address(self.key())
    }

    /// Number of its bytes. The server is asked if it was not before.
    ///
    /// # Errors
    /// The server does not tell.
    pub fn size(&self) -> io::Result<u64> {
        if let Some(meta) = self.meta.get() {
            return Ok(meta.size);
        }
        let (store, location) = (Arc::clone(&self.bucket.store), self.location.clone());
        let meta = self.bucket.wait(async move { store.head(&location).await }).map_err(io::Error::other)?;
        let meta = meta.map_err(|error| io::Error::other(describe(&error)))?;
        Ok(self.meta.get_or_init(|| meta).size)
    }

    /// Reads a range, which is fetched from now on.
    pub fn read(&self, range: Range<u64>) -> Reader {
        let (pieces, reader) = pieces();
        let object = self.clone();
        self.bucket.spawn(async move { Ahead::new(ONE_BYTES).fetch(&object, range, &pieces).await });
        reader
    }

    async fn piece(&self, range: Range<u64>) -> Result<Vec<u8>, PieceError> {
        let meta = self.meta.get();
        let is_all = range.start == 0 && meta.is_some_and(|meta| range.end == meta.size);
        let options = GetOptions {
            if_match: meta.and_then(|meta| meta.e_tag.clone()),
            range: (!is_all).then(|| GetRange::Bounded(range.clone())),
            ..GetOptions::default()
        };
        let changed = || match meta {
            Some(_) => PieceError::of_the_object("it was changed while it was read; run the command again"),
            None => PieceError::of_the_object("it does not have the bytes that were asked for"),
        };
        let failed = |error: Error| match error {
            Error::NotFound { .. } if meta.is_none() => PieceError::of_the_object("it is not there"),
            Error::NotFound { .. } => {
                PieceError::of_the_object("it is not there any more: it was removed after it was listed")
            }
            Error::Precondition { .. } => changed(),
            error => PieceError { message: describe(&error), is_of_the_server: is_of_the_server(&error) },
        };
        let found = self.bucket.store.get_opts(&self.location, options).await.map_err(failed)?;
        // For servers without ETags, a changed object is recognised by its length.
        if found.range != range || meta.is_some_and(|meta| found.meta.size != meta.size) {
            return Err(changed());
        }
        let bytes = found.bytes().await.map_err(failed)?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(changed());
        }
        Ok(bytes.into())
    }
}

/// Fetches pieces of objects ahead of their readers. Clones share what may be fetched at once.
#[derive(Clone, Debug)]
pub struct Ahead {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Whether the server has stopped answering.
    is_gone: Arc<AtomicBool>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self::new(MANY_BYTES)
    }
}

impl Ahead {
    fn new(bytes: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(REQUESTS)),
            bytes: Arc::new(Semaphore::new(bytes)),
            is_gone: Arc::default(),
        }
    }

    /// Whether the server has stopped answering.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Requests the pieces of a range, each as soon as there is room. The reader frees room by reading, and it reads the first pieces
    /// first, so room is given in that order.
    pub async fn fetch(&self, object: &Object, range: Range<u64>, pieces: &Pieces) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + PIECE);
            let room = u32::try_from(end - start).expect("a piece is small");
            let room = Arc::clone(&self.bytes).acquire_many_owned(room).await.expect("it is never closed");
            let request = Arc::clone(&self.requests).acquire_owned().await.expect("it is never closed");
            let (done, bytes) = blocking::sync_channel(1);
            // If the reader gives up an object, for example a damaged one, the rest of the object is not fetched.
            if pieces.0.send(Piece { bytes, room }).is_err() {
                return;
            }
            if self.is_gone() {
                // An error is sent, because otherwise the object would seem to end here.
                let _ = done.send(Err(PieceError::of_the_object("the server does not answer any more")));
                return;
            }
            let (object, is_gone) = (object.clone(), Arc::clone(&self.is_gone));
            tokio::spawn(async move {
                let piece = object.piece(start..end).await;
                drop(request);
                if piece.as_ref().is_err_and(|error| error.is_of_the_server) {
                    is_gone.store(true, Ordering::Relaxed);
                }
                // The receiver is gone if the object is not read to its end.
                let _ = done.send(piece);
            });
            start = end;
        }
    }
}

/// Where the pieces of an object go, and their reader.
pub fn pieces() -> (Pieces, Reader) {
    let (pieces, taken) = blocking::channel();
    (Pieces(pieces), Reader { pieces: taken, piece: io::Cursor::default(), _room: None })
}

/// Where the pieces of an object go. The room for bytes bounds them.
#[derive(Debug)]
pub struct Pieces(blocking::Sender<Piece>);

/// A piece that is being fetched, and the room that it takes.
#[derive(Debug)]
struct Piece {
    bytes: blocking::Receiver<Result<Vec<u8>, PieceError>>,
    room: OwnedSemaphorePermit,
}

/// Why a piece could not be fetched.
#[derive(Debug)]
struct PieceError {
    message: String,
    is_of_the_server: bool,
}

impl PieceError {
    fn of_the_object(message: &str) -> Self {
        Self { message: message.to_owned(), is_of_the_server: false }
    }
}

/// Reads an object piece by piece, and waits for them.
#[derive(Debug)]
pub struct Reader {
    pieces: blocking::Receiver<Piece>,
    piece: io::Cursor<Vec<u8>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill_buf()?;
        self.piece.read(buffer)
    }
}

impl BufRead for Reader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece.position() >= self.piece.get_ref().len() as u64 {
            // The room of this piece is freed before the next one is awaited.
            self.piece = io::Cursor::default();
            self._room = None;
            if let Ok(Piece { bytes, room }) = self.pieces.recv() {
                let lost = |_| io::Error::other("its fetch ended in a panic; please report it");
                let bytes = bytes.recv().map_err(lost)?;
                self.piece = io::Cursor::new(bytes.map_err(|broken| io::Error::other(broken.message))?);
                self._room = Some(room);
            }
        }
        self.piece.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.piece.consume(bytes);
    }
}

/// The error as one line, with what to do.
fn describe(error: &Error) -> String {
    crate::describe(error, USE)
}
