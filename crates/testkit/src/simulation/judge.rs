//! The promises of a crawl, checked while it runs and at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{
    CrawlReport, DiskFrontier, DiskLimits, Frontier, HostKey, Nested, Order, Request, SlotBy,
};
use huntsman_text::urlparts::canonical;
use url::Url;

use super::environment::{Environment, Fetch};
use super::life::LifeEnd;
use super::plan::Plan;
use super::sinks::{Fate, ITEMS, Lines, RECORDS};
use super::web::{Kind, Robots};
use crate::script::Fetched;

/// The resolution of timers is a millisecond.
const GRAIN: Duration = Duration::from_millis(1);

pub(super) struct Judge<'a> {
    plan: &'a Plan,
    environment: &'a Environment,
}

/// A record as written in the file.
struct Record {
    is_delivered: bool,
    url: String,
    /// For a delivered page its source, for a dropped one the reason.
    rest: String,
}

fn form(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| canonical(&url))
}

impl<'a> Judge<'a> {
    pub(super) fn new(plan: &'a Plan, environment: &'a Environment) -> Self {
        Self { plan, environment }
    }

    /// When a request reaches the web: its record must not be written yet, and robots.txt must allow it.
    pub(super) fn fetch(plan: &Plan, environment: &Environment, request: &Request) {
        if request.url.path() == "/robots.txt" {
            return;
        }
        let unit = request.requested_url();
        let is_nested = request.extensions.get::<Nested>().is_some();
        let position = Lines::position(environment.disk.value(&Lines::key(RECORDS)).as_deref());
        let records = environment.disk.lines(RECORDS);
        if !is_nested && records.iter().take(position).any(|record| record.split(' ').nth(1) == Some(unit)) {
            environment.breaks(format!("{} is fetched again after its record was committed", request.url));
        }
        if plan.flag("robotstxt_obey")
            && plan.word("robots_on_error") == "disallow"
            && environment.web.is_forbidden(&request.url)
        {
            environment.breaks(format!("{} is fetched, which robots.txt forbids", request.url));
        }
    }

    /// After a life: requests to hosts must be spaced as the settings say.
    pub(super) fn pace(plan: &Plan, environment: &Environment, life: u32, fetched: &[Fetched]) {
        let fetches: Vec<Fetch> =
            environment.fetches().into_iter().filter(|fetch| fetch.life == life).collect();
        let seen: Vec<(&Fetched, &Fetch)> = fetched.iter().zip(&fetches).collect();
        let most = plan.number("concurrent_requests") as usize;
        if let Some(at) = crowd(&seen, most) {
            environment.breaks(format!("more than {most} requests at once at {at:?}"));
        }
        let mut slots: BTreeMap<String, Vec<(&Fetched, &Fetch)>> = BTreeMap::new();
        for (fetched, fetch) in seen {
            slots.entry(slot(plan, environment, &fetch.request.url)).or_default().push((fetched, fetch));
        }
        for (slot, seen) in slots {
            let most = plan.number("concurrent_requests_per_domain") as usize;
            if let Some(at) = crowd(&seen, most) {
                environment.breaks(format!("more than {most} requests at once to {slot} at {at:?}"));
            }
            for pair in seen.windows(2) {
                let (first, second) = (pair[0].0, pair[1].0);
                let least = gap(plan, environment, &seen, pair[1]);
                if second.started + GRAIN < first.started + least {
                    let gap = second.started - first.started;
                    environment.breaks(format!("{gap:?} and not {least:?} before {}", second.url()));
                }
            }
            rest(plan, environment, &seen);
        }
    }

    /// After a life: an error must have a reason.
    pub(super) fn life(&self, life: u32, end: &LifeEnd, may_fail: bool) {
        if let LifeEnd::Failed(error) = end
            && !may_fail
        {
            self.environment.breaks(format!("life {life} failed without a reason: {error}"));
        }
    }

    fn records(&self) -> Vec<Record> {
        let lines = self.environment.disk.lines(RECORDS);
        lines
            .iter()
            .map(|line| {
                let mut words = line.splitn(3, ' ').map(str::to_owned);
                let mut word = || words.next().unwrap_or_default();
                Record { is_delivered: word() == "delivered", url: word(), rest: word() }
            })
            .collect()
    }

    /// Checks the promises after the last life.
    pub(super) fn crawl(&self, end: &LifeEnd) {
        let LifeEnd::Finished(report) = end else {
            if self.plan.has_job {
                self.environment.breaks(format!("the crawl never came to its end: {end:?}"));
            }
            return;
        };
        let records = self.records();
        self.each_once(&records);
        self.nothing_lost(report, &records);
        self.items(&records);
        self.counts(report, &records);
        if self.plan.has_job {
            self.job();
        }
    }

    fn each_once(&self, records: &[Record]) {
        let mut known = BTreeSet::new();
        for record in records {
            if !known.insert(form(&record.url)) {
                self.environment.breaks(format!("{} has two records", record.url));
            }
        }
    }

    /// Every address that was found must have a record, be part of a redirect chain to one, or have been refused.
    fn nothing_lost(&self, report: &CrawlReport, records: &[Record]) {
        let environment = self.environment;
        let mut accounted: BTreeSet<String> = records.iter().map(|record| form(&record.url)).collect();
        accounted.extend(environment.all_refused().iter().map(|url| form(url)));
        for fetch in environment.fetches() {
            let url = &fetch.request.url;
            accounted.insert(canonical(url));
            if let Some(Kind::Redirect(_, to) | Kind::Refresh(to)) = environment.web.kind(url) {
                accounted.extend(url.join(to).ok().map(|target| canonical(&target)));
            }
        }
        let mut found: Vec<String> = Vec::new();
        if report.finish_reason == "finished" {
            found.extend(environment.web.seeds());
        }
        for record in records.iter().filter(|record| record.is_delivered) {
            let end = record.rest.split(' ').next().unwrap_or_default();
            found.extend(Url::parse(end).map(|url| environment.web.links(&url)).unwrap_or_default());
        }
        for url in found {
            if !accounted.contains(&form(&url)) {
                environment.breaks(format!("{url} is lost"));
            }
        }
    }

    /// The items of parsed pages must be there, each as often as its page has a record.
    fn items(&self, records: &[Record]) {
        let environment = self.environment;
        let mut expected: BTreeMap<String, usize> = BTreeMap::new();
        let mut failed = BTreeSet::new();
        for record in records {
            let (end, share) = if record.is_delivered {
                (record.rest.split(' ').next().and_then(|end| Url::parse(end).ok()), 1)
            } else {
                failed.insert(format!("failed {}", record.url));
                let is_half = matches!(record.rest.as_str(), "callback_error" | "callback_panic");
                let fetches = environment.fetches();
                let is_of_unit = |fetch: &&Fetch| {
                    fetch.request.requested_url() == record.url
                        && fetch.request.extensions.get::<Nested>().is_none()
                };
                let mut of_unit = fetches.iter().filter(is_of_unit);
                let last = of_unit.next_back().filter(|_| is_half);
                (last.map(|fetch| fetch.request.url.clone()), 2)
            };
            let items = end.map(|end| environment.web.items(&end)).unwrap_or_default();
            let items = &items[..items.len() / share];
            for item in items.iter().filter(|item| Fate::of(item).is_kept()) {
                *expected.entry(item.clone()).or_default() += 1;
            }
        }
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for item in environment.disk.lines(ITEMS) {
            *found.entry(item).or_default() += 1;
        }
        for (item, count) in &found {
            if failed.contains(item) && *count == 1 {
                continue;
            }
            let wanted = expected.get(item).copied().unwrap_or(0);
            if *count > wanted {
                environment.breaks(format!("item {item} is there {count} times, not {wanted}"));
            }
        }
        for (item, wanted) in &expected {
            let count = found.get(item).copied().unwrap_or(0);
            if count < *wanted {
                environment.breaks(format!("item {item} is there {count} times, not {wanted}"));
            }
        }
    }

    /// The counters must agree with the files.
    fn counts(&self, report: &CrawlReport, records: &[Record]) {
        let delivered = records.iter().filter(|record| record.is_delivered).count();
        let dropped = records.len() - delivered;
        let items = self.environment.disk.lines(ITEMS).len();
        let drops = report.stat("drops/failed") + report.stat("drops/skipped");
        for (what, told, is) in [
            ("pages", report.stat("pages/delivered"), delivered),
            ("drops", drops, dropped),
            ("items", report.stat("item_scraped_count"), items),
        ] {
            if usize::try_from(told) != Ok(is) {
                self.environment.breaks(format!("{told} {what} are counted, and there are {is}"));
            }
        }
        let limit = self.plan.number("closespider_pagecount") as usize;
        if limit > 0 && delivered > limit {
            self.environment.breaks(format!("{delivered} pages are more than {limit}"));
        }
    }

    /// The queue must be empty, and the files must end where the job says.
    fn job(&self) {
        let disk = self.environment.disk.mount(u32::MAX, None);
        for file in [ITEMS, RECORDS] {
            let position = Lines::position(self.environment.disk.value(&Lines::key(file)).as_deref());
            let length = self.environment.disk.lines(file).len();
            if position != length {
                self.environment
                    .breaks(format!("{file} has {length} lines, and the job knows of {position}"));
            }
        }
        match DiskFrontier::open(Arc::new(disk), Order::Bfs, DiskLimits::default()) {
            Ok(frontier) if frontier.is_empty() => {}
            Ok(frontier) => {
                self.environment.breaks(format!("{} requests are left in the queue", frontier.len()))
            }
            Err(error) => self.environment.breaks(format!("the queue cannot be read: {error}")),
        }
        self.environment.disk.unmount();
    }
}

/// The first time at which more than `most` requests were in flight, if ever.
fn crowd(seen: &[(&Fetched, &Fetch)], most: usize) -> Option<Duration> {
    let in_flight = |at: Duration| {
        seen.iter().filter(|(one, _)| one.started <= at && one.ended.is_none_or(|end| end > at)).count()
    };
    seen.iter().map(|(fetched, _)| fetched.started).find(|at| in_flight(*at) > most)
}

/// The slot of an address.
fn slot(plan: &Plan, environment: &Environment, url: &Url) -> String {
    match plan.word("slot_by") {
        "registrable_domain" => HostKey::of(url, SlotBy::RegistrableDomain).as_str().to_owned(),
        "ip" => {
            let mut addresses = environment.web.addresses();
            let known = addresses.find(|(host, _)| Some(*host) == url.host_str());
            known.map_or_else(|| url.host_str().unwrap_or_default().to_owned(), |(_, ip)| ip.to_string())
        }
        _ => url.host_str().unwrap_or_default().to_owned(),
    }
}

/// The minimum time between the start of a request and the start of the previous one.
fn gap(
    plan: &Plan,
    environment: &Environment,
    seen: &[(&Fetched, &Fetch)],
    of: (&Fetched, &Fetch),
) -> Duration {
    let delay = Duration::from_secs_f64(plan.number("download_delay"));
    let asked = match environment.web.robots(&of.1.request.url) {
        Some(Robots::Rules { crawl_delay }) if plan.flag("robotstxt_obey") => crawl_delay as f64,
        _ => 0.0,
    };
    let known = seen.iter().any(|(fetched, fetch)| {
        fetch.request.url.path() == "/robots.txt"
            && fetch.request.url.host() == of.1.request.url.host()
            && environment.web.is_up(&fetch.request.url, fetch.at)
            && fetched.started < of.0.started
            && fetched.ended.is_some_and(|ended| ended <= of.0.started)
    });
    // For a Crawl-delay above the maximum, the host is skipped, or the maximum is used as the delay.
    let is_obeyed = known && asked <= plan.number("robots_max_crawl_delay");
    if is_obeyed { delay.max(Duration::from_secs_f64(asked * 0.98)) } else { delay }
}

/// No request may go to a host before the time that its busy server named.
fn rest(plan: &Plan, environment: &Environment, seen: &[(&Fetched, &Fetch)]) {
    for (fetched, fetch) in seen {
        let Some(Kind::Busy(times, _, Some(wait))) = environment.web.kind(&fetch.request.url) else {
            continue;
        };
        let is_busy = fetch.nth < *times && environment.web.is_up(&fetch.request.url, fetch.at);
        let is_believed = is_busy && *wait as f64 <= plan.number("retry_after_max");
        let (Some(ended), true, false) = (fetched.ended, is_believed, fetched.given_up) else { continue };
        let until = ended + Duration::from_secs(*wait);
        let early = seen.iter().find(|(other, _)| other.started > ended && other.started + GRAIN < until);
        if let Some((early, _)) = early {
            let (at, url) = (early.started, early.url());
            environment.breaks(format!(
                "{url} is asked for at {at:?}, before {until:?}, for which its server asked"
            ));
        }
    }
}
