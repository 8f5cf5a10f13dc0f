//! Cost of the scheduler with many hosts. `cargo bench -p huntsman-crawler --bench schedule`.
//!
//! The limit: with 100,000 known hosts of which all but one are in their delay window, one `next` takes less than 100
//! us.

use std::time::{Duration, Instant};

use huntsman_crawler::{HostKey, Next, Outcome, Scheduler, Settings, Timestamp};

const ANSWER: Outcome = Outcome::Answer {
    status: 200,
    latency: Duration::from_millis(100),
    bytes: 0,
    retry_after: None,
    adjust_delay: true,
};

fn main() {
    println!(
        "{:>9} hosts | one ready: mean, p99 | steady: mean, p99 | all due at once: mean, p99 | bytes a host",
        ""
    );
    for hosts in [1_000, 10_000, 100_000, 1_000_000] {
        run(hosts);
    }
}

fn run(hosts: u64) {
    let mut settings = Settings::default();
    (settings.download_delay, settings.concurrent_requests) = (10.0, 0);
    let names: Vec<HostKey> = (0..hosts).map(|n| HostKey::new(&format!("host-{n}.example"))).collect();
    let before = resident();
    let mut scheduler = Scheduler::new(&settings, 1);
    let mut now = Timestamp(1_000_000_000);
    for name in &names {
        scheduler.woken(name.clone(), now);
    }
    // All hosts but one have just been asked.
    for _ in 0..hosts {
        let Next::Fetch(ticket) = scheduler.next(now) else { panic!("all are ready") };
        scheduler.ended(ticket, ANSWER, now);
    }
    let bytes = resident().saturating_sub(before) as f64 / hosts as f64;

    let mut one_ready = Spent::default();
    for n in 0..1_000 {
        let name = HostKey::new(&format!("ready-{n}.example"));
        scheduler.woken(name.clone(), now);
        let next = one_ready.time(|| scheduler.next(now));
        let Next::Fetch(ticket) = next else { panic!("one is ready") };
        assert_eq!(ticket.host, name);
        scheduler.nothing_due(ticket, None, now);
    }

    // Time advances: each host is asked when its delay is over.
    let mut steady = Spent::default();
    let mut grants = 0;
    while grants < 100_000 {
        match steady.time(|| scheduler.next(now)) {
            Next::Fetch(ticket) => {
                grants += 1;
                scheduler.ended(ticket, ANSWER, now);
            }
            Next::Wait(at) => now = at,
            other => panic!("{other:?}"),
        }
    }

    // After a pause as long as any delay, all hosts are due at the same moment.
    now = now + Duration::from_secs(60);
    let mut burst = Spent::default();
    for _ in 0..hosts.min(100_000) {
        let Next::Fetch(ticket) = burst.time(|| scheduler.next(now)) else { panic!("all are due") };
        scheduler.ended(ticket, ANSWER, now);
    }
    println!("{hosts:>9} hosts | {one_ready} | {steady} | {burst} | {bytes:.0}");
}

/// Times of single calls in microseconds. The worst one is not reported, because it is caused by the machine's
/// scheduler.
#[derive(Default)]
struct Spent(Vec<f64>);

impl Spent {
    fn time<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let out = call();
        self.0.push(start.elapsed().as_secs_f64() * 1e6);
        out
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        write!(f, "{mean:.2} us, {:.2} us", sorted[sorted.len() * 99 / 100])
    }
}

/// Resident bytes of this process; 0 if the system does not provide them.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1_024
}
