//! The site as the audit found it: the answers, and the references between them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use huntsman_text::urlparts::CanonicalOptions;

use crate::code::PageClass;
use crate::finding::{Finding, Place};
use crate::rank::LinkGraph;
use crate::record::{Edge, EdgeKind, Kind, Record};
use huntsman_middleware::AuditSettings;
use url::Url;

/// Redirects that are followed from one URL.
const MAX_HOPS: usize = 10;

/// Why a URL of the site was not requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// The reason, as in `drops.jsonl`.
    pub reason: String,
    /// What the reason says, such as the line of a robots.txt.
    pub detail: Option<String>,
}

/// Where a URL leads in the end.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// This is the last answer, or the failure.
    At(&'a Record),
    /// The redirects come back to a URL that was passed, or do not end.
    Loop,
    /// The last URL was not requested, or nothing is known of it.
    Unknown,
}

/// A URL followed through its redirects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolution<'a> {
    /// The redirects, in order.
    pub hops: Vec<&'a Record>,
    /// Where they lead.
    pub end: End<'a>,
}

/// What is wrong with an answer, or with its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Status 4xx that says that there is no such page.
    Client(u16),
    /// Status 5xx.
    Server(u16),
    /// The host has no address.
    Dns,
    /// No whole answer came in time.
    Timeout,
    /// No connection, or one that broke.
    Connection,
    /// The answer does not tell whether the page is there: a refusal, a challenge, a limit.
    Unverified,
}

/// The site after the crawl. URLs are without fragments, and all lists are sorted by URL.
#[derive(Debug)]
pub struct Site {
    /// By URL, which is also how they are found.
    records: Vec<Record>,
    /// By the form in which the crawl compares URLs, where it is another one: of two spellings only one is fetched.
    folded: HashMap<String, usize>,
    /// Source and number of each reference, by target, source and number: eight bytes a reference.
    inlinks: Vec<(u32, u32)>,
    refused: BTreeMap<String, Refused>,
    listed: BTreeSet<String>,
    later_pages: HashSet<String>,
    depths: Vec<Option<u16>>,
    ranks: Vec<Option<f32>>,
    redirect_targets: HashSet<String>,
    missing_key: HashSet<String>,
    own_origins: HashSet<String>,
    limits: AuditSettings,
    is_complete: bool,
}

impl Site {
    /// The site of these records. `refused` are the URLs that the crawl did not request, and `is_complete` says whether it ended by itself.
    pub(crate) fn new(
        records: Vec<Record>,
        refused: BTreeMap<String, Refused>,
        limits: AuditSettings,
        is_complete: bool,
    ) -> Self {
        let records = merged(records);
        let mut folded = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            let form = fold(&record.url);
            if form != record.url {
                folded.entry(form).or_insert(at);
            }
        }
        let inlinks = by_target(&records);
        let sitemaps = records.iter().filter(|record| record.kind == Kind::Sitemap);
        let listed = sitemaps.flat_map(|sitemap| sitemap.edges.iter().map(|edge| edge.to.clone())).collect();
        let missing =
            records.iter().filter(|record| record.kind == Kind::Probe && record.status == Some(200));
        let missing_key = missing.filter_map(|record| Some(record.html.as_ref()?.text_key.clone())).collect();
        let pages = records.iter().filter(|record| record.kind == Kind::Page);
        let own_origins = pages.map(|record| authority(&record.url).to_owned()).collect();
        let redirect_targets = records.iter().filter_map(|record| record.redirect.clone()).collect();
        let mut site = Self {
            records,
            folded,
            inlinks,
            refused,
            listed,
            later_pages: HashSet::new(),
            depths: Vec::new(),
            ranks: Vec::new(),
            redirect_targets,
            missing_key,
            own_origins,
            limits,
            is_complete,
        };
        site.later_pages = site.find_later_pages();
        site.depths = site.find_depths();
        site.ranks = site.find_ranks();
        site
    }

    /// The settings of the audit.
    pub fn limits(&self) -> &AuditSettings {
        &self.limits
    }

    /// Whether the crawl ended by itself, so that what was not found is not there.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// All answers.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// The pages of a class.
    pub fn pages(&self, class: PageClass) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| self.is(record, class))
    }

    /// Whether an answer belongs to a class.
    pub fn is(&self, record: &Record, class: PageClass) -> bool {
        if class == PageClass::Any {
            return true;
        }
        let Some(html) = record.html.as_ref().filter(|_| record.kind == Kind::Page) else { return false };
        let is_indexable = || !html.noindex && html.canonical.as_ref().is_none_or(|url| *url == record.url);
        match class {
            PageClass::Any | PageClass::Html => true,
            PageClass::Indexable => is_indexable(),
            PageClass::Content => {
                is_indexable()
                    && html.prev.is_empty()
                    && !self.later_pages.contains(&record.url)
                    && !self.is_soft_404(record)
            }
        }
    }

    /// Whether a page says that it is missing, or equals the page that a path answers with which no site has.
    pub fn is_soft_404(&self, record: &Record) -> bool {
        let Some(html) = &record.html else { return false };
        html.is_soft_404 || self.missing_key.contains(&html.text_key)
    }

    /// The answer of a URL, also if it was fetched in another spelling; `None` if it was not requested.
    pub fn get(&self, url: &str) -> Option<&Record> {
        self.number_of(url).map(|at| &self.records[at])
    }

    fn number_of(&self, url: &str) -> Option<usize> {
        self.exactly(url).or_else(|| {
            let form = fold(url);
            self.exactly(&form).or_else(|| self.folded.get(&form).copied())
        })
    }

    fn exactly(&self, url: &str) -> Option<usize> {
        self.records.binary_search_by(|record| record.url.as_str().cmp(url)).ok()
    }

    /// Why a URL was not requested, if the crawl told so.
    pub fn refused(&self, url: &str) -> Option<&Refused> {
        self.refused.get(url)
    }

    /// Why URLs were not requested.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = &Refused> {
        self.refused.values()
    }

    /// Whether a URL is on a host of the site.
    pub fn is_own(&self, url: &str) -> bool {
        self.own_origins.contains(authority(url))
    }

    /// Whether a sitemap lists a URL.
    pub fn is_listed(&self, url: &str) -> bool {
        self.listed.contains(url)
    }

    /// The URLs that sitemaps list.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        self.listed.iter().map(String::as_str)
    }

    /// The fewest links from a start URL to an answer; redirects do not count. `None` if no links lead there.
    pub fn depth(&self, url: &str) -> Option<u16> {
        self.depths[self.exactly(url)?]
    }

    /// PageRank over the links of the site, from 0 to 100, which is that of the first page. A redirect passes all of it on, a link with nofollow
    /// loses its share, and links to the page itself do not count. `None` for what is no page of the site.
    pub fn rank(&self, url: &str) -> Option<f32> {
        self.ranks[self.exactly(url)?]
    }

    /// Whether a redirect leads to exactly this URL.
    pub fn is_redirect_target(&self, url: &str) -> bool {
        self.redirect_targets.contains(url)
    }

    /// The references to exactly this URL, with the pages that have them.
    pub fn references(&self, url: &str) -> impl Iterator<Item = (&Record, &Edge)> {
        let start = self.inlinks.partition_point(|at| self.reference(*at).1.to.as_str() < url);
        let first = self.inlinks.get(start).map(|at| self.reference(*at).1.to.as_str());
        let to = first.filter(|first| *first == url);
        let all = self.inlinks[start..].iter().map(|at| self.reference(*at));
        all.take_while(move |(_, edge)| to == Some(edge.to.as_str()))
    }

    fn reference(&self, (source, number): (u32, u32)) -> (&Record, &Edge) {
        let record = &self.records[source as usize];
        (record, &record.edges[number as usize])
    }

    /// A finding with the places of these references. Of many only the first are kept, and all are counted.
    pub fn told<'a>(
        &self,
        finding: Finding,
        references: impl Iterator<Item = (&'a Record, &'a Edge)>,
    ) -> Finding {
        references.fold(finding, |finding, (source, edge)| {
            finding.at_made(|| Place { page: Some(source.url.clone()), ..edge.place.clone() })
        })
    }

    /// The links to exactly this URL.
    pub fn links(&self, url: &str) -> impl Iterator<Item = (&Record, &Edge)> {
        self.references(url).filter(|(_, edge)| edge.kind == EdgeKind::Link)
    }

    /// Every URL that is referred to by one of these kinds, once.
    pub fn targets(&self, wanted: impl Fn(EdgeKind) -> bool) -> impl Iterator<Item = &str> {
        let mut last = None;
        self.inlinks.iter().map(|at| self.reference(*at).1).filter_map(move |edge| {
            let is_new = last != Some(edge.to.as_str()) && wanted(edge.kind);
            is_new.then(|| {
                last = Some(edge.to.as_str());
                edge.to.as_str()
            })
        })
    }

    /// Follows a URL through its redirects.
    pub fn resolve(&self, url: &str) -> Resolution<'_> {
        let mut hops: Vec<&Record> = Vec::new();
        let mut at = url.to_owned();
        loop {
            let Some(record) = self.get(&at) else { return Resolution { hops, end: End::Unknown } };
            let Some(next) = &record.redirect else { return Resolution { hops, end: End::At(record) } };
            if hops.len() >= MAX_HOPS || hops.iter().any(|hop| hop.url == record.url) {
                return Resolution { hops, end: End::Loop };
            }
            hops.push(record);
            at.clone_from(next);
        }
    }

    /// What is wrong with an answer; `None` if nothing is.
    pub fn fault(&self, record: &Record) -> Option<Fault> {
        if record.is_challenge {
            return Some(Fault::Unverified);
        }
        if let Some(error) = &record.error {
            return match error.as_str() {
                "dns" => Some(Fault::Dns),
                "connect" | "tls" | "connection_reset" | "bad_response" => Some(Fault::Connection),
                "robots_unreachable" => Some(self.robots_fault(record)),
                error if error.ends_with("_timeout") => Some(Fault::Timeout),
                _ => Some(Fault::Unverified),
            };
        }
        match record.status? {
            401 | 403 | 406 | 407 | 429 | 451 | 999 => Some(Fault::Unverified),
            status @ 400..=499 => Some(Fault::Client(status)),
            status @ 500..=599 => Some(Fault::Server(status)),
            _ => None,
        }
    }

    /// What is wrong with a host whose robots.txt could not be had: a host that cannot be reached at all is the fault of its links.
    fn robots_fault(&self, record: &Record) -> Fault {
        let robots = Url::parse(&record.url).ok().and_then(|url| url.join("/robots.txt").ok());
        let found = robots.and_then(|url| self.get(url.as_str())).filter(|found| found.kind == Kind::Robots);
        match found.and_then(|found| self.fault(found)) {
            Some(fault @ (Fault::Dns | Fault::Connection)) => fault,
            _ => Fault::Unverified,
        }
    }

    /// Pages that follow another one in a series, as both pages say.
    fn find_later_pages(&self) -> HashSet<String> {
        let mut later = HashSet::new();
        for record in self.pages(PageClass::Html) {
            let next = record.html.iter().flat_map(|html| &html.next).filter_map(|url| self.get(url));
            for target in next.filter(|target| target.edges.iter().any(|edge| edge.to == record.url)) {
                later.insert(target.url.clone());
            }
        }
        later
    }

    fn find_depths(&self) -> Vec<Option<u16>> {
        let mut depths = vec![None; self.records.len()];
        let starts = self.records.iter().enumerate().filter(|(_, record)| record.is_start);
        let mut queue: VecDeque<usize> = starts.map(|(at, _)| at).collect();
        queue.iter().for_each(|at| depths[*at] = Some(0));
        while let Some(at) = queue.pop_front() {
            let depth: u16 = depths[at].unwrap_or(0);
            let record = &self.records[at];
            if let Some(next) = record.redirect.as_ref().and_then(|url| self.exactly(url))
                && depths[next].is_none()
            {
                depths[next] = Some(depth);
                queue.push_front(next);
            }
            for edge in record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link) {
                if let Some(next) = self.number_of(&edge.to)
                    && depths[next].is_none()
                {
                    depths[next] = Some(depth.saturating_add(1));
                    queue.push_back(next);
                }
            }
        }
        depths
    }

    fn find_ranks(&self) -> Vec<Option<f32>> {
        // URLs of the site that answered: to a dead link nothing is passed on.
        let is_node = |record: &Record| record.kind == Kind::Page && record.status.is_some();
        let mut numbers = vec![None; self.records.len()];
        let nodes: Vec<&Record> = self.records.iter().filter(|record| is_node(record)).collect();
        let places = (0..self.records.len()).filter(|at| is_node(&self.records[*at]));
        places.zip(0_u32..).for_each(|(at, number)| numbers[at] = Some(number));
        let number = |url: &str| numbers[self.number_of(url)?];
        let mut graph = LinkGraph::default();
        for (own, record) in (0_u32..).zip(nodes) {
            if let Some(target) = &record.redirect {
                graph.add(number(target).filter(|target| *target != own), 0);
                continue;
            }
            let all_lost = record.html.as_ref().is_some_and(|html| html.nofollow);
            // A target with any link that counts is passed its share.
            let mut targets: BTreeMap<u32, bool> = BTreeMap::new();
            for edge in record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link) {
                if let Some(target) = number(&edge.to).filter(|target| *target != own) {
                    *targets.entry(target).or_default() |= !(edge.nofollow || all_lost);
                }
            }
            let lost = targets.values().filter(|counts| !**counts).count();
            let followed = targets.iter().filter(|(_, counts)| **counts).map(|(target, _)| *target);
            graph.add(followed, u32::try_from(lost).unwrap_or(u32::MAX));
        }
        let ranks = graph.ranks();
        numbers.into_iter().map(|number| number.map(|number| ranks[number as usize])).collect()
    }
}

/// The references of all records, as numbers of the record and of the edge, by target.
fn by_target(records: &[Record]) -> Vec<(u32, u32)> {
    let number = |at: usize| u32::try_from(at).expect("fewer than 2^32 records fit into memory");
    let mut references = Vec::with_capacity(records.iter().map(|record| record.edges.len()).sum());
    for (source, record) in records.iter().enumerate() {
        references.extend((0..record.edges.len()).map(|edge| (number(source), number(edge))));
    }
    let to = |at: &(u32, u32)| records[at.0 as usize].edges[at.1 as usize].to.as_str();
    references.sort_unstable_by(|a, b| (to(a), a).cmp(&(to(b), b)));
    references
}

/// Host and port of a URL.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or_default()
}

/// The front page of the host of a URL, which stands for the host in issues about all of it.
pub(crate) fn front_of(url: &str) -> String {
    let end = url.find("://").map_or(0, |at| at + 3) + authority(url).len();
    format!("{}/", &url[..end])
}

/// The form in which the crawl compares URLs.
pub(crate) fn fold(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| CanonicalOptions::default().canonical(&url))
}

/// One record for each URL, in the order of URLs: a whole answer before a failure, a page before anything else.
fn merged(mut records: Vec<Record>) -> Vec<Record> {
    let rank = |record: &Record| {
        // A page that comes once its cookie is there is no redirect.
        let is_self = record.redirect.as_deref() == Some(record.url.as_str());
        (record.error.is_some(), is_self, record.is_head, record.kind, !record.is_start)
    };
    // Of several failed tries the order of arrival must not decide.
    let said = |record: &Record| (record.status, record.bytes);
    records.sort_by(|a, b| {
        (&a.url, rank(a), said(a), &a.error, &a.detail).cmp(&(&b.url, rank(b), said(b), &b.error, &b.detail))
    });
    records.dedup_by(|later, first| {
        let is_same = later.url == first.url;
        first.is_start |= is_same && later.is_start;
        is_same
    });
    records
}
