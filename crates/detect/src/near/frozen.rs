//! A part of a language that gets no new rows.

use std::ops::ControlFlow;

use super::bands::{Bands, Cut};
use super::dead::Dead;
use super::document::DocId;
use super::filter::Filter;
use super::numbers::{Numbers, NumbersBuilder};
use super::texts::{Texts, TextsBuilder};
use super::work::Work;
use crate::simhash::SimHash;

/// Documents in the order of their ids, with tables from bands to rows. Rows can be taken out.
///
/// A row with a number takes 16 bytes for its fingerprint, 17.6 (k up to 3) or up to 35.2 for the tables and 2 to 7 for the id, which needs
/// no table of its own as rows go by ids.
#[derive(Debug)]
pub(super) struct Frozen {
    hashes: Hashes,
    /// The ids of the first rows.
    numbers: Numbers,
    /// The ids of the other rows.
    texts: Texts,
    filter: Filter,
    bands: Bands,
    dead: Dead,
}

/// Fingerprints in two halves: to tell that two are far from each other, one half is enough.
#[derive(Debug, Default)]
struct Hashes {
    high: Vec<u64>,
    low: Vec<u64>,
}

/// Makes a [`Frozen`] of rows that come in the order of their ids.
#[derive(Debug)]
pub(super) struct FrozenBuilder {
    hashes: Hashes,
    numbers: NumbersBuilder,
    texts: TextsBuilder,
    filter: Filter,
}

/// An id that is not owned; ordered as [`DocId`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdRef<'a> {
    Number(u64),
    Text(&'a str),
}

impl Hashes {
    fn get(&self, row: usize) -> SimHash {
        SimHash(u128::from(self.high[row]) << 64 | u128::from(self.low[row]))
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
    /// For at most so many rows, of which so many have numbers for ids.
    pub(super) fn with_capacity(rows: usize, numbers: usize) -> Self {
        Self {
            hashes: Hashes { high: Vec::with_capacity(rows), low: Vec::with_capacity(rows) },
            numbers: NumbersBuilder::with_capacity(numbers),
            texts: TextsBuilder::default(),
            filter: Filter::with_capacity(rows),
        }
    }

    /// Adds a row, whose id is above all others.
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

    /// Makes the tables.
    pub(super) fn finish(mut self, cut: Cut) -> Frozen {
        self.hashes.high.shrink_to_fit();
        self.hashes.low.shrink_to_fit();
        let rows = self.rows();
        let bands = Bands::build(cut, rows, |row| self.hashes.get(row));
        Frozen {
            hashes: self.hashes,
            numbers: self.numbers.finish(),
            texts: self.texts.finish(),
            filter: self.filter,
            bands,
            dead: Dead::none(rows),
        }
    }
}

impl Frozen {
    /// Rows, those that are out included.
    pub(super) fn rows(&self) -> usize {
        self.hashes.high.len()
    }

    /// Rows that are not out.
    pub(super) fn live(&self) -> usize {
        self.rows() - self.dead.count()
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

    pub(super) fn is_dead(&self, row: u32) -> bool {
        self.dead.contains(row)
    }

    /// The row of an id, unless it is out.
    pub(super) fn find(&self, id: IdRef<'_>) -> Option<u32> {
        if !self.filter.may_contain(id) {
            return None;
        }
        let row = match id {
            IdRef::Number(number) => self.numbers.find(number),
            IdRef::Text(text) => self.texts.find(text).map(|at| at + self.numbers.len()),
        };
        row.map(|row| row as u32).filter(|row| !self.is_dead(*row))
    }

    /// Takes out the row of an id; says whether it was in.
    pub(super) fn kill(&self, id: IdRef<'_>) -> bool {
        self.find(id).is_some_and(|row| self.dead.insert(row))
    }

    /// Puts all rows within k bits into the hits of `work`.
    pub(super) fn near(&self, query: SimHash, k: u32, work: &mut Work) {
        let cut = self.bands.cut();
        let sharing = self.bands.sharing(query);
        let candidates = sharing.iter().map(|entries| entries.len()).sum();
        if work.is_too_much(candidates) || candidates > self.rows() / ROWS_SCANNED_PER_CANDIDATE {
            return self.scan(query, k, work);
        }
        work.count(candidates);
        let high = (query.0 >> 64) as u64;
        for (band, entries) in sharing.iter().enumerate() {
            for entry in *entries {
                let row = self.bands.row(*entry);
                if (self.hashes.high[row as usize] ^ high).count_ones() <= k {
                    let difference = self.hash(row).0 ^ query.0;
                    let distance = difference.count_ones();
                    // Two rows that share several bands meet in each of them.
                    if distance <= k && cut.first_shared(difference) == Some(band) && !self.is_dead(row) {
                        work.hit(row, distance);
                    }
                }
            }
        }
    }

    /// The same by comparing with every row.
    pub(super) fn scan(&self, query: SimHash, k: u32, work: &mut Work) {
        work.count_scan(self.rows());
        let rows = work.scan(&self.hashes.high, query, k);
        for row in &rows {
            let distance = self.hash(*row).distance(query);
            if distance <= k && !self.is_dead(*row) {
                work.hit(*row, distance);
            }
        }
        work.give_back(rows);
    }

    /// All pairs of rows within k bits, each once, until `each` breaks.
    pub(super) fn pairs(
        &self,
        k: u32,
        each: &mut dyn FnMut(u32, u32, u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let cut = self.bands.cut();
        let mut halves = Vec::new();
        for band in 0..cut.bands() {
            for group in self.bands.groups(band) {
                halves.clear();
                halves.extend(group.iter().map(|entry| self.hashes.high[self.bands.row(*entry) as usize]));
                for (at, half) in halves.iter().enumerate() {
                    for (other, other_half) in halves.iter().enumerate().skip(at + 1) {
                        if (half ^ other_half).count_ones() > k {
                            continue;
                        }
                        let (a, b) = (self.bands.row(group[at]), self.bands.row(group[other]));
                        let difference = self.hash(a).0 ^ self.hash(b).0;
                        if difference.count_ones() <= k
                            && cut.first_shared(difference) == Some(band)
                            && !self.is_dead(a)
                            && !self.is_dead(b)
                        {
                            each(a, b, difference.count_ones())?;
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
        let ids = self.numbers.bytes() + self.texts.bytes() + self.filter.bytes() + self.dead.bytes();
        [hashes, ids, self.bands.bytes()]
    }
}

/// Rows that are scanned in the time in which one is looked up where it lies. Of four million rows, a scan took 0.25 to 0.7 ns a row with
/// AVX-512; to look up one took 10 to 60 ns, by what else the machine did, whether rows were compared one by one or read before.
const ROWS_SCANNED_PER_CANDIDATE: usize = 100;

/// Brings the rows of parts together by their ids. Rows that are out are left out.
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
