//! Tests of indexes on real servers.

#[cfg(feature = "redis")]
mod redis;
