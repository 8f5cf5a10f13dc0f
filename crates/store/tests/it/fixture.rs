//! Directories that earlier versions wrote keep opening.
#![cfg(feature = "redb")]

use std::fs;
use std::path::{Path, PathBuf};

use huntsman_store::{Backend, Batch, Durability, JobDirectory};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

const ENTRIES: [(&[u8], &[u8]); 4] =
    [(b"", b"the empty key"), (b"\0\xff", b"\0\xff"), (b"a", b""), (b"host/example.org", b"a value")];

#[test]
fn a_job_of_format_1_opens_and_goes_on() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    for name in ["format.json", "store.redb"] {
        fs::copy(fixture().join(name), parent.path().join(name)).expect("copy");
    }
    for round in 0..2 {
        let job = JobDirectory::open(parent.path(), Backend::Redb).expect("it opens");
        assert!(!job.is_new());
        let mut found = Vec::new();
        let visit = &mut |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            true
        };
        job.store().scan(b"", visit).expect("scan");
        assert!(found.iter().map(|(key, value)| (&**key, &**value)).take(4).eq(ENTRIES));
        assert_eq!(found.len(), 4 + round);
        let mut batch = Batch::new();
        batch.put("more", "more");
        job.store().write(&batch, Durability::Process).expect("write");
    }
}

#[test]
#[ignore = "writes the fixture; to be run once for each new format, with a new name"]
fn write_the_fixture() {
    assert!(!fixture().exists(), "what an earlier version wrote is not written anew");
    let job = JobDirectory::open(fixture(), Backend::Redb).expect("a new job");
    let mut batch = Batch::new();
    for (key, value) in ENTRIES {
        batch.put(key, value);
    }
    job.store().write(&batch, Durability::Process).expect("write");
    job.close().expect("close");
    fs::remove_file(fixture().join("lock")).expect("remove");
}
