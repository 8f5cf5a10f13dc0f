//! Decides which of two texts is older.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The dates at which a text is known or said to have existed. Unknown dates are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dates {
    /// The time of a copy in an archive.
    pub archived: Option<SystemTime>,
    /// The time at which our own crawl first saw the text.
    pub first_seen: Option<SystemTime>,
    /// The time of publication according to the page (its metadata, a sitemap, a feed).
    pub published: Option<SystemTime>,
    /// The time of the last change according to the server (`Last-Modified`).
    pub last_modified: Option<SystemTime>,
}

impl Dates {
    /// The earliest time at which a third party saw the text; what a page says of itself does not count.
    pub fn proven(self) -> Option<SystemTime> {
        [self.archived, self.first_seen].into_iter().flatten().min()
    }

    /// The earliest time at which the text existed according to any of the dates.
    pub fn claimed(self) -> Option<SystemTime> {
        [self.proven(), self.published, self.last_modified].into_iter().flatten().min()
    }
}

/// Which of two texts is older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The source is older: the article may copy it.
    SourceOlder,
    /// The article is older: the source may copy it, or both copy a third.
    SourceNewer,
    /// No dates are known, or they are too close together.
    Unknown,
}

/// Dates closer together than this decide nothing, because of clocks, time zones, and crawls that visit once a day.
const MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

impl Direction {
    /// Decides from the dates of both which text is older.
    ///
    /// A page can claim any date for itself. So a side counts as newer by all its dates, its own claims included (a page has no reason to
    /// claim that it is newer, which would make it suspect), but as older only by dates that others prove; if neither side has such a
    /// proof, the claims of both are compared.
    pub fn of(article: Dates, source: Dates) -> Self {
        let earlier = |a: Option<SystemTime>, b: Option<SystemTime>| match (a, b) {
            (Some(a), Some(b)) => b.duration_since(a).is_ok_and(|apart| apart > MARGIN),
            _ => false,
        };
        let source_older = earlier(source.proven(), article.claimed());
        let source_newer = earlier(article.proven(), source.claimed());
        match (source_older, source_newer) {
            (true, false) => Self::SourceOlder,
            (false, true) => Self::SourceNewer,
            _ if article.proven().is_none() && source.proven().is_none() => {
                if earlier(source.claimed(), article.claimed()) {
                    Self::SourceOlder
                } else if earlier(article.claimed(), source.claimed()) {
                    Self::SourceNewer
                } else {
                    Self::Unknown
                }
            }
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(days: u64) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + MARGIN * u32::try_from(days).unwrap())
    }

    #[test]
    fn what_was_proven_first_is_older() {
        let article = Dates { first_seen: day(20), ..Dates::default() };
        let archived = Dates { archived: day(10), published: day(15), ..Dates::default() };
        assert_eq!(Direction::of(article, archived), Direction::SourceOlder);
        assert_eq!(Direction::of(archived, article), Direction::SourceNewer);
    }

    #[test]
    fn a_page_cannot_make_itself_older() {
        let article = Dates { archived: day(20), ..Dates::default() };
        let liar = Dates { published: day(1), first_seen: day(40), ..Dates::default() };
        assert_eq!(Direction::of(article, liar), Direction::Unknown);
    }

    #[test]
    fn dates_within_a_day_and_no_dates_tell_nothing() {
        let at = |days| Dates { first_seen: day(days), ..Dates::default() };
        assert_eq!(Direction::of(at(10), at(11)), Direction::Unknown);
        assert_eq!(Direction::of(at(10), Dates::default()), Direction::Unknown);
        let claims = |days| Dates { published: day(days), ..Dates::default() };
        assert_eq!(Direction::of(claims(10), claims(5)), Direction::SourceOlder);
    }
}
