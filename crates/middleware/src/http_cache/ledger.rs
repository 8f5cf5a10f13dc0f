//! What stored answers weigh and when each was last used: rows beside the answers, so that memory does not grow with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Error, Result};
use huntsman_store::{Batch, Store};

/// The end of the key of an answer: its fingerprint, and the hash of what it varies by if it does.
pub(super) type Tail = Vec<u8>;

/// What an answer weighs besides its key and value: its two rows here.
const ROWS: u64 = 128;
/// Version of the rows. A cache without them was made before there was a bound.
const VERSION: u8 = 1;
const TOTALS: &[u8] = b"s";
/// The kind of rows that answers are found in by their last use.
const BY_USE: u8 = b't';

/// What is known of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: u64,
    /// Microseconds of its last use, moved on where two uses would have the same.
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

/// All answers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) answers: u64,
    pub(super) bytes: u64,
    /// The last use of any.
    pub(super) used: u64,
}

impl Totals {
    /// As a store has them; `None` if the cache is new, or was made before there was a bound.
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

/// Weights that were changed and may not be in the store yet, with the number of the change.
type Pending = HashMap<Tail, (u64, Option<Weight>), foldhash::fast::RandomState>;

/// The totals and what waits to be written of them. Changes are made one at a time and written in their order, each in one
/// batch with the answers that it is about, so that a crash leaves both or neither.
#[derive(Debug)]
pub(super) struct Ledger {
    store: Arc<dyn Store>,
    pub(super) totals: Totals,
    changes: u64,
    /// Apart, since the writer's thread takes out of it what is written, also while a change waits for the writer.
    pending: Arc<Mutex<Pending>>,
}

/// One change being made.
#[derive(Debug)]
pub(super) struct Change<'a> {
    ledger: &'a mut Ledger,
    batch: Batch,
    changed: Vec<Tail>,
}

/// What is left to do when a change is in the store.
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

    /// The answers that were not used for the longest time, as far as they are in the store: enough to free so many bytes, at
    /// most `most`.
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
    /// What is written with it.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// As [`Ledger::weight`].
    pub(super) fn weight(&self, tail: &[u8]) -> Result<Option<Weight>> {
        self.ledger.weight(tail)
    }

    /// Sets the weight of an answer; `None` forgets it.
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

    /// The batch, and what is to be done when it is written.
    pub(super) fn finish(mut self) -> (Batch, Written) {
        self.batch.put(TOTALS, self.ledger.totals.to_bytes());
        self.finish_part()
    }

    /// As [`Change::finish`], without the totals: the cache does not count as weighed yet.
    pub(super) fn finish_part(self) -> (Batch, Written) {
        let pending = Arc::clone(&self.ledger.pending);
        (self.batch, Written { number: self.ledger.changes, changed: self.changed, pending })
    }
}

impl Written {
    /// The store tells now what was changed, unless a later change did.
    pub(super) fn done(self) {
        let mut pending = lock(&self.pending);
        for tail in &self.changed {
            if pending.get(tail).is_some_and(|(number, _)| *number == self.number) {
                pending.remove(tail);
            }
        }
    }
}
