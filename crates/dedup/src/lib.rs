//! Finds near-duplicates among many documents: reads documents and writes flags.
//!
//! A [`Source`] is a file of JSON lines, a WARC file, a folder of texts, a table of fingerprints, stdin, or objects of a bucket. [`Batches`] reads and fingerprints documents
//! with several threads, in order. [`Dedup`] queries an index for near-duplicates of each document, writes a line of [`Flags`] for it, and
//! then inserts it. The index is in a directory or, with the feature `redis`, in a Redis server that several machines share.
//!
//! A run always writes the flags of a batch before it inserts the batch. If a run is killed in between, the next one finds the flags
//! written and the documents not indexed, and writes no flag twice.
//!
//! This crate is not the index (that is [`huntsman_detect::near`]), does not crawl, and does not print: it reports events as [`Warning`]s
//! and [`Counts`]. The command `huntsman dedup` is a command line around this crate.
//!
//! ```
//! use huntsman_dedup::{Batches, Counts, Dedup, Flags, IfMissing, IndexLocation, Settings, Source, IdentityOptions, Warnings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("today.jsonl"), "{\"id\": 1, \"lang\": \"en\", \"text\": \"the ferry leaves at noon\"}\n")?;
//! let place = IndexLocation::Directory(folder.path().join("index"));
//! let identity = place.identity(IdentityOptions::default(), IfMissing::Create)?;
//! let warnings = Warnings::new(|warning| eprintln!("{warning}"));
//! let index = place.open(identity, &warnings)?;
//!
//! let flags = Flags::append(&folder.path().join("flags.jsonl"), &warnings)?;
//! let mut dedup = Dedup::new(index, flags).warnings(warnings);
//! let mut counts = Counts::default();
//! let input = folder.path().join("today.jsonl");
//! for batch in Batches::start(Settings::new(vec![Source::File(input)], identity.features()))? {
//!     let batch = batch?;
//!     counts.read(&batch);
//!     dedup.add(batch.stories, &mut counts)?;
//! }
//! dedup.finish()?;
//! assert_eq!((counts.processed, counts.flagged), (1, 0));
//! # Ok(())
//! # }
//! ```

// All files are written by way of `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod add;
mod archive;
mod batch;
mod counts;
mod error;
mod flags;
mod hash_line;
mod index;
mod input;
mod manifest;
mod members;
mod metrics;
mod record;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "s3")]
mod s3;
mod spelling;
#[cfg(feature = "parquet")]
mod table;
mod text;
mod warning;

pub use add::Dedup;
pub use archive::ArchiveId;
pub use batch::{Batch, Batches, Settings, Stop};
pub use counts::{Counts, RunReport};
pub use error::Error;
pub use flags::{FlagLine, Flags};
pub use hash_line::HashLine;
/// A file whose counters go on from run to run, for the metrics of [`Telemetry`].
pub use huntsman_metrics::counter_file as metrics_file;
pub use index::{IdentityOptions, IfMissing, Index, IndexLocation};
pub use input::{ReadOptions, Source, SourceError};
pub use manifest::Manifest;
pub use members::Members;
pub use metrics::{Stage, Telemetry};
pub use record::{Body, Position, RawDocument, Reader, RejectedDocument, Story};
#[cfg(feature = "s3")]
pub use s3::Objects;
pub use spelling::Spellings;
pub use warning::{Warning, Warnings};
