//! Killed processes, full disks and flipped bits: acknowledged data is there, or an error is reported.
#![cfg(all(unix, feature = "redb"))]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use huntsman_store::{
    Backend, Batch, Durability, JobDirectory, RedbStore, Store, StoreError, StoreErrorKind, Writer,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The directory of a child's job, and its backend.
const JOB: &str = "HUNTSMAN_STORE_TEST_JOB";
const BACKEND: &str = "HUNTSMAN_STORE_TEST_BACKEND";

fn backends() -> impl Iterator<Item = Backend> {
    Backend::ALL.into_iter().filter(|b| b.is_compiled_in() && *b != Backend::Memory)
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A random seed for each run, which is printed; `HUNTSMAN_STORE_TEST_SEED` repeats one.
fn seeded() -> StdRng {
    let given = env::var("HUNTSMAN_STORE_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    println!("HUNTSMAN_STORE_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// The job that a child process was started for.
fn job_of_child() -> JobDirectory {
    let path = env::var_os(JOB).expect("started by another test");
    let backend = env::var(BACKEND).expect("started by another test").parse().expect("a backend");
    JobDirectory::open(path, backend).expect("the job opens")
}

/// Starts this program as another process that runs only the test of that name; `before` is an optional shell line.
fn child(test: &str, before: &str, path: &Path, backend: Backend) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$0\" \"$@\"")]);
    command.arg(env::current_exe().expect("the test's own program"));
    command.args(["--ignored", "--exact", "--nocapture", test]);
    command.env(JOB, path).env(BACKEND, backend.name()).stdout(Stdio::piped());
    command
}

fn key(batch: u64, part: u64) -> Vec<u8> {
    [batch.to_be_bytes(), part.to_be_bytes()].concat()
}

/// How many entries a batch has.
fn parts(batch: u64) -> u64 {
    1 + batch * 7 % 40
}

/// All entries by batch; each must be what the batch wrote.
fn batches(store: &dyn Store) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        let (batch, _) = key.split_first_chunk().expect("a key of a batch");
        let batch = u64::from_be_bytes(*batch);
        assert_eq!(value, batch.to_le_bytes().repeat(20));
        *found.entry(batch).or_default() += 1;
        true
    };
    store.scan(b"", visit).expect("scan");
    found
}

#[test]
#[ignore = "the process that is killed by another test"]
fn child_that_writes_until_it_is_killed() {
    let job = job_of_child();
    let first = batches(&*job.store()).keys().next_back().map_or(0, |last| last + 1);
    let writer = Writer::new(job.store(), Durability::Process).expect("a writer");
    for number in first.. {
        let mut batch = Batch::new();
        for part in 0..parts(number) {
            batch.put(key(number, part), number.to_le_bytes().repeat(20));
        }
        // Old batches are deleted, as in a queue, so that space is reused.
        if let Some(old) = number.checked_sub(100) {
            (0..parts(old)).for_each(|part| batch.delete(key(old, part)));
        }
        writer.write(batch, move |result| {
            result.expect("written");
            // One call, so that a line is written completely or not at all.
            std::io::stdout()
                .write_all(format!("acknowledged {number}\n").as_bytes())
                .expect("the parent reads");
        });
        if number % 5 == 0 {
            writer.flush().expect("flush");
        }
    }
}

#[test]
fn acknowledged_writes_survive_a_kill_completely() {
    let mut random = seeded();
    for backend in backends() {
        let parent = temporary();
        let mut acknowledged = None;
        for kill in 0..3 {
            let mut child = child("crash::child_that_writes_until_it_is_killed", "", parent.path(), backend)
                .spawn()
                .expect("the child starts");
            let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
            let mut lines = lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
            let until = random.random_range(1..300);
            acknowledged = lines.by_ref().take(until).last().or(acknowledged);
            child.kill().expect("kill");
            child.wait().expect("it ends");
            // The lines that the child printed before it died count.
            acknowledged = lines.last().or(acknowledged);
            let last = acknowledged.expect("something was acknowledged");

            let job = JobDirectory::open(parent.path(), backend).expect("it opens without help");
            let found = batches(&*job.store());
            let newest = *found.keys().next_back().expect("something is there");
            assert!(
                newest >= last,
                "{backend}, kill {kill}: {last} was acknowledged, {newest} is the newest"
            );
            let expected: BTreeMap<u64, u64> =
                (newest.saturating_sub(99)..=newest).map(|batch| (batch, parts(batch))).collect();
            assert_eq!(found, expected, "{backend}, kill {kill}: no batch is there in part");
        }
    }
}

#[test]
#[ignore = "the process whose files may not grow, started by another test"]
fn child_that_writes_until_the_disk_is_full() {
    let job = job_of_child();
    let store = job.store();
    let mut random = StdRng::seed_from_u64(1);
    let mut number: u64 = 0;
    let error = loop {
        let mut batch = Batch::new();
        let mut noise = vec![0; 50_000];
        random.fill(&mut noise[..]);
        batch.put(number.to_be_bytes(), noise);
        match store.write(&batch, Durability::Process) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 1000, "it is never full");
    };
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    println!("{error}");
    let mut one = Batch::new();
    one.put("small", "small");
    let again = store.write(&one, Durability::Process).expect_err("no write after a failed one");
    assert_eq!((again.kind(), again.to_string()), (error.kind(), error.to_string()));
    let first = store.get(&0u64.to_be_bytes()).expect("it is still read");
    assert_eq!(first.map(|value| value.len()), Some(50_000));
    println!("acknowledged {number}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_a_readable_store() {
    for backend in backends() {
        let parent = temporary();
        // The system's limit on the size of files simulates a full disk; a few thousand blocks of 512 bytes or 1 KiB.
        let limit = "trap '' XFSZ; ulimit -f 6000;";
        let output = child("crash::child_that_writes_until_the_disk_is_full", limit, parent.path(), backend)
            .output()
            .expect("the child starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{backend}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("the file may not grow further"), "{text}");
        let acknowledged: u64 = text
            .lines()
            .find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
            .expect("the child counts");
        assert!(acknowledged > 5, "{acknowledged}");

        let job = JobDirectory::open(parent.path(), backend).expect("it opens");
        let mut found = 0;
        let visit = &mut |key: &[u8], value: &[u8]| {
            assert_eq!((key, value.len()), (&found_key(found)[..], 50_000));
            found += 1;
            true
        };
        job.store().scan(b"", visit).expect("scan");
        // The failed batch may be stored completely.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} acknowledged, {found} found"
        );
        let mut batch = Batch::new();
        batch.put("more", vec![0; 5_000_000]);
        job.store().write(&batch, Durability::Process).expect("with room, it goes on");
    }
}

fn found_key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A closed job with entries, and those entries.
fn filled(path: &Path, backend: Backend, entries: u32) -> Entries {
    let job = JobDirectory::open(path, backend).expect("a new job");
    let mut batch = Batch::new();
    for number in 0..entries {
        batch.put(format!("key {number:03}"), format!("value {number:03} ").repeat(20));
    }
    job.store().write(&batch, Durability::Process).expect("write");
    let all = all(&*job.store()).expect("scan");
    job.close().expect("close");
    all
}

fn all(store: &dyn Store) -> Result<Entries, StoreError> {
    let mut found = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        true
    };
    store.scan(b"", visit)?;
    Ok(found)
}

/// The largest file of a store.
fn main_file(path: &Path, backend: Backend) -> PathBuf {
    match backend {
        Backend::Sled => path.join("store.sled/db"),
        _ => path.join("store.redb"),
    }
}

#[test]
fn a_flipped_byte_is_an_error_or_was_of_no_meaning() {
    let mut random = seeded();
    // With few entries, much of the file is metadata; with many, there are inner pages of the tree.
    for (backend, entries) in backends().flat_map(|backend| [(backend, 100), (backend, 1000)]) {
        let parent = temporary();
        let original = parent.path().join("original");
        let entries = filled(&original, backend, entries);
        let whole = fs::read(main_file(&original, backend)).expect("read");
        let within_a_value =
            whole.windows(9).position(|bytes| bytes == b"value 042").expect("a value is in the file");
        let mut found = 0;
        for round in 0..60 {
            let at = if round == 0 { within_a_value + 4 } else { random.random_range(0..whole.len()) };
            let copy = parent.path().join(format!("{round}"));
            copy_directory(&original, &copy);
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << random.random_range(0..8);
            fs::write(main_file(&copy, backend), bytes).expect("write");
            let read = JobDirectory::open(&copy, backend).and_then(|job| all(&*job.store()));
            match read {
                Ok(read) => assert!(read == entries, "{backend}: byte {at} changed the entries unseen"),
                Err(error) => {
                    assert!(
                        matches!(error.kind(), StoreErrorKind::Damaged | StoreErrorKind::Format),
                        "{backend}: byte {at}: {error}"
                    );
                    assert!(error.to_string().contains("--fresh"), "it says what to do: {error}");
                    found += 1;
                }
            }
            assert!(round > 0 || found == 1, "{backend}: a byte of a value is found");
        }
    }
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make");
    for entry in fs::read_dir(from).expect("list") {
        let entry = entry.expect("list");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("type").is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copy");
        }
    }
}

#[test]
fn a_byte_that_flips_under_an_open_store_is_found_when_it_is_read() {
    let parent = temporary();
    filled(parent.path(), Backend::Redb, 100);
    let path = parent.path().join("store.redb");
    let store = Arc::new(RedbStore::open(&path, 0).expect("open"));
    let whole = fs::read(&path).expect("read");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("open");
    for (at, _) in whole.windows(9).enumerate().filter(|(_, bytes)| *bytes == b"value 042") {
        file.write_all_at(b"V", at as u64).expect("write");
    }
    let error = store.get(b"key 042").expect_err("it is damaged");
    assert_eq!(error.kind(), StoreErrorKind::Damaged);
    let expected = format!("{}: the entry \"key 042\" is damaged: its checksum is wrong; ", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(store.get(b"key 041").expect("others are read").is_some());
}

#[test]
fn a_snapshot_that_sled_was_writing_when_it_was_killed_is_passed_over() {
    if !Backend::Sled.is_compiled_in() {
        return;
    }
    let parent = temporary();
    let entries = filled(parent.path(), Backend::Sled, 100);
    for content in [&b""[..], b"a part of a snapshot"] {
        let left = parent.path().join("store.sled/snap.FFFFFFFFFFFFFFF0.generating");
        fs::write(&left, content).expect("write");
        let job = JobDirectory::open(parent.path(), Backend::Sled).expect("it opens");
        assert!(!left.exists());
        assert_eq!(all(&*job.store()).expect("scan"), entries);
        job.close().expect("close");
    }
}

#[test]
fn a_truncated_log_of_sled_is_damage() {
    if !Backend::Sled.is_compiled_in() {
        return;
    }
    let parent = temporary();
    filled(parent.path(), Backend::Sled, 100);
    let whole = fs::read(main_file(parent.path(), Backend::Sled)).expect("read");
    let values = whole.windows(9).position(|bytes| bytes == b"value 099").expect("a value is in the file");
    for length in [0, 1, values / 2, values] {
        let copy = parent.path().join(format!("{length}"));
        fs::create_dir(&copy).expect("make");
        fs::copy(parent.path().join("format.json"), copy.join("format.json")).expect("copy");
        copy_directory(&parent.path().join("store.sled"), &copy.join("store.sled"));
        fs::write(main_file(&copy, Backend::Sled), &whole[..length]).expect("write");
        let error = JobDirectory::open(&copy, Backend::Sled).expect_err("it does not open");
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "cut to {length}: {error}");
    }
}
