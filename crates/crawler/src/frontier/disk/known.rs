//! The exact set of seen fingerprints in bounded memory: the newest ones in a set, older ones in sorted runs on disk.
//! Each run has a filter in memory that avoids nearly all look-ups for new fingerprints.

use hashbrown::HashMap;
use huntsman_store::Store;

use super::super::seen::Seen;
use super::row::damaged;
use crate::error::Result;
use crate::request::Fingerprint;

/// Number of fingerprints in one block of a run: 8 KiB, which one look-up reads.
const BLOCK: usize = 512;

/// The set of seen fingerprints.
#[derive(Debug)]
pub(super) struct Known {
    young: Seen,
    young_len: usize,
    /// Greatest number of fingerprints in memory; beyond it they become a run.
    max_in_memory: usize,
    runs: Vec<Run>,
    pub(super) last_run: u64,
    /// Rows of runs that are not committed yet.
    pending: HashMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug)]
struct Run {
    id: u64,
    /// The first fingerprint of each block.
    fences: Vec<u128>,
    filter: Filter,
}

impl Known {
    pub(super) fn new(max_in_memory: usize) -> Self {
        Self {
            young: Seen::default(),
            young_len: 0,
            max_in_memory,
            runs: Vec::new(),
            last_run: 0,
            pending: HashMap::new(),
        }
    }

    /// Inserts a fingerprint. Returns false if it was already present.
    pub(super) fn insert(&mut self, fingerprint: Fingerprint, store: &dyn Store) -> Result<bool> {
        if self.young.contains(fingerprint) || self.is_in_runs(fingerprint, store)? {
            return Ok(false);
        }
        self.add(fingerprint);
        Ok(true)
    }

    /// Inserts a fingerprint that is known to be new.
    pub(super) fn add(&mut self, fingerprint: Fingerprint) {
        self.young_len += usize::from(self.young.insert(fingerprint));
    }

    /// Whether a fingerprint is among those in memory.
    pub(super) fn is_in_memory(&self, fingerprint: Fingerprint) -> bool {
        self.young.contains(fingerprint)
    }

    fn is_in_runs(&self, fingerprint: Fingerprint, store: &dyn Store) -> Result<bool> {
        for run in self.runs.iter().rev().filter(|run| run.filter.may_have(fingerprint.0)) {
            let Some(block) = run.fences.partition_point(|first| *first <= fingerprint.0).checked_sub(1)
            else {
                continue;
            };
            let key = block_key(run.id, block);
            let stored;
            let bytes = match self.pending.get(&key) {
                Some(bytes) => bytes,
                None => {
                    stored = store.get(&key)?.ok_or_else(damaged)?;
                    &stored
                }
            };
            let (all, rest) = bytes.as_chunks::<16>();
            if !rest.is_empty() {
                return Err(damaged());
            }
            if all.binary_search_by_key(&fingerprint.0, |bytes| u128::from_le_bytes(*bytes)).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the fingerprints in memory must become a run.
    pub(super) fn is_full(&self) -> bool {
        self.young_len >= self.max_in_memory
    }

    /// Turns the fingerprints in memory into a run and returns its number. The rows are pending until they are
    /// committed.
    pub(super) fn flush(&mut self) -> u64 {
        let mut all: Vec<u128> = self.young.iter().collect();
        all.sort_unstable();
        self.last_run += 1;
        let id = self.last_run;
        let mut filter = Filter::for_keys(all.len());
        all.iter().for_each(|fingerprint| filter.insert(*fingerprint));
        let fences: Vec<u128> = all.iter().step_by(BLOCK).copied().collect();
        for (block, fingerprints) in all.chunks(BLOCK).enumerate() {
            let bytes = fingerprints.iter().flat_map(|fingerprint| fingerprint.to_le_bytes()).collect();
            self.pending.insert(block_key(id, block), bytes);
        }
        let mut summary = u32::try_from(fences.len()).expect("a run fits into memory").to_le_bytes().to_vec();
        summary.extend(fences.iter().flat_map(|fence| fence.to_le_bytes()));
        summary.extend(filter.words.iter().flatten().flat_map(|word| word.to_le_bytes()));
        self.pending.insert(summary_key(id), summary);
        self.runs.push(Run { id, fences, filter });
        self.young = Seen::default();
        self.young_len = 0;
        id
    }

    /// Reads a run from the store when a journal is replayed. The run contains the fingerprints that are in memory so
    /// far.
    pub(super) fn replay_run(&mut self, id: u64, store: &dyn Store) -> Result<()> {
        let bytes = store.get(&summary_key(id))?.ok_or_else(damaged)?;
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
        let fences = u32::from_le_bytes(*count) as usize;
        let (fences, words) = rest.split_at_checked(fences.saturating_mul(16)).ok_or_else(damaged)?;
        let fences = fences.as_chunks::<16>().0.iter().map(|bytes| u128::from_le_bytes(*bytes)).collect();
        let words: Vec<u64> =
            words.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let filter = Filter { words: words.as_chunks::<8>().0.to_vec() };
        if filter.words.is_empty() {
            return Err(damaged());
        }
        self.runs.push(Run { id, fences, filter });
        self.last_run = self.last_run.max(id);
        self.young = Seen::default();
        self.young_len = 0;
        Ok(())
    }

    /// The runs, oldest first.
    pub(super) fn runs(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().map(|run| run.id)
    }

    /// The fingerprints in memory.
    pub(super) fn young(&self) -> impl Iterator<Item = u128> {
        self.young.iter()
    }

    /// Number of fingerprints. Reads a block of every run.
    pub(super) fn len(&self, store: &dyn Store) -> Result<u64> {
        let mut count = self.young_len as u64;
        for run in &self.runs {
            if let Some(last) = run.fences.len().checked_sub(1) {
                count += (last * BLOCK + self.block(run.id, last, store)?.len() / 16) as u64;
            }
        }
        Ok(count)
    }

    /// Calls `visit` with every fingerprint, in no particular order, until it returns `false`; one block is in memory
    /// at a time.
    pub(super) fn each(&self, store: &dyn Store, visit: &mut dyn FnMut(Fingerprint) -> bool) -> Result<()> {
        for run in &self.runs {
            for block in 0..run.fences.len() {
                let bytes = self.block(run.id, block, store)?;
                let mut all = bytes.as_chunks::<16>().0.iter();
                if !all.all(|bytes| visit(Fingerprint(u128::from_le_bytes(*bytes)))) {
                    return Ok(());
                }
            }
        }
        self.young.iter().all(|young| visit(Fingerprint(young)));
        Ok(())
    }

    fn block(&self, run: u64, block: usize, store: &dyn Store) -> Result<Vec<u8>> {
        let key = block_key(run, block);
        let bytes = match self.pending.get(&key) {
            Some(bytes) => bytes.clone(),
            None => store.get(&key)?.ok_or_else(damaged)?,
        };
        if bytes.len().is_multiple_of(16) { Ok(bytes) } else { Err(damaged()) }
    }

    /// Rows that must be committed.
    pub(super) fn pending(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.pending.iter()
    }

    /// Forgets the rows of runs up to this one, which are committed.
    pub(super) fn committed(&mut self, run: u64) {
        self.pending.retain(|key, _| run_of(key) > run);
    }
}

fn summary_key(run: u64) -> Vec<u8> {
    [b"f/r/", &run.to_be_bytes()[..]].concat()
}

fn block_key(run: u64, block: usize) -> Vec<u8> {
    let block = u32::try_from(block).expect("a run fits into memory");
    [b"f/r/", &run.to_be_bytes()[..], &block.to_be_bytes()].concat()
}

fn run_of(key: &[u8]) -> u64 {
    key.get(4..12).and_then(|run| run.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// A Bloom filter whose blocks have one cache line (Putze, Sanders and Singler, 2007): 12 bits per key, about 0.6 %
/// false positives.
#[derive(Debug)]
struct Filter {
    words: Vec<[u64; 8]>,
}

impl Filter {
    fn for_keys(keys: usize) -> Self {
        Self { words: vec![[0; 8]; (keys * 12).div_ceil(512).max(1)] }
    }

    /// The block of a key, and one bit in each of its words. No hashing is needed, because fingerprints are hashes.
    fn place(&self, key: u128) -> (usize, [u64; 8]) {
        let (high, low) = ((key >> 64) as u64, key as u64);
        let block = ((u128::from(high) * self.words.len() as u128) >> 64) as usize;
        (block, std::array::from_fn(|word| 1 << ((low >> (word * 6)) & 63)))
    }

    fn insert(&mut self, key: u128) {
        let (block, bits) = self.place(key);
        self.words[block].iter_mut().zip(bits).for_each(|(word, bit)| *word |= bit);
    }

    fn may_have(&self, key: u128) -> bool {
        let (block, bits) = self.place(key);
        self.words[block].iter().zip(bits).all(|(word, bit)| word & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use huntsman_store::{Batch, Durability, MemoryStore};

    use super::*;

    fn fingerprint(n: u64) -> Fingerprint {
        Fingerprint(xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes()))
    }

    #[test]
    fn each_is_new_once_however_many_runs_there_are() {
        let store = MemoryStore::new();
        let mut known = Known::new(1_000);
        let mut again = Known::new(1_000);
        for n in 0..20_500 {
            assert!(known.insert(fingerprint(n), &store).unwrap());
            assert!(!known.insert(fingerprint(n / 2), &store).unwrap());
            if known.is_full() {
                let run = known.flush();
                // A fingerprint that is not written yet is known, too.
                assert!(!known.insert(fingerprint(n), &store).unwrap());
                let mut batch = Batch::new();
                known.pending().for_each(|(key, value)| batch.put(key.clone(), value.clone()));
                store.write(&batch, Durability::Process).unwrap();
                known.committed(run);
                assert_eq!(known.pending().count(), 0);
                again.replay_run(run, &store).unwrap();
            }
        }
        assert_eq!(known.runs().count(), 20);
        known.young().for_each(|young| again.add(Fingerprint(young)));
        for n in 0..20_500 {
            assert!(!again.insert(fingerprint(n), &store).unwrap());
        }
        assert_eq!(again.len(&store).unwrap(), 20_500);
        let mut all = Vec::new();
        let keep = &mut |seen| {
            all.push(seen);
            true
        };
        again.each(&store, keep).unwrap();
        all.sort_unstable_by_key(|seen| seen.0);
        let mut expected: Vec<Fingerprint> = (0..20_500).map(fingerprint).collect();
        expected.sort_unstable_by_key(|seen| seen.0);
        assert_eq!(all, expected);
        assert!(again.insert(fingerprint(20_500), &store).unwrap());
    }

    #[test]
    fn the_filter_lets_few_strangers_pass() {
        let mut filter = Filter::for_keys(100_000);
        (0..100_000).for_each(|n| filter.insert(fingerprint(n).0));
        assert!((0..100_000).all(|n| filter.may_have(fingerprint(n).0)));
        let strangers = (100_000..200_000).filter(|n| filter.may_have(fingerprint(*n).0)).count();
        assert!(strangers < 1_500, "{strangers} of 100,000");
    }
}
