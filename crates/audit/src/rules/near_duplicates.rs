//! Pages whose texts are nearly the same.
//!
//! All pairs are found exactly, by the index of fingerprints. Memory holds 41 bytes for each page in it, and some for groups.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use huntsman_detect::near::{DocId, Document, Identity, Language, MemoryIndex};
use xxhash_rust::xxh3::xxh3_64;

use super::content::translations;
use super::language::{is_two_letters, primary};
use crate::code::Code;
use crate::code::PageClass::Content as C;
use crate::finding::{Finding, Findings};
use crate::likeness::FEATURES;
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
/// The share of common runs of words from which on texts are alike whose fingerprints are not so near.
const COMMON_RUNS: f64 = 0.9;

pub(super) struct NearDuplicates;

impl Rule for NearDuplicates {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        let Some(index) = index(site) else { return };
        let bits = site.limits().audit_near_duplicate_bits.min(MAX_BITS);
        let mut groups = Groups::new(site.addresses().len());
        index.pairs(&mut |pair| {
            let [DocId::Number(one), DocId::Number(two)] = &pair.ids else {
                return ControlFlow::Continue(());
            };
            let (one, two) = (*one as u32, *two as u32);
            if !groups.are_one(one, two) && (pair.distance <= bits || have_common_runs(site, one, two)) {
                groups.join(one, two);
            }
            ControlFlow::Continue(())
        });
        drop(index);
        let keys = site.addresses().filter_map(|address| {
            let number = address.number();
            groups.has(number).then(|| (u128::from(groups.first(number)), address))
        });
        site.each_group(keys, |pages| tell(site, pages, findings));
    }
}

/// The fingerprints of all pages with content, of copies only the first.
fn index(site: &Site) -> Option<MemoryIndex> {
    let mut texts = HashSet::new();
    let documents = site.pages(C).filter_map(|page| {
        let html = page.html.as_ref()?;
        let hash = html.likeness.as_ref()?.fingerprint()?;
        let language = language(html);
        let is_first = texts.insert(xxh3_64(html.text_key.as_bytes()));
        is_first.then(|| Document { language, id: u64::from(page.address().number()).into(), hash })
    });
    let identity = Identity::new(MAX_BITS, FEATURES).expect("it is the largest number of bits");
    MemoryIndex::build(identity, documents).ok()
}

/// The part of the index for a page. There is one for all languages without a code of two letters, and for pages that state none.
fn language(html: &HtmlRecord) -> Language {
    let code = primary(html.lang.as_deref().unwrap_or_default());
    let code = if is_two_letters(&code) { code } else { "und".to_owned() };
    Language::parse(&code).expect("letters are a name")
}

fn have_common_runs(site: &Site, one: u32, two: u32) -> bool {
    let likeness = |number| site.address(number).answer()?.html.as_ref()?.likeness.clone();
    match (likeness(one), likeness(two)) {
        (Some(one), Some(two)) => one.common_runs(&two) >= COMMON_RUNS,
        _ => false,
    }
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
