//! Which of two texts was there first.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What is known of when a text was there. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dates {
    /// An archive has a copy of that time.
    pub archived: Option<SystemTime>,
    /// A crawl of ours saw it then.
    pub first_seen: Option<SystemTime>,
    /// The page says that it was published then (its meta data, a sitemap, a feed).
    pub published: Option<SystemTime>,
    /// The server says that it was not changed since (`Last-Modified`).
    pub last_modified: Option<SystemTime>,
}

impl Dates {
    /// The earliest time at which it was there, by somebody else's word; what a page says of itself does not count.
    pub fn proven(self) -> Option<SystemTime> {
        [self.archived, self.first_seen].into_iter().flatten().min()
    }

    /// The earliest time at which it was there, by anybody's word.
    pub fn claimed(self) -> Option<SystemTime> {
        [self.proven(), self.published, self.last_modified].into_iter().flatten().min()
    }
}

/// Which text was there first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The source was there first: the article may copy it.
    SourceOlder,
    /// The article was there first: the source may copy it, or both copy a third.
    SourceNewer,
    /// Nothing is known, or the dates lie too close together.
    Unknown,
}

/// Dates that lie closer than this tell nothing: clocks, time zones, a crawl that comes by once a day.
const MARGIN: Duration = Duration::from_secs(24 * 60 * 60);

impl Direction {
    /// Which was there first.
    ///
    /// A page can claim any date for itself. So a side counts as newer by all its dates, its own claims included (nobody
    /// makes a page younger than it is to be accused), but as older only by what others prove; if neither side has such a
    /// proof, by what both claim.
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
