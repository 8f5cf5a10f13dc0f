//! Where answers are stored: one store in one directory, read by key, written by its group-commit thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use huntsman_crawler::{Fingerprint, Result};
use huntsman_store::{Backend, Batch, Durability, JobDirectory, Store, Writer};
use xxhash_rust::xxh3::Xxh3;

use super::entry::Entry;

/// Answers by fingerprint; those that vary, by the values of the varying request headers, too.
///
/// | key | value |
/// |---|---|
/// | `a`, fingerprint | the answer |
/// | `v`, fingerprint | names of the headers by which it varies, one per line |
/// | `a`, fingerprint, hash of their values | the answer to these values |
#[derive(Debug)]
pub(crate) struct Storage {
    store: Arc<dyn Store>,
    writer: Writer,
    failed: Arc<AtomicBool>,
}

/// Bytes of the store that are held in memory.
const CACHE_BYTES: usize = 16 << 20;

impl Storage {
    pub(crate) fn open(directory: &str) -> Result<Self> {
        let opened = JobDirectory::open_with_cache(directory, Backend::Redb, CACHE_BYTES);
        let doing = || format!("opening the HTTP cache (setting httpcache_dir) in {directory}");
        let store = opened.map_err(|error| huntsman_crawler::Error::from(error).context(doing()))?.store();
        let writer = Writer::new(Arc::clone(&store), Durability::Process)?;
        Ok(Self { store, writer, failed: Arc::default() })
    }

    /// The stored answer to a request; blocks.
    pub(crate) fn get(&self, fingerprint: Fingerprint, asked: &HeaderMap) -> Result<Option<Entry>> {
        let varying = match self.store.get(&key(b'v', fingerprint, None))? {
            Some(names) => Some(variant(std::str::from_utf8(&names)?.lines(), asked)),
            None => None,
        };
        match self.store.get(&key(b'a', fingerprint, varying))? {
            Some(bytes) => Ok(Some(Entry::from_bytes(&bytes)?)),
            None => Ok(None),
        }
    }

    /// Stores an answer; blocks while very much waits to be written.
    pub(crate) fn put(&self, fingerprint: Fingerprint, asked: &HeaderMap, varying: &[String], entry: &Entry) {
        let mut batch = Batch::new();
        if varying.is_empty() {
            batch.delete(key(b'v', fingerprint, None));
            batch.put(key(b'a', fingerprint, None), entry.to_bytes());
        } else {
            let values = variant(varying.iter().map(String::as_str), asked);
            batch.put(key(b'v', fingerprint, None), varying.join("\n"));
            batch.put(key(b'a', fingerprint, Some(values)), entry.to_bytes());
        }
        self.write(batch);
    }

    /// Forgets the answer to a request.
    pub(crate) fn remove(&self, fingerprint: Fingerprint, asked: &HeaderMap, varying: &[String]) {
        let values = (!varying.is_empty()).then(|| variant(varying.iter().map(String::as_str), asked));
        let mut batch = Batch::new();
        batch.delete(key(b'a', fingerprint, values));
        self.write(batch);
    }

    fn write(&self, batch: Batch) {
        let failed = Arc::clone(&self.failed);
        self.writer.write(batch, move |result| {
            if let Err(error) = result
                && !failed.swap(true, Ordering::Relaxed)
            {
                tracing::warn!("the HTTP cache stores nothing more: {error}");
            }
        });
    }

    #[cfg(test)]
    pub(crate) fn flush(&self) {
        self.writer.flush().unwrap();
    }

    /// Everything that is stored.
    #[cfg(test)]
    pub(crate) fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) {
        self.writer.flush().unwrap();
        let visit = &mut |key: &[u8], value: &[u8]| {
            visit(key, value);
            true
        };
        self.store.scan(b"", visit).unwrap();
    }

    /// Puts something else in the place of an answer.
    #[cfg(test)]
    pub(crate) fn damage(&self, fingerprint: Fingerprint) {
        let mut batch = Batch::new();
        batch.put(key(b'a', fingerprint, None), "no answer");
        self.writer.write_and_wait(batch).unwrap();
    }

    /// Whether a write failed: then no later one succeeds.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

fn key(kind: u8, fingerprint: Fingerprint, varying: Option<u128>) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&fingerprint.0.to_be_bytes());
    key.extend(varying.into_iter().flat_map(u128::to_be_bytes));
    key
}

/// A hash of the values of request headers.
fn variant<'a>(names: impl Iterator<Item = &'a str>, asked: &HeaderMap) -> u128 {
    let mut hasher = Xxh3::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for name in names {
        part(name.as_bytes());
        // An absent header is not an empty one.
        for value in asked.get_all(name) {
            part(value.as_bytes().trim_ascii());
        }
    }
    hasher.digest128()
}
