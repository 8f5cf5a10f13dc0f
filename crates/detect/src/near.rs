//! Near-duplicates among many texts: an index of fingerprints that finds all within k bits of one, and exactly these.
//!
//! The texts of each language are apart: a query sees those of its own language alone. What is found does not depend on how an
//! index looks for it: fingerprints that differ in at most k bits have at least one of k + 1 bands in common, and of half as many
//! bands one in which at most one bit differs (the pigeonhole principle), so an index that looks for these in every band misses
//! none. G. S. Manku, A. Jain, A. Das Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007.
//!
//! [`NearIndex`] is what an index does. There is no text here: make fingerprints with [`simhash`](crate::simhash), all with the
//! same [`Features`](crate::simhash::Features).

mod bands;
mod check;
mod dead;
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
mod work;

pub use check::IndexCheck;
pub use disk::DiskIndex;
pub use document::{DocId, Document, Near};
pub use error::{IndexError, IndexErrorKind};
pub use identity::Identity;
pub use index::{CandidateCounts, IndexStats, LanguageStats, NearIndex};
pub use language::{Language, ParseLanguageError};
pub use memory::MemoryIndex;
pub use pairs::Pair;
pub use segment::Damage;
