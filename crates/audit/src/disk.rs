//! What does not fit into memory: bytes in files of a scratch directory, frames of them that are read whole or not at all, and sorting.

mod bytes;
mod cache;
mod frame;
mod list;
mod sort;
mod spool;

pub(crate) use bytes::{Fields, put_bytes, put_number};
pub(crate) use cache::Cache;
pub(crate) use frame::{FRAME, Framed, Frames, HEADER, header};
pub(crate) use list::{Cursor, List, ListWriter, Numbered};
pub(crate) use sort::{Entry, Sorted, Sorter};
pub(crate) use spool::{Scratch, Spool};
