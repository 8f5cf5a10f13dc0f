//! Tests of jobs between two runs: their contents, and what remains when a host is dropped, compared with a naive
//! model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use huntsman_crawler::{
    Backend, DiskFrontier, DiskLimits, End, Event, Frontier, HostKey, Observer, Order, Persist, Request,
    Result, SavedJob, Settled, Timestamp,
};
use huntsman_store::{Batch, Durability, JobDirectory};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// With these limits everything is moved to disk and loaded again.
const TINY: DiskLimits = DiskLimits { requests: 20, seen: 30, uncommitted: 4_000 };

fn request(n: u64) -> Request {
    let mut request = Request::parse(&format!("http://h{}.example/{n}?a=b", n % 5)).expect("a URL");
    request.depth = 3;
    request.referer = Some("http://h0.example/".into());
    request.priority((n % 3) as i32)
}

/// Runs `work` on the frontier of a job, and closes both.
async fn with_frontier<T>(path: &Path, work: impl AsyncFnOnce(&DiskFrontier) -> T) -> T {
    let directory = JobDirectory::open(path, Backend::Redb).expect("it opens");
    let frontier = DiskFrontier::open(directory.store(), Order::Bfs, TINY).expect("it opens");
    frontier.open().await.expect("it opens");
    let done = work(&frontier).await;
    frontier.sync().await.expect("sync");
    done
}

fn queued(job: &SavedJob, host: Option<&HostKey>) -> Vec<String> {
    let mut urls = Vec::new();
    job.each_queued(host, |slot, request| {
        assert_eq!(request.host(), *slot);
        urls.push(request.url.to_string());
        true
    })
    .expect("the queue is read");
    urls
}

/// Records the drops that it is told of, and how many of them the job has stored.
#[derive(Default)]
struct Log(Mutex<Vec<(String, String)>>);

impl Observer for Log {
    fn event(&self, event: &Event<'_>) {
        if let Event::RequestDropped(dropped) = event {
            self.0.lock().expect("no panic").push((dropped.url.clone(), dropped.reason.to_string()));
        }
    }
}

impl Persist for Log {
    fn name(&self) -> String {
        "file/log".to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let length = state.map_or(0, |state| state[0].into());
        self.0.lock().expect("no panic").truncate(length);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(vec![u8::try_from(self.0.lock().expect("no panic").len()).expect("few")]))
    }
}

#[tokio::test]
async fn a_saved_job_has_what_was_committed() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("job");
    let mut left = BTreeMap::<u64, Request>::new();
    let mut seen = BTreeSet::new();
    for round in 0..6 {
        let leased = with_frontier(&path, async |frontier| {
            for _ in 0..rng.random_range(1..12) {
                let pushed: Vec<u64> =
                    (0..rng.random_range(1..15)).map(|_| rng.random_range(0..500)).collect();
                frontier.push(pushed.iter().map(|n| request(*n)).collect()).await.expect("push");
                for n in pushed {
                    if seen.insert(request(n).fingerprint()) {
                        left.insert(n, request(n));
                    }
                }
                let host = request(rng.random_range(0..5)).host();
                for lease in frontier.lease(&host, 4, Timestamp(0)).await.expect("lease").leases {
                    left.retain(|_, queued| queued.url != lease.request.url);
                    let (end, children) = (End::Done, Vec::new());
                    let settled = Settled { lease: lease.id, host: host.clone(), end, children };
                    frontier.settle(vec![settled]).await.expect("settle");
                }
            }
            // These requests are in flight when the run ends.
            let mut leased = 0;
            for n in 0..5 {
                leased +=
                    frontier.lease(&request(n).host(), 1, Timestamp(0)).await.expect("lease").leases.len();
            }
            // A change to commit after that.
            let n = 1_000 + round;
            frontier.push(vec![request(n)]).await.expect("push");
            seen.insert(request(n).fingerprint());
            left.insert(n, request(n));
            leased as u64
        })
        .await;

        let job = SavedJob::read(&path).expect("it opens");
        let mut expected: Vec<String> = left.values().map(|request| request.url.to_string()).collect();
        expected.sort();
        let mut urls = queued(&job, None);
        urls.sort();
        assert_eq!(urls, expected);
        assert_eq!(job.queued(), expected.len() as u64);
        assert_eq!(job.in_flight().expect("it is read"), Some(leased));
        assert!(job.last_commit().expect("it is read").is_some());
        let mut hosts = BTreeMap::<HostKey, u64>::new();
        left.values().for_each(|request| *hosts.entry(request.host()).or_default() += 1);
        assert_eq!(job.hosts(), hosts.into_iter().collect::<Vec<_>>());
        let host = request(2).host();
        let mut of_host = queued(&job, Some(&host));
        of_host.sort();
        expected.retain(|url| url.starts_with("http://h2.example/"));
        assert_eq!(of_host, expected);
        let mut fingerprints = BTreeSet::new();
        job.each_seen(|fingerprint| fingerprints.insert(fingerprint)).expect("each once");
        assert_eq!(fingerprints, seen);
        assert_eq!(job.seen().expect("they are counted"), seen.len() as u64);
        assert_eq!((job.backend(), job.format()), (Backend::Redb, 1));
    }
}

#[tokio::test]
async fn a_dropped_host_is_reported_and_the_other_hosts_go_on() {
    for segments in [false, true] {
        let count = if segments { 150 } else { 15 };
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("job");
        with_frontier(&path, async |frontier| {
            for n in 0..count {
                frontier.push(vec![request(n)]).await.expect("push");
            }
        })
        .await;
        let host = request(3).host();
        let mut of_host: Vec<String> =
            (0..count).map(request).filter(|r| r.host() == host).map(|r| r.url.to_string()).collect();
        of_host.sort();

        let mut job = SavedJob::open(&path).expect("it opens");
        let seen = job.seen().expect("they are counted");
        // Drops reported before the last commit are kept; those reported after it are not.
        let log = Log::default();
        log.event(&Event::RequestDropped(&huntsman_crawler::Dropped::new(
            &request(9),
            "test",
            huntsman_crawler::DropReason::skipped("lost"),
            Timestamp(0),
        )));
        assert_eq!(job.drop_host(&HostKey::new("other.example"), &Log::default()).expect("nothing"), 0);
        assert_eq!(job.drop_host(&host, &log).expect("it is dropped"), of_host.len() as u64);
        let mut told = log.0.lock().expect("no panic").clone();
        told.sort();
        let expected: Vec<(String, String)> =
            of_host.iter().map(|url| (url.clone(), "dropped_by_user".to_owned())).collect();
        assert_eq!(told, expected);
        let check = |job: &SavedJob| {
            assert_eq!(queued(job, None).len(), count as usize - of_host.len());
            assert_eq!(queued(job, Some(&host)), Vec::<String>::new());
            assert_eq!(job.seen().expect("they are counted"), seen);
            let stats = job.stats().expect("they are read");
            for key in ["drops/skipped", "drops/skipped/dropped_by_user"] {
                assert_eq!(stats.get(key), Some(&(of_host.len() as i64)), "{key}");
            }
            let told = job.part("file/log").expect("it is read").expect("it was saved");
            assert_eq!(usize::from(told[0]), of_host.len());
        };
        check(&job);
        job.close().expect("it closes");
        let job = SavedJob::read(&path).expect("it opens");
        check(&job);
        drop(job);
        with_frontier(&path, async |frontier| {
            let again = (0..count).map(request).collect();
            assert_eq!(frontier.push(again).await.expect("push").accepted, 0, "all is seen");
            let mut leased = 0;
            for n in 0..5 {
                let host = request(n).host();
                let leases = frontier.lease(&host, 1_000, Timestamp(0)).await.expect("lease").leases;
                leased += leases.len();
                for lease in leases {
                    let (end, children) = (End::Done, Vec::new());
                    let settled = Settled { lease: lease.id, host: host.clone(), end, children };
                    frontier.settle(vec![settled]).await.expect("settle");
                }
            }
            assert_eq!(leased, count as usize - of_host.len());
        })
        .await;
        assert_eq!(SavedJob::read(&path).expect("it opens").queued(), 0);
    }
}

#[test]
fn other_data_is_not_taken_for_a_job_whatever_its_keys_are() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let other = JobDirectory::open(folder.path(), Backend::Redb).expect("it opens");
    let mut batch = Batch::new();
    batch.put(*b"a/\x01\x02", *b"a response whose fingerprint begins with the byte of a slash");
    other.store().write(&batch, Durability::Full).expect("it is written");
    other.close().expect("it closes");
    let error = SavedJob::read(folder.path()).expect_err("no job").to_string();
    assert!(error.contains("this is not the state of a crawl"), "{error}");
}

#[tokio::test]
async fn a_job_that_is_only_read_is_not_changed() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("job");
    assert!(SavedJob::read(&path).expect_err("there is none").to_string().contains("no stored state"));
    assert!(SavedJob::open(&path).is_err() && !path.exists());
    with_frontier(&path, async |frontier| {
        frontier.push((0..50).map(request).collect()).await.expect("push");
    })
    .await;
    let mut job = SavedJob::read(&path).expect("it opens");
    let second = SavedJob::read(&path).expect("beside it");
    assert!(SavedJob::open(&path).is_err());
    let host = request(0).host();
    assert!(job.drop_host(&host, &Log::default()).is_err());
    assert_eq!((job.queued(), second.queued()), (50, 50));
    assert_eq!(queued(&job, Some(&host)).len(), 10);
}

#[test]
fn what_an_earlier_version_did_not_write_is_not_there() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let directory = JobDirectory::open(folder.path(), Backend::Redb).expect("it opens");
    let mut batch = Batch::new();
    batch.put("p/other", "state");
    directory.store().write(&batch, Durability::Process).expect("write");
    drop(directory);
    let job = SavedJob::read(folder.path()).expect("it opens");
    assert_eq!((job.in_flight().expect("read"), job.last_commit().expect("read")), (None, None));
    assert_eq!(
        (job.queued(), job.seen().expect("read"), job.stats().expect("read")),
        (0, 0, BTreeMap::new())
    );
    assert_eq!(job.part("other").expect("read").as_deref(), Some(&b"state"[..]));
}
