//! What a belief rests on, for explanations.

use super::{CLEAN, MIN_TESTS, POOL_WINDOW, Row, RowKeys, Rows, VALUES_TESTED, WINDOW};

/// The most further tests that are tried to find out how many a hypothesis lacks.
pub(crate) const MOST_TESTS: u32 = 100;

/// What decides about a hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// No test of its own failed: the share of pure rows among its sisters says how many it needs.
    Sisters,
    /// Tests of its own failed, so it needs many.
    OwnTests,
    /// One pool of all templates.
    Templates,
}

/// A group of sisters of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sisterhood {
    /// All rows of the kind of relation.
    Kind,
    /// Those that ignore the same slots.
    Names,
    /// Those of the same template.
    Template,
    /// Those that have one choice in common.
    Choice,
}

/// The range of places within which a row was tested, and that within which it is believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) at: i64,
    pub(crate) tested: (i64, i64),
    pub(crate) believed: (i64, i64),
}

impl Span {
    pub(crate) fn is_beyond(&self) -> bool {
        self.at < self.believed.0 || self.at > self.believed.1
    }
}

/// What the belief in a hypothesis rests on.
#[derive(Clone, Debug)]
pub(crate) struct Grounds {
    pub(crate) probability: f64,
    /// The row that decides.
    pub(crate) row: Row,
    /// Whether old tests of it count less.
    pub(crate) is_decayed: bool,
    pub(crate) basis: Basis,
    /// The groups of sisters from general to specific, with the numbers of pure and of mixed rows; the row itself is among them.
    pub(crate) sisters: Vec<(Sisterhood, u32, u32)>,
    /// The share of pure rows among them.
    pub(crate) purity: f64,
    /// By the places of the dropped values; `None` where no test succeeded yet.
    pub(crate) spans: Vec<Option<Span>>,
    /// Whether a dropped choice has a value that was never tested, and too few others were.
    pub(crate) is_untested_value: bool,
    /// Whether any test failed that was not forgotten.
    pub(crate) is_contradicted: bool,
    /// The number of further tests like this one that would have to succeed until it is believed; `None` if no number would do.
    pub(crate) lacks: Option<u32>,
}

impl Rows {
    /// What the belief in a hypothesis rests on. `threshold` is the probability above which it is believed.
    pub(crate) fn grounds(&self, keys: &RowKeys, min_evidence: f64, threshold: f64) -> Grounds {
        let (probability, row) = self.believe_to_skip(keys, min_evidence);
        let is_contradicted = row.nodup >= CLEAN;
        let basis = match () {
            () if keys.pool != 0 => Basis::Templates,
            () if is_contradicted || self.get(keys.own).nodup >= CLEAN => Basis::OwnTests,
            () if keys.finer != 0 && self.get(keys.finer).total() >= min_evidence => Basis::OwnTests,
            () => Basis::Sisters,
        };
        let mut groups = vec![(Sisterhood::Kind, keys.kind)];
        groups.extend((keys.names != keys.kind).then_some((Sisterhood::Names, keys.names)));
        groups.extend((keys.template != keys.names).then_some((Sisterhood::Template, keys.template)));
        groups.extend(keys.choices.iter().map(|choice| (Sisterhood::Choice, *choice)));
        let sisters = groups.into_iter().filter_map(|(of, key)| {
            let sisters = self.sisters.get(&key)?;
            Some((of, sisters.pure, sisters.mixed))
        });
        let is_untested = |(row, group): &(u64, u64)| {
            let others = self.sisters.get(group).copied().unwrap_or_default().total();
            self.get(*row).total() == 0.0 && others < VALUES_TESTED
        };
        // A decayed number of tests is a fraction.
        let window = if keys.pool == 0 { f64::from(WINDOW) } else { POOL_WINDOW };
        Grounds {
            probability,
            row,
            is_decayed: row.total() > window && row.total().fract() != 0.0,
            basis,
            sisters: if basis == Basis::Templates { Vec::new() } else { sisters.collect() },
            purity: self.share_of_pure(keys),
            spans: keys.places.iter().map(|(range, at)| self.span(*range, *at)).collect(),
            is_untested_value: basis == Basis::Sisters && keys.values.iter().any(is_untested),
            is_contradicted,
            lacks: self.lacks(keys, min_evidence, threshold),
        }
    }

    fn span(&self, range: u64, at: i64) -> Option<Span> {
        let range = self.ranges.get(&range)?;
        Some(Span { at, tested: range.held?, believed: range.believed()? })
    }

    /// How many further tests like this one would have to succeed: tries them on a copy of the rows that matter.
    fn lacks(&self, keys: &RowKeys, min_evidence: f64, threshold: f64) -> Option<u32> {
        let mut copy = self.only(keys);
        let mut keys = keys.clone();
        for tests in 0..=MOST_TESTS {
            if copy.believe_to_skip(&keys, min_evidence).0 > threshold {
                return Some(tests);
            }
            if keys.pool != 0 {
                // Of each template only the first test counts.
                keys.template = u64::from(tests);
            }
            copy.observe(&keys, true);
        }
        None
    }

    /// The rows and groups of one hypothesis.
    fn only(&self, keys: &RowKeys) -> Self {
        let of_values = keys.values.iter().map(|(row, _)| *row);
        let rows = [keys.template, keys.own, keys.finer].into_iter();
        let rows = rows.chain(keys.choices.iter().copied()).chain(of_values);
        let groups = [keys.kind, keys.names, keys.template].into_iter();
        let groups =
            groups.chain(keys.choices.iter().copied()).chain(keys.values.iter().map(|(_, group)| *group));
        Self {
            rows: rows.filter_map(|key| Some((key, *self.rows.get(&key)?))).collect(),
            sisters: groups.filter_map(|key| Some((key, *self.sisters.get(&key)?))).collect(),
            ranges: keys.places.iter().filter_map(|(key, _)| Some((*key, *self.ranges.get(key)?))).collect(),
            pools: self.pools.get(&keys.pool).map(|pool| (keys.pool, *pool)).into_iter().collect(),
            mixed: self.mixed,
            ..Self::default()
        }
    }
}

impl Grounds {
    /// Whether the hypothesis has fewer tests of its own than any that is believed.
    pub(crate) fn has_few_tests(&self) -> bool {
        self.row.total() < MIN_TESTS
    }
}
