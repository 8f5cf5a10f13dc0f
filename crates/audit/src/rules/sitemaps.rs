//! What a site tells robots in files of their own: robots.txt and sitemaps.

use std::collections::{BTreeMap, HashSet};

use crate::code::Code;
use crate::code::PageClass::{Any, Html, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings, Place};
use crate::record::{Edge, Kind, Record};
use crate::robots_files::{MAX_BYTES, MAX_ENTRIES, RobotsLine};
use crate::rule::Rule;
use crate::site::{Address, Answer, Fault, Site, authority, front_of};

/// The bytes of a robots.txt that every robot must read (RFC 9309, section 2.5): 500 KiB.
const MAX_ROBOTS: u64 = 500 << 10;

const fn code(name: &'static str) -> Code {
    Code::new("index", name).of_site().judges(Any).source("sitemaps.org: protocol")
}

const CODES: &[Code] = &[
    code("sitemap-invalid")
        .headline("Sitemaps that cannot be read").severity(Error)
        .text("A sitemap that robots.txt or an index names answers 4xx or 5xx or not at all, or is no sitemap. Or a sitemap is no well-formed XML, is damaged, has no entries, or has entries without an absolute http or https URL.", "Search engines do not learn of its pages.", "Correct the file, or the address where it is named.")
        .example("Sitemap: https://example.org/old.xml  (404)", "Sitemap: https://example.org/sitemap.xml  (200, <urlset>)"),
    code("sitemap-too-large")
        .headline("Sitemaps that are too large")
        .text("A sitemap has more than 50,000 entries, or more than 50 MB (52,428,800 bytes) unpacked.", "Search engines leave it out, or the rest of it.", "Split it, and list the parts in an index.")
        .example("60,000 <url> in one file", "two files of 30,000, and an index"),
    code("sitemap-missing")
        .headline("Hosts without a sitemap").severity(Notice)
        .text("The robots.txt of a host where the audit began names no sitemap, and /sitemap.xml is none.", "Search engines find new pages later.", "Write a sitemap, and name it in robots.txt.")
        .example("robots.txt without Sitemap, /sitemap.xml -> 404", "Sitemap: https://example.org/sitemap.xml"),
    code("sitemap-lastmod-invalid")
        .headline("Sitemaps with dates that are wrong")
        .text("A `lastmod` of a sitemap is no W3C datetime, in which a time has a zone, or more than a day ahead.", "Search engines do not trust the dates of this site any more.", "Write the day of the last change, such as 2026-11-26.")
        .example("<lastmod>26.11.2026</lastmod>", "<lastmod>2026-11-26</lastmod>"),
    code("not-in-sitemap")
        .headline("Pages that no sitemap lists").severity(Notice).judges(Indexable)
        .text("A page that may be indexed is in no sitemap, and a sitemap without a fault lists other pages of its host. It is not judged if the crawl ended early, or a sitemap of the host could not be had, or not be read up to the limits of the protocol.", "Search engines may find it later, and not see when it changes.", "List it, or say noindex if it is not meant to be found.")
        .example("/moths is linked, and not in sitemap.xml", "<loc>https://example.org/moths</loc>"),
    Code::new("status", "robots-invalid")
        .headline("robots.txt files with faults").of_site().judges(Any)
        .text("A robots.txt of the site is HTML or has more than 500 KiB, or a line of it is no comment and has no colon, a misspelled key, a rule above the first User-agent, a User-agent without a name, a path that begins neither with / nor *, a Sitemap without an absolute URL, a Crawl-delay without a number, or is no UTF-8. Other keys that no standard knows are no fault.", "Robots read such lines in different ways, or leave them out.", "Correct the lines that the issue names.")
        .source("RFC 9309").example("Disallow: private", "Disallow: /private"),
];

pub(super) struct Sitemaps;

impl Rule for Sitemaps {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let is_own =
            |kind: Kind| move |address: Address<'_>| address.is_own() && address.kind() == Some(kind);
        let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
        for answer in site.records_of(is_own(Kind::Robots)) {
            robots(&answer, findings);
            let host = hosts.entry(authority(&answer.url).to_owned()).or_default();
            host.named = answer.robots.as_ref().map_or_else(Vec::new, |file| file.sitemaps.clone());
            host.has_robots = answer.error.is_none();
        }
        let named: HashSet<String> = hosts.values().flat_map(|host| host.named.iter().cloned()).collect();
        let mut unread = HashSet::new();
        for sitemap in site.records_of(is_own(Kind::Sitemap)) {
            of_sitemap(site, &sitemap, &named, &mut hosts, &mut unread, findings);
        }
        for url in &named {
            let is_read = site.find(url).and_then(|found| found.answer()).is_some();
            // A sitemap that redirects has its answer at another URL.
            if !is_read && !hosts.values().any(|host| host.redirected.contains(url)) {
                unread.insert(url.clone());
            }
        }
        missing(site, &hosts, findings);
        if site.is_complete() {
            not_listed(site, &hosts, &unread, findings);
        }
    }
}

/// The files for robots of a host.
#[derive(Debug, Default)]
struct Host {
    /// The sitemaps that its robots.txt names.
    named: Vec<String>,
    has_robots: bool,
    /// There is a sitemap on it.
    has_sitemap: bool,
    /// It was asked for a sitemap, and has none there.
    lacks_sitemap: bool,
    /// A sitemap on it was not read whole.
    is_unread: bool,
    /// A sitemap without a fault lists pages of it that may be indexed.
    is_listed: bool,
    /// Sitemaps on it that redirect.
    redirected: HashSet<String>,
}

fn robots(answer: &Record, findings: &mut Findings) {
    let Some(file) = &answer.robots else { return };
    let told = || Finding::of("robots-invalid").url(&answer.url);
    if answer.bytes > MAX_ROBOTS {
        findings.add(told().value(answer.bytes).limit(MAX_ROBOTS));
    } else if let Some(first) = file.examples.first() {
        let place = |line: &RobotsLine| Place {
            line: line.line,
            column: 1,
            excerpt: Some(line.text.clone()),
            ..Place::default()
        };
        let finding = told().value(format!("line {}: {}", first.line, first.why));
        let finding = file.examples.iter().map(place).fold(finding, Finding::at);
        findings.add(finding);
    }
}

fn of_sitemap(
    site: &Site,
    answer: &Answer<'_>,
    named: &HashSet<String>,
    hosts: &mut BTreeMap<String, Host>,
    unread: &mut HashSet<String>,
    findings: &mut Findings,
) {
    let file = answer.sitemap.clone().unwrap_or_default();
    let asked = file.asked.as_ref().unwrap_or(&answer.url);
    let is_named = named.contains(asked) || named.contains(&answer.url) || answer.address().is_listed();
    let host = hosts.entry(authority(asked).to_owned()).or_default();
    if asked != &answer.url {
        host.redirected.insert(asked.clone());
    }
    let fault = match answer.address().fault() {
        // A server that refuses this crawl may let search engines in.
        Some(Fault::Unverified) => None,
        Some(_) => Some(match (&answer.detail, answer.status) {
            (Some(detail), _) => detail.clone(),
            (None, status) => status.unwrap_or_default().to_string(),
        }),
        None => file.fault(),
    };
    let is_sitemap = answer.address().fault().is_none() && file.kind.is_some();
    host.has_sitemap |= is_sitemap;
    let is_gone = matches!(answer.address().fault(), None | Some(Fault::Client(_)));
    host.lacks_sitemap |= is_gone && !is_sitemap;
    // Search engines read a sitemap as far as it goes, up to the limits of the protocol, and one that is gone lists nothing.
    if (is_sitemap && file.has_more) || (is_named && !is_sitemap && !is_gone) {
        host.is_unread = true;
        unread.insert(asked.clone());
    }
    if file.kind.as_deref() == Some("index") {
        // Indexes that are too deep, or of too many files, are not followed to their end.
        let is_read = |edge: &Edge| site.find(&edge.to).is_some_and(|part| part.answer().is_some());
        host.is_unread |= !answer.address().edges().iter().all(is_read);
    }
    if is_sitemap && fault.is_none() && file.entries <= MAX_ENTRIES && !file.is_too_large {
        let listed = answer.address().edges().into_iter();
        for url in listed.filter(|edge| site.find(&edge.to).is_some_and(|page| page.is(Indexable))) {
            hosts.entry(authority(&url.to).to_owned()).or_default().is_listed = true;
        }
    }
    let told = |code: &str| Finding::of(code).url(&answer.url);
    if let Some(fault) = fault.filter(|_| is_named || is_sitemap) {
        findings.add(told("sitemap-invalid").value(fault));
    }
    if file.entries > MAX_ENTRIES {
        findings.add(told("sitemap-too-large").value(format!("{} entries", file.entries)).limit(MAX_ENTRIES));
    } else if file.is_too_large {
        findings.add(told("sitemap-too-large").value("more bytes").limit(MAX_BYTES));
    }
    if file.wrong_dates > 0 {
        findings.add(told("sitemap-lastmod-invalid").value(file.dates.clone()));
    }
}

/// Hosts where the audit began whose robots.txt names no sitemap, and that were asked for the usual one in vain.
fn missing(site: &Site, hosts: &BTreeMap<String, Host>, findings: &mut Findings) {
    let mut told = HashSet::new();
    for start in site.addresses().filter(|address| address.is_start() && address.is(Html)) {
        let url = start.url();
        let Some(host) = hosts.get(authority(&url)) else { continue };
        let is_missing = host.has_robots && host.named.is_empty() && host.lacks_sitemap && !host.has_sitemap;
        if is_missing && told.insert(authority(&url).to_owned()) {
            findings.add(Finding::of("sitemap-missing").url(&front_of(&url)));
        }
    }
}

/// Pages that are not listed, of hosts that list others in a sitemap without a fault and whose sitemaps were all read.
fn not_listed(
    site: &Site,
    hosts: &BTreeMap<String, Host>,
    unread: &HashSet<String>,
    findings: &mut Findings,
) {
    let is_whole = |host: &Host| !host.is_unread && host.named.iter().all(|url| !unread.contains(url));
    let listing = |name: &str| hosts.get(name).is_some_and(|host| host.is_listed && is_whole(host));
    if !hosts.keys().any(|name| listing(name)) {
        return;
    }
    let pages = site.addresses().filter(|address| address.is(Indexable));
    // Pages that are listed in another spelling of their URLs.
    let others: HashSet<u32> = site
        .addresses()
        .filter(|address| address.is_listed() && !address.is_answered())
        .filter_map(|address| Some(address.requested()?.number()))
        .collect();
    for page in pages.filter(|page| !page.is_listed() && !others.contains(&page.number())) {
        let url = page.url();
        if listing(authority(&url)) {
            findings.add(Finding::of("not-in-sitemap").url(&url));
        }
    }
}
