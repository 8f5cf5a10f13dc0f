//! The quota of the whole crawl (`requests_per_second`), implemented with governor on the crawl's clock.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{NotUntil, Quota as Rate, RateLimiter};

use crate::clock::{Clock, Timestamp};

/// The crawl's clock as governor needs it: it stands still with the paused clock of tests.
#[derive(Clone, Debug)]
struct CrawlClock(Clock);

impl GovernorClock for CrawlClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

/// The quota, if there is one. A token is taken before the scheduler is asked, and kept if the scheduler grants
/// nothing.
pub(crate) struct Quota {
    limiter: Option<RateLimiter<NotKeyed, InMemoryState, CrawlClock, NoOpMiddleware<Nanos>>>,
    clock: CrawlClock,
    has_token: bool,
}

impl Quota {
    pub(crate) fn new(per_second: f64, clock: &Clock) -> Self {
        let clock = CrawlClock(*clock);
        let limiter = (per_second > 0.0)
            .then(|| Rate::with_period(Duration::from_secs_f64(1.0 / per_second)))
            .flatten()
            .map(|rate| RateLimiter::direct_with_clock(rate.allow_burst(NonZeroU32::MIN), clock.clone()));
        Self { limiter, clock, has_token: false }
    }

    /// When the next request may start; `None` if it may start now.
    pub(crate) fn wait_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let limiter = self.limiter.as_ref()?;
        if self.has_token {
            return None;
        }
        match limiter.check() {
            Ok(()) => {
                self.has_token = true;
                None
            }
            // Timers have a resolution of a millisecond: round up, or the loop would check too early.
            Err(until) => Some(now + self.wait(&until).max(Duration::from_millis(1))),
        }
    }

    fn wait(&self, until: &NotUntil<Nanos>) -> Duration {
        until.wait_time_from(self.clock.now())
    }

    /// Uses the token for a start that was granted.
    pub(crate) fn spend(&mut self) {
        self.has_token = false;
    }
}
