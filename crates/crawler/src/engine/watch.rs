//! The watch: writes a line of statistics to the log, and checks the limits of memory, at intervals.

use std::time::Duration;

use crate::context::Context;
use crate::event::Event;
use crate::settings::seconds;

/// Runs until it is aborted.
pub(crate) async fn run(cx: Context) {
    tokio::join!(log_stats(&cx), watch_memory(&cx));
}

async fn log_stats(cx: &Context) {
    let interval = seconds(cx.settings().logstats_interval);
    if interval.is_zero() {
        return;
    }
    let mut last = (0, 0);
    loop {
        tokio::time::sleep(interval).await;
        let Some(now) = cx.overview().await else { return };
        let stats = cx.stats();
        let (pages, items) = (stats.get("response_received_count"), stats.get("item_scraped_count"));
        let per_minute = |n: i64| n as f64 * 60.0 / interval.as_secs_f64();
        tracing::info!(
            pages,
            pages_per_minute = per_minute(pages - last.0),
            items,
            items_per_minute = per_minute(items - last.1),
            queued = now.queued,
            hosts_active = now.hosts_active,
            hosts_down = now.hosts_down,
            megabytes = stats.get("engine/wire_bytes") / 1_000_000,
            "crawled"
        );
        last = (pages, items);
    }
}

async fn watch_memory(cx: &Context) {
    let settings = cx.settings();
    let (warning, limit) = (settings.memusage_warning_mb << 20, settings.memusage_limit_mb << 20);
    if warning == 0 && limit == 0 {
        return;
    }
    let interval = seconds(settings.memusage_check_interval).max(Duration::from_millis(100));
    let mut warned = false;
    loop {
        if let Some(rss) = resident_bytes() {
            cx.stats().max("memusage/max", i64::try_from(rss).unwrap_or(i64::MAX));
            if warning > 0 && rss > warning && !warned {
                warned = true;
                tracing::warn!(rss, "memory is above memusage_warning_mb");
                cx.emit(&Event::MemoryWarning { rss });
            }
            if limit > 0 && rss > limit {
                cx.stop("memusage_exceeded");
                return;
            }
        }
        tokio::time::sleep(interval).await;
    }
}

/// Current resident bytes of the process, if the system provides them (Linux).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
