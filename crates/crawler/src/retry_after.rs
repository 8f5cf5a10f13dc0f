//! When a server says that it wants to be left alone: `Retry-After` and the rate-limit headers.
//!
//! Everything here turns header values into a time to wait from `now`, which is an argument. Nonsense is ignored. Whether a
//! long wait is obeyed is the caller's decision.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, header};

use crate::clock::Timestamp;

/// The time to wait that a `Retry-After` value asks for (RFC 9110, section 10.2.3): seconds or an HTTP date.
///
/// Nothing for what is neither: negative numbers, fractions, words. A date in the past is zero. More than `cap` is
/// `cap`; a number that does not fit into 64 bits is ignored.
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

/// What the `Retry-After` of these headers asks for, counted from `now`, however long that is.
pub fn wait_asked_for(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    retry_after(value, UNIX_EPOCH + Duration::from_micros(now.0), Duration::MAX)
}

/// The time until a rate limit is lifted, if it is used up now.
///
/// `header` looks up a header by its lower-case name. Both families are read, `RateLimit-*` first: used up means that
/// `-Remaining` is 0 (or negative, as some count). The reset is a number of seconds, or, as many services
/// have it in the `X-` family, a point in Unix time: a number so large that it would be more than ten years from now
/// cannot be meant as a delay (in milliseconds when larger still). The single-header form of later drafts
/// (`RateLimit: "default";r=0;t=30`, also `limit=10, remaining=0, reset=30`) counts as well. `Retry-After` is not
/// looked at. More than `cap` is `cap`.
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

/// Remaining and reset out of `"default";r=0;t=30` or `limit=10, remaining=0, reset=30`.
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

/// A delay longer than this is meant as a point in Unix time.
const LONGEST_DELAY: u64 = 10 * 365 * 86_400;
/// A point in Unix time beyond this (the year 5138) is meant in milliseconds.
const LAST_SECOND: u64 = 100_000_000_000;

fn reset_wait(reset: &str, now: SystemTime) -> Option<Duration> {
    // GitHub and others write whole numbers, a few services fractions: "1.2".
    let reset = reset.trim();
    let whole = reset.split_once('.').map_or(reset, |(whole, _)| whole);
    match digits(whole) {
        Some(delay) if delay.as_secs() <= LONGEST_DELAY => Some(delay),
        Some(point) => {
            let seconds =
                if point.as_secs() > LAST_SECOND { point.as_secs() / 1000 } else { point.as_secs() };
            let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(Duration::from_secs(seconds).saturating_sub(since_epoch))
        }
        None => Some(httpdate::parse_http_date(reset).ok()?.duration_since(now).unwrap_or_default()),
    }
}

/// A number of nothing but digits, in seconds; too many digits are the largest number.
fn digits(value: &str) -> Option<Duration> {
    let number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    // A number that does not fit is no time that anybody means.
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
