//! The relations of a URL to pages that were fetched.

use smallvec::SmallVec;

use super::aspects::Aspect;
use super::indexes::{Ids, Signature, run_key};
use super::{Kinship, LinkContext, Site};
use crate::avoid::content::{ContentId, Contents};
use crate::avoid::order::Sort;
use crate::avoid::overrides::PriorKnowledge;
use crate::avoid::rows::RowKeys;
use crate::avoid::shape::{Mix, Name, Slot, normal_form};
use crate::avoid::target::{MAX_SLOTS, Target, has};

/// The kinds of keys of rows; keys of different kinds must not be equal.
const MOVED: u64 = 40;
const LINK: u64 = 50;
const CANONICAL: u64 = 60;
const PARAMETER: u64 = 70;
const NAMED: u64 = 80;
const BETWEEN: u64 = 110;
const STRICT: u64 = 120;
const SIZE: u64 = 150;
/// The values of a slot are fetched by their distance from known ones after so many tests, of which so many came out the same.
const TESTS_OF_RUNS: f64 = 3.0;
const COPIES_OF_RUNS: f64 = 0.25;

#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    pub(super) kinship: Kinship,
    pub(super) dropped: SmallVec<[Name; 4]>,
    pub(super) rows: RowKeys,
    pub(super) contents: Ids,
    /// The parameter, if the hypothesis is about a single one.
    pub(super) parameter: Option<Slot>,
    /// The row that decides for pages of the sizes at which it was tested.
    pub(super) row: u64,
    /// The size of the smallest of the contents.
    pub(super) size: u32,
    pub(super) scope: Scope,
    /// Its grade, if its rows are graded by a magnitude.
    pub(super) graded: Option<Graded>,
}

/// Of which pages a hypothesis speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    All,
    /// Those with these values of the dropped slots.
    Values,
    /// Those of this size, in all templates with these parameters.
    Size,
}

/// The place of a hypothesis among those with the same names, by a magnitude: what fails at one magnitude fails at greater ones, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Graded {
    names: Mix,
    /// A logarithm of the magnitude.
    grade: u32,
    /// Whether what holds at one magnitude holds at smaller ones.
    holds_below: bool,
}

/// A URL without the parameters that were learnt not to matter.
#[derive(Clone, Debug)]
pub(super) struct Canonical {
    pub(super) key: u64,
    /// The rows that say whether equality of this form decides.
    pub(super) rows: RowKeys,
    pub(super) idle: SmallVec<[Name; 4]>,
}

impl Hypothesis {
    /// A hypothesis that drops no slots.
    fn new(kinship: Kinship, rows: RowKeys, contents: Ids) -> Self {
        let dropped = SmallVec::new();
        Self {
            kinship,
            dropped,
            rows,
            contents,
            parameter: None,
            row: 0,
            size: 0,
            scope: Scope::All,
            graded: None,
        }
    }

    /// Whether a page with this content is what the hypothesis says.
    pub(super) fn holds(&self, content: ContentId, contents: &Contents) -> bool {
        self.contents.iter().any(|known| match self.kinship {
            // The URLs have different values of the same slots, so each page has words of its own.
            Kinship::Changed | Kinship::Moved | Kinship::Equivalent => {
                contents.is_equal_but_own(*known, content)
            }
            _ => contents.is_equal(*known, content),
        })
    }
}

impl Site {
    /// All relations of the URL to pages that were fetched. Only minimal sets of dropped slots count, so that a row describes exactly the
    /// situation in which it is used: that no finer relation is known.
    pub(super) fn hypotheses(&self, target: &Target, links: &[LinkContext]) -> Vec<Hypothesis> {
        let mut found = Vec::new();
        let names = |set: u16| -> SmallVec<[Name; 4]> {
            let slots = target.shape.slots.iter().enumerate();
            slots.filter(|(index, _)| has(set, *index)).map(|(_, slot)| slot.name).collect()
        };
        let mut matched: SmallVec<[u16; 8]> = SmallVec::new();
        for set in target.changed_sets() {
            let is_minimal = matched.iter().all(|smaller| smaller & set != *smaller);
            let ordered = target.ordered(set);
            if !is_minimal && ordered.is_none() {
                continue;
            }
            let key = target.changed_key(set);
            found.extend(ordered.and_then(|slot| self.between(target, slot, key)));
            if !is_minimal {
                continue;
            }
            let contents = self.stores.changed(key);
            if !contents.is_empty() {
                matched.push(set);
                found.push(Hypothesis {
                    dropped: names(set),
                    parameter: target.parameter(set),
                    ..Hypothesis::new(Kinship::Changed, target.changed_rows(set), contents)
                });
            }
        }
        for aspect in Aspect::all_of(target) {
            let equivalents = self.stores.aspects.equivalents(&aspect, &self.contents);
            found.extend(equivalents.into_iter().map(|(rows, contents)| Hypothesis {
                dropped: SmallVec::from_slice(&[aspect.name]),
                ..Hypothesis::new(Kinship::Equivalent, rows, contents)
            }));
        }
        matched.clear();
        for set in target.removal_sets() {
            if matched.iter().any(|smaller| smaller & set == *smaller) {
                continue;
            }
            if let Some(content) = self.stores.exact(target.key_without(set)) {
                matched.push(set);
                let contents = Ids::from_slice(&[content]);
                let removed = Hypothesis {
                    dropped: names(set),
                    parameter: target.parameter(set),
                    ..Hypothesis::new(Kinship::Removed, target.removed_rows(set), contents)
                };
                let of_size = self.of_size(target, set, &removed);
                found.push(removed);
                found.extend(of_size);
            }
        }
        for named in self.stores.named.get(&target.key()).into_iter().flatten() {
            let rows = rows_of_pair(NAMED, target, named.signature);
            let contents = Ids::from_slice(&[named.content]);
            found.push(Hypothesis::new(Kinship::Named, rows, contents));
        }
        for (dropping, value, content) in self.stores.longer(target.key()) {
            let parameter = dropping.parameter(value);
            let contents = Ids::from_slice(&[content]);
            found.push(Hypothesis {
                dropped: parameter.iter().map(|slot| slot.name).collect(),
                parameter,
                ..Hypothesis::new(Kinship::Added, dropping.rows(value), contents)
            });
        }
        for (other, contents) in self.stores.same_values(target) {
            found.push(Hypothesis::new(Kinship::Moved, rows_of_pair(MOVED, target, other), contents));
        }
        let canonical = self.canonical(target);
        let contents = self.stores.canonical(canonical.key);
        if !contents.is_empty() {
            found.push(Hypothesis {
                dropped: canonical.idle,
                ..Hypothesis::new(Kinship::Canonical, canonical.rows, contents)
            });
        }
        let strict = self.strict_canonical(target);
        let has_idle = !strict.idle.is_empty();
        let contents = if has_idle { self.stores.strict(strict.key) } else { Ids::new() };
        if !contents.is_empty() {
            found.push(Hypothesis {
                dropped: strict.idle,
                ..Hypothesis::new(Kinship::Canonical, strict.rows, contents)
            });
        }
        for link in links.iter().filter(|_| !target.has_forbidden()) {
            if let Some(content) = self.content(link.page) {
                let rows = RowKeys {
                    kind: Mix::new(LINK).0,
                    names: Mix::new(LINK).with(link.position).0,
                    template: Mix::new(LINK).with(target.shape.template).with(link.position).0,
                    own: Mix::new(LINK + 1).with(target.signature).with(link.position).0,
                    finer: Mix::new(LINK + 2)
                        .with(target.signature)
                        .with(link.position)
                        .with(u64::from(self.signature_of[link.page as usize]))
                        .0,
                    ..RowKeys::default()
                };
                found.push(Hypothesis::new(Kinship::Link, rows, Ids::from_slice(&[content])));
            }
        }
        for hypothesis in &mut found {
            if let Some(rows) = self.rows.by_values(&hypothesis.rows) {
                (hypothesis.rows, hypothesis.scope) = (rows, Scope::Values);
            }
            let sizes = hypothesis.contents.iter().map(|content| self.contents.size(*content));
            hypothesis.size = sizes.min().unwrap_or_default();
            hypothesis.row = hypothesis.rows.own;
            if self.rows.is_too_small(hypothesis.row, hypothesis.size) {
                hypothesis.rows = hypothesis.rows.of_small_pages();
            }
        }
        found
    }

    /// The relation to the pages with a lower and a higher value of a slot, if both show the same.
    fn between(&self, target: &Target, slot: &Slot, key: u64) -> Option<Hypothesis> {
        let around = self.stores.runs.around(run_key(key, slot), slot.place.at)?;
        let (below, above, length) = around.between?;
        if !self.contents.is_equal(below, above) {
            return None;
        }
        let names = Mix::new(BETWEEN).with(u64::from(slot.name.0)).with(slot.place.sort as u64);
        let graded = Graded { names, grade: length.ilog2(), holds_below: true };
        // The rows speak for all templates, and one more says whether the hypothesis failed in this one.
        let template = (names.with(0).with(target.shape.template).0, names.with(0).0);
        let rows = RowKeys { values: SmallVec::from_slice(&[template]), ..graded.rows(BETWEEN) };
        Some(Hypothesis {
            dropped: SmallVec::from_slice(&[slot.name]),
            graded: Some(graded),
            ..Hypothesis::new(Kinship::Between, rows, Ids::from_slice(&[below]))
        })
    }

    /// The same hypothesis about left-out parameters for pages of this size alone, in all templates with these parameters: a limit, a filter or an order
    /// changes long lists, and not those which are shorter than the limit or have one entry.
    ///
    /// Where a size was not tested, tests of larger pages say nothing about it: what a second filter leaves of a long list is often all, and of a short one
    /// nothing.
    fn of_size(&self, target: &Target, set: u16, removed: &Hypothesis) -> Option<Hypothesis> {
        if removed.dropped.iter().any(|name| !name.is_parameter()) {
            return None;
        }
        let parameters = target.shape.slots.iter().enumerate().filter(|(_, slot)| slot.name.is_parameter());
        let names = parameters.fold(Mix::new(SIZE), |names, (index, slot)| {
            names.with(u64::from(has(set, index))).with(u64::from(slot.name.0))
        });
        let size = removed.contents.first().map(|content| self.contents.size(*content)).unwrap_or_default();
        let graded = Graded { names, grade: grade_of_size(size), holds_below: false };
        let template = names.with(0).0;
        let rows = RowKeys { template, places: removed.rows.places.clone(), ..graded.rows(SIZE) };
        Some(Hypothesis {
            dropped: removed.dropped.clone(),
            scope: Scope::Size,
            graded: Some(graded),
            ..Hypothesis::new(Kinship::Removed, rows, removed.contents.clone())
        })
    }

    /// The distance of a URL to the nearest known one that differs in an ordered value only, where such URLs show the same often enough.
    pub(crate) fn distance(&self, target: &Target) -> Option<u64> {
        let of_set = |set: u16| {
            let slot = target.ordered(set)?;
            let key = target.changed_key(set);
            let around = self.stores.runs.around(run_key(key, slot), slot.place.at)?;
            let row = self.rows.of_template(&target.changed_rows(set));
            let are_runs = row.total() >= TESTS_OF_RUNS && f64::from(row.dup) >= COPIES_OF_RUNS * row.total();
            are_runs.then_some(around.nearest)
        };
        target.changed_sets().filter_map(of_set).min()
    }

    /// The URL without the parameters that never mattered in any template where that was tested.
    ///
    /// Its one pool has all such parameters of the site together. It decides where URLs have any of many optional parameters, so that nearly
    /// each has a template of its own and no row has evidence.
    pub(super) fn strict_canonical(&self, target: &Target) -> Canonical {
        let mut idle: SmallVec<[Name; 4]> = SmallVec::new();
        let mut context = Mix::new(STRICT).with(target.shape.template);
        for slot in target.shape.slots.iter().filter(|slot| slot.name.is_parameter()) {
            if slot.prior != PriorKnowledge::Forbidden && self.rows.always_held(pool_of(slot.name)) {
                context = context.with(u64::from(slot.name.0));
                idle.push(slot.name);
            }
        }
        let kept = target.shape.slots.iter().filter(|slot| !idle.contains(&slot.name));
        let pool = Mix::new(STRICT).0;
        let rows = RowKeys { pool, own: pool, template: context.0, ..RowKeys::default() };
        Canonical { key: normal_form(kept), rows, idle }
    }

    /// The URL without the parameters that were learnt not to matter.
    pub(super) fn canonical(&self, target: &Target) -> Canonical {
        let mut idle: SmallVec<[Name; 4]> = SmallVec::new();
        let mut dropped = Mix::new(CANONICAL);
        let mut kept: SmallVec<[Slot; 8]> = SmallVec::new();
        for (index, slot) in target.shape.slots.iter().enumerate() {
            let may_be_idle = slot.name.is_parameter() && slot.prior != PriorKnowledge::Forbidden;
            let is_idle = || {
                let (parameter, value) = parameter_rows(slot);
                self.rows.is_idle(parameter, value, slot.prior == PriorKnowledge::Tracking)
            };
            // Old failures are forgotten once enough pages at the other end of an order were copies.
            let is_near_failure = || {
                slot.place.sort != Sort::None
                    && index < MAX_SLOTS
                    && self.rows.is_near_failure(&target.changed_rows(1 << index))
            };
            if may_be_idle && is_idle() && !is_near_failure() {
                dropped = dropped.with(u64::from(slot.name.0));
                idle.push(slot.name);
            } else {
                kept.push(*slot);
            }
        }
        let own = dropped.with(target.shape.template).0;
        let kind = Mix::new(CANONICAL).with(0).0;
        let rows = RowKeys { kind, names: dropped.0, template: dropped.0, own, ..RowKeys::default() };
        // The order of repeated parameters is ignored.
        kept.sort_by_key(|slot| (slot.base, slot.value));
        for slot in &mut kept {
            slot.name = slot.base;
        }
        Canonical { key: normal_form(kept.iter()), rows, idle }
    }
}

impl Graded {
    fn row(self, grade: u32) -> u64 {
        self.names.with(1 + u64::from(grade)).0
    }

    fn rows(self, kind: u64) -> RowKeys {
        let (names, own) = (self.names.0, self.row(self.grade));
        RowKeys { kind: Mix::new(kind).0, names, template: names, own, ..RowKeys::default() }
    }

    /// The rows of other magnitudes about which a test says something, too.
    pub(super) fn implied(self, is_dup: bool) -> impl Iterator<Item = u64> {
        let grades = match is_dup {
            true if self.holds_below => 0..self.grade,
            true => 0..0,
            false => self.grade + 1..u64::BITS,
        };
        grades.map(move |grade| self.row(grade))
    }
}

/// Two grades for each power of two. Fewer mix lists of one entry with those of several, and more have few tests each.
fn grade_of_size(shingles: u32) -> u32 {
    let size = u64::from(shingles) + 1;
    let octave = size.ilog2();
    2 * octave + u32::from(2 * size >= 3 << octave)
}

/// The rows that say whether a URL shows what pages of another signature do.
fn rows_of_pair(kind: u64, target: &Target, other: Signature) -> RowKeys {
    RowKeys {
        kind: Mix::new(kind).0,
        names: Mix::new(kind).0,
        template: Mix::new(kind).with(target.shape.template).with(other.template).0,
        own: Mix::new(kind + 1).with(target.signature).with(other.value).0,
        ..RowKeys::default()
    }
}

/// The keys of the rows of a parameter and of its value, over all templates.
pub(super) fn parameter_rows(slot: &Slot) -> (u64, u64) {
    let parameter = parameter_row(slot.name);
    (parameter.0, parameter.with(slot.value).0)
}

pub(super) fn parameter_row(name: Name) -> Mix {
    Mix::new(PARAMETER).with(u64::from(name.0))
}

/// The pool of a parameter that is left out, over all templates.
pub(super) fn pool_of(name: Name) -> u64 {
    Mix::new(PARAMETER).with(1).with(u64::from(name.0)).0
}
