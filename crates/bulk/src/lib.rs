//! Near-duplicates among more fingerprints than one index holds: exports to files, joins over files, clusters of pairs, and queries for
//! SQL engines.
//!
//! [`export()`](export::export) writes the fingerprints of an index to Parquet. [`Join`] finds all pairs of one language within k bits among
//! the rows of such files, or of foreign ones, in bounded memory; killed at any time, it goes on with the last whole step.
//! [`Clustering`] makes groups of the pairs. [`sql()`] prints the same join as a query for an SQL engine.
//!
//! This crate makes no fingerprints and answers no single queries: these are [`huntsman_detect`]'s. It prints nothing.

// All files are written by way of `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cluster;
mod compare;
mod done;
mod error;
pub mod export;
mod fold;
mod ids;
mod input;
mod join;
mod keys;
#[cfg(feature = "s3")]
mod object;
mod parquet_file;
mod place;
mod results;
mod room;
mod row;
mod sql;
mod table;
mod tables;
mod telemetry;

pub use cluster::{ClusterReport, Clustering, Keep, Link};
pub use error::{Error, Result};
pub use input::{Columns, Fingerprints, Input};
pub use join::{HeavyValue, Join, JoinReport, KeyReport};
pub use parquet_file::{Meaning, ParquetFile, Value};
pub use place::{Place, Places, is_in_bucket};
pub use room::Room;
pub use row::{Id, Row};
pub use sql::{Dialect, sql};
pub use table::{Form, Part};
pub use telemetry::Telemetry;
