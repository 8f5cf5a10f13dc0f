//! Files of a site for robots: robots.txt and sitemaps, as far as an audit needs to know them.

use huntsman_crawler::robots::{Robots, RobotsFault, faults};
use huntsman_crawler::{Page, SitemapEntry, SitemapKind, SitemapLimits, SitemapReport, Timestamp, xml_fault};
use huntsman_text::time::parse_rfc3339;
use serde::{Deserialize, Serialize};

use crate::answer_record::asked_of;
use crate::page::without_fragment;
use crate::record::Alternate;

/// Faults and dates of one file that are kept as examples; all are counted.
const MAX_EXAMPLES: usize = 20;
/// Sitemaps of one robots.txt that are kept.
const MAX_SITEMAPS: usize = 1_000;
/// Characters of a date that are kept.
const MAX_DATE: usize = 40;
/// Entries that a sitemap may have (sitemaps.org).
pub(crate) const MAX_ENTRIES: usize = 50_000;
/// Bytes that a sitemap may have, unpacked (sitemaps.org).
pub(crate) const MAX_BYTES: u64 = 50 << 20;
/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;

/// A robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RobotsFile {
    /// The URLs of its sitemaps, at most 1,000.
    pub sitemaps: Vec<String>,
    /// Number of its lines that robots may misunderstand.
    pub faults: usize,
    /// The first of these lines.
    pub examples: Vec<RobotsLine>,
}

/// A line of a robots.txt that robots may misunderstand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RobotsLine {
    /// Its number, from 1.
    pub line: u32,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl RobotsFile {
    /// The file in an answer.
    pub(crate) fn of(page: &Page) -> Self {
        let body = &page.response().body;
        let sitemaps = Robots::parse(body).sitemaps(page.url());
        let faults = faults(body);
        let example = |fault: &RobotsFault| RobotsLine {
            line: fault.line,
            text: fault.text.clone(),
            why: fault.kind.describe().to_owned(),
        };
        Self {
            sitemaps: sitemaps.iter().take(MAX_SITEMAPS).map(without_fragment).collect(),
            faults: faults.len(),
            examples: faults.iter().take(MAX_EXAMPLES).map(example).collect(),
        }
    }
}

/// A sitemap that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SitemapFile {
    /// The URL that was asked for, if it redirects to that of the answer.
    pub asked: Option<String>,
    /// The kind, such as `urlset` or `index`; `None` if it is no sitemap.
    pub kind: Option<String>,
    /// Number of its entries.
    pub entries: usize,
    /// Number of entries without an http or https URL.
    pub invalid: usize,
    /// Number of entries whose URL is not absolute.
    pub relative: usize,
    /// Whether its markup or its compression is damaged.
    pub is_damaged: bool,
    /// Why it is no well-formed XML, with the line, if it is meant to be XML. The crawl reads such files even so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xml_fault: Option<String>,
    /// Whether it has more bytes, unpacked, than sitemaps may have (50 MB).
    pub is_too_large: bool,
    /// Whether a limit of the crawl left out a part of it that is within the limits of sitemaps.
    pub has_more: bool,
    /// Number of dates that are none, or in the future.
    pub wrong_dates: usize,
    /// The first of these dates.
    pub dates: Vec<String>,
    /// The entries that name pages in other languages (`xhtml:link rel=alternate`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub translations: Vec<Translations>,
}

/// What an entry of a sitemap says of a page in other languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Translations {
    /// The URL of the page, without its fragment.
    pub url: String,
    /// The page in each language, in the order of the sitemap.
    pub alternates: Vec<Alternate>,
}

impl SitemapFile {
    /// Notes what an entry says besides its URL.
    pub(crate) fn add(&mut self, entry: &SitemapEntry, now: Timestamp) {
        let alternates = entry.alternates.iter().filter_map(|alternate| {
            let lang = alternate.hreflang.as_deref()?.trim().to_ascii_lowercase();
            Some(Alternate { lang, url: without_fragment(&alternate.href) })
        });
        let alternates: Vec<Alternate> = alternates.collect();
        if !alternates.is_empty() {
            self.translations.push(Translations { url: without_fragment(&entry.loc), alternates });
        }
        self.add_date(entry, now);
    }

    fn add_date(&mut self, entry: &SitemapEntry, now: Timestamp) {
        let Some(date) = entry.lastmod.as_deref().filter(|date| !is_past_date(date, now)) else { return };
        self.wrong_dates += 1;
        if self.dates.len() < MAX_EXAMPLES {
            self.dates.push(date.chars().take(MAX_DATE).collect());
        }
    }

    /// Notes what reading told.
    pub(crate) fn finish(&mut self, page: &Page, report: &SitemapReport, limits: SitemapLimits) {
        self.asked = Some(asked_of(page)).filter(|asked| *asked != without_fragment(page.url()));
        self.kind = report.kind.map(|kind| kind.name().to_owned());
        self.entries = report.entries + report.entries_cut;
        self.has_more = (report.entries_cut > 0 && report.entries < MAX_ENTRIES)
            || (report.is_cut && limits.max_bytes < MAX_BYTES);
        self.invalid = report.invalid;
        self.relative = report.relative;
        self.is_too_large =
            (report.is_cut && limits.max_bytes >= MAX_BYTES) || page.response().body.len() as u64 > MAX_BYTES;
        // The end of a document that was cut is missing because of that.
        self.is_damaged = (report.is_damaged && !report.is_cut) || report.is_too_deep;
        if report.kind.is_some_and(|kind| kind != SitemapKind::Text) {
            self.xml_fault = xml_fault(&page.response().body, limits.max_bytes);
        }
        if !matches!(report.kind, Some(SitemapKind::UrlSet | SitemapKind::Index)) {
            // Feeds have dates of other forms.
            (self.wrong_dates, self.dates) = (0, Vec::new());
        }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn fault(&self) -> Option<String> {
        let entries = |number: usize, what: &str| match number {
            0 => None,
            1 => Some(format!("an entry {what}")),
            _ => Some(format!("{number} entries {what}")),
        };
        let is_of_urls = matches!(self.kind.as_deref(), Some("urlset" | "index"));
        let faults = [
            self.kind.is_none().then(|| "no sitemap".to_owned()),
            self.xml_fault.clone().or_else(|| self.is_damaged.then(|| "damaged".to_owned())),
            entries(self.invalid, "without an http or https URL"),
            entries(self.relative, "with a relative URL"),
            (is_of_urls && self.entries + self.invalid == 0).then(|| "no entries".to_owned()),
        ];
        let faults: Vec<String> = faults.into_iter().flatten().collect();
        (!faults.is_empty()).then(|| faults.join(", "))
    }
}

/// Whether a text is a date of the profile of ISO 8601 that sitemaps have (W3C NOTE-datetime, where a time has a zone), and not later than a day
/// from now.
fn is_past_date(text: &str, now: Timestamp) -> bool {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let first = format!("{date}{}", "-01".repeat(2 - date.matches('-').count().min(2)));
    let is_date =
        matches!(date.len(), 4 | 7 | 10) && parse_rfc3339(&format!("{first}T00:00:00.000Z")).is_some();
    let tomorrow = Timestamp(now.0.saturating_add(DAY)).to_rfc3339();
    is_date
        && tomorrow.get(..date.len()).is_some_and(|latest| date <= latest)
        && time.is_none_or(|time| date.len() == 10 && is_time(time))
}

/// Whether a text is a time of the day with its zone: `10:30Z`, `10:30:59.25+02:00`.
fn is_time(text: &str) -> bool {
    let end = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(end);
    let is_below = |part: Option<&str>, limit: u8| {
        part.is_some_and(|part| part.len() == 2 && part.parse::<u8>().is_ok_and(|number| number < limit))
    };
    let is_hour =
        |text: &str| is_below(text.get(..2), 24) && is_below(text.get(3..5), 60) && text[2..3] == *":";
    let seconds = time.get(5..).unwrap_or_default();
    let is_fraction = |text: &str| {
        text.is_empty()
            || text
                .strip_prefix('.')
                .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_second = seconds.is_empty()
        || (seconds.starts_with(':')
            && is_below(seconds.get(1..3), 61)
            && seconds.get(3..).is_some_and(is_fraction));
    let is_zone = zone == "Z" || (zone.len() == 6 && is_hour(&zone[1..]));
    time.is_ascii() && zone.is_ascii() && is_hour(time) && is_second && is_zone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_sitemaps_are_told_from_other_texts() {
        let now = Timestamp::from_rfc3339("2026-11-26T10:00:00.000Z").unwrap();
        for date in [
            "2026",
            "2026-11",
            "2026-11-26",
            "2026-11-27",
            "2024-02-29",
            "2026-11-26T10:00Z",
            "2026-11-26T10:00:59+02:00",
            "2026-11-26T10:00:59.25-11:30",
        ] {
            assert!(is_past_date(date, now), "{date}");
        }
        for date in [
            "",
            "26.11.2026",
            "2026-13",
            "2026-02-30",
            "2026-1-5",
            "2026/11/26",
            "2026-11-26 10:00:00",
            "2026-11-26T",
            "2026-11T10:00Z",
            "2026-11-26T25:00Z",
            "2026-11-26T10:00:59.Z",
            "2026-11-26T10:00:59",
            "2026-11-26T10:00+2",
            "2026-11-26Té0:00Z",
            "Thu, 26 Nov 2026 10:00:00 GMT",
            "2026-11-28",
            "2027",
            "0000-00-00",
        ] {
            assert!(!is_past_date(date, now), "{date}");
        }
    }
}
