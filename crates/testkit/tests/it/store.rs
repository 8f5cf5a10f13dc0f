//! Every backend passes the conformance suite for stores.

use std::path::Path;
use std::sync::Arc;

use huntsman_store::{Backend, JobDirectory, MemoryStore, Store};
use huntsman_testkit::store_conformance;

fn memory(_: &Path) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn open(path: &Path, backend: Backend) -> Arc<dyn Store> {
    JobDirectory::open(path, backend).expect("the job opens").store()
}

store_conformance!(in_memory, memory);
store_conformance!(redb, |path: &Path| open(path, Backend::Redb), on_disk);
store_conformance!(sled, |path: &Path| open(path, Backend::Sled), on_disk);
