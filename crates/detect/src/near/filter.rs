//! A filter that tells which ids are certainly not in a part.

use xxhash_rust::xxh3::xxh3_64;

use super::frozen::IdRef;

/// Bits per id.
const BITS_PER_ID: usize = 6;

/// A Bloom filter in which each id has three bits in one word (F. Putze, P. Sanders, J. Singler, "Cache-, Hash- and Space-Efficient Bloom
/// Filters", 2007). A single read of memory rules out eleven of twelve absent ids.
///
/// An insertion looks up every id in every part, and most ids are new. Without the filter, each search would cost several dependent reads.
#[derive(Debug)]
pub(super) struct Filter {
    words: Box<[u64]>,
}

impl Filter {
    /// An empty filter for this number of ids.
    pub(super) fn with_capacity(ids: usize) -> Self {
        Self { words: vec![0; (ids * BITS_PER_ID).div_ceil(64).max(1)].into() }
    }

    fn place(&self, id: IdRef<'_>) -> (usize, u64) {
        let hash = match id {
            IdRef::Number(number) => mix64(number),
            IdRef::Text(text) => xxh3_64(text.as_bytes()),
        };
        let word = ((hash >> 32) * self.words.len() as u64) >> 32;
        let bits = [0, 6, 12].into_iter().fold(0, |bits, shift| bits | 1 << (hash >> shift & 63));
        (word as usize, bits)
    }

    pub(super) fn insert(&mut self, id: IdRef<'_>) {
        let (word, bits) = self.place(id);
        self.words[word] |= bits;
    }

    /// Whether an id may have been inserted.
    pub(super) fn may_contain(&self, id: IdRef<'_>) -> bool {
        let (word, bits) = self.place(id);
        self.words[word] & bits == bits
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

/// The finaliser of MurmurHash3 (A. Appleby, public domain).
fn mix64(mut x: u64) -> u64 {
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_may_be_in_and_most_others_are_not() {
        for step in [1, 1 << 20, 0x9e37_79b9_7f4a_7c15] {
            let id = |n: u64| n.wrapping_mul(step);
            let mut filter = Filter::with_capacity(10_000);
            (0..10_000).for_each(|n| filter.insert(IdRef::Number(id(n))));
            assert!((0..10_000).all(|n| filter.may_contain(IdRef::Number(id(n)))));
            let wrong = (10_000..20_000).filter(|n| filter.may_contain(IdRef::Number(id(*n)))).count();
            assert!(wrong < 1200, "{wrong} of 10,000 with steps of {step}");
        }
    }

    #[test]
    fn an_empty_filter_has_no_id() {
        let filter = Filter::with_capacity(0);
        assert!(!filter.may_contain(IdRef::Number(0)) && !filter.may_contain(IdRef::Text("")));
    }
}
