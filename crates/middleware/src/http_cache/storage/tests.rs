//! Compares the bound with a naive model, crashes at every batch, and shares storages.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Version};
use huntsman_store::MemoryStore;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::shared::Shared;
use super::super::size_index::Totals;
use super::*;

fn entry(bytes: usize) -> Entry {
    Entry {
        stored: Timestamp(1),
        url: "http://h/".parse().unwrap(),
        method: Some(Method::GET),
        vary_values: Vec::new(),
        status: StatusCode::OK,
        version: Version::HTTP_11,
        // With this coding the body is not compressed, so its size is known.
        headers: [(http::header::CONTENT_ENCODING, HeaderValue::from_static("br"))].into_iter().collect(),
        body: Bytes::from(vec![7; bytes]),
    }
}

/// A store that records every batch, so that its state after any of them can be restored.
#[derive(Debug, Default)]
struct Recorder {
    store: MemoryStore,
    batches: Mutex<Vec<Batch>>,
}

impl Recorder {
    fn after(&self, batches: usize) -> Arc<dyn Store> {
        let store = MemoryStore::new();
        for batch in &self.batches.lock().unwrap()[..batches] {
            store.write(batch, Durability::Process).unwrap();
        }
        Arc::new(store)
    }

    fn written(&self) -> usize {
        self.batches.lock().unwrap().len()
    }
}

impl Store for Recorder {
    fn get(&self, key: &[u8]) -> std::result::Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> std::result::Result<(), StoreError> {
        self.store.scan(prefix, visit)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> std::result::Result<(), StoreError> {
        self.batches.lock().unwrap().push(batch.clone());
        self.store.write(batch, durability)
    }
}

fn rows(store: &dyn Store, kind: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    store
        .scan(kind, &mut |key, value| {
            rows.insert(key[1..].to_vec(), value.to_vec());
            true
        })
        .unwrap();
    rows
}

/// Asserts that all rows are consistent with each other and with the totals; returns the totals.
fn assert_whole(store: &dyn Store) -> Totals {
    let (answers, weights) = (rows(store, b"a"), rows(store, b"m"));
    assert!(answers.keys().eq(weights.keys()), "every answer has a weight, and nothing else has");
    let mut expected = Totals::default();
    let mut by_use = BTreeMap::new();
    for (suffix, value) in &answers {
        let size = EntrySize::stored(store, suffix).unwrap().unwrap();
        assert_eq!(size.bytes, EntrySize::of(suffix, value));
        expected.answers += 1;
        expected.bytes += size.bytes;
        let key = [&size.used.to_be_bytes()[..], suffix].concat();
        by_use.insert(key, size.bytes.to_le_bytes().to_vec());
    }
    assert_eq!(rows(store, b"t"), by_use);
    for fingerprint in rows(store, b"v").keys() {
        assert!(
            answers.keys().any(|suffix| suffix.len() > FINGERPRINT && suffix.starts_with(fingerprint)),
            "names without a variant"
        );
    }
    let totals = Totals::stored(store).unwrap().unwrap_or_default();
    assert_eq!(Totals { used: 0, ..totals }, expected);
    totals
}

/// A naive model of the bound: responses with bytes and last use.
#[derive(Default)]
struct Model {
    answers: BTreeMap<(u128, Option<&'static str>), (u64, u64)>,
    uses: u64,
    evicted: u64,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.answers.values().map(|(bytes, _)| bytes).sum()
    }

    fn record_use(&mut self, key: (u128, Option<&'static str>)) -> bool {
        self.uses += 1;
        let uses = self.uses;
        self.answers.get_mut(&key).is_some_and(|answer| {
            answer.1 = uses;
            true
        })
    }

    fn put(&mut self, key: (u128, Option<&'static str>), bytes: u64, max: u64) {
        if bytes > max {
            self.answers.remove(&key);
            return;
        }
        // A plain response replaces variants, and a variant replaces a plain response.
        self.answers.retain(|old, _| old.0 != key.0 || (*old != key && old.1.is_some() && key.1.is_some()));
        self.uses += 1;
        self.answers.insert(key, (bytes, self.uses));
        if self.bytes() <= max {
            return;
        }
        while self.bytes() > max - max / EVICTION_SHARE && self.answers.len() > 1 {
            let oldest = self.answers.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            self.answers.remove(&oldest.unwrap());
            self.evicted += 1;
        }
    }
}

const NAMES: &str = "accept-language";

fn asked(variant: Option<&'static str>) -> HeaderMap {
    variant
        .map(|value| (http::HeaderName::from_static(NAMES), HeaderValue::from_static(value)))
        .into_iter()
        .collect()
}

fn varying(variant: Option<&'static str>) -> Vec<String> {
    variant.map(|_| NAMES.to_owned()).into_iter().collect()
}

fn tail_of((number, variant_of): (u128, Option<&'static str>)) -> KeySuffix {
    suffix(Fingerprint(number), variant_of.map(|_| variant([NAMES].into_iter(), &asked(variant_of))))
}

#[test]
fn the_answers_that_were_not_used_for_the_longest_time_make_room() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for max in [2_000, 20_000, 60_000] {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let open = || {
            let storage = Storage::of(Arc::clone(&store)).unwrap();
            storage.set_max_bytes(max);
            storage
        };
        let (mut storage, mut model, mut evicted) = (open(), Model::default(), 0);
        for step in 0..3_000 {
            // A clock that stands still, goes on, and is set back.
            let now = Timestamp(1_000 + rng.random_range(0..50));
            let variant = [None, None, Some("de"), Some("en")][rng.random_range(0..4)];
            let key = (rng.random_range(0..60), variant);
            let fingerprint = Fingerprint(key.0);
            match rng.random_range(0..100) {
                0..40 => {
                    let entry = entry(rng.random_range(0..2_500));
                    storage.put(fingerprint, &asked(variant), &varying(variant), &entry, now).unwrap();
                    model.put(key, EntrySize::of(&tail_of(key), &entry.to_bytes()), max);
                    // Several changes of one URL within a batch are not tested here.
                    storage.flush().unwrap();
                }
                40..90 => {
                    let found = storage.get(fingerprint, &asked(variant), now).unwrap();
                    // A plain response matches every variant.
                    let plain = (key.0, None);
                    let expected = if model.answers.contains_key(&plain) { plain } else { key };
                    assert_eq!(found.is_some(), model.record_use(expected), "{step}: {key:?}");
                }
                90..96 => {
                    storage.remove(fingerprint, &asked(variant), &varying(variant)).unwrap();
                    storage.flush().unwrap();
                    model.answers.remove(&key);
                }
                _ => {
                    evicted += storage.take_evicted();
                    drop(storage);
                    storage = open();
                }
            }
            if step % 10 == 0 || step > 2_990 {
                storage.flush().unwrap();
                let mut expected: Vec<KeySuffix> = model.answers.keys().map(|key| tail_of(*key)).collect();
                expected.sort();
                assert!(rows(&*store, b"a").into_keys().eq(expected), "{step}");
                assert_eq!(storage.usage(), (model.answers.len() as u64, model.bytes()));
                assert!(storage.usage().1 <= max);
                assert_whole(&*store);
            }
        }
        assert_eq!(evicted + storage.take_evicted(), model.evicted);
        assert!(model.evicted > 100, "the bound was reached");
    }
}

#[test]
fn a_crash_after_any_batch_leaves_a_whole_cache() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let recorder = Arc::new(Recorder::default());
    let storage = Storage::of(Arc::clone(&recorder) as _).unwrap();
    storage.set_max_bytes(15_000);
    for _ in 0..600 {
        let variant = [None, None, None, Some("de"), Some("en")][rng.random_range(0..5)];
        let fingerprint = Fingerprint(rng.random_range(0..40));
        let now = Timestamp(rng.random_range(0..1_000));
        if rng.random_bool(0.5) {
            let entry = entry(rng.random_range(0..1_500));
            storage.put(fingerprint, &asked(variant), &varying(variant), &entry, now).unwrap();
        } else {
            storage.get(fingerprint, &asked(variant), now).unwrap();
        }
    }
    drop(storage);
    assert!(recorder.written() > 10, "{} batches", recorder.written());
    for batches in 0..=recorder.written() {
        let store = recorder.after(batches);
        let totals = assert_whole(&*store);
        let again = Storage::of(Arc::clone(&store)).unwrap();
        assert_eq!(again.usage(), (totals.answers, totals.bytes));
        again.put(Fingerprint(99), &asked(None), &[], &entry(10), Timestamp(0)).unwrap();
        drop(again);
        assert_whole(&*store);
    }
}

#[test]
fn hits_cost_no_write_each() {
    let recorder = Arc::new(Recorder::default());
    let storage = Storage::of(Arc::clone(&recorder) as _).unwrap();
    for n in 0..100 {
        storage.put(Fingerprint(n), &asked(None), &[], &entry(10), Timestamp(5)).unwrap();
    }
    storage.flush().unwrap();
    let before = recorder.written();
    for n in 0..20_000 {
        assert!(storage.get(Fingerprint(n % 100), &asked(None), Timestamp(9)).unwrap().is_some());
    }
    assert_eq!(recorder.written(), before, "a hundred answers are noted once, at the end");
    drop(storage);
    assert_eq!(recorder.written(), before + 1);
    assert_whole(&recorder.store);
    let used = EntrySize::stored(&recorder.store, &suffix(Fingerprint(3), None)).unwrap().unwrap().used;
    assert!(used > 19_000, "{used}");
}

#[test]
fn uses_are_written_in_groups() {
    let recorder = Arc::new(Recorder::default());
    let storage = Storage::of(Arc::clone(&recorder) as _).unwrap();
    let answers = 2 * USES_PER_BATCH as u128 + 100;
    for n in 0..answers {
        storage.put(Fingerprint(n), &asked(None), &[], &entry(0), Timestamp(5)).unwrap();
    }
    storage.flush().unwrap();
    let before = recorder.written();
    for n in 0..answers {
        storage.get(Fingerprint(n), &asked(None), Timestamp(9)).unwrap();
    }
    storage.flush().unwrap();
    assert!((1..=2).contains(&(recorder.written() - before)), "{}", recorder.written() - before);
}

#[test]
fn a_weighing_that_was_killed_begins_again() {
    let recorder = Arc::new(Recorder::default());
    let mut batch = Batch::new();
    for n in 0..3 * SIZES_PER_BATCH as u128 + 7 {
        batch.put(response_key(&suffix(Fingerprint(n), None)), entry(5).to_bytes());
    }
    recorder.write(&batch, Durability::Process).unwrap();
    drop(Storage::of(Arc::clone(&recorder) as _).unwrap());
    assert!(recorder.written() > 4);
    for batches in 1..=recorder.written() {
        let store = recorder.after(batches);
        let storage = Storage::of(Arc::clone(&store)).unwrap();
        assert_eq!(storage.usage().0, 3 * SIZES_PER_BATCH as u64 + 7, "after {batches} batches");
        drop(storage);
        assert_whole(&*store);
    }
}

#[test]
fn what_a_newer_version_wrote_is_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut batch = Batch::new();
    batch.put("s", [9u8; 25]);
    store.write(&batch, Durability::Process).unwrap();
    let error = Storage::of(store).unwrap_err().to_string();
    assert!(error.contains("newer version"), "{error}");
}

#[test]
fn crawls_of_one_process_share_a_directory_and_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let open = |name: &std::path::Path, max| Shared::open(name.to_str().unwrap(), max).unwrap();
    let first = open(&path, 0);
    // By another name, with a bound.
    let second = open(&folder.path().join("./cache/../cache"), 1 << 30);
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(open(&path, 1 << 40).max_bytes.load(Ordering::Relaxed), 1 << 30, "the lowest bound holds");
    for n in 0..200 {
        first.put(Fingerprint(n), &asked(None), &[], &entry(n as usize), Timestamp(1)).unwrap();
    }
    first.flush().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200 {
                    let found = second.get(Fingerprint(n), &asked(None), Timestamp(2)).unwrap().unwrap();
                    assert_eq!(found.body.len(), n as usize);
                }
            });
        }
    });
    drop(first);
    assert_eq!(second.usage().0, 200);
    drop(second);
    // From many threads at once, while another one closes.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(open(&path, 0).usage().0, 200));
        }
    });
}

#[test]
fn a_cache_whose_format_file_was_lost_is_damage_and_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let open = || Shared::open(path.to_str().unwrap(), 0);
    let cache = open().unwrap();
    cache.put(Fingerprint(1), &asked(None), &[], &entry(5), Timestamp(1)).unwrap();
    cache.flush().unwrap();
    drop(cache);
    let marker = path.join("format.json");
    let text = std::fs::read(&marker).unwrap();
    for lost in [None, Some(&b""[..]), Some(&[0; 30])] {
        std::fs::remove_file(&marker).unwrap();
        lost.iter().for_each(|lost| std::fs::write(&marker, lost).unwrap());
        let error = open().unwrap_err().to_string();
        assert!(error.contains("httpcache_dir") && error.contains("format.json"), "{error}");
        assert!(error.contains("removing its directory") && error.contains("restore"), "{error}");
        std::fs::write(&marker, &text).unwrap();
        assert_eq!(open().unwrap().usage().0, 1, "nothing was taken away");
    }
}

#[test]
fn the_default_bound_is_ten_gibibytes() {
    assert_eq!(crate::HttpCacheSettings::default().httpcache_max_bytes, 10 << 30);
}
