//! What the next start costs when nearly every host waits: `cargo bench -p huntsman-crawler --bench schedule`.
//!
//! 100,000 hosts are known, and all but one are within their delay. The goal is below 100 us a decision.

use std::time::Instant;

use huntsman_crawler::{HostKey, Next, Outcome, Scheduler, Settings, Timestamp};

const HOSTS: usize = 100_000;
const ROUNDS: usize = 100_000;

fn main() {
    let mut settings = Settings::default();
    settings.concurrent_requests = 0;
    settings.download_delay = 3_600.0;
    settings.download_slots.insert(
        "quick.example".to_owned(),
        huntsman_crawler::SlotSettings { delay: Some(0.0), ..Default::default() },
    );
    let mut scheduler = Scheduler::new(&settings, 7);
    let mut now = Timestamp(1_000_000);
    for host in 0..HOSTS {
        scheduler.woken(HostKey::new(&format!("h{host}.example")), now);
    }
    while let Next::Fetch(ticket) = scheduler.next(now) {
        ticket.sent(now);
        scheduler.ended(ticket, answered(), now);
    }
    scheduler.woken(HostKey::new("quick.example"), now);
    let started = Instant::now();
    let mut granted = 0;
    for _ in 0..ROUNDS {
        now.0 += 1;
        if let Next::Fetch(ticket) = scheduler.next(now) {
            granted += 1;
            ticket.sent(now);
            scheduler.ended(ticket, answered(), now);
        }
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64;
    println!("{} slots, {granted} of {ROUNDS} granted: {each:.2} us a decision", scheduler.slots());
}

fn answered() -> Outcome {
    Outcome::Answer {
        status: 200,
        latency: std::time::Duration::ZERO,
        retry_after: None,
        adjust_delay: false,
    }
}
