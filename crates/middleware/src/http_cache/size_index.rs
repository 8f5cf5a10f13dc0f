//! The size and last use of each cache entry, stored as rows next to the entries, so that memory does not grow with
//! their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Result};
use huntsman_store::{Batch, Store};

/// The key of an entry without its prefix: the fingerprint, and a hash of the varying headers if there are any.
pub(super) type KeySuffix = Vec<u8>;

/// Bytes that an entry takes besides its key and value: its two rows here.
const ROWS: u64 = 128;
/// Version of the rows. A cache without them was created before there was a bound.
const VERSION: u8 = 1;
const TOTALS: &[u8] = b"s";
/// Prefix of the rows that are ordered by last use.
const BY_USE: u8 = b't';

/// Size and last use of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntrySize {
    pub(super) bytes: u64,
    /// Last use in microseconds, increased where two uses would be equal.
    pub(super) used: u64,
}

impl EntrySize {
    /// What an answer weighs.
    pub(super) fn of(suffix: &[u8], value: &[u8]) -> u64 {
        (1 + suffix.len() + value.len()) as u64 + ROWS
    }

    /// As a store has it.
    pub(super) fn stored(store: &dyn Store, suffix: &[u8]) -> Result<Option<Self>> {
        let Some(bytes) = store.get(&row(suffix))? else { return Ok(None) };
        let (numbers, rest) = bytes.as_chunks::<8>();
        let ([bytes, used], []) = (numbers, rest) else { return Err(damaged()) };
        Ok(Some(Self { bytes: u64::from_le_bytes(*bytes), used: u64::from_le_bytes(*used) }))
    }
}

/// Number and size of all entries together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) answers: u64,
    pub(super) bytes: u64,
    /// The most recent use of any entry.
    pub(super) used: u64,
}

impl Totals {
    /// Reads them from a store; `None` if the cache is new, or was created before there was a bound.
    pub(super) fn stored(store: &dyn Store) -> Result<Option<Self>> {
        let Some(bytes) = store.get(TOTALS)? else { return Ok(None) };
        let (version, rest) = bytes.split_first().ok_or_else(damaged)?;
        if *version > VERSION {
            return Err(Error::msg(format!(
                "it was made by a newer version (form {version}; this version knows forms up to {VERSION}); use that \
                 version, or another directory"
            )));
        }
        let (numbers, rest) = rest.as_chunks::<8>();
        let ([answers, bytes, used], []) = (numbers, rest) else { return Err(damaged()) };
        let [answers, bytes, used] = [answers, bytes, used].map(|number| u64::from_le_bytes(*number));
        Ok(Some(Self { answers, bytes, used }))
    }

    fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.answers, self.bytes, self.used];
        std::iter::once(VERSION).chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect()
    }
}

fn damaged() -> Error {
    Error::msg("the sizes of its responses are damaged; remove the directory")
}

fn row(suffix: &[u8]) -> Vec<u8> {
    [b"m", suffix].concat()
}

fn row_by_use(used: u64, suffix: &[u8]) -> Vec<u8> {
    [&[BY_USE], &used.to_be_bytes()[..], suffix].concat()
}

/// Changed sizes that may not be in the store yet, with the number of the change.
type Pending = HashMap<KeySuffix, (u64, Option<EntrySize>), foldhash::fast::RandomState>;

/// The totals and the changes to them that are not yet written. Changes are made one at a time and written in order,
/// each in one batch with the entries it describes, so that a crash leaves both or neither.
#[derive(Debug)]
pub(super) struct SizeIndex {
    store: Arc<dyn Store>,
    pub(super) totals: Totals,
    changes: u64,
    /// Behind a lock of its own, because the writer's thread removes what it has written, also while a change waits for
    /// the writer.
    pending: Arc<Mutex<Pending>>,
}

/// One change being made.
#[derive(Debug)]
pub(super) struct Change<'a> {
    size_index: &'a mut SizeIndex,
    batch: Batch,
    changed: Vec<KeySuffix>,
}

/// The follow-up of a change when it is in the store.
#[derive(Debug)]
pub(super) struct Written {
    number: u64,
    changed: Vec<KeySuffix>,
    pending: Arc<Mutex<Pending>>,
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SizeIndex {
    pub(super) fn new(store: Arc<dyn Store>, totals: Totals) -> Self {
        Self { store, totals, changes: 0, pending: Arc::default() }
    }

    /// Begins a change.
    pub(super) fn change(&mut self) -> Change<'_> {
        self.changes += 1;
        Change { size_index: self, batch: Batch::new(), changed: Vec::new() }
    }

    /// The size of an answer after all changes.
    pub(super) fn size(&self, suffix: &[u8]) -> Result<Option<EntrySize>> {
        if let Some((_, size)) = lock(&self.pending).get(suffix) {
            return Ok(*size);
        }
        EntrySize::stored(&*self.store, suffix)
    }

    /// The entries that were unused for the longest time, as far as they are in the store: enough to free the given
    /// bytes, at most `most`.
    pub(super) fn oldest(&self, bytes: u64, most: u64) -> Result<Vec<KeySuffix>> {
        let (mut suffixes, mut freed) = (Vec::new(), 0);
        self.store.scan(&[BY_USE], &mut |key, size| {
            if freed >= bytes || suffixes.len() as u64 >= most {
                return false;
            }
            if let (Some(suffix), Ok(size)) = (key.get(9..), size.try_into()) {
                suffixes.push(suffix.to_vec());
                freed += u64::from_le_bytes(size);
            }
            true
        })?;
        Ok(suffixes)
    }
}

impl Change<'_> {
    /// The batch that is written with the change.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// As [`SizeIndex::size`].
    pub(super) fn size(&self, suffix: &[u8]) -> Result<Option<EntrySize>> {
        self.size_index.size(suffix)
    }

    /// Sets the size of an entry; `None` removes it.
    pub(super) fn set(&mut self, suffix: &[u8], size: Option<EntrySize>) -> Result<()> {
        let old = self.size(suffix)?;
        let totals = &mut self.size_index.totals;
        if let Some(old) = old {
            self.batch.delete(row_by_use(old.used, suffix));
            totals.answers = totals.answers.saturating_sub(1);
            totals.bytes = totals.bytes.saturating_sub(old.bytes);
        }
        match size {
            Some(new) => {
                self.batch.put(row(suffix), [new.bytes.to_le_bytes(), new.used.to_le_bytes()].concat());
                self.batch.put(row_by_use(new.used, suffix), new.bytes.to_le_bytes());
                totals.answers += 1;
                totals.bytes += new.bytes;
                totals.used = totals.used.max(new.used);
            }
            None if old.is_some() => self.batch.delete(row(suffix)),
            None => return Ok(()),
        }
        lock(&self.size_index.pending).insert(suffix.to_vec(), (self.size_index.changes, size));
        self.changed.push(suffix.to_vec());
        Ok(())
    }

    /// Returns the batch, and the follow-up for when it is written.
    pub(super) fn finish(mut self) -> (Batch, Written) {
        self.batch.put(TOTALS, self.size_index.totals.to_bytes());
        self.finish_part()
    }

    /// As [`Change::finish`], without the totals: the cache does not count as measured yet.
    pub(super) fn finish_part(self) -> (Batch, Written) {
        let pending = Arc::clone(&self.size_index.pending);
        (self.batch, Written { number: self.size_index.changes, changed: self.changed, pending })
    }
}

impl Written {
    /// Removes pending sizes that the store now has, unless a later change replaced them.
    pub(super) fn done(self) {
        let mut pending = lock(&self.pending);
        for suffix in &self.changed {
            if pending.get(suffix).is_some_and(|(number, _)| *number == self.number) {
                pending.remove(suffix);
            }
        }
    }
}
