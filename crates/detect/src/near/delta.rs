//! The part of a language that receives new rows.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::bands;
use super::document::DocId;
use super::frozen::IdRef;
use super::tombstones::Tombstones;
use super::work::Work;
use crate::simhash::SimHash;

/// The most rows of a delta; the next number stands for no row. The limit is lower in tests, so that deltas become full.
pub(super) const MAX_ROWS: usize = if cfg!(test) { 2000 } else { NO_ROW as usize };

/// Up to this number of rows, a scan is faster than chains.
const SCANNED: usize = 512;

/// Up to 65,535 documents in the order of insertion, some 70 bytes each.
///
/// Because of this limit, every structure that must be rebuilt when it grows is rebuilt in about a millisecond.
#[derive(Debug)]
pub(super) struct Delta {
    high: Vec<u64>,
    low: Vec<u64>,
    ids: Vec<DocId>,
    tombstones: Tombstones,
    /// The latest row of each id.
    names: HashTable<u16>,
    hasher: DefaultHashBuilder,
    chains: Chains,
}

/// Chains of the rows with the same value of a band: the last row of each value, and for each row the one before it.
#[derive(Debug)]
struct Chains {
    k: u32,
    /// Slots per band, a power of two; 0 while rows are scanned.
    slots: usize,
    /// The last row, by band and slot.
    heads: Vec<u16>,
    /// The previous row, by row and band.
    before: Vec<u16>,
}

const NO_ROW: u16 = u16::MAX;

impl Delta {
    pub(super) fn new(k: u32) -> Self {
        Self {
            high: Vec::new(),
            low: Vec::new(),
            ids: Vec::new(),
            tombstones: Tombstones::none(MAX_ROWS),
            names: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            chains: Chains::with_slots(k, 0),
        }
    }

    /// The number of rows, dead ones included.
    pub(super) fn rows(&self) -> usize {
        self.high.len()
    }

    /// The number of live rows.
    pub(super) fn live(&self) -> usize {
        self.rows() - self.tombstones.count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows() == MAX_ROWS
    }

    pub(super) fn id(&self, row: u32) -> IdRef<'_> {
        IdRef::from(&self.ids[row as usize])
    }

    pub(super) fn hash(&self, row: u32) -> SimHash {
        let row = row as usize;
        SimHash(u128::from(self.high[row]) << 64 | u128::from(self.low[row]))
    }

    pub(super) fn is_deleted(&self, row: u32) -> bool {
        self.tombstones.contains(row)
    }

    fn hash_of(&self, id: IdRef<'_>) -> u64 {
        match id {
            IdRef::Number(number) => self.hasher.hash_one(number),
            IdRef::Text(text) => self.hasher.hash_one(text),
        }
    }

    /// The live row of an id.
    pub(super) fn find(&self, id: IdRef<'_>) -> Option<u32> {
        let is_it = |row: &u16| self.id(u32::from(*row)) == id;
        let row = self.names.find(self.hash_of(id), is_it).map(|row| u32::from(*row));
        row.filter(|row| !self.is_deleted(*row))
    }

    /// Marks the row of an id as dead; returns whether there was a live one.
    pub(super) fn mark_deleted(&self, id: IdRef<'_>) -> bool {
        self.find(id).is_some_and(|row| self.tombstones.insert(row))
    }

    /// Adds a row to a delta that is not full. An earlier row of the same id must be dead.
    pub(super) fn push(&mut self, id: DocId, hash: SimHash) {
        let row = u16::try_from(self.rows()).expect("the delta is not full");
        let key = self.hash_of(IdRef::from(&id));
        self.high.push((hash.0 >> 64) as u64);
        self.low.push(hash.0 as u64);
        self.ids.push(id);
        let (ids, hasher) = (&self.ids, &self.hasher);
        let is_it = |other: &u16| ids[usize::from(*other)] == ids[usize::from(row)];
        let rehash = |row: &u16| match &ids[usize::from(*row)] {
            DocId::Number(number) => hasher.hash_one(number),
            DocId::Text(text) => hasher.hash_one(&**text),
        };
        match self.names.entry(key, is_it, rehash) {
            hashbrown::hash_table::Entry::Occupied(mut entry) => *entry.get_mut() = row,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                entry.insert(row);
            }
        }
        if self.rows() > self.chains.slots.max(SCANNED) {
            self.chains = Chains::with_slots(self.chains.k, 2 * self.chains.slots.max(SCANNED));
            (0..=row).for_each(|row| self.chains.push(row, self.hash(u32::from(row))));
        } else if self.chains.slots > 0 {
            self.chains.push(row, hash);
        }
    }

    /// Puts all rows within k bits into the hits of `work`.
    pub(super) fn near(&self, query: SimHash, k: u32, work: &mut Work) {
        if self.chains.slots == 0 {
            return self.scan(query, k, work);
        }
        let first_hit = work.hits.len();
        let most = self.rows() / 4;
        let mut candidates = 0;
        for band in 0..bands(k) {
            let mut next = self.chains.heads[self.chains.slot(query, band)];
            while next != NO_ROW {
                let row = u32::from(next);
                next = self.chains.before[usize::from(next) * bands(k) + band];
                candidates += 1;
                if candidates > most {
                    work.hits.truncate(first_hit);
                    return self.scan(query, k, work);
                }
                let difference = self.hash(row).0 ^ query.0;
                let distance = difference.count_ones();
                if distance <= k && first_shared(k, difference) == Some(band) && !self.is_deleted(row) {
                    work.hit(row, distance);
                }
            }
        }
        work.count(candidates);
    }

    /// The same as [`near`](Self::near), by comparing with every row.
    pub(super) fn scan(&self, query: SimHash, k: u32, work: &mut Work) {
        work.count_scan(self.rows());
        let rows = work.scan(&self.high, query, k);
        for row in &rows {
            let distance = self.hash(*row).distance(query);
            if distance <= k && !self.is_deleted(*row) {
                work.hit(*row, distance);
            }
        }
        work.return_buffer(rows);
    }

    /// The live rows, in the order of their ids.
    pub(super) fn by_id(&self) -> Vec<u16> {
        let rows = 0..self.rows() as u16;
        let mut rows: Vec<u16> = rows.filter(|row| !self.is_deleted(u32::from(*row))).collect();
        rows.sort_unstable_by(|a, b| self.ids[usize::from(*a)].cmp(&self.ids[usize::from(*b)]));
        rows
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.ids.iter().map(|id| match id {
            DocId::Number(_) => 0,
            DocId::Text(text) => text.len(),
        });
        size_of::<u64>() * (self.high.capacity() + self.low.capacity())
            + size_of::<DocId>() * self.ids.capacity()
            + texts.sum::<usize>()
            + self.tombstones.bytes()
            + self.names.allocation_size()
            + size_of::<u16>() * (self.chains.heads.capacity() + self.chains.before.capacity())
    }
}

/// The number of bands that have chains: k differing bits leave at least one of k + 1 bands unchanged.
fn bands(k: u32) -> usize {
    k as usize + 1
}

/// The value of a band of a fingerprint. If k + 1 bands of 32 bits do not fit into a fingerprint, bands have 16 bits. Among so few rows,
/// hardly one shares such a band by chance.
fn value(k: u32, hash: u128, band: usize) -> u32 {
    match bands(k) {
        ..=bands::BANDS => bands::value(hash, band),
        _ => u32::from((hash >> (112 - 16 * band)) as u16),
    }
}

/// The first band that two fingerprints share, given the bits in which they differ.
fn first_shared(k: u32, difference: u128) -> Option<usize> {
    (0..bands(k)).find(|band| value(k, difference, *band) == 0)
}

impl Chains {
    fn with_slots(k: u32, slots: usize) -> Self {
        let before = Vec::with_capacity(slots.min(MAX_ROWS) * bands(k));
        Self { k, slots, heads: vec![NO_ROW; slots * bands(k)], before }
    }

    fn slot(&self, hash: SimHash, band: usize) -> usize {
        let upper = bands::mixed(value(self.k, hash.0, band)) >> (u32::BITS - self.slots.ilog2());
        band * self.slots + upper as usize
    }

    fn push(&mut self, row: u16, hash: SimHash) {
        for band in 0..bands(self.k) {
            let slot = self.slot(hash, band);
            self.before.push(std::mem::replace(&mut self.heads[slot], row));
        }
    }
}
