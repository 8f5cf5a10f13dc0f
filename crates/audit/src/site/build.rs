//! How a segment becomes a site.
//!
//! The segment is read twice. The first time all URLs in it are collected, sorted and numbered; the second time references become numbers,
//! which are sorted by their targets. Memory holds columns of numbers, one entry a URL, and what is sorted at once.

use std::collections::{BTreeMap, HashSet};

use huntsman_crawler::{Error, Result};
use huntsman_middleware::AuditSettings;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::addresses::{Addresses, Collected, print_of};
use super::answers::Known;
use super::columns::{Columns, Flag};
use super::link_texts::{LinkTexts, LinkTextsWriter};
use super::references::{Fragment, Pointer, is_looked_up};
use super::walk::{Graph, Links, LinksWriter};
use super::weights::Weights;
use super::{Fault, Parts, Site, authority, fault, fold};
use crate::custom::CustomNames;
use crate::edges::{EdgeParts, EdgeReader};
use crate::found::Found;
use crate::record::{EdgeKind, HtmlRecord, Kind, Record};
use crate::segment::{AnswerParts, Entry as Line, Locator, Refusal, each_entry};
use crate::tls::TlsRecord;
use huntsman_disk::{Entry, Fields, List, Scratch, Sorter, Spool, put_number};

/// An answer that may be the one that counts for its URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    url: u64,
    /// A whole answer before a failure, a page before anything else.
    rank: [u8; 5],
    // Of several failed tries the order of arrival must not decide.
    status: u16,
    bytes: u64,
    hash: u64,
    /// Its place among all answers.
    ordinal: u32,
    is_start: bool,
}

impl Candidate {
    fn of(record: &Record, url: u64, bytes: &[u8], ordinal: u32) -> Self {
        // A page that comes once its cookie is there is no redirect.
        let is_self = record.redirect.as_deref() == Some(record.url.as_str());
        Self {
            url,
            rank: [
                record.error.is_some().into(),
                is_self.into(),
                record.is_head.into(),
                record.kind as u8,
                (!record.is_start).into(),
            ],
            status: record.status.unwrap_or(0),
            bytes: record.bytes,
            hash: xxh3_64(bytes),
            ordinal,
            is_start: record.is_start,
        }
    }
}

impl Entry for Candidate {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.url.to_le_bytes());
        out.extend_from_slice(&self.rank);
        put_number(self.status.into(), out);
        put_number(self.bytes, out);
        out.extend_from_slice(&self.hash.to_le_bytes());
        put_number(self.ordinal.into(), out);
        out.push(self.is_start.into());
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            url: u64::from_le_bytes(from.take(8)?.try_into().ok()?),
            rank: from.take(5)?.try_into().ok()?,
            status: from.number()?.try_into().ok()?,
            bytes: from.number()?,
            hash: u64::from_le_bytes(from.take(8)?.try_into().ok()?),
            ordinal: from.number_u32()?,
            is_start: from.byte()? == 1,
        })
    }
}

/// A URL by the form in which the crawl compares URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spelling {
    form: u64,
    /// 0 for an answer in this very form, 1 for other answers, 2 for what was not requested.
    rank: u8,
    number: u32,
}

impl Entry for Spelling {
    fn put(&self, _: Option<&Self>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.form.to_le_bytes());
        out.push(self.rank);
        put_number(self.number.into(), out);
    }

    fn read(_: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let form = u64::from_le_bytes(from.take(8)?.try_into().ok()?);
        Some(Self { form, rank: from.byte()?, number: from.number_u32()? })
    }
}

/// Numbers of answers, one bit each.
#[derive(Debug, Default)]
struct Ordinals(Vec<u64>);

impl Ordinals {
    fn insert(&mut self, ordinal: u32) {
        let word = ordinal as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (ordinal % 64);
    }

    fn has(&self, ordinal: u32) -> bool {
        self.0.get(ordinal as usize / 64).is_some_and(|word| word & 1 << (ordinal % 64) != 0)
    }
}

/// A site that is being made.
struct Build<'a> {
    found: &'a Found,
    scratch: Scratch,
    /// Bytes that are sorted at once.
    limit: usize,
    addresses: Addresses,
    columns: Columns,
    counting: Ordinals,
    /// Fingerprints of the own text of pages for paths that no site has.
    missing: HashSet<String>,
    /// Hosts of the site with their ports.
    own: HashSet<String>,
    /// The certificates of hosts of the site.
    tls: BTreeMap<String, TlsRecord>,
    /// The shortest times of pages that were looked at twice.
    again: BTreeMap<u32, f64>,
    custom: CustomNames,
}

/// The site of what was found. `is_complete` says whether the crawl ended by itself.
pub(crate) fn build(found: Found, limits: AuditSettings, is_complete: bool) -> Result<Site> {
    let (scratch, limit) = (found.scratch.clone(), limits.audit_sorted_bytes);
    let mut build = numbered(&found, scratch, limit)?;
    build.resolve_spellings()?;
    let Read { known, references, fragments, links, link_texts, weights, number_of_references } =
        build.read_answers()?;
    let Build { scratch, addresses, mut columns, own, tls, again, custom, .. } = build;
    columns.depths = links.depths(&columns)?;
    drop(links);
    let heavy = weights.heavy(&columns)?;
    let (graph, references) = Graph::of(references.finish()?, &columns, &scratch)?;
    columns.ranks = graph.ranks()?;
    drop(graph);
    let parts = Parts {
        addresses,
        columns,
        known,
        references,
        fragments,
        link_texts,
        own,
        tls,
        again,
        heavy,
        number_of_references,
        custom,
        scratch,
    };
    let mut site = Site::new(parts, found.segment, limits, is_complete)?;
    site.find_unreachable_hosts()?;
    site.find_later_pages()?;
    site.remember()?;
    Ok(site)
}

/// Collects all URLs and gives them numbers.
fn numbered(found: &Found, scratch: Scratch, limit: usize) -> Result<Build<'_>> {
    let mut urls = Collected::new(&scratch, limit);
    let mut candidates: Sorter<Candidate> = Sorter::new(&scratch, limit);
    let mut own = HashSet::new();
    let mut missing = HashSet::new();
    let mut tls = BTreeMap::new();
    let mut old_tls = BTreeMap::new();
    let mut again: BTreeMap<u64, f64> = BTreeMap::new();
    let mut custom = CustomNames::default();
    let mut ordinal = 0_u32;
    each_entry(&found.segment, &mut |_, entry| {
        let parts = match entry {
            Line::Answer(parts) => parts,
            Line::Refusal(refusal) => return urls.add(&refused_url(refusal)?).map(drop),
        };
        let record = parts.record()?;
        let print = urls.add(&record.url)?;
        candidates.push(Candidate::of(&record, print, parts.record, ordinal))?;
        ordinal =
            ordinal.checked_add(1).ok_or_else(|| Error::msg("an audit has at most four billion answers"))?;
        if record.kind == Kind::Page && !own.contains(authority(&record.url)) {
            own.insert(authority(&record.url).to_owned());
        }
        if record.kind == Kind::Probe && record.status == Some(200) {
            missing.extend(record.html.as_ref().map(|html| html.text_key.clone()));
        }
        match record.kind {
            Kind::OldTls => drop(old_tls.insert(authority(&record.url).to_owned(), record.tls.clone())),
            _ => add_tls(&record, &mut tls),
        }
        if record.kind == Kind::Again {
            let shortest = again.entry(print).or_insert(f64::INFINITY);
            *shortest = shortest.min(record.ttfb_ms);
        }
        record.custom.iter().for_each(|found| custom.add(found));
        named(&record).try_for_each(|url| urls.add(url).map(drop))?;
        each_target(&found.segment, parts, &mut |url, _| urls.add(url).map(drop))
    })?;
    found.each_drop(&mut |refusal| urls.add(&refusal.url).map(drop))?;
    tls.retain(|host, _| own.contains(host));
    for (host, known) in &mut tls {
        known.old_version = old_tls.remove(host).flatten().and_then(|old| old.old_version);
    }
    let mut columns = Columns::new();
    let mut last = (String::new(), false);
    let addresses = urls.finish(&scratch, &mut |url| {
        // Many URLs in a row have one host.
        let authority = authority(url);
        if last.0 != authority {
            last = (authority.to_owned(), own.contains(authority));
        }
        columns.add(last.1);
    })?;
    columns.fill();
    let mut counting = Ordinals::default();
    let mut before = None;
    for candidate in candidates.finish()? {
        let candidate = candidate?;
        let Some(number) = addresses.number_of(candidate.url) else { continue };
        if before != Some(candidate.url) {
            counting.insert(candidate.ordinal);
            columns.set(number, Flag::ANSWERED);
            before = Some(candidate.url);
        }
        columns.set_if(number, Flag::START, candidate.is_start);
    }
    let again = again.into_iter().filter_map(|(print, ttfb)| Some((addresses.number_of(print)?, ttfb)));
    let again = again.collect();
    Ok(Build { found, scratch, limit, addresses, columns, counting, missing, own, tls, again, custom })
}

/// Adds the certificate of the host of an answer. Of several the same one is kept in any order of arrival: one that was refused, or else the one
/// that ends first.
fn add_tls(record: &Record, hosts: &mut BTreeMap<String, TlsRecord>) {
    let Some(tls) = record.tls.as_ref().filter(|_| record.kind != Kind::External) else { return };
    let order = |tls: &TlsRecord| (tls.fault.is_none(), tls.clone());
    let host = authority(&record.url);
    if hosts.get(host).is_none_or(|known| order(tls) < order(known)) {
        hosts.insert(host.to_owned(), tls.clone());
    }
}

fn refused_url(refusal: &[u8]) -> Result<String> {
    Ok(serde_json::from_slice::<Refusal>(refusal)?.url)
}

/// The URLs that an answer names besides those that it refers to.
fn named(record: &Record) -> impl Iterator<Item = &str> {
    let of_sitemap = record.sitemap.iter().flat_map(|_| record.translations());
    let of_sitemap = of_sitemap.flat_map(|(url, alternate)| [url, alternate.url.as_str()]);
    record
        .redirect
        .as_deref()
        .into_iter()
        .chain(record.html.iter().flat_map(HtmlRecord::named))
        .chain(of_sitemap)
}

/// Calls `each` with the references of an answer.
fn each_target(
    segment: &Spool,
    parts: AnswerParts<'_>,
    each: &mut dyn FnMut(&str, EdgeParts<'_>) -> Result<()>,
) -> Result<()> {
    let damaged = || Error::msg(format!("{} has references that were not written there", segment.name()));
    let mut edges = EdgeReader::new(parts.edges).ok_or_else(damaged)?;
    while let Some(edge) = edges.next().map_err(|_| damaged())? {
        each(edges.to(), edge)?;
    }
    Ok(())
}

/// The result of reading the answers.
struct Read {
    known: List<Known>,
    references: Sorter<Pointer>,
    fragments: List<Fragment>,
    links: Links,
    link_texts: LinkTexts,
    weights: Weights,
    number_of_references: u64,
}

impl Build<'_> {
    /// Finds for each URL that was not requested the one that was requested in its place, because it is the same in another spelling.
    fn resolve_spellings(&mut self) -> Result<()> {
        let mut spellings: Sorter<Spelling> = Sorter::new(&self.scratch, self.limit);
        for number in 0..self.columns.len() {
            let url = self.addresses.url(number)?;
            let form = fold(&url);
            let rank = match self.columns.has(number, Flag::ANSWERED) {
                true => u8::from(form != url),
                false => 2,
            };
            spellings.push(Spelling { form: print_of(&form), rank, number })?;
        }
        let mut first: Option<Spelling> = None;
        for spelling in spellings.finish()? {
            let spelling = spelling?;
            match first.filter(|first| first.form == spelling.form) {
                None => first = Some(spelling),
                Some(first) if first.rank < 2 && spelling.rank == 2 => {
                    self.columns.leads_to[spelling.number as usize] = first.number;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the answers that count, and turns their URLs into numbers.
    fn read_answers(&mut self) -> Result<Read> {
        let mut known: Sorter<Known> = Sorter::new(&self.scratch, self.limit);
        let mut reading = Reading {
            references: Sorter::new(&self.scratch, self.limit),
            fragments: Sorter::new(&self.scratch, self.limit),
            links: LinksWriter::new(&self.scratch, self.columns.len()),
            link_texts: LinkTextsWriter::new(&self.scratch, self.limit, self.columns.len()),
            linked: Vec::new(),
            weights: Weights::new(&self.scratch, self.columns.len()),
            number_of_references: 0,
        };
        let mut ordinal = 0_u32;
        let found = self.found;
        each_entry(&found.segment, &mut |locator, entry| {
            let parts = match entry {
                Line::Answer(parts) => parts,
                Line::Refusal(refusal) => return self.refused(&serde_json::from_slice(refusal)?, &mut known),
            };
            let counts = self.counting.has(ordinal);
            ordinal += 1;
            if counts { self.answer(locator, parts, &mut reading, &mut known) } else { Ok(()) }
        })?;
        found.each_drop(&mut |refusal| self.refused(&refusal, &mut known))?;
        Ok(Read {
            known: List::of(known.finish()?, &self.scratch)?,
            fragments: List::of(reading.fragments.finish()?, &self.scratch)?,
            references: reading.references,
            links: reading.links.finish(),
            link_texts: reading.link_texts.finish(&self.scratch)?,
            weights: reading.weights,
            number_of_references: reading.number_of_references,
        })
    }

    fn refused(&mut self, refusal: &Refusal, known: &mut Sorter<Known>) -> Result<()> {
        let Some(number) = self.addresses.number(&refusal.url) else { return Ok(()) };
        if self.columns.has(number, Flag::REFUSED) {
            // One reason is enough.
            return Ok(());
        }
        self.columns.set(number, Flag::REFUSED);
        Ok(known.push(Known::refusal(number, refusal)?)?)
    }

    fn answer(
        &mut self,
        locator: Locator,
        parts: AnswerParts<'_>,
        reading: &mut Reading,
        known: &mut Sorter<Known>,
    ) -> Result<()> {
        let record = parts.record()?;
        let Some(number) = self.addresses.number(&record.url) else { return Ok(()) };
        self.note(number, &record);
        reading.weights.note(number, &record);
        if let Some(to) = record.redirect.as_deref().and_then(|url| self.addresses.number(url)) {
            self.columns.leads_to[number as usize] = to;
            self.columns.set(to, Flag::REDIRECT_TARGET);
            reading.references.push(Pointer::redirect(self.columns.requested(to).unwrap_or(to), number))?;
        }
        let before = reading.number_of_references;
        let links = self.refer(number, &record, parts, reading)?;
        let links = (links, reading.number_of_references > before);
        Ok(known.push(Known::answer(number, locator, links, [parts.record, parts.judged]))?)
    }

    /// Notes the facts of an answer.
    fn note(&mut self, number: u32, record: &Record) {
        let columns = &mut self.columns;
        columns.set_kind(number, record.kind);
        columns.statuses[number as usize] = record.status.unwrap_or(0);
        columns.set_fault(number, fault(record));
        let is_incomplete = record.error.as_deref() == Some("incomplete_body");
        columns.set_if(number, Flag::CUT_SHORT, record.is_cut_short || is_incomplete);
        let Some(html) = &record.html else { return };
        columns.set(number, Flag::HTML);
        columns.set_if(number, Flag::NOINDEX, html.noindex);
        columns.set_if(number, Flag::NOFOLLOW, html.nofollow);
        columns.set_if(number, Flag::HAS_PREV, !html.prev.is_empty());
        columns.set_if(number, Flag::SERIES, !(html.prev.is_empty() && html.next.is_empty()));
        columns.set_if(number, Flag::ALTERNATES, !html.alternates.is_empty());
        columns.set_if(number, Flag::SOFT_404, html.is_soft_404 || self.missing.contains(&html.text_key));
        if let Some(canonical) = html.canonical.as_ref().filter(|canonical| **canonical != record.url) {
            columns.set(number, Flag::CANONICAL_ELSEWHERE);
            columns.canonicals[number as usize] = self.addresses.number(canonical).unwrap_or(Addresses::NONE);
        }
    }

    /// Notes the references of an answer. Returns how many links lead within the site and to other ones.
    fn refer(
        &mut self,
        source: u32,
        record: &Record,
        parts: AnswerParts<'_>,
        reading: &mut Reading,
    ) -> Result<(u32, u32)> {
        let (mut index, mut links) = (0_u32, (0, 0));
        reading.linked.clear();
        let (addresses, columns) = (&self.addresses, &mut self.columns);
        each_target(&self.found.segment, parts, &mut |url, edge| {
            let at = index;
            index += 1;
            let Some(spelled) = addresses.number(url) else { return Ok(()) };
            let to = columns.requested(spelled).unwrap_or(spelled);
            reading.number_of_references += 1;
            columns.set(spelled, Flag::referred_by(edge.kind));
            columns.set_if(spelled, Flag::LISTED, edge.kind == EdgeKind::Sitemap);
            reading.references.push(Pointer::new([to, spelled], source, at, (edge.kind, edge.nofollow)))?;
            reading.weights.refer(to, &edge);
            if edge.kind != EdgeKind::Link {
                return Ok(());
            }
            columns.set_if(spelled, Flag::LINKED, spelled != source);
            // A link to a place on the same page says nothing of other pages.
            if record.kind == Kind::Page && to != source {
                let flag = if edge.nofollow { Flag::LINKED_NOFOLLOW } else { Flag::LINKED_FOLLOW };
                columns.set(spelled, flag);
            }
            let is_own = columns.has(spelled, Flag::OWN);
            let count = if is_own { &mut links.0 } else { &mut links.1 };
            *count += 1;
            if let Some(text) = edge.link.filter(|text| is_own && !text.is_empty()) {
                reading.link_texts.add(to, text)?;
            }
            reading.linked.push(to);
            if let Some(fragment) = edge.fragment.filter(|text| is_looked_up(edge.kind, edge.is_within, text))
            {
                reading.fragments.push(Fragment { to, fragment: fragment.into(), source, index: at })?;
            }
            Ok(())
        })?;
        reading.links.add(source, &mut reading.linked)?;
        reading.weights.end(source)?;
        Ok(links)
    }
}

/// What is collected while the answers are read.
struct Reading {
    references: Sorter<Pointer>,
    fragments: Sorter<Fragment>,
    links: LinksWriter,
    link_texts: LinkTextsWriter,
    /// The targets of the links of one page.
    linked: Vec<u32>,
    weights: Weights,
    number_of_references: u64,
}

impl Site {
    /// Tells the fault of answers that were not asked for because the robots.txt of their host could not be had: if the host cannot be reached at
    /// all, that is the fault of its links.
    fn find_unreachable_hosts(&mut self) -> Result<()> {
        let mut found = Vec::new();
        let mut cursor = self.parts.known.cursor();
        while let Some(known) = cursor.next()? {
            let number = known.number;
            if known.is_refusal || self.parts.columns.fault(number) != Some(Fault::Unverified) {
                continue;
            }
            let record = known.stored()?.record()?;
            if record.error.as_deref() != Some("robots_unreachable") {
                continue;
            }
            let robots = Url::parse(&record.url).ok().and_then(|url| url.join("/robots.txt").ok());
            let robots = robots.and_then(|url| self.parts.addresses.number(url.as_str()));
            let columns = &self.parts.columns;
            let robots = robots.filter(|robots| {
                columns.has(*robots, Flag::ANSWERED) && columns.kind(*robots) == Kind::Robots
            });
            // The second request for the file may have been dropped, with others of a host that rests. Then the first one tells.
            let fault = match robots {
                Some(robots) => columns.fault(robots),
                None => record.robots_error.as_deref().map(Fault::of_error),
            };
            if let Some(fault @ (Fault::Dns | Fault::Connection)) = fault {
                found.push((number, fault));
            }
        }
        found.into_iter().for_each(|(number, fault)| self.parts.columns.set_fault(number, Some(fault)));
        Ok(())
    }

    /// Finds pages that follow another one in a series, as both pages say.
    fn find_later_pages(&mut self) -> Result<()> {
        let mut later = Vec::new();
        let mut cursor = self.parts.known.cursor();
        while let Some(known) = cursor.next()? {
            let columns = &self.parts.columns;
            let is_page = !known.is_refusal
                && columns.has(known.number, Flag::SERIES)
                && columns.kind(known.number) == Kind::Page;
            if !is_page {
                continue;
            }
            let record = known.stored()?.record()?;
            for url in record.html.iter().flat_map(|html| &html.next) {
                let target = self.find(url).filter(|target| target.is_answered());
                // One that says itself that it is a later page needs no proof.
                let target = target.filter(|target| !columns.has(target.number, Flag::HAS_PREV));
                if let Some(target) = target
                    && target.edges_of_answer()?.iter().any(|edge| edge.to == record.url)
                {
                    later.push(target.number);
                }
            }
        }
        later.into_iter().for_each(|number| self.parts.columns.set(number, Flag::LATER));
        Ok(())
    }
}
