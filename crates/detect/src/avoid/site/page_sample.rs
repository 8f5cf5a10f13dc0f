//! A sample of the pages of each kind of URL.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use crate::avoid::shape::RawSlot;

/// The most pages of one kind; a share of so many is known to a few hundredths.
const PAGES_OF_KIND: usize = 128;
/// The most pages of all kinds, 1 KB each. Once there are so many, kinds that have none yet get none.
const MAX_PAGES: usize = 4_096;

/// A page of a sample.
#[derive(Clone, Debug)]
pub(super) struct SampledPage {
    /// The slots of its URL.
    pub(super) raw: Box<[RawSlot]>,
    /// The hashes of their values.
    pub(super) values: SmallVec<[u64; 8]>,
}

/// Some pages of each kind of URL. Those with the lowest keys are kept, so that which they are depends neither on the order in which they were learnt nor on
/// chance.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSample {
    /// By kind, and then by the key of the URL.
    kinds: HashMap<u64, BTreeMap<u64, SampledPage>>,
    pages: usize,
}

impl PageSample {
    /// Adds a page whose URL is of this kind, has this key and these slots, unless enough with lower keys are known.
    pub(super) fn add(&mut self, kind: u64, key: u64, raw: &[RawSlot]) {
        let has_room = self.pages < MAX_PAGES;
        if !has_room && !self.kinds.contains_key(&kind) {
            return;
        }
        let pages = self.kinds.entry(kind).or_default();
        let is_full = pages.len() >= PAGES_OF_KIND || !has_room;
        if pages.contains_key(&key) || (is_full && pages.last_key_value().is_none_or(|(last, _)| *last < key))
        {
            return;
        }
        let values = values_of(raw);
        pages.insert(key, SampledPage { raw: raw.into(), values });
        if is_full {
            pages.pop_last();
        } else {
            self.pages += 1;
        }
    }

    /// The pages of a kind.
    pub(super) fn of(&self, kind: u64) -> impl Iterator<Item = &SampledPage> {
        self.kinds.get(&kind).into_iter().flat_map(BTreeMap::values)
    }
}

/// The hashes of the values of slots.
pub(super) fn values_of(raw: &[RawSlot]) -> SmallVec<[u64; 8]> {
    raw.iter().map(|slot| xxh3_64(slot.value.as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(sample: &PageSample, kind: u64) -> Vec<u64> {
        sample.kinds.get(&kind).map(|pages| pages.keys().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn a_sample_does_not_depend_on_the_order_of_the_pages() {
        let keys_of = |order: &mut dyn Iterator<Item = u64>| {
            let mut sample = PageSample::default();
            order.for_each(|number| sample.add(1, number.wrapping_mul(0x9E37_79B9_7F4A_7C15), &[]));
            keys(&sample, 1)
        };
        let forwards = keys_of(&mut (0..1_000));
        assert_eq!(forwards, keys_of(&mut (0..1_000).rev()));
        assert_eq!(forwards.len(), PAGES_OF_KIND);
        let mut all: Vec<u64> =
            (0..1_000u64).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        all.sort_unstable();
        assert_eq!(forwards, all[..PAGES_OF_KIND]);
    }

    #[test]
    fn a_page_that_is_learnt_again_counts_once() {
        let mut sample = PageSample::default();
        (0..3).for_each(|_| sample.add(1, 7, &[]));
        assert_eq!((keys(&sample, 1), sample.pages), (vec![7], 1));
    }

    #[test]
    fn there_are_never_more_pages_than_the_limit() {
        let mut sample = PageSample::default();
        for page in 0..3 * MAX_PAGES as u64 {
            sample.add(page / 100, u64::MAX - page, &[]);
        }
        let kept: usize = sample.kinds.values().map(BTreeMap::len).sum();
        assert_eq!((kept, sample.pages), (MAX_PAGES, MAX_PAGES));
    }
}
