//! The relations of a URL to pages that were fetched.

use smallvec::SmallVec;

use super::aspects::Aspect;
use super::indexes::{Ids, Signature, run_key};
use super::{Kinship, LinkContext, Site};
use crate::avoid::content::{ContentId, Contents};
use crate::avoid::overrides::PriorKnowledge;
use crate::avoid::rows::RowKeys;
use crate::avoid::shape::{Mix, Name, Slot, normal_form};
use crate::avoid::target::{Target, has};

/// The kinds of keys of rows; keys of different kinds must not be equal.
const MOVED: u64 = 40;
const LINK: u64 = 50;
const CANONICAL: u64 = 60;
const PARAMETER: u64 = 70;
const NAMED: u64 = 80;
const BETWEEN: u64 = 110;
const STRICT: u64 = 120;
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
    /// Whether it is about these values of the dropped slots only.
    pub(super) is_by_values: bool,
    /// The distance of the neighbours, if the hypothesis is about them.
    pub(super) between: Option<Between>,
}

/// The neighbours of a value, as the rows about them know them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    names: Mix,
    /// The logarithm of their distance.
    log: u32,
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
            is_by_values: false,
            between: None,
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
            found.extend(ordered.and_then(|slot| self.between(slot, key)));
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
                found.push(Hypothesis {
                    dropped: names(set),
                    parameter: target.parameter(set),
                    ..Hypothesis::new(Kinship::Removed, target.removed_rows(set), contents)
                });
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
            if let Some(Some(content)) = self.content_of.get(link.page as usize) {
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
                found.push(Hypothesis::new(Kinship::Link, rows, Ids::from_slice(&[*content])));
            }
        }
        for hypothesis in &mut found {
            if let Some(rows) = self.rows.by_values(&hypothesis.rows) {
                (hypothesis.rows, hypothesis.is_by_values) = (rows, true);
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
    fn between(&self, slot: &Slot, key: u64) -> Option<Hypothesis> {
        let around = self.stores.runs.around(run_key(key, slot), slot.place.at)?;
        let (below, above, length) = around.between?;
        if !self.contents.is_equal(below, above) {
            return None;
        }
        let names = Mix::new(BETWEEN).with(u64::from(slot.name.0)).with(slot.place.sort as u64);
        let between = Between { names, log: length.ilog2() };
        let rows = RowKeys {
            kind: Mix::new(BETWEEN).0,
            names: names.0,
            template: names.0,
            own: between.row(between.log),
            ..RowKeys::default()
        };
        Some(Hypothesis {
            dropped: SmallVec::from_slice(&[slot.name]),
            between: Some(between),
            ..Hypothesis::new(Kinship::Between, rows, Ids::from_slice(&[below]))
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
        for slot in &target.shape.slots {
            let may_be_idle = slot.name.is_parameter() && slot.prior != PriorKnowledge::Forbidden;
            let is_idle = || {
                let (parameter, value) = parameter_rows(slot);
                self.rows.is_idle(parameter, value, slot.prior == PriorKnowledge::Tracking)
            };
            if may_be_idle && is_idle() {
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

impl Between {
    fn row(self, log: u32) -> u64 {
        self.names.with(1 + u64::from(log)).0
    }

    /// The rows of other distances about which a test says something, too: if far neighbours have a value between them as they say, near ones do, and if near
    /// ones do not, far ones do not.
    pub(super) fn implied(self, is_dup: bool) -> impl Iterator<Item = u64> {
        let logs = if is_dup { 0..self.log } else { self.log + 1..u64::BITS };
        logs.map(move |log| self.row(log))
    }
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
