//! Rows of evidence: the number of times that a hypothesis held when it was tested.

use hashbrown::HashMap;
use smallvec::SmallVec;

/// The most evidence of a row. Beyond it, old evidence decays at a constant rate, so that a row follows a site that changes.
const WINDOW: f32 = 33.0;
const DECAY: f32 = 0.97;

/// The mean of the prior of the most general row; another value applies if all dropped parameters are widely used for tracking.
const EXPECTED: f64 = 0.5;
const EXPECTED_OF_TRACKING: f64 = 0.95;
/// The weight of the prior of the most general row; more specific rows have a weight of their own.
const FIRST_WEIGHT: f64 = 2.0;
const WEIGHT: f64 = 1.0;

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

    fn observe(&mut self, is_dup: bool) {
        if self.dup + self.nodup > WINDOW {
            self.dup *= DECAY;
            self.nodup *= DECAY;
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
}

/// The keys of the rows that are evidence for one hypothesis about one URL, from general to specific.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowKeys {
    /// The row of the template and the dropped slots.
    pub(crate) template: u64,
    /// One row for each kept choice, if there are at least two.
    pub(crate) choices: SmallVec<[u64; 4]>,
    /// The row of all kept choices.
    pub(crate) own: u64,
    /// One row for each dropped choice.
    pub(crate) values: SmallVec<[u64; 4]>,
    /// A row that is still more specific, and replaces all others once it has evidence; 0 if there is none.
    pub(crate) finer: u64,
    /// Whether all dropped parameters are widely used for tracking.
    pub(crate) is_tracking: bool,
}

/// The rows by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(HashMap<u64, Row>);

impl Rows {
    fn get(&self, key: u64) -> Row {
        self.0.get(&key).copied().unwrap_or_default()
    }

    pub(crate) fn observe(&mut self, keys: &RowKeys, is_dup: bool) {
        let all = [keys.template, keys.own].into_iter().chain(keys.choices.iter().copied());
        for key in all.chain(keys.values.iter().copied()).chain((keys.finer != 0).then_some(keys.finer)) {
            self.0.entry(key).or_default().observe(is_dup);
        }
    }

    /// Adds one observation to a single row.
    pub(crate) fn observe_one(&mut self, key: u64, is_dup: bool) {
        self.0.entry(key).or_default().observe(is_dup);
    }

    /// The evidence that a parameter does not matter; `None` if any page contradicts that.
    pub(crate) fn idle_evidence(&self, parameter: u64) -> Option<Row> {
        let row = self.get(parameter);
        (row.total() >= 20.0 && row.nodup < 0.05).then_some(row)
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

    /// The probability that the hypothesis holds, by hierarchical Beta posteriors: each row is the prior of the next. Without enough
    /// evidence of its own it stays below 0.6, so a general row alone never decides. The row with the evidence is returned as well.
    pub(crate) fn believe(&self, keys: &RowKeys, min_evidence: f64) -> (f64, Row) {
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
        for key in &keys.values {
            probability = probability.min(self.get(*key).mean(own.mean(prior, WEIGHT), WEIGHT));
        }
        let finer = self.get(keys.finer);
        if keys.finer != 0 && finer.total() >= min_evidence {
            return (finer.mean(own.mean(prior, WEIGHT), WEIGHT), finer);
        }
        let evidence = own.total();
        if evidence < min_evidence && !(pure && evidence >= 2.0) {
            probability = probability.min(0.6);
        }
        (probability, own)
    }
}
