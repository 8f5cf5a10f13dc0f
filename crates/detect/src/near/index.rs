//! What an index does.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use super::document::{DocId, Document, Near};
use super::error::IndexError;
use super::identity::Identity;
use super::language::Language;
use crate::simhash::SimHash;

/// An index of fingerprints: which of them are within k bits of a given one.
///
/// Each language is an index of its own. All implementations give the same answers, those of comparing with every document.
///
/// Calls block, on memory, on a disk or on a server; from asynchronous code they are made on a blocking thread. Any number of threads may
/// call at once. One that asks sees each document of a batch that is being inserted either wholly or not yet, and each batch wholly whose
/// `insert` has returned.
pub trait NearIndex: fmt::Debug + Send + Sync {
    /// What the index is made for.
    fn identity(&self) -> &Identity;

    /// For each query all documents of its language within k bits, k included, by distance and then by id.
    ///
    /// A document that is indexed finds itself: who asks for others leaves out its id. Nothing is within k bits of the fingerprint 0,
    /// which says nothing.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<Near>>, IndexError>;

    /// The fingerprints of documents, one for each id, in their order.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError>;

    /// Indexes documents; a document whose id is there takes its place, and within a batch the last one of an id stays.
    ///
    /// To insert what is there changes nothing, so after an error, which may leave some of the batch indexed, the same batch is inserted
    /// again. What has the fingerprint 0 is not indexed, and takes out what was there under its id.
    ///
    /// When it returns, the end of the process by any means loses nothing of it; what a loss of power may take is what came after the
    /// last [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`Input`](super::IndexErrorKind::Input) before anything is done: an id is too long. The disk or the server is full or fails.
    fn insert(&self, documents: &[Document]) -> Result<(), IndexError>;

    /// Takes documents out; says how many of them were there. As durable as [`insert`](Self::insert).
    ///
    /// # Errors
    /// The disk or the server is full or fails.
    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError>;

    /// How much there is, and what it takes.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn stats(&self) -> Result<IndexStats, IndexError>;

    /// Visits every document once, in no order that is promised, until `each` breaks.
    ///
    /// Documents that others insert, replace or take out meanwhile are visited or not; `each` may call the index itself.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError>;

    /// Makes durable what was inserted and taken out: a loss of power does not lose it.
    ///
    /// # Errors
    /// The disk or the server fails.
    fn flush(&self) -> Result<(), IndexError>;
}

/// How much there is in an index, and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStats {
    /// The languages that have documents.
    pub languages: BTreeMap<Language, LanguageStats>,
    /// Bytes that belong to no language, by what they are for: `log`.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Queries since the index was opened for which so many documents had to be compared that all were.
    pub heavy_buckets: u64,
    /// How many documents were compared per query since the index was opened.
    pub candidates: CandidateCounts,
}

/// How much there is of a language, and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LanguageStats {
    /// Documents.
    pub documents: u64,
    /// Bytes by what they are for: `hashes`, `ids`, `bands`, `delta`; other indexes have other parts.
    pub bytes: BTreeMap<&'static str, u64>,
}

/// A histogram of how many documents were compared per query, by powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    counts: [u64; CandidateCounts::CLASSES],
    sum: u64,
}

impl IndexStats {
    /// Documents of all languages.
    pub fn documents(&self) -> u64 {
        self.languages.values().map(|language| language.documents).sum()
    }

    /// Bytes of all languages and of what belongs to none.
    pub fn total_bytes(&self) -> u64 {
        let parts = self.languages.values().flat_map(|language| language.bytes.values());
        parts.chain(self.bytes.values()).sum()
    }
}

impl CandidateCounts {
    /// Classes of queries: none compared, 1, 2 and 3, 4 to 7, and so on; the last one has no end.
    pub(super) const CLASSES: usize = 32;

    /// Counts a query.
    pub fn record(&mut self, candidates: u64) {
        self.add(Self::class(candidates), 1, candidates);
    }

    /// The number of a class of queries.
    pub(super) fn class(candidates: u64) -> usize {
        (candidates.checked_ilog2().map_or(0, |log| log as usize + 1)).min(Self::CLASSES - 1)
    }

    /// Counts queries of a class which took `sum` in all.
    pub(super) fn add(&mut self, class: usize, queries: u64, sum: u64) {
        self.counts[class] += queries;
        self.sum += sum;
    }

    /// How many queries compared at most so many documents, for 0, 1, 3, 7 and so on, as the buckets of a Prometheus histogram.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut queries = 0;
        let last = Self::CLASSES - 1;
        self.counts.into_iter().take(last).enumerate().map(move |(class, count)| {
            queries += count;
            ((1_u64 << class) - 1, queries)
        })
    }

    /// How many queries there were.
    pub fn queries(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many documents were compared in all.
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
