//! The size and last use of each cache entry, stored as rows next to the entries, so that memory does not grow with
//! their number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Result};
use huntsman_store::{Batch, Store};

/// The key of an entry without its prefix: the fingerprint, and a hash of the varying headers if there are any.
pub(super) type Tail = Vec<u8>;

/// Bytes that an entry takes besides its key and value: its two rows here.
const ROWS: u64 = 128;
/// Version of the rows. A cache without them was created before there was a bound.
const VERSION: u8 = 1;
const TOTALS: &[u8] = b"s";
/// Prefix of the rows that are ordered by last use.
const BY_USE: u8 = b't';

/// Size and last use of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    /// Last use in microseconds, increased where two uses would be equal.
    pub(super) used: u64,
}

impl Weight {
    /// What an answer weighs.
    pub(super) fn of(tail: &[u8], value: &[u8]) -> u64 {
        (1 + tail.len() + value.len()) as u64 + ROWS
    }

    /// As a store has it.
    pub(super) fn stored(store: &dyn Store, tail: &[u8]) -> Result<Option<Self>> {
        let Some(bytes) = store.get(&row(tail))? else { return Ok(None) };
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
    Error::msg("the sizes of its answers are damaged; remove the directory")
}

fn row(tail: &[u8]) -> Vec<u8> {
    [b"m", tail].concat()
}

fn row_by_use(used: u64, tail: &[u8]) -> Vec<u8> {
    [&[BY_USE], &used.to_be_bytes()[..], tail].concat()
}

/// Changed weights that may not be in the store yet, with the number of the change.
type Pending = HashMap<Tail, (u64, Option<Weight>), foldhash::fast::RandomState>;

/// The totals and the changes to them that are not yet written. Changes are made one at a time and written in order,
/// each in one batch with the entries it describes, so that a crash leaves both or neither.
#[derive(Debug)]
pub(super) struct Ledger {
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
    ledger: &'a mut Ledger,
    batch: Batch,
    changed: Vec<Tail>,
}

/// The follow-up of a change when it is in the store.
#[derive(Debug)]
pub(super) struct Written {
    number: u64,
    changed: Vec<Tail>,
    pending: Arc<Mutex<Pending>>,
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub(super) fn new(store: Arc<dyn Store>, totals: Totals) -> Self {
        Self { store, totals, changes: 0, pending: Arc::default() }
    }

    /// Begins a change.
    pub(super) fn change(&mut self) -> Change<'_> {
        self.changes += 1;
        Change { ledger: self, batch: Batch::new(), changed: Vec::new() }
    }

    /// The weight of an answer after all changes.
    pub(super) fn weight(&self, tail: &[u8]) -> Result<Option<Weight>> {
        if let Some((_, weight)) = lock(&self.pending).get(tail) {
            return Ok(*weight);
        }
        Weight::stored(&*self.store, tail)
    }

    /// The entries that were unused for the longest time, as far as they are in the store: enough to free the given
    /// bytes, at most `most`.
    pub(super) fn oldest(&self, bytes: u64, most: u64) -> Result<Vec<Tail>> {
        let (mut tails, mut freed) = (Vec::new(), 0);
        self.store.scan(&[BY_USE], &mut |key, weight| {
            if freed >= bytes || tails.len() as u64 >= most {
                return false;
            }
            if let (Some(tail), Ok(weight)) = (key.get(9..), weight.try_into()) {
                tails.push(tail.to_vec());
                freed += u64::from_le_bytes(weight);
            }
            true
        })?;
        Ok(tails)
    }
}

impl Change<'_> {
    /// The batch that is written with the change.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// As [`Ledger::weight`].
    pub(super) fn weight(&self, tail: &[u8]) -> Result<Option<Weight>> {
        self.ledger.weight(tail)
    }

    /// Sets the weight of an entry; `None` removes it.
    pub(super) fn set(&mut self, tail: &[u8], weight: Option<Weight>) -> Result<()> {
        let old = self.weight(tail)?;
        let totals = &mut self.ledger.totals;
        if let Some(old) = old {
            self.batch.delete(row_by_use(old.used, tail));
            totals.answers = totals.answers.saturating_sub(1);
            totals.bytes = totals.bytes.saturating_sub(old.bytes);
        }
        match weight {
            Some(new) => {
                self.batch.put(row(tail), [new.bytes.to_le_bytes(), new.used.to_le_bytes()].concat());
                self.batch.put(row_by_use(new.used, tail), new.bytes.to_le_bytes());
                totals.answers += 1;
                totals.bytes += new.bytes;
                totals.used = totals.used.max(new.used);
            }
            None if old.is_some() => self.batch.delete(row(tail)),
            None => return Ok(()),
        }
        lock(&self.ledger.pending).insert(tail.to_vec(), (self.ledger.changes, weight));
        self.changed.push(tail.to_vec());
        Ok(())
    }

    /// Returns the batch, and the follow-up for when it is written.
    pub(super) fn finish(mut self) -> (Batch, Written) {
        self.batch.put(TOTALS, self.ledger.totals.to_bytes());
        self.finish_part()
    }

    /// As [`Change::finish`], without the totals: the cache does not count as measured yet.
    pub(super) fn finish_part(self) -> (Batch, Written) {
        let pending = Arc::clone(&self.ledger.pending);
        (self.batch, Written { number: self.ledger.changes, changed: self.changed, pending })
    }
}

impl Written {
    /// Removes pending weights that the store now has, unless a later change replaced them.
    pub(super) fn done(self) {
        let mut pending = lock(&self.pending);
        for tail in &self.changed {
            if pending.get(tail).is_some_and(|(number, _)| *number == self.number) {
                pending.remove(tail);
            }
        }
    }
}
