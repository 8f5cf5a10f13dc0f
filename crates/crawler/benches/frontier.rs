//! Memory and cost of the frontier in memory. `cargo bench -p huntsman-crawler --bench frontier`.
//!
//! The promises: at most 400 bytes for a queued request of a 60-byte URL with depth and referer (SCH-6), at most 40 for
//! a seen one (DUP-8). Bytes are counted by the allocator, so they are what was asked for; for the first case the
//! resident set, which has the rounding of malloc in it, is shown beside them. (Later ones reuse what it freed.)

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use huntsman_crawler::{End, Frontier, HostKey, MemoryFrontier, Order, Request, Settled, Timestamp};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "counting what is allocated takes an allocator")]
// SAFETY: all calls go to the system's allocator unchanged; counting has no influence on what is returned.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as asked by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const URLS: usize = 1_000_000;
/// Links of one page.
const BATCH: usize = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("{URLS} requests of 60-byte URLs, {BATCH} to a page");
    println!(
        "{:>9} hosts | push us | lease us | settle us | queued and seen: bytes, resident | seen: bytes",
        ""
    );
    for (case, hosts) in [1, 1_000, 100_000, 1_000_000].into_iter().enumerate() {
        for order in [Order::Bfs, Order::Dfs] {
            run(hosts, order, case == 0 && order == Order::Bfs).await;
        }
    }
}

async fn run(hosts: usize, order: Order, is_first: bool) {
    let names: Vec<HostKey> = (0..hosts).map(|n| HostKey::new(&host(n))).collect();
    let frontier = MemoryFrontier::new(order);
    let (bytes, resident) = (BYTES.load(Ordering::Relaxed), resident_bytes());
    let mut pushing = 0.0;
    for page in 0..URLS / BATCH {
        let referer: Arc<str> = url(page % hosts, page, 'p').into();
        let batch: Vec<Request> = (0..BATCH)
            .map(|link| {
                let n = page * BATCH + link;
                let mut request = Request::parse(&url(n % hosts, n, 'x')).expect("a URL");
                request.referer = Some(Arc::clone(&referer));
                request.depth = 3;
                request.assign_slot(names[n % hosts].clone());
                let fingerprint = request.fingerprint();
                request.assign_fingerprint(fingerprint);
                request
            })
            .collect();
        let start = Instant::now();
        let pushed = frontier.push(batch).await.expect("push");
        pushing += start.elapsed().as_secs_f64();
        assert_eq!(pushed.accepted, BATCH as u64);
    }
    let queued = BYTES.load(Ordering::Relaxed) - bytes;
    let resident = resident_bytes().saturating_sub(resident);

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
            if done == URLS {
                break 'all;
            }
        }
    }
    // Queues, hosts and leases are empty: what is left is the seen set and the capacity of two small maps.
    let seen = BYTES.load(Ordering::Relaxed) - bytes;
    let each = |seconds: f64| seconds * 1e6 / URLS as f64;
    println!(
        "{hosts:>9} hosts | {:.2} | {:.2} | {:.2} | {}{} | {} ({order:?})",
        each(pushing),
        each(leasing),
        each(settling),
        queued / URLS,
        if is_first { format!(", {}", resident / URLS) } else { String::new() },
        seen / URLS,
    );
}

fn host(n: usize) -> String {
    format!("h{n:06}.example.org")
}

/// A URL of 60 bytes.
fn url(host_number: usize, n: usize, kind: char) -> String {
    let url = format!("http://{}/section/{kind}/article-{n:010}.html", host(host_number));
    assert_eq!(url.len(), 60);
    url
}

/// Resident bytes of this process; 0 where the system does not tell.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1_024
}
