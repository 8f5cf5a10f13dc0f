//! Times of captures, as archives and people write them.

/// A time in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Reads a time of up to 14 digits (`20260131120000`) or of RFC 3339 (`2026-01-31T12:00:00Z`), also one that ends after any of its parts
    /// (`2026-01`). A fraction of a second is left out. `None` if the text is no time.
    ///
    /// ```
    /// use huntsman_warc::Moment;
    ///
    /// let noon = Moment::parse("20260131120000").unwrap();
    /// assert_eq!(Moment::parse("2026-01-31T13:00:00+01:00"), Some(noon));
    /// assert_eq!(Moment::parse("2026-01-31").unwrap().distance(noon), 12 * 3600);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::of_digits(text);
        }
        let (date, time) = match text.split_once(['T', 't', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let mut digits = joined(date, '-', &[4, 2, 2])?;
        let Some(time) = time.filter(|_| digits.len() == 8) else {
            return time.is_none().then(|| Self::of_digits(&digits))?;
        };
        let end = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
        let (clock, zone) = time.split_at(end);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.push_str(&joined(clock, ':', &[2, 2, 2])?);
        Some(Self(Self::of_digits(&digits)?.0 - offset(zone)?))
    }

    fn of_digits(digits: &str) -> Option<Self> {
        let number = |at: usize, length: usize, otherwise: i64| match digits.get(at..at + length) {
            Some(part) => part.parse::<i64>().ok(),
            None => (digits.len() <= at).then_some(otherwise),
        };
        if digits.len() > 14 {
            return None;
        }
        let (year, month, day) = (number(0, 4, -1)?, number(4, 2, 1)?, number(6, 2, 1)?);
        let (hour, minute, second) = (number(8, 2, 0)?, number(10, 2, 0)?, number(12, 2, 0)?);
        let is_time = year >= 0
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60;
        is_time.then(|| Self(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second))
    }

    /// The seconds between two times.
    pub fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }
}

/// Days since 0000-03-01, in years that begin in March, so that the leap day is the last day of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
}

/// The digits of parts, which have these lengths; the last ones may be missing.
fn joined(text: &str, sign: char, lengths: &[usize]) -> Option<String> {
    let parts: Vec<&str> = text.split(sign).collect();
    let is_right = |(part, length): (&&str, &usize)| {
        part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    (parts.len() <= lengths.len() && parts.iter().zip(lengths).all(is_right)).then(|| parts.concat())
}

/// The seconds by which the clock of a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let digits = joined(zone.get(1..)?, ':', &[2, 2])?;
    let (hours, minutes) = (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..4)?.parse::<i64>().ok()?);
    let seconds = (hours * 60 + minutes) * 60;
    (hours < 24 && minutes < 60).then_some(if zone.starts_with('-') { -seconds } else { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_their_forms() {
        let same =
            ["20260301000000", "2026-03-01T00:00:00Z", "2026-03", "202603", "2026-02-28T23:00:00.123-01:00"];
        let moments: Vec<_> = same.iter().map(|text| Moment::parse(text)).collect();
        assert!(moments[0].is_some() && moments.iter().all(|moment| *moment == moments[0]), "{moments:?}");
        for wrong in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-1-1",
            "20261",
            "2026-01-01T",
            "202601010000001",
            "2026-01T10:00",
        ] {
            assert_eq!(Moment::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_distance_counts_seconds_and_not_digits() {
        let at = |text| Moment::parse(text).unwrap();
        assert_eq!(at("20260131235959").distance(at("20260201000000")), 1);
        assert_eq!(at("2024-02-28").distance(at("2024-03-01")), 2 * 86_400, "a leap year");
        assert_eq!(at("1999-12-31").distance(at("2001-01-01")), 367 * 86_400);
    }
}
