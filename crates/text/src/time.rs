//! Times as text.

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: u64 = 719_468;

/// A time as RFC 3339 in UTC with milliseconds, such as `2026-11-21T09:30:00.250Z`. `micros` counts microseconds since
/// 1970 began; what is less than a millisecond is cut off.
///
/// ```
/// use huntsman_text::time::rfc3339;
///
/// assert_eq!(rfc3339(1_700_000_000_250_999), "2023-11-14T22:13:20.250Z");
/// ```
pub fn rfc3339(micros: u64) -> String {
    let (seconds, millis) = (micros / 1_000_000, micros / 1_000 % 1_000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Counts years in 400-year cycles that begin in March, so that a leap day is the last day of its year.
    const DAYS_PER_CYCLE: u64 = 146_097;
    let shifted = days + DAYS_BEFORE_1970;
    let (cycle, day) = (shifted / DAYS_PER_CYCLE, shifted % DAYS_PER_CYCLE);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // months from March
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * cycle + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Reads a time as [`rfc3339`] writes it, in microseconds since 1970 began. `None` if the text has another form, such as
/// another time zone, or if no such time exists.
///
/// ```
/// use huntsman_text::time::parse_rfc3339;
///
/// assert_eq!(parse_rfc3339("2023-11-14T22:13:20.250Z"), Some(1_700_000_000_250_000));
/// assert_eq!(parse_rfc3339("2023-11-14"), None);
/// ```
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let millis = number(20..23)?;
    // Years that begin in March, so that the leap day is the last day of its year.
    let (shifted, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * month + 2) / 5 + day;
    let days = days.checked_sub(DAYS_BEFORE_1970 + 1)?;
    let micros = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + millis * 1_000;
    // A text with a value out of range, or with other signs between the numbers, is not what this time is written as.
    (rfc3339(micros) == text).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_standard_says() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_007_000), "2000-02-29T00:00:00.007Z");
        assert_eq!(rfc3339(951_827_696_123_456), "2000-02-29T12:34:56.123Z");
        assert_eq!(rfc3339(951_868_800_000_000), "2000-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_700_000_000_250_000), "2023-11-14T22:13:20.250Z");
        assert_eq!(rfc3339(4_102_444_799_999_999), "2099-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(u64::MAX), "586524-01-19T08:01:49.551Z", "no overflow");
    }

    #[test]
    fn times_are_read_as_they_were_written_and_nothing_else_is() {
        for millis in [0, 951_782_400_007, 951_827_696_123, 1_795_000_000_250, 4_102_444_799_999] {
            assert_eq!(parse_rfc3339(&rfc3339(millis * 1_000)), Some(millis * 1_000));
        }
        for text in [
            "yesterday",
            "",
            "1969-12-31T23:59:59.999Z",
            "2026-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-11-00T00:00:00.000Z",
            "2026-11-21T24:00:00.000Z",
            "2026-11-21 09:30:00.250Z",
            "2026-11-21T09:30:00.250+01:00",
            "2026-11-21T09:30:00Z",
            "+026-11-21T09:30:00.250Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
