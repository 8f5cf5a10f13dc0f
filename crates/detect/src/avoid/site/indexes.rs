//! The pages of a site that were fetched, indexed by what they have in common with other URLs.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::aspects::Aspects;
use super::runs::Runs;
use crate::avoid::content::ContentId;
use crate::avoid::multimap::{List, Multimap, Noted};
use crate::avoid::packed_key::PackedKey;
use crate::avoid::rows::RowKeys;
use crate::avoid::shape::{Mix, Name, Slot};
use crate::avoid::target::Target;

/// The most contents that one key remembers; the newest ones are kept.
pub(super) const CONTENTS_OF_KEY: usize = 32;
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

/// How a page has more slots than the URL under which it is stored. There are several entries for each page.
#[derive(Clone, Copy, Debug, Default)]
struct LongerVariant {
    /// The value of the slot, if a single parameter is dropped, or a hash of all values, if several are.
    value: PackedKey,
    /// The number of the [`DroppedSlots`].
    dropping: u32,
}

/// The signature of a page with its template. There are few for all pages of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) value: u64,
    pub(super) template: u64,
}

impl Signature {
    pub(super) fn of(target: &Target) -> Self {
        Self { value: target.signature, template: target.shape.template }
    }
}

/// A page that names a URL as its own address.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedUrl {
    pub(super) signature: Signature,
    pub(super) content: ContentId,
}

/// The pages that were fetched, indexed by what they have in common with other URLs.
#[derive(Clone, Debug, Default)]
pub(super) struct PageIndexes {
    changed: Multimap<PackedKey>,
    pub(super) runs: Runs,
    exact: HashMap<PackedKey, ContentId>,
    longer: Multimap<PackedKey, LongerVariant>,
    droppings: Vec<DroppedSlots>,
    number_of_dropping: HashMap<DroppedSlots, u32>,
    /// Contents, each with the number of a signature; those of one signature stand side by side.
    by_free_values: Multimap<PackedKey, u32>,
    signatures: Vec<Signature>,
    number_of_signature: HashMap<u64, u32>,
    /// Contents of pages with parameters that do not matter, by the URL without them; `strict` has those of parameters that never did.
    canonical: Multimap<PackedKey>,
    strict: Multimap<PackedKey>,
    pub(super) named: HashMap<u64, SmallVec<[NamedUrl; 1]>>,
    pub(super) aspects: Aspects,
}

impl PageIndexes {
    /// Forgets all pages; the memory is used again.
    pub(super) fn clear(&mut self) {
        let Self {
            changed,
            runs,
            exact,
            longer,
            droppings,
            number_of_dropping,
            by_free_values,
            signatures,
            number_of_signature,
            canonical,
            strict,
            named,
            aspects,
        } = self;
        changed.clear();
        runs.clear();
        exact.clear();
        longer.clear();
        droppings.clear();
        number_of_dropping.clear();
        by_free_values.clear();
        signatures.clear();
        number_of_signature.clear();
        canonical.clear();
        strict.clear();
        named.clear();
        aspects.clear();
    }

    /// Adds a page. `canonical` is the key of its URL without the parameters that do not matter, and `strict` that without those that never did.
    pub(super) fn store(&mut self, target: &Target, canonical: u64, strict: u64, content: ContentId) {
        for set in target.changed_sets() {
            let key = target.changed_key(set);
            self.changed.remember(key.into(), content, CONTENTS_OF_KEY);
            if let Some(slot) = target.ordered(set) {
                self.runs.add(run_key(key, slot), slot.place.at, content);
            }
        }
        let own = target.key();
        self.exact.insert(own.into(), content);
        for (shorter, key) in [(&mut self.canonical, canonical), (&mut self.strict, strict)] {
            // Of most URLs nothing is left out, and they stand under their own key already.
            if key != own {
                shorter.remember(key.into(), content, CONTENTS_OF_KEY);
            }
        }
        let sets = target.removal_sets();
        // The last set contains all parameters.
        let all = sets.last().copied().unwrap_or_default();
        for set in sets.into_iter().filter(|set| set.count_ones() <= 2 || *set == all) {
            let dropping = self.number_of(DroppedSlots::of(target, set));
            let value = target.parameter(set).map_or_else(|| target.joint(set), |slot| slot.value);
            let new = Noted { number: content, note: LongerVariant { value: value.into(), dropping } };
            self.longer.change(target.key_without(set).into(), new, |variants| {
                if let Some(known) = variants.iter_mut().find(|known| known.note.dropping == dropping) {
                    *known = new;
                } else if variants.len() < LONGER_VARIANTS {
                    variants.push(new);
                }
            });
        }
        if let Some(same_values) = target.free_values_key() {
            let new = Noted { number: content, note: self.number_of_signature(target) };
            self.by_free_values.change(same_values.into(), new, |known| remember_signature(known, new));
        }
    }

    /// The contents of pages that are equal to a URL outside of a set of slots, by the key of that set.
    pub(super) fn changed(&self, key: u64) -> Ids {
        self.changed.numbers(key.into()).collect()
    }

    /// The content of the page of the URL with this key.
    pub(super) fn exact(&self, key: u64) -> Option<ContentId> {
        self.exact.get(&PackedKey::from(key)).copied()
    }

    /// The contents of pages whose URLs have this key without the parameters that do not matter.
    pub(super) fn canonical(&self, key: u64) -> Ids {
        self.with_exact(key, &self.canonical)
    }

    /// The contents of pages whose URLs have this key without the parameters that never mattered.
    pub(super) fn strict(&self, key: u64) -> Ids {
        self.with_exact(key, &self.strict)
    }

    /// The contents of the page of the URL with this key, and of pages with longer URLs.
    fn with_exact(&self, key: u64, longer: &Multimap<PackedKey>) -> Ids {
        let mut contents: Ids = longer.numbers(key.into()).collect();
        if let Some(own) = self.exact(key).filter(|own| !contents.contains(own)) {
            contents.insert(0, own);
        }
        contents
    }

    /// The pages with more slots than the URL with this key: the slots, their value, and the content.
    pub(super) fn longer(&self, key: u64) -> impl Iterator<Item = (&DroppedSlots, u64, ContentId)> {
        self.longer.get(key.into()).iter().map(|Noted { number, note }| {
            (&self.droppings[note.dropping as usize], note.value.value(), *number)
        })
    }

    /// The contents of pages of other signatures with the same free values as a URL, by these signatures.
    pub(super) fn same_values(&self, target: &Target) -> impl Iterator<Item = (Signature, Ids)> {
        let known = target.free_values_key().map(|key| self.by_free_values.get(key.into()));
        let contents = |known: &[Noted<u32>]| {
            let signature = self.signatures[known[0].note as usize];
            (signature, known.iter().map(|known| known.number).collect())
        };
        let by_signature = known.unwrap_or_default().chunk_by(have_one_signature).map(contents);
        by_signature.filter(|(signature, _)| signature.value != target.signature)
    }

    fn number_of_signature(&mut self, target: &Target) -> u32 {
        *self.number_of_signature.entry(target.signature).or_insert_with(|| {
            self.signatures.push(Signature::of(target));
            self.signatures.len() as u32 - 1
        })
    }

    fn number_of(&mut self, dropping: DroppedSlots) -> u32 {
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

fn have_one_signature(one: &Noted<u32>, other: &Noted<u32>) -> bool {
    one.note == other.note
}

/// Adds a content after those of its signature, unless it is there. Of a signature the newest contents are kept, and of the signatures those that came last.
fn remember_signature(known: &mut List<u32>, new: Noted<u32>) {
    if known.contains(&new) {
        return;
    }
    let of_signature = |known: &List<u32>| known.iter().filter(|other| other.note == new.note).count();
    let Some(first) = known.iter().position(|other| other.note == new.note) else {
        if known.chunk_by(have_one_signature).count() == SIGNATURES_OF_VALUES {
            let oldest = known[0].note;
            known.retain(|other| other.note != oldest);
        }
        return known.push(new);
    };
    if of_signature(known) == CONTENTS_OF_SIGNATURE {
        known.remove(first);
    }
    known.insert(first + of_signature(known), new);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds pages, each as its signature and its content, and returns what is known of pages with these values.
    fn remembered(pages: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        let mut known: Multimap<u64, u32> = Multimap::default();
        for (note, number) in pages {
            let new = Noted { number, note };
            known.change(7, new, |known| remember_signature(known, new));
        }
        known.get(7).iter().map(|known| (known.note, known.number)).collect()
    }

    #[test]
    fn a_page_is_added_once_beside_those_of_its_signature() {
        assert_eq!(
            remembered([(1, 5), (2, 5), (1, 5), (2, 6), (2, 5), (1, 6)]),
            [(1, 5), (1, 6), (2, 5), (2, 6)]
        );
    }

    #[test]
    fn the_newest_contents_of_each_signature_are_kept() {
        let pages = (0..20).flat_map(|content| [(1, content), (2, content / 10)]);
        let known = remembered(pages);
        let of = |signature: u32| -> Vec<u32> {
            known.iter().filter(|(other, _)| *other == signature).map(|(_, content)| *content).collect()
        };
        assert_eq!(of(1), Vec::from_iter(20 - CONTENTS_OF_SIGNATURE as u32..20));
        assert_eq!(of(2), [0, 1], "many contents of another signature do not count");
    }

    #[test]
    fn the_signature_that_came_first_is_forgotten_for_the_33rd() {
        let pages = (0..=SIGNATURES_OF_VALUES as u32).flat_map(|signature| [(signature, 1), (signature, 2)]);
        let known = remembered(pages);
        assert!(known.iter().all(|(signature, _)| *signature != 0), "{known:?}");
        assert_eq!(known.len(), 2 * SIGNATURES_OF_VALUES);
    }
}
