//! How late timers are while callbacks burn CPU: `cargo bench -p huntsman-crawler --bench timers`.
//!
//! Every callback burns 200 ms. Beside it a task sleeps for 10 ms repeatedly and records how late it wakes; the same
//! is measured with callbacks that do nothing. The goal is a worst lateness below 50 ms.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use huntsman_crawler::{CrawlerBuilder, Output, Page, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

const BURN: Duration = Duration::from_millis(200);
const PAGES: usize = 60;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let calm = runtime.block_on(lateness(Duration::ZERO));
    let burning = runtime.block_on(lateness(BURN));
    println!("callbacks           timers   median late   worst late");
    for (name, mut late) in [("idle", calm), ("200 ms of CPU", burning)] {
        late.sort();
        let (median, worst) = (late[late.len() / 2], late[late.len() - 1]);
        println!("{name:<18} {:>7} {median:>13.1?} {worst:>12.1?}", late.len());
        if name != "idle" {
            println!(
                "worst lateness {}",
                if worst < Duration::from_millis(50) { "below 50 ms" } else { "ABOVE 50 ms" }
            );
        }
    }
}

/// Crawls, and returns how late each timer was.
async fn lateness(burn: Duration) -> Vec<Duration> {
    let seeds: Vec<String> = (0..PAGES).map(|n| format!("http://h{}.example/{n}", n % 8)).collect();
    let spider = spider_fn(seeds, move |_: &Page, _: &mut Output<()>| {
        let start = Instant::now();
        while start.elapsed() < burn {
            std::hint::spin_loop();
        }
        Ok(())
    });
    let web =
        ScriptedDownloader::new().otherwise(|_, _| Reply::html("<p>x")).latency(Duration::from_millis(20));
    let crawl = CrawlerBuilder::new(spider)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 16)
        .downloader(web)
        .run();
    let done = Arc::new(AtomicBool::new(false));
    let timers = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            const TICK: Duration = Duration::from_millis(10);
            let mut late = Vec::new();
            while !done.load(Ordering::Relaxed) || late.len() < 50 {
                let start = Instant::now();
                tokio::time::sleep(TICK).await;
                late.push(start.elapsed().saturating_sub(TICK));
            }
            late
        }
    });
    let report = crawl.await.expect("the crawl ends");
    assert_eq!(report.pages as usize, PAGES);
    done.store(true, Ordering::Relaxed);
    timers.await.expect("the timers end")
}
