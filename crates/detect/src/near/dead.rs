//! Which rows are taken out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A bit for each of a number of rows, set for good. Takes no memory until the first one is.
///
/// Whoever reads a row that is being taken out may see it either way; what orders them is the lock of the language.
#[derive(Debug)]
pub(super) struct Dead {
    rows: usize,
    count: AtomicUsize,
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl Dead {
    /// None of so many rows.
    pub(super) fn none(rows: usize) -> Self {
        Self { rows, count: AtomicUsize::new(0), bits: OnceLock::new() }
    }

    /// Takes a row out; says whether it was in.
    pub(super) fn insert(&self, row: u32) -> bool {
        let bits = self.bits.get_or_init(|| (0..self.rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        let bit = 1 << (row % 64);
        let was_in = bits[row as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        self.count.fetch_add(usize::from(was_in), Ordering::Relaxed);
        was_in
    }

    /// Whether a row is out.
    pub(super) fn contains(&self, row: u32) -> bool {
        let bits = self.bits.get();
        bits.is_some_and(|bits| bits[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }

    /// How many rows are out.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes that the bits take.
    pub(super) fn bytes(&self) -> usize {
        self.bits.get().map_or(0, |bits| size_of_val(&**bits))
    }
}
