//! Cost of the frontier on disk, and what it holds in memory. `cargo bench -p huntsman-crawler --features sled --bench
//! disk_frontier [-- URLS HOSTS]`.
//!
//! The limits: ten million queued requests open in less than 10 s and 500 MB, and a request costs at most twice as
//! much among ten million as among a hundred thousand. Every case runs in a separate process, because a process does
//! not release all memory that it used.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use huntsman_crawler::{Backend, DiskFrontier, DiskLimits, End, Frontier, Order, Settled, Timestamp};
use huntsman_store::JobDirectory;
use huntsman_testkit::load::{hosts, links_of};

/// Number of links per page.
const BATCH: usize = 50;
/// Number of requests that are leased and settled.
const DONE: usize = 100_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match &arguments[..] {
        [step, store, path, urls, hosts] => {
            let (urls, hosts) = (urls.parse().expect("a number"), hosts.parse().expect("a number"));
            runtime.block_on(run(step, store.parse().expect("a store"), Path::new(path), urls, hosts));
        }
        [urls, hosts] => all(&[(urls.parse().expect("a number"), hosts.parse().expect("a number"))]),
        _ => all(&[(100_000, 1_000), (1_000_000, 1_000), (10_000_000, 1_000), (10_000_000, 100_000)]),
    }
}

fn all(cases: &[(usize, usize)]) {
    println!(
        "store | URLs | hosts | push us | peak MB | disk MB | open s | MB | lease us | settle us | peak MB"
    );
    for (urls, hosts) in cases {
        for store in [Backend::Redb, Backend::Sled].into_iter().filter(|store| store.is_compiled_in()) {
            let path = std::env::temp_dir().join(format!("huntsman-bench-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            print!("{store} | {urls} | {hosts}");
            std::io::stdout().flush().expect("stdout");
            for step in ["push", "drain"] {
                let mut child = Command::new(std::env::current_exe().expect("a path"));
                child.args([step, store.name()]).arg(&path).args([urls.to_string(), hosts.to_string()]);
                assert!(child.status().expect("it runs").success());
            }
            println!();
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

async fn run(step: &str, store: Backend, path: &Path, urls: usize, count: usize) {
    let start = Instant::now();
    let job = JobDirectory::open(path, store).expect("the directory opens");
    let frontier = DiskFrontier::open(job.store(), Order::Bfs, DiskLimits::default()).expect("it opens");
    let open = frontier.open().await.expect("it opens");
    let opened = start.elapsed().as_secs_f64();
    let names = hosts(count);
    if step == "push" {
        let mut pushing = 0.0;
        for page in 0..urls / BATCH {
            let batch = links_of(page, BATCH, &names);
            let start = Instant::now();
            let pushed = frontier.push(batch).await.expect("push");
            pushing += start.elapsed().as_secs_f64();
            assert_eq!(pushed.accepted, BATCH as u64);
        }
        let start = Instant::now();
        frontier.sync().await.expect("sync");
        pushing += start.elapsed().as_secs_f64();
        drop((frontier, job));
        let disk = disk_bytes(path) >> 20;
        print!(" | {:.2} | {} | {disk}", pushing * 1e6 / urls as f64, peak_mb());
        return;
    }
    assert_eq!(open.iter().map(|(_, queued)| queued).sum::<u64>(), urls as u64);
    let opened_mb = peak_mb();
    let (mut leasing, mut settling, mut done) = (0.0, 0.0, 0);
    'all: loop {
        for name in &names {
            let start = Instant::now();
            let leased = frontier.lease(name, 1, Timestamp(1)).await.expect("lease");
            leasing += start.elapsed().as_secs_f64();
            for lease in leased.leases {
                let end =
                    Settled { lease: lease.id, host: name.clone(), end: End::Done, children: Vec::new() };
                let start = Instant::now();
                frontier.settle(vec![end]).await.expect("settle");
                settling += start.elapsed().as_secs_f64();
                done += 1;
            }
            if done >= DONE.min(urls) {
                break 'all;
            }
        }
    }
    let start = Instant::now();
    frontier.sync().await.expect("sync");
    settling += start.elapsed().as_secs_f64();
    let each = |seconds: f64| seconds * 1e6 / done as f64;
    print!(" | {opened:.2} | {opened_mb} | {:.2} | {:.2} | {}", each(leasing), each(settling), peak_mb());
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) >> 10
}

fn disk_bytes(path: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => bytes += meta.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
