//! The set of seen fingerprints.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use hashbrown::HashTable;

use crate::request::Fingerprint;

/// Number of tables that the set is split into.
const SHARDS: usize = 64;

/// The table that a fingerprint belongs to, by its first byte.
///
/// The shares of the tables grow by `2^(1/64)` from one to the next, so that the tables double one after the other.
/// The load of the whole set is therefore always the mean over a table's life, 28 bytes per entry, and it is never
/// copied all at once. Tables of equal shares would all double at the same number of entries, and take 39 bytes per
/// entry right after that.
static SHARD_OF: LazyLock<[u8; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let share = (1.0 + (byte as f64 + 0.5) / 256.0).log2();
        (share * SHARDS as f64) as u8
    })
});

/// A set of 128-bit fingerprints.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Allocated with the first entry. Fingerprints are stored in halves: 16 bytes each, aligned to 8.
    shards: Vec<HashTable<[u64; 2]>>,
    /// Seeded per process: the authors of URLs can choose fingerprints, but not their seeded hashes.
    hasher: foldhash::fast::RandomState,
}

impl Seen {
    /// Inserts a fingerprint. Returns false if it was already present.
    pub(super) fn insert(&mut self, fingerprint: Fingerprint) -> bool {
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, HashTable::new);
        }
        let [first, ..] = fingerprint.0.to_be_bytes();
        let key = [(fingerprint.0 >> 64) as u64, fingerprint.0 as u64];
        let shard = &mut self.shards[usize::from(SHARD_OF[usize::from(first)])];
        let hasher = &self.hasher;
        let entry = shard.entry(hasher.hash_one(key), |&other| other == key, |other| hasher.hash_one(other));
        match entry {
            hashbrown::hash_table::Entry::Occupied(_) => false,
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(key);
                true
            }
        }
    }

    /// Whether a fingerprint was inserted.
    pub(super) fn contains(&self, fingerprint: Fingerprint) -> bool {
        let [first, ..] = fingerprint.0.to_be_bytes();
        let key = [(fingerprint.0 >> 64) as u64, fingerprint.0 as u64];
        let shard = self.shards.get(usize::from(SHARD_OF[usize::from(first)]));
        shard.is_some_and(|shard| shard.find(self.hasher.hash_one(key), |&other| other == key).is_some())
    }

    /// All fingerprints, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u128> {
        let halves = self.shards.iter().flat_map(HashTable::iter);
        halves.map(|[high, low]| (u128::from(*high) << 64) | u128::from(*low))
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.shards.iter().map(HashTable::allocation_size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(n: u64) -> Fingerprint {
        Fingerprint(xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes()))
    }

    #[test]
    fn each_is_new_once() {
        let mut seen = Seen::default();
        for n in 0..10_000 {
            assert!(seen.insert(fingerprint(n)));
        }
        for n in 0..10_000 {
            assert!(seen.contains(fingerprint(n)));
            assert!(!seen.insert(fingerprint(n)));
        }
        assert!(!seen.contains(fingerprint(10_000)));
        // Values that are not random at all, as a caller may assign them.
        let mut seen = Seen::default();
        assert!((0..10_000u128).all(|n| seen.insert(Fingerprint(n))));
        assert!(!seen.insert(Fingerprint(9_999)));
    }

    #[test]
    fn an_entry_takes_less_than_40_bytes_also_while_growing() {
        let mut seen = Seen::default();
        let mut worst = 0.0f64;
        for n in 1..=400_000u64 {
            seen.insert(fingerprint(n));
            if n > 50_000 && n % 500 == 0 {
                worst = worst.max(seen.bytes() as f64 / n as f64);
            }
        }
        assert!(worst < 32.0, "{worst} bytes an entry");
    }
}
