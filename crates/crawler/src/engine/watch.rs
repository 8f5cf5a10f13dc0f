//! The watch: writes a line of statistics to the log, and checks the limits of memory, at intervals.

use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::engine::core::Core;
use crate::event::Event;
use crate::frontier::DynFrontier;
use crate::settings::seconds;

/// Runs until it is aborted.
pub(crate) async fn run(cx: Context, core: Arc<Core>) {
    tokio::join!(log_stats(&cx), watch_memory(&cx, &*core.frontier));
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

/// What the memory that is used means for the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressure {
    None,
    /// Near the limit: the queue goes to disk.
    Near,
    Above,
}

impl Pressure {
    /// The pressure of so many resident bytes under a limit, 0 for none.
    fn of(rss: u64, limit: u64) -> Self {
        match limit {
            0 => Self::None,
            limit if rss > limit => Self::Above,
            limit if rss >= limit - limit / 10 => Self::Near,
            _ => Self::None,
        }
    }
}

async fn watch_memory(cx: &Context, frontier: &dyn DynFrontier) {
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
            if Pressure::of(rss, limit) != Pressure::None {
                spill(cx, frontier, rss).await;
                // The queue may have been what took the memory.
                if Pressure::of(resident_bytes().unwrap_or(rss), limit) == Pressure::Above {
                    cx.stop("memusage_exceeded");
                    return;
                }
            }
        }
        tokio::time::sleep(interval).await;
    }
}

/// Moves the queue to disk. An error is left to the next use of the queue, which ends the crawl with it.
async fn spill(cx: &Context, frontier: &dyn DynFrontier, rss: u64) {
    match frontier.spill().await {
        Ok(0) => {}
        Ok(requests) => {
            cx.stats().add("memusage/spilled", i64::try_from(requests).unwrap_or(i64::MAX));
            tracing::warn!(rss, requests, "memory is near memusage_limit_mb, so the queue goes to disk");
        }
        Err(error) => tracing::warn!(%error, "the queue cannot go to disk"),
    }
}

/// Current resident bytes of the process, if the system provides them (Linux).
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_goes_to_disk_at_nine_tenths_of_the_limit() {
        let of = |rss| Pressure::of(rss, 1_000);
        assert_eq!(
            [899, 900, 1_000, 1_001].map(of),
            [Pressure::None, Pressure::Near, Pressure::Near, Pressure::Above]
        );
        assert_eq!(Pressure::of(u64::MAX, 0), Pressure::None, "without a limit");
    }
}
