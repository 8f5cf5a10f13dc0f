//! The interface of an index.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use super::document::{DocId, Document, NearMatch};
use super::error::IndexError;
use super::identity::Identity;
use super::language::Language;
use crate::simhash::SimHash;

/// An index of fingerprints that finds those within k bits of a given one.
///
/// Each language is an index of its own. All implementations return the same results as a comparison with every document.
///
/// Calls block on memory, on a disk or on a server; asynchronous code must make them on a blocking thread. Any number of threads may call
/// at once. A query sees each document of a batch that is being inserted either completely or not at all, and it sees all documents of a
/// batch whose `insert` has returned.
pub trait NearIndex: fmt::Debug + Send + Sync {
    /// The identity that the index was made for.
    fn identity(&self) -> &Identity;

    /// Returns for each query all documents of its language within k bits, k included, sorted by distance and then by id.
    ///
    /// An indexed document finds itself; a caller that looks for others must skip its id. A query for the fingerprint 0, which carries no
    /// information, finds no documents.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError>;

    /// Returns the fingerprints of documents, one for each id, in the order of the ids.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError>;

    /// Indexes documents. A document replaces an earlier one with the same id; if an id occurs more than once in a batch, its last document
    /// stays.
    ///
    /// Inserting a document that is indexed already changes nothing. So after an error, which may leave some of the batch indexed, the
    /// caller inserts the same batch again. A document with the fingerprint 0 is not indexed, and removes an earlier one with its id.
    ///
    /// After it returns, the batch survives any end of the process. A loss of power may lose changes made after the last
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Input`](super::IndexErrorKind::Input), before any change is made: an id is too long. The disk or the server is full or fails.
    fn insert(&self, documents: &[Document]) -> Result<(), IndexError>;

    /// Removes documents and returns how many of them were indexed. As durable as [`insert`](Self::insert).
    ///
    /// # Errors
    /// The disk or the server is full or fails.
    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError>;

    /// The number of documents and the memory that they take.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn stats(&self) -> Result<IndexStats, IndexError>;

    /// Visits every document once, in no particular order, until `each` breaks.
    ///
    /// If other threads insert, replace or remove documents meanwhile, these may be visited or not. `each` may call the index itself.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError>;

    /// Makes all changes so far durable, so that they survive a loss of power.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn flush(&self) -> Result<(), IndexError>;
}

/// The numbers of documents of an index, and its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStats {
    /// The languages that have documents.
    pub languages: BTreeMap<Language, LanguageStats>,
    /// Number of bytes that belong to no language, by purpose: `log`.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Queries since the index was opened that had too many candidates, so that all documents of the language were compared.
    pub heavy_buckets: u64,
    /// The number of documents compared per query since the index was opened.
    pub candidates: CandidateCounts,
}

/// The number of documents of a language, and their memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LanguageStats {
    /// The number of documents.
    pub documents: u64,
    /// Bytes by purpose: `hashes`, `ids`, `bands`, `delta`; other indexes have other parts.
    pub bytes: BTreeMap<&'static str, u64>,
}

/// A histogram of the number of documents compared per query, by powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    counts: [u64; CandidateCounts::CLASSES],
    sum: u64,
}

impl IndexStats {
    /// The number of documents of all languages.
    pub fn documents(&self) -> u64 {
        self.languages.values().map(|language| language.documents).sum()
    }

    /// Number of bytes of all languages, and of those that belong to no language.
    pub fn total_bytes(&self) -> u64 {
        let parts = self.languages.values().flat_map(|language| language.bytes.values());
        parts.chain(self.bytes.values()).sum()
    }
}

impl CandidateCounts {
    /// Classes of queries: none compared, 1, 2 and 3, 4 to 7, and so on; the last class is open-ended.
    pub(super) const CLASSES: usize = 32;

    /// Counts a query that compared this number of documents.
    pub fn record(&mut self, candidates: u64) {
        self.add(Self::class(candidates), 1, candidates);
    }

    /// The class of a query that compared this number of documents.
    pub(super) fn class(candidates: u64) -> usize {
        (candidates.checked_ilog2().map_or(0, |log| log as usize + 1)).min(Self::CLASSES - 1)
    }

    /// Counts queries of a class that compared `sum` documents in total.
    pub(super) fn add(&mut self, class: usize, queries: u64, sum: u64) {
        self.counts[class] += queries;
        self.sum += sum;
    }

    /// The cumulative counts, as the buckets of a Prometheus histogram: for 0, 1, 3, 7 and so on, the number of queries that compared at
    /// most that many documents.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut queries = 0;
        let last = Self::CLASSES - 1;
        self.counts.into_iter().take(last).enumerate().map(move |(class, count)| {
            queries += count;
            ((1_u64 << class) - 1, queries)
        })
    }

    /// The number of queries.
    pub fn queries(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The number of documents compared in total.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_counted_by_how_many_they_compared() {
        let mut counts = CandidateCounts::default();
        [0, 1, 2, 3, 4, 7, 8, u64::MAX / 2].into_iter().for_each(|candidates| counts.record(candidates));
        let buckets: Vec<(u64, u64)> = counts.buckets().take(5).collect();
        assert_eq!(buckets, [(0, 1), (1, 2), (3, 4), (7, 6), (15, 7)]);
        assert_eq!(counts.buckets().last(), Some(((1 << 30) - 1, 7)));
        assert_eq!((counts.queries(), counts.sum()), (8, 25 + u64::MAX / 2));
    }
}
