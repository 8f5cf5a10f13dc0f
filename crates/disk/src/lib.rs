//! What does not fit into memory: bytes in files of a scratch directory, frames of them that are read whole or not at all, and an external
//! merge sort.
//!
//! The files are for one program while it runs: nothing here is a format that other programs read. Files that users keep are written by
//! `huntsman-files`.

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bytes;
mod cache;
mod error;
mod frame;
mod list;
mod sort;
mod spool;

pub use bytes::{Fields, put_bytes, put_number};
pub use cache::Cache;
pub use error::{Error, Result};
pub use frame::{FRAME, Framed, Frames, HEADER, header};
pub use list::{Cursor, List, ListWriter, Numbered};
pub use sort::{Entry, Merge, Sorted, Sorter};
pub use spool::{Scratch, Spool};
