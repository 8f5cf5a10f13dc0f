//! Integration tests of the crate, in one binary.

mod search_engines;
#[cfg(feature = "text-index")]
mod text_index;
