//! All fingerprint indexes of this workspace pass the conformance suite.

use std::path::Path;

use huntsman_detect::near::{DiskIndex, Identity, MemoryIndex};
use huntsman_testkit::conformance::near_index::Opened;
use huntsman_testkit::near_index_conformance;

fn open_memory(_: &Path, identity: Identity) -> Opened {
    Ok(Box::new(MemoryIndex::new(identity)))
}

fn open_disk(path: &Path, identity: Identity) -> Opened {
    Ok(Box::new(DiskIndex::open(path, identity)?))
}

near_index_conformance!(memory, open_memory);
near_index_conformance!(disk, open_disk, outlives);
