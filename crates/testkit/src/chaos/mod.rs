//! A hostile web on loopback: named bad behaviours, each judged by what the server sees.
//!
//! Everything is bounded: a response ends after 20 s (or [`ChaosBuilder::hold`]) or 64 MiB at the latest, and endless
//! sites stop linking to new pages at some point. The test bed judges what a server can see: the number of requests,
//! of bytes, the times, which links were followed, and which headers were sent. Memory, output and exit codes are
//! left to the test that uses it.

mod addresses;
mod behaviour;
mod bodies;
mod bombs;
mod codings;
mod cookies;
mod headers;
mod judge;
mod markup;
mod protocol;
mod redirects;
mod retries;
mod robots;
mod sitemaps;
mod time;
mod traps;
mod wire;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use url::Url;

use crate::answer::{Answer, Part};
use crate::record::{Record, SiteRequest};
use crate::site::{RunningSite, Site};
use behaviour::{Behaviour, Endpoints, Exchange, KEPT, Location, POISON, page};
use judge::Evidence;

pub use behaviour::Family;
pub use judge::Verdict;

/// The host of the seed and of the first control pages.
const MAIN: &str = "127.0.0.1";
/// Another site: it may be crawled, and must not receive data that belongs to others.
const STRANGER: &str = "127.0.0.70";
/// The host that the address guard must keep the client from; it is never an exception.
const INSIDE: &str = "127.0.0.80";
/// Prefix of the addresses of silent hosts.
const SILENT: &str = "127.0.1.";
/// Time within which 95 % of a healthy host's pages must be requested, whatever hangs elsewhere.
const UNHINDERED: Duration = Duration::from_secs(60);

/// Control pages of the seed's host: a binary tree below `/plain/0`.
const MAIN_CONTROLS: usize = 15;
/// Number of control pages of every family.
const FAMILY_CONTROLS: usize = 3;

const PLAIN_ROBOTS: &str = "User-agent: *\nDisallow: /closed/\n";

/// A running hostile web.
///
/// The client under test crawls from [`seed_url`](Self::seed_url), obeys robots.txt, stays on [`hosts`](Self::hosts),
/// uses [`exceptions`](Self::exceptions) of the address guard, and limits the time of a whole request to less than
/// 0.9 of [`ChaosBuilder::hold`]. Afterwards [`verdict`](Self::verdict) says how it did.
///
/// To test whether credentials leak, give the client some for [`origin`](Self::origin) of [`Family::Cookies`]. The
/// test bed expects cookies to be on, `nofollow` to be obeyed, and at most three attempts.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use huntsman_testkit::{Chaos, Family};
/// use std::time::Duration;
/// let chaos = Chaos::builder().family(Family::Time).hold(Duration::from_secs(2)).start().await;
/// // A crawl from chaos.seed_url() goes here; without one, nothing was reached.
/// let silent = chaos.verdict().into_iter().find(|verdict| verdict.name == "silent").unwrap();
/// assert_eq!(silent.to_string(), "FAIL time/silent: not reached");
/// # }
/// ```
pub struct Chaos {
    site: RunningSite,
    other: RunningSite,
    bed: Arc<Bed>,
}

/// The behaviours that are served.
struct Bed {
    endpoints: Endpoints,
    behaviours: Vec<Behaviour>,
    silent_hosts: u8,
}

/// A behaviour in the list of the test bed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BehaviourInfo {
    /// Stable name, unique in the test bed.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// What it does, in a few words.
    pub about: &'static str,
    /// The URL of its entry page.
    pub url: Url,
    /// The link that a correct client follows from there, if any.
    pub kept: Option<Url>,
    /// The link that a correct client never follows, if any.
    pub poison: Option<Url>,
    /// Number of requests that are allowed below its URL.
    pub requests: usize,
}

/// The configuration of a [`Chaos`].
#[derive(Clone, Debug)]
pub struct ChaosBuilder {
    hold: Duration,
    max_body: u64,
    max_hops: usize,
    crawl_delay: Duration,
    one_host: bool,
    dedup_traps: bool,
    sitemaps: bool,
    silent_hosts: u8,
    families: BTreeSet<Family>,
    names: BTreeSet<String>,
    excluded: BTreeSet<String>,
}

impl Chaos {
    /// Serves all behaviours with the defaults.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Configures what to serve, and the limits.
    pub fn builder() -> ChaosBuilder {
        ChaosBuilder {
            hold: Duration::from_secs(20),
            max_body: 16 << 20,
            max_hops: 20,
            crawl_delay: Duration::from_secs(1),
            one_host: false,
            dedup_traps: false,
            sitemaps: false,
            silent_hosts: 0,
            families: BTreeSet::new(),
            names: BTreeSet::new(),
            excluded: BTreeSet::new(),
        }
    }

    /// The URL at which a crawl begins.
    pub fn seed_url(&self) -> Url {
        self.site.url_on(MAIN, "/")
    }

    /// The origin of a family: scheme, host and port.
    pub fn origin(&self, family: Family) -> Url {
        self.site.url_on(self.bed.endpoints.host_of(family), "/")
    }

    /// All hosts that may be crawled, and the inside host, which only the address guard protects.
    pub fn hosts(&self) -> Vec<String> {
        self.site.hosts().to_vec()
    }

    /// The exceptions that the address guard needs, as `host:port`.
    pub fn exceptions(&self) -> Vec<String> {
        let hosts = self.site.hosts().iter().filter(|host| *host != INSIDE);
        hosts.map(|host| format!("{host}:{}", self.site.port())).collect()
    }

    /// The served behaviours, in the order of the verdict.
    pub fn behaviours(&self) -> Vec<BehaviourInfo> {
        let endpoints = &self.bed.endpoints;
        let listed = |behaviour: &Behaviour| {
            let url = |rest: &str| self.site.url_on(behaviour.host(endpoints), &behaviour.path(rest));
            BehaviourInfo {
                name: behaviour.name,
                family: behaviour.family,
                about: behaviour.about,
                url: url(""),
                kept: behaviour.has_kept.then(|| url(KEPT)),
                poison: behaviour.has_poison.then(|| url(POISON)),
                requests: behaviour.requests.count(endpoints),
            }
        };
        self.bed.behaviours.iter().map(listed).collect()
    }

    /// The URLs of the control pages, which every client must fetch whatever happens elsewhere.
    pub fn control_urls(&self) -> Vec<Url> {
        self.bed.controls().iter().map(|(host, path)| self.site.url_on(host, path)).collect()
    }

    /// What the server has recorded so far.
    pub fn record(&self) -> Record {
        self.site.record()
    }

    /// The verdict on every behaviour, then on the test bed as a whole.
    pub fn verdict(&self) -> Vec<Verdict> {
        self.bed.judge(&self.site.record(), &self.other.record())
    }

    /// The verdict as lines of text, failures first.
    pub fn report(&self) -> String {
        let (passed, mut failed): (Vec<_>, Vec<_>) =
            self.verdict().into_iter().partition(|verdict| verdict.pass);
        let summary = format!("{} passed, {} failed", passed.len(), failed.len());
        failed.extend(passed);
        failed.iter().map(ToString::to_string).chain([summary]).collect::<Vec<_>>().join("\n")
    }

    /// Passes the test if every behaviour passed.
    ///
    /// # Panics
    /// If a behaviour failed; the message lists all that did.
    pub fn assert_passed(&self) {
        let failed: Vec<String> =
            self.verdict().iter().filter(|verdict| !verdict.pass).map(ToString::to_string).collect();
        assert!(failed.is_empty(), "{} behaviours failed:\n{}", failed.len(), failed.join("\n"));
    }
}

impl fmt::Debug for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behaviours = self.bed.behaviours.len();
        f.debug_struct("Chaos")
            .field("port", &self.site.port())
            .field("behaviours", &behaviours)
            .finish_non_exhaustive()
    }
}

impl ChaosBuilder {
    /// Ends every response after this time (default 20 s). The client's own limit should be below 0.9 of it.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// The client's limit on bodies (default 16 MiB, at most 48 MiB).
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.max_body = bytes.min(48 << 20);
        self
    }

    /// How many redirects the client follows from one request (default 20, at least 10).
    pub fn max_hops(mut self, hops: usize) -> Self {
        self.max_hops = hops.max(10);
        self
    }

    /// The Crawl-delay of the polite site (default 1 s).
    pub fn crawl_delay(mut self, delay: Duration) -> Self {
        self.crawl_delay = delay;
        self
    }

    /// Serves all families on the host of the seed, so that bad pages and control pages share a slot.
    pub fn one_host(mut self) -> Self {
        self.one_host = true;
        self
    }

    /// Adds traps that only a client with a model of duplicate content can leave.
    pub fn dedup_traps(mut self) -> Self {
        self.dedup_traps = true;
        self
    }

    /// Adds bad sitemaps, for clients that read sitemaps. The robots.txt of [`origin`](Chaos::origin) of
    /// [`Family::Sitemaps`] names them.
    pub fn sitemaps(mut self) -> Self {
        self.sitemaps = true;
        self
    }

    /// Adds hosts that never respond, and judges whether they hold back the control pages (default none).
    pub fn silent_hosts(mut self, hosts: u8) -> Self {
        self.silent_hosts = hosts;
        self
    }

    /// Serves only the families that are named by calls of this method.
    pub fn family(mut self, family: Family) -> Self {
        self.families.insert(family);
        self
    }

    /// Serves only the behaviours that are named by calls of this method.
    ///
    /// # Panics
    /// At the start, if there is no behaviour of this name.
    pub fn only(mut self, name: &str) -> Self {
        self.names.insert(name.to_owned());
        self
    }

    /// Does not serve the behaviours that are named by calls of this method.
    ///
    /// # Panics
    /// At the start, if there is no behaviour of this name.
    pub fn without(mut self, name: &str) -> Self {
        self.excluded.insert(name.to_owned());
        self
    }

    /// Starts the servers on one free port of many loopback addresses.
    ///
    /// # Panics
    /// If it cannot listen; see [`SiteBuilder::start`](crate::SiteBuilder::start).
    pub async fn start(self) -> Chaos {
        let bed = Arc::new(self.bed());
        let other = Site::builder().route("/*", |_| Answer::text("inside")).start().await;
        let site = bed.site(self.hold).start().await;
        bed.serve_at(&site, &other);
        Chaos { site, other, bed }
    }

    /// Starts the servers outside of an async runtime, for tests that drive a binary.
    ///
    /// # Panics
    /// As [`start`](Self::start), and if it is called within an async runtime.
    pub fn start_blocking(self) -> Chaos {
        let bed = Arc::new(self.bed());
        let other = Site::builder().route("/*", |_| Answer::text("inside")).start_blocking();
        let site = bed.site(self.hold).start_blocking();
        bed.serve_at(&site, &other);
        Chaos { site, other, bed }
    }

    fn bed(&self) -> Bed {
        let mut behaviours = all();
        for name in self.names.union(&self.excluded) {
            assert!(
                behaviours.iter().any(|behaviour| behaviour.name == name),
                "there is no behaviour {name}"
            );
        }
        let choosy = !self.names.is_empty() || !self.families.is_empty();
        behaviours.retain(|behaviour| {
            let named = self.names.contains(behaviour.name);
            let chosen = named || self.families.contains(&behaviour.family);
            (chosen || !choosy)
                && !self.excluded.contains(behaviour.name)
                && (named || !behaviour.needs_dedup || self.dedup_traps)
                && (chosen || !behaviour.needs_sitemaps || self.sitemaps)
        });
        let endpoints = Endpoints {
            port: OnceLock::new(),
            other_port: OnceLock::new(),
            hold: self.hold,
            max_body: self.max_body,
            max_hops: self.max_hops,
            crawl_delay: self.crawl_delay,
            one_host: self.one_host,
        };
        Bed { endpoints, behaviours, silent_hosts: self.silent_hosts }
    }
}

/// Every behaviour, by family.
fn all() -> Vec<Behaviour> {
    let families = [
        bodies::behaviours(),
        headers::behaviours(),
        codings::behaviours(),
        time::behaviours(),
        retries::behaviours(),
        redirects::behaviours(),
        addresses::behaviours(),
        cookies::behaviours(),
        markup::behaviours(),
        traps::behaviours(),
        robots::behaviours(),
        protocol::behaviours(),
        sitemaps::behaviours(),
    ];
    families.into_iter().flatten().collect()
}

impl Bed {
    fn site(self: &Arc<Self>, hold: Duration) -> crate::site::SiteBuilder {
        let mut hosts: BTreeSet<String> = [MAIN, STRANGER, INSIDE].map(str::to_owned).into();
        hosts.extend(self.families().iter().map(|family| self.endpoints.host_of(*family).to_owned()));
        hosts.extend(self.behaviours.iter().map(|behaviour| behaviour.host(&self.endpoints).to_owned()));
        hosts.extend(self.silent());
        hosts.iter().fold(Site::builder().hold(hold), |site, host| {
            let bed = Arc::clone(self);
            site.host(host).route("/*", move |request| bed.answer(request))
        })
    }

    fn serve_at(&self, site: &RunningSite, other: &RunningSite) {
        self.endpoints.port.set(site.port()).expect("a bed is served once");
        self.endpoints.other_port.set(other.port()).expect("a bed is served once");
    }

    fn families(&self) -> BTreeSet<Family> {
        self.behaviours.iter().map(|behaviour| behaviour.family).collect()
    }

    fn silent(&self) -> impl Iterator<Item = String> {
        (1..=self.silent_hosts).map(|number| format!("{SILENT}{number}"))
    }

    fn controls(&self) -> Vec<(&'static str, String)> {
        let mut pages: Vec<_> = (0..MAIN_CONTROLS).map(|number| (MAIN, format!("/plain/{number}"))).collect();
        for family in self.families() {
            let path = |number| format!("/{family}/plain/{number}");
            pages.extend((0..FAMILY_CONTROLS).map(|number| (self.endpoints.host_of(family), path(number))));
        }
        pages
    }

    fn answer(&self, request: &SiteRequest) -> Answer {
        let (host, path) = (request.host.as_str(), request.path());
        if host.starts_with(SILENT) {
            return Answer::parts([Part::Stall]);
        }
        let dedicated =
            |behaviour: &&Behaviour| matches!(behaviour.place, Location::Host(own) if own == host);
        if let Some(behaviour) = self.behaviours.iter().find(dedicated) {
            return self.answer_for(behaviour, request);
        }
        match path {
            "/robots.txt" => return Answer::text(PLAIN_ROBOTS.to_owned() + &self.sitemap_lines(host)),
            "/" if host == MAIN => return Answer::html(self.index(request)),
            _ => {}
        }
        if host == STRANGER || host == INSIDE {
            return cookies::at_others(request);
        }
        if let Some(number) = path.strip_prefix("/plain/").and_then(|number| number.parse::<usize>().ok()) {
            let children =
                [2 * number + 1, 2 * number + 2].into_iter().filter(|child| *child < MAIN_CONTROLS);
            let links: Vec<String> = children.map(|child| format!("/plain/{child}")).collect();
            return Answer::html(page(path, &texts(&links)));
        }
        for family in self.families() {
            let Some(below) = path.strip_prefix('/').and_then(|path| path.strip_prefix(family.name())) else {
                continue;
            };
            match below {
                "/" => return Answer::html(self.family_index(family, request)),
                _ if below.starts_with("/plain/") => return Answer::html(page(path, &[])),
                _ => {}
            }
        }
        let mut placed = self.behaviours.iter().filter(|behaviour| matches!(behaviour.place, Location::Path));
        match placed
            .find(|behaviour| host == behaviour.host(&self.endpoints) && behaviour.rest_of(path).is_some())
        {
            Some(behaviour) => self.answer_for(behaviour, request),
            None => Answer::status(404).header("Content-Type", "text/html").body("<p>not found</p>"),
        }
    }

    fn answer_for(&self, behaviour: &Behaviour, request: &SiteRequest) -> Answer {
        let rest = behaviour.rest_of(request.path()).unwrap_or_default();
        if rest == KEPT || rest == POISON {
            return Answer::html(page(&request.target, &[]));
        }
        (behaviour.answer)(&Exchange { request, endpoints: &self.endpoints, behaviour, rest })
    }

    /// The lines about sitemaps in the robots.txt of a host.
    fn sitemap_lines(&self, host: &str) -> String {
        let is_named = |behaviour: &&Behaviour| {
            behaviour.needs_sitemaps && host == self.endpoints.host_of(behaviour.family)
        };
        let named = self.behaviours.iter().filter(is_named);
        named
            .map(|behaviour| {
                let url = self.endpoints.url(behaviour.host(&self.endpoints), &behaviour.path(""));
                format!("Sitemap: {url}\n")
            })
            .collect()
    }

    fn index(&self, request: &SiteRequest) -> String {
        let mut links = vec!["/plain/0".to_owned(), "/closed/by-robots".to_owned()];
        links.extend(self.silent().map(|host| self.endpoints.url(&host, "/")));
        for family in self.families() {
            links.push(self.endpoints.url(self.endpoints.host_of(family), &format!("/{family}/")));
        }
        page(&format!("{} of the bed", request.target), &texts(&links))
    }

    fn family_index(&self, family: Family, request: &SiteRequest) -> String {
        let members = self.behaviours.iter().filter(|behaviour| behaviour.family == family);
        let mut links: Vec<String> = members.flat_map(|behaviour| behaviour.links(&self.endpoints)).collect();
        links.extend((0..FAMILY_CONTROLS).map(|number| format!("/{family}/plain/{number}")));
        page(&request.target, &texts(&links))
    }

    fn judge(&self, record: &Record, other: &Record) -> Vec<Verdict> {
        let mut verdicts: Vec<Verdict> = self
            .behaviours
            .iter()
            .map(|behaviour| Evidence::new(&self.endpoints, record, other, behaviour).judge())
            .collect();
        let controls = self.controls();
        let mut plain: BTreeSet<&str> = [MAIN, STRANGER].into();
        plain.extend(self.families().into_iter().map(|family| self.endpoints.host_of(family)));
        let plain: Vec<&str> = plain.into_iter().collect();
        verdicts.push(judge::controls(record, &controls));
        verdicts.push(judge::stranger(record));
        verdicts.push(judge::inside(record, other));
        verdicts.push(judge::robots_once(record, &plain));
        verdicts.push(judge::closed(record));
        verdicts.push(judge::well_formed(record));
        if self.silent_hosts > 0 {
            verdicts.push(judge::unhindered(record, &controls, UNHINDERED));
        }
        verdicts
    }
}

fn texts(links: &[String]) -> Vec<&str> {
    links.iter().map(String::as_str).collect()
}
