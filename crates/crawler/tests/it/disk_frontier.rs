//! Tests of the frontier on disk: the conformance suite of all frontiers, with limits that make it spill all the
//! time, and crashes at every commit compared with a naive model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use huntsman_crawler::{
    DiskFrontier, DiskLimits, End, Frontier, HostKey, Order, Request, Settled, Timestamp,
};
use huntsman_store::{Batch, Durability, MemoryStore, Store, StoreError, StoreErrorKind};
use huntsman_testkit::conformance::frontier::leases_left_by_a_dead_run_are_work_again;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// With these limits everything is moved to disk and loaded again, and every few calls there is a commit.
const TINY: DiskLimits = DiskLimits { requests: 3, seen: 5, uncommitted: 300 };

fn in_memory(limits: DiskLimits) -> impl Fn(Order) -> DiskFrontier {
    move |order| {
        DiskFrontier::open(Arc::new(MemoryStore::new()), order, limits).expect("an empty store opens")
    }
}

huntsman_testkit::frontier_conformance!(roomy, in_memory(DiskLimits::default()));
huntsman_testkit::frontier_conformance!(spilling, in_memory(TINY));

/// A store that keeps every batch, so that its state after any of them can be restored.
#[derive(Debug, Default)]
struct Recorder {
    store: MemoryStore,
    batches: Mutex<Vec<Batch>>,
    fails_after: Option<usize>,
}

impl Recorder {
    /// The store after this number of batches: its state after a crash at that moment.
    fn after(&self, batches: usize) -> Arc<MemoryStore> {
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
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.store.scan(prefix, visit)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        let mut batches = self.batches.lock().unwrap();
        if self.fails_after.is_some_and(|most| batches.len() >= most) {
            return Err(StoreError::new(StoreErrorKind::Full, "no room is left"));
        }
        batches.push(batch.clone());
        self.store.write(batch, durability)
    }
}

#[tokio::test]
async fn what_a_dead_run_had_leased_is_work_again() {
    for limits in [DiskLimits::default(), TINY] {
        let store = Arc::new(Mutex::new(Arc::new(MemoryStore::new())));
        let order = Arc::new(Mutex::new(Order::Bfs));
        let make = |wanted| {
            *store.lock().unwrap() = Arc::new(MemoryStore::new());
            *order.lock().unwrap() = wanted;
            DiskFrontier::open(Arc::clone(&*store.lock().unwrap()) as _, wanted, limits).unwrap()
        };
        let reopen = async |dead: DiskFrontier| {
            drop(dead);
            let store = Arc::clone(&*store.lock().unwrap());
            DiskFrontier::open(store as _, *order.lock().unwrap(), limits).unwrap()
        };
        leases_left_by_a_dead_run_are_work_again(&make, reopen).await;
    }
}

fn request(n: u64) -> Request {
    Request::parse(&format!("http://h{}.example/{n}", n % 7)).unwrap()
}

/// The requests of each host that the next run must find, including leased ones.
type Work = BTreeMap<HostKey, BTreeSet<String>>;

async fn drained(frontier: &DiskFrontier) -> Work {
    let mut work = Work::new();
    for (host, count) in frontier.open().await.unwrap() {
        let leased = frontier.lease(&host, usize::MAX, Timestamp::MAX).await.unwrap();
        assert_eq!(leased.leases.len() as u64, count);
        let urls = leased.leases.iter().map(|lease| lease.request.url.to_string()).collect();
        work.insert(host, urls);
    }
    work
}

#[tokio::test]
async fn requests_that_leave_memory_are_all_found_again() {
    let frontier = in_memory(DiskLimits::default())(Order::default());
    frontier.push((0..3_000).map(request).collect()).await.unwrap();
    let moved = frontier.spill().await.unwrap();
    assert!((2_000..3_000).contains(&moved), "{moved}");
    assert_eq!((frontier.spill().await.unwrap(), frontier.len()), (0, 3_000));
    assert_eq!(drained(&frontier).await.values().map(BTreeSet::len).sum::<usize>(), 3_000);
}

#[tokio::test]
async fn a_crash_at_any_commit_leaves_exactly_what_was_committed() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for (order, limits) in [
        (Order::Bfs, DiskLimits { requests: 20, seen: 50, uncommitted: 2_000 }),
        (Order::Dfs, DiskLimits { requests: 4, seen: 7, uncommitted: 500 }),
        (Order::BestFirst, DiskLimits { requests: 100, seen: 1_000, uncommitted: 1 << 20 }),
    ] {
        let store = Arc::new(Recorder::default());
        let frontier = DiskFrontier::open(Arc::clone(&store) as _, order, limits).unwrap();
        let (mut work, mut seen) = (Work::new(), BTreeSet::new());
        let mut leases = Vec::new();
        // The number of batches, the queued requests, and the seen ones after a sync.
        let mut moments = vec![(0, Work::new(), BTreeSet::new())];
        for _ in 0..1_500 {
            let new = |rng: &mut StdRng| -> Vec<u64> {
                (0..rng.random_range(0..4)).map(|_| rng.random_range(0..600)).collect()
            };
            let mut came = |numbers: &[u64], work: &mut Work| {
                for n in numbers {
                    if seen.insert(*n) {
                        let request = request(*n);
                        work.entry(request.host()).or_default().insert(request.url.to_string());
                    }
                }
            };
            match rng.random_range(0..10) {
                0..3 => {
                    let numbers = new(&mut rng);
                    came(&numbers, &mut work);
                    let requests =
                        numbers.iter().map(|n| request(*n).meta("score", (n % 5) as f64)).collect();
                    frontier.push(requests).await.unwrap();
                }
                3..6 => {
                    let host = request(rng.random_range(0..7)).host();
                    let leased = frontier.lease(&host, rng.random_range(0..4), Timestamp(5)).await.unwrap();
                    leases.extend(leased.leases.into_iter().map(|lease| (host.clone(), lease)));
                }
                6..9 if !leases.is_empty() => {
                    let (host, lease) = leases.swap_remove(rng.random_range(0..leases.len()));
                    let children = new(&mut rng);
                    let end = if rng.random_bool(0.2) { End::Release } else { End::Done };
                    if matches!(end, End::Done) {
                        work.get_mut(&host).unwrap().remove(lease.request.url.as_str());
                    }
                    came(&children, &mut work);
                    let children = children.iter().map(|n| request(*n)).collect();
                    frontier.settle(vec![Settled { lease: lease.id, host, end, children }]).await.unwrap();
                }
                _ => {
                    frontier.sync().await.unwrap();
                    moments.push((store.written(), work.clone(), seen.clone()));
                }
            }
        }
        for (batches, mut work, seen) in moments {
            let after = DiskFrontier::open(store.after(batches), order, limits).unwrap();
            work.retain(|_, urls| !urls.is_empty());
            assert_eq!(drained(&after).await, work, "seed {seed}, {order:?}, after {batches} batches");
            let known = after.push(seen.iter().map(|n| request(*n)).collect()).await.unwrap();
            assert_eq!(known.duplicates, seen.len() as u64, "seed {seed}");
            assert_eq!(after.push(vec![request(1_000)]).await.unwrap().accepted, 1);
        }
        // Commits that the frontier makes by itself leave a consistent state, too.
        for batches in 0..=store.written() {
            DiskFrontier::open(store.after(batches), order, limits).unwrap().open().await.unwrap();
        }
    }
}

#[tokio::test]
async fn after_a_commit_that_failed_nothing_goes_on_and_nothing_is_lost() {
    let store = Arc::new(Recorder { fails_after: Some(1), ..Recorder::default() });
    let open = |store: Arc<dyn Store>| DiskFrontier::open(store, Order::Bfs, DiskLimits::default()).unwrap();
    let frontier = open(Arc::clone(&store) as _);
    frontier.push(vec![request(1)]).await.unwrap();
    frontier.sync().await.unwrap();
    frontier.push(vec![request(2)]).await.unwrap();
    let error = frontier.sync().await.unwrap_err().to_string();
    assert!(error.contains("no room is left"), "{error}");
    assert!(frontier.push(vec![request(3)]).await.is_err());
    assert!(frontier.sync().await.is_err());
    assert_eq!(store.written(), 1);
    assert!(frontier.lease(&request(1).host(), 1, Timestamp(0)).await.is_err());
    let again = open(store.after(1));
    assert_eq!(again.open().await.unwrap(), [(request(1).host(), 1)]);
}

#[tokio::test]
async fn damage_is_an_error_and_never_a_new_beginning() {
    let store = Arc::new(Recorder::default());
    let frontier =
        DiskFrontier::open(Arc::clone(&store) as _, Order::Bfs, DiskLimits { seen: 10, ..TINY }).unwrap();
    frontier.push((0..100).map(request).collect()).await.unwrap();
    frontier.sync().await.unwrap();
    let mut keys = Vec::new();
    store
        .scan(b"", &mut |key, value| {
            keys.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    assert!(keys.len() > 10);
    for (key, value) in keys {
        for damaged in [None, Some(value[..value.len() / 2].to_vec()), Some(vec![0xff; value.len()])] {
            let copy = store.after(store.written());
            let mut batch = Batch::new();
            match damaged {
                None => batch.delete(key.clone()),
                Some(value) => batch.put(key.clone(), value),
            }
            copy.write(&batch, Durability::Process).unwrap();
            // There must never be a panic. A frontier that can be opened either reports the damage when it reaches
            // it, or does not need the missing part.
            let Ok(frontier) = DiskFrontier::open(copy, Order::Bfs, TINY) else { continue };
            let hosts = frontier.open().await.unwrap();
            for (host, count) in hosts {
                if let Ok(leased) = frontier.lease(&host, usize::MAX, Timestamp::MAX).await {
                    assert_eq!(leased.leases.len() as u64, count);
                }
            }
        }
    }
}

/// Rows of a queue in the first version of the format, as hexadecimal keys and values.
fn fixture() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/queue-1.json")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Recreates the state of the fixture: twenty requests of two hosts, of which three were leased and two of those
/// done.
async fn make_fixture_queue(store: Arc<dyn Store>) {
    let limits = DiskLimits { requests: 8, seen: 10, uncommitted: 1 << 20 };
    let frontier = DiskFrontier::open(store, Order::Bfs, limits).unwrap();
    let request = |n: u64| {
        let mut request = Request::parse(&format!("http://h{}.example/{n}?a=b#c", n % 2)).unwrap();
        request.depth = 2;
        request.referer = Some("http://h0.example/".into());
        if n == 19 { request.meta("proxy", "http://p:1").priority(3).body("x") } else { request }
    };
    frontier.push((0..20).map(request).collect()).await.unwrap();
    frontier.sync().await.unwrap();
    let host = request(0).host();
    let leased = frontier.lease(&host, 3, Timestamp(0)).await.unwrap().leases;
    for lease in &leased[..2] {
        let settled = Settled { lease: lease.id, host: host.clone(), end: End::Done, children: Vec::new() };
        frontier.settle(vec![settled]).await.unwrap();
    }
    frontier.sync().await.unwrap();
}

#[tokio::test]
async fn a_queue_of_format_1_opens_and_goes_on() {
    let rows: Vec<(String, String)> = serde_json::from_slice(&std::fs::read(fixture()).unwrap()).unwrap();
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    rows.iter().for_each(|(key, value)| batch.put(bytes(key), bytes(value)));
    store.write(&batch, Durability::Process).unwrap();
    let frontier = DiskFrontier::open(Arc::new(store), Order::Bfs, DiskLimits::default()).unwrap();
    let hosts = [("h0.example", 8), ("h1.example", 10)].map(|(host, count)| (HostKey::new(host), count));
    assert_eq!(frontier.open().await.unwrap(), hosts);
    let leased = frontier.lease(&hosts[1].0, 20, Timestamp(0)).await.unwrap().leases;
    let paths: Vec<&str> = leased.iter().map(|lease| lease.request.url.path()).collect();
    assert_eq!(paths, ["/19", "/1", "/3", "/5", "/7", "/9", "/11", "/13", "/15", "/17"]);
    assert_eq!(
        (leased[0].request.body.as_ref(), leased[0].request.meta["proxy"].as_str()),
        (&b"x"[..], Some("http://p:1"))
    );
    assert_eq!(
        (leased[1].request.depth, leased[1].request.referer.as_deref()),
        (2, Some("http://h0.example/"))
    );
    let known = Request::parse("http://h0.example/0?a=b").unwrap();
    assert_eq!(frontier.push(vec![known]).await.unwrap().duplicates, 1);
}

#[tokio::test]
#[ignore = "writes the fixture: only for a new version of the form, beside the old one"]
async fn write_the_fixture() {
    let store = Arc::new(MemoryStore::new());
    make_fixture_queue(Arc::clone(&store) as _).await;
    let mut rows = Vec::new();
    store
        .scan(b"", &mut |key, value| {
            rows.push((hex(key), hex(value)));
            true
        })
        .unwrap();
    std::fs::write(fixture(), serde_json::to_vec_pretty(&rows).unwrap()).unwrap();
}
