//! Lists of sorted entries that are read again, from the beginning or from any number on.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Result;

use crate::bytes::Fields;
use crate::cache::Cache;
use crate::frame::Frames;
use crate::sort::{Entry, RunWriter, damaged};
use crate::spool::{Scratch, Spool};

/// An entry that is found by a number, which several entries may have.
pub trait Numbered: Entry {
    /// The number; those of sorted entries ascend.
    fn number(&self) -> u32;
}

/// Sorted entries in a spool, with the first number of each frame in memory.
#[derive(Debug)]
pub struct List<T> {
    spool: Spool,
    /// The number of the first entry of each frame, and where the frame begins.
    index: Vec<(u32, u64)>,
    frames: Mutex<Frames>,
    cache: Cache<Frame>,
    entries: PhantomData<fn() -> T>,
}

#[derive(Debug)]
struct Frame {
    bytes: Vec<u8>,
    /// Where the next frame begins.
    next: u64,
}

/// Writes a list.
#[derive(Debug)]
pub struct ListWriter<T> {
    run: RunWriter<T>,
    index: Vec<(u32, u64)>,
}

impl<T: Numbered> ListWriter<T> {
    /// An empty list, whose file is in this directory if it needs one.
    pub fn new(scratch: &Scratch) -> Result<Self> {
        Ok(Self { run: RunWriter::new(scratch)?, index: Vec::new() })
    }

    /// Adds an entry, which is not less than the one before it.
    pub fn add(&mut self, entry: T) -> Result<()> {
        self.index.extend(self.run.new_frame().map(|offset| (entry.number(), offset)));
        self.run.add(entry)
    }

    /// The list of all entries that were added.
    pub fn finish(self) -> Result<List<T>> {
        Ok(List {
            spool: self.run.finish()?,
            index: self.index,
            frames: Mutex::new(Frames::new()?),
            cache: Cache::default(),
            entries: PhantomData,
        })
    }
}

impl<T: Numbered> List<T> {
    /// The list of these entries, which are sorted.
    pub fn of(sorted: impl Iterator<Item = Result<T>>, scratch: &Scratch) -> Result<Self> {
        let mut writer = ListWriter::new(scratch)?;
        for entry in sorted {
            writer.add(entry?)?;
        }
        writer.finish()
    }

    /// All entries.
    pub fn cursor(&self) -> Cursor<'_, T> {
        Cursor { list: self, frame: None, next: 0, at: 0, entry: None }
    }

    /// The entries from some place on that is not after the first one with this number.
    pub fn from(&self, number: u32) -> Cursor<'_, T> {
        // The frames before this one end with smaller numbers.
        let frame = self.index.partition_point(|(first, _)| *first < number).saturating_sub(1);
        let next = self.index.get(frame).map_or(0, |(_, offset)| *offset);
        Cursor { next, ..self.cursor() }
    }

    fn frame(&self, offset: u64) -> Result<Option<Arc<Frame>>> {
        if offset >= self.spool.len() {
            return Ok(None);
        }
        let read = || {
            let mut bytes = Vec::new();
            let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            let next = frames.read(&self.spool, offset, &mut bytes)?;
            Ok(Frame { bytes, next: next.unwrap_or(offset) })
        };
        self.cache.get(offset, read).map(Some)
    }
}

/// A place in a list.
#[derive(Debug)]
pub struct Cursor<'a, T> {
    list: &'a List<T>,
    frame: Option<Arc<Frame>>,
    /// Where the frame after it begins.
    next: u64,
    /// Where the next entry begins in the frame.
    at: usize,
    /// The last entry that was read.
    entry: Option<T>,
}

impl<T: Numbered> Cursor<'_, T> {
    /// The next entry; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it lends the entry, which an iterator cannot")]
    pub fn next(&mut self) -> Result<Option<&T>> {
        let is_at_end = self.frame.as_ref().is_none_or(|frame| self.at == frame.bytes.len());
        if is_at_end {
            let Some(frame) = self.list.frame(self.next)? else { return Ok(None) };
            (self.next, self.at, self.entry) = (frame.next, 0, None);
            self.frame = Some(frame);
        }
        let bytes = self.frame.as_ref().map_or(&[][..], |frame| &frame.bytes[self.at..]);
        let mut fields = Fields::new(bytes);
        let entry = T::read(self.entry.as_ref(), &mut fields).ok_or_else(|| damaged(&self.list.spool))?;
        self.at += bytes.len() - fields.len();
        self.entry = Some(entry);
        Ok(self.entry.as_ref())
    }

    /// The next entry with this number; `None` if no further one has it. Entries with smaller numbers are passed over.
    pub fn next_of(&mut self, number: u32) -> Result<Option<&T>> {
        loop {
            let Some(found) = self.next()?.map(T::number) else { return Ok(None) };
            if found >= number {
                return Ok(self.entry.as_ref().filter(|_| found == number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put_number;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Pair(u32, u32);

    impl Entry for Pair {
        fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
            put_number(u64::from(self.0 - before.map_or(0, |before| before.0)), out);
            put_number(u64::from(self.1), out);
        }

        fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
            let number = before.map_or(0, |before| before.0).checked_add(from.number_u32()?)?;
            Some(Self(number, from.number_u32()?))
        }
    }

    impl Numbered for Pair {
        fn number(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn entries_are_found_by_their_number() {
        // Every third number has entries, and number 30 fills several frames.
        let pairs = |number: u32| {
            let count = if number == 30 { 100_000 } else { number % 4 };
            (0..count).map(move |at| Pair(number, at * 7))
        };
        let all: Vec<Pair> = (0..9_000).step_by(3).flat_map(pairs).collect();
        let list = List::of(all.iter().map(|pair| Ok(*pair)), &Scratch::temporary()).unwrap();
        assert!(list.index.len() > 3);
        let (mut cursor, mut read) = (list.cursor(), Vec::new());
        while let Some(pair) = cursor.next().unwrap() {
            read.push(*pair);
        }
        assert!(read == all, "in order");
        for number in [0, 1, 3, 29, 30, 31, 33, 4_500, 8_997, 9_000] {
            let (mut cursor, mut found) = (list.from(number), Vec::new());
            while let Some(pair) = cursor.next_of(number).unwrap() {
                found.push(*pair);
            }
            let expected: Vec<Pair> =
                if number % 3 == 0 && number < 9_000 { pairs(number).collect() } else { Vec::new() };
            assert!(found == expected, "{number}");
        }
    }
}
