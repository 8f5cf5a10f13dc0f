//! What a crawl keeps on disk: one ordered key-value interface over several backends, and the directory of a job.
//!
//! Knows only bytes and batches; what they mean is up to the crates above.

mod error;
mod memory;
mod store;

pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use store::{Batch, Durability, Operation, Store};
