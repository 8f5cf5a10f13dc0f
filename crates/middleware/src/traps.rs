//! Traps: detects endless URL spaces that grow by query strings, by a template, or by a calendar.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{
    Component, Context, DropReason, Hooks, OnFollow, OnPage, Page, Request, Result, Settings,
    SpiderMiddleware, Timestamp, log, settings,
};
use huntsman_text::urlparts::guard::{template_into, years};
use serde::{Deserialize, Serialize};
use url::{Position, Url};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::origin;
use crate::scope::LogOnce;

settings! {
    /// Settings of [`Traps`].
    pub struct TrapsSettings {
        /// What the guards against traps do with a URL beyond one of their limits: off (nothing), warn (log it) or
        /// drop.
        trap_guards: Guard = Guard::Off, audit = Guard::Warn, broad = Guard::Drop;
        /// Number of distinct query strings of one path from which on the trap guards act.
        max_query_variants: usize = 1_000;
        /// Number of URLs of one template and host from which on the trap guards act.
        max_urls_per_template: usize = 20_000;
    }
}

/// What a guard against traps does with a URL beyond its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// The guard is off.
    #[default]
    Off,
    /// The URL is counted, and logged once per reason and host.
    Warn,
    /// The URL is dropped.
    Drop,
}

/// Recognises traps among links that were followed automatically, and counts (`warn`) or drops (`drop`) the URLs beyond
/// a limit:
///
/// - `query_variants`: more than `max_query_variants` query strings of one path; dropped only where pages of that path
///   repeat, since the whole content of a site may be behind one path;
/// - `template`: more than `max_urls_per_template` URLs of one host whose paths differ only in numbers, dates, ids and
///   slugs;
/// - `calendar`: a date in the URL that is more than 2 years ahead or more than 30 years back.
///
/// A URL is counted once, however often it is linked. Stats are `traps/{reason}`; with `warn` each reason is logged
/// once per host. Seeds are not judged. Memory is bounded (two tables of 100,000 paths and a million 4-byte hashes
/// each); the groups that were not seen for the longest time are removed first.
#[derive(Debug)]
pub struct Traps {
    drops: bool,
    max_variants: usize,
    max_urls: usize,
    state: Mutex<State>,
    log_once: LogOnce,
}

#[derive(Debug)]
struct State {
    variants: Groups,
    templates: Groups,
    buffer: String,
}

/// Years that a date may be ahead (here) and back (next): events are announced in advance, and archives reach far back.
const MAX_YEARS_AHEAD: i32 = 2;
const MAX_YEARS_BACK: i32 = 30;

/// Maximum number of groups, and of members, that each table keeps.
const MAX_GROUPS: usize = 100_000;
const MAX_MEMBERS: usize = 1_000_000;

impl Traps {
    /// Creates the component from the settings; `None` if `trap_guards` is off. A limit of 0 switches its guard off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: TrapsSettings = settings.of()?;
        let drops = match own.trap_guards {
            Guard::Off => return Ok(None),
            Guard::Warn => false,
            Guard::Drop => true,
        };
        Ok(Some(Self {
            drops,
            max_variants: own.max_query_variants,
            max_urls: own.max_urls_per_template,
            state: Mutex::new(State {
                variants: Groups::new(MAX_GROUPS, MAX_MEMBERS),
                templates: Groups::new(MAX_GROUPS, MAX_MEMBERS),
                buffer: String::new(),
            }),
            log_once: LogOnce::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while holding the lock leaves the tables consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trap that a URL is in, if any, and the evidence for it.
    fn detect(&self, url: &Url, now: Timestamp) -> Option<DropReason> {
        let trap = |reason, detail, setting| Some(DropReason::skipped(reason).detail(detail).guard(setting));
        if let Some(year) = odd_year(url, now) {
            return trap("calendar", format!("a date in the year {year}"), "trap_guards");
        }
        let state = &mut *self.state();
        let address = &url[Position::BeforeHost..Position::AfterQuery];
        if self.max_urls > 0 {
            state.buffer.clear();
            state.buffer.push_str(&url[Position::BeforeHost..Position::BeforePath]);
            template_into(url.path(), &mut state.buffer);
            if !state.templates.admit(xxh3_64(state.buffer.as_bytes()), address, self.max_urls) {
                let template = &state.buffer[url[Position::BeforeHost..Position::BeforePath].len()..];
                let shown: String = template.chars().take(200).collect();
                let detail = format!("more than {} addresses of the template {shown}", self.max_urls);
                return trap("template", detail, "max_urls_per_template");
            }
        }
        if self.max_variants > 0
            && let Some(query) = url.query()
        {
            let key = path_key(url);
            let admitted = state.variants.admit(key, query, self.max_variants);
            // A suspected trap is always counted, but dropped only where pages repeat.
            if !admitted && (!self.drops || state.variants.repeats(key)) {
                let detail = format!("more than {} query strings of this path", self.max_variants);
                return trap("query_variants", detail, "max_query_variants");
            }
        }
        None
    }
}

/// Hash of the host, port and path of a URL.
fn path_key(url: &Url) -> u64 {
    xxh3_64(url[Position::BeforeHost..Position::AfterPath].as_bytes())
}

/// The first year in a URL that is too far ahead or back for a real calendar.
fn odd_year(url: &Url, now: Timestamp) -> Option<u16> {
    let mut years = years(&url[Position::BeforePath..Position::AfterQuery]).peekable();
    years.peek()?;
    let this_year: i32 = now.to_rfc3339().get(..4).and_then(|year| year.parse().ok())?;
    years.find(|year| !(this_year - MAX_YEARS_BACK..=this_year + MAX_YEARS_AHEAD).contains(&i32::from(*year)))
}

/// Groups of URLs by the hash of what they share, each with the hashes of its members.
#[derive(Debug)]
struct Groups {
    groups: HashMap<u64, Group>,
    members: usize,
    clock: u64,
    max_groups: usize,
    max_members: usize,
}

#[derive(Debug, Default)]
struct Group {
    /// 32 bits are enough: of a million members, about a hundred collide.
    members: HashSet<u32>,
    contents: Option<Box<Contents>>,
    used: u64,
}

impl Groups {
    fn new(max_groups: usize, max_members: usize) -> Self {
        Self { groups: HashMap::new(), members: 0, clock: 0, max_groups, max_members }
    }

    /// Adds a member to its group; `false` if the group is full and this one is not in it.
    fn admit(&mut self, key: u64, member: &str, limit: usize) -> bool {
        self.clock += 1;
        // The low half of the hash.
        let member = xxh3_64_with_seed(member.as_bytes(), key) as u32;
        let group = self.groups.entry(key).or_default();
        group.used = self.clock;
        if group.members.contains(&member) {
            return true;
        }
        if group.members.len() >= limit {
            return false;
        }
        group.members.insert(member);
        self.members += 1;
        if self.groups.len() > self.max_groups || self.members > self.max_members {
            self.forget();
        }
        true
    }

    /// Removes the tenth of the groups that was not seen for the longest time.
    fn forget(&mut self) {
        let mut ages: Vec<u64> = self.groups.values().map(|group| group.used).collect();
        if ages.is_empty() {
            return;
        }
        let tenth = ages.len() / 10;
        let (_, limit, _) = ages.select_nth_unstable(tenth);
        let limit = *limit;
        self.groups.retain(|_, group| group.used > limit);
        self.members = self.groups.values().map(|group| group.members.len()).sum();
    }

    fn len(&self, key: u64) -> usize {
        self.groups.get(&key).map_or(0, |group| group.members.len())
    }

    /// Whether the pages of a group repeat.
    fn repeats(&self, key: u64) -> bool {
        self.groups
            .get(&key)
            .and_then(|group| group.contents.as_ref())
            .is_some_and(|contents| contents.repeat())
    }
}

/// The contents of the most recent pages of a path.
#[derive(Debug, Default)]
struct Contents {
    /// Hash of each page, and whether an earlier one was equal; the newest is last.
    last: VecDeque<(u64, bool)>,
}

impl Contents {
    /// Number of pages that are remembered.
    const WINDOW: usize = 32;
    /// Minimum number of pages for a decision.
    const MIN_PAGES: usize = 8;

    fn add(&mut self, content: u64) {
        let known = self.last.iter().any(|(before, _)| *before == content);
        if self.last.len() >= Self::WINDOW {
            self.last.pop_front();
        }
        self.last.push_back((content, known));
    }

    /// Whether more than half of the pages repeat an earlier one.
    fn repeat(&self) -> bool {
        let known = self.last.iter().filter(|(_, known)| *known).count();
        self.last.len() >= Self::MIN_PAGES && known * 2 > self.last.len()
    }
}

impl Component for Traps {
    const NAME: &'static str = "traps";
    type Settings = TrapsSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(850)
    }
}

impl SpiderMiddleware for Traps {
    fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
        if self.drops && self.max_variants > 0 && page.url().query().is_some() {
            let key = path_key(page.url());
            // The text is read only if the path approaches the limit.
            if self.state().variants.len(key) >= self.max_variants.div_ceil(4) {
                // Pages without text are compared by their bytes. The lock is not held while they are read.
                let content = match page.text() {
                    "" => xxh3_64(&page.response().body),
                    text => xxh3_64(text.as_bytes()),
                };
                if let Some(group) = self.state().variants.groups.get_mut(&key) {
                    group.contents.get_or_insert_default().add(content);
                }
            }
        }
        Ok(OnPage::Parse)
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        if !request.is_guarded(cx.settings()) {
            return Ok(OnFollow::Keep);
        }
        let Some(trap) = self.detect(&request.url, cx.now()) else { return Ok(OnFollow::Keep) };
        cx.stats().inc(&format!("traps/{}", trap.reason));
        if self.drops {
            // The engine logs dropped requests.
            return Ok(OnFollow::Drop(trap));
        }
        let host = origin::host(&request.url);
        if self.log_once.first(&format!("{} {host}", trap.reason)) {
            let detail = trap.detail.as_deref().unwrap_or_default().escape_debug();
            log::warn!(%host, url = %request.url, "looks like a trap ({}), followed all the same: {detail}; later ones of this host are not logged", trap.reason);
        }
        Ok(OnFollow::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::{FoundBy, Response};

    fn traps(guard: Guard, change: impl FnOnce(&mut Settings)) -> (Traps, Context) {
        let mut settings = Settings::default();
        settings.change(|own: &mut TrapsSettings| own.trap_guards = guard);
        settings
            .change(|own: &mut TrapsSettings| (own.max_query_variants, own.max_urls_per_template) = (20, 0));
        change(&mut settings);
        (Traps::from_settings(&settings).unwrap().unwrap(), Context::detached(settings))
    }

    fn page(url: &str, text: &str) -> Page {
        let url = Url::parse(url).unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, format!("<p>{text}")))
    }

    fn follow((traps, cx): &(Traps, Context), url: &str) -> Option<String> {
        let mut link = Request::parse(url).unwrap();
        link.found_by = FoundBy::Link;
        match traps.process_follow(&page("http://h/", ""), &mut link, cx).unwrap() {
            OnFollow::Keep => None,
            OnFollow::Drop(reason) => Some(reason.reason.into_owned()),
        }
    }

    fn see((traps, cx): &(Traps, Context), url: &str, text: &str) {
        traps.process_page(&mut page(url, text), cx).unwrap();
    }

    #[test]
    fn query_variants_are_dropped_where_pages_repeat() {
        let set = traps(Guard::Drop, |_| {});
        for round in 0..2 {
            for n in 0..20 {
                assert_eq!(follow(&set, &format!("http://h/list?n={n}")), None, "round {round}");
            }
        }
        assert_eq!(follow(&set, "http://h/list?n=20"), None, "no page was seen yet");
        for n in 0..20 {
            see(&set, &format!("http://h/list?n={n}"), &format!("one of three: {}", n % 3));
        }
        assert_eq!(follow(&set, "http://h/list?n=21").as_deref(), Some("query_variants"));
        assert_eq!(follow(&set, "http://h/list?n=5"), None, "what is known already is no news");
        assert_eq!(follow(&set, "http://h/list"), None);
        assert_eq!(follow(&set, "http://h/other?n=21"), None);
        assert_eq!(follow(&set, "http://g/list?n=21"), None);
        assert_eq!(set.1.stats().get("traps/query_variants"), 1);
    }

    #[test]
    fn query_variants_with_their_own_contents_are_followed() {
        let set = traps(Guard::Drop, |_| {});
        for n in 0..200 {
            let url = format!("http://h/article?id={n}");
            assert_eq!(follow(&set, &url), None, "{url}");
            // One in three pages is an empty result.
            see(&set, &url, &if n % 3 == 0 { "nothing".to_owned() } else { format!("article {n}") });
        }
        assert_eq!(set.1.stats().get("traps/query_variants"), 0);
    }

    #[test]
    fn warn_counts_and_follows() {
        let set = traps(Guard::Warn, |_| {});
        for n in 0..25 {
            assert_eq!(follow(&set, &format!("http://h/list?n={n}")), None);
        }
        assert_eq!(set.1.stats().get("traps/query_variants"), 5);
    }

    #[test]
    fn a_template_has_so_many_addresses_per_host() {
        let set = traps(Guard::Drop, |settings| {
            settings.change(|own: &mut TrapsSettings| own.max_urls_per_template = 10)
        });
        for n in 0..10 {
            assert_eq!(follow(&set, &format!("http://h/product/{n}/reviews")), None);
            assert_eq!(follow(&set, &format!("http://h/product/{n}/reviews#top")), None);
        }
        assert_eq!(follow(&set, "http://h/product/10/reviews").as_deref(), Some("template"));
        assert_eq!(follow(&set, "http://h/product/9/reviews"), None);
        assert_eq!(follow(&set, "http://h/product/10"), None);
        assert_eq!(follow(&set, "http://g/product/10/reviews"), None);
    }

    #[test]
    fn dates_far_from_now_are_a_calendar() {
        let set = traps(Guard::Drop, |_| {});
        let this: i32 = set.1.now().to_rfc3339()[..4].parse().unwrap();
        for (year, dropped) in [(this + 2, false), (this + 3, true), (this - 30, false), (this - 31, true)] {
            for url in [format!("http://h/events/{year}/05/"), format!("http://h/cal?month=3&year={year}")] {
                assert_eq!(follow(&set, &url).as_deref(), dropped.then_some("calendar"), "{url}");
            }
            assert_eq!(follow(&set, &format!("http://h/item/{year}")), None, "a number is no date");
        }
    }

    #[test]
    fn off_is_not_configured_and_0_is_no_limit() {
        assert!(Traps::from_settings(&Settings::default()).unwrap().is_none());
        let set = traps(Guard::Drop, |settings| {
            settings.change(|own: &mut TrapsSettings| own.max_query_variants = 0)
        });
        for n in 0..100 {
            let url = format!("http://h/{n}?n={n}");
            assert_eq!(follow(&set, &url), None);
            see(&set, &url, "same");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_last_used_entries_are_kept() {
        let mut groups = Groups::new(100, 500);
        for n in 0..20_000_u64 {
            assert!(groups.admit(n, "a", 50));
            // This trap is seen again and again.
            groups.admit(u64::MAX, &n.to_string(), 50);
            assert!(groups.groups.len() <= 100 && groups.members <= 500);
            assert_eq!(
                groups.members,
                groups.groups.values().map(|group| group.members.len()).sum::<usize>()
            );
        }
        assert_eq!(groups.len(u64::MAX), 50);
        assert_eq!(groups.len(19_999), 1);
        let mut many = Groups::new(100, 500);
        for n in 0..5_000_u64 {
            many.admit(n % 20, &n.to_string(), 1_000);
            assert!(many.members <= 500);
        }
        let mut contents = Contents::default();
        for n in 0..1_000 {
            contents.add(n);
        }
        assert_eq!((contents.last.len(), contents.repeat()), (Contents::WINDOW, false));
    }
}
