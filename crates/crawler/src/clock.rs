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
        let (secs, millis) = (self.0 / 1_000_000, self.0 / 1_000 % 1_000);
        let (days, rest) = (secs / 86_400, secs % 86_400);
        let (year, month, day) = civil_from_days(i64::try_from(days).unwrap_or(i64::MAX));
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
            rest / 3_600,
            rest / 60 % 60,
            rest % 60
        )
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

/// Proleptic Gregorian date of a day number counted from 1970-01-01 (the usual era arithmetic on 400-year cycles).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_TO_EPOCH: i64 = 719_468; // from 0000-03-01
    let shifted = days.saturating_add(DAYS_TO_EPOCH);
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_of_known_days() {
        assert_eq!(Timestamp(0).to_rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(951_827_696_123_456).to_rfc3339(), "2000-02-29T12:34:56.123Z");
        assert_eq!(Timestamp(4_102_444_799_999_999).to_rfc3339(), "2099-12-31T23:59:59.999Z");
    }
}
