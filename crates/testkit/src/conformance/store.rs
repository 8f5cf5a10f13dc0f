//! What every [`Store`] promises.
//!
//! Each function tests one promise and takes a factory that opens a new or an existing store in a directory;
//! [`store_conformance!`](crate::store_conformance) makes a test of each. The promises that only persistent stores
//! make are separate: [`what_was_written_is_there_after_reopening`] and reopening between random steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use huntsman_store::{Batch, Durability, Store};

use crate::sites::Random;

/// Makes one test of each promise, in a module of its own, for a factory `Fn(&Path) -> Arc<dyn Store>`. With
/// `on_disk` as the last argument, the promises of persistent stores are tested as well.
///
/// ```
/// # use std::path::Path;
/// # use std::sync::Arc;
/// # use huntsman_store::{MemoryStore, Store};
/// fn open(_: &Path) -> Arc<dyn Store> {
///     Arc::new(MemoryStore::new())
/// }
///
/// huntsman_testkit::store_conformance!(memory, open);
/// ```
#[macro_export]
macro_rules! store_conformance {
    ($name:ident, $open:expr) => {
        $crate::store_conformance!(@ $name, $open, false,
            a_store_begins_empty what_was_put_is_read_and_what_was_deleted_is_not later_steps_win
            any_bytes_are_a_key any_bytes_are_a_value scans_go_by_the_order_of_bytes a_prefix_finds_its_own_and_nothing_else
            a_scan_ends_when_its_callback_says_so a_scan_sees_one_state_while_it_writes_itself
            a_scan_never_sees_half_a_batch_of_another_thread racing_writers_lose_nothing compacting_loses_nothing
        );
    };
    ($name:ident, $open:expr, on_disk) => {
        $crate::store_conformance!(@ $name, $open, true,
            a_store_begins_empty what_was_put_is_read_and_what_was_deleted_is_not later_steps_win
            any_bytes_are_a_key any_bytes_are_a_value scans_go_by_the_order_of_bytes a_prefix_finds_its_own_and_nothing_else
            a_scan_ends_when_its_callback_says_so a_scan_sees_one_state_while_it_writes_itself
            a_scan_never_sees_half_a_batch_of_another_thread racing_writers_lose_nothing compacting_loses_nothing
            what_was_written_is_there_after_reopening
        );
    };
    (@ $name:ident, $open:expr, $on_disk:expr, $($promise:ident)+) => {
        mod $name {
            use super::*;

            $(
                #[test]
                fn $promise() {
                    let directory = $crate::conformance::store::directory();
                    $crate::conformance::store::$promise(&|| $open(directory.path()));
                }
            )+

            #[test]
            fn random_steps_equal_a_naive_model() {
                for seed in 0..5 {
                    let directory = $crate::conformance::store::directory();
                    let open = || $open(directory.path());
                    $crate::conformance::store::random_steps_equal_a_naive_model(&open, seed, $on_disk);
                }
            }
        }
    };
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory for one store, removed when it is dropped.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn write(store: &dyn Store, batch: &Batch) {
    store.write(batch, Durability::Process).expect("write");
}

fn put(store: &dyn Store, key: &[u8], value: &[u8]) {
    let mut batch = Batch::new();
    batch.put(key, value);
    write(store, &batch);
}

fn get(store: &dyn Store, key: &[u8]) -> Option<Vec<u8>> {
    store.get(key).expect("get")
}

/// The entries that a scan visits, in its order.
fn scan(store: &dyn Store, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        true
    };
    store.scan(prefix, visit).expect("scan");
    found
}

fn keys(store: &dyn Store, prefix: &[u8]) -> Vec<Vec<u8>> {
    scan(store, prefix).into_iter().map(|(key, _)| key).collect()
}

/// The store in an empty directory is empty, and an empty batch changes nothing.
pub fn a_store_begins_empty(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    write(&*store, &Batch::new());
    assert_eq!(get(&*store, b""), None);
    assert_eq!(get(&*store, b"key"), None);
    assert_eq!(scan(&*store, b""), []);
}

/// Written values are read, deleted keys are gone, and deleting a key that does not exist is no error.
pub fn what_was_put_is_read_and_what_was_deleted_is_not(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut batch = Batch::new();
    batch.put("a", "1");
    batch.put("b", "2");
    batch.delete("never there");
    store.write(&batch, Durability::Full).expect("write");
    assert_eq!(get(&*store, b"a").as_deref(), Some(&b"1"[..]));
    assert_eq!(get(&*store, b"b").as_deref(), Some(&b"2"[..]));
    let mut batch = Batch::new();
    batch.delete("a");
    write(&*store, &batch);
    assert_eq!(get(&*store, b"a"), None);
    assert_eq!(keys(&*store, b""), [b"b"]);
}

/// If two steps write one key, the later one wins, within one batch and over several.
pub fn later_steps_win(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    put(&*store, b"replaced", b"old and longer than the new one");
    put(&*store, b"put again", b"old");
    let mut batch = Batch::new();
    batch.put("twice", "first");
    batch.put("twice", "second");
    batch.put("gone", "first");
    batch.delete("gone");
    batch.delete("put again");
    batch.put("put again", "new");
    batch.put("replaced", "new");
    let mut behind = Batch::new();
    behind.put("appended", "behind");
    let mut before = Batch::new();
    before.put("appended", "before");
    batch.append(before);
    batch.append(behind);
    write(&*store, &batch);
    let found = scan(&*store, b"");
    let found: Vec<(&[u8], &[u8])> = found.iter().map(|(key, value)| (&**key, &**value)).collect();
    let expected: [(&[u8], &[u8]); 4] =
        [(b"appended", b"behind"), (b"put again", b"new"), (b"replaced", b"new"), (b"twice", b"second")];
    assert_eq!(found, expected);
}

/// Keys may be empty, contain zeros or bytes that are no text, begin with other keys, and have 64 KiB.
pub fn any_bytes_are_a_key(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let long = vec![b'k'; 64 << 10];
    let longer_by_one = [&long[1..], b"l"].concat();
    let all: [&[u8]; 10] =
        [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"ab", b"\xff", b"\xff\xff\xff", b"\xc3("];
    for (number, key) in all.iter().copied().chain([&*long, &*longer_by_one]).enumerate() {
        put(&*store, key, format!("value {number}").as_bytes());
    }
    for (number, key) in all.iter().copied().chain([&*long, &*longer_by_one]).enumerate() {
        let value = get(&*store, key);
        assert_eq!(value.as_deref(), Some(format!("value {number}").as_bytes()), "key {number}");
    }
    assert_eq!(keys(&*store, b"").len(), 12);
}

/// Values may be empty, have a mebibyte, and contain every byte.
pub fn any_bytes_are_a_value(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut random = Random::new(7);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let every: Vec<u8> = (0..=255).collect();
    let values: [&[u8]; 4] = [b"", b"\0", &every, &noise];
    let mut batch = Batch::new();
    for (number, value) in values.iter().enumerate() {
        batch.put([number as u8], *value);
    }
    write(&*store, &batch);
    for (number, value) in values.iter().enumerate() {
        assert!(get(&*store, &[number as u8]).as_deref() == Some(*value), "value {number}");
    }
    assert!(scan(&*store, b"").iter().map(|(_, value)| &**value).eq(values), "scanned");
    put(&*store, &[3], b"");
    assert_eq!(get(&*store, &[3]).as_deref(), Some(&b""[..]), "a large value was replaced by an empty one");
}

/// Keys are sorted as unsigned bytes, shorter ones before longer ones, whatever the order of writing.
pub fn scans_go_by_the_order_of_bytes(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let sorted: Vec<Vec<u8>> = [
        &b""[..],
        b"\0",
        b"\0\xff",
        b"\x01",
        b"A",
        b"Z",
        b"a",
        b"aa",
        b"ab",
        b"b",
        b"\x7f",
        b"\x80",
        b"\xff",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    for at in [7, 2, 12, 0, 5, 1, 11, 3, 10, 4, 9, 6, 8] {
        put(&*store, &sorted[at], b"");
    }
    assert_eq!(keys(&*store, b""), sorted);
    // This is more than fits on one page of any backend.
    let mut batch = Batch::new();
    for number in (0..5000u32).rev() {
        batch.put([b"n".as_slice(), &number.to_be_bytes()].concat(), [0; 100]);
    }
    write(&*store, &batch);
    let numbers: Vec<u32> = keys(&*store, b"n")
        .iter()
        .map(|key| u32::from_be_bytes(key[1..].try_into().expect("four bytes")))
        .collect();
    assert!(numbers.iter().copied().eq(0..5000), "{} are found", numbers.len());
}

/// A scan of a prefix finds all keys with that prefix and no neighbour, even if the prefix ends in the highest byte.
pub fn a_prefix_finds_its_own_and_nothing_else(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    let mut all: Vec<Vec<u8>> = Vec::new();
    let bytes = [0x00, b'a', 0xfe, 0xff];
    for first in bytes {
        all.push(vec![first]);
        for second in bytes {
            all.push(vec![first, second]);
            all.extend(bytes.map(|third| vec![first, second, third]));
        }
    }
    all.push(Vec::new());
    all.sort();
    for key in &all {
        put(&*store, key, key);
    }
    let absent: [&[u8]; 4] = [b"b", b"a\x01", b"\xff\xff\xff\xff", b"\xfe\xff\xff\x00"];
    for prefix in all.iter().map(Vec::as_slice).chain(absent) {
        let expected: Vec<_> = all.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
        assert_eq!(keys(&*store, prefix), expected, "prefix {}", prefix.escape_ascii());
    }
}

/// A scan ends at once if the callback returns `false`.
pub fn a_scan_ends_when_its_callback_says_so(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    for key in ["p1", "p2", "p3", "p4"] {
        put(&*store, key.as_bytes(), b"");
    }
    let mut visited = Vec::new();
    let visit = &mut |key: &[u8], _: &[u8]| {
        visited.push(key.to_vec());
        key != b"p2"
    };
    store.scan(b"p", visit).expect("scan");
    assert_eq!(visited, [b"p1", b"p2"]);
}

/// Entries that `visit` writes and deletes during a scan take effect after the scan and not during it.
pub fn a_scan_sees_one_state_while_it_writes_itself(open: &impl Fn() -> Arc<dyn Store>) {
    let store = open();
    for key in ["a", "b", "c"] {
        put(&*store, key.as_bytes(), b"old");
    }
    let mut visited = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        visited.push((key.to_vec(), value.to_vec()));
        let mut batch = Batch::new();
        batch.delete("b");
        batch.put("c", "new");
        batch.put("d", "new");
        write(&*store, &batch);
        assert_eq!(get(&*store, b"c").as_deref(), Some(&b"new"[..]), "reading sees it at once");
        true
    };
    store.scan(b"", visit).expect("scan");
    let expected = ["a", "b", "c"].map(|key| (key.as_bytes().to_vec(), b"old".to_vec()));
    assert_eq!(visited, expected);
    assert_eq!(keys(&*store, b""), [b"a", b"c", b"d"]);
}

/// Each batch rewrites all entries with one number; every scan must find only one number.
pub fn a_scan_never_sees_half_a_batch_of_another_thread(open: &impl Fn() -> Arc<dyn Store>) {
    const ENTRIES: u8 = 50;
    let store = open();
    let batch_of = |number: u32| {
        let mut batch = Batch::new();
        for key in 0..ENTRIES {
            // Every other key is written or deleted depending on the number.
            if u32::from(key) % 2 < number % 2 {
                batch.delete([key]);
            } else {
                batch.put([key], number.to_be_bytes());
            }
        }
        batch
    };
    write(&*store, &batch_of(0));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut scans = 0;
                    while !ended.load(Ordering::Relaxed) || scans == 0 {
                        let found = scan(&*store, b"");
                        let number = &found.first().expect("some entries are always there").1;
                        let odd = number[3] % 2 == 1;
                        assert_eq!(found.len(), usize::from(if odd { ENTRIES / 2 } else { ENTRIES }));
                        assert!(found.iter().all(|(_, value)| value == number), "{found:?}");
                        scans += 1;
                    }
                })
            })
            .collect();
        for number in 1..100 {
            write(&*store, &batch_of(number));
            if readers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
}

/// The batches of several threads are all stored at the end.
pub fn racing_writers_lose_nothing(open: &impl Fn() -> Arc<dyn Store>) {
    const WRITES: u8 = 25;
    let store = open();
    thread::scope(|scope| {
        for writer in 0..4u8 {
            let store = &*store;
            scope.spawn(move || (0..WRITES).for_each(|number| put(store, &[writer, number], &[writer])));
        }
    });
    let expected: Vec<_> =
        (0..4).flat_map(|writer| (0..WRITES).map(move |number| vec![writer, number])).collect();
    assert_eq!(keys(&*store, b""), expected);
}

/// Compacting after most entries were deleted keeps the rest, and the store stays usable.
pub fn compacting_loses_nothing(open: &impl Fn() -> Arc<dyn Store>) {
    let mut store = open();
    let mut batch = Batch::new();
    for number in 0..2000u32 {
        batch.put(number.to_be_bytes(), [1; 500]);
    }
    write(&*store, &batch);
    let mut batch = Batch::new();
    for number in (0..2000u32).filter(|number| number % 100 > 0) {
        batch.delete(number.to_be_bytes());
    }
    write(&*store, &batch);
    let before = scan(&*store, b"");
    assert_eq!(before.len(), 20);
    Arc::get_mut(&mut store).expect("the factory keeps no clone").compact().expect("compact");
    assert_eq!(scan(&*store, b""), before);
    put(&*store, b"more", b"more");
    assert_eq!(get(&*store, b"more").as_deref(), Some(&b"more"[..]));
}

/// For persistent stores: after reopening, entries, deletions and replaced values are as they were.
pub fn what_was_written_is_there_after_reopening(open: &impl Fn() -> Arc<dyn Store>) {
    let large = vec![7; 1 << 20];
    let store = open();
    for (key, value) in
        [(&b""[..], &b"empty key"[..]), (b"empty value", b""), (b"large", &large), (b"gone", b"x")]
    {
        put(&*store, key, value);
    }
    put(&*store, b"empty value", b"first");
    put(&*store, b"empty value", b"");
    let mut batch = Batch::new();
    batch.delete("gone");
    write(&*store, &batch);
    let before = scan(&*store, b"");
    assert_eq!(before.len(), 3);
    drop(store);
    for _ in 0..3 {
        let store = open();
        assert!(scan(&*store, b"") == before);
        assert_eq!(get(&*store, b"gone"), None);
    }
}

/// Random batches, reads and scans, each compared with a sorted map; with `on_disk`, the store is reopened and
/// compacted in between.
pub fn random_steps_equal_a_naive_model(open: &impl Fn() -> Arc<dyn Store>, seed: u64, on_disk: bool) {
    println!("seed {seed}");
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut store = open();
    let mut model = Entries::new();
    let mut found = 0;
    for step in 0..400 {
        let place = || format!("seed {seed} step {step}");
        match random.below(20) {
            0..8 => {
                let batch = random_batch(&mut random, &mut model);
                write(&*store, &batch);
            }
            8..14 => {
                let key = random_key(&mut random);
                let expected = model.get(&key);
                found += usize::from(expected.is_some());
                assert!(get(&*store, &key).as_ref() == expected, "{}", place());
            }
            14..18 => {
                let mut prefix = random_key(&mut random);
                prefix.truncate(2);
                let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
                assert!(scan(&*store, &prefix).iter().map(|(k, v)| (k, v)).eq(expected), "{}", place());
            }
            18 if on_disk => {
                Arc::get_mut(&mut store).expect("the factory keeps no clone").compact().expect("compact");
            }
            _ if on_disk => {
                drop(store);
                store = open();
            }
            _ => {}
        }
    }
    assert!(scan(&*store, b"").iter().map(|(k, v)| (k, v)).eq(&model), "seed {seed}, at the end");
    assert!(found > 10 && model.len() > 50, "the run meets entries: {found} {}", model.len());
}

/// A batch of random steps, which are applied to the model as well.
fn random_batch(random: &mut Random, model: &mut Entries) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..random.below(30) {
        let key = random_key(random);
        if random.below(3) == 0 {
            model.remove(&key);
            batch.delete(key);
        } else {
            // Values are mostly short, and sometimes longer than a page.
            let longest = if random.below(20) == 0 { 20_000 } else { 60 };
            let value: Vec<u8> = (0..random.below(longest)).map(|_| random.below(256) as u8).collect();
            model.insert(key.clone(), value.clone());
            batch.put(key, value);
        }
    }
    batch
}

/// A key of few different bytes, so that keys repeat and begin with each other.
fn random_key(random: &mut Random) -> Vec<u8> {
    (0..random.below(5)).map(|_| [0x00, b'a', b'b', 0xff][random.below(4)]).collect()
}
