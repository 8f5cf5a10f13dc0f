//! A URL as the model sees it, and the keys by which it is matched with related URLs.

use std::sync::OnceLock;

use smallvec::SmallVec;

use super::kinds::{Kind, Kinds};
use super::order::Sort;
use super::overrides::PriorKnowledge;
use super::rows::RowKeys;
use super::shape::{Mix, RawSlot, Shape, Slot, normal_form, shape};

/// The most slots of a URL that may be dropped; further ones are always kept.
const MAX_DROPPABLE: usize = 12;
/// The most slots that are examined one by one.
pub(crate) const MAX_SLOTS: usize = 16;

/// The kinds of keys; keys of different kinds must not be equal.
const CHANGED: u64 = 20;
const CHANGED_KEY: u64 = 11;
const REMOVED: u64 = 30;
const FREE_VALUES_KEY: u64 = 12;
const SIGNATURE: u64 = 10;
const PLACE: u64 = 6;
const KIND: u64 = 140;
const JOINT: u64 = 145;

/// A shape, the kinds of its slots, and the values of those that are not free text.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) shape: Shape,
    pub(crate) kinds: SmallVec<[Kind; 8]>,
    pub(crate) signature: u64,
}

impl Target {
    /// The group of all rows about slots that may be present or not.
    pub(crate) const REMOVED_KIND: u64 = REMOVED;

    pub(crate) fn of(raw: &[RawSlot], kinds: &Kinds) -> Self {
        Self::of_shape(shape(raw, &kinds.layout), kinds)
    }

    /// Makes a target of a shape by the layout of these kinds.
    pub(crate) fn of_shape(mut shape: Shape, kinds: &Kinds) -> Self {
        kinds.place(&mut shape);
        let kinds = kinds.kinds_of(&shape);
        let mut signature = Mix::new(SIGNATURE).with(shape.template);
        for (slot, kind) in shape.slots.iter().zip(&kinds) {
            if *kind != Kind::Free {
                signature = signature.with(u64::from(slot.name.0)).with(slot.value);
            }
        }
        Self { shape, kinds, signature: signature.0 }
    }

    /// The key of the URL itself, comparable with those of other templates.
    pub(crate) fn key(&self) -> u64 {
        normal_form(self.shape.slots.iter())
    }

    /// The key under which copies of this signature are counted, whatever the rows by which they are copies.
    pub(crate) fn kind_row(&self) -> u64 {
        Mix::new(KIND).with(self.signature).0
    }

    /// The slots with their kinds.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (&Slot, Kind)> {
        self.shape.slots.iter().zip(self.kinds.iter().copied())
    }

    /// The sets of slots that may change without changing the content, by growing size.
    pub(crate) fn changed_sets(&self) -> impl Iterator<Item = u16> + use<> {
        let slots = self.slots().take(MAX_SLOTS).enumerate();
        let free =
            slots.filter(|(_, (slot, kind))| *kind != Kind::Const && slot.prior != PriorKnowledge::Forbidden);
        let droppable: SmallVec<[usize; 8]> = free.map(|(index, _)| index).take(MAX_DROPPABLE).collect();
        drop_sets(droppable.len()).iter().map(move |set| spread(*set, &droppable))
    }

    /// The key of all URLs that are equal outside of a set of slots.
    pub(crate) fn changed_key(&self, set: u16) -> u64 {
        let mut key = Mix::new(CHANGED_KEY).with(self.shape.template).with(u64::from(set));
        for (index, slot) in self.shape.slots.iter().enumerate() {
            key = if has(set, index) { key.with(u64::from(slot.name.0)) } else { key.with(slot.value) };
        }
        key.0
    }

    /// The sets of slots without which the URL may have been fetched: some parameters, or one segment.
    pub(crate) fn removal_sets(&self) -> SmallVec<[u16; 32]> {
        let slots = self.shape.slots.iter().take(MAX_SLOTS).enumerate();
        let slots = slots.filter(|(_, slot)| slot.prior != PriorKnowledge::Forbidden);
        let mut sets: SmallVec<[u16; 32]> =
            slots.clone().filter(|(_, slot)| slot.name.is_segment()).map(|(index, _)| 1 << index).collect();
        let parameters: SmallVec<[usize; 8]> = slots
            .filter(|(_, slot)| slot.name.is_parameter())
            .map(|(index, _)| index)
            .take(MAX_DROPPABLE)
            .collect();
        sets.extend(drop_sets(parameters.len()).iter().map(|set| spread(*set, &parameters)));
        sets
    }

    /// The key of the URL without a set of slots.
    pub(crate) fn key_without(&self, set: u16) -> u64 {
        let kept = self.shape.slots.iter().enumerate().filter(|(index, _)| !has(set, *index));
        normal_form(kept.map(|(_, slot)| slot))
    }

    /// The rows that say whether the values of a set of slots may change.
    pub(crate) fn changed_rows(&self, set: u16) -> RowKeys {
        self.rows(CHANGED, set, |index| self.kinds[index].is_enum())
    }

    /// The rows that say whether a set of slots may be present or not.
    pub(crate) fn removed_rows(&self, set: u16) -> RowKeys {
        RowKeys { joint: self.joint(set), ..self.rows(REMOVED, set, |_| true) }
    }

    /// A hash of the values of a set of slots; 0 if it is a single one.
    pub(crate) fn joint(&self, set: u16) -> u64 {
        if set.count_ones() < 2 {
            return 0;
        }
        let slots = self.shape.slots.iter().enumerate().filter(|(index, _)| has(set, *index));
        slots.fold(Mix::new(JOINT), |hash, (_, slot)| hash.with(slot.value)).0
    }

    /// The rows from general to specific: the dropped slots; one for each kept choice, if there are several; all kept choices; one for each
    /// dropped value.
    ///
    /// The dropped slots are left out of the third row on purpose: otherwise a parameter with 25 values that does not matter would have to
    /// be learnt 25 times.
    fn rows(&self, kind: u64, set: u16, by_value: impl Fn(usize) -> bool) -> RowKeys {
        let slots = &self.shape.slots;
        let (names, template) = self.group_keys(Mix::new(kind), set);
        let is_choice = |index: &usize| !has(set, *index) && self.kinds[*index].is_enum();
        let choices: SmallVec<[usize; 8]> = (0..slots.len()).filter(is_choice).collect();
        let mut own = template.with(1);
        let is_tracking =
            (0..slots.len()).all(|index| !has(set, index) || slots[index].prior == PriorKnowledge::Tracking);
        let is_of_path =
            slots.iter().enumerate().any(|(index, slot)| has(set, index) && slot.name.is_segment());
        let mut keys = RowKeys {
            kind: Mix::new(kind).0,
            names: names.0,
            template: template.0,
            is_tracking,
            is_of_path,
            ..RowKeys::default()
        };
        for index in &choices {
            let slot = slots[*index];
            own = own.with(u64::from(slot.name.0)).with(slot.value);
            if choices.len() >= 2 {
                keys.choices.push(template.with(2).with(u64::from(slot.name.0)).with(slot.value).0);
            }
        }
        keys.own = own.0;
        for (index, slot) in slots.iter().enumerate() {
            if has(set, index) && slot.place.sort != Sort::None {
                let key = Mix(keys.own).with(PLACE).with(u64::from(slot.name.0)).with(slot.place.sort as u64);
                keys.places.push((key.0, slot.place.at));
            }
            if has(set, index) && by_value(index) {
                keys.values.push((Self::value_row(keys.own, slot), Self::values_of(keys.own, slot)));
            }
        }
        keys
    }

    /// The keys of the groups of all rows with these dropped slots, and of those of the template.
    fn group_keys(&self, kind: Mix, set: u16) -> (Mix, Mix) {
        let mut template = kind.with(self.shape.template);
        let mut names = kind.with(u64::from(set.count_ones()));
        for (_, slot) in self.shape.slots.iter().enumerate().filter(|(index, _)| has(set, *index)) {
            template = template.with(u64::from(slot.name.0));
            names = names.with(u64::from(slot.name.0));
        }
        (names, template)
    }

    /// Those of [`removed_rows`](Self::removed_rows) that all values share: of the names, of the template, and of the kept choices.
    pub(crate) fn removed_keys(&self, set: u16) -> (u64, u64, u64) {
        let (names, template) = self.group_keys(Mix::new(REMOVED), set);
        let mut own = template.with(1);
        for (index, (slot, kind)) in self.slots().enumerate() {
            if kind.is_enum() && !has(set, index) {
                own = own.with(u64::from(slot.name.0)).with(slot.value);
            }
        }
        (names.0, template.0, own.0)
    }

    /// The key of the row for one dropped value, which is more specific than the row of all choices.
    pub(crate) fn value_row(own: u64, slot: &Slot) -> u64 {
        Mix(own).with(3).with(u64::from(slot.name.0)).with(slot.value).0
    }

    /// The key of the group of those rows.
    pub(crate) fn values_of(own: u64, slot: &Slot) -> u64 {
        Mix(own).with(4).with(u64::from(slot.name.0)).0
    }

    /// Whether the URL has a slot that the user has forbidden to treat as irrelevant.
    pub(crate) fn has_forbidden(&self) -> bool {
        self.shape.slots.iter().any(|slot| slot.prior == PriorKnowledge::Forbidden)
    }

    /// The slot of a set, if it is a single one whose values have an order.
    pub(crate) fn ordered(&self, set: u16) -> Option<&Slot> {
        let slot = (set.count_ones() == 1).then(|| &self.shape.slots[set.trailing_zeros() as usize]);
        slot.filter(|slot| slot.place.sort != Sort::None)
    }

    /// The parameter of a set, if the set is a single parameter.
    pub(crate) fn parameter(&self, set: u16) -> Option<Slot> {
        let slot = (set.count_ones() == 1).then(|| self.shape.slots[set.trailing_zeros() as usize]);
        slot.filter(|slot| slot.name.is_parameter())
    }

    /// A hash of the values of the free slots, regardless of the slots in which they are and of their spelling.
    ///
    /// The time of day beside a date is left out: what one view shows of a date, another one shows at a time of it.
    pub(crate) fn free_values_key(&self) -> Option<u64> {
        let free = self.slots().filter(|(slot, kind)| *kind == Kind::Free && !slot.is_time);
        let mut values: SmallVec<[u64; 8]> = free.map(|(slot, _)| slot.loose).collect();
        values.sort_unstable();
        let hash = values.iter().fold(Mix::new(FREE_VALUES_KEY), |hash, value| hash.with(*value));
        (!values.is_empty()).then_some(hash.0)
    }

    /// The slots in which the URL differs from another one of the same template; `None` if one of them must not be dropped.
    pub(crate) fn changed_from(&self, other: &Self) -> Option<u16> {
        let pairs = self.shape.slots.iter().zip(&other.shape.slots).enumerate();
        pairs.filter(|(_, (slot, other))| slot.value != other.value).try_fold(0, |set, (index, (slot, _))| {
            let is_kept = index >= MAX_SLOTS
                || self.kinds[index] == Kind::Const
                || slot.prior == PriorKnowledge::Forbidden;
            (!is_kept).then(|| set | 1 << index)
        })
    }

    /// The rows that would decide about the URL if another one, which is in flight, had been fetched: both have the same template, or one
    /// has more slots.
    pub(crate) fn rows_if_fetched(&self, other: &Self) -> Option<RowKeys> {
        if self.shape.template == other.shape.template {
            return self.changed_from(other).map(|set| self.changed_rows(set));
        }
        let (slots, others) = (&self.shape.slots, &other.shape.slots);
        let (long, short) = if slots.len() > others.len() { (self, other) } else { (other, self) };
        if long.shape.slots.len() > MAX_SLOTS {
            return None;
        }
        let is_kept = |slot: &Slot| {
            short.shape.slots.iter().any(|other| other.name == slot.name && other.value == slot.value)
        };
        let dropped = long.shape.slots.iter().enumerate().filter(|(_, slot)| !is_kept(slot));
        let set: u16 = dropped.map(|(index, _)| 1u16 << index).sum();
        let kept = long.shape.slots.len() - set.count_ones() as usize;
        (kept == short.shape.slots.len()).then(|| long.removed_rows(set))
    }
}

/// Whether a set contains a slot.
pub(crate) fn has(set: u16, index: usize) -> bool {
    index < MAX_SLOTS && set & (1 << index) != 0
}

/// Converts a set of positions in a list of slots to a set of slots.
fn spread(set: u16, slots: &[usize]) -> u16 {
    slots.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0).map(|(_, index)| 1u16 << index).sum()
}

/// Subsets of `n` elements by growing size: for up to 5 elements all of them, otherwise those of size 1, n-1 and n, and for up to 8 those
/// of size 2.
fn drop_sets(n: usize) -> &'static [u16] {
    static SETS: OnceLock<Vec<Vec<u16>>> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        let of = |n: usize| {
            let is_tried = |set: &u16| {
                let size = set.count_ones() as usize;
                n <= 5 || size == 1 || size + 1 >= n || (size == 2 && n <= 8)
            };
            let mut sets: Vec<u16> = (1..1u32 << n).map(|set| set as u16).filter(is_tried).collect();
            sets.sort_by_key(|set| (set.count_ones(), *set));
            sets
        };
        (0..=MAX_DROPPABLE).map(of).collect()
    });
    &sets[n.min(MAX_DROPPABLE)]
}
