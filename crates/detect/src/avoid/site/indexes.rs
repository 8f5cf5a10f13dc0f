//! The pages of a site that were fetched, indexed by what they have in common with other URLs.

use hashbrown::HashMap;
use smallvec::{Array, SmallVec};

use super::aspects::Aspects;
use super::runs::Runs;
use crate::avoid::content::ContentId;
use crate::avoid::rows::RowKeys;
use crate::avoid::shape::{Mix, Name, Slot};
use crate::avoid::target::Target;

/// The most contents that one key remembers; the newest ones are kept.
const CONTENTS_OF_KEY: usize = 32;
/// The most signatures, and contents of each, that are remembered for pages with the same free values.
const SIGNATURES_OF_VALUES: usize = 32;
const CONTENTS_OF_SIGNATURE: usize = 8;
/// The most pages that are remembered for a URL which they name as their own.
pub(super) const NAMED_BY: usize = 4;
/// The most longer variants that are remembered for a URL.
const LONGER_VARIANTS: usize = 8;

pub(super) type Ids = SmallVec<[ContentId; 2]>;

/// A set of dropped slots, with the rows that say whether they matter. There are few for all pages of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DroppedSlots {
    pub(super) names: u64,
    pub(super) template: u64,
    pub(super) own: u64,
    /// The name of the slot; 0, which no parameter has, if it is not a single parameter.
    pub(super) name: Name,
}

impl DroppedSlots {
    pub(super) fn of(target: &Target, set: u16) -> Self {
        let (names, template, own) = target.removed_keys(set);
        let name = target.parameter(set).map_or(Name(0), |slot| slot.name);
        Self { names, template, own, name }
    }

    /// The slot with this value, if it is a single parameter.
    pub(super) fn parameter(&self, value: u64) -> Option<Slot> {
        let Self { name, .. } = *self;
        name.is_parameter().then(|| Slot::hashed(name, value))
    }

    pub(super) fn rows(&self, value_hash: u64) -> RowKeys {
        let (names, template) = (self.names, self.template);
        let parameter = self.parameter(value_hash);
        let mut rows = RowKeys {
            kind: Mix::new(Target::REMOVED_KIND).0,
            names,
            template,
            own: self.own,
            joint: if parameter.is_none() { value_hash } else { 0 },
            ..RowKeys::default()
        };
        let value = |slot: Slot| (Target::value_row(self.own, &slot), Target::values_of(self.own, &slot));
        rows.values.extend(parameter.map(value));
        rows
    }
}

/// A page with more slots than the URL under which it is stored. There are several entries for each page.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongerVariant {
    /// The value of the slot, if a single parameter is dropped, or a hash of all values, if several are.
    pub(super) value: u64,
    /// The number of the [`DroppedSlots`].
    pub(super) dropping: u32,
    pub(super) content: ContentId,
}

/// Contents by key; most keys have only one.
#[derive(Clone, Debug, Default)]
pub(super) struct ContentIndex {
    /// A content, or the number of a list of contents.
    pub(super) by_key: HashMap<u64, u32>,
    pub(super) lists: Vec<Ids>,
}

/// The bit that marks the number of a list; contents have smaller numbers.
const LIST: u32 = 1 << 31;

impl ContentIndex {
    fn clear(&mut self) {
        self.by_key.clear();
        self.lists.clear();
    }

    pub(super) fn get(&self, key: u64) -> &[ContentId] {
        match self.by_key.get(&key) {
            None => &[],
            Some(one) if one & LIST == 0 => std::slice::from_ref(one),
            Some(list) => &self.lists[(list & !LIST) as usize],
        }
    }

    pub(super) fn remember(&mut self, key: u64, content: ContentId) {
        let entry = self.by_key.entry(key).or_insert(content);
        if *entry == content {
            return;
        }
        if *entry & LIST == 0 {
            self.lists.push(Ids::from_slice(&[*entry]));
            *entry = LIST | (self.lists.len() as u32 - 1);
        }
        remember(&mut self.lists[(*entry & !LIST) as usize], content, CONTENTS_OF_KEY);
    }
}

/// A page that names a URL as its own address.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedUrl {
    pub(super) template: u64,
    pub(super) signature: u64,
    pub(super) content: ContentId,
}

/// Pages of one signature with the same free values.
#[derive(Clone, Debug)]
pub(super) struct SameValues {
    pub(super) signature: u64,
    pub(super) template: u64,
    pub(super) contents: Ids,
}

impl SameValues {
    /// Whether these pages have the signature of a URL.
    pub(super) fn is_this(&self, target: &Target) -> bool {
        self.signature == target.signature
    }
}

/// The pages that were fetched, indexed by what they have in common with other URLs.
#[derive(Clone, Debug, Default)]
pub(super) struct PageIndexes {
    pub(super) changed: ContentIndex,
    pub(super) runs: Runs,
    pub(super) exact: HashMap<u64, ContentId>,
    pub(super) longer: HashMap<u64, SmallVec<[LongerVariant; 1]>>,
    pub(super) droppings: Vec<DroppedSlots>,
    pub(super) number_of_dropping: HashMap<DroppedSlots, u32>,
    pub(super) by_free_values: HashMap<u64, SmallVec<[SameValues; 1]>>,
    pub(super) canonical: ContentIndex,
    pub(super) strict: ContentIndex,
    pub(super) named: HashMap<u64, SmallVec<[NamedUrl; 1]>>,
    pub(super) aspects: Aspects,
}

impl PageIndexes {
    /// Forgets all pages; the memory is used again.
    pub(super) fn clear(&mut self) {
        let Self { changed, runs, exact, longer, droppings, number_of_dropping, .. } = self;
        changed.clear();
        runs.clear();
        exact.clear();
        longer.clear();
        droppings.clear();
        number_of_dropping.clear();
        let Self { by_free_values, canonical, strict, named, aspects, .. } = self;
        by_free_values.clear();
        canonical.clear();
        strict.clear();
        named.clear();
        aspects.clear();
    }

    /// Adds a page. `canonical` is the key of its URL without the parameters that do not matter, and `strict` that without those that never did.
    pub(super) fn store(&mut self, target: &Target, canonical: u64, strict: u64, content: ContentId) {
        for set in target.changed_sets() {
            let key = target.changed_key(set);
            self.changed.remember(key, content);
            if let Some(slot) = target.ordered(set) {
                self.runs.add(run_key(key, slot), slot.place.at, content);
            }
        }
        self.exact.insert(target.key(), content);
        self.canonical.remember(canonical, content);
        self.strict.remember(strict, content);
        let sets = target.removal_sets();
        // The last set contains all parameters.
        let all = sets.last().copied().unwrap_or_default();
        for set in sets.into_iter().filter(|set| set.count_ones() <= 2 || *set == all) {
            let dropping = self.number_of(DroppedSlots::of(target, set));
            let value = target.parameter(set).map_or_else(|| target.joint(set), |slot| slot.value);
            let longer = LongerVariant { value, dropping, content };
            let variants = self.longer.entry(target.key_without(set)).or_default();
            if let Some(known) = variants.iter_mut().find(|known| known.dropping == dropping) {
                *known = longer;
            } else if variants.len() < LONGER_VARIANTS {
                variants.push(longer);
            }
        }
        if let Some(same_values) = target.free_values_key() {
            let same_values = self.by_free_values.entry(same_values).or_default();
            if let Some(known) = same_values.iter_mut().find(|known| known.signature == target.signature) {
                remember(&mut known.contents, content, CONTENTS_OF_SIGNATURE);
            } else {
                if same_values.len() == SIGNATURES_OF_VALUES {
                    same_values.remove(0);
                }
                let contents = Ids::from_slice(&[content]);
                same_values.push(SameValues {
                    signature: target.signature,
                    template: target.shape.template,
                    contents,
                });
            }
        }
    }

    pub(super) fn number_of(&mut self, dropping: DroppedSlots) -> u32 {
        *self.number_of_dropping.entry(dropping).or_insert_with(|| {
            self.droppings.push(dropping);
            self.droppings.len() as u32 - 1
        })
    }
}

/// The key of the run of the values of a slot, under the key of the URLs that differ in it.
pub(super) fn run_key(changed: u64, slot: &Slot) -> u64 {
    Mix(changed).with(slot.place.sort as u64).0
}

/// Adds a number to a list of the newest ones, unless it is there.
pub(super) fn remember<A: Array<Item = u32>>(list: &mut SmallVec<A>, number: u32, most: usize) {
    if !list.contains(&number) {
        if list.len() == most {
            list.remove(0);
        }
        list.push(number);
    }
}
