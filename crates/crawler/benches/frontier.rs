//! Memory and cost of the frontier in memory. `cargo bench -p huntsman-crawler --bench frontier`.
//!
//! The limits: at most 400 bytes for a queued request of a 60-byte URL with depth and referer, and at most 40 for a
//! seen one. The allocator counts the bytes that were requested. For the first case the resident set, which includes
//! the rounding of malloc, is shown as well (later cases reuse memory that the first one freed).

use std::time::Instant;

use huntsman_crawler::{End, Frontier, MemoryFrontier, Order, Settled, Timestamp};
use huntsman_testkit::load::{CountingAllocator, hosts, links_of};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const URLS: usize = 1_000_000;
/// Number of links per page.
const BATCH: usize = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("{URLS} requests of 60-byte URLs, {BATCH} to a page");
    println!(
        "{:>9} hosts | push us | lease us | settle us | queued and seen: bytes, resident | seen: bytes",
        ""
    );
    for (case, count) in [1, 1_000, 100_000, 1_000_000].into_iter().enumerate() {
        for order in [Order::Bfs, Order::Dfs] {
            run(count, order, case == 0 && order == Order::Bfs).await;
        }
    }
}

async fn run(count: usize, order: Order, is_first: bool) {
    let names = hosts(count);
    let frontier = MemoryFrontier::new(order);
    let (bytes, resident) = (ALLOCATOR.bytes(), resident_bytes());
    let mut pushing = 0.0;
    for page in 0..URLS / BATCH {
        let batch = links_of(page, BATCH, &names);
        let start = Instant::now();
        let pushed = frontier.push(batch).await.expect("push");
        pushing += start.elapsed().as_secs_f64();
        assert_eq!(pushed.accepted, BATCH as u64);
    }
    let queued = ALLOCATOR.bytes() - bytes;
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
    // Queues, hosts and leases are empty: the seen set and the capacity of two small maps remain.
    let seen = ALLOCATOR.bytes() - bytes;
    let each = |seconds: f64| seconds * 1e6 / URLS as f64;
    println!(
        "{count:>9} hosts | {:.2} | {:.2} | {:.2} | {}{} | {} ({order:?})",
        each(pushing),
        each(leasing),
        each(settling),
        queued / URLS,
        if is_first { format!(", {}", resident / URLS) } else { String::new() },
        seen / URLS,
    );
}

/// Resident bytes of this process; 0 if the system does not provide them.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1_024
}
