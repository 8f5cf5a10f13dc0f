//! Properties of a path by which endless address spaces are recognised. All are pure functions; the caller sets the limits.
//!
//! They take the path as it stands in the address (`/a/b`), without the query; [`years`] takes path and query.

/// The number of segments of the path; a slash at the end adds none. `/` has 0, `/a/b/` has 2.
pub fn segment_count(path: &str) -> usize {
    let path = trimmed(path);
    if path.is_empty() { 0 } else { path.split('/').count() }
}

/// The number of occurrences of the most frequent segment of the path, at any position. Empty segments do not count, because `//` is a
/// typing error on many real sites.
pub fn most_repeated_segment(path: &str) -> usize {
    let mut segments: Vec<&str> = trimmed(path).split('/').filter(|s| !s.is_empty()).collect();
    segments.sort_unstable();
    segments.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0)
}

/// A sequence of segments that is repeated in a row: `/a/b/a/b/a/b/` repeats `a/b` 3 times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Repetition {
    /// The number of segments in the sequence.
    pub segments: usize,
    /// How many times the sequence stands in a row, at least 2.
    pub times: usize,
}

/// Finds the sequence of segments that is repeated most often in a row; if several are, the shortest one. `None` if nothing is repeated in
/// a row.
///
/// The cost is quadratic in the number of segments (0.1 ms for a thousand): check [`segment_count`] first.
pub fn repeated_sequence(path: &str) -> Option<Repetition> {
    let segments: Vec<&str> = trimmed(path).split('/').collect();
    let mut best: Option<Repetition> = None;
    for period in 1..=segments.len() / 2 {
        let mut equal = 0;
        for at in period..segments.len() {
            equal = if segments[at] == segments[at - period] { equal + 1 } else { 0 };
            let times = equal / period + 1;
            if times >= 2 && best.is_none_or(|best| times > best.times) {
                best = Some(Repetition { segments: period, times });
            }
        }
    }
    best
}

/// Appends the template of the path to `out`. The parts that change from page to page are masked, so that paths which one program generated
/// get the same template.
///
/// Each segment is masked by itself: a date (`2024-05-01`, `20240501`) is `{date}`; a UUID or a hexadecimal id of at least 8 characters
/// with a digit is `{hex}`; three or more words joined by `-` or `_` are `{slug}` (an extension stays); in any other segment each run of
/// digits is `{n}`.
///
/// ```
/// use huntsman_text::urlparts::guard::template_into;
///
/// let mut template = String::new();
/// template_into("/blog/2024-05-01/why-we-like-rust.html", &mut template);
/// assert_eq!(template, "/blog/{date}/{slug}.html");
/// ```
pub fn template_into(path: &str, out: &mut String) {
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        let (stem, extension) = match segment.rfind('.') {
            Some(dot) if dot > 0 && segment.len() - dot <= 6 => segment.split_at(dot),
            _ => (segment, ""),
        };
        if is_date(stem) {
            out.push_str("{date}");
        } else if is_hex_id(stem) {
            out.push_str("{hex}");
        } else if is_slug(stem) {
            out.push_str("{slug}");
        } else {
            mask_digits(stem, out);
        }
        mask_digits(extension, out);
    }
}

/// The years of the dates in a path with its query. Endless calendars are recognised by years far from the present.
///
/// A date is `2031-05`, `2031/5/17`, `20310517` (also with `_` or `.`), or a parameter called `year` or `y`. A year is between 1000 and
/// 2999; a number alone (`/item/2031`) does not count as a year.
///
/// ```
/// use huntsman_text::urlparts::guard::years;
///
/// assert_eq!(years("/events/2031/05/?view=week&year=2032").collect::<Vec<_>>(), [2031, 2032]);
/// assert_eq!(years("/item/2031").count(), 0);
/// ```
pub fn years(path_and_query: &str) -> impl Iterator<Item = u16> {
    let bytes = path_and_query.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let start = at;
            at += digit_run(&bytes[at..]);
            let named = start
                .checked_sub(1)
                .is_some_and(|equals| bytes[equals] == b'=' && names_year(&bytes[..equals]));
            let year = match at - start {
                8 if is_date(&path_and_query[start..at]) => &bytes[start..start + 4],
                4 if named || month_follows(&bytes[at..]) => &bytes[start..at],
                _ => continue,
            };
            let year = year.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
            if (1000..=2999).contains(&year) {
                return Some(year);
            }
        }
        None
    })
}

fn names_year(before_equals: &[u8]) -> bool {
    let name = before_equals.rsplit(|b| matches!(b, b'?' | b'&' | b';' | b'/')).next().unwrap_or_default();
    name.eq_ignore_ascii_case(b"year") || name.eq_ignore_ascii_case(b"y")
}

fn month_follows(after_year: &[u8]) -> bool {
    let [b'-' | b'/' | b'_' | b'.', month @ ..] = after_year else { return false };
    match digit_run(month) {
        1 => month[0] != b'0',
        2 => matches!(month[..2], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2']),
        _ => false,
    }
}

fn digit_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn trimmed(path: &str) -> &str {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |range: std::ops::Range<usize>| -> Option<u32> {
        let part = &bytes[range];
        part.iter().all(u8::is_ascii_digit).then(|| part.iter().fold(0, |n, b| n * 10 + u32::from(b - b'0')))
    };
    let fields = match bytes.len() {
        8 => (number(0..4), number(4..6), number(6..8)),
        10 if matches!(bytes[4], b'-' | b'_' | b'.') && bytes[4] == bytes[7] => {
            (number(0..4), number(5..7), number(8..10))
        }
        _ => return false,
    };
    matches!(fields, (Some(1000..=2999), Some(1..=12), Some(1..=31)))
}

fn is_hex_id(text: &str) -> bool {
    let uuid = text.len() == 36 && text.bytes().filter(|&b| b == b'-').count() == 4;
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit() || (uuid && b == b'-'));
    // Digits alone are a number, letters alone may be a word ("defaced").
    hex && text.len() >= 8 && digits > 0 && digits < text.len()
}

fn is_slug(text: &str) -> bool {
    let mut words = 0;
    for word in text.split(['-', '_']) {
        if word.is_empty() || !word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'%' || !b.is_ascii()) {
            return false;
        }
        words += usize::from(word.bytes().any(|b| !b.is_ascii_digit()));
    }
    words >= 3
}

fn mask_digits(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        out.push_str("{n}");
        rest = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_counted_without_the_last_slash() {
        for (path, count) in [("/", 0), ("", 0), ("/a", 1), ("/a/", 1), ("/a/b/", 2), ("/a//b", 3)] {
            assert_eq!(segment_count(path), count, "{path}");
        }
    }

    #[test]
    fn frequent_segments_are_found_anywhere() {
        assert_eq!(most_repeated_segment("/a/b/a/c/a/"), 3);
        assert_eq!(most_repeated_segment("/a/b/c"), 1);
        assert_eq!(most_repeated_segment("//a//b//"), 1);
        assert_eq!(most_repeated_segment("/"), 0);
    }

    #[test]
    fn sequences_in_a_row_are_found() {
        let found = |path| repeated_sequence(path).map(|r| (r.segments, r.times));
        assert_eq!(found("/a/b/a/b/a/b/"), Some((2, 3)));
        assert_eq!(found("/x/a/a/a/a/y"), Some((1, 4)));
        assert_eq!(found("/x/a/b/c/a/b/c"), Some((3, 2)));
        assert_eq!(found("/a/b/a/c/a"), None);
        assert_eq!(found("/a/b/c"), None);
        assert_eq!(found("/"), None);
    }

    #[test]
    fn the_quadratic_search_agrees_with_a_naive_one() {
        let naive = |segments: &[&str]| {
            let mut best = None;
            for period in 1..=segments.len() / 2 {
                for start in 0..segments.len() {
                    let unit = &segments[start..(start + period).min(segments.len())];
                    let times = segments[start..].chunks(period).take_while(|c| *c == unit).count();
                    if times >= 2 && best.is_none_or(|(_, most)| times > most) {
                        best = Some((period, times));
                    }
                }
            }
            best
        };
        // Every word of 9 segments over an alphabet of 2, and a few over 3.
        for word in 0..512 + 2000_usize {
            let (base, names) = if word < 512 { (2, ["a", "b", "-"]) } else { (3, ["a", "b", "c"]) };
            let mut digits = word;
            let segments: Vec<&str> = (0..9)
                .map(|_| {
                    let name = names[digits % base];
                    digits /= base;
                    name
                })
                .collect();
            let path = format!("/{}", segments.join("/"));
            assert_eq!(repeated_sequence(&path).map(|r| (r.segments, r.times)), naive(&segments), "{path}");
        }
    }

    #[test]
    fn years_are_those_of_dates() {
        for (text, expected) in [
            ("/cal/2031-05", &[2031][..]),
            ("/cal/2031/5/17", &[2031]),
            ("/cal/20310517.html", &[2031]),
            ("/cal?date=2031-05-17&to=2033_06", &[2031, 2033]),
            ("/cal?Year=2050", &[2050]),
            ("/cal?a=1;y=2050", &[2050]),
            ("/cal?birthyear=2050", &[]),
            ("/item/2031", &[]),
            ("/item/2031/13", &[]),
            ("/item/2031/00", &[]),
            ("/item/2031/123", &[]),
            ("/item/12031-05", &[]),
            ("/item/20319917", &[]),
            ("/0999-05/3000-05/1000-05", &[1000]),
            ("=2031", &[]),
            ("", &[]),
        ] {
            assert_eq!(years(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn templates_mask_what_changes() {
        for (path, expected) in [
            ("/", "/"),
            ("/news/2024/05/01/", "/news/{n}/{n}/{n}/"),
            ("/d/2024-05-01", "/d/{date}"),
            ("/d/20240501", "/d/{date}"),
            ("/d/20249901", "/d/{n}"),
            ("/item/12345.html", "/item/{n}.html"),
            ("/p12v3", "/p{n}v{n}"),
            ("/c/0123456789abcdef0123456789abcdef01234567", "/c/{hex}"),
            ("/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301", "/u/{hex}"),
            ("/blog/why-we-like-rust", "/blog/{slug}"),
            ("/blog/why-we-like-rust-2.html", "/blog/{slug}.html"),
            ("/about-us", "/about-us"),
            ("/defaced", "/defaced"),
            ("/a.mp4", "/a.mp{n}"),
        ] {
            let mut out = String::new();
            template_into(path, &mut out);
            assert_eq!(out, expected, "{path}");
        }
    }
}
