//! Near-duplicates among many texts: an index of fingerprints that finds exactly those within k bits of a given one.
//!
//! Each language is indexed separately: a query finds only texts of its own language. All indexes find the same, because the search is
//! exact (the pigeonhole principle): fingerprints that differ in at most k bits have at least one of k + 1 bands in common, and of half as
//! many bands at least one in which at most one bit differs. So an index that looks for these in every band misses none. G. S. Manku, A.
//! Jain, A. Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007.
//!
//! [`NearIndex`] is the interface of an index. This module handles no text: make fingerprints with [`simhash`](crate::simhash), all with
//! the same [`Features`](crate::simhash::Features).

mod bands;
mod check;
mod delta;
mod directory;
mod disk;
mod document;
mod engine;
mod error;
mod filter;
mod frame;
mod frozen;
#[doc(hidden)]
pub mod fuzz;
mod identity;
mod index;
mod language;
mod log;
mod memory;
mod numbers;
mod pairs;
mod partition;
mod rows;
mod scan;
mod segment;
#[cfg(test)]
mod tests;
mod texts;
mod tombstones;
mod work;

pub use check::IndexCheck;
pub use disk::DiskIndex;
pub use document::{DocId, Document, NearMatch};
pub use error::{IndexError, IndexErrorKind};
pub use identity::Identity;
pub use index::{CandidateCounts, IndexStats, LanguageStats, NearIndex};
pub use language::{Language, ParseLanguageError};
pub use memory::MemoryIndex;
pub use pairs::Pair;
pub use segment::Damage;
