//! A part of a language that receives no new rows.

use std::ops::ControlFlow;

use super::bands::{self, BANDS, Bands, MAX_PROBES, Masked, Probe, Table};
use super::document::DocId;
use super::filter::Filter;
use super::numbers::{Numbers, NumbersBuilder};
use super::texts::{Texts, TextsBuilder};
use super::tombstones::Tombstones;
use super::work::Work;
use crate::simhash::SimHash;

/// Documents in the order of their ids, with tables from bands to rows. Rows can only be marked as dead.
///
/// A row with a number takes 16 bytes for its fingerprint, 17.6 for the tables and 2 to 7 for the id. The id needs no table of its own,
/// because rows are sorted by id.
#[derive(Debug)]
pub(super) struct Frozen {
    hashes: Hashes,
    /// The ids of the first rows.
    numbers: Numbers,
    /// The ids of the other rows.
    texts: Texts,
    filter: Filter,
    bands: Bands,
    tombstones: Tombstones,
}

/// Fingerprints, stored in two halves: one half is enough to tell that two fingerprints are far apart.
#[derive(Debug, Default)]
struct Hashes {
    high: Vec<u64>,
    low: Vec<u64>,
}

/// Builds a [`Frozen`] from rows that come in the order of their ids.
#[derive(Debug)]
pub(super) struct FrozenBuilder {
    hashes: Hashes,
    numbers: NumbersBuilder,
    texts: TextsBuilder,
    filter: Filter,
}

/// A borrowed id; ordered as [`DocId`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdRef<'a> {
    Number(u64),
    Text(&'a str),
}

impl Hashes {
    fn get(&self, row: usize) -> SimHash {
        SimHash(u128::from(self.high[row]) << 64 | u128::from(self.low[row]))
    }

    /// The stored halves that do not contain a band, and the same half of a query.
    fn without(&self, band: usize, query: SimHash) -> (&[u64], u64) {
        if band < BANDS / 2 { (&self.low, query.0 as u64) } else { (&self.high, (query.0 >> 64) as u64) }
    }
}

impl<'a> From<&'a DocId> for IdRef<'a> {
    fn from(id: &'a DocId) -> Self {
        match id {
            DocId::Number(number) => IdRef::Number(*number),
            DocId::Text(text) => IdRef::Text(text),
        }
    }
}

impl From<IdRef<'_>> for DocId {
    fn from(id: IdRef<'_>) -> Self {
        match id {
            IdRef::Number(number) => DocId::Number(number),
            IdRef::Text(text) => DocId::Text(text.into()),
        }
    }
}

impl FrozenBuilder {
    /// A builder for at most `rows` rows, of which `numbers` have numbers as ids.
    pub(super) fn with_capacity(rows: usize, numbers: usize) -> Self {
        Self {
            hashes: Hashes { high: Vec::with_capacity(rows), low: Vec::with_capacity(rows) },
            numbers: NumbersBuilder::with_capacity(numbers),
            texts: TextsBuilder::default(),
            filter: Filter::with_capacity(rows),
        }
    }

    /// Adds a row, whose id must be greater than all others.
    pub(super) fn push(&mut self, id: IdRef<'_>, hash: SimHash) {
        self.filter.insert(id);
        match id {
            IdRef::Number(number) => self.numbers.push(number),
            IdRef::Text(text) => self.texts.push(text),
        }
        self.hashes.high.push((hash.0 >> 64) as u64);
        self.hashes.low.push(hash.0 as u64);
    }

    pub(super) fn rows(&self) -> usize {
        self.hashes.high.len()
    }

    /// Builds the tables.
    pub(super) fn finish(mut self, k: u32) -> Frozen {
        self.hashes.high.shrink_to_fit();
        self.hashes.low.shrink_to_fit();
        let rows = self.rows();
        let bands = Bands::build(k, rows, |row| self.hashes.get(row));
        Frozen {
            hashes: self.hashes,
            numbers: self.numbers.finish(),
            texts: self.texts.finish(),
            filter: self.filter,
            bands,
            tombstones: Tombstones::none(rows),
        }
    }
}

impl Frozen {
    /// The number of rows, dead ones included.
    pub(super) fn rows(&self) -> usize {
        self.hashes.high.len()
    }

    /// The number of live rows.
    pub(super) fn live(&self) -> usize {
        self.rows() - self.tombstones.count()
    }

    pub(super) fn id(&self, row: u32) -> IdRef<'_> {
        let row = row as usize;
        match row.checked_sub(self.numbers.len()) {
            None => IdRef::Number(self.numbers.get(row)),
            Some(text) => IdRef::Text(self.texts.get(text)),
        }
    }

    pub(super) fn hash(&self, row: u32) -> SimHash {
        self.hashes.get(row as usize)
    }

    pub(super) fn is_deleted(&self, row: u32) -> bool {
        self.tombstones.contains(row)
    }

    /// The live row of an id.
    pub(super) fn find(&self, id: IdRef<'_>) -> Option<u32> {
        if !self.filter.may_contain(id) {
            return None;
        }
        let row = match id {
            IdRef::Number(number) => self.numbers.find(number),
            IdRef::Text(text) => self.texts.find(text).map(|at| at + self.numbers.len()),
        };
        row.map(|row| row as u32).filter(|row| !self.is_deleted(*row))
    }

    /// Marks the row of an id as dead; returns whether there was a live one.
    pub(super) fn mark_deleted(&self, id: IdRef<'_>) -> bool {
        self.find(id).is_some_and(|row| self.tombstones.insert(row))
    }

    /// Puts all rows within k bits into the hits of `work`, if the tables were made for k.
    pub(super) fn near(&self, query: SimHash, k: u32, work: &mut Work) {
        let probes = bands::probes(k);
        if probes.len() <= BANDS {
            // With an array that is just large enough, a query takes less time.
            return self.near_by::<BANDS>(probes, query, k, work);
        }
        self.near_by::<MAX_PROBES>(probes, query, k, work);
    }

    fn near_by<const N: usize>(&self, probes: &[Probe], query: SimHash, k: u32, work: &mut Work) {
        let sharing = self.bands.sharing::<N>(query, probes);
        let candidates = sharing.iter().map(|entries| entries.len()).sum();
        if work.exceeds_limit(candidates) || candidates > self.rows() / ROWS_SCANNED_PER_CANDIDATE {
            return self.scan(query, k, work);
        }
        work.count(candidates);
        for (probe, entries) in probes.iter().zip(sharing) {
            // The half without the band is more selective, because all candidates share the band.
            let (halves, half) = self.hashes.without(probe.band, query);
            for entry in entries {
                let row = self.bands.row(*entry);
                if (halves[row as usize] ^ half).count_ones() <= k {
                    let difference = self.hash(row).0 ^ query.0;
                    let distance = difference.count_ones();
                    // Several probes may find the same row.
                    if distance <= k
                        && bands::first_probe(k, difference) == Some(*probe)
                        && !self.is_deleted(row)
                    {
                        work.hit(row, distance);
                    }
                }
            }
        }
    }

    /// The same as [`near`](Self::near), by comparing with every row.
    pub(super) fn scan(&self, query: SimHash, k: u32, work: &mut Work) {
        work.count_scan(self.rows());
        let rows = work.scan(&self.hashes.high, query, k);
        for row in &rows {
            let distance = self.hash(*row).distance(query);
            if distance <= k && !self.is_deleted(*row) {
                work.hit(*row, distance);
            }
        }
        work.return_buffer(rows);
    }

    /// Visits all pairs of rows within k bits, each once, until `each` breaks. If k is above 3, this takes memory for another table during
    /// the call.
    pub(super) fn pairs(
        &self,
        k: u32,
        each: &mut dyn FnMut(u32, u32, u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let masks: Vec<Masked> = bands::masks(k).collect();
        for (at, mask) in masks.iter().enumerate() {
            let first = |difference| masks.iter().position(|mask| mask.of(difference) == 0);
            let is_first = |difference| first(difference) == Some(at);
            if mask.is_whole() {
                self.pairs_of(self.bands.table(mask.band), mask.band, k, &is_first, each)?;
            } else {
                let table = Table::build(self.rows(), |row| mask.of(self.hashes.get(row).0));
                self.pairs_of(&table, mask.band, k, &is_first, each)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits the pairs of rows within k bits that are in one group of a band's table.
    fn pairs_of(
        &self,
        table: &Table,
        band: usize,
        k: u32,
        is_first: &dyn Fn(u128) -> bool,
        each: &mut dyn FnMut(u32, u32, u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (of_rows, _) = self.hashes.without(band, SimHash(0));
        let is_same = |a: &u32, b: &u32| table.is_same(*a, *b);
        let (mut entries, mut halves) = (Vec::new(), Vec::new());
        for run in table.runs() {
            entries.clear();
            entries.extend(run.chunk_by(is_same).filter(|group| group.len() > 1).flatten());
            // All are read before any is compared, so that the reads do not wait for each other.
            halves.clear();
            halves.extend(entries.iter().map(|entry| of_rows[table.row(*entry) as usize]));
            let mut rest = &halves[..];
            for group in entries.chunk_by(is_same) {
                let (halves, behind) = rest.split_at(group.len());
                rest = behind;
                for (at, half) in halves.iter().enumerate() {
                    for (other, other_half) in halves.iter().enumerate().skip(at + 1) {
                        if (half ^ other_half).count_ones() > k {
                            continue;
                        }
                        let (a, b) = (table.row(group[at]), table.row(group[other]));
                        let difference = self.hash(a).0 ^ self.hash(b).0;
                        let distance = difference.count_ones();
                        if distance <= k && is_first(difference) && !self.is_deleted(a) && !self.is_deleted(b)
                        {
                            each(a, b, distance)?;
                        }
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Bytes of fingerprints, ids and tables.
    pub(super) fn bytes(&self) -> [usize; 3] {
        let hashes = size_of::<u64>() * (self.hashes.high.capacity() + self.hashes.low.capacity());
        let ids = self.numbers.bytes() + self.texts.bytes() + self.filter.bytes() + self.tombstones.bytes();
        [hashes, ids, self.bands.bytes()]
    }
}

/// The number of rows that a scan passes in the time of one look-up. Among four million rows, a scan took 0.25 to 0.7 ns per row with
/// AVX-512; a look-up took 10 to 60 ns, depending on the load of the machine, whether rows were compared one by one or read in advance.
const ROWS_SCANNED_PER_CANDIDATE: usize = 100;

/// Merges the rows of several parts by their ids, without dead rows.
pub(super) fn merged_order<'a>(
    lists: &mut [Box<dyn Iterator<Item = (IdRef<'a>, SimHash)> + 'a>],
    mut each: impl FnMut(IdRef<'a>, SimHash) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut heads: Vec<_> = lists.iter_mut().map(Iterator::next).collect();
    loop {
        let least = heads.iter().enumerate().filter_map(|(list, head)| Some((list, (*head)?.0)));
        let Some((list, _)) = least.min_by(|a, b| a.1.cmp(&b.1)) else {
            return ControlFlow::Continue(());
        };
        let (id, hash) = heads[list].take().expect("the least head is one");
        heads[list] = lists[list].next();
        each(id, hash)?;
    }
}
