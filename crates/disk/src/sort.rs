//! An external merge sort: sorts more entries than fit into memory.
//!
//! Entries are collected until they take some bytes of memory; these are sorted and written as a run. In the end all runs are merged. Each
//! entry is written as its difference from the one before it, so sorted entries take little room.

use std::cmp::Ordering;

use crate::{Error, Result};

use crate::bytes::Fields;
use crate::frame::{FRAME, Framed, Frames};
use crate::spool::{Scratch, Spool};

/// Runs that are merged at once. More of them become one before.
const MAX_RUNS: usize = 64;

/// What can be sorted. Entries that are equal keep the order in which they came.
pub trait Entry: Ord + Sized {
    /// Bytes of memory that it takes besides itself.
    fn heap_size(&self) -> usize {
        0
    }

    /// Appends it. `before` is the entry before it, which is not greater; `None` at the beginning of a frame.
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>);

    /// Reads what [`put`](Self::put) appended after the same entry. `None` says that it is not what was written.
    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self>;
}

/// Collects entries to be sorted.
#[derive(Debug)]
pub struct Sorter<T> {
    scratch: Scratch,
    limit: usize,
    entries: Vec<T>,
    /// Bytes of the entries besides themselves.
    heap: usize,
    runs: Vec<Spool>,
}

impl<T: Entry> Sorter<T> {
    /// A sorter that keeps so many bytes of entries in memory.
    pub fn new(scratch: &Scratch, limit: usize) -> Self {
        Self { scratch: scratch.clone(), limit, entries: Vec::new(), heap: 0, runs: Vec::new() }
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: T) -> Result<()> {
        self.heap += entry.heap_size();
        self.entries.push(entry);
        if self.entries.len() * size_of::<T>() + self.heap < self.limit { Ok(()) } else { self.end_run() }
    }

    fn end_run(&mut self) -> Result<()> {
        if self.runs.len() == MAX_RUNS {
            let mut merged = RunWriter::new(&self.scratch)?;
            for entry in Merge::<T>::of(std::mem::take(&mut self.runs))? {
                merged.add(entry?)?;
            }
            self.runs.push(merged.finish()?);
        }
        self.entries.sort();
        let mut run = RunWriter::new(&self.scratch)?;
        self.entries.drain(..).try_for_each(|entry| run.add(entry))?;
        self.runs.push(run.finish()?);
        self.heap = 0;
        Ok(())
    }

    /// All entries in order.
    pub fn finish(mut self) -> Result<Sorted<T>> {
        if self.runs.is_empty() {
            self.entries.sort();
            return Ok(Sorted::InMemory(self.entries.into_iter()));
        }
        if !self.entries.is_empty() {
            self.end_run()?;
        }
        // Merging needs memory of its own.
        self.entries = Vec::new();
        Ok(Sorted::Merged(Merge::of(self.runs)?))
    }
}

/// Entries in order.
#[derive(Debug)]
pub enum Sorted<T> {
    /// All of them were in memory.
    InMemory(std::vec::IntoIter<T>),
    /// They are merged from files.
    Merged(Merge<T>),
}

impl<T: Entry> Iterator for Sorted<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self {
            Self::InMemory(entries) => entries.next().map(Ok),
            Self::Merged(merge) => merge.next(),
        }
    }
}

/// Writes sorted entries.
#[derive(Debug)]
pub(crate) struct RunWriter<T> {
    spool: Spool,
    framed: Framed,
    frame: Vec<u8>,
    out: Vec<u8>,
    before: Option<T>,
}

impl<T: Entry> RunWriter<T> {
    pub(crate) fn new(scratch: &Scratch) -> Result<Self> {
        Ok(Self {
            spool: Spool::new(scratch),
            framed: Framed::new()?,
            frame: Vec::new(),
            out: Vec::new(),
            before: None,
        })
    }

    /// Where the frame begins to which the next entry would be the first; `None` if it would not be the first of a frame.
    pub(crate) fn new_frame(&self) -> Option<u64> {
        self.frame.is_empty().then(|| self.spool.len())
    }

    pub(crate) fn add(&mut self, entry: T) -> Result<()> {
        entry.put(self.before.as_ref(), &mut self.frame);
        self.before = Some(entry);
        if self.frame.len() < FRAME { Ok(()) } else { self.end_frame() }
    }

    fn end_frame(&mut self) -> Result<()> {
        self.out.clear();
        self.framed.put(&self.frame, &mut self.out)?;
        self.frame.clear();
        self.before = None;
        self.spool.write(&self.out)
    }

    pub(crate) fn finish(mut self) -> Result<Spool> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        Ok(self.spool)
    }
}

/// Reads the entries of a run.
#[derive(Debug)]
struct Run<T> {
    spool: Spool,
    frames: Frames,
    /// Offset of the next frame.
    next: u64,
    frame: Vec<u8>,
    /// Where the next entry begins in the frame.
    at: usize,
    first: T,
}

impl<T: Entry> Run<T> {
    /// `None` if the run is empty.
    fn of(spool: Spool) -> Result<Option<Self>> {
        let (mut frames, mut frame) = (Frames::new()?, Vec::new());
        let Some(next) = frames.read(&spool, 0, &mut frame)? else { return Ok(None) };
        let mut fields = Fields::new(&frame);
        let first = T::read(None, &mut fields).ok_or_else(|| damaged(&spool))?;
        let at = frame.len() - fields.len();
        Ok(Some(Self { spool, frames, next, frame, at, first }))
    }

    /// The first entry, after which the next one is the first; `None` if there is no next one.
    fn pop(&mut self) -> Result<Option<T>> {
        let mut before = Some(&self.first);
        if self.at == self.frame.len() {
            before = None;
            match self.frames.read(&self.spool, self.next, &mut self.frame)? {
                None => return Ok(None),
                Some(next) => (self.next, self.at) = (next, 0),
            }
        }
        let mut fields = Fields::new(&self.frame[self.at..]);
        let entry = T::read(before, &mut fields).ok_or_else(|| damaged(&self.spool))?;
        self.at = self.frame.len() - fields.len();
        Ok(Some(std::mem::replace(&mut self.first, entry)))
    }
}

pub(crate) fn damaged(spool: &Spool) -> Error {
    Error::msg(format!("{} has an entry that was not written there", spool.name()))
}

/// Runs that are merged.
#[derive(Debug)]
pub struct Merge<T> {
    /// `None` for a run whose entries were all taken.
    runs: Vec<Option<Run<T>>>,
    /// Indexes of the others, as a heap with the least first entry at the top.
    heap: Vec<usize>,
}

impl<T: Entry> Merge<T> {
    fn of(spools: Vec<Spool>) -> Result<Self> {
        let mut runs = Vec::with_capacity(spools.len());
        for spool in spools {
            runs.extend(Run::of(spool)?.map(Some));
        }
        let heap = (0..runs.len()).collect();
        let mut merge = Self { runs, heap };
        (0..merge.heap.len() / 2).rev().for_each(|at| merge.sift_down(at));
        Ok(merge)
    }

    fn order(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (self.heap[a], self.heap[b]);
        let first = |run: usize| self.runs[run].as_ref().map(|run| &run.first);
        first(a).cmp(&first(b)).then(a.cmp(&b))
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.order(child, least).is_lt() {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Takes the least entry out; `None` at the end.
    fn pop(&mut self) -> Result<Option<T>> {
        let Some(top) = self.heap.first().copied() else { return Ok(None) };
        let Some(run) = &mut self.runs[top] else { return Ok(None) };
        let entry = match run.pop()? {
            Some(entry) => Some(entry),
            None => {
                self.heap.swap_remove(0);
                self.runs[top].take().map(|run| run.first)
            }
        };
        self.sift_down(0);
        Ok(entry)
    }
}

impl<T: Entry> Iterator for Merge<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let popped = self.pop();
        if popped.is_err() {
            // The list ends with the error.
            self.heap.clear();
        }
        popped.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put_number;

    /// A number, and a mark that does not count in the order.
    #[derive(Clone, Copy, Debug)]
    struct Marked(u64, u64);

    impl PartialEq for Marked {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Eq for Marked {}

    impl PartialOrd for Marked {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Marked {
        fn cmp(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
    }

    impl Entry for Marked {
        fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
            put_number(self.0 - before.map_or(0, |before| before.0), out);
            put_number(self.1, out);
        }

        fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
            Some(Self(before.map_or(0, |before| before.0).checked_add(from.number()?)?, from.number()?))
        }
    }

    #[test]
    fn entries_come_in_order_and_equal_ones_as_they_came() {
        for (number, limit, range) in
            [(0, 100, 1), (1, 16, 5), (1_000, 1 << 20, 90), (30_000, 6_400, 700), (30_000, 1_600, u64::MAX)]
        {
            let mut sorter = Sorter::new(&Scratch::temporary(), limit);
            let mut state = 7_u64;
            let entries: Vec<Marked> = (0..number)
                .map(|mark| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    Marked((state >> 20) % range, mark)
                })
                .collect();
            entries.iter().for_each(|entry| sorter.push(*entry).unwrap());
            let sorted: Vec<(u64, u64)> = sorter
                .finish()
                .unwrap()
                .map(|entry| entry.map(|found| (found.0, found.1)).unwrap())
                .collect();
            let mut expected: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.0, entry.1)).collect();
            expected.sort();
            assert_eq!(sorted, expected, "{number} entries, {limit} bytes at once");
        }
    }

    #[test]
    fn files_of_runs_go_when_they_were_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scratch");
        let mut sorter = Sorter::new(&Scratch::at(path.clone()), 1 << 20);
        let noise = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (0..200_000).for_each(|number| sorter.push(Marked(noise(number), noise(number + 7))).unwrap());
        assert!(std::fs::read_dir(&path).unwrap().count() > 1);
        let sorted = sorter.finish().unwrap();
        assert_eq!(sorted.count(), 200_000);
        assert!(!path.exists());
    }
}
