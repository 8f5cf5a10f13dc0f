//! The storage of the HTTP cache: one store in one directory, read by key, written by its group-commit thread, and
//! bounded.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderName};
use huntsman_crawler::{Error, Fingerprint, Result, Timestamp, log};
use huntsman_store::{Backend, Batch, Durability, JobDirectory, Store, StoreError, Writer};
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::Xxh3;

use super::entry::Entry;
use super::size_index::{EntrySize, KeySuffix, SizeIndex, Totals};

/// Responses by fingerprint; responses that vary also by the values of the varying request headers. Numbers are
/// little-endian except in keys.
///
/// | key | value |
/// |---|---|
/// | `a`, fingerprint | the response |
/// | `v`, fingerprint | names of the headers by which it varies, one per line |
/// | `a`, fingerprint, hash of their values | the response for these values |
/// | `m`, as after `a` | bytes and last use of the response |
/// | `t`, last use, as after `a` | bytes of the response |
/// | `s` | version of the last two, number of responses, bytes, last use of any |
/// | `sk` | the secret of the cache, for the keys of responses to requests with credentials |
///
/// The last use of a response is recorded in memory, and written together with many others: a hit costs no write. Uses
/// that were not written when a process dies are lost; the responses then keep their earlier last use.
#[derive(Debug)]
pub(crate) struct Storage {
    store: Arc<dyn Store>,
    writer: Writer,
    failed: Arc<AtomicBool>,
    size_index: Mutex<SizeIndex>,
    /// Uses that are not in the size index yet.
    pending_uses: Mutex<HashMap<KeySuffix, u64, foldhash::fast::RandomState>>,
    last_use: AtomicU64,
    /// 0 is no bound.
    max_bytes: AtomicU64,
    /// Number of evicted responses that were not reported yet.
    evicted: AtomicU64,
    secret: [u8; SECRET],
}

/// Bytes of the secret of a cache.
const SECRET: usize = 32;
const SECRET_KEY: &[u8] = b"sk";

/// Bytes of the store that are held in memory.
pub(super) const CACHE_BYTES: usize = 16 << 20;
/// Number of uses that are written together; each takes about 100 bytes of memory.
const USES_PER_BATCH: usize = 4_096;
/// Maximum number of uses that are held in memory during an eviction. Further ones are dropped.
const MAX_PENDING_USES: usize = 16 * USES_PER_BATCH;
/// An eviction frees this fraction of the bound in addition, so that not every stored response causes one.
const EVICTION_SHARE: u64 = 64;
/// Number of responses that are evicted in one batch.
const MAX_EVICTED_PER_BATCH: u64 = 2_048;
/// Number of responses whose sizes are added in one batch, for a cache without sizes.
const SIZES_PER_BATCH: usize = 1_024;

impl Storage {
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let doing = || format!("opening the HTTP cache (setting httpcache_dir) in {}", directory.display());
        let opened = JobDirectory::open_with_cache(directory, Backend::Redb, CACHE_BYTES);
        let store = opened.map_err(|error| Error::from(error).context(doing()))?.store();
        Self::of(store).map_err(|error| error.context(doing()))
    }

    /// Without a bound.
    pub(crate) fn of(store: Arc<dyn Store>) -> Result<Self> {
        let totals = match Totals::stored(&*store)? {
            Some(totals) => totals,
            None => add_sizes(&store)?,
        };
        let secret = secret(&*store)?;
        let writer = Writer::new(Arc::clone(&store), Durability::Process)?;
        Ok(Self {
            writer,
            failed: Arc::default(),
            size_index: Mutex::new(SizeIndex::new(Arc::clone(&store), totals)),
            pending_uses: Mutex::default(),
            last_use: AtomicU64::new(totals.used),
            max_bytes: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            secret,
            store,
        })
    }

    /// Bounds the bytes of all responses; of several bounds the lowest applies. Eviction happens when a response is
    /// stored.
    pub(crate) fn set_max_bytes(&self, max_bytes: u64) {
        let lower = |old: u64| (max_bytes > 0 && (old == 0 || max_bytes < old)).then_some(max_bytes);
        let _ = self.max_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
    }

    /// The key of a request that is sent with credentials, given by these headers: each value has another key. Without
    /// the secret of the cache the values cannot be derived from it, not even by trying them.
    pub(crate) fn key_with_credentials(
        &self,
        fingerprint: Fingerprint,
        credentials: &[HeaderName],
        asked: &HeaderMap,
    ) -> Fingerprint {
        let mut hasher = Sha256::new_with_prefix(self.secret);
        hasher.update(fingerprint.0.to_be_bytes());
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        let mut names: Vec<&str> = credentials.iter().map(HeaderName::as_str).collect();
        names.sort_unstable();
        for name in names {
            part(name.as_bytes());
            asked.get_all(name).iter().for_each(|value| part(value.as_bytes()));
        }
        let digest = hasher.finalize();
        Fingerprint(u128::from_be_bytes(*digest.first_chunk().expect("32 bytes")))
    }

    /// The stored response to a request; blocks.
    pub(crate) fn get(
        &self,
        fingerprint: Fingerprint,
        asked: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<Entry>> {
        let varying = match self.store.get(&names_key(fingerprint))? {
            Some(names) => Some(variant(std::str::from_utf8(&names)?.lines(), asked)),
            None => None,
        };
        let suffix = suffix(fingerprint, varying);
        let Some(bytes) = self.store.get(&response_key(&suffix))? else { return Ok(None) };
        let entry = Entry::from_bytes(&bytes)?;
        self.record_use(suffix, now);
        Ok(Some(entry))
    }

    /// Stores a response; blocks while the writer's queue is full, or during an eviction.
    pub(crate) fn put(
        &self,
        fingerprint: Fingerprint,
        asked: &HeaderMap,
        varying: &[String],
        entry: &Entry,
        now: Timestamp,
    ) -> Result<()> {
        let values = (!varying.is_empty()).then(|| variant(varying.iter().map(String::as_str), asked));
        let (suffix, bytes) = (suffix(fingerprint, values), entry.to_bytes());
        let size = EntrySize::of(&suffix, &bytes);
        let max = self.max_bytes.load(Ordering::Relaxed);
        if max > 0 && size > max {
            // It has replaced an older response at its origin, and here it would evict all others.
            return self.remove(fingerprint, asked, varying);
        }
        self.fail_on_error(self.put_one(fingerprint, &suffix, (bytes, size), varying, now))
    }

    fn put_one(
        &self,
        fingerprint: Fingerprint,
        suffix: &[u8],
        (bytes, size): (Vec<u8>, u64),
        varying: &[String],
        now: Timestamp,
    ) -> Result<()> {
        let mut size_index = self.lock();
        let used = self.next_use(now);
        let mut change = size_index.change();
        change.set(suffix, Some(EntrySize { bytes: size, used }))?;
        if varying.is_empty() {
            // Its variants would never be found again.
            if self.store.get(&names_key(fingerprint))?.is_some() {
                change.batch().delete(names_key(fingerprint));
                for variant in self.variants(fingerprint)? {
                    change.batch().delete(response_key(&variant));
                    change.set(&variant, None)?;
                }
            }
        } else {
            let plain = &suffix[..FINGERPRINT];
            if change.size(plain)?.is_some() {
                change.batch().delete(response_key(plain));
                change.set(plain, None)?;
            }
            change.batch().put(names_key(fingerprint), varying.join("\n"));
        }
        change.batch().put(response_key(suffix), bytes);
        self.write(change.finish());
        self.make_room(&mut size_index)
    }

    /// Marks the storage as failed after an incomplete change, because memory and store then differ.
    fn fail_on_error(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Forgets the response to a request.
    pub(crate) fn remove(
        &self,
        fingerprint: Fingerprint,
        asked: &HeaderMap,
        varying: &[String],
    ) -> Result<()> {
        let values = (!varying.is_empty()).then(|| variant(varying.iter().map(String::as_str), asked));
        self.remove_all(&[suffix(fingerprint, values)])
    }

    /// Forgets responses by the ends of their keys.
    pub(super) fn remove_all(&self, suffixes: &[KeySuffix]) -> Result<()> {
        self.fail_on_error(self.forget(&mut self.lock(), suffixes))
    }

    /// Forgets responses, and by which headers one varies if none of its variants is left.
    fn forget(&self, size_index: &mut SizeIndex, suffixes: &[KeySuffix]) -> Result<()> {
        let mut change = size_index.change();
        for suffix in suffixes {
            change.batch().delete(response_key(suffix));
            change.set(suffix, None)?;
        }
        let gone: HashSet<&[u8]> = suffixes.iter().map(Vec::as_slice).collect();
        let varying: HashSet<&[u8]> = suffixes
            .iter()
            .filter(|suffix| suffix.len() > FINGERPRINT)
            .map(|suffix| &suffix[..FINGERPRINT])
            .collect();
        for fingerprint in varying {
            let mut is_left = false;
            self.store.scan(&[b"m", fingerprint].concat(), &mut |key, _| {
                is_left |= key.len() > 1 + FINGERPRINT && !gone.contains(&key[1..]);
                !is_left
            })?;
            if !is_left {
                change.batch().delete([b"v", fingerprint].concat());
            }
        }
        self.write(change.finish());
        Ok(())
    }

    /// The variants of a response, by the ends of their keys.
    fn variants(&self, fingerprint: Fingerprint) -> Result<Vec<KeySuffix>> {
        let mut suffixes = Vec::new();
        self.store.scan(&[b"m", &suffix(fingerprint, None)[..]].concat(), &mut |key, _| {
            suffixes.extend((key.len() > 1 + FINGERPRINT).then(|| key[1..].to_vec()));
            true
        })?;
        Ok(suffixes)
    }

    /// Evicts responses if the bound is exceeded.
    fn make_room(&self, size_index: &mut SizeIndex) -> Result<()> {
        let max = self.max_bytes.load(Ordering::Relaxed);
        if max == 0 || size_index.totals.bytes <= max {
            return Ok(());
        }
        self.write_uses(size_index)?;
        let enough = max - max / EVICTION_SHARE;
        while size_index.totals.bytes > enough && size_index.totals.responses > 1 {
            // The flush puts every size in the store; the response that was just stored has the latest use, and
            // stays.
            self.writer.flush()?;
            let most = MAX_EVICTED_PER_BATCH.min(size_index.totals.responses - 1);
            let oldest = size_index.oldest(size_index.totals.bytes - enough, most)?;
            if oldest.is_empty() {
                break;
            }
            self.forget(size_index, &oldest)?;
            self.evicted.fetch_add(oldest.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes that a response was used.
    fn record_use(&self, suffix: KeySuffix, now: Timestamp) {
        let used = self.next_use(now);
        let mut pending_uses = self.pending_uses.lock().unwrap_or_else(PoisonError::into_inner);
        if pending_uses.len() < MAX_PENDING_USES {
            pending_uses.insert(suffix, used);
        }
        let is_due = pending_uses.len() >= USES_PER_BATCH;
        drop(pending_uses);
        // The current holder of the size index writes them soon, or the next hit does.
        if is_due
            && let Ok(mut size_index) = self.size_index.try_lock()
            && let Err(error) = self.write_uses(&mut size_index)
        {
            log::debug!("the uses of stored responses were not recorded: {error}");
        }
    }

    /// Writes the uses that are in memory.
    fn write_uses(&self, size_index: &mut SizeIndex) -> Result<()> {
        let pending_uses =
            std::mem::take(&mut *self.pending_uses.lock().unwrap_or_else(PoisonError::into_inner));
        if pending_uses.is_empty() || self.has_failed() {
            return Ok(());
        }
        let mut change = size_index.change();
        for (suffix, used) in pending_uses {
            if let Some(size) = change.size(&suffix)?.filter(|size| size.used < used) {
                change.set(&suffix, Some(EntrySize { used, ..size }))?;
            }
        }
        self.write(change.finish());
        Ok(())
    }

    /// The time of a use: later than all before.
    fn next_use(&self, now: Timestamp) -> u64 {
        let next = |last: u64| Some(now.0.max(last.saturating_add(1)));
        let last = self.last_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.ok().and_then(next).unwrap_or(now.0)
    }

    fn lock(&self) -> MutexGuard<'_, SizeIndex> {
        self.size_index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a change to the writer, under the lock of the size index, so that changes are written in their order.
    fn write(&self, (batch, written): (Batch, super::size_index::Written)) {
        let failed = Arc::clone(&self.failed);
        self.writer.write(batch, move |result: std::result::Result<(), StoreError>| {
            written.done();
            if let Err(error) = result
                && !failed.swap(true, Ordering::Relaxed)
            {
                log::warn!("the HTTP cache stores nothing more: {error}");
            }
        });
    }

    /// The number of responses evicted since the last call.
    pub(crate) fn take_evicted(&self) -> u64 {
        self.evicted.swap(0, Ordering::Relaxed)
    }

    /// Answers, and their bytes.
    pub(crate) fn usage(&self) -> (u64, u64) {
        let totals = self.lock().totals;
        (totals.responses, totals.bytes)
    }

    /// The store, to be read whole.
    #[cfg(test)]
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Waits until everything is written, and found.
    pub(crate) fn flush(&self) -> Result<()> {
        Ok(self.writer.flush()?)
    }

    /// Puts something else in the place of a response.
    #[cfg(test)]
    pub(crate) fn damage(&self, fingerprint: Fingerprint) {
        let mut batch = Batch::new();
        batch.put(response_key(&suffix(fingerprint, None)), "no answer");
        self.writer.write_and_wait(batch).unwrap();
    }

    /// Whether a write failed: then no later one succeeds.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let noted = self.write_uses(&mut self.lock());
        if let Err(error) = noted {
            log::debug!("the uses of stored responses were not recorded: {error}");
        }
    }
}

/// The secret of a cache; made with the first use of one that has none.
fn secret(store: &dyn Store) -> Result<[u8; SECRET]> {
    if let Some(bytes) = store.get(SECRET_KEY)? {
        let secret = <[u8; SECRET]>::try_from(&bytes[..]);
        return secret.map_err(|_| Error::msg("the secret of its keys is damaged; remove the directory"));
    }
    let secret: [u8; SECRET] = rand::random();
    let mut batch = Batch::new();
    batch.put(SECRET_KEY, &secret[..]);
    store.write(&batch, Durability::Process)?;
    Ok(secret)
}

/// Adds sizes to a cache without them; the time when a response was stored counts as its last use. The totals are
/// written at the end: until then the cache counts as unmeasured.
fn add_sizes(store: &Arc<dyn Store>) -> Result<Totals> {
    // Rows that an earlier, killed attempt left.
    for kind in [b"m", b"t"] {
        forget_rows(&**store, kind)?;
    }
    let mut size_index = SizeIndex::new(Arc::clone(store), Totals::default());
    let mut sizes = Vec::new();
    let mut result = Ok(());
    store.scan(b"a", &mut |key, value| {
        sizes.push((
            key[1..].to_vec(),
            EntrySize { bytes: EntrySize::of(&key[1..], value), used: Entry::stored_at(value).0 },
        ));
        if sizes.len() >= SIZES_PER_BATCH {
            result = write_sizes(&**store, &mut size_index, &mut sizes, false);
        }
        result.is_ok()
    })?;
    result?;
    if size_index.totals.responses > 0 || !sizes.is_empty() {
        write_sizes(&**store, &mut size_index, &mut sizes, true)?;
    }
    Ok(size_index.totals)
}

fn forget_rows(store: &dyn Store, prefix: &[u8]) -> Result<()> {
    loop {
        let mut batch = Batch::new();
        store.scan(prefix, &mut |key, _| {
            batch.delete(key);
            batch.operations().len() < SIZES_PER_BATCH
        })?;
        if batch.is_empty() {
            return Ok(());
        }
        store.write(&batch, Durability::Process)?;
    }
}

fn write_sizes(
    store: &dyn Store,
    size_index: &mut SizeIndex,
    sizes: &mut Vec<(KeySuffix, EntrySize)>,
    is_last: bool,
) -> Result<()> {
    let mut change = size_index.change();
    for (suffix, size) in sizes.drain(..) {
        change.set(&suffix, Some(size))?;
    }
    let (batch, written) = if is_last { change.finish() } else { change.finish_part() };
    store.write(&batch, Durability::Process)?;
    written.done();
    Ok(())
}

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 16;

fn suffix(fingerprint: Fingerprint, varying: Option<u128>) -> KeySuffix {
    let mut suffix = fingerprint.0.to_be_bytes().to_vec();
    suffix.extend(varying.into_iter().flat_map(u128::to_be_bytes));
    suffix
}

/// The fingerprint at the beginning of the end of a key.
pub(super) fn fingerprint_of(suffix: &[u8]) -> Option<Fingerprint> {
    suffix.first_chunk().map(|bytes| Fingerprint(u128::from_be_bytes(*bytes)))
}

pub(super) fn response_key(suffix: &[u8]) -> Vec<u8> {
    [b"a", suffix].concat()
}

fn names_key(fingerprint: Fingerprint) -> Vec<u8> {
    [b"v", &fingerprint.0.to_be_bytes()[..]].concat()
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

#[cfg(test)]
mod tests;
