//! Near-duplicates among many documents: where they come from, how they are fingerprinted, and what is written about them.
//!
//! One thread reads, some fingerprint, one asks the index, writes flags and inserts. All queues between them are bounded, and
//! what comes out is in the order of what went in.

mod add;
mod args;
mod batch;
mod flags;
mod index;
mod input;
mod manifest;
mod metrics;
pub(crate) mod metrics_file;
mod record;
#[cfg(feature = "s3")]
mod s3;
mod spelling;
mod summary;
mod text;

pub(crate) use add::Adding;
pub(crate) use args::{
    AddArgs, BuildArgs, DedupCommand, ExportArgs, HashArgs, IndexArgs, InputArgs, QueryArgs, RunArgs,
    StatsArgs, distance, features,
};
pub(crate) use batch::{Batches, Settings, Stop};
pub(crate) use flags::Flags;
pub(crate) use index::{Missing, Place, failure};
pub(crate) use input::{Source, read, sources};
pub(crate) use manifest::Manifest;
pub(crate) use metrics::Telemetry;
pub(crate) use record::{Body, Raw, Story, language};
pub(crate) use spelling::Spellings;
pub(crate) use summary::Summary;
