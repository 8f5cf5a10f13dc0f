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
use super::ledger::{Ledger, Tail, Totals, Weight};

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
    ledger: Mutex<Ledger>,
    /// Uses that are not in the ledger yet.
    touched: Mutex<HashMap<Tail, u64, foldhash::fast::RandomState>>,
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
const TOUCHES: usize = 4_096;
/// Maximum number of uses that are held in memory during an eviction. Further ones are dropped.
const MOST_TOUCHES: usize = 16 * TOUCHES;
/// An eviction frees this fraction of the bound in addition, so that not every stored response causes one.
const SPARE: u64 = 64;
/// Number of responses that are evicted in one batch.
const MOST_EVICTED: u64 = 2_048;
/// Number of responses whose sizes are added in one batch, for a cache without sizes.
const WEIGHED: usize = 1_024;

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
            None => weigh(&store)?,
        };
        let secret = secret(&*store)?;
        let writer = Writer::new(Arc::clone(&store), Durability::Process)?;
        Ok(Self {
            writer,
            failed: Arc::default(),
            ledger: Mutex::new(Ledger::new(Arc::clone(&store), totals)),
            touched: Mutex::default(),
            last_use: AtomicU64::new(totals.used),
            max_bytes: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            secret,
            store,
        })
    }

    /// Bounds the bytes of all responses; of several bounds the lowest applies. Eviction happens when a response is
    /// stored.
    pub(crate) fn bound(&self, max_bytes: u64) {
        let lower = |old: u64| (max_bytes > 0 && (old == 0 || max_bytes < old)).then_some(max_bytes);
        let _ = self.max_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
    }

    /// The key of a request that is sent with credentials, given by these headers: each value has another key. Without
    /// the secret of the cache the values cannot be derived from it, not even by trying them.
    pub(crate) fn bound_to(
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
        let tail = tail(fingerprint, varying);
        let Some(bytes) = self.store.get(&answer_key(&tail))? else { return Ok(None) };
        let entry = Entry::from_bytes(&bytes)?;
        self.touch(tail, now);
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
        let (tail, bytes) = (tail(fingerprint, values), entry.to_bytes());
        let weight = Weight::of(&tail, &bytes);
        let max = self.max_bytes.load(Ordering::Relaxed);
        if max > 0 && weight > max {
            // It has replaced an older response at its origin, and here it would evict all others.
            return self.remove(fingerprint, asked, varying);
        }
        let mut ledger = self.lock();
        let put = self.put_one(&mut ledger, fingerprint, &tail, (bytes, weight), varying, now);
        self.unless_failed(put.and_then(|()| self.make_room(&mut ledger)))
    }

    fn put_one(
        &self,
        ledger: &mut Ledger,
        fingerprint: Fingerprint,
        tail: &[u8],
        (bytes, weight): (Vec<u8>, u64),
        varying: &[String],
        now: Timestamp,
    ) -> Result<()> {
        let used = self.next_use(now);
        let mut change = ledger.change();
        change.set(tail, Some(Weight { bytes: weight, used }))?;
        if varying.is_empty() {
            // Its variants would never be found again.
            if self.store.get(&names_key(fingerprint))?.is_some() {
                change.batch().delete(names_key(fingerprint));
                for variant in self.variants(fingerprint)? {
                    change.batch().delete(answer_key(&variant));
                    change.set(&variant, None)?;
                }
            }
        } else {
            let plain = &tail[..FINGERPRINT];
            if change.weight(plain)?.is_some() {
                change.batch().delete(answer_key(plain));
                change.set(plain, None)?;
            }
            change.batch().put(names_key(fingerprint), varying.join("\n"));
        }
        change.batch().put(answer_key(tail), bytes);
        self.write(change.finish());
        Ok(())
    }

    /// Marks the storage as failed after an incomplete change, because memory and store then differ.
    fn unless_failed(&self, result: Result<()>) -> Result<()> {
        result.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Forgets the answer to a request.
    pub(crate) fn remove(
        &self,
        fingerprint: Fingerprint,
        asked: &HeaderMap,
        varying: &[String],
    ) -> Result<()> {
        let values = (!varying.is_empty()).then(|| variant(varying.iter().map(String::as_str), asked));
        self.remove_all(&[tail(fingerprint, values)])
    }

    /// Forgets answers by the ends of their keys.
    pub(super) fn remove_all(&self, tails: &[Tail]) -> Result<()> {
        self.unless_failed(self.forget(&mut self.lock(), tails))
    }

    /// Forgets answers, and by which headers one varies if none of its variants is left.
    fn forget(&self, ledger: &mut Ledger, tails: &[Tail]) -> Result<()> {
        let mut change = ledger.change();
        for tail in tails {
            change.batch().delete(answer_key(tail));
            change.set(tail, None)?;
        }
        let gone: HashSet<&[u8]> = tails.iter().map(Vec::as_slice).collect();
        let varying: HashSet<&[u8]> =
            tails.iter().filter(|tail| tail.len() > FINGERPRINT).map(|tail| &tail[..FINGERPRINT]).collect();
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

    /// The variants of an answer, by the ends of their keys.
    fn variants(&self, fingerprint: Fingerprint) -> Result<Vec<Tail>> {
        let mut tails = Vec::new();
        self.store.scan(&[b"m", &tail(fingerprint, None)[..]].concat(), &mut |key, _| {
            tails.extend((key.len() > 1 + FINGERPRINT).then(|| key[1..].to_vec()));
            true
        })?;
        Ok(tails)
    }

    /// Evicts responses if the bound is exceeded.
    fn make_room(&self, ledger: &mut Ledger) -> Result<()> {
        let max = self.max_bytes.load(Ordering::Relaxed);
        if max == 0 || ledger.totals.bytes <= max {
            return Ok(());
        }
        self.note_uses(ledger)?;
        let enough = max - max / SPARE;
        while ledger.totals.bytes > enough && ledger.totals.answers > 1 {
            // The flush puts every weight in the store; the response that was just stored has the latest use, and
            // stays.
            self.writer.flush()?;
            let most = MOST_EVICTED.min(ledger.totals.answers - 1);
            let oldest = ledger.oldest(ledger.totals.bytes - enough, most)?;
            if oldest.is_empty() {
                break;
            }
            self.forget(ledger, &oldest)?;
            self.evicted.fetch_add(oldest.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes that an answer was used.
    fn touch(&self, tail: Tail, now: Timestamp) {
        let used = self.next_use(now);
        let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
        if touched.len() < MOST_TOUCHES {
            touched.insert(tail, used);
        }
        let is_due = touched.len() >= TOUCHES;
        drop(touched);
        // The current holder of the ledger writes them soon, or the next hit does.
        if is_due
            && let Ok(mut ledger) = self.ledger.try_lock()
            && let Err(error) = self.note_uses(&mut ledger)
        {
            log::debug!("the uses of stored answers were not noted: {error}");
        }
    }

    /// Writes the uses that are in memory.
    fn note_uses(&self, ledger: &mut Ledger) -> Result<()> {
        let touched = std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner));
        if touched.is_empty() || self.has_failed() {
            return Ok(());
        }
        let mut change = ledger.change();
        for (tail, used) in touched {
            if let Some(weight) = change.weight(&tail)?.filter(|weight| weight.used < used) {
                change.set(&tail, Some(Weight { used, ..weight }))?;
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

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a change to the writer, under the lock of the ledger, so that changes are written in their order.
    fn write(&self, (batch, written): (Batch, super::ledger::Written)) {
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
        (totals.answers, totals.bytes)
    }

    /// The store, to be read whole.
    #[cfg(test)]
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Waits until everything is written.
    pub(crate) fn flush(&self) -> Result<()> {
        Ok(self.writer.flush()?)
    }

    /// Puts something else in the place of an answer.
    #[cfg(test)]
    pub(crate) fn damage(&self, fingerprint: Fingerprint) {
        let mut batch = Batch::new();
        batch.put(answer_key(&tail(fingerprint, None)), "no answer");
        self.writer.write_and_wait(batch).unwrap();
    }

    /// Whether a write failed: then no later one succeeds.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        let noted = self.note_uses(&mut self.lock());
        if let Err(error) = noted {
            log::debug!("the uses of stored answers were not noted: {error}");
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
fn weigh(store: &Arc<dyn Store>) -> Result<Totals> {
    // Rows that an earlier, killed attempt left.
    for kind in [b"m", b"t"] {
        forget_rows(&**store, kind)?;
    }
    let mut ledger = Ledger::new(Arc::clone(store), Totals::default());
    let mut weighed = Vec::new();
    let mut result = Ok(());
    store.scan(b"a", &mut |key, value| {
        weighed.push((
            key[1..].to_vec(),
            Weight { bytes: Weight::of(&key[1..], value), used: Entry::stored_at(value).0 },
        ));
        if weighed.len() >= WEIGHED {
            result = write_weights(&**store, &mut ledger, &mut weighed, false);
        }
        result.is_ok()
    })?;
    result?;
    if ledger.totals.answers > 0 || !weighed.is_empty() {
        write_weights(&**store, &mut ledger, &mut weighed, true)?;
    }
    Ok(ledger.totals)
}

fn forget_rows(store: &dyn Store, prefix: &[u8]) -> Result<()> {
    loop {
        let mut batch = Batch::new();
        store.scan(prefix, &mut |key, _| {
            batch.delete(key);
            batch.operations().len() < WEIGHED
        })?;
        if batch.is_empty() {
            return Ok(());
        }
        store.write(&batch, Durability::Process)?;
    }
}

fn write_weights(
    store: &dyn Store,
    ledger: &mut Ledger,
    weighed: &mut Vec<(Tail, Weight)>,
    is_last: bool,
) -> Result<()> {
    let mut change = ledger.change();
    for (tail, weight) in weighed.drain(..) {
        change.set(&tail, Some(weight))?;
    }
    let (batch, written) = if is_last { change.finish() } else { change.finish_part() };
    store.write(&batch, Durability::Process)?;
    written.done();
    Ok(())
}

/// Bytes of a fingerprint.
const FINGERPRINT: usize = 16;

fn tail(fingerprint: Fingerprint, varying: Option<u128>) -> Tail {
    let mut tail = fingerprint.0.to_be_bytes().to_vec();
    tail.extend(varying.into_iter().flat_map(u128::to_be_bytes));
    tail
}

/// The fingerprint at the beginning of the end of a key.
pub(super) fn fingerprint_of(tail: &[u8]) -> Option<Fingerprint> {
    tail.first_chunk().map(|bytes| Fingerprint(u128::from_be_bytes(*bytes)))
}

pub(super) fn answer_key(tail: &[u8]) -> Vec<u8> {
    [b"a", tail].concat()
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
