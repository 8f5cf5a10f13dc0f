//! Marks rows that were removed or replaced.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One bit per row, which is set if the row is dead and never cleared. Takes no memory until the first bit is set.
///
/// A concurrent reader may see a row that is being marked in either state; the lock of the language orders them.
#[derive(Debug)]
pub(super) struct Tombstones {
    rows: usize,
    count: AtomicUsize,
    bits: OnceLock<Box<[AtomicU64]>>,
}

impl Tombstones {
    /// No dead rows among this number of rows.
    pub(super) fn none(rows: usize) -> Self {
        Self { rows, count: AtomicUsize::new(0), bits: OnceLock::new() }
    }

    /// Marks a row as dead; returns whether it was alive.
    pub(super) fn insert(&self, row: u32) -> bool {
        let bits = self.bits.get_or_init(|| (0..self.rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect());
        let bit = 1 << (row % 64);
        let was_in = bits[row as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        self.count.fetch_add(usize::from(was_in), Ordering::Relaxed);
        was_in
    }

    /// Whether a row is dead.
    pub(super) fn contains(&self, row: u32) -> bool {
        let bits = self.bits.get();
        bits.is_some_and(|bits| bits[row as usize / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }

    /// The number of dead rows.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Bytes of the bits.
    pub(super) fn bytes(&self) -> usize {
        self.bits.get().map_or(0, |bits| size_of_val(&**bits))
    }
}
