//! Traps: guards against address spaces without end.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use huntsman_crawler::{
    Context, DropReason, Guard, OnFollow, OnPage, Page, Request, Result, Settings, SpiderMiddleware,
    Timestamp,
};
use huntsman_detect::urlparts::guard;
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64;

use crate::origin;
use crate::scope::Once;

/// Warns of, or drops, links that look like a trap (`trap_guards`), each with its own reason:
///
/// - `query_variants`: more than `max_query_variants` different queries on one path. They are dropped only where pages of
///   that path repeat each other's text: real wikis have thousands of queries on one path.
/// - `template_urls`: more than `max_urls_per_template` paths of one host that differ in numbers, dates, ids and slugs only.
/// - `calendar`: a date more than 2 years ahead or 30 years back.
///
/// Memory is bounded at some 30 MB; a crawl of more than a million addresses forgets the oldest, and a count may begin
/// anew.
#[derive(Debug)]
pub struct Traps {
    drops: bool,
    max_variants: u32,
    max_template: u32,
    state: Mutex<State>,
    said: Once,
}

#[derive(Debug, Default)]
struct State {
    /// Addresses and paths that were counted, in two generations.
    counted: [Hashes; 2],
    /// Queries by path, and paths by template.
    counts: HashMap<u64, u32>,
    contents: HashMap<u64, Contents>,
    template: String,
}

type Hashes = HashSet<u64>;

/// What the pages of a path with many queries say.
#[derive(Debug, Default)]
struct Contents {
    texts: Hashes,
    pages: u32,
    repeated: u32,
}

/// Counted addresses of one generation.
const GENERATION: usize = 500_000;
/// Counters at most.
const MAX_COUNTERS: usize = 200_000;
/// Paths whose contents are watched, and texts of each.
const MAX_PATHS: usize = 1_000;
const MAX_TEXTS: usize = 500;
/// Pages that must be seen before a path is said to repeat itself.
const MIN_PAGES: u32 = 20;
const YEARS_AHEAD: u16 = 2;
const YEARS_BACK: u16 = 30;

impl Traps {
    /// The name in settings and records.
    pub const NAME: &'static str = "traps";
    /// The place in the chain.
    pub const ORDER: i32 = 850;

    /// Not configured if `trap_guards` is off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let limit =
            |limit: usize| if limit == 0 { u32::MAX } else { u32::try_from(limit).unwrap_or(u32::MAX) };
        Ok((settings.trap_guards != Guard::Off).then(|| Self {
            drops: settings.trap_guards == Guard::Drop,
            max_variants: limit(settings.max_query_variants),
            max_template: limit(settings.max_urls_per_template),
            state: Mutex::default(),
            said: Once::default(),
        }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a link looks like, if it is a trap that is to be acted on.
    fn judge(&self, url: &Url, now: Timestamp) -> Option<DropReason> {
        if let Some(year) = far_year(url, now) {
            return Some(DropReason::skipped("calendar").detail(format!("a date in the year {year}")));
        }
        let mut state = self.state();
        let path = key("path", url, url.path());
        if let Some(query) = url.query() {
            let variant = key("query", url, &url[Position::BeforePath..Position::AfterQuery]);
            if !query.is_empty() && !state.is_counted(variant) {
                let count = state.count_of(path);
                // Also when warning: the limit is passed by every further one.
                if count >= self.max_variants && (!self.drops || state.repeats(path)) {
                    let detail = format!("more than {} queries on {}", self.max_variants, url.path());
                    return Some(DropReason::skipped("query_variants").detail(detail));
                }
                state.count(path, variant);
            }
        }
        let masked = key("masked", url, url.path());
        if !state.is_counted(masked) {
            let mut template = std::mem::take(&mut state.template);
            template.clear();
            guard::template_into(url.path(), &mut template);
            let template_key = key("template", url, &template);
            let is_over = template != url.path() && state.count_of(template_key) >= self.max_template;
            let detail = || format!("more than {} addresses like {template}", self.max_template);
            if is_over {
                return Some(DropReason::skipped("template_urls").detail(detail()));
            }
            state.count(template_key, masked);
            state.template = template;
        }
        None
    }
}

/// A year in the address that is too far away, as in calendars that can be turned for ever.
fn far_year(url: &Url, now: Timestamp) -> Option<u16> {
    let present: u16 = now.to_rfc3339().get(..4)?.parse().ok()?;
    let near = present.saturating_sub(YEARS_BACK)..=present + YEARS_AHEAD;
    guard::years(&url[Position::BeforePath..Position::AfterQuery]).find(|year| !near.contains(year))
}

fn key(kind: &str, url: &Url, rest: &str) -> u64 {
    let host = origin::host(url);
    let mut text = String::with_capacity(kind.len() + host.len() + rest.len() + 2);
    text.extend([kind, " ", host, " ", rest]);
    xxh3_64(text.as_bytes())
}

impl State {
    fn is_counted(&self, key: u64) -> bool {
        self.counted.iter().any(|generation| generation.contains(&key))
    }

    fn count_of(&self, counter: u64) -> u32 {
        self.counts.get(&counter).copied().unwrap_or(0)
    }

    fn count(&mut self, counter: u64, key: u64) {
        if self.counted[0].len() >= GENERATION {
            self.counted.swap(0, 1);
            self.counted[0].clear();
        }
        self.counted[0].insert(key);
        if self.counts.len() >= MAX_COUNTERS {
            // What counts is what is large; small counters begin anew.
            let mut counts: Vec<u32> = self.counts.values().copied().collect();
            let middle = counts.len() / 2;
            let (_, limit, _) = counts.select_nth_unstable(middle);
            let limit = *limit;
            self.counts.retain(|_, count| *count > limit);
        }
        let count = self.counts.entry(counter).or_default();
        *count = count.saturating_add(1);
    }

    /// Whether at least every second page of a path had a text that another one had before.
    fn repeats(&self, path: u64) -> bool {
        self.contents
            .get(&path)
            .is_some_and(|seen| seen.pages >= MIN_PAGES && seen.repeated * 2 >= seen.pages)
    }

    fn saw(&mut self, path: u64, text: u64) {
        if self.contents.len() >= MAX_PATHS && !self.contents.contains_key(&path) {
            self.contents.clear();
        }
        let seen = self.contents.entry(path).or_default();
        seen.pages = seen.pages.saturating_add(1);
        if seen.texts.contains(&text) {
            seen.repeated = seen.repeated.saturating_add(1);
        } else if seen.texts.len() < MAX_TEXTS {
            seen.texts.insert(text);
        }
    }
}

impl SpiderMiddleware for Traps {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
        let url = &page.request().url;
        if !self.drops || url.query().is_none_or(str::is_empty) {
            return Ok(OnPage::Parse);
        }
        let path = key("path", url, url.path());
        // The text costs a scan: only where the answer may be needed.
        if self.state().count_of(path) >= self.max_variants / 4 {
            let text = xxh3_64(page.text().as_bytes());
            self.state().saw(path, text);
        }
        Ok(OnPage::Parse)
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        let Some(reason) = self.judge(&request.url, cx.now()) else { return Ok(OnFollow::Keep) };
        cx.stats().inc(&format!("traps/{}", reason.reason));
        let host = origin::host(&request.url);
        if self.said.first(&format!("{} {host}", reason.reason)) {
            let detail = reason.detail.as_deref().unwrap_or("");
            tracing::warn!(%host, url = %request.url, "looks like a trap: {detail}");
        }
        Ok(if self.drops { OnFollow::Drop(reason) } else { OnFollow::Keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::Response;

    fn traps(mode: Guard, variants: usize, template: usize) -> (Traps, Context) {
        let mut settings = Settings::default();
        (settings.trap_guards, settings.max_query_variants, settings.max_urls_per_template) =
            (mode, variants, template);
        (Traps::from_settings(&settings).unwrap().unwrap(), Context::detached(settings))
    }

    fn page(url: &str, text: &str) -> Page {
        let url = Url::parse(url).unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, format!("<p>{text}")))
    }

    fn follow(traps: &Traps, cx: &Context, url: &str) -> Option<String> {
        let mut request = Request::parse(url).unwrap();
        match traps.process_follow(&page("http://h/", ""), &mut request, cx).unwrap() {
            OnFollow::Keep => None,
            OnFollow::Drop(reason) => Some(reason.reason.into_owned()),
        }
    }

    #[test]
    fn calendars_end_near_today() {
        let (traps, cx) = traps(Guard::Drop, 0, 0);
        let year: u16 = cx.now().to_rfc3339()[..4].parse().unwrap();
        for (far, dropped) in [(0, false), (2, false), (3, true), (-30, false), (-31, true)] {
            let url = format!("http://h/events/{}/05/", i32::from(year) + far);
            assert_eq!(follow(&traps, &cx, &url).as_deref(), dropped.then_some("calendar"), "{url}");
        }
        assert_eq!(follow(&traps, &cx, "http://h/item/2999"), None);
    }

    #[test]
    fn queries_are_dropped_where_the_content_repeats() {
        for (repeating, expected) in [(true, Some("query_variants")), (false, None)] {
            let (traps, cx) = traps(Guard::Drop, 100, 0);
            for n in 0..100 {
                assert_eq!(follow(&traps, &cx, &format!("http://h/p?sid={n}")), None);
            }
            for n in 0..40 {
                let text = if repeating { format!("{}", n % 3) } else { format!("{n}") };
                traps.process_page(&mut page(&format!("http://h/p?sid={n}"), &text), &cx).unwrap();
            }
            assert_eq!(follow(&traps, &cx, "http://h/p?sid=new").as_deref(), expected);
            assert_eq!(follow(&traps, &cx, "http://h/p?sid=5"), None, "it was counted before");
            assert_eq!(follow(&traps, &cx, "http://h/other?sid=new"), None);
            assert_eq!(follow(&traps, &cx, "http://g/p?sid=new"), None);
            assert_eq!(follow(&traps, &cx, "http://h/p"), None);
        }
    }

    #[test]
    fn addresses_of_one_template_are_counted_by_path() {
        let (traps, cx) = traps(Guard::Drop, 0, 50);
        for n in 0..50 {
            for repeat in ["", "?a", "?b"] {
                assert_eq!(follow(&traps, &cx, &format!("http://h/item/{n}.html{repeat}")), None);
            }
        }
        assert_eq!(follow(&traps, &cx, "http://h/item/51.html").as_deref(), Some("template_urls"));
        assert_eq!(follow(&traps, &cx, "http://h/item/7.html"), None);
        assert_eq!(follow(&traps, &cx, "http://h/about.html"), None);
        assert_eq!(follow(&traps, &cx, "http://g/item/51.html"), None);
    }

    #[test]
    fn warnings_let_everything_through() {
        let (traps, cx) = traps(Guard::Warn, 10, 10);
        for n in 0..30 {
            assert_eq!(follow(&traps, &cx, &format!("http://h/p?a={n}")), None);
            assert_eq!(follow(&traps, &cx, &format!("http://h/{n}")), None);
        }
        assert_eq!((cx.stats().get("traps/query_variants"), cx.stats().get("traps/template_urls")), (20, 20));
        let mut off = Settings::default();
        off.trap_guards = Guard::Off;
        assert!(Traps::from_settings(&off).unwrap().is_none());
    }

    #[test]
    fn memory_is_bounded_and_large_counters_stay() {
        let (traps, cx) = traps(Guard::Drop, 0, 50);
        for n in 0..50 {
            follow(&traps, &cx, &format!("http://h/item/{n}"));
        }
        let mut state = traps.state();
        for n in 0..(2 * GENERATION as u64 + 10) {
            state.count(n % (MAX_COUNTERS as u64 + 10), u64::MAX - n);
        }
        assert!(state.counts.len() <= MAX_COUNTERS);
        assert!(state.counted.iter().all(|generation| generation.len() <= GENERATION));
        drop(state);
        assert_eq!(follow(&traps, &cx, "http://h/item/51").as_deref(), Some("template_urls"));
    }
}
