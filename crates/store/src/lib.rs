//! Storage on disk for crawls: one ordered key-value interface over several backends, and the directory of a job.
//!
//! This crate handles only bytes and batches; the crates above give them a meaning. It has no runtime: calls block, and
//! [`Writer`] groups writes on a thread of its own.
//!
//! | backend | feature | outlives the process | for |
//! |---|---|---|---|
//! | [`MemoryStore`] | always included | no | tests, crawls that leave nothing behind |
//! | `RedbStore` | `redb` (default) | yes | every job |
//! | `SledStore` | `sled` | yes | small jobs: its memory grows with the number of keys |
//!
//! ```
//! use huntsman_store::{Backend, Batch, Durability, JobDirectory};
//!
//! # let parent = tempfile::tempdir()?;
//! # let path = parent.path().join("job");
//! # let backend = Backend::Memory;
//! let job = JobDirectory::open(&path, backend)?;
//! assert!(job.is_new());
//! let store = job.store();
//! let mut batch = Batch::new();
//! batch.put("seen/1", "https://example.org/");
//! store.write(&batch, Durability::Process)?;
//! assert_eq!(store.get(b"seen/1")?.as_deref(), Some(&b"https://example.org/"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod backend;
#[cfg(any(feature = "redb", feature = "sled"))]
mod checksum;
mod directory;
mod error;
#[cfg(any(feature = "redb", feature = "sled"))]
mod guard;
mod memory;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "sled")]
mod sled;
mod store;
mod writer;

#[cfg(feature = "redb")]
pub use self::redb::RedbStore;
#[cfg(feature = "sled")]
pub use self::sled::SledStore;
pub use backend::{Backend, DEFAULT_CACHE_BYTES, UnknownBackend};
pub use directory::{FORMAT, JobDirectory};
pub use error::{StoreError, StoreErrorKind};
pub use memory::MemoryStore;
pub use store::{Batch, Durability, Operation, Store};
pub use writer::Writer;
