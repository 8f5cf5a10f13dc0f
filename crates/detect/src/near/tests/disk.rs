//! Tests of the files of an index.

use std::fs;
use std::path::{Path, PathBuf};

use crate::near::{DiskIndex, DocId, Document, IndexErrorKind, NearIndex};
use tempfile::tempdir;

use super::{Hashes, Model, add, all, check_index, document, identity, insert, language};

fn documents(count: u64, first: u64, hashes: &mut Hashes) -> Vec<Document> {
    let id = |n: u64| if n % 10 == 3 { DocId::from(format!("id {n}")) } else { n.into() };
    (first..first + count).map(|n| document(["hi", "ta"][n as usize % 2], id(n), hashes.next())).collect()
}

pub(crate) fn logs(directory: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut logs: Vec<PathBuf> = names
        .filter(|path| path.file_name().expect("a name").to_string_lossy().starts_with("log-"))
        .collect();
    logs.sort();
    logs
}

fn log_bytes(directory: &Path) -> u64 {
    logs(directory).iter().map(|path| fs::metadata(path).expect("a file").len()).sum()
}

#[test]
fn many_documents_are_there_after_reopening() {
    let directory = tempdir().expect("a directory");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0601, false), Model::new());
    let built = documents(5000, 0, &mut hashes);
    add(&built, &mut model);
    let index = DiskIndex::build(directory.path(), identity(3), built).expect("build");
    check_index(&index, &model, 97, "built");
    insert(&index, &documents(3000, 4000, &mut hashes), &mut model);
    check_index(&index, &model, 97, "inserted");
    drop(index);
    let more = documents(2000, 9000, &mut hashes);
    add(&more, &mut model);
    // Building adds to the existing documents.
    drop(DiskIndex::build(directory.path(), identity(3), more).expect("build"));
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    assert_eq!(index.torn_bytes(), 0);
    check_index(&index, &model, 97, "opened");
}

#[test]
fn only_one_may_use_an_index_at_a_time() {
    let directory = tempdir().expect("a directory");
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    index.insert(&[document("hi", 1, 5)]).expect("insert");
    for _ in 0..2 {
        let error = DiskIndex::open(directory.path(), identity(3)).expect_err("it is in use");
        assert_eq!(error.kind(), IndexErrorKind::Locked);
        assert!(error.to_string().contains(&format!("(number {})", std::process::id())), "{error}");
    }
    let error = DiskIndex::repair(directory.path(), identity(3)).expect_err("it is in use");
    assert_eq!(error.kind(), IndexErrorKind::Locked);
    assert_eq!(DiskIndex::identity_of(directory.path()).expect("it can be told"), Some(identity(3)));
    drop(index);
    assert_eq!(all(&DiskIndex::open(directory.path(), identity(3)).expect("it is free")).len(), 1);
}

#[test]
fn an_identity_is_for_good() {
    let directory = tempdir().expect("a directory");
    assert_eq!(DiskIndex::identity_of(directory.path()).expect("none"), None);
    drop(DiskIndex::open(directory.path(), identity(7)).expect("open"));
    let text = fs::read_to_string(directory.path().join("index.txt")).expect("a file");
    assert_eq!(text, "near-duplicate index\nformat 1\nk 7\nfeatures words-log\n");
    let error = DiskIndex::open(directory.path(), identity(3)).expect_err("another k");
    assert_eq!(error.kind(), IndexErrorKind::Identity);
    assert!(error.to_string().starts_with(&directory.path().display().to_string()), "{error}");
}

#[test]
fn a_newer_format_is_named_and_left_alone() {
    let directory = tempdir().expect("a directory");
    drop(DiskIndex::open(directory.path(), identity(3)).expect("open"));
    let path = directory.path().join("index.txt");
    let text = fs::read_to_string(&path).expect("a file").replace("format 1", "format 2");
    fs::write(&path, text).expect("write");
    for error in [
        DiskIndex::open(directory.path(), identity(3)).map(|_| ()).expect_err("it is newer"),
        DiskIndex::identity_of(directory.path()).map(|_| ()).expect_err("it is newer"),
        DiskIndex::repair(directory.path(), identity(3)).map(|_| ()).expect_err("it is newer"),
    ] {
        assert_eq!(error.kind(), IndexErrorKind::Format);
        assert!(error.to_string().contains("format 2"), "{error}");
    }
}

#[test]
fn an_index_is_never_silently_begun_anew() {
    let directory = tempdir().expect("a directory");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0602, false), Model::new());
    insert(
        &DiskIndex::open(directory.path(), identity(3)).expect("open"),
        &documents(500, 0, &mut hashes),
        &mut model,
    );
    let identity_file = directory.path().join("index.txt");
    let text = fs::read(&identity_file).expect("a file");
    let refused = |what: &str| {
        let error = DiskIndex::open(directory.path(), identity(3)).map(|_| ()).expect_err(what);
        assert_eq!(error.kind(), IndexErrorKind::Damaged, "{what}: {error}");
        assert!(error.to_string().contains("restore"), "{what}: {error}");
    };
    fs::remove_file(&identity_file).expect("remove");
    refused("no identity");
    for wrong in [
        &b""[..],
        b"near-duplicate index\n",
        b"\xff\xfe",
        b"near-duplicate index\nformat 1\nk 9\nfeatures words-log\n",
    ] {
        fs::write(&identity_file, wrong).expect("write");
        refused("a wrong identity");
    }
    // A repair sets the identity.
    assert_eq!(DiskIndex::repair(directory.path(), identity(3)).expect("repair"), []);
    assert_eq!(fs::read(&identity_file).expect("a file"), text);
    check_index(&DiskIndex::open(directory.path(), identity(3)).expect("open"), &model, 7, "repaired");
    let log = logs(directory.path()).remove(0);
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&log, &elsewhere).expect("rename");
    refused("no log");
    fs::rename(&elsewhere, &log).expect("rename");
    check_index(&DiskIndex::open(directory.path(), identity(3)).expect("open"), &model, 7, "all is there");
}

#[test]
fn an_index_whose_first_records_are_damaged_and_whose_identity_is_lost_is_not_begun_anew() {
    let directory = tempdir().expect("a directory");
    let mut hashes = Hashes::new(0x5eed_0603, false);
    drop(DiskIndex::build(directory.path(), identity(3), documents(500, 0, &mut hashes)).expect("build"));
    let log = logs(directory.path()).remove(0);
    let mut bytes = fs::read(&log).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, &bytes).expect("write");
    fs::remove_file(directory.path().join("index.txt")).expect("remove");
    let error = DiskIndex::open(directory.path(), identity(3)).map(|_| ()).expect_err("it is damaged");
    assert_eq!(error.kind(), IndexErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains("restore"), "{error}");
    assert_eq!(fs::read(&log).expect("a file"), bytes, "left as it is");
}

#[cfg(unix)]
#[test]
fn an_index_is_for_its_owner_only_and_planted_links_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let parent = tempdir().expect("a directory");
    let path = parent.path().join("deep/index");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0604, false), Model::new());
    let index = DiskIndex::open(&path, identity(3)).expect("open");
    insert(&index, &documents(2_000, 0, &mut hashes), &mut model);
    index.compact().expect("compact");
    drop(index);
    let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&parent.path().join("deep")), mode(&path)), (0o700, 0o700));
    for entry in fs::read_dir(&path).expect("a directory") {
        let file = entry.expect("an entry").path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let target = parent.path().join("precious");
    for name in ["lock".to_owned(), logs(&path).remove(0).file_name().expect("a name").display().to_string()]
    {
        fs::rename(path.join(&name), &target).expect("rename");
        let before = fs::read(&target).expect("a file");
        symlink(&target, path.join(&name)).expect("link");
        let error = DiskIndex::open(&path, identity(3)).map(|_| ()).expect_err("it is a link").to_string();
        assert!(error.contains("symbolic link") && error.contains(&name), "{error}");
        assert_eq!(fs::read(&target).expect("a file"), before);
        fs::rename(&target, path.join(&name)).expect("rename");
    }
    check_index(&DiskIndex::open(&path, identity(3)).expect("open"), &model, 7, "as before");
}

#[test]
fn an_index_whose_creation_was_killed_is_made_again() {
    let directory = tempdir().expect("a directory");
    drop(DiskIndex::open(directory.path(), identity(3)).expect("open"));
    fs::remove_file(directory.path().join("index.txt")).expect("remove");
    fs::write(directory.path().join("index.txt.new"), "near-dup").expect("write");
    fs::write(directory.path().join("log-0000000001.new"), "HNTS").expect("write");
    let index = DiskIndex::open(directory.path(), identity(7)).expect("open");
    index.insert(&[document("hi", 1, 5)]).expect("insert");
    assert_eq!(all(&index).len(), 1);
}

#[test]
fn a_log_is_made_anew_without_what_does_not_count() {
    let directory = tempdir().expect("a directory");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0603, false), Model::new());
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    for _ in 0..10 {
        insert(&index, &documents(2000, 0, &mut hashes), &mut model);
    }
    index.remove(&language("hi"), &[2.into(), 4.into()]).expect("remove");
    model.remove(&(language("hi"), 2.into()));
    model.remove(&(language("hi"), 4.into()));
    let before = log_bytes(directory.path());
    assert_eq!(index.stats().expect("stats").bytes["log"], before);
    index.compact().expect("compact");
    let after = log_bytes(directory.path());
    assert!(after * 5 < before, "{before} bytes, then {after}");
    assert_eq!(index.stats().expect("stats").bytes["log"], after);
    check_index(&index, &model, 97, "compacted");
    insert(&index, &documents(100, 1950, &mut hashes), &mut model);
    drop(index);
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    check_index(&index, &model, 97, "compacted and opened");
    index.compact().expect("compact");
    index.compact().expect("compact");
    drop(index);
    check_index(
        &DiskIndex::open(directory.path(), identity(3)).expect("open"),
        &model,
        97,
        "compacted again and opened",
    );
}

#[test]
fn a_log_is_made_anew_while_others_insert() {
    let directory = tempdir().expect("a directory");
    let mut model = Model::new();
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    std::thread::scope(|scope| {
        let inserting = scope.spawn(|| {
            let (mut hashes, mut model) = (Hashes::new(0x5eed_0604, false), Model::new());
            for round in 0..200 {
                insert(&index, &documents(50, round * 20, &mut hashes), &mut model);
                let gone = [DocId::from(round * 20 + 4)];
                index.remove(&language("hi"), &gone).expect("remove");
                model.remove(&(language("hi"), gone[0].clone()));
            }
            model
        });
        while !inserting.is_finished() {
            index.compact().expect("compact");
        }
        model.extend(inserting.join().expect("who inserts"));
    });
    check_index(&index, &model, 97, "compacted");
    drop(index);
    check_index(&DiskIndex::open(directory.path(), identity(3)).expect("open"), &model, 97, "opened");
}

#[test]
fn a_log_that_is_made_anew_counts_from_the_moment_it_is_whole() {
    // The states that a process leaves if it dies during compaction: the files from before and after each step, combined.
    let directory = tempdir().expect("a directory");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0605, false), Model::new());
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    for round in 0..3 {
        insert(&index, &documents(300, round * 100, &mut hashes), &mut model);
    }
    let read = || {
        logs(directory.path())
            .into_iter()
            .map(|path| (path.clone(), fs::read(path).expect("a file")))
            .collect()
    };
    let before: Vec<(PathBuf, Vec<u8>)> = read();
    index.compact().expect("compact");
    insert(&index, &documents(10, 5000, &mut hashes), &mut model);
    let after: Vec<(PathBuf, Vec<u8>)> = read();
    drop(index);
    assert_eq!((before.len(), after.len()), (1, 2), "the base, and what grows");
    let check_index = |files: &[&(PathBuf, Vec<u8>)], what: &str| {
        logs(directory.path()).into_iter().for_each(|path| fs::remove_file(path).expect("remove"));
        files.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("write"));
        check_index(&DiskIndex::open(directory.path(), identity(3)).expect(what), &model, 31, what);
    };
    check_index(&[&before[0], &after[1]], "the new segment is there, the base is not");
    check_index(&[&after[0], &after[1]], "both are there");
    let unfinished = (directory.path().join("log-0000000001.new"), after[0].1[..100].to_vec());
    check_index(&[&before[0], &after[1], &unfinished], "the base is not written to its end");
    check_index(&[&after[0], &after[1]], "both are there again");
}

#[test]
fn a_wasteful_log_is_made_anew_when_it_is_opened() {
    let directory = tempdir().expect("a directory");
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    let (mut hashes, mut model) = (Hashes::new(0x5eed_0606, false), Model::new());
    for _ in 0..11 {
        let batch: Vec<Document> = (0..1000).map(|n| document("hi", n, hashes.next())).collect();
        index.insert(&batch).expect("insert");
        model = batch.into_iter().map(|document| ((document.language, document.id), document.hash)).collect();
    }
    drop(index);
    let before = log_bytes(directory.path());
    // In tests, 11,000 records for 1000 documents are not yet too many, 13,000 are; otherwise the limit is a hundred times as high.
    drop(DiskIndex::open(directory.path(), identity(3)).expect("open"));
    assert_eq!(log_bytes(directory.path()), before);
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    for _ in 0..2 {
        let batch: Vec<Document> = (0..1000).map(|n| document("hi", n, hashes.next())).collect();
        index.insert(&batch).expect("insert");
        model = batch.into_iter().map(|document| ((document.language, document.id), document.hash)).collect();
    }
    drop(index);
    let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
    assert!(log_bytes(directory.path()) < 1000 * 25 + 1000, "{}", log_bytes(directory.path()));
    assert!(all(&index) == model);
}
