//! Logs beside the site: which of its URLs were asked for, and which URLs stand only in logs.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_crawler::{Result, Timestamp};
use huntsman_disk::List;
use serde_json::{Value, json};
use url::Url;

use super::robots::Agent;
use super::visits::{Counter, Sums, Visits, each_url};
use super::{BETWEEN, Logs};
use crate::page::without_fragment;
use crate::record::Kind;
use crate::site::{Address, Site, authority, front_of};

/// Logs of the site.
#[derive(Debug)]
pub(crate) struct Joined {
    logs: Logs,
    /// By URL.
    visits: List<Visits>,
    /// By the number of the URL: requests of anybody, and of robots.
    hits: Vec<[u32; 2]>,
    agents: BTreeMap<Agent, OfAgent>,
    /// Requests for other hosts, and one of these.
    elsewhere: (u64, Option<String>),
}

/// What an agent asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfAgent {
    pub(crate) sums: Sums,
    pub(crate) urls: u64,
    pub(crate) answers: Answers,
}

/// Numbers of answers by the first digit of their status: 1xx to 5xx, and what is none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers([u64; 6]);

impl Answers {
    fn add(&mut self, status: u16, hits: u64) {
        self.0[usize::from(status / 100).wrapping_sub(1).min(5)] += hits;
    }

    /// Of this hundred.
    pub(crate) fn of(&self, hundred: usize) -> u64 {
        self.0[hundred - 1]
    }
}

/// Who asked for a URL.
#[derive(Debug)]
pub(crate) struct OfUrl<'a> {
    pub(crate) url: &'a str,
    /// The URL in the audit; `None` if it is known only from logs.
    pub(crate) address: Option<Address<'a>>,
    pub(crate) hits: u64,
    pub(crate) robot_hits: u64,
    pub(crate) answers: Answers,
    /// Seconds since 1970 began at the last request of a robot, or zero.
    pub(crate) last_robot: u64,
    /// Robots with the numbers of their requests, the most frequent first.
    pub(crate) robots: Vec<(Agent, u64)>,
}

impl<'a> OfUrl<'a> {
    fn of(site: &'a Site, visits: &'a [Visits]) -> Self {
        let url = visits.first().map_or("", |first| &first.url);
        let mut robots: BTreeMap<Agent, u64> = BTreeMap::new();
        let mut of_url = Self {
            url,
            address: site.find(url),
            hits: 0,
            robot_hits: 0,
            answers: Answers::default(),
            last_robot: 0,
            robots: Vec::new(),
        };
        for visit in visits {
            of_url.hits += visit.sums.hits;
            of_url.answers.add(visit.status, visit.sums.hits);
            if visit.agent.is_robot() {
                of_url.robot_hits += visit.sums.hits;
                of_url.last_robot = of_url.last_robot.max(visit.sums.last);
                *robots.entry(visit.agent).or_default() += visit.sums.hits;
            }
        }
        of_url.robots = robots.into_iter().collect();
        of_url.robots.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        of_url
    }

    /// Whether the crawl asked for it, or would have.
    pub(crate) fn is_known(&self) -> bool {
        self.address.is_some_and(|address| address.requested().is_some() || address.is_refused())
    }

    /// Whether anybody got it.
    pub(crate) fn is_answered(&self) -> bool {
        self.answers.of(2) > 0
    }
}

/// A time for people and tables; `None` if it is not known.
pub(crate) fn shown_time(seconds: u64) -> Option<String> {
    let text = Timestamp(seconds.saturating_mul(1_000_000)).to_rfc3339();
    (seconds > 0).then(|| text.split('.').next().unwrap_or_default().to_owned() + "Z")
}

impl Joined {
    /// Joins logs with a site.
    pub(crate) fn of(logs: &Logs, site: &Site) -> Result<Self> {
        let origins = Origins::of(site);
        let mut counter = Counter::new(site.scratch(), site.limits().audit_sorted_bytes);
        let mut elsewhere: (u64, Option<String>) = (0, None);
        each_url(&logs.0.visits, &mut |visits| {
            let key = visits.first().map_or("", |first| &first.url);
            let (host, target) = key.split_once(BETWEEN).unwrap_or(("", key));
            let Some(url) = origins.url(site, host, target) else {
                elsewhere.0 += visits.iter().map(|visits| visits.sums.hits).sum::<u64>();
                elsewhere.1.get_or_insert_with(|| host.to_owned());
                return Ok(());
            };
            visits.iter().try_for_each(|visits| counter.add(&url, visits.agent, visits.status, visits.sums))
        })?;
        let mut joined = Self {
            logs: logs.clone(),
            visits: counter.finish()?,
            hits: vec![[0; 2]; site.addresses().len()],
            agents: BTreeMap::new(),
            elsewhere,
        };
        joined.sum_up(site)?;
        Ok(joined)
    }

    fn sum_up(&mut self, site: &Site) -> Result<()> {
        let (hits, agents) = (&mut self.hits, &mut self.agents);
        each_url(&self.visits, &mut |visits| {
            let of_url = OfUrl::of(site, visits);
            if let Some(address) = of_url.address {
                let number = |hits: u64| u32::try_from(hits).unwrap_or(u32::MAX);
                hits[address.number() as usize] = [number(of_url.hits), number(of_url.robot_hits)];
            }
            let mut last = None;
            for visit in visits {
                let of_agent: &mut OfAgent = agents.entry(visit.agent).or_default();
                of_agent.sums.add(visit.sums);
                of_agent.answers.add(visit.status, visit.sums.hits);
                // Those of an agent stand together.
                of_agent.urls += u64::from(last.replace(visit.agent) != Some(visit.agent));
            }
            Ok(())
        })
    }

    /// Requests for a URL: of anybody, and of robots.
    pub(crate) fn hits(&self, number: u32) -> [u32; 2] {
        self.hits.get(number as usize).copied().unwrap_or_default()
    }

    /// All agents.
    pub(crate) fn agents(&self) -> impl Iterator<Item = (Agent, &OfAgent)> {
        self.agents.iter().map(|(agent, of)| (*agent, of))
    }

    /// Calls `each` with all URLs of the site in the logs, in order.
    pub(crate) fn each_url(&self, site: &Site, each: &mut dyn FnMut(&OfUrl<'_>) -> Result<()>) -> Result<()> {
        each_url(&self.visits, &mut |visits| each(&OfUrl::of(site, visits)))
    }

    /// The first and the last time in the logs.
    pub(crate) fn period(&self) -> Option<(String, String)> {
        let (first, last) = self.logs.0.period?;
        let shown = |seconds: i64| u64::try_from(seconds).ok().and_then(shown_time);
        Some((shown(first)?, shown(last)?))
    }

    /// How it is known that an agent is the robot whose name it gives.
    pub(crate) fn verification(&self, agent: Agent) -> &'static str {
        if !agent.is_robot() {
            return "none is needed";
        }
        match self.logs.0.with_ranges.contains(&agent) {
            true => "by the addresses that its operator publishes",
            false => "none: the User-Agent says so",
        }
    }

    /// Whether addresses of any robot are known.
    pub(crate) fn has_ranges(&self) -> bool {
        !self.logs.0.with_ranges.is_empty()
    }

    /// Whether any line names a User-Agent.
    pub(crate) fn has_agents(&self) -> bool {
        self.logs.0.has_agents
    }

    /// Requests for other hosts, and one of these.
    pub(crate) fn elsewhere(&self) -> (u64, Option<&str>) {
        (self.elsewhere.0, self.elsewhere.1.as_deref())
    }

    /// What is to be said of the logs: lines that could not be read, and hosts that are not of the site.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.logs.files().iter().filter_map(super::LogFile::note).collect();
        let is_empty = self.agents.is_empty();
        if let (number @ 1.., Some(host)) = self.elsewhere() {
            let none = if is_empty { "; none is for the site" } else { "" };
            notes.push(format!("{number} requests in the logs are for other hosts, such as {host}{none}"));
        }
        if !is_empty && !self.has_agents() {
            notes.push("the logs name no User-Agent, so robots cannot be told from readers".to_owned());
        }
        notes
    }

    /// The numbers for `report.json`.
    pub(crate) fn totals(&self) -> Value {
        let robots = self.agents().map(|(agent, of)| (agent.name().to_owned(), json!(of.sums.hits)));
        json!({
            "files": self.logs.files(),
            "period": self.period(),
            "requests": self.agents.values().map(|of| of.sums.hits).sum::<u64>(),
            "agents": robots.collect::<serde_json::Map<_, _>>(),
            "other_hosts": self.elsewhere.0,
            "without_page": self.logs.0.without_page,
        })
    }
}

/// Under which origins a site is.
struct Origins {
    /// Those at which the crawl began, without a slash at the end.
    start: Vec<String>,
    /// By host with its port.
    own: BTreeMap<String, BTreeSet<String>>,
}

impl Origins {
    fn of(site: &Site) -> Self {
        let mut start = BTreeSet::new();
        let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let pages = site.addresses().filter(|address| address.kind() == Some(Kind::Page));
        for address in pages {
            let front = front_of(&address.url());
            let origin = front.trim_end_matches('/').to_owned();
            if address.is_start() && address.redirect().is_none() {
                start.insert(origin.clone());
            }
            let known = own.entry(authority(&front).to_owned()).or_default();
            known.insert(origin);
        }
        if start.is_empty() {
            start.extend(own.values().flatten().next().cloned());
        }
        // Encrypted ones first.
        Self { start: start.into_iter().rev().collect(), own }
    }

    /// The URL of a request, in the spelling that the audit knows; `None` if the host is not of the site.
    fn url(&self, site: &Site, host: &str, target: &str) -> Option<String> {
        let without_port =
            |name: &str| name.rsplit_once(':').map_or(name.to_owned(), |(host, _)| host.to_owned());
        let origins: Vec<&String> = match (host, self.own.get(host)) {
            ("", _) => self.start.iter().collect(),
            (_, Some(origins)) => origins.iter().rev().collect(),
            _ => {
                let same = self.own.iter().filter(|(name, _)| without_port(name) == without_port(host));
                same.flat_map(|(_, origins)| origins.iter().rev()).collect()
            }
        };
        let mut first = None;
        for origin in origins {
            let Ok(url) = Url::parse(&format!("{origin}{target}")) else { continue };
            let url = without_fragment(&url);
            match site.find(&url).and_then(Address::requested) {
                Some(address) => {
                    return Some(if site.is_spelled(address, &url) { url } else { address.url() });
                }
                None => first = first.or(Some(url)),
            }
        }
        first
    }
}
