//! A limit on how often something may happen, implemented with governor on the crawl's clock.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::clock::Clock;

/// The crawl's clock as governor needs it: it stands still with the paused clock of tests.
#[derive(Clone, Debug)]
struct GovernorTime(Clock);

impl GovernorClock for GovernorTime {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}

/// A rate limit: one permit per period, and unused permits do not add up.
///
/// Callers that share a limit wait for it together. It takes no memory beyond itself.
///
/// ```
/// use std::time::Duration;
/// use huntsman_crawler::{Clock, RateLimit};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let limit = RateLimit::every(Duration::from_millis(20), Clock::start()).expect("the period is not zero");
/// assert_eq!(limit.check(), Ok(()));
/// assert!(limit.check().is_err_and(|wait| wait <= Duration::from_millis(20)));
/// limit.wait().await;
/// # }
/// ```
#[derive(Debug)]
pub struct RateLimit {
    limiter: RateLimiter<NotKeyed, InMemoryState, GovernorTime, NoOpMiddleware<Nanos>>,
    clock: GovernorTime,
}

impl RateLimit {
    /// A limit of one permit per `period` on the time of `clock`; `None` if the period is zero, which is no limit.
    pub fn every(period: Duration, clock: Clock) -> Option<Self> {
        let clock = GovernorTime(clock);
        let quota = Quota::with_period(period)?.allow_burst(NonZeroU32::MIN);
        Some(Self { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock })
    }

    /// Takes a permit if there is one.
    ///
    /// # Errors
    /// The time until the next permit, at least a millisecond: timers have that resolution, and a shorter wait would
    /// check too early.
    pub fn check(&self) -> Result<(), Duration> {
        let wait = |until: governor::NotUntil<Nanos>| until.wait_time_from(self.clock.now());
        self.limiter.check().map_err(|until| wait(until).max(Duration::from_millis(1)))
    }

    /// Waits for a permit and takes it.
    pub async fn wait(&self) {
        while let Err(wait) = self.check() {
            tokio::time::sleep(wait).await;
        }
    }
}
