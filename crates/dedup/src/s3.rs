//! Objects of a bucket as input, from S3 or a compatible server.
//!
//! Listing, fetching and reading overlap: a page of names is listed ahead, and pieces of the next objects are fetched ahead and read in the order of
//! the names.

use std::io;
use std::sync::Arc;

use huntsman_bucket::{Ahead, Bucket, Found, Object, Page, REQUESTS, find, pieces};
use tokio::sync::mpsc;

use crate::error::Error as RunError;
use crate::input::{Entries, Entry, Kind, Open, is_of_table};
use crate::manifest::Manifest;

/// One object, the objects under a prefix, or those that match a pattern.
#[derive(Debug)]
pub struct Objects(Found);

impl Objects {
    /// Finds the input `s3://BUCKET/KEY`: an object, or else the objects that match `KEY` if it is a pattern, or those under `KEY/`.
    ///
    /// # Errors
    /// The address is not valid, nothing is there, or the server cannot be asked.
    pub fn find(input: &str) -> Result<Self, RunError> {
        find(input).map(Self).map_err(|error| {
            let (name, message) = (input.to_owned(), error.message);
            match error.is_of_the_server {
                true => RunError::Unavailable { name, message },
                false => RunError::Input { name, message },
            }
        })
    }

    /// Whether these are tables of fingerprints, by their names. The first object tells, because the name of the file that an export ends with is
    /// before those of its parts.
    pub(super) fn are_tables(&self) -> bool {
        match &self.0 {
            Found::One(object) => is_of_table(object.key().rsplit('/').next().unwrap_or_default()),
            Found::Many(listing) => {
                let name = listing.first_key().and_then(|key| key.strip_prefix(&**listing.prefix()));
                !listing.has_pattern() && name.is_some_and(|name| !name.contains('/') && is_of_table(name))
            }
        }
    }

    /// The objects in the order of their keys, with fetching under way. If a document is too long, only as much is fetched as shows that.
    pub(super) fn entries(&self, list: Option<Arc<Manifest>>, max_document: u64) -> Entries {
        let (out, entries) = mpsc::channel(REQUESTS);
        let (pages, listed) = mpsc::channel(1);
        let (bucket, root, is_pattern, named) = match &self.0 {
            Found::One(object) => {
                let name = object.key().rsplit('/').next().unwrap_or_default();
                // The channel has room for one page.
                let _ = pages.try_send(Page::Objects(vec![object.clone()]));
                let root = object.key().strip_suffix(name).unwrap_or_default().into();
                (object.bucket().clone(), root, false, Some(Kind::of_named(name)))
            }
            Found::Many(listing) => {
                listing.bucket().spawn(listing.clone().send(pages));
                (listing.bucket().clone(), Arc::clone(listing.prefix()), listing.has_pattern(), None)
            }
        };
        let ahead = Prefetcher {
            bucket: bucket.clone(),
            root,
            list: if named.is_some() { None } else { list },
            named,
            is_pattern,
            max_document,
            ahead: Ahead::default(),
            out,
        };
        bucket.spawn(ahead.run(listed));
        let mut entries = entries;
        Box::new(std::iter::from_fn(move || entries.blocking_recv()))
    }
}

/// Fetches the listed objects ahead of the reader.
struct Prefetcher {
    bucket: Bucket,
    /// The part of the keys that is not part of the paths.
    root: Arc<str>,
    list: Option<Arc<Manifest>>,
    /// The kind of the one object that the user named.
    named: Option<Kind>,
    is_pattern: bool,
    max_document: u64,
    ahead: Ahead,
    out: mpsc::Sender<Result<Entry, String>>,
}

/// The error if the reader is gone.
struct ReceiverGone;

impl Prefetcher {
    async fn run(self, mut pages: mpsc::Receiver<Page>) {
        let mut listed = 0;
        while let Some(page) = pages.recv().await {
            let done = match page {
                Page::Objects(objects) => {
                    listed += objects.len();
                    self.objects(objects).await
                }
                Page::BadName(key, why) => {
                    listed += 1;
                    self.send_bad_name(key, why).await
                }
                Page::Failed(why) => {
                    listed += 1;
                    self.send_error(&format!("the listing broke off: {why}; what was listed was read")).await
                }
            };
            if done.is_err() {
                return;
            }
        }
        if self.is_pattern && listed == 0 {
            // The reader is gone, or reads it.
            let _ = self.send_error("no object matches the pattern").await;
        }
    }

    async fn objects(&self, objects: Vec<Object>) -> Result<(), ReceiverGone> {
        for object in objects {
            let Some(path) = object.key().strip_prefix(&*self.root) else { continue };
            let Some(kind) = self.named.or_else(|| Kind::of(path)) else { continue };
            if !kind.is_wanted(path, self.list.as_deref()) {
                continue;
            }
            if self.ahead.is_gone() {
                self.send_error("the server does not answer any more; the objects after those were not read")
                    .await?;
                return Err(ReceiverGone);
            }
            // It was listed, so nothing is asked for it.
            let size = match object.size() {
                Ok(size) => size,
                Err(error) => {
                    self.send(Err(format!("{}: {error}", object.address()))).await?;
                    continue;
                }
            };
            let needed = match kind {
                Kind::Document { .. } => size.min(self.max_document + 1),
                Kind::Lines | Kind::Archive => size,
                Kind::Table => 0,
            };
            let (pieces, reader) = pieces();
            let open: Open = Box::new(move || Ok(Box::new(reader)));
            let (shown, path) = (object.address().into(), Some(path.to_owned()));
            self.send(Ok(Entry { shown, path, kind, open })).await?;
            self.ahead.fetch(&object, 0..needed, &pieces).await;
        }
        Ok(())
    }

    async fn send_bad_name(&self, key: String, why: String) -> Result<(), ReceiverGone> {
        let path = key.strip_prefix(&*self.root).unwrap_or(&key);
        let Some(kind) = Kind::of(path).filter(|kind| kind.is_wanted(path, self.list.as_deref())) else {
            return Ok(());
        };
        let open: Open = Box::new(move || Err(io::Error::other(why)));
        let shown = self.bucket.address(&key).into();
        self.send(Ok(Entry { shown, path: Some(path.to_owned()), kind, open })).await
    }

    async fn send_error(&self, what: &str) -> Result<(), ReceiverGone> {
        self.send(Err(format!("{}: {what}", self.bucket.address(&self.root)))).await
    }

    async fn send(&self, entry: Result<Entry, String>) -> Result<(), ReceiverGone> {
        self.out.send(entry).await.map_err(|_| ReceiverGone)
    }
}
