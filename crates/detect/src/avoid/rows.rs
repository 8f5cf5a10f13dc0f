//! Rows of evidence: the number of times that a hypothesis held when it was tested, and what is believed from it.
//!
//! Rows are nearly all of one of two kinds: pure ones hold always, mixed ones hold sometimes. A row without failures is either, and the
//! share of pure ones among its sisters says how many tests it needs until it is believed: a few where all sisters are pure, a dozen where
//! half of them are mixed.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::shape::Mix;
use super::sketch::SIMILAR;

mod grounds;
mod places;

pub(crate) use grounds::{Basis, Grounds, MOST_TESTS, Sisterhood};
use places::TestedPlaces;

/// The kind of keys of rows of small pages.
const SMALL: u64 = 5;
/// The kind of keys of rows for the values of several dropped slots.
const BY_VALUES: u64 = 7;
/// A parameter that held in so many templates, and failed in none, is left out of the strict canonical form.
const TEMPLATES_OF_IDLE: f64 = 10.0;
/// The number of tests, each in a template of its own, after which a pool is believed.
const POOL_TESTS: f64 = 20.0;
/// The highest probability that a pool gives.
const POOL_MOST: f64 = 0.995;
/// The prior of a pool: its parts never failed.
const POOL_EXPECTED: f64 = 0.9;
const POOL_WEIGHT: f64 = 2.0;
/// Beyond so many tests, old ones decay. A pool has more of them than a row, because each is about another template.
const POOL_WINDOW: f64 = 150.0;
const POOL_DECAY: f64 = 0.99;
/// The most templates of pools that are remembered.
const MAX_TESTED: usize = 262_144;
/// The most evidence of a row. Beyond it, old evidence decays at a constant rate, so that a row follows a site that changes.
const WINDOW: f32 = 33.0;
const DECAY: f32 = 0.97;
/// Where a segment of a path is dropped, failures decay half as fast: paths name things, and near ones are often alike where far ones are
/// not, as files at revisions. So what failed before is believed again only after a long time.
const DECAY_OF_PATH_FAILURES: f32 = 0.985;
/// A row with more failures, after decay, is mixed.
const CLEAN: f32 = 0.05;

/// The mean of the prior of the most general row; another value applies if all dropped parameters are widely used for tracking.
const EXPECTED: f64 = 0.5;
const EXPECTED_OF_TRACKING: f64 = 0.95;
/// The weight of the prior of the most general row; more specific rows have a weight of their own.
const FIRST_WEIGHT: f64 = 2.0;
const WEIGHT: f64 = 1.0;

/// A row with so many tests counts as a sister of others, as pure or as mixed.
const TESTS_OF_SISTER: f64 = 2.0;
/// The weight of the prior share of pure rows: of all relations of a kind, and of smaller groups.
const SISTERS_OF_KIND: f64 = 4.0;
const SISTERS_OF_GROUP: f64 = 2.0;
/// A single choice says more about the rows that have it than the template does, if it has so many rows.
const ROWS_OF_CHOICE: f64 = 3.0;
/// No row is taken for pure before it was tested, however pure its sisters are.
const MOST_PURE: f64 = 0.98;
/// The least number of tests of its own of a row that is believed.
const MIN_TESTS: f64 = 3.0;
/// The same for a skip by a row of whose sisters at least this share is pure. One test is only a floor there: Bayes' rule says how many the threshold takes, and
/// where the default one is passed after one test, 0.92 of the sisters are pure or more.
const MIN_TESTS_OF_SKIP: f64 = 1.0;
const NEARLY_ALL_PURE: f64 = 0.9;
/// A request is a test of what ties it to known pages if its content is known with more than this probability.
pub(crate) const TEST: f64 = 0.5;
/// The highest probability without enough tests: the request is worth a test, and waits for those in flight.
pub(crate) const UNTESTED: f64 = 0.6;
/// A value of a dropped choice that was never tested is like the others once so many of them were.
const VALUES_TESTED: f64 = 3.0;
/// The share of copies under a pure row: even those have exceptions, such as a page that changes.
const PURE: f64 = 0.999;
/// The share of copies under a mixed row, as prior with its weight; and the least that is assumed, because the lower it is the sooner a row
/// without failures is taken for pure.
const MIXED: f64 = 0.7;
const MIXED_WEIGHT: f64 = 10.0;

/// The number of pages that were the same (`dup`) and of those that were not, with decay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// The number of pages whose content was known under the hypothesis.
    pub dup: f32,
    /// The number of pages whose content was new.
    pub nodup: f32,
}

impl Row {
    /// The total evidence.
    pub fn total(self) -> f64 {
        f64::from(self.dup) + f64::from(self.nodup)
    }

    fn observe(&mut self, is_dup: bool, is_of_path: bool) {
        if self.dup + self.nodup > WINDOW {
            self.dup *= DECAY;
            self.nodup *= if is_of_path { DECAY_OF_PATH_FAILURES } else { DECAY };
        }
        if is_dup { self.dup += 1.0 } else { self.nodup += 1.0 }
    }

    /// The mean of the Beta posterior, for a prior with this mean and weight.
    fn mean(self, prior: f64, weight: f64) -> f64 {
        (f64::from(self.dup) + weight * prior) / (self.total() + weight)
    }

    fn is_pure(self) -> bool {
        self.total() >= 20.0 && (f64::from(self.dup) + 0.5) / (self.total() + 1.0) >= 0.95
    }

    /// Whether the row counts as a sister: `Some(true)` as a pure one, `Some(false)` as a mixed one.
    fn as_sister(self) -> Option<bool> {
        (self.total() >= TESTS_OF_SISTER).then_some(self.nodup < CLEAN)
    }
}

/// The keys of the rows that are evidence for one hypothesis about one URL, from general to specific.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowKeys {
    /// The group of all rows of this kind of relation.
    pub(crate) kind: u64,
    /// The group of all rows with these dropped slots, over all templates.
    pub(crate) names: u64,
    /// The row of the template and the dropped slots.
    pub(crate) template: u64,
    /// One row for each kept choice, if there are at least two.
    pub(crate) choices: SmallVec<[u64; 4]>,
    /// The row of all kept choices.
    pub(crate) own: u64,
    /// One row for each dropped choice, with the group of the rows for its values.
    pub(crate) values: SmallVec<[(u64, u64); 4]>,
    /// The places of the dropped values, each with the key of the range of places at which the own row was tested.
    pub(crate) places: SmallVec<[(u64, i64); 2]>,
    /// A row that is still more specific, and replaces all others once it has evidence; 0 if there is none.
    pub(crate) finer: u64,
    /// The pool that decides in place of the rows; 0 if there is none. Its context is the template.
    pub(crate) pool: u64,
    /// A hash of the dropped values, if several slots are dropped and it may depend on their values together; 0 otherwise.
    pub(crate) joint: u64,
    /// Whether all dropped parameters are widely used for tracking.
    pub(crate) is_tracking: bool,
    /// Whether a segment of the path is dropped.
    pub(crate) is_of_path: bool,
}

impl RowKeys {
    /// The rows for exactly these dropped values. Their sisters are those for the same values beside other choices, so that a few tests are
    /// enough where the values always show the same.
    fn by_values(&self) -> Self {
        let key = |group: u64| Mix(group).with(BY_VALUES).with(self.joint).0;
        Self {
            kind: Mix::new(BY_VALUES).0,
            names: key(self.names),
            template: key(self.template),
            own: key(self.own),
            is_tracking: self.is_tracking,
            is_of_path: self.is_of_path,
            ..Self::default()
        }
    }

    /// The rows for pages that are smaller than those which tested these rows. They say nothing about larger ones.
    pub(crate) fn of_small_pages(&self) -> Self {
        let key = |part: u64| Mix(self.own).with(SMALL).with(part).0;
        Self { kind: key(0), names: key(1), template: key(2), own: key(3), ..Self::default() }
    }
}

/// The sizes of pages for which a row was found to hold although the pages were not quite the same.
///
/// A copy that has another headline counts as the same if nine tenths of the page agree: a large page does, a small one does not.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// The least number of shingles of a page that was tested.
    least: u32,
    /// The largest number of shingles in which two such pages differed.
    apart: u32,
}

/// The tests of a hypothesis over many templates, of which only the first one in each counts: what is asked is whether it holds in a template
/// that is new.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    right: f64,
    wrong: f64,
}

impl Pool {
    fn total(self) -> f64 {
        self.right + self.wrong
    }
}

/// The numbers of pure and of mixed rows of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sisters {
    pure: u32,
    mixed: u32,
}

impl Sisters {
    fn total(self) -> f64 {
        f64::from(self.pure) + f64::from(self.mixed)
    }

    fn share(self, prior: f64, weight: f64) -> f64 {
        (f64::from(self.pure) + weight * prior) / (self.total() + weight)
    }

    fn without(self, is_pure: Option<bool>) -> Self {
        let less = |count: u32, is: bool| count.saturating_sub(u32::from(is));
        Self { pure: less(self.pure, is_pure == Some(true)), mixed: less(self.mixed, is_pure == Some(false)) }
    }
}

/// The rows by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    rows: HashMap<u64, Row>,
    sisters: HashMap<u64, Sisters>,
    /// The places of dropped values at which rows were tested.
    ranges: HashMap<u64, TestedPlaces>,
    /// By the key of a row; rows under which all copies were exact have none.
    sizes: HashMap<u64, Sizes>,
    pools: HashMap<u64, Pool>,
    /// The pools with the templates in which they were tested.
    tested: HashSet<u64>,
    /// The sums of copies and of all tests of mixed rows.
    mixed: [f64; 2],
}

impl Rows {
    /// Forgets all rows; the memory is used again.
    pub(crate) fn clear(&mut self) {
        let Self { rows, sisters, ranges, sizes, pools, tested, mixed } = self;
        rows.clear();
        sisters.clear();
        ranges.clear();
        sizes.clear();
        pools.clear();
        tested.clear();
        *mixed = [0.0; 2];
    }

    fn get(&self, key: u64) -> Row {
        self.rows.get(&key).copied().unwrap_or_default()
    }

    /// The row of the template and the dropped slots.
    pub(crate) fn of_template(&self, keys: &RowKeys) -> Row {
        self.get(keys.template)
    }

    /// Adds a test of a pool, if it is the first one in this context.
    pub(crate) fn observe_pool(&mut self, pool: u64, context: u64, is_dup: bool) {
        if self.tested.len() >= MAX_TESTED || !self.tested.insert(Mix(pool).with(context).0) {
            return;
        }
        let pool = self.pools.entry(pool).or_default();
        if pool.total() > POOL_WINDOW {
            pool.right *= POOL_DECAY;
            pool.wrong *= POOL_DECAY;
        }
        if is_dup { pool.right += 1.0 } else { pool.wrong += 1.0 }
    }

    /// Whether a hypothesis held in all of so many templates that it may be part of another one.
    pub(crate) fn always_held(&self, pool: u64) -> bool {
        self.pools.get(&pool).is_some_and(|pool| pool.wrong == 0.0 && pool.right >= TEMPLATES_OF_IDLE)
    }

    pub(crate) fn observe(&mut self, keys: &RowKeys, is_dup: bool) {
        if keys.pool != 0 {
            self.observe_pool(keys.pool, keys.template, is_dup);
            return;
        }
        for (row, group) in &keys.values {
            if self.get(*row).total() == 0.0 {
                self.sisters.entry(*group).or_default().pure += 1;
            }
        }
        let all = [keys.template].into_iter().chain(keys.choices.iter().copied());
        for key in
            all.chain(keys.values.iter().map(|(row, _)| *row)).chain((keys.finer != 0).then_some(keys.finer))
        {
            self.rows.entry(key).or_default().observe(is_dup, keys.is_of_path);
        }
        for (range, at) in &keys.places {
            self.ranges.entry(*range).or_default().add(*at, is_dup);
        }
        let own = self.rows.entry(keys.own).or_default();
        let before = *own;
        own.observe(is_dup, keys.is_of_path);
        let after = *own;
        for (row, sign) in [(before, -1.0), (after, 1.0)] {
            if row.as_sister() == Some(false) {
                self.mixed[0] += sign * f64::from(row.dup);
                self.mixed[1] += sign * row.total();
            }
        }
        let (before, after) = (before.as_sister(), after.as_sister());
        if before == after {
            return;
        }
        let names = (keys.names != keys.kind).then_some(keys.names);
        for group in [keys.kind, keys.template].into_iter().chain(names).chain(keys.choices.iter().copied()) {
            let sisters = self.sisters.entry(group).or_default();
            *sisters = sisters.without(before);
            match after {
                Some(true) => sisters.pure += 1,
                Some(false) => sisters.mixed += 1,
                None => {}
            }
        }
    }

    /// The rows for the dropped values, if the rows for any values failed: `?sort=name&order=asc` may show what the address without both
    /// does, where `?sort=date&order=asc` does not, and neither value alone tells. `None` if the rows themselves decide.
    pub(crate) fn by_values(&self, keys: &RowKeys) -> Option<RowKeys> {
        (keys.joint != 0 && self.get(keys.own).nodup >= CLEAN).then(|| keys.by_values())
    }

    /// Records that a page of this size was found to be a copy by a row, and in how many shingles it differed.
    pub(crate) fn extend_range(&mut self, row: u64, size: u32, apart: u32) {
        if apart > 0 {
            let sizes = self.sizes.entry(row).or_insert(Sizes { least: size, apart });
            sizes.apart = sizes.apart.max(apart);
        }
        if let Some(sizes) = self.sizes.get_mut(&row) {
            sizes.least = sizes.least.min(size);
        }
    }

    /// Whether a page is smaller than all that tested a row, and so small that what was the same in them may be different in it. A row that failed is
    /// not believed for pages of any size.
    pub(crate) fn is_too_small(&self, row: u64, size: u32) -> bool {
        let is_too_small =
            |sizes: &Sizes| size < sizes.least && f64::from(sizes.apart) > (1.0 - SIMILAR) * f64::from(size);
        self.sizes.get(&row).is_some_and(is_too_small) && self.get(row).nodup < CLEAN
    }

    /// Adds one observation to a single row.
    pub(crate) fn observe_one(&mut self, key: u64, is_dup: bool) {
        self.rows.entry(key).or_default().observe(is_dup, false);
    }

    /// The evidence that a parameter does not matter; `None` if any page contradicts that.
    pub(crate) fn idle_evidence(&self, parameter: u64) -> Option<Row> {
        let row = self.get(parameter);
        (row.total() >= 20.0 && row.nodup < CLEAN).then_some(row)
    }

    /// Whether a parameter with this value does not matter. The evidence about the value takes precedence over that about the parameter.
    pub(crate) fn is_idle(&self, parameter: u64, value: u64, is_tracking: bool) -> bool {
        let (least, expected) = if is_tracking { (2.0, EXPECTED_OF_TRACKING) } else { (10.0, EXPECTED) };
        let holds = |row: Row| row.total() >= least && row.mean(expected, WEIGHT) >= 0.95;
        let of_value = self.get(value);
        if of_value.total() >= 3.0 && of_value.mean(0.5, WEIGHT) < 0.8 {
            return false;
        }
        holds(of_value) || holds(self.get(parameter))
    }

    /// The probability that the hypothesis holds. Without enough evidence of its own it stays below 0.6, so a general row alone never
    /// decides. The row with the evidence is returned as well.
    ///
    /// This orders requests: what is a test, what waits, and for what.
    pub(crate) fn believe(&self, keys: &RowKeys, min_evidence: f64) -> (f64, Row) {
        self.believe_after(MIN_TESTS, keys, min_evidence)
    }

    /// The probability by which a request is skipped: that of [`believe`](Self::believe), but one test may be enough where nearly all sisters
    /// of the row are pure. Not where dropped values have an order, because one test says little about the rest of it.
    ///
    /// Requests are not ordered by it: with it, all tests of a row more often come from one end of an order, and a recorded site lost up to
    /// 2.6 % of its contents.
    pub(crate) fn believe_to_skip(&self, keys: &RowKeys, min_evidence: f64) -> (f64, Row) {
        // The sisters are asked for only where it depends on them, because most rows have no test or enough.
        let is_early = (MIN_TESTS_OF_SKIP..MIN_TESTS).contains(&self.get(keys.own).total())
            && keys.places.is_empty()
            && keys.finer == 0
            && self.share_of_pure(keys) >= NEARLY_ALL_PURE;
        self.believe_after(if is_early { MIN_TESTS_OF_SKIP } else { MIN_TESTS }, keys, min_evidence)
    }

    fn believe_after(&self, tests: f64, keys: &RowKeys, min_evidence: f64) -> (f64, Row) {
        if keys.pool != 0 {
            return self.believe_pool(keys.pool);
        }
        let own = self.get(keys.own);
        if self.has_own_say(keys, own, min_evidence) {
            return self.believe_mixed(keys, min_evidence);
        }
        let mut probability = self.believe_clean(keys, own);
        for (row, group) in &keys.values {
            let value = self.get(*row);
            probability = probability.min(value.mean(probability, WEIGHT));
            let others = self.sisters.get(group).copied().unwrap_or_default().total();
            if value.total() == 0.0 && others < VALUES_TESTED {
                probability = probability.min(UNTESTED);
            }
        }
        if own.total() < tests || self.is_beyond(keys) {
            probability = probability.min(UNTESTED);
        }
        (probability, own)
    }

    /// Whether the tests of a row decide, and not what its sisters are: one of them failed, or a finer row has enough.
    fn has_own_say(&self, keys: &RowKeys, own: Row, min_evidence: f64) -> bool {
        own.nodup >= CLEAN || (keys.finer != 0 && self.get(keys.finer).total() >= min_evidence)
    }

    fn believe_pool(&self, pool: u64) -> (f64, Row) {
        let pool = self.pools.get(&pool).copied().unwrap_or_default();
        let probability = (pool.right + POOL_WEIGHT * POOL_EXPECTED) / (pool.total() + POOL_WEIGHT);
        let most = if pool.total() < POOL_TESTS { UNTESTED } else { POOL_MOST };
        (probability.min(most), Row { dup: pool.right as f32, nodup: pool.wrong as f32 })
    }

    /// Whether a value is more than twice as far from those that tested the row as these are from each other. Values have an order, and contents are runs
    /// in it: tests at one end say little about the other end.
    fn is_beyond(&self, keys: &RowKeys) -> bool {
        keys.places.iter().any(|(range, at)| {
            let believed = self.ranges.get(range).and_then(TestedPlaces::believed);
            believed.is_some_and(|(low, high)| *at < low || *at > high)
        })
    }

    /// Whether a value is nearer to one for which the row failed than to those for which it held.
    pub(crate) fn is_near_failure(&self, keys: &RowKeys) -> bool {
        let is_near =
            |(key, at): &(u64, i64)| self.ranges.get(key).is_some_and(|tested| tested.is_near_failure(*at));
        keys.places.iter().any(is_near)
    }

    /// The probability that is expected, however few tests the row has: by what is known of its sisters, without caution in either direction.
    ///
    /// Nothing is skipped by it. It says how much would be learnt from a page.
    pub(crate) fn expect(&self, keys: &RowKeys, min_evidence: f64) -> f64 {
        let own = self.get(keys.own);
        if keys.pool != 0 || self.has_own_say(keys, own, min_evidence) || self.is_beyond(keys) {
            return self.believe(keys, min_evidence).0;
        }
        let mixed = (self.mixed[0] + FIRST_WEIGHT * EXPECTED) / (self.mixed[1] + FIRST_WEIGHT);
        let is_pure = self.is_pure(keys, own, mixed);
        let expected = PURE * is_pure + mixed * (1.0 - is_pure);
        let of_values = keys.values.iter().map(|(row, _)| self.get(*row));
        of_values.fold(expected, |expected, value| expected.min(value.mean(expected, WEIGHT)))
    }

    /// The probability by a row without failures: that it is pure, and else the share of copies under a mixed row.
    fn believe_clean(&self, keys: &RowKeys, own: Row) -> f64 {
        let mixed = ((self.mixed[0] + MIXED_WEIGHT * MIXED) / (self.mixed[1] + MIXED_WEIGHT)).max(MIXED);
        let is_pure = self.is_pure(keys, own, mixed);
        // Most mixed rows of a site may hold nearly always: even so, a row that is not pure is worth no more than usual.
        PURE * is_pure + MIXED * (1.0 - is_pure)
    }

    /// The probability that a row without failures is pure, by Bayes' rule; `mixed` is the share of copies under a mixed one.
    fn is_pure(&self, keys: &RowKeys, own: Row, mixed: f64) -> f64 {
        let pure = self.share_of_pure(keys);
        pure / (pure + (1.0 - pure) * mixed.powf(f64::from(own.dup)))
    }

    /// The share of pure rows among the sisters of a row and itself, each group being the prior of the smaller one within it.
    fn share_of_pure(&self, keys: &RowKeys) -> f64 {
        let sisters = |key: u64| self.sisters.get(&key).copied().unwrap_or_default();
        let of_kind = match keys.is_tracking {
            true => EXPECTED_OF_TRACKING,
            false => sisters(keys.kind).share(EXPECTED, SISTERS_OF_KIND),
        };
        let of_names = match keys.names == keys.kind {
            true => of_kind,
            false => sisters(keys.names).share(of_kind, SISTERS_OF_GROUP),
        };
        let of_template = sisters(keys.template).share(of_names, SISTERS_OF_GROUP);
        let choices = keys.choices.iter().map(|key| sisters(*key));
        let choices = choices.filter(|choice| choice.total() >= ROWS_OF_CHOICE);
        let shares = choices.map(|choice| choice.share(of_template, SISTERS_OF_GROUP));
        let (low, high) =
            shares.fold((1.0, 0.0), |(low, high), share: f64| (share.min(low), share.max(high)));
        let share = match high > 0.0 {
            false => of_template,
            true if low < of_template / 2.0 => low,
            true => high,
        };
        share.min(MOST_PURE)
    }

    /// The probability by hierarchical Beta posteriors: each row is the prior of the next.
    fn believe_mixed(&self, keys: &RowKeys, min_evidence: f64) -> (f64, Row) {
        let template = self.get(keys.template);
        let expected = if keys.is_tracking { EXPECTED_OF_TRACKING } else { EXPECTED };
        let mut prior = template.mean(expected, FIRST_WEIGHT);
        let mut pure = template.is_pure() || (keys.is_tracking && prior >= EXPECTED_OF_TRACKING);
        let mut least: Option<f64> = None;
        let mut high: Option<(f64, f64)> = None;
        let mut low: Option<f64> = None;
        for key in &keys.choices {
            let row = self.get(*key);
            let total = row.total();
            if total < 3.0 {
                continue;
            }
            let mean = row.mean(prior, WEIGHT);
            least = Some(least.map_or(mean, |least| least.min(mean)));
            if total >= 10.0 && mean >= 0.93 && high.is_none_or(|(best, _)| mean > best) {
                high = Some((mean, total));
            }
            if total >= 10.0 && mean <= 0.10 {
                low = Some(low.map_or(mean, |low| low.min(mean)));
            }
        }
        match (high, low) {
            (Some((mean, total)), None) => {
                prior = mean;
                pure |= total >= 20.0;
            }
            _ if !pure => prior = least.unwrap_or(prior),
            (_, Some(low)) => {
                prior = low;
                pure = false;
            }
            _ => {}
        }
        let own = self.get(keys.own);
        let mut probability = own.mean(prior, WEIGHT);
        for (row, _) in &keys.values {
            probability = probability.min(self.get(*row).mean(own.mean(prior, WEIGHT), WEIGHT));
        }
        let finer = self.get(keys.finer);
        if keys.finer != 0 && finer.total() >= min_evidence {
            return (finer.mean(own.mean(prior, WEIGHT), WEIGHT), finer);
        }
        let evidence = own.total();
        if (evidence < min_evidence && !(pure && evidence >= 2.0)) || self.is_beyond(keys) {
            probability = probability.min(UNTESTED);
        }
        (probability, own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pages_are_judged_apart_only_where_a_row_always_held() {
        let keys = RowKeys { own: 1, ..RowKeys::default() };
        let mut rows = Rows::default();
        for _ in 0..5 {
            rows.observe(&keys, true);
            rows.extend_range(keys.own, 200, 10);
        }
        assert!(rows.is_too_small(keys.own, 20), "ten shingles are half of it");
        assert!(!rows.is_too_small(keys.own, 199));
        rows.observe(&keys, false);
        assert!(!rows.is_too_small(keys.own, 20), "the row failed");
    }
}
