//! The documents of a language in the order of their arrival, before they are sorted.

use super::bands::MAX_ROWS;
use super::frozen::{Frozen, FrozenBuilder, IdRef};
use crate::simhash::SimHash;

/// Documents in the order of their arrival; the last one of an id is kept. They take 24 bytes each with a number, 40 plus the bytes of the
/// id with a text.
///
/// For building an index in bulk: documents need not be found before all are there, so no table is built until then.
#[derive(Debug, Default)]
pub(super) struct Rows {
    numbers: Vec<NumberRow>,
    texts: Vec<TextRow>,
    bytes: String,
}

/// The fingerprint is stored in halves, because a `u128` needs an alignment of 16 bytes.
#[derive(Clone, Copy, Debug)]
struct NumberRow {
    id: u64,
    hash: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
struct TextRow {
    start: usize,
    length: usize,
    hash: [u64; 2],
}

fn halves(hash: SimHash) -> [u64; 2] {
    [(hash.0 >> 64) as u64, hash.0 as u64]
}

fn whole([high, low]: [u64; 2]) -> SimHash {
    SimHash(u128::from(high) << 64 | u128::from(low))
}

impl Rows {
    /// Reserves memory for rows whose ids are numbers and for rows whose ids are texts.
    pub(super) fn reserve(&mut self, numbers: usize, texts: usize) {
        self.numbers.reserve_exact(numbers);
        self.texts.reserve_exact(texts);
    }

    /// Adds a document, or removes an earlier one with this id if the fingerprint is 0.
    pub(super) fn push(&mut self, id: IdRef<'_>, hash: SimHash) {
        let hash = halves(hash);
        match id {
            IdRef::Number(id) => self.numbers.push(NumberRow { id, hash }),
            IdRef::Text(text) => {
                self.texts.push(TextRow { start: self.bytes.len(), length: text.len(), hash });
                self.bytes.push_str(text);
            }
        }
    }

    /// Sorts the rows into parts; there is more than one part only if one has no room for all rows. Temporarily takes half as much memory
    /// again, and some 0.3 us per row.
    pub(super) fn freeze(self, k: u32) -> Vec<Frozen> {
        let Rows { mut numbers, mut texts, bytes } = self;
        let text = |row: &TextRow| &bytes[row.start..row.start + row.length];
        // The sort is stable, so the last row of an id is the one that came last.
        numbers.sort_by_key(|row| row.id);
        texts.sort_by(|a, b| text(a).cmp(text(b)));
        let is_in = |hash: [u64; 2]| hash != [0, 0];
        let last_numbers = || {
            let last = numbers.chunk_by(|a, b| a.id == b.id).map(|same| same[same.len() - 1]);
            last.filter(|row| is_in(row.hash))
        };
        let last_texts = || {
            let last = texts.chunk_by(|a, b| text(a) == text(b)).map(|same| same[same.len() - 1]);
            last.filter(|row| is_in(row.hash))
        };
        let number_rows = last_numbers().count();
        let rows = number_rows + last_texts().count();
        let builder = || FrozenBuilder::with_capacity(rows.min(MAX_ROWS), number_rows.min(MAX_ROWS));
        let mut builders = Vec::new();
        let mut push = |id: IdRef<'_>, hash| {
            if builders.last().is_none_or(|last: &FrozenBuilder| last.rows() == MAX_ROWS) {
                builders.push(builder());
            }
            builders.last_mut().expect("one was just made").push(id, whole(hash));
        };
        last_numbers().for_each(|row| push(IdRef::Number(row.id), row.hash));
        last_texts().for_each(|row| push(IdRef::Text(text(&row)), row.hash));
        drop((numbers, texts, bytes));
        builders.into_iter().map(|builder| builder.finish(k)).collect()
    }
}
