//! URLs of a site with what is known of them.

use std::ops::Deref;

use super::answers::Known;
use super::columns::Flag;
use super::references::Pointer;
use super::remembered::Held;
use super::{Fault, MAX_HOPS, Refused, Site, authority};
use crate::code::PageClass;
use crate::finding::Place;
use crate::record::{Edge, EdgeKind, Kind, Record};
use crate::tls::TlsRecord;
use huntsman_crawler::Result;

/// A URL that the audit knows: it was requested, referred to or named. Only methods that say so read from disk.
#[derive(Clone, Copy)]
pub struct Address<'a> {
    pub(super) site: &'a Site,
    pub(super) number: u32,
}

/// The page with the most similar text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nearest<'a> {
    pub(crate) address: Address<'a>,
    /// The bits in which the fingerprints differ.
    bits: u8,
}

impl Nearest<'_> {
    /// The share of bits that the fingerprints have in common, to three digits.
    pub(crate) fn similarity(self) -> f64 {
        let share = 1.0 - f64::from(self.bits) / f64::from(u128::BITS);
        (share * 1_000.0).round() / 1_000.0
    }
}

impl std::fmt::Debug for Address<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Address").field(&self.url()).finish()
    }
}

impl PartialEq for Address<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Address<'_> {}

impl<'a> Address<'a> {
    fn has(self, flag: Flag) -> bool {
        self.site.parts.columns.has(self.number, flag)
    }

    fn at(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// The number of the URL among all that the audit knows, in their order.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// The URL; read from disk.
    pub fn url(self) -> String {
        self.site.read(self.site.parts.addresses.url(self.number).map(Some)).unwrap_or_default()
    }

    /// Whether the URL was requested in this spelling.
    pub fn is_answered(self) -> bool {
        self.has(Flag::ANSWERED)
    }

    /// The URL that was requested for it: itself, or the same in another spelling.
    pub fn requested(self) -> Option<Self> {
        self.site.parts.columns.requested(self.number).map(|number| self.at(number))
    }

    /// The answer, also if it was fetched in another spelling; read from disk.
    pub fn answer(self) -> Option<Answer<'a>> {
        let requested = self.requested()?;
        let held = self.site.read(self.site.held(requested.number))?;
        Some(Answer::new(requested, held))
    }

    /// Why it was requested; `None` if it was not, in this spelling.
    pub fn kind(self) -> Option<Kind> {
        self.is_answered().then(|| self.site.parts.columns.kind(self.number))
    }

    /// The status; `None` if there was no answer.
    pub fn status(self) -> Option<u16> {
        Some(self.site.parts.columns.statuses[self.number as usize]).filter(|status| *status != 0)
    }

    /// What is wrong with the answer; `None` if nothing is.
    pub fn fault(self) -> Option<Fault> {
        self.site.parts.columns.fault(self.number)
    }

    /// Whether it belongs to a class of pages.
    pub fn is(self, class: PageClass) -> bool {
        self.site.is(self.number, class)
    }

    /// Whether it is on a host of the site.
    pub fn is_own(self) -> bool {
        self.has(Flag::OWN)
    }

    /// Whether a sitemap lists it.
    pub fn is_listed(self) -> bool {
        self.has(Flag::LISTED)
    }

    /// How often it was asked for, by anybody and by robots, as logs of servers tell; `None` without logs.
    pub fn log_hits(self) -> Option<[u32; 2]> {
        self.site.logs.as_ref().map(|logs| logs.hits(self.number))
    }

    /// Whether the crawl began here.
    pub fn is_start(self) -> bool {
        self.has(Flag::START)
    }

    /// Whether it is HTML that says noindex.
    pub fn is_noindex(self) -> bool {
        self.has(Flag::NOINDEX)
    }

    /// Whether the body of the answer ended before its length or its compression did.
    pub fn is_cut_short(self) -> bool {
        self.has(Flag::CUT_SHORT)
    }

    /// Whether it is HTML that could be judged.
    pub fn is_html(self) -> bool {
        self.has(Flag::HTML)
    }

    /// Whether it says that it is missing, or equals the page that a path answers with which no site has.
    pub fn is_soft_404(self) -> bool {
        self.has(Flag::SOFT_404)
    }

    /// Whether it names pages in other languages.
    pub fn has_alternates(self) -> bool {
        self.has(Flag::ALTERNATES)
    }

    /// Whether it names a page before or after it in a series.
    pub fn is_of_series(self) -> bool {
        self.has(Flag::SERIES)
    }

    /// Whether a redirect leads to exactly this URL.
    pub fn is_redirect_target(self) -> bool {
        self.has(Flag::REDIRECT_TARGET)
    }

    /// Whether another page links to exactly this URL.
    pub fn is_linked(self) -> bool {
        self.has(Flag::LINKED)
    }

    /// Whether a page links to exactly this URL with `rel=nofollow`, and whether one does without.
    pub fn is_followed(self) -> (bool, bool) {
        (self.has(Flag::LINKED_NOFOLLOW), self.has(Flag::LINKED_FOLLOW))
    }

    /// Whether there is a reference to exactly this URL of a kind for which `wanted` is true.
    pub fn is_referred_by(self, wanted: impl Fn(EdgeKind) -> bool) -> bool {
        self.site.parts.columns.is_referred_by(self.number, wanted)
    }

    /// The fewest links from a start URL to an answer; redirects do not count. `None` if no links lead there.
    pub fn depth(self) -> Option<u16> {
        Some(self.site.parts.columns.depths[self.number as usize]).filter(|depth| *depth != u16::MAX)
    }

    /// See [`Site::rank`].
    pub fn rank(self) -> Option<f32> {
        Some(self.site.parts.columns.ranks[self.number as usize]).filter(|rank| !rank.is_nan())
    }

    /// The page with the most similar text, as far as [`Site::keep_nearest`] was told.
    pub(crate) fn nearest(self) -> Option<Nearest<'a>> {
        let kept = self.site.nearest.get()?.get(self.number as usize)?;
        kept.map(|(number, bits)| Nearest { address: self.at(number), bits })
    }

    /// Milliseconds to the first byte at a second look, if the page was slow at the first one.
    pub fn second_ttfb_ms(self) -> Option<f64> {
        self.site.parts.again.get(&self.number).copied()
    }

    /// Where the redirect of the answer leads.
    pub fn redirect(self) -> Option<Self> {
        self.site.parts.columns.redirect(self.number).map(|number| self.at(number))
    }

    /// The canonical URL of the page, if it is another one.
    pub fn other_canonical(self) -> Option<Self> {
        let number = self.site.parts.columns.canonicals[self.number as usize];
        self.has(Flag::CANONICAL_ELSEWHERE).then(|| self.at(number))
    }

    /// Whether the crawl refused to request it.
    pub fn is_refused(self) -> bool {
        self.has(Flag::REFUSED)
    }

    /// Why it was not requested, if the crawl told so; read from disk.
    pub fn refused(self) -> Option<Refused> {
        let read = || self.site.known(self.number, true, Known::refused);
        self.site.read(if self.is_refused() { read() } else { Ok(None) })
    }

    /// The references to exactly this URL, in the order of the pages that have them; read from disk.
    pub fn references(self) -> impl Iterator<Item = Mention<'a>> + use<'a> {
        let to = self.requested().unwrap_or(self).number;
        let mut cursor = self.site.parts.references.from(to);
        let is_any = self.is_referred_by(|_| true);
        std::iter::from_fn(move || {
            let mut read = || {
                while let Some(pointer) = cursor.next_of(to)? {
                    if pointer.spelled == self.number && !pointer.is_redirect() {
                        return Ok(Some(*pointer));
                    }
                }
                Ok(None)
            };
            let found = if is_any { read() } else { Ok(None) };
            self.site.read(found).map(|pointer| Mention { site: self.site, pointer })
        })
    }

    /// The links to exactly this URL; read from disk.
    pub fn links(self) -> impl Iterator<Item = Mention<'a>> + use<'a> {
        let is_any = self.is_referred_by(|kind| kind == EdgeKind::Link);
        is_any.then(|| self.references()).into_iter().flatten().filter(|link| link.kind() == EdgeKind::Link)
    }

    /// Follows the URL through its redirects.
    pub fn resolve(self) -> Resolution<'a> {
        let mut hops: Vec<Self> = Vec::new();
        let mut at = self;
        loop {
            let Some(answered) = at.requested() else { return Resolution { hops, end: End::Unknown(at) } };
            let Some(next) = answered.redirect() else {
                return Resolution { hops, end: End::At(answered) };
            };
            if hops.len() >= MAX_HOPS || hops.contains(&answered) {
                return Resolution { hops, end: End::Loop };
            }
            hops.push(answered);
            at = next;
        }
    }

    /// The references of the answer, in the order of the source; read from disk.
    pub fn edges(self) -> Vec<Edge> {
        self.site.read(self.edges_of_answer().map(Some)).unwrap_or_default()
    }

    pub(super) fn edges_of_answer(self) -> Result<Vec<Edge>> {
        let Some(requested) = self.requested() else { return Ok(Vec::new()) };
        self.site.edges(requested.number)
    }
}

/// What is kept of an answer, with its URL.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    address: Address<'a>,
    held: Held,
}

impl<'a> Answer<'a> {
    pub(super) fn new(address: Address<'a>, held: Held) -> Self {
        Self { address, held }
    }

    /// The certificate of the host, if the page came by https and the host is one of the site.
    pub fn certificate(&self) -> Option<&'a TlsRecord> {
        let url = &self.held.record.url;
        if url.starts_with("https://") { self.address.site.tls(authority(url)) } else { None }
    }

    /// The URL.
    pub fn address(&self) -> Address<'a> {
        self.address
    }

    /// Number of links of the page that lead within the site.
    pub fn links_within(&self) -> u32 {
        self.held.links.0
    }

    /// Number of links of the page that lead to other sites.
    pub fn links_elsewhere(&self) -> u32 {
        self.held.links.1
    }
}

impl Deref for Answer<'_> {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.held.record
    }
}

/// A reference of a page. Only methods that say so read from disk.
#[derive(Clone, Copy, Debug)]
pub struct Mention<'a> {
    pub(super) site: &'a Site,
    pub(super) pointer: Pointer,
}

impl<'a> Mention<'a> {
    /// The page that has it.
    pub fn source(self) -> Address<'a> {
        Address { site: self.site, number: self.pointer.source }
    }

    /// How the page refers to the target.
    pub fn kind(self) -> EdgeKind {
        self.pointer.kind().unwrap_or(EdgeKind::Link)
    }

    /// Whether its own `rel` says nofollow.
    pub fn nofollow(self) -> bool {
        self.pointer.nofollow()
    }

    /// All of it; read from disk. `None` if that fails.
    pub fn edge(self) -> Option<Edge> {
        let edges = self.site.edges(self.pointer.source);
        self.site.read(edges.map(|edges| edges.into_iter().nth(self.pointer.index as usize)))
    }

    /// Where it stands, with the page; read from disk.
    pub fn place(self) -> Place {
        let place = self.edge().map(|edge| edge.place).unwrap_or_default();
        Place { page: Some(self.source().url()), ..place }
    }
}

/// Where a URL leads in the end.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// This is the last answer, or the failure.
    At(Address<'a>),
    /// The redirects come back to a URL that was passed, or do not end.
    Loop,
    /// This URL was not requested, or nothing is known of it.
    Unknown(Address<'a>),
}

/// A URL followed through its redirects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resolution<'a> {
    /// The redirects, in order.
    pub hops: Vec<Address<'a>>,
    /// Where they lead.
    pub end: End<'a>,
}
