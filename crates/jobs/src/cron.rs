//! Lines of cron: five fields, and when a line is due next in a time zone.
//!
//! The grammar and the rule for the two fields of days are those of Vixie's cron. The parser is small and is our own because the known crates
//! leave open what is done when the clock is changed, which [`Cron::next`] says.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// Days that are searched for the next run: the days of the week of 29 February repeat after 28 years, or after 40 around a year such as
/// 2100.
const HORIZON: u32 = 41 * 366;
const ALL_HOURS: u64 = (1 << 24) - 1;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something is due: minute, hour, day of the month, month, day of the week.
///
/// ```
/// use huntsman_jobs::Cron;
/// use jiff::tz::TimeZone;
///
/// let nightly: Cron = "0 3 * * *".parse()?;
/// let after = "2026-02-28T12:00:00Z".parse().unwrap();
/// let due = nightly.next(after, &TimeZone::UTC).unwrap();
/// assert_eq!(due.to_string(), "2026-03-01T03:00:00Z");
/// # Ok::<(), huntsman_jobs::CronError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day has to be in both fields of days. It is enough that it is in one of them if both are restricted.
    needs_both: bool,
}

/// Why a line of cron is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError(String);

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CronError {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A field: its name, its lowest and highest number, and names for its numbers from the lowest one on.
struct Field(&'static str, u32, u32, &'static [&'static str]);

impl Field {
    fn parse(&self, text: &str) -> Result<u64, CronError> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                None => (part, 1),
                Some((range, step)) => {
                    let step = step.parse().ok().filter(|step| (1..=self.2).contains(step));
                    (range, step.ok_or_else(|| self.wrong(part, "the step must be a number above 0"))?)
                }
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.1, self.2),
                Some((from, to)) => (self.number(part, from)?, self.number(part, to)?),
                None if step > 1 => return Err(self.wrong(part, "a step needs a range, such as 10-50/10")),
                None => {
                    let number = self.number(part, range)?;
                    (number, number)
                }
            };
            if from > to {
                return Err(self.wrong(part, "the range goes backwards"));
            }
            let step = usize::try_from(step).unwrap_or(usize::MAX);
            set |= (from..=to).step_by(step).fold(0, |set, number| set | 1 << number);
        }
        Ok(set)
    }

    fn number(&self, part: &str, text: &str) -> Result<u32, CronError> {
        let named = self.3.iter().zip(self.1..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = named.map(|(_, number)| number).or_else(|| text.parse().ok().filter(|_| is_number));
        number
            .filter(|number| (self.1..=self.2).contains(number))
            .ok_or_else(|| self.wrong(part, &format!("use numbers from {} to {}", self.1, self.2)))
    }

    fn wrong(&self, part: &str, why: &str) -> CronError {
        CronError(format!("{} {part:?}: {why}", self.0))
    }
}

impl std::str::FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let line = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(CronError(format!(
                "{text:?}: use five fields (minute, hour, day, month, day of the week), or @hourly, @daily, @weekly, @monthly, @yearly"
            )));
        };
        let weekdays = Field("day of the week", 0, 7, &WEEKDAYS).parse(weekday)?;
        let cron = Self {
            text: text.trim().to_owned(),
            minutes: Field("minute", 0, 59, &[]).parse(minute)?,
            hours: Field("hour", 0, 23, &[]).parse(hour)?,
            days: Field("day of the month", 1, 31, &[]).parse(day)?,
            months: Field("month", 1, 12, &MONTHS).parse(month)?,
            // Sunday is 0 and 7.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            needs_both: day.starts_with('*') || weekday.starts_with('*'),
        };
        let any = Date::constant(2000, 1, 1).at(0, 0, 0, 0);
        cron.first_from(any).ok_or_else(|| CronError(format!("{text:?}: this day never comes")))?;
        Ok(cron)
    }
}

impl Cron {
    /// When the line is due next, later than `after`.
    ///
    /// When the clock is set forward, a run whose time is left out comes as much later (02:30 at 03:30 if an hour is left out). When it
    /// is set back, the run of a time that comes twice comes once, at the first of the two. A line for every hour does not look at the
    /// clock for its hours: it is due in every hour that passes.
    ///
    /// `None` if the time is beyond all calendars.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.hours == ALL_HOURS { self.next_hourly(after, zone) } else { self.next_daily(after, zone) }
    }

    fn next_daily(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut civil = zone.to_datetime(after);
        loop {
            civil = self.first_from(next_minute(civil)?)?;
            let due = zone.to_ambiguous_timestamp(civil).compatible().ok()?;
            // What is not later is the first of two equal times, and was due then.
            if due > after {
                return Some(due);
            }
        }
    }

    fn next_hourly(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut from = Timestamp::from_second(after.as_second().div_euclid(60) * 60 + 60).ok()?;
        loop {
            let offset = zone.to_offset(from);
            let due = offset.to_timestamp(self.first_from(offset.to_datetime(from))?).ok()?;
            match zone.following(from).next().map(|change| change.timestamp()) {
                Some(change) if change <= due => from = change,
                _ => return Some(due),
            }
        }
    }

    /// The first fitting time from this one on.
    fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let (mut date, mut hour, mut minute) = (from.date(), from.hour(), from.minute());
        for _ in 0..HORIZON {
            if self.has_day(date) {
                let later = |hour: i8| (hour..24).find(|hour| has(self.hours, *hour));
                let in_hour = |from: i8| (from..60).find(|minute| has(self.minutes, *minute));
                let now = in_hour(minute).filter(|_| has(self.hours, hour)).map(|minute| (hour, minute));
                if let Some((hour, minute)) = now.or_else(|| Some((later(hour + 1)?, in_hour(0)?))) {
                    return Some(date.at(hour, minute, 0, 0));
                }
            }
            date = date.tomorrow().ok()?;
            (hour, minute) = (0, 0);
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let fits = if self.needs_both { day && weekday } else { day || weekday };
        fits && has(self.months, date.month())
    }
}

fn has(set: u64, number: i8) -> bool {
    set >> number & 1 == 1
}

fn next_minute(time: DateTime) -> Option<DateTime> {
    let minute = time.date().at(time.hour(), time.minute(), 0, 0);
    minute.checked_add(jiff::SignedDuration::from_mins(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The zone of Berlin: on 2026-03-29 there is no 02:00 to 03:00, and on 2026-10-25 that hour comes twice.
    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn runs(line: &str, after: &str, zone: &TimeZone, many: usize) -> Vec<String> {
        let cron: Cron = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let mut last: Timestamp = after.parse().unwrap();
        let mut next = || {
            last = cron.next(last, zone).expect("there is a next run");
            last.to_string()
        };
        (0..many).map(|_| next()).collect()
    }

    #[test]
    fn lines_are_due_as_in_vixies_cron() {
        for (line, expected) in [
            ("0 3 * * *", ["2026-11-24T03:00:00Z", "2026-11-25T03:00:00Z"]),
            ("*/20 22-23 * * *", ["2026-11-23T22:20:00Z", "2026-11-23T22:40:00Z"]),
            ("5,50 * * * *", ["2026-11-23T22:05:00Z", "2026-11-23T22:50:00Z"]),
            ("0 0 1 jan *", ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
            ("30 6 * * Mon-Fri", ["2026-11-24T06:30:00Z", "2026-11-25T06:30:00Z"]),
            ("0 0 * * 7", ["2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"]),
            ("@weekly", ["2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"]),
            ("@hourly", ["2026-11-23T23:00:00Z", "2026-11-24T00:00:00Z"]),
            // Both fields of days are restricted, so one of them is enough.
            ("0 0 25 * fri", ["2026-11-25T00:00:00Z", "2026-11-27T00:00:00Z"]),
            // A field that begins with a star is not restricted in this sense.
            ("0 0 */2 * tue", ["2026-12-01T00:00:00Z", "2026-12-15T00:00:00Z"]),
            ("0 0 31 * *", ["2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z"]),
            ("0 0 29 2 *", ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ] {
            assert_eq!(runs(line, "2026-11-23T22:01:53Z", &TimeZone::UTC, 2), expected, "{line}");
        }
        let century = runs("0 0 29 2 *", "2096-03-01T00:00:00Z", &TimeZone::UTC, 1);
        assert_eq!(century, ["2104-02-29T00:00:00Z"], "2100 is no leap year");
    }

    #[test]
    fn what_is_no_line_of_cron_is_refused_with_its_field() {
        for (line, part) in [
            ("0 3 * *", "five fields"),
            ("0 3 * * * *", "five fields"),
            ("@reboot", "five fields"),
            ("60 3 * * *", "minute"),
            ("0 24 * * *", "hour"),
            ("0 0 0 * *", "day of the month"),
            ("0 0 * 13 *", "month"),
            ("0 0 * * 8", "day of the week"),
            ("*/0 * * * *", "step"),
            ("5/10 * * * *", "step needs a range"),
            ("9-5 * * * *", "backwards"),
            ("+5 * * * *", "minute"),
            ("1,, * * * *", "minute"),
            ("0 0 30 feb *", "never comes"),
        ] {
            let error = line.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_time_that_the_clock_leaves_out_comes_later_and_one_that_comes_twice_runs_once() {
        let daily = runs("30 2 * * *", "2026-03-28T12:00:00Z", &berlin(), 2);
        assert_eq!(
            daily,
            ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
            "03:30, then 02:30 of summer time"
        );
        let daily = runs("30 2 * * *", "2026-10-24T12:00:00Z", &berlin(), 2);
        assert_eq!(daily, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let half_hours = runs("0,30 * * * *", "2026-03-29T00:30:00Z", &berlin(), 3);
        assert_eq!(half_hours, ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:00:00Z"]);
        let half_hours = runs("0,30 * * * *", "2026-10-25T00:00:00Z", &berlin(), 4);
        assert_eq!(
            half_hours,
            ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"],
            "both hours of that night"
        );
        // Lord Howe Island sets its clock by half an hour.
        let lord_howe = TimeZone::posix("LHST-10:30LHDT-11,M10.1.0,M4.1.0").unwrap();
        let hourly = runs("0 * * * *", "2026-10-03T14:00:00Z", &lord_howe, 3);
        assert_eq!(hourly, ["2026-10-03T14:30:00Z", "2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z"]);
    }
}
