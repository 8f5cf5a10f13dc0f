//! Aspects: the several ways in which a site shows one thing, as a file at a revision that is shown with colours, raw, and as a history.
//!
//! Two values of a slot that show the same in one aspect do so in others, too: a file that did not change between two revisions did not
//! change in its raw form. Whether that holds is learnt for each pair of aspects, because it need not hold: a directory may change where
//! a file in it did not.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use super::indexes::Ids;
use crate::avoid::content::{ContentId, Contents};
use crate::avoid::kinds::Kind;
use crate::avoid::multimap::remember;
use crate::avoid::overrides::PriorKnowledge;
use crate::avoid::rows::RowKeys;
use crate::avoid::shape::{Mix, Name};
use crate::avoid::target::Target;

/// The most values of a URL that it is an aspect of.
const VALUES: usize = 4;
/// The most aspects that are remembered of one value.
const ASPECTS_OF_VALUE: usize = 16;
/// The most values that are remembered of those with one content.
const VALUES_OF_CONTENT: usize = 16;
/// The most frames that are told apart, 0.2 KB each; pages in others are no aspects. A site has that many if nearly each URL has parameters of its own.
const MAX_FRAMES: usize = 65_536;
/// The most contents that a URL may have by one aspect.
const CONTENTS: usize = 8;

/// The kinds of keys; keys of different kinds must not be equal.
const SUBJECT: u64 = 160;
const FRAME: u64 = 161;
const ROWS: u64 = 150;

/// A URL as an aspect of one of its values.
#[derive(Clone, Debug)]
pub(super) struct Aspect {
    /// The slot.
    pub(super) name: Name,
    value: u32,
    /// The hash of the name, and of all free values but this one: what is shown.
    subject: Mix,
    frame: Frame,
}

/// How it is shown: all of a URL that is neither free nor the value.
#[derive(Clone, Debug)]
struct Frame {
    hash: u64,
    template: u64,
    choices: SmallVec<[(Name, u64); 4]>,
}

/// A page that shows a value.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// The number of the frame.
    frame: u32,
    content: ContentId,
}

/// The pages of a site as aspects of their values.
#[derive(Clone, Debug, Default)]
pub(super) struct Aspects {
    frames: Vec<Frame>,
    number_of_frame: HashMap<u64, u32>,
    /// By subject and value, the first aspect. Most values have no other one, and take about 25 bytes each.
    first: HashMap<u64, Shown>,
    /// By subject and value, all aspects of those that have several.
    several: HashMap<u64, SmallVec<[Shown; 2]>>,
    /// By subject, frame, and group of contents, the values with that content and several aspects.
    values: HashMap<u64, SmallVec<[u32; 4]>>,
}

impl Aspect {
    /// The URL as an aspect of each of its values that may be dropped: of parameters, and of free segments of a path that has another free
    /// value, as the revision in `/blame/28c5666/lib/io.c`. Where a segment is all that is free, it is the thing itself.
    pub(super) fn all_of(target: &Target) -> SmallVec<[Self; 2]> {
        let is_free = |kind: Kind| kind == Kind::Free;
        let has_others = target.slots().filter(|(_, kind)| is_free(*kind)).nth(1).is_some();
        let varies = |name: Name, kind: Kind| {
            (name.is_parameter() && kind != Kind::Const) || (name.is_segment() && is_free(kind) && has_others)
        };
        let values = target
            .slots()
            .filter(|(slot, kind)| varies(slot.name, *kind) && slot.prior != PriorKnowledge::Forbidden);
        values.take(VALUES).map(|(slot, _)| Self::of(target, slot.name, slot.value)).collect()
    }

    fn of(target: &Target, name: Name, value: u64) -> Self {
        let mut free: SmallVec<[u64; 8]> = SmallVec::new();
        let mut choices: SmallVec<[(Name, u64); 4]> = SmallVec::new();
        for (slot, kind) in target.slots().filter(|(slot, _)| slot.name != name) {
            match kind {
                Kind::Free => free.push(slot.loose),
                Kind::Const | Kind::Enum(_) => choices.push((slot.name, slot.value)),
            }
        }
        free.sort_unstable();
        let subject = Mix::new(SUBJECT).with(u64::from(name.0));
        let template = target.shape.template;
        let frame = Mix::new(FRAME).with(template);
        let hash =
            choices.iter().fold(frame, |hash, (name, value)| hash.with(u64::from(name.0)).with(*value)).0;
        Self {
            name,
            value: value as u32,
            subject: free.iter().fold(subject, |hash, value| hash.with(*value)),
            frame: Frame { hash, template, choices },
        }
    }

    /// Whether another URL shows the same value of the same thing in another way.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        (self.value, self.subject) == (other.value, other.subject) && self.frame.hash != other.frame.hash
    }

    /// The rows that say whether values which show the same in the frame of another aspect do so in this one.
    pub(super) fn rows(&self, other: &Self) -> RowKeys {
        self.rows_by(&other.frame)
    }

    /// Choices that both have, such as a branch, do not matter. The others say which two aspects these are.
    fn rows_by(&self, other: &Frame) -> RowKeys {
        let Self { name, frame, .. } = self;
        let kind = Mix::new(ROWS);
        let names = kind.with(u64::from(name.0));
        let template = names.with(frame.template).with(other.template);
        let but = |own: Mix, frame: &Frame, other: &Frame| {
            let choices = frame.choices.iter().filter(|choice| !other.choices.contains(choice));
            choices.fold(own.with(1), |own, (name, value)| own.with(u64::from(name.0)).with(*value))
        };
        let own = but(but(template, frame, other), other, frame);
        RowKeys {
            kind: kind.0,
            names: names.0,
            template: template.0,
            own: own.0,
            is_of_path: name.is_segment(),
            ..RowKeys::default()
        }
    }

    fn shown_key(&self, value: u32) -> u64 {
        self.subject.with(u64::from(value)).0
    }

    fn values_key(&self, frame: u32, group: u64) -> u64 {
        self.subject.with(u64::from(frame)).with(group).0
    }
}

impl Aspects {
    pub(super) fn clear(&mut self) {
        let Self { frames, number_of_frame, first, several, values } = self;
        frames.clear();
        number_of_frame.clear();
        first.clear();
        several.clear();
        values.clear();
    }

    /// Adds a page.
    pub(super) fn store(&mut self, target: &Target, content: ContentId, contents: &Contents) {
        for aspect in Aspect::all_of(target) {
            let key = aspect.shown_key(aspect.value);
            let Some(frame) = self.number_of(&aspect.frame) else { continue };
            let added = Shown { frame, content };
            let first = self.first.entry(key).or_insert(added);
            if first.frame == added.frame && !self.several.contains_key(&key) {
                *first = added;
                continue;
            }
            let first = *first;
            let shown = self.several.entry(key).or_default();
            let is_second = shown.is_empty();
            if is_second {
                shown.push(first);
            }
            if let Some(known) = shown.iter_mut().find(|known| known.frame == added.frame) {
                *known = added;
            } else {
                if shown.len() == ASPECTS_OF_VALUE {
                    shown.remove(0);
                }
                shown.push(added);
            }
            for shown in is_second.then_some(first).into_iter().chain([added]) {
                self.add_value(&aspect, shown, contents);
            }
        }
    }

    fn add_value(&mut self, aspect: &Aspect, shown: Shown, contents: &Contents) {
        for group in groups(shown.content, contents) {
            let values = self.values.entry(aspect.values_key(shown.frame, group)).or_default();
            remember(values, aspect.value, VALUES_OF_CONTENT);
        }
    }

    /// The pages that show a value of the subject of an aspect.
    fn shown(&self, aspect: &Aspect, value: u32) -> &[Shown] {
        let key = aspect.shown_key(value);
        let first = || self.first.get(&key).map_or(&[][..], std::slice::from_ref);
        self.several.get(&key).map_or_else(first, SmallVec::as_slice)
    }

    fn number_of(&mut self, frame: &Frame) -> Option<u32> {
        let next = self.frames.len();
        match self.number_of_frame.entry(frame.hash) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(_) if next >= MAX_FRAMES => None,
            Entry::Vacant(new) => {
                self.frames.push(frame.clone());
                Some(*new.insert(next as u32))
            }
        }
    }

    /// By each other aspect in which the value of this one was fetched: the contents that this one has with the values that show the same there,
    /// with the rows that say whether that means anything.
    pub(super) fn equivalents(&self, aspect: &Aspect, contents: &Contents) -> SmallVec<[(RowKeys, Ids); 2]> {
        let shown = self.shown(aspect, aspect.value);
        let Some(own) = self.number_of_frame.get(&aspect.frame.hash).copied() else {
            return SmallVec::new();
        };
        let by = |shown: &Shown| {
            let found = self.with_same(aspect, own, shown, contents);
            (!found.is_empty()).then(|| (aspect.rows_by(&self.frames[shown.frame as usize]), found))
        };
        shown.iter().filter(|shown| shown.frame != own).filter_map(by).collect()
    }

    fn with_same(&self, aspect: &Aspect, own: u32, shown: &Shown, contents: &Contents) -> Ids {
        let mut found = Ids::new();
        for group in groups(shown.content, contents) {
            let values = self.values.get(&aspect.values_key(shown.frame, group)).into_iter().flatten();
            for value in values.filter(|value| **value != aspect.value) {
                let same = self.shown(aspect, *value).iter().find(|shown| shown.frame == own);
                if let Some(same) = same {
                    remember(&mut found, same.content, CONTENTS);
                }
            }
        }
        found
    }
}

/// The groups of a content by its whole text, and by its text without its own words.
fn groups(content: ContentId, contents: &Contents) -> impl Iterator<Item = u64> {
    let (whole, without_own) = contents.groups(content);
    let without_own = without_own.map(|group| 1 << 32 | u64::from(group));
    std::iter::once(u64::from(whole)).chain(without_own)
}
