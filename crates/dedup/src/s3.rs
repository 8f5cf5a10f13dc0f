//! Objects of a bucket as input, from S3 or a compatible server.
//!
//! Listing, fetching and reading overlap: a page of names is listed ahead, and pieces of the next objects are fetched ahead, as many as
//! [`REQUESTS`] and [`PREFETCH_BYTES`] allow, and read in the order of the names. Each piece has a request of its own, so that an object of any size
//! is read at the reader's speed without an idle connection.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use huntsman_bucket::{bad_name, connected, is_of_the_server};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::{Error as NameError, Path};
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::error::Error as RunError;
use crate::input::{Entries, Entry, Kind, Open, is_of_table};
use crate::manifest::Manifest;

/// Bytes per request at most.
const PIECE: u64 = 1 << 20;
/// Bytes that are fetched ahead at most, over all objects.
const PREFETCH_BYTES: u64 = 16 << 20;
/// Requests at the same time at most. With many of them, small objects do not wait for one round trip each.
const REQUESTS: usize = 64;
/// Names per page of a listing, which is the most that S3 gives.
const PAGE: usize = 1_000;
/// What the credentials must allow, for advice in errors.
const USE: &str = "list and read it";

/// One object, or the objects under a prefix.
pub struct Objects {
    runtime: &'static Runtime,
    store: Arc<AmazonS3>,
    bucket: Arc<str>,
    selection: Selection,
    are_tables: bool,
}

enum Selection {
    One(ObjectMeta),
    /// The prefix: empty, or with a `/` at its end.
    Under(Arc<str>),
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.selection {
            Selection::One(object) => write!(f, "s3://{}/{}", self.bucket, object.location),
            Selection::Under(prefix) => write!(f, "s3://{}/{prefix}", self.bucket),
        }
    }
}

impl Objects {
    /// Finds the input `s3://BUCKET/KEY`: an object, or else the objects under `KEY/`.
    ///
    /// # Errors
    /// The address is not valid, nothing is there, or the server cannot be asked.
    pub fn find(input: &str) -> Result<Self, RunError> {
        let named = |message: String| RunError::Input { name: input.to_owned(), message };
        let address = input.strip_prefix("s3://").unwrap_or(input);
        let (bucket, key) = address.split_once('/').unwrap_or((address, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_name) {
            return Err(named("use s3://BUCKET, s3://BUCKET/PREFIX or s3://BUCKET/KEY".to_owned()));
        }
        let runtime = runtime()?;
        let asking = |error: &Error| {
            let message = describe(error);
            match is_of_the_server(error) {
                true => RunError::Unavailable { name: input.to_owned(), message },
                false => named(message),
            }
        };
        // The first request gives up soon, so that a user at a terminal learns quickly that the server does not answer; the requests of a
        // long run wait longer.
        let quick = connected(bucket, 3, Duration::from_secs(10), USE).map_err(named)?;
        let mut denied = None;
        if !key.is_empty() && !key.ends_with('/') {
            let path = Path::parse(key).map_err(|error| named(bad_name(&error)))?;
            match runtime.block_on(quick.head(&path)) {
                Ok(object) => {
                    let is_table = is_of_table(object.location.filename().unwrap_or_default());
                    return Self::new(runtime, bucket, Selection::One(object), is_table).map_err(named);
                }
                Err(Error::NotFound { .. }) => {}
                // Without permission to list, S3 answers 403 for missing objects; the error says so.
                Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. })) => {
                    denied = Some(error)
                }
                Err(error) => return Err(asking(&error)),
            }
        }
        let prefix = if key.is_empty() || key.ends_with('/') { key.to_owned() } else { format!("{key}/") };
        let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
        // The first object tells: the name of the file that an export ends with is before those of its parts.
        let mut are_tables = false;
        match runtime.block_on(quick.list_paginated(some(&prefix), options)) {
            // Whether an object of that name can be read turns out later.
            Err(Error::InvalidPath { .. }) => {}
            Err(error) => return Err(asking(&error)),
            Ok(page) if page.result.objects.is_empty() && page.page_token.is_none() => {
                return Err(match denied {
                    Some(error) => asking(&error),
                    None => named("there is neither an object of this name nor one under it".to_owned()),
                });
            }
            Ok(page) => {
                let first =
                    page.result.objects.first().and_then(|object| {
                        object.location.as_ref().strip_prefix(&*prefix).map(str::to_owned)
                    });
                are_tables = first.is_some_and(|name| !name.contains('/') && is_of_table(&name));
            }
        }
        Self::new(runtime, bucket, Selection::Under(prefix.into()), are_tables).map_err(named)
    }

    fn new(
        runtime: &'static Runtime,
        bucket: &str,
        selection: Selection,
        are_tables: bool,
    ) -> Result<Self, String> {
        let store = connected(bucket, 10, Duration::from_secs(120), USE)?;
        Ok(Self { runtime, store: Arc::new(store), bucket: bucket.into(), selection, are_tables })
    }

    /// Whether these are tables of fingerprints, by their names.
    pub(super) fn are_tables(&self) -> bool {
        self.are_tables
    }

    /// The objects in the order of their keys, with fetching under way. If a document is too long, only as much is fetched as shows that.
    pub(super) fn entries(&self, list: Option<Arc<Manifest>>, max_document: u64) -> Entries {
        let (out, entries) = mpsc::channel(REQUESTS);
        let (pages, listed) = mpsc::channel(1);
        let root = match &self.selection {
            Selection::One(object) => {
                let name = object.location.filename().unwrap_or_default();
                let page = Page::Objects(vec![object.clone()], Some(Kind::of_named(name)));
                // The channel has room for one page.
                let _ = pages.try_send(page);
                object.location.as_ref().strip_suffix(name).unwrap_or_default().into()
            }
            Selection::Under(prefix) => {
                self.runtime.spawn(list_under(Arc::clone(&self.store), Arc::clone(prefix), pages));
                Arc::clone(prefix)
            }
        };
        let ahead = Prefetcher {
            store: Arc::clone(&self.store),
            bucket: Arc::clone(&self.bucket),
            root,
            list: if matches!(self.selection, Selection::One(_)) { None } else { list },
            max_document,
            requests: Arc::new(Semaphore::new(REQUESTS)),
            bytes: Arc::new(Semaphore::new(PREFETCH_BYTES as usize)),
            is_gone: Arc::new(AtomicBool::new(false)),
            out,
        };
        self.runtime.spawn(ahead.run(listed));
        let mut entries = entries;
        Box::new(std::iter::from_fn(move || entries.blocking_recv()))
    }
}

/// The runtime for requests, which lives from the first input in a bucket to the end of the process.
fn runtime() -> Result<&'static Runtime, RunError> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("s3").enable_all().build();
    let runtime = runtime.map_err(|error| RunError::Start { what: "the runtime", source: error })?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

fn some(prefix: &str) -> Option<&str> {
    Some(prefix).filter(|prefix| !prefix.is_empty())
}

/// A page of a listing.
enum Page {
    /// Objects, and their kind if it does not follow from their names.
    Objects(Vec<ObjectMeta>, Option<Kind>),
    /// An object whose name cannot be used in a request.
    BadName(String, NameError),
    /// The listing failed here and cannot go on.
    Failed(Error),
}

/// Lists page after page. If a page contains a name that cannot be used in a request, the whole page fails. It is then listed in smaller
/// pages, until that name stands alone and is skipped.
async fn list_under(store: Arc<AmazonS3>, prefix: Arc<str>, pages: mpsc::Sender<Page>) {
    let mut next = PaginatedListOptions::default();
    let mut most = PAGE;
    let (hashes, mut seen) = (RandomState::new(), HashSet::new());
    loop {
        let options = PaginatedListOptions { max_keys: Some(most), ..next.clone() };
        let (page, then) = match store.list_paginated(some(&prefix), options).await {
            // If a server gives a token that it gave before, at once or after others, the listing would never end.
            Ok(PaginatedListResult { page_token: Some(token), .. })
                if !seen.insert(hashes.hash_one(&token)) =>
            {
                let source = "the server says again where to go on, with a token that it gave before".into();
                (Page::Failed(Error::Generic { store: "S3", source }), None)
            }
            Ok(page) => {
                most = (2 * most).min(PAGE);
                let then = page.page_token.map(|token| PaginatedListOptions {
                    page_token: Some(token),
                    ..PaginatedListOptions::default()
                });
                (Page::Objects(page.result.objects, None), then)
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
                let then =
                    PaginatedListOptions { offset: Some(name.clone()), ..PaginatedListOptions::default() };
                (Page::BadName(name, source), is_next.then_some(then))
            }
            Err(error) => (Page::Failed(error), None),
        };
        if pages.send(page).await.is_err() {
            return;
        }
        let Some(then) = then else { return };
        next = then;
    }
}

/// Fetches the listed objects ahead of the reader.
struct Prefetcher {
    store: Arc<AmazonS3>,
    bucket: Arc<str>,
    /// The part of the keys that is not part of the paths.
    root: Arc<str>,
    list: Option<Arc<Manifest>>,
    max_document: u64,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// Whether the server has stopped answering.
    is_gone: Arc<AtomicBool>,
    out: mpsc::Sender<Result<Entry, String>>,
}

/// The error if the reader is gone.
struct ReceiverGone;

impl Prefetcher {
    async fn run(self, mut pages: mpsc::Receiver<Page>) {
        while let Some(page) = pages.recv().await {
            let done = match page {
                Page::Objects(objects, kind) => self.objects(objects, kind).await,
                Page::BadName(key, error) => self.send_bad_name(key, &error).await,
                Page::Failed(error) => {
                    let message =
                        format!("the listing broke off: {}; what was listed was read", describe(&error));
                    self.send_error(&message).await
                }
            };
            if done.is_err() {
                return;
            }
        }
    }

    async fn objects(&self, objects: Vec<ObjectMeta>, named: Option<Kind>) -> Result<(), ReceiverGone> {
        for object in objects {
            let Some(path) = object.location.as_ref().strip_prefix(&*self.root) else { continue };
            let Some(kind) = named.or_else(|| Kind::of(path)) else { continue };
            if !kind.is_wanted(path, self.list.as_deref()) {
                continue;
            }
            if self.is_gone.load(Ordering::Relaxed) {
                self.send_error("the server does not answer any more; the objects after those were not read")
                    .await?;
                return Err(ReceiverGone);
            }
            let (pieces, taken) = mpsc::unbounded_channel();
            let reader = Object { pieces: taken, piece: io::Cursor::default(), _room: None };
            let shown = self.shown(object.location.as_ref());
            let open: Open = Box::new(move || Ok(Box::new(reader)));
            let entry = Entry { shown, path: Some(path.to_owned()), kind, open };
            self.send(Ok(entry)).await?;
            let needed = match kind {
                Kind::Document { .. } => object.size.min(self.max_document + 1),
                Kind::Lines | Kind::Archive => object.size,
                Kind::Table => 0,
            };
            self.fetch(object, needed, &pieces).await;
        }
        Ok(())
    }

    /// Requests the pieces of an object, each as soon as there is room. The reader frees room by reading, and it reads the first pieces
    /// first, so room is given in that order.
    async fn fetch(&self, object: ObjectMeta, needed: u64, pieces: &mpsc::UnboundedSender<Piece>) {
        let object = Arc::new(object);
        let mut start = 0;
        while start < needed {
            let end = needed.min(start + PIECE);
            let room = u32::try_from(end - start).expect("a piece is small");
            let room = Arc::clone(&self.bytes).acquire_many_owned(room).await.expect("it is never closed");
            let request = Arc::clone(&self.requests).acquire_owned().await.expect("it is never closed");
            let (done, bytes) = oneshot::channel();
            // If the reader gives up an object, for example a damaged one, the rest of the object is not fetched.
            if pieces.send(Piece { bytes, room }).is_err() {
                return;
            }
            if self.is_gone.load(Ordering::Relaxed) {
                // An error is sent, because otherwise the object would seem to end here.
                let _ = done.send(Err(PieceError::of_the_object("the server does not answer any more")));
                return;
            }
            let (store, object, is_gone) =
                (Arc::clone(&self.store), Arc::clone(&object), Arc::clone(&self.is_gone));
            tokio::spawn(async move {
                let piece = piece(&store, &object, start..end).await;
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

    async fn send_bad_name(&self, key: String, error: &NameError) -> Result<(), ReceiverGone> {
        let path = key.strip_prefix(&*self.root).unwrap_or(&key);
        let Some(kind) = Kind::of(path).filter(|kind| kind.is_wanted(path, self.list.as_deref())) else {
            return Ok(());
        };
        let message = bad_name(error);
        let open: Open = Box::new(move || Err(io::Error::other(message)));
        self.send(Ok(Entry { shown: self.shown(&key), path: Some(path.to_owned()), kind, open })).await
    }

    async fn send_error(&self, what: &str) -> Result<(), ReceiverGone> {
        self.send(Err(format!("{}: {what}", self.shown(&self.root)))).await
    }

    async fn send(&self, entry: Result<Entry, String>) -> Result<(), ReceiverGone> {
        self.out.send(entry).await.map_err(|_| ReceiverGone)
    }

    fn shown(&self, key: &str) -> Arc<str> {
        format!("s3://{}/{key}", self.bucket).into()
    }
}

/// A piece that is being fetched, and the room that it takes.
struct Piece {
    bytes: oneshot::Receiver<Result<Vec<u8>, PieceError>>,
    room: OwnedSemaphorePermit,
}

/// Why a piece could not be fetched.
struct PieceError {
    message: String,
    is_of_the_server: bool,
}

impl PieceError {
    fn of_the_object(message: &str) -> Self {
        Self { message: message.to_owned(), is_of_the_server: false }
    }
}

async fn piece(store: &AmazonS3, object: &ObjectMeta, range: Range<u64>) -> Result<Vec<u8>, PieceError> {
    let is_all = range.start == 0 && range.end == object.size;
    let options = GetOptions {
        if_match: object.e_tag.clone(),
        range: (!is_all).then(|| GetRange::Bounded(range.clone())),
        ..GetOptions::default()
    };
    let changed = || PieceError::of_the_object("it was changed while it was read; run the command again");
    let failed = |error: Error| match error {
        Error::NotFound { .. } => {
            PieceError::of_the_object("it is not there any more: it was removed after it was listed")
        }
        Error::Precondition { .. } => changed(),
        error => PieceError { message: describe(&error), is_of_the_server: is_of_the_server(&error) },
    };
    let found = store.get_opts(&object.location, options).await.map_err(failed)?;
    // For servers without ETags, a changed object is recognised by its length.
    if found.range != range || found.meta.size != object.size {
        return Err(changed());
    }
    let bytes = found.bytes().await.map_err(failed)?;
    if bytes.len() as u64 != range.end - range.start {
        return Err(changed());
    }
    Ok(bytes.into())
}

/// Reads an object piece by piece.
struct Object {
    pieces: mpsc::UnboundedReceiver<Piece>,
    piece: io::Cursor<Vec<u8>>,
    _room: Option<OwnedSemaphorePermit>,
}

impl Read for Object {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.fill_buf()?;
        self.piece.read(buffer)
    }
}

impl BufRead for Object {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.piece.position() >= self.piece.get_ref().len() as u64 {
            // The room of this piece is freed before the next one is awaited.
            self.piece = io::Cursor::default();
            self._room = None;
            if let Some(Piece { bytes, room }) = self.pieces.blocking_recv() {
                let lost = || io::Error::other("its fetch ended in a panic; please report it");
                let bytes = bytes.blocking_recv().map_err(|_| lost())?;
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
    huntsman_bucket::describe(error, USE)
}
