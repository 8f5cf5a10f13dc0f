//! Tests with logs that are cut off or changed: every loss is reported.

use std::fs;
use std::path::{Path, PathBuf};

use crate::near::{DiskIndex, DocId, Document, IndexErrorKind, NearIndex};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use tempfile::{TempDir, tempdir};

use super::disk::logs;
use super::{Hashes, Model, add, all, document, identity, language};

/// An index of some batches: its directory, its log, and its documents after each batch with the length of the log.
struct Written {
    directory: TempDir,
    log: PathBuf,
    bytes: Vec<u8>,
    states: Vec<(u64, Model)>,
}

fn written(batches: u64, seed: u64) -> Written {
    let directory = tempdir().expect("a directory");
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    let log = logs(directory.path()).remove(0);
    let len = || fs::metadata(&log).expect("a file").len();
    let (mut hashes, mut model) = (Hashes::new(seed, false), Model::new());
    let mut states = vec![(len(), model.clone())];
    for batch in 0..batches {
        let id = |n: u64| if n % 4 == 1 { DocId::from(format!("id {n}")) } else { n.into() };
        let count = 1 + hashes.below(6);
        let documents: Vec<Document> = (batch * 3..batch * 3 + count)
            .map(|n| document(["hi", "ta"][n as usize % 2], id(n), hashes.next()))
            .collect();
        index.insert(&documents).expect("insert");
        add(&documents, &mut model);
        if batch % 5 == 4 {
            states.push((len(), model.clone()));
            index.remove(&language("hi"), &[(batch * 3).into()]).expect("remove");
            model.remove(&(language("hi"), (batch * 3).into()));
        }
        states.push((len(), model.clone()));
    }
    drop(index);
    let bytes = fs::read(&log).expect("a file");
    Written { directory, log, bytes, states }
}

impl Written {
    fn open(&self) -> Result<DiskIndex, crate::near::IndexError> {
        DiskIndex::open(self.directory.path(), identity(3))
    }

    /// The documents at the time when the log had at most this many bytes.
    fn state_at(&self, bytes: u64) -> &Model {
        let state = self.states.iter().rev().find(|(len, _)| *len <= bytes);
        &state.expect("the log begins before").1
    }
}

#[test]
fn a_record_that_was_not_written_to_its_end_is_dropped_and_nothing_before_it() {
    let written = written(11, 0x5eed_0701);
    let (start, _) = written.states[0];
    for len in start..written.bytes.len() as u64 {
        fs::write(&written.log, &written.bytes[..len as usize]).expect("write");
        let index = written.open().unwrap_or_else(|error| panic!("cut at {len}: {error}"));
        let whole = written.states.iter().rev().map(|(whole, _)| *whole).find(|whole| *whole <= len);
        assert_eq!(index.torn_bytes(), len - whole.expect("the log begins before"));
        let state = all(&index);
        assert!(state == *written.state_at(len), "cut at {len}");
        // The opened index accepts further documents.
        index.insert(&[document("hi", "new", 77)]).expect("insert");
        drop(index);
        let index = written.open().unwrap_or_else(|error| panic!("cut at {len} and written on: {error}"));
        assert_eq!((index.torn_bytes(), all(&index).len()), (0, state.len() + 1), "cut at {len}");
    }
}

#[test]
fn zeros_at_the_end_are_no_records() {
    let written = written(5, 0x5eed_0702);
    for zeros in [1, 31, 32, 4096] {
        fs::write(&written.log, [&written.bytes[..], &vec![0; zeros]].concat()).expect("write");
        let index = written.open().expect("open");
        assert_eq!(index.torn_bytes(), zeros as u64);
        assert!(all(&index) == written.states.last().expect("a state").1);
    }
}

#[test]
fn damage_anywhere_is_an_error_with_file_and_byte() {
    let written = written(12, 0x5eed_0703);
    let (start, _) = written.states[0];
    for at in start..written.bytes.len() as u64 {
        let mut bytes = written.bytes.clone();
        bytes[at as usize] ^= 1 << (at % 8);
        fs::write(&written.log, &bytes).expect("write");
        let error = written.open().map(|_| ()).expect_err("a byte is wrong");
        assert_eq!(error.kind(), IndexErrorKind::Damaged, "byte {at}");
        let message = error.to_string();
        let place = written.log.display().to_string();
        let named: u64 = message
            .strip_prefix(&format!("{place}: damaged at byte "))
            .and_then(|rest| rest.split(':').next()?.parse().ok())
            .unwrap_or_else(|| panic!("it names file and byte: {message}"));
        assert!(named <= at, "byte {at}: {message}");
        let advice = format!("huntsman dedup repair --index {}`", written.directory.path().display());
        assert!(message.contains("restore") && message.contains(&advice), "{message}");
    }
    assert_eq!(fs::read(&written.log).expect("a file").len(), written.bytes.len(), "nothing is cut off");
}

#[test]
fn a_log_that_does_not_begin_as_one_is_damaged() {
    let written = written(3, 0x5eed_0704);
    for at in 0..32 {
        let mut bytes = written.bytes.clone();
        bytes[at] ^= 0x10;
        fs::write(&written.log, &bytes).expect("write");
        let error = written.open().map(|_| ()).expect_err("a byte is wrong");
        assert_eq!(error.kind(), IndexErrorKind::Damaged, "byte {at}: {error}");
        assert!(repair(written.directory.path()) > 0);
        assert!(all(&written.open().expect("repaired")) == written.states.last().expect("a state").1);
    }
    for len in 0..32 {
        fs::write(&written.log, &written.bytes[..len]).expect("write");
        assert_eq!(
            written.open().map(|_| ()).expect_err("it is cut").kind(),
            IndexErrorKind::Damaged,
            "{len}"
        );
    }
}

#[test]
fn repairing_keeps_all_that_is_whole() {
    let written = written(12, 0x5eed_0705);
    let all_ids: Vec<DocId> =
        written.states.last().expect("a state").1.keys().map(|key| key.1.clone()).collect();
    for frame in 1..written.states.len() - 1 {
        let (at, end) = (written.states[frame].0, written.states[frame + 1].0);
        if at == end {
            // The bytes to be removed were not there.
            continue;
        }
        let mut bytes = written.bytes.clone();
        bytes[at as usize + 30] ^= 0xff;
        fs::write(&written.log, &bytes).expect("write");
        let check = DiskIndex::verify(written.directory.path()).expect("verify");
        assert!(!check.is_whole(), "frame {frame}: {check:?}");
        let lost = repair(written.directory.path());
        assert!(0 < lost && lost <= end - at, "{lost} bytes of frame {frame}");
        let kept = written.log.with_added_extension("damaged");
        assert_eq!(fs::read(&kept).expect("the damaged log is kept"), bytes);
        let index = written.open().expect("it is repaired");
        let (found, expected) = (all(&index), &written.states.last().expect("a state").1);
        let missing = expected.iter().filter(|(key, _)| !found.contains_key(key)).count();
        assert!(missing <= 6 && all_ids.len() > 12, "{missing} are missing without frame {frame}");
        index.insert(&[document("hi", "new", 77)]).expect("insert");
        drop(index);
        assert_eq!(all(&written.open().expect("open")).len(), found.len() + 1);
        let check = DiskIndex::verify(written.directory.path()).expect("verify");
        assert!(check.is_whole() && check.damage.is_empty(), "{check:?}");
        assert_eq!(check.documents, found.len() as u64 + 1);
        assert_eq!(repair(written.directory.path()), 0);
    }
}

/// The number of bytes that a repair reports as lost.
fn repair(directory: &Path) -> u64 {
    let lost = DiskIndex::repair(directory, identity(3)).expect("repair");
    lost.iter().map(|damage| damage.bytes).sum()
}

#[test]
fn what_a_loss_of_power_leaves_of_a_write_that_was_not_synced_is_dropped() {
    let written = written(11, 0x5eed_0707);
    let last = written.states[written.states.len() - 2].0 as usize;
    let header = last + 32;
    let mut long = written.bytes.clone();
    for torn in [last..long.len(), header..long.len()] {
        long.copy_from_slice(&written.bytes);
        long[torn.clone()].fill(0);
        fs::write(&written.log, &long).expect("write");
        let index = written.open().unwrap_or_else(|error| panic!("zeros in {torn:?}: {error}"));
        assert!(all(&index) == *written.state_at(last as u64), "zeros in {torn:?}");
    }
}

#[test]
fn zeros_in_what_was_synced_are_damage_also_at_the_end() {
    let written = written(11, 0x5eed_0708);
    let index = written.open().expect("open");
    let before = fs::metadata(&written.log).expect("a file").len();
    index.flush().expect("flush");
    index.flush().expect("flush");
    drop(index);
    let marked = fs::read(&written.log).expect("a file");
    assert_eq!(marked.len() as u64, before + 32, "one note for what was synced");
    let index = written.open().expect("the note is no record");
    assert!(index.torn_bytes() == 0 && all(&index) == written.states.last().expect("a state").1);
    index.flush().expect("flush");
    drop(index);
    assert_eq!(fs::read(&written.log).expect("a file"), marked, "it is noted already");
    let last = written.states[written.states.len() - 2].0 as usize;
    let mut zeros = marked.clone();
    zeros[last..before as usize].fill(0);
    fs::write(&written.log, &zeros).expect("write");
    let error = written.open().map(|_| ()).expect_err("it was synced");
    assert_eq!(error.kind(), IndexErrorKind::Damaged);
    let check = DiskIndex::verify(written.directory.path()).expect("verify");
    assert_eq!((check.is_whole(), check.damage.len()), (false, 1), "{check:?}");
    assert_eq!((check.damage[0].at, check.damage[0].bytes), (last as u64, before - last as u64));
}

#[test]
fn verifying_an_index_changes_nothing_and_reports_damage() {
    let written = written(11, 0x5eed_0709);
    let directory = written.directory.path();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("a name").path())
            .collect();
        names.sort();
        names.into_iter().map(|path| (fs::read(&path).expect("a file"), path)).collect::<Vec<_>>()
    };
    let before = names();
    let check = DiskIndex::verify(directory).expect("verify");
    assert!(check.is_whole() && check.damage.is_empty(), "{check:?}");
    assert_eq!(check.documents, written.states.last().expect("a state").1.len() as u64);
    assert_eq!((check.identity, check.files), (Some(identity(3)), 1));
    assert_eq!(names(), before);
    // A write that was cut off is reported, but is not damage.
    fs::write(&written.log, &written.bytes[..written.bytes.len() - 1]).expect("write");
    let check = DiskIndex::verify(directory).expect("verify");
    assert!(check.is_whole() && check.damage.len() == 1 && check.damage[0].is_torn, "{check:?}");
    fs::remove_file(directory.join("index.txt")).expect("remove");
    assert!(!DiskIndex::verify(directory).expect("verify").is_whole());
    let _index = {
        DiskIndex::repair(directory, identity(3)).expect("repair");
        written.open().expect("open")
    };
    assert_eq!(DiskIndex::verify(directory).expect_err("it is in use").kind(), IndexErrorKind::Locked);
    let empty = tempdir().expect("a directory");
    for missing in [empty.path().to_owned(), empty.path().join("no")] {
        assert_eq!(DiskIndex::verify(&missing).expect_err("there is none").kind(), IndexErrorKind::Format);
        assert_eq!(
            DiskIndex::repair(&missing, identity(3)).expect_err("none").kind(),
            IndexErrorKind::Format
        );
    }
    assert_eq!(fs::read_dir(empty.path()).expect("a directory").count(), 0, "nothing is made");
}

#[test]
fn what_is_no_index_is_not_repaired() {
    let directory = tempdir().expect("a directory");
    let error = DiskIndex::repair(directory.path(), identity(3)).expect_err("there is none");
    assert_eq!(error.kind(), IndexErrorKind::Format);
}

#[test]
fn whatever_happens_to_a_log_nothing_is_made_up() {
    // Bytes are changed, cut out, inserted or swapped. If the index opens, it has everything that was written up to some moment.
    let seed = 0x5eed_0706;
    println!("seed {seed:#x}");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    let written = written(15, seed);
    let (mut opened, mut refused) = (0, 0);
    for round in 0..500 {
        let mut bytes = written.bytes.clone();
        for _ in 0..=below(3) {
            let (from, to) = (below(bytes.len()), below(bytes.len()));
            match below(6) {
                0 => bytes[from] = bytes[from].wrapping_add(1 + below(255) as u8),
                1 => bytes.truncate(from),
                2 => drop(bytes.drain(from.min(to)..from.max(to))),
                3 => {
                    let piece: Vec<u8> = bytes[from.min(to)..from.max(to)].to_vec();
                    bytes.splice(to..to, piece);
                }
                4 => (0..below(200)).for_each(|_| bytes.push(below(256) as u8)),
                _ => bytes[from.min(to)..from.max(to)].reverse(),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        fs::write(&written.log, &bytes).expect("write");
        match written.open() {
            Ok(index) => {
                let found = all(&index);
                assert!(written.states.iter().any(|(_, state)| found == *state), "round {round}");
                opened += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), IndexErrorKind::Damaged, "round {round}: {error}");
                refused += 1;
                DiskIndex::repair(written.directory.path(), identity(3)).expect("repair");
                written.open().unwrap_or_else(|error| panic!("round {round}: it is repaired: {error}"));
                remove_copies(written.directory.path());
            }
        }
    }
    assert!(opened > 30 && refused > 30, "{opened} opened, {refused} refused");
}

fn remove_copies(directory: &Path) {
    let copies = logs(directory).into_iter().filter(|path| path.extension().is_some());
    copies.for_each(|path| fs::remove_file(path).expect("remove"));
}
