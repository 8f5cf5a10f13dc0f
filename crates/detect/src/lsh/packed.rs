//! The compact index of signatures.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{LshIndex, LshParams, LshParamsError};
use crate::minhash::{PERMUTATIONS, Signature};

/// The end of a chain.
const END: u32 = u32::MAX;
/// Stands in place of a link for a number without a signature.
const ABSENT: u32 = u32::MAX - 1;

/// An index that keeps a 64-bit hash and a link per band instead of the values.
///
/// A band costs 12 bytes for each signature and 6 to 12 for each distinct content: with 5 bands, and the reserve of growing tables, 110 to
/// 140 bytes per signature, in addition to the 512 of the signature, which the index does not keep. Inserting costs one hash and one
/// look-up per band; a query costs the same, plus the candidates; removing walks along the signatures with the same band.
///
/// Two bands with equal hashes are treated as equal: at a million signatures this gives one false candidate in some ten million runs.
///
/// ```
/// use huntsman_detect::lsh::{LshIndex, LshParams, PackedIndex};
/// use huntsman_detect::minhash::Signature;
///
/// let mut index = PackedIndex::new(LshParams::optimal(0.9, 128)?)?;
/// index.insert(0, &Signature::of(&[1, 2, 3]));
/// index.insert(1, &Signature::of(&[4, 5, 6]));
/// assert_eq!(index.candidates(&Signature::of(&[3, 2, 1])), [0]);
/// # Ok::<(), huntsman_detect::lsh::LshParamsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PackedIndex {
    params: LshParams,
    bands: Vec<Band>,
    len: usize,
}

/// The chains of signatures that agree in one band.
#[derive(Debug, Clone, Default)]
struct Band {
    /// The first signature of each chain.
    heads: HashTable<u32>,
    /// By number: the hash of the band's values.
    hashes: Vec<u64>,
    /// By number: the next signature of the chain.
    next: Vec<u32>,
}

impl PackedIndex {
    /// An empty index.
    ///
    /// # Errors
    ///
    /// If there are no bands, no rows, or more values in them than a signature has.
    pub fn new(params: LshParams) -> Result<Self, LshParamsError> {
        if !params.fit() {
            return Err(LshParamsError(format!(
                "{} bands of {} values do not fit a signature of {PERMUTATIONS}",
                params.b, params.r
            )));
        }
        Ok(PackedIndex { params, bands: vec![Band::default(); params.b], len: 0 })
    }

    /// Number of bytes in memory, without the overhead of the allocator.
    pub fn size(&self) -> usize {
        let band = |band: &Band| {
            band.hashes.capacity() * 8 + band.next.capacity() * 4 + band.heads.allocation_size()
        };
        self.bands.iter().map(band).sum()
    }

    fn contains(&self, id: u32) -> bool {
        self.bands[0].next.get(id as usize).is_some_and(|&next| next != ABSENT)
    }
}

/// The hashes of the bands of a signature, in their order.
fn hashes(params: LshParams, signature: &Signature) -> impl Iterator<Item = u64> {
    let mut bytes = [0; 4 * PERMUTATIONS];
    for (place, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(signature.values()) {
        *place = value.to_le_bytes();
    }
    (0..params.b).map(move |band| {
        let width = 4 * params.r;
        xxh3_64_with_seed(&bytes[band * width..(band + 1) * width], band as u64)
    })
}

impl Band {
    fn insert(&mut self, id: u32, hash: u64) {
        let at = id as usize;
        if at >= self.next.len() {
            self.next.resize(at + 1, ABSENT);
            self.hashes.resize(at + 1, 0);
        }
        self.hashes[at] = hash;
        let Band { heads, hashes, next } = self;
        match heads.find_mut(hash, |&head| hashes[head as usize] == hash) {
            Some(head) => next[at] = std::mem::replace(head, id),
            None => {
                heads.insert_unique(hash, id, |&head| hashes[head as usize]);
                next[at] = END;
            }
        }
    }

    fn remove(&mut self, id: u32) {
        let at = id as usize;
        let Band { heads, hashes, next } = self;
        let (hash, after) = (hashes[at], next[at]);
        next[at] = ABSENT;
        let entry = heads
            .find_entry(hash, |&head| hashes[head as usize] == hash)
            .expect("every fingerprint of the index is in a chain");
        let mut before = *entry.get();
        if before == id {
            match after {
                END => drop(entry.remove()),
                other => *entry.into_mut() = other,
            }
            return;
        }
        while next[before as usize] != id {
            before = next[before as usize];
        }
        next[before as usize] = after;
    }

    fn chain(&self, hash: u64) -> impl Iterator<Item = u32> {
        let mut at =
            self.heads.find(hash, |&head| self.hashes[head as usize] == hash).copied().unwrap_or(END);
        std::iter::from_fn(move || {
            let id = at;
            at = *self.next.get(id as usize)?;
            Some(id)
        })
    }
}

impl LshIndex for PackedIndex {
    fn params(&self) -> LshParams {
        self.params
    }

    /// # Panics
    ///
    /// If the number is one of the two largest.
    fn insert(&mut self, id: u32, signature: &Signature) {
        assert!(id < ABSENT, "{id} is too large a number for an index");
        self.remove(id);
        for (band, hash) in self.bands.iter_mut().zip(hashes(self.params, signature)) {
            band.insert(id, hash);
        }
        self.len += 1;
    }

    fn remove(&mut self, id: u32) -> bool {
        if !self.contains(id) {
            return false;
        }
        for band in &mut self.bands {
            band.remove(id);
        }
        self.len -= 1;
        true
    }

    fn candidates_into(&self, signature: &Signature, out: &mut Vec<u32>) {
        out.clear();
        for (band, hash) in self.bands.iter().zip(hashes(self.params, signature)) {
            out.extend(band.chain(hash));
        }
        // The stable sort is faster here, because each chain is sorted already.
        out.sort();
        out.dedup();
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_must_fit_a_signature() {
        for (b, r) in [(0, 1), (1, 0), (2, 65), (usize::MAX, 2)] {
            assert!(PackedIndex::new(LshParams { b, r }).is_err(), "{b} {r}");
        }
        assert!(PackedIndex::new(LshParams { b: 2, r: 64 }).is_ok());
    }

    #[test]
    fn different_contents_cost_at_most_160_bytes_each() {
        let mut index = PackedIndex::new(LshParams { b: 5, r: 25 }).unwrap();
        for id in 0..20_000_u32 {
            index.insert(id, &Signature::of(&[u64::from(id) * 0x9e37_79b9, u64::from(id)]));
        }
        let each = index.size() / 20_000;
        assert!(each <= 160, "{each} bytes");
    }
}
