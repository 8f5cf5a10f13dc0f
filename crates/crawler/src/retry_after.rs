//! Reads how long a server wants to be left alone: `Retry-After` and the rate-limit headers.
//!
//! The functions turn header values into a time to wait from `now`, which is an argument. Invalid values are ignored.
//! Whether a long wait is obeyed is the caller's decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header};

use crate::clock::Timestamp;

/// The time to wait that a `Retry-After` value asks for (RFC 9110, section 10.2.3): seconds or an HTTP date.
///
/// The result is `None` for anything else: negative numbers, fractions, words. A date in the past gives zero. A
/// longer time than `cap` is reduced to `cap`; a number that does not fit into 64 bits is ignored.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use huntsman_crawler::retry_after::retry_after;
///
/// let cap = Duration::from_secs(120);
/// assert_eq!(retry_after("30", SystemTime::now(), cap), Some(Duration::from_secs(30)));
/// assert_eq!(retry_after("86400", SystemTime::now(), cap), Some(cap));
/// assert_eq!(retry_after("soon", SystemTime::now(), cap), None);
/// ```
pub fn retry_after(value: &str, now: SystemTime, cap: Duration) -> Option<Duration> {
    let value = value.trim();
    let wait = match digits(value) {
        Some(seconds) => seconds,
        None => httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(cap))
}

/// The time to wait that the `Retry-After` of these headers asks for, counted from `now`, without a limit.
pub fn requested_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    retry_after(value, UNIX_EPOCH + Duration::from_micros(now.0), Duration::MAX)
}

/// The time until a rate limit is reset, if it is exhausted now.
///
/// `header` looks up a header by its lower-case name. Both families are read, `RateLimit-*` first. A limit is
/// exhausted if `-Remaining` is 0 (or negative, as some services send). The reset is a number of seconds or, in many
/// services with the `X-` family, a point in Unix time: a number that would mean more than ten years from now cannot
/// be a delay (even larger ones are in milliseconds). The single-header form of later drafts (`RateLimit:
/// "default";r=0;t=30`, also `limit=10, remaining=0, reset=30`) is read as well. `Retry-After` is not considered. A
/// longer time than `cap` is reduced to `cap`.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use huntsman_crawler::retry_after::rate_limit_wait;
///
/// let header = |name: &str| match name {
///     "x-ratelimit-remaining" => Some("0"),
///     "x-ratelimit-reset" => Some("17"),
///     _ => None,
/// };
/// let wait = rate_limit_wait(header, SystemTime::now(), Duration::from_secs(300));
/// assert_eq!(wait, Some(Duration::from_secs(17)));
/// ```
pub fn rate_limit_wait<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: SystemTime,
    cap: Duration,
) -> Option<Duration> {
    const FAMILIES: [(&str, &str); 3] = [
        ("ratelimit-remaining", "ratelimit-reset"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("x-rate-limit-remaining", "x-rate-limit-reset"),
    ];
    let pairs = FAMILIES.iter().map(|(remaining, reset)| Some((header(remaining)?, header(reset)?)));
    let single = header("ratelimit").into_iter().flat_map(|value| value.split(',')).map(policy_fields);
    let whole = header("ratelimit").map(policy_fields);
    pairs
        .chain(single)
        .chain(whole)
        .flatten()
        .filter(|(remaining, _)| used_up(remaining))
        .find_map(|(_, reset)| reset_wait(reset, now))
        .map(|wait| wait.min(cap))
}

/// The remaining and reset values of `"default";r=0;t=30` or `limit=10, remaining=0, reset=30`.
fn policy_fields(value: &str) -> Option<(&str, &str)> {
    let field = |names: [&str; 2]| {
        value.split([';', ',']).find_map(|field| {
            let (name, value) = field.split_once('=')?;
            names.contains(&name.trim()).then_some(value.trim())
        })
    };
    Some((field(["r", "remaining"])?, field(["t", "reset"])?))
}

fn used_up(remaining: &str) -> bool {
    remaining.trim().parse::<f64>().is_ok_and(|number| number <= 0.0)
}

/// A longer delay than this is taken as a point in Unix time.
const MAX_DELAY: u64 = 10 * 365 * 86_400;
/// A point in Unix time beyond this (the year 5138) is taken as milliseconds.
const LAST_SECOND: u64 = 100_000_000_000;

fn reset_wait(reset: &str, now: SystemTime) -> Option<Duration> {
    // GitHub and others send integers, a few services fractions: "1.2".
    let reset = reset.trim();
    let whole = reset.split_once('.').map_or(reset, |(whole, _)| whole);
    match digits(whole) {
        Some(delay) if delay.as_secs() <= MAX_DELAY => Some(delay),
        Some(point) => {
            let seconds =
                if point.as_secs() > LAST_SECOND { point.as_secs() / 1000 } else { point.as_secs() };
            let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(Duration::from_secs(seconds).saturating_sub(since_epoch))
        }
        None => Some(httpdate::parse_http_date(reset).ok()?.duration_since(now).unwrap_or_default()),
    }
}

/// A number of seconds that consists of digits only. If it has too many digits, the result is the largest number.
fn digits(value: &str) -> Option<Duration> {
    let number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    // A number that does not fit cannot be a sensible time.
    if number { value.parse().ok().map(Duration::from_secs) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// 1994-11-15 08:12:31 UTC.
    const NOW: u64 = 784_887_151;

    fn wait(value: &str) -> Option<u64> {
        retry_after(value, at(NOW), CAP).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_and_dates() {
        assert_eq!(wait("0"), Some(0));
        assert_eq!(wait(" 120 "), Some(120));
        assert_eq!(wait("Tue, 15 Nov 1994 08:13:01 GMT"), Some(30));
        assert_eq!(wait("Tuesday, 15-Nov-94 08:13:01 GMT"), Some(30), "the old form of dates");
        assert_eq!(wait("Tue Nov 15 08:13:01 1994"), Some(30), "that of C");
        assert_eq!(wait("Tue, 15 Nov 1994 08:00:00 GMT"), Some(0), "in the past");
    }

    #[test]
    fn nothing_is_above_the_cap() {
        assert_eq!(wait("301"), Some(300));
        assert_eq!(wait(&"9".repeat(19)), Some(300));
        assert_eq!(wait(&"9".repeat(100)), None, "a number that does not fit is ignored");
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), Some(300));
    }

    #[test]
    fn nonsense_is_ignored() {
        for value in ["", " ", "-1", "+5", "1.5", "1e3", "soon", "10 s", "0x10", "٣", "32 Nov 1994", "1, 2"]
        {
            assert_eq!(wait(value), None, "{value}");
        }
    }

    fn limited(headers: &[(&str, &'static str)]) -> Option<u64> {
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        rate_limit_wait(header, at(1_700_000_000), CAP).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_used_up_limit_waits_for_its_reset() {
        let x =
            |remaining, reset| limited(&[("x-ratelimit-remaining", remaining), ("x-ratelimit-reset", reset)]);
        assert_eq!(x("0", "20"), Some(20));
        assert_eq!(x("0", "1700000045"), Some(45), "a point in Unix time");
        assert_eq!(x("0", "1700000045000"), Some(45), "in milliseconds");
        assert_eq!(x("0", "1699999000"), Some(0), "in the past");
        assert_eq!(x("0", "1800000000"), Some(300), "capped");
        assert_eq!(x("0", "1.2"), Some(1));
        assert_eq!(x("-1", "20"), Some(20));
        assert_eq!(x("0", "Tue, 14 Nov 2023 22:13:50 GMT"), Some(30));
        assert_eq!(x("3", "20"), None, "something remains");
        assert_eq!(x("0", "later"), None);
        assert_eq!(x("none", "20"), None);
        assert_eq!(limited(&[("x-ratelimit-remaining", "0")]), None, "no reset");
        assert_eq!(limited(&[("ratelimit-remaining", "0"), ("ratelimit-reset", "7")]), Some(7));
        assert_eq!(limited(&[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "7")]), Some(7));
    }

    #[test]
    fn the_single_header_form_counts() {
        assert_eq!(limited(&[("ratelimit", "\"default\";r=0;t=30")]), Some(30));
        assert_eq!(limited(&[("ratelimit", "\"hour\";r=50;t=30, \"burst\";r=0;t=5")]), Some(5));
        assert_eq!(limited(&[("ratelimit", "limit=10, remaining=0, reset=30")]), Some(30));
        assert_eq!(limited(&[("ratelimit", "\"default\";r=1;t=30")]), None);
        assert_eq!(limited(&[("ratelimit", "nonsense")]), None);
    }
}
