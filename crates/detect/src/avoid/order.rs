//! The order of values: numbers, dates, versions, and identifiers in the order of their discovery.

/// The least number of letters and digits of an identifier, and of digits among them.
const IDENTIFIER: usize = 6;
const DIGITS: usize = 2;
/// The most digits of a number that is compared as such.
const MAX_DIGITS: usize = 18;
/// The most numbers of a version, and the limit of each.
const NUMBERS_OF_VERSION: u32 = 4;
const LIMIT_OF_NUMBER: i64 = 1 << 15;

/// The place of a value among others of the same sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sort: Sort,
    pub(crate) at: i64,
}

/// What orders a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Sort {
    /// Nothing.
    #[default]
    None,
    Number,
    /// A date, perhaps with a time, as seconds.
    Date,
    /// A number with a sign before or behind it, such as `20240501101500-`. Where the sign marks the end of a range, the number alone is often the beginning
    /// of one, so the two are no neighbours.
    OpenNumber,
    /// A date with such a sign.
    OpenDate,
    /// The numbers of a version, such as `3.11` or `v1.2.3`.
    Version,
    /// An identifier, such as a revision, by the number of those that were found before it.
    Identifier,
}

impl Place {
    /// The place of a value; that of an identifier is still to be looked up.
    pub(crate) fn of(value: &str) -> Self {
        let none = Self::default();
        if !value.is_ascii() || value.len() > 64 {
            return none;
        }
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 {
            return none;
        }
        let open = value.trim_matches(|c: char| c.is_ascii_punctuation());
        let is_open = open.len() < value.len();
        let unsigned = value.strip_prefix('-').unwrap_or(value);
        if digits <= MAX_DIGITS && digits == unsigned.len() {
            return Self { sort: Sort::Number, at: value.parse().unwrap_or_default() };
        }
        if digits <= MAX_DIGITS && digits == open.len() {
            return Self { sort: Sort::OpenNumber, at: open.parse().unwrap_or_default() };
        }
        if let Some(at) = date(open) {
            return Self { sort: if is_open { Sort::OpenDate } else { Sort::Date }, at };
        }
        if let Some(at) = version(value) {
            return Self { sort: Sort::Version, at };
        }
        let letters = value.bytes().filter(u8::is_ascii_alphanumeric).count();
        let is_identifier = digits >= DIGITS && letters >= IDENTIFIER && letters == value.len();
        if is_identifier { Self { sort: Sort::Identifier, at: 0 } } else { none }
    }
}

impl Sort {
    /// The place as a text. The days of a month and the months of a year are counted from 1, but the last of each is a 0 of the next; the
    /// result is then a day off at most.
    pub(crate) fn name(self, at: i64) -> String {
        match self {
            Self::Date | Self::OpenDate => {}
            Self::Version => return version_of(at),
            _ => return at.to_string(),
        }
        let (mut rest, mut parts) = (at, [0; 6]);
        for (part, of) in parts.iter_mut().rev().zip([60, 60, 24, 31, 12]) {
            (*part, rest) = (rest.rem_euclid(of), rest.div_euclid(of));
        }
        let [_, mut month, day, hours, minutes, seconds] = parts;
        if month == 0 {
            (month, rest) = (12, rest - 1);
        }
        let time = if (hours, minutes, seconds) == (0, 0, 0) {
            String::new()
        } else {
            format!(" {hours:02}:{minutes:02}:{seconds:02}")
        };
        let day = if day == 0 { String::new() } else { format!("-{day:02}") };
        format!("{rest:04}-{month:02}{day}{time}")
    }
}

/// A date and time as seconds, with months of 31 days: only distances within a site count. The parts are groups of digits from the year
/// down, such as `2024-05-01T10:15:00`.
fn date(value: &str) -> Option<i64> {
    let is_part = |byte: u8| {
        byte.is_ascii_digit() || matches!(byte, b'-' | b'/' | b'.' | b':' | b' ' | b'T' | b'Z' | b'+')
    };
    if !value.bytes().all(is_part) {
        return None;
    }
    let mut groups = value.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty());
    let year: i64 = groups.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut seconds = year;
    for (at, parts) in [12, 31, 24, 60, 60].into_iter().enumerate() {
        let group: Option<i64> = groups.next().map(|group| group.parse().unwrap_or_default());
        // A month at least; a single number is none.
        if at == 0 && group.is_none() {
            return None;
        }
        seconds = seconds * parts + group.unwrap_or_default().min(parts);
    }
    Some(seconds)
}

/// The numbers of a version as one number, in which each has 15 bits.
fn version(value: &str) -> Option<i64> {
    let numbers = value.strip_prefix(['v', 'V']).unwrap_or(value);
    let (mut at, mut count) = (0, 0);
    for number in numbers.split('.') {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { number.parse().ok()? } else { LIMIT_OF_NUMBER };
        if number >= LIMIT_OF_NUMBER || count == NUMBERS_OF_VERSION {
            return None;
        }
        (at, count) = (at * LIMIT_OF_NUMBER + number, count + 1);
    }
    (count >= 2).then(|| at * LIMIT_OF_NUMBER.pow(NUMBERS_OF_VERSION - count))
}

/// The version of a number, with two numbers at least and without zeros behind these. A place below all versions is that of `0.0`.
fn version_of(at: i64) -> String {
    let (mut rest, mut numbers) = (at.max(0), Vec::new());
    for power in (0..NUMBERS_OF_VERSION).rev().map(|power| LIMIT_OF_NUMBER.pow(power)) {
        numbers.push(rest / power);
        rest %= power;
    }
    while numbers.len() > 2 && numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_dates_versions_and_identifiers_have_places_and_words_have_none() {
        for (value, sort) in [
            ("17", Sort::Number),
            ("-3", Sort::Number),
            ("2024-05-01", Sort::Date),
            ("2017-08-19 06:05:27", Sort::Date),
            ("2024/05", Sort::Date),
            ("2024-05-01T10:15:00Z", Sort::Date),
            ("20240501101500-", Sort::OpenNumber),
            ("18+", Sort::OpenNumber),
            ("..2024-05-01", Sort::OpenDate),
            ("9344c35472eb9ac0", Sort::Identifier),
            ("article", Sort::None),
            ("part2", Sort::None),
            ("1.2", Sort::Version),
            ("v2.10.0", Sort::Version),
            ("10.0.19045.3803", Sort::Version),
            ("1.2.3.4.5", Sort::None),
            ("1.2-rc1", Sort::None),
            ("1..2", Sort::None),
            ("v", Sort::None),
            ("", Sort::None),
        ] {
            assert_eq!(Place::of(value).sort, sort, "{value}");
        }
        let at = |value: &str| Place::of(value).at;
        assert!(at("2017-08-19 06:05:27") < at("2017-08-19 06:05:28"));
        assert!(at("2017-08-31 23:59:59") < at("2017-09-01 00:00:00"));
        assert!(at("2016-12-31") < at("2017-01-01"));
        assert!(at("3.9") < at("3.9.1") && at("3.9.1") < at("v3.10") && at("v3.10") < at("4.0"));
    }

    #[test]
    fn places_are_named_as_their_values() {
        for value in [
            "17",
            "-3",
            "2024-05-01",
            "2017-08-19 06:05:27",
            "2024-12-24",
            "2024-05",
            "3.11",
            "1.0",
            "1.0.2.7",
        ] {
            let place = Place::of(value);
            assert_eq!(place.sort.name(place.at), value);
        }
    }
}
