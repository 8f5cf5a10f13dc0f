//! The working memory of a query, kept from one query to the next.

use super::scan;
use crate::simhash::SimHash;

/// A row within k bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) row: u32,
    pub(super) distance: u32,
}

/// The buffer for the results of a query, and counts of its comparisons.
#[derive(Debug)]
pub(super) struct Work {
    /// The results from the part that was searched last.
    pub(super) hits: Vec<Hit>,
    rows: Vec<u32>,
    max_candidates: usize,
    /// The number of rows found in tables that were compared.
    candidates: usize,
    /// The number of rows that scans compared.
    scanned: usize,
    is_heavy: bool,
}

impl Work {
    /// Makes working memory. A query that would compare more than `max_candidates` rows one by one scans instead.
    pub(super) fn new(max_candidates: usize) -> Self {
        Self {
            hits: Vec::new(),
            rows: Vec::new(),
            max_candidates,
            candidates: 0,
            scanned: 0,
            is_heavy: false,
        }
    }

    /// Begins another query; returns how many rows the last one compared, and whether it had too many candidates.
    pub(super) fn next(&mut self) -> (u64, bool) {
        let counts = ((self.candidates + self.scanned) as u64, self.is_heavy);
        (self.candidates, self.scanned, self.is_heavy) = (0, 0, false);
        self.hits.clear();
        counts
    }

    /// Whether this many additional candidates are too many to be compared one by one.
    pub(super) fn exceeds_limit(&mut self, candidates: usize) -> bool {
        let exceeds_limit = self.candidates + candidates > self.max_candidates;
        self.is_heavy |= exceeds_limit;
        exceeds_limit
    }

    pub(super) fn count(&mut self, candidates: usize) {
        self.candidates += candidates;
    }

    pub(super) fn count_scan(&mut self, rows: usize) {
        self.scanned += rows;
    }

    pub(super) fn hit(&mut self, row: u32, distance: u32) {
        self.hits.push(Hit { row, distance });
    }

    /// The rows whose upper half is within k bits of the query's. The buffer must be [returned](Self::return_buffer).
    pub(super) fn scan(&mut self, halves: &[u64], query: SimHash, k: u32) -> Vec<u32> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        scan::within(halves, (query.0 >> 64) as u64, k, &mut rows);
        rows
    }

    pub(super) fn return_buffer(&mut self, rows: Vec<u32>) {
        self.rows = rows;
    }
}
