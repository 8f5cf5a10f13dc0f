//! Answers in numbers: statuses, types, sizes and times, of all pages and of those whose URLs are alike.

use std::collections::BTreeMap;

use huntsman_crawler::human_bytes;
use huntsman_output::markup::Web;
use huntsman_output::render::count;
use maud::{Markup, html};

use super::charts::{bar, histogram};
use crate::tables::PageLine;

/// Patterns of URLs that are told apart, and that are shown.
const MAX_PATTERNS: usize = 20_000;
const SHOWN_PATTERNS: usize = 30;
/// Types that are told apart.
const MAX_TYPES: usize = 200;
const SHOWN_TYPES: usize = 20;
/// Milliseconds to the first byte up to which answers are counted together.
const TIMES: [u32; 9] = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, u32::MAX];
/// Bytes of pages up to which they are counted together.
const SIZES: [u64; 7] = [10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000, u64::MAX];
/// A slow first byte, from here on.
const SLOW: usize = 5;

/// The pages with one pattern of URLs.
#[derive(Debug, Default)]
struct Alike {
    pages: usize,
    bytes: u64,
    errors: usize,
    times: [usize; TIMES.len()],
}

/// What answers are like.
#[derive(Debug, Default)]
pub(super) struct Responses {
    statuses: BTreeMap<u16, usize>,
    types: BTreeMap<String, usize>,
    sizes: [usize; SIZES.len()],
    patterns: BTreeMap<String, Alike>,
    all: Alike,
}

impl Responses {
    pub(super) fn add(&mut self, page: &PageLine<'_>) {
        let status = page.status.unwrap_or(0);
        *self.statuses.entry(status).or_default() += 1;
        let name = page.content_type.unwrap_or("none stated");
        if self.types.contains_key(name) || self.types.len() < MAX_TYPES {
            *self.types.entry(name.to_owned()).or_default() += 1;
        }
        let time = TIMES.iter().position(|most| page.ttfb_ms <= f64::from(*most)).unwrap_or(TIMES.len() - 1);
        let pattern = pattern(page.url);
        if self.patterns.len() < MAX_PATTERNS || self.patterns.contains_key(&pattern) {
            self.patterns.entry(pattern).or_default().add(page.bytes, status, time);
        }
        self.all.add(page.bytes, status, time);
        if page.is_html() {
            let size = SIZES.iter().position(|most| page.bytes <= *most).unwrap_or(SIZES.len() - 1);
            self.sizes[size] += 1;
        }
    }

    pub(super) fn view(&self) -> Markup {
        let statuses = self.statuses.iter().map(|(status, number)| {
            (
                format!("{status} {}", meaning(*status)),
                *number,
                Some(format!("#pages?status={}xx", status / 100)),
            )
        });
        let mut types: Vec<_> =
            self.types.iter().map(|(name, number)| (name.clone(), *number, None)).collect();
        types.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        types.truncate(SHOWN_TYPES);
        let times = TIMES.iter().enumerate().map(|(at, most)| {
            let name = match most {
                &u32::MAX => format!("more than {}", time(TIMES[at - 1])),
                most => format!("up to {}", time(*most)),
            };
            (name, self.all.times[at], None)
        });
        let sizes = SIZES.iter().enumerate().map(|(at, most)| {
            let name = match most {
                &u64::MAX => format!("more than {}", human_bytes(SIZES[at - 1])),
                most => format!("up to {}", human_bytes(*most)),
            };
            (name, self.sizes[at], None)
        });
        html! {
            p.lead {
                "How the site answered " (count(self.all.pages as u64)) " requests for pages. Half of them had their first byte within "
                (time(self.all.within(0.5))) ", and 95 of 100 within " (time(self.all.within(0.95))) "."
            }
            div.panels {
                (histogram("Status", "Status", &statuses.collect::<Vec<_>>()))
                (histogram("Type of content", "Type", &types))
                (histogram("Time to the first byte", "Time", &times.collect::<Vec<_>>()))
                (histogram("Size of the HTML", "Size", &sizes.collect::<Vec<_>>()))
            }
            h3 { "By kind of page" }
            p.soft { "Pages whose URLs have the same shape are often made by the same template. A * stands for any text." }
            (self.patterns_table())
        }
    }

    fn patterns_table(&self) -> Markup {
        let mut patterns: Vec<(&String, &Alike)> = self.patterns.iter().collect();
        patterns.sort_by(|a, b| b.1.pages.cmp(&a.1.pages).then(a.0.cmp(b.0)));
        html! {
            table data-sort {
                thead {
                    tr {
                        th scope="col" { "Shape of the URL" } th.n scope="col" { "Pages" } th.n scope="col" { "Errors" }
                        th.n scope="col" { "Mean size" } th.n scope="col" { "Half within" } th.n scope="col" { "95 % within" } th scope="col" { "Slow" }
                    }
                }
                tbody {
                    @for (pattern, alike) in patterns.iter().take(SHOWN_PATTERNS) {
                        @let mean = alike.bytes / alike.pages.max(1) as u64;
                        @let slow: usize = alike.times[SLOW..].iter().sum();
                        tr {
                            th.url scope="row" { (Web(pattern)) }
                            td.n { (count(alike.pages as u64)) }
                            td.n { (count(alike.errors as u64)) }
                            td.n data-v=(mean) { (human_bytes(mean)) }
                            td.n data-v=(alike.within(0.5)) { (time(alike.within(0.5))) }
                            td.n data-v=(alike.within(0.95)) { (time(alike.within(0.95))) }
                            td data-v=(slow) { (bar(&[("warning", slow as f64 / alike.pages.max(1) as f64)])) }
                        }
                    }
                }
            }
            @if patterns.len() > SHOWN_PATTERNS {
                p.soft { "The " (SHOWN_PATTERNS) " most frequent of " (count(patterns.len() as u64)) " shapes are shown." }
            }
        }
    }
}

impl Alike {
    /// Adds a page whose first byte came within the time of this number.
    fn add(&mut self, bytes: u64, status: u16, time: usize) {
        self.pages += 1;
        self.bytes += bytes;
        self.errors += usize::from(status >= 400);
        self.times[time] += 1;
    }

    /// Milliseconds within which this share of the pages had their first byte.
    fn within(&self, share: f64) -> u32 {
        let mut left = (self.pages as f64 * share).ceil();
        for (number, most) in self.times.iter().zip(TIMES) {
            left -= *number as f64;
            if left <= 0.0 {
                return most;
            }
        }
        u32::MAX
    }
}

/// Milliseconds for people.
fn time(milliseconds: u32) -> String {
    match milliseconds {
        u32::MAX => format!("more than {}", time(TIMES[TIMES.len() - 2])),
        0..=999 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", f64::from(milliseconds) / 1_000.0),
    }
}

/// The shape of a URL: its path with a star for each part but the first folder and the ending.
fn pattern(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = url[start..].find('/').map_or("/", |at| &url[start + at..]);
    let (path, query) = rest.split_once('?').map_or((rest, false), |(path, _)| (path, true));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let last = parts.len() - 1;
    let mut shape = String::new();
    for (at, part) in parts.iter().enumerate() {
        shape.push('/');
        match part.rsplit_once('.') {
            _ if part.is_empty() => {}
            _ if at == 0 && at < last => shape.push_str(part),
            Some((_, ending)) if at == last && ending.len() <= 5 => {
                shape.push_str("*.");
                shape.push_str(ending);
            }
            _ => shape.push('*'),
        }
    }
    if query {
        shape.push_str("?*");
    }
    shape
}

/// What a status means, in the words of the standard.
fn meaning(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_template_have_one_shape() {
        for (url, shape) in [
            ("https://a.example", "/"),
            ("https://a.example/", "/"),
            ("https://a.example/about", "/*"),
            ("https://a.example/about.html", "/*.html"),
            ("https://a.example/shop/", "/shop/"),
            ("https://a.example/shop/boats/17-red.html", "/shop/*/*.html"),
            ("https://a.example/shop/sails?size=/big", "/shop/*?*"),
        ] {
            assert_eq!(pattern(url), shape);
        }
    }
}
