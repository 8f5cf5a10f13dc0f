//! The simulated web: hosts and pages, and the responses of each page to successive attempts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use huntsman_crawler::FetchErrorKind;
use url::Url;

use super::seeded_random::SeededRandom;
use crate::script::Reply;

/// All hosts.
#[derive(Debug)]
pub(super) struct Web {
    seed: u64,
    hosts: Vec<Host>,
}

#[derive(Debug)]
struct Host {
    name: String,
    address: IpAddr,
    pages: Vec<Kind>,
    robots: Robots,
    /// Maximum of the usual latency.
    latency: u64,
    /// The host cannot be reached from the first of these times to the second.
    down: Option<(Duration, Duration, FetchErrorKind)>,
}

impl Host {
    /// Why the host cannot be reached at a time, if so.
    fn down_at(&self, now: Duration) -> Option<FetchErrorKind> {
        self.down.filter(|(from, until, _)| (*from..*until).contains(&now)).map(|(_, _, kind)| kind)
    }
}

/// The state of a host's robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Robots {
    None,
    Rules {
        crawl_delay: u64,
    },
    /// A server error for this number of first attempts.
    Late(u64),
    Broken,
}

/// The behaviour of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// It fails this often before it is served.
    Flaky(u64, FetchErrorKind),
    /// The server is busy this often, and asks the client to wait for this number of seconds.
    Busy(u64, u16, Option<u64>),
    Status(u16),
    Redirect(u16, String),
    Refresh(String),
    /// It is served after this delay.
    Slow(Duration),
    /// It is never served.
    Never(FetchErrorKind),
    /// Its callback fails after half of the page.
    CallbackError,
    CallbackPanic,
    /// The user's middleware fails on it.
    MiddlewareError,
    MiddlewarePanic,
    /// A page with the text and the links of another one.
    Copy,
}

/// A path that robots.txt forbids on hosts that have rules.
const FORBIDDEN: &str = "/shut/";

impl Web {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = SeededRandom::of(seed, "web");
        let names = dice.between(1, 5);
        let sizes: Vec<usize> = (0..names).map(|_| dice.between(1, 16)).collect();
        let hosts = (0..names).map(|host| {
            let pages = (0..sizes[host]).map(|_| kind(&mut dice, &sizes)).collect();
            let robots = match dice.below(8) {
                0..=3 => Robots::None,
                4 | 5 => Robots::Rules { crawl_delay: dice.pick(&[0, 0, 1, 3, 60]) },
                6 => Robots::Late(dice.between(1, 3) as u64),
                _ => Robots::Broken,
            };
            let down = dice.one_in(6).then(|| {
                let from = dice.millis(20_000);
                let kinds = [FetchErrorKind::Dns, FetchErrorKind::Connect, FetchErrorKind::ConnectTimeout];
                let long = if dice.one_in(3) { Duration::from_secs(1 << 30) } else { dice.millis(120_000) };
                (from, from + long, dice.pick(&kinds))
            });
            let last = u8::try_from(host).unwrap_or(0) / 2 + 1;
            let name = if dice.one_in(3) { format!("w{host}.one.test") } else { format!("h{host}.test") };
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            Host { name, address, pages, robots, latency: dice.pick(&[0, 5, 100, 2_000]), down }
        });
        Self { seed, hosts: hosts.collect() }
    }

    pub(super) fn seeds(&self) -> Vec<String> {
        let mut dice = SeededRandom::of(self.seed, "seeds");
        let mut seeds = vec![address(&self.hosts[0].name, 0, &mut dice)];
        for host in &self.hosts {
            if dice.one_in(2) {
                let page = dice.below(host.pages.len());
                seeds.push(address(&host.name, page, &mut dice));
            }
        }
        seeds
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = (&str, IpAddr)> {
        self.hosts.iter().map(|host| (host.name.as_str(), host.address))
    }

    fn host(&self, url: &Url) -> Option<&Host> {
        self.hosts.iter().find(|host| Some(host.name.as_str()) == url.host_str())
    }

    pub(super) fn robots(&self, url: &Url) -> Option<Robots> {
        self.host(url).map(|host| host.robots)
    }

    /// Whether the host of an address can be reached at a time.
    pub(super) fn is_up(&self, url: &Url, now: Duration) -> bool {
        self.host(url).is_some_and(|host| host.down_at(now).is_none())
    }

    /// The page of an address; `None` if there is none.
    pub(super) fn kind(&self, url: &Url) -> Option<&Kind> {
        let host = self.host(url)?;
        host.pages.get(number(url)?)
    }

    pub(super) fn is_forbidden(&self, url: &Url) -> bool {
        url.path().starts_with(FORBIDDEN)
            && matches!(self.robots(url), Some(Robots::Rules { .. } | Robots::Late(_)))
    }

    /// Where the links of a page lead.
    pub(super) fn links(&self, url: &Url) -> Vec<String> {
        if !self.is_page(url) {
            return Vec::new();
        }
        let (at, kind) = (self.host(url), self.kind(url));
        let same = if kind == Some(&Kind::Copy) { "copy".to_owned() } else { url.path().to_owned() };
        let mut dice =
            SeededRandom::of(self.seed, &format!("links {} {same}", at.map_or("", |host| &host.name)));
        let mut links = Vec::new();
        for _ in 0..dice.between(0, 6) {
            let host = match at {
                Some(host) if !dice.one_in(3) => host,
                _ => &self.hosts[dice.below(self.hosts.len())],
            };
            // A number beyond the last page links to a page that does not exist.
            let page = dice.below(host.pages.len() + 1);
            links.push(address(&host.name, page, &mut dice));
        }
        links
    }

    /// The items of a page; the name of an item says whether it is dropped, lost or kept.
    pub(super) fn items(&self, url: &Url) -> Vec<String> {
        let mut dice = SeededRandom::of(self.seed, &format!("items {}", plain(url)));
        (0..dice.below(4)).map(|n| format!("{}!{n}!{}", plain(url), dice.below(40))).collect()
    }

    /// Whether the address serves an HTML page, sooner or later.
    fn is_page(&self, url: &Url) -> bool {
        !matches!(self.kind(url), None | Some(Kind::Status(_) | Kind::Redirect(..) | Kind::Never(_)))
    }

    /// The response to attempt number `nth` at a time of the world.
    pub(super) fn answer(&self, url: &Url, nth: u64, now: Duration) -> Reply {
        let Some(host) = self.host(url) else { return Reply::error(FetchErrorKind::Dns) };
        let mut dice = SeededRandom::of(self.seed, &format!("answer {url} {nth}"));
        let latency = dice.millis(host.latency);
        if let Some(kind) = host.down_at(now) {
            return Reply::error(kind).after(dice.millis(10_000));
        }
        if url.path() == "/robots.txt" {
            return robots(host.robots, nth).after(latency);
        }
        let Some(kind) = self.kind(url) else { return Reply::status(404).after(latency) };
        match kind {
            Kind::Flaky(times, kind) if nth < *times => Reply::error(*kind).after(latency),
            Kind::Busy(times, status, wait) if nth < *times => {
                let busy = Reply::status(*status).after(latency);
                wait.map_or_else(
                    || busy.clone(),
                    |wait| busy.clone().header("retry-after", &wait.to_string()),
                )
            }
            Kind::Status(status) => Reply::status(*status).after(latency),
            Kind::Redirect(status, to) => Reply::redirect(*status, to).after(latency),
            Kind::Never(kind) => Reply::error(*kind).after(Duration::from_secs(30)),
            Kind::Slow(time) => Reply::html(self.html(url)).after(*time),
            _ => Reply::html(self.html(url)).after(latency),
        }
    }

    fn html(&self, url: &Url) -> String {
        let mut dice = match self.kind(url) {
            Some(Kind::Copy) => SeededRandom::of(self.seed, "text of all copies"),
            _ => SeededRandom::of(self.seed, &format!("text {}", plain(url))),
        };
        let refresh = match self.kind(url) {
            Some(Kind::Refresh(to)) => format!("<meta http-equiv=refresh content='0; url={to}'>"),
            _ => String::new(),
        };
        let links: String = self.links(url).iter().map(|link| format!("<a href='{link}'>x</a> ")).collect();
        format!("{refresh}<title>{}</title><p>{}</p>{links}", dice.below(1_000), dice.prose(60))
    }
}

/// An address, spelt in one of several equivalent ways.
fn address(host: &str, page: usize, dice: &mut SeededRandom) -> String {
    let folder = if page % 7 == 6 { FORBIDDEN } else { "/" };
    let base = format!("http://{host}{folder}p{page}");
    match dice.below(8) {
        0 => format!("{base}#part"),
        1 => format!("{base}?b=2&a=1"),
        2 => format!("{base}?a=1&b=2"),
        3 => format!("{base}?session={}", dice.below(3)),
        _ => base,
    }
}

/// The number of a page in its host.
fn number(url: &Url) -> Option<usize> {
    url.path().rsplit('/').next()?.strip_prefix('p')?.parse().ok()
}

/// An address without its fragment.
fn plain(url: &Url) -> &str {
    &url[..url::Position::AfterQuery]
}

fn kind(dice: &mut SeededRandom, sizes: &[usize]) -> Kind {
    use FetchErrorKind as K;
    let elsewhere = |dice: &mut SeededRandom| {
        let host = dice.below(sizes.len());
        let page = dice.below(sizes[host] + 1);
        match dice.below(3) {
            0 => address(&format!("h{host}.test"), page, dice),
            _ => format!("/p{page}"),
        }
    };
    let statuses = [404, 404, 410, 500, 403, 204];
    match dice.below(40) {
        0..=2 => {
            Kind::Flaky(dice.between(1, 5) as u64, dice.pick(&[K::Reset, K::FirstByteTimeout, K::Incomplete]))
        }
        3..=5 => {
            let wait = dice.pick(&[None, Some(0), Some(1), Some(7), Some(100), Some(100_000_000)]);
            Kind::Busy(dice.between(1, 4) as u64, dice.pick(&[429, 503]), wait)
        }
        6 | 7 => Kind::Status(dice.pick(&statuses)),
        8..=12 => Kind::Redirect(dice.pick(&[301, 302, 307]), elsewhere(dice)),
        13 => Kind::Refresh(elsewhere(dice)),
        14 => Kind::Slow(Duration::from_secs(dice.between(1, 29) as u64)),
        15 => {
            Kind::Never(dice.pick(&[K::TotalTimeout, K::TooLarge, K::BadResponse, K::Decode, K::ContentType]))
        }
        16 => Kind::CallbackError,
        17 => Kind::CallbackPanic,
        18 => Kind::MiddlewareError,
        19 => Kind::MiddlewarePanic,
        20..=22 => Kind::Copy,
        _ => Kind::Plain,
    }
}

fn robots(robots: Robots, nth: u64) -> Reply {
    let rules = |delay: u64| {
        let delay = if delay > 0 { format!("Crawl-delay: {delay}\n") } else { String::new() };
        Reply::text(format!("User-agent: *\nDisallow: {FORBIDDEN}\n{delay}"))
    };
    match robots {
        Robots::None => Reply::status(404),
        Robots::Rules { crawl_delay } => rules(crawl_delay),
        Robots::Late(times) if nth >= times => rules(0),
        Robots::Late(_) => Reply::status(503),
        Robots::Broken => Reply::error(FetchErrorKind::Reset),
    }
}

/// Number of attempts for each address, over all lives.
pub(super) type Tries = BTreeMap<String, u64>;
