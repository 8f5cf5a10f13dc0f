//! The quota of the whole crawl (`requests_per_second`).

use std::time::Duration;

use crate::clock::{Clock, Timestamp};
use crate::rate_limit::RateLimit;

/// The quota, if there is one. A token is taken before the scheduler is asked, and kept if the scheduler grants
/// nothing.
pub(crate) struct Quota {
    limit: Option<RateLimit>,
    has_token: bool,
}

impl Quota {
    pub(crate) fn new(per_second: f64, clock: &Clock) -> Self {
        let period = (per_second > 0.0).then(|| Duration::from_secs_f64(1.0 / per_second));
        Self { limit: period.and_then(|period| RateLimit::every(period, *clock)), has_token: false }
    }

    /// When the next request may start; `None` if it may start now.
    pub(crate) fn wait_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let limit = self.limit.as_ref()?;
        if self.has_token {
            return None;
        }
        match limit.check() {
            Ok(()) => {
                self.has_token = true;
                None
            }
            Err(wait) => Some(now + wait),
        }
    }

    /// Uses the token for a start that was granted.
    pub(crate) fn spend(&mut self) {
        self.has_token = false;
    }
}
