//! Tests of sources of documents, and of indexes on real servers.

mod archives;
#[cfg(feature = "redis")]
mod redis;
