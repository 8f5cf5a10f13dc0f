//! The site as the audit found it: the answers, and the references between them.
//!
//! What is known of a site is on disk, sorted by URL. In memory are some numbers for each URL, so that a rule can ask what a URL answers, where it
//! leads and what leads there without reading.

mod address;
mod addresses;
mod answers;
mod build;
mod columns;
mod link_texts;
mod references;
mod remembered;
mod walk;
mod weights;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use huntsman_crawler::{Error, Result};
use huntsman_middleware::AuditSettings;
use huntsman_text::urlparts::CanonicalOptions;
use serde::{Deserialize, Serialize};
use url::Url;

use self::addresses::Addresses;
use self::answers::Known;
use self::columns::{Columns, Flag};
use self::link_texts::{LinkTexts, LinkTextsReader};
use self::references::{Fragment, Pointer};
use self::remembered::{Held, Remembered};
use self::weights::Heavy;
use crate::code::{Code, PageClass};
use crate::custom::CustomNames;
use crate::edges::EdgeReader;
use crate::finding::Finding;
use crate::logs::{Joined, Logs};
use crate::record::{Edge, EdgeKind, Kind, Record};
use crate::refusals::{is_refusal, is_timeout};
use crate::segment::{Judged, Locator, answer_at, no_entry};
use crate::tls::TlsRecord;
use huntsman_disk::{Cache, Cursor, Entry, Fields, Frames, List, Scratch, Sorter, Spool, put_number};

pub(crate) use self::address::Nearest;
pub use self::address::{Address, Answer, End, Mention, Resolution};
pub(crate) use self::build::build;
pub(crate) use self::link_texts::LinkText;
pub(crate) use self::weights::MAX_WEIGHT;

/// Redirects that are followed from one URL.
const MAX_HOPS: usize = 10;

/// Why a URL of the site was not requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refused {
    /// The reason, as in `drops.jsonl`.
    pub reason: String,
    /// What the reason says, such as the line of a robots.txt.
    pub detail: Option<String>,
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
    /// A redirect of the site that names no URL, or one that browsers do not follow.
    Nowhere,
    /// The answer does not tell whether the page is there: a refusal, a challenge, a limit.
    Unverified,
}

impl Fault {
    /// What is wrong if there is no answer for this reason, which is the name of a `FetchErrorKind` or a rule of the crawl.
    pub(crate) fn of_error(reason: &str) -> Self {
        match reason {
            "dns" => Self::Dns,
            "connect" | "tls" | "connection_reset" | "bad_response" => Self::Connection,
            reason if is_timeout(reason) => Self::Timeout,
            _ => Self::Unverified,
        }
    }

    /// What is wrong with an answer of this status; `None` if nothing is.
    pub(crate) fn of_status(status: u16) -> Option<Self> {
        match status {
            // An own page that is out of order is a fault, and external ones are told apart where they are judged.
            503 => Some(Self::Server(503)),
            status if is_refusal(status) => Some(Self::Unverified),
            400..=499 => Some(Self::Client(status)),
            500..=599 => Some(Self::Server(status)),
            _ => None,
        }
    }
}

/// The site after the crawl. URLs are without fragments, and all lists are sorted by URL.
///
/// Lists are read from disk one after the other. If reading fails, they end, and the audit fails with the error once the rule that reads has
/// returned.
#[derive(Debug)]
pub struct Site {
    parts: Parts,
    remembered: Remembered,
    /// What the crawl wrote; it has the places of references.
    segment: Spool,
    frames: Mutex<Frames>,
    /// Frames of the segment.
    cache: Cache<Vec<u8>>,
    limits: AuditSettings,
    is_complete: bool,
    logs: Option<Joined>,
    failure: Mutex<Option<Error>>,
    /// For each URL the number of the page with the most similar text, and the bits in which their fingerprints differ.
    nearest: OnceLock<Vec<Option<(u32, u8)>>>,
    /// What rules say of how far they looked, with the code that it is about.
    notes: Mutex<Vec<(&'static str, String)>>,
}

/// What a site is made of.
#[derive(Debug)]
struct Parts {
    addresses: Addresses,
    columns: Columns,
    known: List<Known>,
    references: List<Pointer>,
    fragments: List<Fragment>,
    link_texts: LinkTexts,
    /// Hosts with their ports.
    own: HashSet<String>,
    tls: BTreeMap<String, TlsRecord>,
    /// Milliseconds to the first byte of pages that were looked at twice, the second time.
    again: BTreeMap<u32, f64>,
    heavy: Vec<Heavy>,
    number_of_references: u64,
    custom: CustomNames,
    scratch: Scratch,
}

impl Site {
    fn new(parts: Parts, segment: Spool, limits: AuditSettings, is_complete: bool) -> Result<Self> {
        Ok(Self {
            parts,
            remembered: Remembered::default(),
            segment,
            frames: Mutex::new(Frames::new()?),
            cache: Cache::default(),
            limits,
            is_complete,
            logs: None,
            failure: Mutex::new(None),
            nearest: OnceLock::new(),
            notes: Mutex::default(),
        })
    }

    /// The settings of the audit.
    pub fn limits(&self) -> &AuditSettings {
        &self.limits
    }

    /// Whether the crawl ended by itself, so that what was not found is not there.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The error that ended a list early, if there was one.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> Result<()> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.context("reading what the crawl found")),
            None => Ok(()),
        }
    }

    /// Notes for the report where a limit kept a rule from looking at all that there is.
    pub(crate) fn note(&self, code: &'static str, text: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push((code, text));
    }

    /// What rules noted about these codes.
    pub(crate) fn notes(&self, codes: &[Code]) -> Vec<String> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_judged = |name: &str| codes.iter().any(|code| code.name == name);
        notes.iter().filter(|(code, _)| is_judged(code)).map(|(_, text)| text.clone()).collect()
    }

    /// Keeps for each URL the number of the page with the most similar text, and the bits in which their fingerprints differ. A second call is
    /// ignored.
    pub(crate) fn keep_nearest(&self, nearest: Vec<Option<(u32, u8)>>) {
        drop(self.nearest.set(nearest));
    }

    /// What was read; `None` after an error, which is kept.
    pub(crate) fn read<T>(&self, found: Result<Option<T>>) -> Option<T> {
        found.unwrap_or_else(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            None
        })
    }

    /// Why URLs were not requested.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = Refused> {
        self.addresses().filter(|address| address.is_refused()).filter_map(Address::refused)
    }

    /// All answers.
    pub fn records(&self) -> impl Iterator<Item = Answer<'_>> {
        Answers::of(self)
    }

    /// The pages of a class.
    pub fn pages(&self, class: PageClass) -> impl Iterator<Item = Answer<'_>> {
        self.records_of(move |address| address.is(class))
    }

    /// The number of pages of a class.
    pub fn count(&self, class: PageClass) -> usize {
        self.addresses().filter(|address| address.is_answered() && address.is(class)).count()
    }

    /// The answers of some URLs. Those of others are not read.
    pub fn records_of<'a>(
        &'a self,
        wanted: impl Fn(Address<'a>) -> bool + 'a,
    ) -> impl Iterator<Item = Answer<'a>> {
        let mut answers = Answers::of(self);
        std::iter::from_fn(move || answers.next_of(&wanted))
    }

    /// Every URL that was requested, referred to or named.
    pub fn addresses(&self) -> impl ExactSizeIterator<Item = Address<'_>> {
        (0..self.parts.columns.len()).map(|number| Address { site: self, number })
    }

    /// The URL with this number.
    pub(crate) fn address(&self, number: u32) -> Address<'_> {
        Address { site: self, number }
    }

    /// Every URL that is referred to by one of these kinds, once.
    pub fn targets<'a>(
        &'a self,
        wanted: impl Fn(EdgeKind) -> bool + 'a,
    ) -> impl Iterator<Item = Address<'a>> {
        self.addresses().filter(move |address| address.is_referred_by(&wanted))
    }

    /// A URL that the audit knows, as it is spelled. If it does not know this spelling, another one of the same URL.
    pub fn find(&self, url: &str) -> Option<Address<'_>> {
        let number = self.parts.addresses.number(url).or_else(|| self.parts.addresses.number(&fold(url)))?;
        Some(Address { site: self, number })
    }

    /// The answer of a URL, also if it was fetched in another spelling; `None` if it was not requested.
    pub fn get(&self, url: &str) -> Option<Answer<'_>> {
        self.find(url)?.answer()
    }

    /// Whether a URL is on a host of the site.
    pub fn is_own(&self, url: &str) -> bool {
        self.parts.own.contains(authority(url))
    }

    /// The hosts of the site whose certificates were seen, with their ports where these are not the usual ones.
    pub fn tls_hosts(&self) -> impl Iterator<Item = (&str, &TlsRecord)> {
        self.parts.tls.iter().map(|(host, tls)| (host.as_str(), tls))
    }

    /// The certificate of a host of the site; `None` if none was seen.
    pub fn tls(&self, host: &str) -> Option<&TlsRecord> {
        self.parts.tls.get(host)
    }

    /// The pages that weigh more than [`MAX_WEIGHT`]: the page, its bytes with those of its files, and the largest of these.
    pub(crate) fn heavy_pages(&self) -> impl Iterator<Item = (Address<'_>, u64, Option<Address<'_>>)> {
        let at = |number: u32| Address { site: self, number };
        self.parts.heavy.iter().map(move |heavy| (at(heavy.page), heavy.bytes, heavy.largest.map(at)))
    }

    /// The fewest links from a start URL to an answer; redirects do not count. `None` if no links lead there.
    pub fn depth(&self, url: &str) -> Option<u16> {
        self.find(url)?.depth()
    }

    /// PageRank over the links of the site, from 0 to 100, which is that of the first page. A redirect passes all of it on, a link with nofollow
    /// loses its share, and links to the page itself do not count. `None` for what is no page of the site.
    pub fn rank(&self, url: &str) -> Option<f32> {
        self.find(url)?.rank()
    }

    /// The references to exactly this URL, in the order of the pages that have them.
    pub fn references(&self, url: &str) -> impl Iterator<Item = Mention<'_>> {
        self.parts
            .addresses
            .number(url)
            .into_iter()
            .flat_map(|number| Address { site: self, number }.references())
    }

    /// A finding with the places of these references. Of many only the first are kept, and all are counted.
    pub fn told<'a>(&self, finding: Finding, references: impl Iterator<Item = Mention<'a>>) -> Finding {
        references.fold(finding, |finding, reference| finding.at_made(|| reference.place()))
    }

    /// Looks up what logs of servers say of the URLs of the site.
    pub(crate) fn join(&mut self, logs: &Logs) -> Result<()> {
        self.logs = Some(Joined::of(logs, self)?);
        self.check()
    }

    /// What logs of servers say.
    pub(crate) fn logs(&self) -> Option<&Joined> {
        self.logs.as_ref()
    }

    /// Whether the audit knows a URL in just this spelling.
    pub(crate) fn is_spelled(&self, address: Address<'_>, url: &str) -> bool {
        self.parts.addresses.number(url) == Some(address.number)
    }

    /// The names of fields and searches of the user.
    pub(crate) fn custom_names(&self) -> &CustomNames {
        &self.parts.custom
    }

    /// Number of bytes of what the crawl found.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment.len()
    }

    /// Where files may be kept that nobody needs after the audit.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.parts.scratch
    }

    /// Groups URLs by a key, on disk. Calls `each` with the URLs of each key that has more than one, in the order of URLs.
    pub fn each_group<'a>(
        &'a self,
        keys: impl IntoIterator<Item = (u128, Address<'a>)>,
        mut each: impl FnMut(&[Address<'a>]),
    ) {
        let grouped = || {
            let mut sorter: Sorter<Keyed> = Sorter::new(&self.parts.scratch, self.limits.audit_sorted_bytes);
            for (key, address) in keys {
                sorter.push(Keyed { key, number: address.number })?;
            }
            let (mut group, mut last): (Vec<Address<'_>>, u128) = (Vec::new(), 0);
            for keyed in sorter.finish()? {
                let Keyed { key, number } = keyed?;
                if key != last || group.is_empty() {
                    if group.len() > 1 {
                        each(&group);
                    }
                    group.clear();
                    last = key;
                }
                group.push(Address { site: self, number });
            }
            if group.len() > 1 {
                each(&group);
            }
            Ok(Some(()))
        };
        self.read(grouped());
    }

    /// Calls `each` with the pairs that are not there the other way round, too.
    pub(crate) fn each_one_way<'a>(
        &'a self,
        pairs: impl IntoIterator<Item = (Address<'a>, Address<'a>)>,
        mut each: impl FnMut(Address<'a>, Address<'a>),
    ) {
        let compared = || {
            let mut sorter: Sorter<Pair> = Sorter::new(&self.parts.scratch, self.limits.audit_sorted_bytes);
            for (from, to) in pairs {
                let (low, high) = (from.number.min(to.number), from.number.max(to.number));
                sorter.push(Pair { low, high, is_up: from.number == low })?;
            }
            // The pair that is under way, and whether it is there upwards and downwards.
            let mut last: Option<(Pair, [bool; 2])> = None;
            let mut told = |(pair, directions): (Pair, [bool; 2])| {
                let address = |number| Address { site: self, number };
                match directions {
                    [true, false] => each(address(pair.low), address(pair.high)),
                    [false, true] => each(address(pair.high), address(pair.low)),
                    _ => {}
                }
            };
            for pair in sorter.finish()? {
                let pair = pair?;
                let is_same = |(last, _): &(Pair, _)| (last.low, last.high) == (pair.low, pair.high);
                if !last.as_ref().is_some_and(is_same) {
                    last.replace((pair, [false; 2])).into_iter().for_each(&mut told);
                }
                if let Some((_, directions)) = &mut last {
                    directions[usize::from(!pair.is_up)] = true;
                }
            }
            last.into_iter().for_each(told);
            Ok(Some(()))
        };
        self.read(compared());
    }

    /// Calls `each` with each fragment that links name, its target and these links, as far as the pages with the links do not have it themselves.
    pub(crate) fn each_fragment<'a>(&'a self, mut each: impl FnMut(Address<'a>, &str, &[Mention<'a>])) {
        let mut read = || {
            let mut cursor = self.parts.fragments.cursor();
            let mut named: Option<(u32, Box<str>)> = None;
            let mut links: Vec<Mention<'_>> = Vec::new();
            while let Some(found) = cursor.next()? {
                let is_same =
                    named.as_ref().is_some_and(|(to, text)| *to == found.to && *text == found.fragment);
                if !is_same {
                    if let Some((to, text)) = &named {
                        each(Address { site: self, number: *to }, text, &links);
                    }
                    named = Some((found.to, found.fragment.clone()));
                    links.clear();
                }
                let pointer = Pointer::new([found.to; 2], found.source, found.index, (EdgeKind::Link, false));
                links.push(Mention { site: self, pointer });
            }
            if let Some((to, text)) = &named {
                each(Address { site: self, number: *to }, text, &links);
            }
            Ok(Some(()))
        };
        self.read(read());
    }

    /// Calls `each` with all HTML pages and what rules found on each of them alone.
    pub(crate) fn each_judged(&self, mut each: impl FnMut(Answer<'_>, Judged) -> Result<()>) -> Result<()> {
        let mut cursor = self.parts.known.cursor();
        while let Some(known) = cursor.next()? {
            let address = Address { site: self, number: known.number };
            if known.is_refusal || !address.is(PageClass::Html) {
                continue;
            }
            let stored = known.stored()?;
            let held = match self.remembered.get(known.number) {
                Some(held) => held.clone(),
                None => Held::of(&stored, address.is_start())?,
            };
            each(Answer::new(address, held), stored.judged()?)?;
        }
        Ok(())
    }

    /// For each URL in order the links that lead to it.
    pub(crate) fn link_reader(&self) -> LinkReader<'_> {
        LinkReader {
            site: self,
            cursor: self.parts.references.cursor(),
            ahead: None,
            texts: self.parts.link_texts.reader(),
        }
    }

    /// Number of references of all answers.
    pub(crate) fn number_of_references(&self) -> u64 {
        self.parts.number_of_references
    }

    /// Calls `each` with the answers that have references, and these in the order of the source.
    pub(crate) fn each_source(
        &self,
        each: &mut dyn FnMut(Address<'_>, &mut EdgeReader<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut each_at =
            |number, locator| self.with_edges(locator, |edges| each(Address { site: self, number }, edges));
        for number in 0..self.remembered.end() {
            if let Some(locator) = self.remembered.get(number).and_then(|held| held.references) {
                each_at(number, locator)?;
            }
        }
        let mut cursor = self.parts.known.from(self.remembered.end());
        while let Some(known) = cursor.next()? {
            if known.is_refusal || known.number < self.remembered.end() {
                continue;
            }
            let stored = known.stored()?;
            if stored.has_references {
                each_at(known.number, stored.locator)?;
            }
        }
        Ok(())
    }

    /// Reads the references at a place of the segment.
    fn with_edges<T>(
        &self,
        locator: Locator,
        read: impl FnOnce(&mut EdgeReader<'_>) -> Result<T>,
    ) -> Result<T> {
        let frame = self.cache.get(locator.frame, || {
            let mut frame = Vec::new();
            let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
            frames.read(&self.segment, locator.frame, &mut frame).map(|_| frame)
        })?;
        let parts = answer_at(&frame, locator.entry);
        let edges = parts.and_then(|parts| EdgeReader::new(parts.edges));
        read(&mut edges.ok_or_else(|| no_entry(&self.segment, locator.frame))?)
    }

    /// The references of an answer, in the order of the source.
    fn edges(&self, number: u32) -> Result<Vec<Edge>> {
        let locator = match self.remembered.get(number) {
            Some(held) => held.references,
            None => self.known(number, false, |known| Ok(known.stored()?.locator))?,
        };
        let Some(locator) = locator else { return Ok(Vec::new()) };
        self.with_edges(locator, |edges| edges.all().map_err(|_| no_entry(&self.segment, locator.frame)))
    }

    /// Reads as many answers into memory as there is room for.
    fn remember(&mut self) -> Result<()> {
        let columns = &self.parts.columns;
        let is_start = |number| columns.has(number, Flag::START);
        self.remembered = Remembered::of(&self.parts.known, self.limits.audit_sorted_bytes, is_start)?;
        Ok(())
    }

    /// The answer of a URL that was requested in this spelling.
    fn held(&self, number: u32) -> Result<Option<Held>> {
        if number < self.remembered.end() {
            return Ok(self.remembered.get(number).cloned());
        }
        let is_start = self.parts.columns.has(number, Flag::START);
        self.known(number, false, |known| Held::of(&known.stored()?, is_start))
    }

    /// What is known of a URL, as read by `read`: the answer or why it was not requested.
    fn known<T>(
        &self,
        number: u32,
        is_refusal: bool,
        read: impl FnOnce(&Known) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut cursor = self.parts.known.from(number);
        while let Some(known) = cursor.next_of(number)? {
            if known.is_refusal == is_refusal {
                return read(known).map(Some);
            }
        }
        Ok(None)
    }

    fn is(&self, number: u32, class: PageClass) -> bool {
        let columns = &self.parts.columns;
        let has = |flag| columns.has(number, flag);
        if class == PageClass::Any {
            return true;
        }
        let is_html = has(Flag::ANSWERED) && has(Flag::HTML) && columns.kind(number) == Kind::Page;
        let is_indexable = is_html && !has(Flag::NOINDEX) && !has(Flag::CANONICAL_ELSEWHERE);
        match class {
            PageClass::Any | PageClass::Html => is_html,
            PageClass::Indexable => is_indexable,
            PageClass::Content => {
                is_indexable && !has(Flag::HAS_PREV) && !has(Flag::LATER) && !has(Flag::SOFT_404)
            }
        }
    }
}

/// Answers in order: first those in memory, then those on disk.
#[derive(Debug)]
struct Answers<'a> {
    site: &'a Site,
    next: u32,
    cursor: Cursor<'a, Known>,
}

impl<'a> Answers<'a> {
    fn of(site: &'a Site) -> Self {
        Self { site, next: 0, cursor: site.parts.known.from(site.remembered.end()) }
    }

    fn next_of(&mut self, wanted: &dyn Fn(Address<'a>) -> bool) -> Option<Answer<'a>> {
        let site = self.site;
        while self.next < site.remembered.end() {
            let number = self.next;
            self.next += 1;
            let address = Address { site, number };
            if let Some(held) = site.remembered.get(number)
                && wanted(address)
            {
                return Some(Answer::new(address, held.clone()));
            }
        }
        let mut read = || {
            while let Some(known) = self.cursor.next()? {
                let address = Address { site, number: known.number };
                let is_on_disk = known.number >= self.next && !known.is_refusal;
                if is_on_disk && wanted(address) {
                    return Held::of(&known.stored()?, address.is_start())
                        .map(|held| Some(Answer::new(address, held)));
                }
            }
            Ok(None)
        };
        let found = read();
        site.read(found)
    }
}

impl<'a> Iterator for Answers<'a> {
    type Item = Answer<'a>;

    fn next(&mut self) -> Option<Answer<'a>> {
        self.next_of(&|_| true)
    }
}

/// The links that lead to a URL.
#[derive(Debug, Default)]
pub(crate) struct LinksTo {
    pub(crate) links: usize,
    /// Number of pages that have them.
    pub(crate) pages: usize,
    /// At most five of their texts, most links first.
    pub(crate) texts: Vec<LinkText>,
}

/// Links, in the order of their targets.
#[derive(Debug)]
pub(crate) struct LinkReader<'a> {
    site: &'a Site,
    cursor: Cursor<'a, Pointer>,
    /// A reference that was read and belongs to a later target.
    ahead: Option<Pointer>,
    texts: LinkTextsReader<'a>,
}

impl LinkReader<'_> {
    /// The links that lead to this URL. URLs must be asked for in order.
    pub(crate) fn of(&mut self, address: Address<'_>) -> LinksTo {
        let (mut links, mut pages, mut last) = (0, 0, None);
        let mut read = || {
            loop {
                let pointer = match self.ahead.take() {
                    Some(pointer) => Some(pointer),
                    None => self.cursor.next()?.copied(),
                };
                let Some(pointer) = pointer else { return Ok(None::<()>) };
                if pointer.to > address.number {
                    self.ahead = Some(pointer);
                    return Ok(None);
                }
                if pointer.to == address.number && pointer.kind() == Some(EdgeKind::Link) {
                    links += 1;
                    // Those of a page stand together.
                    pages += usize::from(last.replace(pointer.source) != Some(pointer.source));
                }
            }
        };
        let done = read();
        self.site.read(done);
        let texts = self.texts.of(address.number).map(Some);
        LinksTo { links, pages, texts: self.site.read(texts).unwrap_or_default() }
    }
}

/// A URL with a key, to be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    key: u128,
    number: u32,
}

impl Entry for Keyed {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_le_bytes());
        put_number(self.number.into(), out);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let key = u128::from_le_bytes(from.take(16)?.try_into().ok()?);
        Some(Self { key, number: from.number_u32()? })
    }
}

/// Two URLs, one of which names the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    low: u32,
    high: u32,
    is_up: bool,
}

impl Entry for Pair {
    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(u64::from(self.low - before.map_or(0, |before| before.low)), out);
        put_number(u64::from(self.high) << 1 | u64::from(self.is_up), out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let low = before.map_or(0, |before| before.low).checked_add(from.number_u32()?)?;
        let high = from.number()?;
        Some(Self { low, high: u32::try_from(high >> 1).ok()?, is_up: high & 1 == 1 })
    }
}

/// What is wrong with an answer; `None` if nothing is.
fn fault(record: &Record) -> Option<Fault> {
    if record.is_challenge {
        return Some(Fault::Unverified);
    }
    match &record.error {
        // The client takes no status beyond 599 as an answer. Some sites refuse robots by 999.
        Some(error) if error == "bad_response" && record.status.is_some_and(is_refusal) => {
            Some(Fault::Unverified)
        }
        Some(error) => Some(Fault::of_error(error)),
        // Browsers show what comes with such a redirect, which may be a page.
        None if record.leads_nowhere() && record.kind == Kind::External => Some(Fault::Unverified),
        None if record.leads_nowhere() => Some(Fault::Nowhere),
        None => Fault::of_status(record.status?),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_the_client_does_not_take_is_a_refusal_only_if_sites_refuse_by_it() {
        let fault = |status, error: &str| {
            fault(&Record { status: Some(status), error: Some(error.to_owned()), ..Record::default() })
        };
        assert_eq!(fault(999, "bad_response"), Some(Fault::Unverified));
        assert_eq!(fault(600, "bad_response"), Some(Fault::Connection));
        assert_eq!(fault(200, "bad_response"), Some(Fault::Connection));
    }
}
