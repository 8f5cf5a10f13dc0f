//! Compares the rows of one language under one key: rows are read in as many passes as memory needs, sorted by the key, and those that
//! share it compared.
//!
//! A pass reads all rows again and keeps those of a range of hashes. It writes nothing but pairs, so a join has no copies of its rows on
//! disk for each key.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::keys;

/// More rows than this that share a key are joined again by parts of their other bits.
pub(crate) const HEAVY: usize = 4_096;
/// Bytes of a row in a file: number with sides, fingerprint.
pub(crate) const ROW_BYTES: usize = 24;
/// Rows that are read at once.
const READ_AT_ONCE: usize = 1 << 14;

/// The sides of a join that a row is on are the upper two bits of its number.
pub(crate) const SIDES: u32 = 62;

/// A row in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedRow {
    number: u64,
    /// The fingerprint in halves, because a `u128` needs an alignment of 16 bytes.
    hash: [u64; 2],
    key: u32,
}

impl KeyedRow {
    fn hash(&self) -> u128 {
        u128::from(self.hash[0]) << 64 | u128::from(self.hash[1])
    }
}

/// Two rows by their numbers, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) distance: u32,
}

/// What was done for a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) candidates: u64,
    pub(crate) pairs: u64,
    /// Values that more rows share than [`HEAVY`]: how many rows, and one of them by its number.
    pub(crate) heavy: Vec<(u64, u64)>,
    pub(crate) heavy_values: u64,
}

impl Tally {
    /// The most heavy values that are told of a step.
    const TOLD: usize = 10;

    fn note_heavy(&mut self, rows: u64, number: u64) {
        self.heavy_values += 1;
        self.heavy.push((rows, number & ((1 << SIDES) - 1)));
        self.heavy.sort_unstable_by_key(|(rows, number)| (std::cmp::Reverse(*rows), *number));
        self.heavy.truncate(Self::TOLD);
    }
}

/// The comparison under one key of the rows in a file.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) file: &'a Path,
    /// Most rows in memory.
    pub(crate) limit: usize,
    pub(crate) k: u32,
    pub(crate) keys: &'a [u128],
    /// The number of the key.
    pub(crate) key: usize,
    /// The parts of the bits outside of the key.
    pub(crate) parts: Vec<u128>,
    /// Whether pairs of one side do not count.
    pub(crate) across: bool,
    pub(crate) stop: &'a AtomicBool,
}

/// The value of the key that rows must have, and the part of their other bits they are joined by.
#[derive(Clone, Copy, Debug)]
struct Within {
    value: u128,
    part: usize,
}

type Emit<'e> = &'e mut dyn FnMut(Found) -> Result<()>;

impl Comparison<'_> {
    /// Finds all pairs whose first shared key is this one, among the values whose hashes are in a range.
    pub(crate) fn run(&self, range: std::ops::Range<u64>, tally: &mut Tally, emit: Emit<'_>) -> Result<()> {
        self.range(range, None, tally, emit)
    }

    fn mask(&self, within: Option<Within>) -> u128 {
        match within {
            None => self.keys[self.key],
            Some(within) => self.parts[within.part],
        }
    }

    fn range(
        &self,
        range: std::ops::Range<u64>,
        within: Option<Within>,
        tally: &mut Tally,
        emit: Emit<'_>,
    ) -> Result<()> {
        let mut rows = Vec::with_capacity(self.limit.min(self.rows_in_file()?) + 1);
        let mask = self.mask(within);
        let mut is_over = false;
        self.scan(0, &mut |_, mut row| {
            if self.is_within(&row, within) {
                row.key = keys::hash(row.hash(), mask);
                if range.contains(&row.key.into()) {
                    is_over = rows.len() == self.limit;
                    if !is_over {
                        rows.push(row);
                    }
                }
            }
            Ok(!is_over)
        })?;
        if is_over {
            let heavy = most_frequent(&mut rows);
            drop(rows);
            return self.split(range, heavy, within, tally, emit);
        }
        rows.sort_unstable_by_key(|row| row.key);
        for run in rows.chunk_by_mut(|a, b| a.key == b.key).filter(|run| run.len() > 1) {
            self.run_of_equals(run, within, tally, emit)?;
        }
        Ok(())
    }

    /// Does a range that does not fit in parts that may.
    fn split(
        &self,
        range: std::ops::Range<u64>,
        heavy: Option<u64>,
        within: Option<Within>,
        tally: &mut Tally,
        emit: Emit<'_>,
    ) -> Result<()> {
        if range.end - range.start == 1 {
            return match within {
                None => self.heavy_on_disk(range.start, tally, emit),
                Some(within) => self.blocks(range.start, within, tally, emit),
            };
        }
        let middle = heavy.unwrap_or(range.start + (range.end - range.start) / 2);
        let after = if heavy.is_some() { middle + 1 } else { middle };
        for piece in [range.start..middle, middle..after, after..range.end] {
            if !piece.is_empty() {
                self.range(piece, within, tally, emit)?;
            }
        }
        Ok(())
    }

    /// Joins the rows of one value of the key that do not fit into memory by parts of their other bits.
    fn heavy_on_disk(&self, hash: u64, tally: &mut Tally, emit: Emit<'_>) -> Result<()> {
        let mask = self.mask(None);
        // Several values may have this hash.
        let mut values: Vec<(u128, u64, u64)> = Vec::new();
        self.scan(0, &mut |_, row| {
            if u64::from(keys::hash(row.hash(), mask)) == hash {
                let value = row.hash() & mask;
                match values.iter_mut().find(|(one, ..)| *one == value) {
                    Some((_, rows, _)) => *rows += 1,
                    None => values.push((value, 1, row.number)),
                }
            }
            Ok(true)
        })?;
        for (value, rows, number) in values {
            tally.note_heavy(rows, number);
            for part in 0..=self.k as usize {
                self.range(0..1 << 32, Some(Within { value, part }), tally, emit)?;
            }
        }
        Ok(())
    }

    /// Compares all rows of one value of a part that do not fit into memory: a block of them with all behind it, block by block.
    fn blocks(&self, hash: u64, within: Within, tally: &mut Tally, emit: Emit<'_>) -> Result<()> {
        let mask = self.mask(Some(within));
        let is_one = |row: &KeyedRow| {
            self.is_within(row, Some(within)) && u64::from(keys::hash(row.hash(), mask)) == hash
        };
        let mut start = 0;
        loop {
            let (mut block, mut next) = (Vec::new(), None);
            self.scan(start, &mut |at, row| {
                if is_one(&row) {
                    if block.len() == self.limit {
                        next = Some(at);
                        return Ok(false);
                    }
                    block.push(row);
                }
                Ok(true)
            })?;
            for (at, a) in block.iter().enumerate() {
                block[at + 1..].iter().try_for_each(|b| self.pair(a, b, Some(within), tally, emit))?;
            }
            let Some(next) = next else { return Ok(()) };
            self.scan(next, &mut |_, row| {
                if is_one(&row) {
                    block.iter().try_for_each(|a| self.pair(a, &row, Some(within), tally, emit))?;
                }
                Ok(true)
            })?;
            start = next;
        }
    }

    /// Compares rows whose keys have the same hash.
    fn run_of_equals(
        &self,
        run: &mut [KeyedRow],
        within: Option<Within>,
        tally: &mut Tally,
        emit: Emit<'_>,
    ) -> Result<()> {
        if run.len() <= HEAVY || within.is_some() {
            for (at, a) in run.iter().enumerate() {
                run[at + 1..].iter().try_for_each(|b| self.pair(a, b, within, tally, emit))?;
                self.check_stop()?;
            }
            return Ok(());
        }
        let least = run.iter().map(|row| row.number & ((1 << SIDES) - 1)).min().unwrap_or(0);
        tally.note_heavy(run.len() as u64, least);
        let value = run[0].hash() & self.mask(None);
        for part in 0..=self.k as usize {
            let within = Some(Within { value, part });
            let mask = self.mask(within);
            run.iter_mut().for_each(|row| row.key = keys::hash(row.hash(), mask));
            run.sort_unstable_by_key(|row| row.key);
            for same in run.chunk_by_mut(|a, b| a.key == b.key) {
                self.run_of_equals(same, within, tally, emit)?;
            }
        }
        Ok(())
    }

    /// Compares two rows. A pair counts only under the first key that it shares, and within a heavy value only under the first part.
    fn pair(
        &self,
        a: &KeyedRow,
        b: &KeyedRow,
        within: Option<Within>,
        tally: &mut Tally,
        emit: Emit<'_>,
    ) -> Result<()> {
        tally.candidates += 1;
        let differ = a.hash() ^ b.hash();
        let distance = differ.count_ones();
        if distance > self.k || differ & self.keys[self.key] != 0 {
            return Ok(());
        }
        if self.keys[..self.key].iter().any(|earlier| differ & earlier == 0) {
            return Ok(());
        }
        if let Some(Within { part, .. }) = within
            && (differ & self.parts[part] != 0
                || self.parts[..part].iter().any(|earlier| differ & earlier == 0))
        {
            return Ok(());
        }
        // Each has one side or both; together they must have both, one each.
        if self.across && (a.number >> SIDES) | (b.number >> SIDES) != 3 {
            return Ok(());
        }
        let number = |row: &KeyedRow| row.number & ((1 << SIDES) - 1);
        let (a, b) = (number(a).min(number(b)), number(a).max(number(b)));
        tally.pairs += 1;
        emit(Found { a, b, distance })
    }

    fn is_within(&self, row: &KeyedRow, within: Option<Within>) -> bool {
        within.is_none_or(|within| row.hash() & self.keys[self.key] == within.value)
    }

    fn rows_in_file(&self) -> Result<usize> {
        let metadata = std::fs::metadata(self.file).map_err(Error::reading(self.file))?;
        Ok(metadata.len() as usize / ROW_BYTES)
    }

    fn check_stop(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// Calls a function with each row from this one on, and its place, until it returns `false`.
    fn scan(&self, from: u64, each: &mut dyn FnMut(u64, KeyedRow) -> Result<bool>) -> Result<()> {
        use std::io::Seek;
        let mut file = File::open(self.file).map_err(Error::reading(self.file))?;
        let start = std::io::SeekFrom::Start(from * ROW_BYTES as u64);
        file.seek(start).map_err(Error::reading(self.file))?;
        let mut buffer = Vec::with_capacity(READ_AT_ONCE * ROW_BYTES);
        let mut at = from;
        loop {
            self.check_stop()?;
            buffer.clear();
            let some = (READ_AT_ONCE * ROW_BYTES) as u64;
            (&mut file).take(some).read_to_end(&mut buffer).map_err(Error::reading(self.file))?;
            if buffer.is_empty() {
                return Ok(());
            }
            for row in buffer.chunks_exact(ROW_BYTES) {
                let half = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"));
                let row = KeyedRow { number: half(0), hash: [half(8), half(16)], key: 0 };
                if !each(at, row)? {
                    return Ok(());
                }
                at += 1;
            }
        }
    }
}

/// The hash that more than half of the rows have.
fn most_frequent(rows: &mut [KeyedRow]) -> Option<u64> {
    rows.sort_unstable_by_key(|row| row.key);
    let middle = rows.get(rows.len() / 2)?.key;
    let same = rows.iter().filter(|row| row.key == middle).count();
    (same > rows.len() / 2).then_some(middle.into())
}
