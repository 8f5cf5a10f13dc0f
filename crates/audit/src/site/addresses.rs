//! The URLs that an audit knows, each with a number: the numbers are in the order of the URLs.
//!
//! The URLs themselves are on disk. In memory is a table from their fingerprints to their numbers, 13 bytes a URL.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use huntsman_crawler::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::edges::common;
use huntsman_disk::{Cache, Entry, Fields, Scratch, Sorter, Spool, put_bytes, put_number};

/// URLs of a block, which is read at once.
const BLOCK: usize = 64;
/// URLs with one entry in the index of fingerprints, on average.
const PER_BUCKET: usize = 4;

/// The fingerprint of a URL.
pub(crate) fn print_of(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

/// Collects URLs, each of which may come any number of times.
#[derive(Debug)]
pub(crate) struct Collected {
    seen: HashSet<u64, RandomState>,
    urls: Sorter<Text>,
}

/// A URL to be sorted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Text(Box<str>);

impl Entry for Text {
    fn heap_size(&self) -> usize {
        // With what the allocator needs.
        self.0.len() + 16
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_url(before.map_or("", |before| &before.0), &self.0, out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let mut url = before.map_or("", |before| &before.0).to_owned();
        read_url(&mut url, from)?;
        Some(Self(url.into()))
    }
}

fn put_url(before: &str, url: &str, out: &mut Vec<u8>) {
    let common = common(before, url);
    put_number(common as u64, out);
    put_bytes(&url.as_bytes()[common..], out);
}

/// Reads a URL over the one before it.
fn read_url(url: &mut String, from: &mut Fields<'_>) -> Option<()> {
    let common = usize::try_from(from.number()?).ok().filter(|common| url.is_char_boundary(*common))?;
    url.truncate(common);
    url.push_str(from.text()?);
    Some(())
}

impl Collected {
    pub(crate) fn new(scratch: &Scratch, limit: usize) -> Self {
        Self { seen: HashSet::default(), urls: Sorter::new(scratch, limit) }
    }

    /// Adds a URL, and returns its fingerprint.
    pub(crate) fn add(&mut self, url: &str) -> Result<u64> {
        let print = print_of(url);
        if self.seen.insert(print) {
            self.urls.push(Text(url.into()))?;
        }
        Ok(print)
    }

    /// Gives the URLs their numbers. `each` is called with each URL in order.
    pub(crate) fn finish(self, scratch: &Scratch, each: &mut dyn FnMut(&str)) -> Result<Addresses> {
        let Self { seen, urls } = self;
        let number = seen.len();
        // The set is as large as the table that comes now.
        drop(seen);
        let mut prints: Vec<(u64, u32)> = Vec::with_capacity(number);
        let (mut blocks, mut starts) = (Spool::new(scratch), Vec::new());
        let (mut before, mut out) = (String::new(), Vec::new());
        for url in urls.finish()? {
            let Text(url) = url?;
            let number = u32::try_from(prints.len()).ok().filter(|number| *number < Addresses::NONE);
            let number = number.ok_or_else(|| Error::msg("an audit knows at most four billion URLs"))?;
            if prints.len().is_multiple_of(BLOCK) {
                blocks.write(&out)?;
                out.clear();
                starts.push(blocks.len());
                before.clear();
            }
            put_url(&before, &url, &mut out);
            prints.push((print_of(&url), number));
            each(&url);
            before.clear();
            before.push_str(&url);
        }
        blocks.write(&out)?;
        starts.push(blocks.len());
        Ok(Addresses::of(prints, blocks, starts))
    }
}

/// The URLs, by number and by URL.
#[derive(Debug)]
pub(crate) struct Addresses {
    prints: Box<[u64]>,
    numbers: Box<[u32]>,
    /// Where the fingerprints begin that have the same first bits.
    buckets: Box<[u32]>,
    shift: u32,
    blocks: Spool,
    starts: Vec<u64>,
    cache: Cache<Block>,
}

/// The URLs of a block, one behind the other.
#[derive(Debug, Default)]
struct Block {
    text: String,
    ends: Vec<usize>,
}

impl Addresses {
    /// No URL has this number.
    pub(crate) const NONE: u32 = u32::MAX;

    fn of(mut pairs: Vec<(u64, u32)>, blocks: Spool, starts: Vec<u64>) -> Self {
        pairs.sort_unstable();
        let bits = (pairs.len() / PER_BUCKET).max(1).ilog2();
        let shift = 64 - bits;
        let bucket = |print: u64| print.checked_shr(shift).unwrap_or(0) as usize;
        let mut buckets = vec![0_u32; (1 << bits) + 1];
        pairs.iter().for_each(|(print, _)| buckets[bucket(*print) + 1] += 1);
        (1..buckets.len()).for_each(|at| buckets[at] += buckets[at - 1]);
        let prints = pairs.iter().map(|(print, _)| *print).collect();
        let numbers = pairs.iter().map(|(_, number)| *number).collect();
        Self { prints, numbers, buckets: buckets.into(), shift, blocks, starts, cache: Cache::default() }
    }

    /// The number of a URL.
    pub(crate) fn number(&self, url: &str) -> Option<u32> {
        self.number_of(print_of(url))
    }

    /// The number of the URL with this fingerprint.
    pub(crate) fn number_of(&self, print: u64) -> Option<u32> {
        let bucket = print.checked_shr(self.shift).unwrap_or(0) as usize;
        let (start, end) = (self.buckets[bucket] as usize, self.buckets[bucket + 1] as usize);
        let at = self.prints[start..end].iter().position(|found| *found == print)?;
        Some(self.numbers[start + at])
    }

    /// The URL with a number. A number that no URL has gives an empty one.
    pub(crate) fn url(&self, number: u32) -> Result<String> {
        let (block, at) = (number as usize / BLOCK, number as usize % BLOCK);
        let block = self.cache.get(block as u64, || self.block(block))?;
        let start = at.checked_sub(1).and_then(|before| block.ends.get(before)).copied().unwrap_or(0);
        let end = block.ends.get(at).copied().unwrap_or(start);
        Ok(block.text[start..end].to_owned())
    }

    fn block(&self, block: usize) -> Result<Block> {
        let (Some(start), Some(end)) = (self.starts.get(block), self.starts.get(block + 1)) else {
            return Ok(Block::default());
        };
        let mut bytes = Vec::new();
        self.blocks.read(*start, (end - start) as usize, &mut bytes)?;
        let (mut fields, mut url, mut read) = (Fields::new(&bytes), String::new(), Block::default());
        while !fields.is_empty() {
            read_url(&mut url, &mut fields).ok_or_else(|| {
                Error::msg(format!("{} has a URL that was not written there", self.blocks.name()))
            })?;
            read.text.push_str(&url);
            read.ends.push(read.text.len());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_numbers_lead_to_each_other() {
        for (number, limit) in [(0_usize, 1 << 20), (1, 1 << 20), (5_000, 1 << 20), (5_000, 3_000)] {
            let scratch = Scratch::temporary();
            let mut collected = Collected::new(&scratch, limit);
            let url = |at: usize| format!("https://a.example/{}/{}", at % 17, at * 7_919 % 5_000);
            for at in (0..number).chain(0..number / 2) {
                assert_eq!(collected.add(&url(at)).unwrap(), print_of(&url(at)));
            }
            let mut seen = Vec::new();
            let addresses = collected.finish(&scratch, &mut |url| seen.push(url.to_owned())).unwrap();
            let mut expected: Vec<String> = (0..number).map(url).collect();
            expected.sort();
            assert_eq!((addresses.numbers.len(), &seen), (number, &expected));
            for (at, url) in expected.iter().enumerate() {
                assert_eq!(addresses.number(url), Some(at as u32));
                assert_eq!(&addresses.url(at as u32).unwrap(), url);
            }
            assert_eq!(addresses.number("https://a.example/never-met"), None);
            assert_eq!(addresses.url(number as u32 + 70).unwrap(), "");
        }
    }
}
