//! `report.html`: a report on a crawl for people, made from its files. It is one file without scripts that loads
//! nothing from elsewhere; all text that came from the web is escaped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use huntsman_crawler::{Timestamp, human_bytes};
use maud::{Markup, html};
use serde::Deserialize;
use url::Url;

use crate::avoid_dup;
use crate::markup::{Web, address, file};
use crate::render::{count, duration, shorten};
use crate::report::{CoverageReport, Report};
use crate::{DROPS, PAGES};

/// Maximum number of rows in a table.
const ROWS: usize = 15;
/// Maximum number of bars in a chart; all further entries share the last one.
const BARS: usize = 12;
/// Maximum number of points on the time line.
const POINTS: u64 = 60;
/// Minimum width of a point on the time line, in hundredths of a second: with a smaller one, the line would show the
/// scheduler of the machine.
const STEP: u64 = 5;

/// The fields that are read from a line of `pages.jsonl`.
#[derive(Debug, Deserialize)]
struct PageLine {
    url: String,
    final_url: String,
    status: u16,
    depth: u16,
    bytes: u64,
    title: Option<String>,
    fetched_at: String,
    elapsed_ms: f64,
    #[serde(default)]
    near_duplicates: Vec<NearLine>,
    copyvio: Option<CopyvioLine>,
}

/// What a page has in common with an article.
#[derive(Clone, Debug, Deserialize)]
struct CopyvioLine {
    confidence: f64,
    score: f64,
    verdict: String,
}

/// An earlier page that a page nearly equals.
#[derive(Clone, Debug, Deserialize)]
struct NearLine {
    url: String,
    distance: u32,
}

/// The fields that are read from a line of `drops.jsonl`.
#[derive(Debug, Deserialize)]
struct DropLine {
    url: String,
    state: String,
    reason: String,
    detail: Option<String>,
    referer: Option<String>,
    status: Option<u16>,
}

/// The numbers for the report. Apart from one counter per second, host and reason, their memory does not grow with
/// the crawl.
#[derive(Debug, Default)]
struct Numbers {
    statuses: BTreeMap<String, u64>,
    depths: BTreeMap<u16, u64>,
    hosts: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
    /// Pages by the time since the first one, in steps of ten milliseconds.
    times: BTreeMap<u64, u64>,
    first: Option<u64>,
    largest: Vec<PageLine>,
    slowest: Vec<PageLine>,
    /// Near-duplicates by their distance from the nearest page, and the first of them.
    distances: BTreeMap<u32, u64>,
    near: Vec<PageLine>,
    /// Pages that the article seems to be copied from.
    copied: Vec<PageLine>,
    failed: Vec<DropLine>,
}

/// The report of a crawl as one HTML page, made from its report and the files `pages.jsonl` and `drops.jsonl` in its directory. The page
/// has no scripts, loads nothing, and all text from the web in it is escaped. Of a record of a page it reads `url`, `final_url`, `status`,
/// `depth`, `bytes`, `title`, `fetched_at` (RFC 3339 with milliseconds), `elapsed_ms` and, if there are any, `near_duplicates` and `copyvio`;
/// lines without these fields are skipped. Reads the files once; memory does not grow with them.
///
/// # Errors
/// A file cannot be read.
pub fn html_report(directory: &Path, report: &Report) -> io::Result<String> {
    let mut numbers = Numbers::default();
    for_lines(&directory.join(PAGES), |line: PageLine| numbers.page(line))?;
    for_lines(&directory.join(DROPS), |line: DropLine| numbers.dropped(line))?;
    let style = format!("{STYLE}{}", avoid_dup::STYLE);
    Ok(file("Crawl report", &style, &numbers.render(report)).into_string())
}

/// Calls `each` with every line that can be parsed; a torn last line is skipped, as in any reader of these files.
fn for_lines<T: serde::de::DeserializeOwned>(path: &Path, mut each: impl FnMut(T)) -> io::Result<()> {
    for line in BufReader::new(File::open(path)?).lines() {
        if let Ok(line) = serde_json::from_str(&line?) {
            each(line);
        }
    }
    Ok(())
}

impl Numbers {
    fn page(&mut self, page: PageLine) {
        *self.statuses.entry(page.status.to_string()).or_default() += 1;
        *self.depths.entry(page.depth).or_default() += 1;
        let host = Url::parse(&page.final_url).ok();
        let host = host.as_ref().map(|url| match (url.host_str().unwrap_or(""), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        });
        *self.hosts.entry(host.unwrap_or_default()).or_default() += 1;
        if let Some(Timestamp(micros)) = Timestamp::from_rfc3339(&page.fetched_at) {
            let at = micros / 1_000;
            // This page is only nearly the first: pages of the first moments may be written in another order.
            let first = *self.first.get_or_insert(at);
            *self.times.entry(at.saturating_sub(first) / 10).or_default() += 1;
        }
        if let Some(nearest) = page.near_duplicates.first() {
            *self.distances.entry(nearest.distance).or_default() += 1;
            // Exact copies are only counted; the edited ones are worth a look.
            keep(&mut self.near, |line| f64::from(line.near_duplicates[0].distance), copy(&page));
        }
        if page.copyvio.as_ref().is_some_and(|copied| copied.verdict != "none") {
            let number = |line: &PageLine| {
                line.copyvio.as_ref().map_or(0.0, |copied| copied.confidence.max(copied.score))
            };
            keep(&mut self.copied, number, copy(&page));
        }
        keep(&mut self.slowest, |line| line.elapsed_ms, copy(&page));
        keep(&mut self.largest, |line| line.bytes as f64, page);
    }

    fn dropped(&mut self, drop: DropLine) {
        *self.reasons.entry(format!("{}: {}", drop.state, drop.reason)).or_default() += 1;
        if let Some(status) = drop.status {
            *self.statuses.entry(status.to_string()).or_default() += 1;
        }
        if drop.state == "failed" && self.failed.len() < ROWS {
            self.failed.push(drop);
        }
    }

    fn render(&self, report: &Report) -> Markup {
        let dropped: u64 = self.reasons.values().sum();
        let tiles = [
            ("pages", count(report.pages)),
            ("pages a second", format!("{:.1}", report.rate())),
            ("requests", count(report.requests)),
            ("on the wire", human_bytes(report.wire_bytes)),
            ("addresses without a page", count(dropped)),
            ("hosts", count(self.hosts.len() as u64)),
        ];
        let depths = self.depths.iter().map(|(depth, pages)| (format!("depth {depth}"), *pages)).collect();
        let distances = self.distances.iter().map(|(distance, pages)| match distance {
            0 => ("the same words".to_owned(), *pages),
            1 => ("1 bit".to_owned(), *pages),
            bits => (format!("{bits} bits"), *pages),
        });
        html! {
            h1 { "Crawl report" }
            p.sub {
                (Web(&report.outcome)) " after " (duration(report.elapsed_s)) " · huntsman " (Web(report.version))
                " · seed " (report.seed)
            }
            div.tiles {
                @for (name, value) in tiles { div.tile { b { (value) } span { (name) } } }
            }
            @if !report.failed_rules.is_empty() {
                h2 { "Quality rules that failed" }
                ul { @for rule in &report.failed_rules { li { (Web(&rule.to_string())) } } }
            }
            @if let Some(coverage) = &report.coverage { (coverage_table(coverage)) }
            @if !report.losses.is_empty() {
                h2 { "Lost" }
                ul { @for loss in &report.losses { li { (Web(&loss.to_string())) } } }
            }
            div.charts {
                (figure("Pages over time", &timeline(&self.times)))
                (bar_chart("Pages by depth", depths))
                (bar_chart("Answers by status", pairs(&self.statuses)))
                (bar_chart("Pages by host", largest_first(&self.hosts)))
                @if !self.reasons.is_empty() {
                    (bar_chart("Addresses without a page", largest_first(&self.reasons)))
                }
                @if !self.distances.is_empty() { (bar_chart("Near-duplicates by distance", distances.collect())) }
            }
            @if let Some(learnt) = &report.avoid_dup { (avoid_dup::section(learnt)) }
            (self.near_table())
            (self.copied_table())
            (page_table("Slowest pages", "ms", &self.slowest, |page| format!("{:.1}", page.elapsed_ms)))
            (page_table("Largest pages", "size", &self.largest, |page| human_bytes(page.bytes)))
            (self.failed_table())
        }
    }

    fn near_table(&self) -> Markup {
        html! {
            @if !self.near.is_empty() {
                h2 { "Near-duplicates, the most edited first" }
                table {
                    tr { th.n { "bits" } th { "page" } th { "nearly equals" } th.n { "others" } }
                    @for page in &self.near {
                        @let nearest = &page.near_duplicates[0];
                        @let more = page.near_duplicates.len() - 1;
                        tr {
                            td.n { (nearest.distance) }
                            td { (address(&page.url)) }
                            td { (address(&nearest.url)) }
                            td.n { @if more > 0 { (count(more as u64)) } }
                        }
                    }
                }
            }
        }
    }

    fn copied_table(&self) -> Markup {
        html! {
            @if !self.copied.is_empty() {
                h2 { "Pages that the article seems to be copied from" }
                table {
                    tr { th.n { "confidence" } th.n { "score" } th { "verdict" } th { "page" } }
                    @for page in &self.copied {
                        @if let Some(copied) = &page.copyvio {
                            tr {
                                td.n { (format!("{:.1} %", 100.0 * copied.confidence)) }
                                td.n { (format!("{:.2}", copied.score)) }
                                td { (Web(&copied.verdict)) }
                                td { (address(&page.url)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn failed_table(&self) -> Markup {
        html! {
            @if !self.failed.is_empty() {
                h2 { "Failed" }
                table {
                    tr { th { "address" } th { "reason" } th { "found on" } }
                    @for drop in &self.failed {
                        tr {
                            td { (address(&drop.url)) }
                            td {
                                (Web(&shorten(&drop.why(), 160)))
                                @if let Some(status) = drop.status { " " (status) }
                            }
                            td { @if let Some(referer) = &drop.referer { (address(referer)) } }
                        }
                    }
                }
            }
        }
    }
}

fn coverage_table(coverage: &CoverageReport) -> Markup {
    html! {
        h2 { "Fields of the items, those that are missing most often first" }
        p.sub {
            "Of " (count(coverage.items)) " items."
            @if coverage.cut > 0 { " " (count(coverage.cut)) " of them have fields that are not counted." }
        }
        table {
            tr { th { "field" } th.n { "items" } th.n { "share" } }
            @for field in &coverage.fields {
                tr {
                    td { (Web(&field.field)) }
                    td.n { (count(field.filled)) }
                    td.n { (format!("{:.1} %", 100.0 * field.share)) }
                }
            }
        }
    }
}

impl DropLine {
    fn why(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.reason),
            None => self.reason.clone(),
        }
    }
}

fn copy(page: &PageLine) -> PageLine {
    PageLine {
        url: page.url.clone(),
        final_url: page.final_url.clone(),
        title: page.title.clone(),
        fetched_at: String::new(),
        near_duplicates: page.near_duplicates.clone(),
        copyvio: page.copyvio.clone(),
        ..*page
    }
}

/// Keeps the lines with the largest values, in descending order.
fn keep(lines: &mut Vec<PageLine>, value: impl Fn(&PageLine) -> f64, line: PageLine) {
    let at = lines.partition_point(|other| value(other) >= value(&line));
    if at < ROWS {
        lines.insert(at, line);
        lines.truncate(ROWS);
    }
}

fn pairs(map: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    map.iter().map(|(name, number)| (name.clone(), *number)).collect()
}

fn largest_first(map: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut all = pairs(map);
    all.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    all
}

fn figure(title: &str, chart: &Markup) -> Markup {
    html! { figure { figcaption { (Web(title)) } (chart) } }
}

fn bar_chart(title: &str, rows: Vec<(String, u64)>) -> Markup {
    figure(title, &bars(title, rows))
}

/// Horizontal bars with their numbers.
fn bars(title: &str, mut rows: Vec<(String, u64)>) -> Markup {
    const HEIGHT: usize = 22;
    const LABEL: usize = 190;
    const WIDTH: usize = 520;
    if rows.len() > BARS {
        let rest = rows.split_off(BARS - 1);
        rows.push((format!("{} more", rest.len()), rest.iter().map(|(_, number)| number).sum()));
    }
    let most = rows.iter().map(|(_, number)| *number).max().unwrap_or(0).max(1);
    let height = rows.len().max(1) * HEIGHT;
    let length = |number: u64| ((WIDTH - LABEL - 70) as f64 * number as f64 / most as f64).max(1.0);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(Web(title)) {
            @for (index, (name, number)) in rows.iter().enumerate() {
                @let y = index * HEIGHT;
                text x=(LABEL - 8) y=(y + 15) text-anchor="end" { (Web(&shorten(name, 28))) }
                rect x=(LABEL) y=(y + 3) width=(format!("{:.1}", length(*number))) height=(HEIGHT - 6) rx="2" {}
                text x=(format!("{:.1}", LABEL as f64 + length(*number) + 6.0)) y=(y + 15) class="n" {
                    (count(*number))
                }
            }
        }
    }
}

/// Pages a second as an area over the time of the crawl.
fn timeline(times: &BTreeMap<u64, u64>) -> Markup {
    const WIDTH: f64 = 520.0;
    const HEIGHT: f64 = 150.0;
    const BOTTOM: f64 = 20.0;
    const LEFT: f64 = 58.0;
    let last = times.keys().next_back().copied().unwrap_or(0);
    let step = (last + 1).div_ceil(POINTS).max(STEP);
    let mut rates = vec![0_u64; usize::try_from(last / step + 1).unwrap_or(1)];
    for (at, pages) in times {
        if let Some(rate) = rates.get_mut(usize::try_from(at / step).unwrap_or(usize::MAX)) {
            *rate += pages;
        }
    }
    let per_second = |pages: u64| pages as f64 * 100.0 / step as f64;
    let most = rates.iter().copied().map(per_second).fold(1.0, f64::max);
    let x = |index: usize| LEFT + (WIDTH - LEFT) * index as f64 / (rates.len().max(2) - 1) as f64;
    let y = |rate: f64| (HEIGHT - BOTTOM) * (1.0 - rate / most) + 4.0;
    let mut path = format!("M{LEFT:.1},{:.1}", y(0.0));
    for (index, pages) in rates.iter().enumerate() {
        let _ = write!(path, "L{:.1},{:.1}", x(index), y(per_second(*pages)));
    }
    let _ = write!(path, "L{:.1},{:.1}Z", x(rates.len() - 1), y(0.0));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label="Pages over time" {
            path d=(path) {}
            text x=(format!("{:.1}", LEFT - 6.0)) y="12" text-anchor="end" { (format!("{most:.0}/s")) }
            text x=(LEFT) y=(format!("{:.1}", HEIGHT - 4.0)) { "0" }
            text x=(WIDTH) y=(format!("{:.1}", HEIGHT - 4.0)) text-anchor="end" {
                (duration(last as f64 / 100.0))
            }
        }
    }
}

fn page_table(title: &str, unit: &str, pages: &[PageLine], value: impl Fn(&PageLine) -> String) -> Markup {
    html! {
        @if !pages.is_empty() {
            h2 { (title) }
            table {
                tr { th.n { (unit) } th { "page" } th { "title" } }
                @for page in pages {
                    tr {
                        td.n { (value(page)) }
                        td { (address(&page.url)) }
                        td { (Web(&shorten(page.title.as_deref().unwrap_or(""), 80))) }
                    }
                }
            }
        }
    }
}

/// Colours follow the reader's preference for light or dark.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2733;--dim:#5d6b7a;--paper:#f6f7f9;--card:#fff;--line:#dfe4ea;--bar:#2f6f9f}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ee;--dim:#93a1b0;--paper:#12171d;--card:#1a2129;--line:#2b3540;--bar:#5aa2d6}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1120px;margin:0 auto;padding:32px 20px 60px}
h1{margin:0;font-size:28px}h2{margin:36px 0 8px;font-size:18px}.sub{margin:4px 0 24px;color:var(--dim)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px}
.tile,figure{background:var(--card);border:1px solid var(--line);border-radius:8px}
.tile{padding:14px 16px}.tile b{display:block;font-size:22px;font-variant-numeric:tabular-nums}.tile span{color:var(--dim)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:12px;margin-top:12px}
figure{margin:0;padding:14px 16px}figcaption{margin-bottom:8px;font-weight:600}
svg{display:block;width:100%;height:auto}svg text{font-size:12px;fill:var(--dim)}svg .n{fill:var(--ink)}
svg rect{fill:var(--bar)}svg path{fill:var(--bar);fill-opacity:.35;stroke:var(--bar);stroke-width:1.5}
table{width:100%;border-collapse:collapse;background:var(--card);border:1px solid var(--line);font-size:14px}
th,td{padding:6px 10px;border-top:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{border-top:0;color:var(--dim);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
a{color:inherit}
";

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn nothing_from_the_web_becomes_markup_or_script() {
        let dir = tempfile::tempdir().unwrap();
        let evil = "\"><script>alert(1)</script>\u{202e}";
        let page = serde_json::json!({
            "url": format!("http://a/{evil}"), "final_url": "http://a/", "status": 200, "depth": 0, "bytes": 1,
            "title": evil, "fetched_at": "2026-11-21T09:30:00.250Z", "elapsed_ms": 1.0,
        });
        let drop = serde_json::json!({
            "url": "javascript:alert(1)", "state": "failed", "reason": evil, "detail": evil, "referer": evil,
        });
        std::fs::write(dir.path().join(PAGES), format!("{page}\n{{\"url\":\"torn")).unwrap();
        std::fs::write(dir.path().join(DROPS), format!("{drop}\n")).unwrap();
        let report = Report::of_failure(evil.into(), 1.0, 1, BTreeMap::new(), &Default::default());
        let made = html_report(dir.path(), &report).unwrap();
        assert!(!made.contains("<script") && !made.contains("href=\"javascript:"), "{made}");
        assert!(!made.contains('\u{202e}') && made.contains("&lt;script&gt;"));
        // One unescaped element would make these counts differ.
        assert_eq!(made.matches("<figure>").count(), made.matches("</figure>").count());
    }

    #[test]
    fn charts_of_nothing_and_of_much_stay_in_their_frame() {
        assert!(timeline(&BTreeMap::new()).0.contains("</svg>"));
        let long: BTreeMap<u64, u64> = (0..100_000).map(|at| (at, 1)).collect();
        assert!(timeline(&long).0.len() < 4_000);
        let rows = (0..100).map(|n| (format!("host{n}.example"), 1)).collect();
        let chart = bars("x", rows).into_string();
        assert_eq!(chart.matches("<rect").count(), BARS);
        assert!(chart.contains("89 more"));
    }
}
