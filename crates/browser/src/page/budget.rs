//! The time that a page may take.

use std::time::{Duration, Instant};

use super::Page;

/// How often it is looked whether the page waits for a host.
const TICK: Duration = Duration::from_millis(50);

impl Page {
    /// Returns when a time is over. Time in which the page waits for the pace of a host does not count.
    pub(super) async fn spent(&self, limit: Duration) {
        let mut spent = Duration::ZERO;
        while spent < limit {
            let begun = Instant::now();
            tokio::time::sleep(TICK.min(limit - spent)).await;
            if !self.network.is_waiting() {
                spent += begun.elapsed();
            }
        }
    }
}
