//! Pages whose texts are nearly the same.
//!
//! All pairs are found exactly, by the index of fingerprints. Memory holds 41 bytes for each page in it, 68 for the sample of its text, and some
//! for groups and for the page that is nearest to each.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use huntsman_crawler::Result;
use huntsman_detect::near::{DocId, Document, Identity, Language, MemoryIndex};
use xxhash_rust::xxh3::xxh3_64;

use super::content::translations;
use super::language::{is_two_letters, primary};
use crate::code::Code;
use crate::code::PageClass::Content as C;
use crate::finding::{Finding, Findings};
use crate::likeness::{FEATURES, Samples};
use crate::record::HtmlRecord;
use crate::rule::Rule;
use crate::site::{Address, Site};

const CODES: &[Code] = &[Code::new("content", "near-duplicate")
    .headline("Pages with nearly the same text").of_site().judges(C)
    .text("Two or more pages of one language have nearly the same own text of 50 words or more: their fingerprints (SimHash) differ in at most [near_duplicate_bits] of 128 bits, or in at most 7 if 90 % of their runs of five words are the same. All of them are told, but for translations of each other and copies.",
        "They compete with each other.", "Merge them, name a canonical URL, or say more that is different.")
    .source("Google Search Central: duplicate URLs").example("/red-boat and /blue-boat with one text but for a word", "/boats for both")];

/// Bits up to which fingerprints are looked at.
const MAX_BITS: u32 = Identity::MAX_K;

pub(super) struct NearDuplicates;

impl Rule for NearDuplicates {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let Some((mut groups, nearest)) = site.read(groups(site)) else { return };
        site.keep_nearest(nearest.0);
        let keys = site.addresses().filter_map(|address| {
            let number = address.number();
            groups.has(number).then(|| (u128::from(groups.first(number)), address))
        });
        site.each_group(keys, |pages| tell(site, pages, findings));
    }
}

/// The pages of each group, and of each page the nearest one; `None` if no page has a fingerprint.
fn groups(site: &Site) -> Result<Option<(Groups, NearestPages)>> {
    let bits = site.limits().audit_near_duplicate_bits.min(MAX_BITS);
    let mut samples = Samples::new(site.scratch());
    let mut nearest = NearestPages::new(site.addresses().len());
    let Some(index) = index(site, &mut samples, &mut nearest)? else { return Ok(None) };
    let mut groups = Groups::new(site.addresses().len());
    let mut failure = None;
    index.pairs(&mut |pair| {
        let [DocId::Number(one), DocId::Number(two)] = &pair.ids else {
            return ControlFlow::Continue(());
        };
        let (one, two) = (*one as u32, *two as u32);
        if groups.are_one(one, two) && !nearest.is_nearer(one, two, pair.distance) {
            return ControlFlow::Continue(());
        }
        let are_alike = if pair.distance <= bits { Ok(true) } else { samples.are_alike(one, two) };
        match are_alike {
            Ok(true) => {
                groups.join(one, two);
                nearest.add(one, two, pair.distance);
            }
            Ok(false) => {}
            Err(error) => {
                failure = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    failure.map_or(Ok(Some((groups, nearest))), Err)
}

/// The fingerprints of all pages with content, of copies only the first, which is nearest to them. Their samples go to the disk.
fn index(site: &Site, samples: &mut Samples, nearest: &mut NearestPages) -> Result<Option<MemoryIndex>> {
    let (mut texts, mut failure) = (HashMap::new(), None);
    let documents = site.pages(C).filter_map(|page| {
        let html = page.html.as_ref()?;
        let likeness = html.likeness.as_ref()?;
        let hash = likeness.fingerprint()?;
        let number = page.address().number();
        match texts.entry(xxh3_64(html.text_key.as_bytes())) {
            Entry::Occupied(first) => {
                nearest.add(*first.get(), number, 0);
                return None;
            }
            Entry::Vacant(of) => of.insert(number),
        };
        if let Err(error) = samples.add(number, &likeness.sample()) {
            failure.get_or_insert(error);
        }
        Some(Document { language: language(html), id: u64::from(number).into(), hash })
    });
    let identity = Identity::new(MAX_BITS, FEATURES).expect("it is the largest number of bits");
    let index = MemoryIndex::build(identity, documents).ok();
    failure.map_or(Ok(index), Err)
}

/// The part of the index for a page. There is one for all languages without a code of two letters, and for pages that state none.
fn language(html: &HtmlRecord) -> Language {
    let code = primary(html.lang.as_deref().unwrap_or_default());
    let code = if is_two_letters(&code) { code } else { "und".to_owned() };
    Language::parse(&code).expect("letters are a name")
}

/// Tells the pages of a group, but for those whose others are all translations of them.
fn tell(site: &Site, pages: &[Address<'_>], findings: &mut Findings) {
    let group = pages[0].url();
    let translations = translations(site, pages);
    for (at, page) in pages.iter().enumerate() {
        let own = translations.get(&at);
        let is_own = |other: &usize| own.is_some_and(|own| own.contains(other));
        let Some(other) = (0..pages.len()).find(|other| *other != at && !is_own(other)) else { continue };
        let finding = Finding::of("near-duplicate").url(&page.url()).target(&pages[other].url());
        let number = pages.len() - own.map_or(0, BTreeSet::len);
        findings.add(finding.group(group.as_str()).value(number));
    }
}

/// Sets of numbers that grow together: each number leads to a smaller one of its set, and the smallest to itself.
struct Groups {
    leads_to: Vec<u32>,
}

impl Groups {
    /// Marks a number that is in no set.
    const NONE: u32 = u32::MAX;

    fn new(number: usize) -> Self {
        Self { leads_to: vec![Self::NONE; number] }
    }

    fn has(&self, number: u32) -> bool {
        self.leads_to[number as usize] != Self::NONE
    }

    /// The smallest number of the set.
    fn first(&mut self, number: u32) -> u32 {
        let mut at = number;
        loop {
            let next = self.leads_to[at as usize];
            if next == at || next == Self::NONE {
                return at;
            }
            let after = self.leads_to[next as usize];
            self.leads_to[at as usize] = after;
            at = after;
        }
    }

    fn are_one(&mut self, one: u32, two: u32) -> bool {
        self.first(one) == self.first(two)
    }

    fn join(&mut self, one: u32, two: u32) {
        let (one, two) = (self.first(one), self.first(two));
        let first = one.min(two);
        self.leads_to[one as usize] = first;
        self.leads_to[two as usize] = first;
    }
}

/// For each page the one with the most similar text: of those with the fewest bits of difference the first.
struct NearestPages(Vec<Option<(u32, u8)>>);

impl NearestPages {
    fn new(number: usize) -> Self {
        Self(vec![None; number])
    }

    /// Whether a pair is nearer than what is known of one of its pages.
    fn is_nearer(&self, one: u32, two: u32, bits: u32) -> bool {
        let is_nearer = |of: u32, other: u32| {
            self.0[of as usize].is_none_or(|(known, known_bits)| (bits, other) < (known_bits.into(), known))
        };
        is_nearer(one, two) || is_nearer(two, one)
    }

    fn add(&mut self, one: u32, two: u32, bits: u32) {
        for (of, other) in [(one, two), (two, one)] {
            let found = (other, u8::try_from(bits).unwrap_or(u8::MAX));
            let known = &mut self.0[of as usize];
            if known.is_none_or(|(other, bits)| (found.1, found.0) < (bits, other)) {
                *known = Some(found);
            }
        }
    }
}
