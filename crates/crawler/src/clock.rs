//! The crawl's clock: one monotonic time line that tests can pause and whose timestamps a job can store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::simulated;

/// A point in time, in microseconds since the Unix epoch.
///
/// All waiting in the engine is computed from timestamps of one [`Clock`], so a jump of the wall clock neither delays
/// nor hastens a crawl, and a stored timestamp is still meaningful after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The largest timestamp, later than every real one.
    pub const MAX: Self = Self(u64::MAX);

    /// The current wall-clock time. The engine uses [`Clock::now`] instead.
    pub fn wall() -> Self {
        let now = || Self(micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()));
        simulated::wall().unwrap_or_else(now)
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// RFC 3339 in UTC with milliseconds, such as `2026-11-21T09:30:00.250Z`.
    pub fn to_rfc3339(self) -> String {
        huntsman_text::time::rfc3339(self.0)
    }

    /// Reads a time as [`to_rfc3339`](Self::to_rfc3339) writes it; `None` if the text has another form.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        huntsman_text::time::parse_rfc3339(text).map(Self)
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(micros(rhs)))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Maps the runtime's monotonic clock (virtual in tests) to timestamps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    epoch: Timestamp,
}

impl Clock {
    /// Starts at the current wall-clock time and is monotonic from then on.
    pub fn start() -> Self {
        Self { start: Instant::now(), epoch: Timestamp::wall() }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.epoch + self.start.elapsed()
    }

    /// The runtime instant of a timestamp, for sleeping; limited to a year from now.
    pub fn instant(&self, at: Timestamp) -> Instant {
        const YEAR: Duration = Duration::from_secs(365 * 86_400);
        self.start + at.since(self.epoch).min(YEAR)
    }

    /// Time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The timestamp at which the clock was started.
    pub fn started_at(&self) -> Timestamp {
        self.epoch
    }
}
