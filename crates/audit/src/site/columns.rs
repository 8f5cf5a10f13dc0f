//! What is known of each URL, in columns: 24 bytes a URL.

use crate::record::{EdgeKind, Kind};
use crate::site::{Addresses, Fault};

/// Facts of a URL that are true or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag(u64);

impl Flag {
    /// It was requested, and there is a record.
    pub(crate) const ANSWERED: Self = Self(1);
    /// The crawl began here.
    pub(crate) const START: Self = Self(1 << 1);
    /// It is HTML that could be judged.
    pub(crate) const HTML: Self = Self(1 << 2);
    pub(crate) const NOINDEX: Self = Self(1 << 3);
    pub(crate) const NOFOLLOW: Self = Self(1 << 4);
    /// Its canonical URL is another one.
    pub(crate) const CANONICAL_ELSEWHERE: Self = Self(1 << 5);
    /// It says that it is the later page of a series.
    pub(crate) const HAS_PREV: Self = Self(1 << 6);
    /// A page that it links to names it as the one before.
    pub(crate) const LATER: Self = Self(1 << 7);
    pub(crate) const SOFT_404: Self = Self(1 << 8);
    pub(crate) const LISTED: Self = Self(1 << 9);
    /// A redirect leads here.
    pub(crate) const REDIRECT_TARGET: Self = Self(1 << 10);
    /// Another page links to it.
    pub(crate) const LINKED: Self = Self(1 << 11);
    /// A page links to it with `rel=nofollow`.
    pub(crate) const LINKED_NOFOLLOW: Self = Self(1 << 12);
    /// A page links to it without.
    pub(crate) const LINKED_FOLLOW: Self = Self(1 << 13);
    /// The crawl refused to request it.
    pub(crate) const REFUSED: Self = Self(1 << 14);
    /// It is on a host of the site.
    pub(crate) const OWN: Self = Self(1 << 15);
    /// It names pages in other languages.
    pub(crate) const ALTERNATES: Self = Self(1 << 16);
    /// It names pages before or after it in a series.
    pub(crate) const SERIES: Self = Self(1 << 17);

    /// Its body ended too early.
    pub(crate) const CUT_SHORT: Self = Self(1 << 18);

    /// There is a reference of this kind to it.
    pub(crate) fn referred_by(kind: EdgeKind) -> Self {
        Self(1 << (32 + kind.number()))
    }
}

const KIND_AT: u32 = 40;
const FAULT_AT: u32 = 44;

/// The columns.
#[derive(Debug)]
pub(crate) struct Columns {
    flags: Vec<u64>,
    pub(crate) statuses: Vec<u16>,
    /// Fewest links from a start URL; `u16::MAX` if none lead there.
    pub(crate) depths: Vec<u16>,
    /// Where a redirect leads, or for a URL without an answer the one that was requested in its place: the same in another spelling.
    pub(crate) leads_to: Vec<u32>,
    pub(crate) canonicals: Vec<u32>,
    /// NaN for what is no page of the site.
    pub(crate) ranks: Vec<f32>,
}

impl Columns {
    pub(crate) fn new() -> Self {
        Self {
            flags: Vec::new(),
            statuses: Vec::new(),
            depths: Vec::new(),
            leads_to: Vec::new(),
            canonicals: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Adds the next URL.
    pub(crate) fn add(&mut self, is_own: bool) {
        self.flags.push(if is_own { Flag::OWN.0 } else { 0 });
    }

    /// Makes the other columns, after all URLs were added.
    pub(crate) fn fill(&mut self) {
        let number = self.flags.len();
        self.flags.shrink_to_fit();
        self.statuses = vec![0; number];
        self.depths = vec![u16::MAX; number];
        self.leads_to = vec![Addresses::NONE; number];
        self.canonicals = vec![Addresses::NONE; number];
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.flags.len()).expect("URLs have numbers of 32 bits")
    }

    pub(crate) fn has(&self, number: u32, flag: Flag) -> bool {
        self.flags[number as usize] & flag.0 != 0
    }

    pub(crate) fn set(&mut self, number: u32, flag: Flag) {
        self.flags[number as usize] |= flag.0;
    }

    pub(crate) fn set_if(&mut self, number: u32, flag: Flag, is_set: bool) {
        if is_set {
            self.set(number, flag);
        }
    }

    /// Whether it has any of the kinds of references for which `wanted` is true.
    pub(crate) fn is_referred_by(&self, number: u32, wanted: impl Fn(EdgeKind) -> bool) -> bool {
        EdgeKind::ALL.into_iter().any(|kind| self.has(number, Flag::referred_by(kind)) && wanted(kind))
    }

    pub(crate) fn set_kind(&mut self, number: u32, kind: Kind) {
        self.flags[number as usize] |= (kind as u64 & 0xF) << KIND_AT;
    }

    /// Why it was requested; meaningless without an answer.
    pub(crate) fn kind(&self, number: u32) -> Kind {
        Kind::of_number((self.flags[number as usize] >> KIND_AT) as u8 & 0xF)
    }

    pub(crate) fn set_fault(&mut self, number: u32, fault: Option<Fault>) {
        let code: u64 = match fault {
            None => 0,
            Some(Fault::Client(_)) => 1,
            Some(Fault::Server(_)) => 2,
            Some(Fault::Dns) => 3,
            Some(Fault::Timeout) => 4,
            Some(Fault::Connection) => 5,
            Some(Fault::Unverified) => 6,
            Some(Fault::Nowhere) => 7,
        };
        let flags = &mut self.flags[number as usize];
        *flags = (*flags & !(0xF << FAULT_AT)) | code << FAULT_AT;
    }

    pub(crate) fn fault(&self, number: u32) -> Option<Fault> {
        let status = self.statuses[number as usize];
        match (self.flags[number as usize] >> FAULT_AT) & 0xF {
            1 => Some(Fault::Client(status)),
            2 => Some(Fault::Server(status)),
            3 => Some(Fault::Dns),
            4 => Some(Fault::Timeout),
            5 => Some(Fault::Connection),
            6 => Some(Fault::Unverified),
            7 => Some(Fault::Nowhere),
            _ => None,
        }
    }

    /// The URL that was requested for this one: itself, or the same in another spelling.
    pub(crate) fn requested(&self, number: u32) -> Option<u32> {
        if self.has(number, Flag::ANSWERED) {
            return Some(number);
        }
        Some(self.leads_to[number as usize]).filter(|other| *other != Addresses::NONE)
    }

    /// Where the redirect of an answer leads.
    pub(crate) fn redirect(&self, number: u32) -> Option<u32> {
        let to = self.leads_to[number as usize];
        (self.has(number, Flag::ANSWERED) && to != Addresses::NONE).then_some(to)
    }
}
