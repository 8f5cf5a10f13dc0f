//! The current time in the format of a line of flags.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time in UTC by RFC 3339 with milliseconds, such as `2026-11-21T09:30:00.250Z`.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_secs(), since.subsec_millis())
}

fn rfc3339(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Counts years in 400-year cycles that begin in March, so that a leap day is the last day of its year.
    const DAYS_PER_CYCLE: u64 = 146_097;
    const DAYS_BEFORE_1970: u64 = 719_468; // days since 0000-03-01
    let shifted = days.saturating_add(DAYS_BEFORE_1970);
    let (cycle, day) = (shifted / DAYS_PER_CYCLE, shifted % DAYS_PER_CYCLE);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // months from March
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * cycle + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_standard_says() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(rfc3339(951_868_800, 0), "2000-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_700_000_000, 250), "2023-11-14T22:13:20.250Z");
        assert_eq!(rfc3339(4_102_444_799, 999), "2099-12-31T23:59:59.999Z");
    }
}
