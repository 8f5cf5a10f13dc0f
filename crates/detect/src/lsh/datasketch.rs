//! An adapter for the index of the crate `datasketch-minhash-lsh`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use datasketch_minhash_lsh::{LshParams as CrateParams, MinHash, MinHashLsh, Weights};

use super::{LshIndex, LshParams, LshParamsError};
use crate::minhash::{PERMUTATIONS, Signature};

/// An index over the crate `datasketch-minhash-lsh`; needs the feature `lsh-datasketch`.
///
/// It gives the same candidates as [`PackedIndex`](super::PackedIndex). It keeps all values of the bands, so it gives no false ones; it
/// takes about 2.8 kB per signature and eight times as long. It serves comparisons only.
///
/// The crate chooses its bands itself, with an allowed error of 0.001. With equal weights they are those of [`LshParams::optimal`] except
/// at ties (threshold 0.5 with 2 or 3 permutations); with other weights they sometimes differ. Do not store anything that the crate
/// computes: its own hashes depend on the Rust release, which is why it gets the signatures of this crate.
pub struct DatasketchIndex {
    params: LshParams,
    /// Queries need a mutable index in that crate.
    inner: Mutex<Inner>,
}

struct Inner {
    index: MinHashLsh<u32>,
    /// A reusable signature of the crate's type, through which ours are passed to the index.
    scratch: MinHash,
    /// The number of signatures, which the crate's index does not report.
    len: usize,
}

impl DatasketchIndex {
    /// An empty index for pairs of at least this similarity.
    ///
    /// # Errors
    ///
    /// If the threshold is not within 0 to 1.
    pub fn new(threshold: f64) -> Result<Self, LshParamsError> {
        if !(0.0..=1.0).contains(&threshold) {
            return Err(LshParamsError(format!("the threshold {threshold} is not within 0 to 1")));
        }
        let weights = Weights(0.5, 0.5);
        let found = CrateParams::find_optimal_params(threshold, PERMUTATIONS, &weights);
        let params = LshParams { b: found.b, r: found.r };
        let index = MinHashLsh::new(PERMUTATIONS, Some(weights), Some(threshold))
            .map_err(|error| LshParamsError(format!("datasketch-minhash-lsh: {error}")))?;
        let scratch = MinHash::new(PERMUTATIONS, Some(1));
        Ok(DatasketchIndex { params, inner: Mutex::new(Inner { index, scratch, len: 0 }) })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        // A panic in the crate would leave a partial change, which costs a candidate at most.
        work(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn load(&mut self, signature: &Signature) {
        let values = &mut self.scratch.hash_values.0;
        values.clear();
        values.extend(signature.values().iter().map(|&value| u64::from(value)));
    }

    fn remove(&mut self, id: u32) -> bool {
        // The crate's `insert` leaves the old entry of a key in its tables, so the key is always removed first.
        let removed = self.index.contains_key(&id) && self.index.remove(&id).is_ok();
        self.len -= usize::from(removed);
        removed
    }
}

impl LshIndex for DatasketchIndex {
    fn params(&self) -> LshParams {
        self.params
    }

    fn insert(&mut self, id: u32, signature: &Signature) {
        self.with(|inner| {
            inner.remove(id);
            inner.load(signature);
            let inserted = inner.index.insert(id, &inner.scratch);
            debug_assert!(inserted.is_ok(), "the only error is a wrong number of values");
            inner.len += 1;
        });
    }

    fn remove(&mut self, id: u32) -> bool {
        self.with(|inner| inner.remove(id))
    }

    fn candidates_into(&self, signature: &Signature, out: &mut Vec<u32>) {
        out.clear();
        self.with(|inner| {
            inner.load(signature);
            let found: HashSet<u32> = inner.index.query(&inner.scratch).unwrap_or_default();
            out.extend(found);
        });
        out.sort_unstable();
    }

    fn len(&self) -> usize {
        self.with(|inner| inner.len)
    }
}

impl fmt::Debug for DatasketchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasketchIndex")
            .field("params", &self.params)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
