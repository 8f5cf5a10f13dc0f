//! Killed processes lose no documents whose insertion had returned.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::near::{DiskIndex, Document, NearIndex};
use tempfile::tempdir;

use super::{Hashes, all, document, identity};

const DIRECTORY: &str = "NEAR_TEST_DIRECTORY";
const BATCHES: &str = "NEAR_TEST_BATCHES";

fn batch(number: u64) -> Vec<Document> {
    let mut hashes = Hashes::new(number, false);
    (0..1 + number % 50)
        .map(|n| document(["hi", "ta"][n as usize % 2], number * 100 + n, hashes.next()))
        .collect()
}

/// Not a test by itself: the process that the test below kills.
#[test]
fn writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let first: u64 = std::env::var(BATCHES).expect("a number").parse().expect("a number");
    let index = DiskIndex::open(directory, identity(3)).expect("open");
    for number in first.. {
        index.insert(&batch(number)).expect("insert");
        if number % 64 == 63 {
            index.compact().expect("compact");
        }
        println!("\ninserted {number}");
        std::io::stdout().flush().expect("flush");
    }
}

#[test]
fn a_killed_process_loses_no_batch_that_it_inserted() {
    let directory = tempdir().expect("a directory");
    let mut inserted = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "near::tests::kill::writes_until_it_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DIRECTORY, directory.path())
            .env(BATCHES, inserted.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let enough = inserted + 20 + round * 23;
        for line in output.lines() {
            let line = line.expect("a line");
            if let Some(number) = line.strip_prefix("inserted ") {
                inserted = number.parse::<u64>().expect("a number") + 1;
                if inserted == enough {
                    // The kill hits some moment of what follows.
                    std::thread::sleep(Duration::from_micros(137 * round));
                    child.kill().expect("kill");
                }
            }
        }
        child.wait().expect("wait");
        assert!(inserted >= enough, "round {round}: it was killed and did not end by itself");
        let index = DiskIndex::open(directory.path(), identity(3)).expect("open");
        let found = all(&index);
        for document in (0..inserted).flat_map(batch) {
            let hash = found.get(&(document.language, document.id.clone()));
            assert_eq!(hash, Some(&document.hash), "round {round}: {document:?}");
        }
        // The batch that was being inserted exists completely or not at all.
        let next = batch(inserted);
        let there =
            next.iter().filter(|document| found.contains_key(&(document.language, document.id.clone())));
        assert!([0, next.len()].contains(&there.count()), "round {round}");
    }
}
