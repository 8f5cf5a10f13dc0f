//! Times of server logs, as seconds since 1970 began.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// A number above this counts milliseconds, as seconds it would be in the year 5138.
const MOST_SECONDS: f64 = 1e11;

/// The time of the common log format: `10/Oct/2000:13:55:36 -0700`. Without a zone it is read as UTC.
pub(super) fn common(text: &str) -> Option<i64> {
    let (day, rest) = text.trim().split_once('/')?;
    let (month, rest) = rest.split_once('/')?;
    let (year, rest) = rest.split_once(':')?;
    let (clock, zone) = rest.split_once(' ').unwrap_or((rest, ""));
    let month = MONTHS.iter().position(|name| month.eq_ignore_ascii_case(name))? as i64 + 1;
    let date = days([year.parse().ok()?, month, day.parse().ok()?])?;
    Some(date * 86_400 + seconds_of_day(clock)? - offset(zone)?)
}

/// A time as ISO 8601 has it (`2026-11-26T14:03:00.5+01:00`), as the common log format has it, or as a number of seconds or milliseconds.
pub(super) fn any(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return of_number(number);
    }
    if text.contains('/') {
        return common(text);
    }
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let date = days([parts.next()??, parts.next()??, parts.next()??])?;
    let zone_at = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let clock = clock.split(['.', ',']).next()?;
    Some(date * 86_400 + seconds_of_day(clock)? - offset(zone.trim())?)
}

/// A number of seconds, or of milliseconds.
pub(super) fn of_number(number: f64) -> Option<i64> {
    let seconds = if number > MOST_SECONDS { number / 1_000.0 } else { number };
    (0.0..MOST_SECONDS).contains(&seconds).then_some(seconds as i64)
}

/// Days since 1970 began. Counts years from March on, so that the leap day is the last day of its year.
fn days([year, month, day]: [i64; 3]) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468)
}

fn seconds_of_day(clock: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    // 60 is a leap second.
    let is_right = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..=60).contains(&seconds);
    is_right.then_some((hours * 60 + minutes) * 60 + seconds)
}

/// Seconds by which a zone is ahead of UTC: `-0700`, `+01:00`, `Z`, or nothing.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.bytes().next() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let number: i64 = digits.parse().ok().filter(|_| matches!(digits.len(), 2 | 4))?;
    let (hours, minutes) = if digits.len() == 2 { (number, 0) } else { (number / 100, number % 100) };
    Some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_of_servers() {
        for (text, expected) in [
            ("10/Oct/2000:13:55:36 -0700", Some(971_211_336)),
            ("29/Feb/2000:00:00:00 +0000", Some(951_782_400)),
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("2000-10-10T20:55:36Z", Some(971_211_336)),
            ("2000-10-10T13:55:36.5-07:00", Some(971_211_336)),
            ("2000-10-10 20:55:36", Some(971_211_336)),
            ("2000-10-10T20:55:36,123+00", Some(971_211_336)),
            ("971211336", Some(971_211_336)),
            ("971211336.25", Some(971_211_336)),
            ("971211336250", Some(971_211_336)),
            ("10/Okt/2000:13:55:36 -0700", None),
            ("32/Oct/2000:13:55:36 -0700", None),
            ("10/Oct/2000:25:55:36 -0700", None),
            ("2000-10-10", None),
            ("", None),
            ("-", None),
            ("nan", None),
            ("é/é/é:é", None),
        ] {
            assert_eq!(any(text), expected, "{text}");
        }
    }
}
