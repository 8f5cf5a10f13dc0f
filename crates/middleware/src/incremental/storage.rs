//! The storage of page records across crawls: a store in its own directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use huntsman_crawler::{Error, Fingerprint, Request, Result, log, meta};
use huntsman_store::{Backend, Batch, Durability, JobDirectory, Store, Writer};
use xxhash_rust::xxh3::xxh3_128;

use super::record::Record;

/// Records of pages by fingerprint, and which pages gave items.
///
/// | key | value |
/// |---|---|
/// | `p`, fingerprint | what is known of the page |
/// | `d`, fingerprint or hash of `delta_key` | number of the crawl in which it last gave items |
/// | `n` | number of the last crawl |
#[derive(Debug)]
pub(crate) struct Storage {
    store: Arc<dyn Store>,
    writer: Writer,
    failed: Arc<AtomicBool>,
    /// The number of this crawl, from 1. Clocks can be set back; this only grows.
    crawl: u64,
}

/// The key of a request for delta crawls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaKey(u128);

/// Bytes of the store that are held in memory.
const CACHE_BYTES: usize = 16 << 20;
const CRAWLS: &[u8] = b"n";

impl DeltaKey {
    /// By `delta_key` of the request's meta, or by its fingerprint.
    pub(crate) fn of(request: &Request) -> Self {
        match request.meta_text(meta::DELTA_KEY) {
            Some(name) => Self(xxh3_128(name.as_bytes())),
            None => Self(request.fingerprint().0),
        }
    }
}

impl From<Fingerprint> for DeltaKey {
    fn from(fingerprint: Fingerprint) -> Self {
        Self(fingerprint.0)
    }
}

impl Storage {
    /// Opens the storage; nothing is written before the crawl begins, because settings may be inspected without one.
    pub(crate) fn open(directory: &str) -> Result<Self> {
        let opened = JobDirectory::open_with_cache(directory, Backend::Redb, CACHE_BYTES);
        let doing = || format!("opening what is known of pages (setting incremental_dir) in {directory}");
        let store = opened.map_err(|error| Error::from(error).context(doing()))?.store();
        let crawl = store.get(CRAWLS)?.as_deref().map_or(0, number).saturating_add(1);
        let writer = Writer::new(Arc::clone(&store), Durability::Process)?;
        Ok(Self { store, writer, failed: Arc::default(), crawl })
    }

    /// The crawl begins; forgets which pages gave items if that is asked for. Blocks.
    pub(crate) fn begin(&self, delta_reset: bool) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(CRAWLS, self.crawl.to_le_bytes());
        if delta_reset {
            self.store.scan(b"d", &mut |key, _| {
                batch.delete(key);
                true
            })?;
        }
        Ok(self.store.write(&batch, Durability::Process)?)
    }

    /// What is known of a page; blocks.
    pub(crate) fn record(&self, fingerprint: Fingerprint) -> Result<Option<Record>> {
        match self.store.get(&key(b'p', fingerprint.0))? {
            Some(bytes) => Ok(Some(Record::from_bytes(&bytes)?)),
            None => Ok(None),
        }
    }

    /// Whether a request's page gave items in an earlier crawl; blocks.
    pub(crate) fn has_items(&self, delta: DeltaKey) -> Result<bool> {
        let crawl = self.store.get(&key(b'd', delta.0))?;
        Ok(crawl.is_some_and(|crawl| number(&crawl) < self.crawl))
    }

    pub(crate) fn put_record(&self, batch: &mut Batch, fingerprint: Fingerprint, record: &Record) {
        match record.to_bytes() {
            Ok(bytes) => batch.put(key(b'p', fingerprint.0), bytes),
            Err(error) => log::warn!("a page is not remembered: {error}"),
        }
    }

    pub(crate) fn put_items(&self, batch: &mut Batch, delta: DeltaKey) {
        batch.put(key(b'd', delta.0), self.crawl.to_le_bytes());
    }

    /// Hands a batch to the writer; blocks while very much waits to be written.
    pub(crate) fn write(&self, batch: Batch) {
        if batch.is_empty() || self.failed.load(Ordering::Relaxed) {
            return;
        }
        let failed = Arc::clone(&self.failed);
        self.writer.write(batch, move |result| {
            if let Err(error) = result
                && !failed.swap(true, Ordering::Relaxed)
            {
                log::warn!("nothing more is remembered for later crawls: {error}");
            }
        });
    }
}

fn key(kind: u8, key: u128) -> Vec<u8> {
    [&[kind][..], &key.to_be_bytes()].concat()
}

/// A crawl's number; what is none is 0, long ago.
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
