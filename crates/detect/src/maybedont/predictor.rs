//! The predictor: learns from pages and gives the probability for an address.

use std::fmt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::address::Address;
use super::rows::{Counts, Row, Table, Totals};
use super::state::{Key, PathState, QueryId, State, Symbol, UNKNOWN, without};
use crate::lsh::{LshIndex, LshParams, PackedIndex};
use crate::minhash::{PERMUTATIONS, Signature};
use huntsman_text::shingles::{ShingleSet, TooCommon};

/// If there are more pages than this that are not candidates, a sample of this size is compared, as in MaybeDont 0.1.1.
const MAX_COMPARED: usize = 200;

/// Settings of a [`DupePredictor`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PredictorSettings {
    /// The Jaccard similarity from which on two texts are duplicates. 0.9 by default, as in MaybeDont 0.1.1.
    pub jaccard_threshold: f64,
    /// The seed of the samples that are compared if there are too many pages. They are drawn by Xoshiro256++, anew for each page that is
    /// learned.
    pub seed: u64,
}

impl Default for PredictorSettings {
    fn default() -> Self {
        PredictorSettings { jaccard_threshold: 0.9, seed: 0 }
    }
}

impl PredictorSettings {
    fn params(&self) -> Result<LshParams, SettingsError> {
        LshParams::optimal(self.jaccard_threshold, PERMUTATIONS)
            .map_err(|error| SettingsError(format!("jaccard_threshold: {error}")))
    }
}

/// The error for a setting that is out of range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(pub(super) String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Learns which addresses have equal content, and predicts it for new ones, like `DupePredictor` of MaybeDont 0.1.1.
///
/// Each page that is learned is compared with the earlier ones of its path that differ in one query parameter, and six [tables](Table) of
/// claims count how often such pages were equal. The probability for an address is that of the most optimistic claim that applies.
///
/// Learning costs 50 ns per word. It compares at most 200 pages per row, but walks over all pages of the path. A prediction costs a few
/// look-ups, and two for each value of a parameter that the address lacks. Nothing is ever forgotten: a page takes some 0.7 kB, on a path
/// of its own 1.9 kB, and more with many parameters.
///
/// ```
/// use huntsman_detect::maybedont::DupePredictor;
///
/// let mut predictor = DupePredictor::default();
/// for topic in 0..100 {
///     let text = format!("what is said of topic {topic}");
///     predictor.update_model(&format!("http://forum.example/t/{topic}"), &text);
///     predictor.update_model(&format!("http://forum.example/t/{topic}?sid=f00"), &text);
/// }
/// predictor.update_model("http://forum.example/t/new", "something new");
/// let estimate = predictor.estimate("http://forum.example/t/new?sid=f00");
/// assert!(estimate.probability > 0.97);
/// assert_eq!(estimate.best[0].to_string(), "`sid` changes nothing on any path: 100 same, 0 different");
/// ```
///
/// It can be saved with serde, in a versioned format. A restored predictor gives the same answers, also after further learning. Saving
/// copies the whole state.
pub struct DupePredictor {
    pub(super) settings: PredictorSettings,
    pub(super) common: TooCommon,
    /// The number of pages that were learned, repeated ones counted each time; it selects the sample that is drawn.
    pub(super) updates: u64,
    pub(super) state: State,
    index: Box<dyn LshIndex>,
    /// By page, whether it is a candidate. All are false between calls.
    marks: Vec<bool>,
}

/// The result of [`DupePredictor::update_model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// The number of the page: 0 for the first, the same for each version of a page.
    pub page: u32,
    /// The number of earlier pages, on any path, that were candidates for duplicates, including the page's own earlier version.
    pub duplicates: usize,
}

/// The result of [`DupePredictor::estimate`].
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The probability that the content of the address is known. 0 if nothing is known of such addresses; it may be slightly negative, see
    /// [`Counts::probability`].
    pub probability: f64,
    /// The rows with this probability: one of each table that reaches the maximum, by name of the table. Empty if no row applies.
    pub best: Vec<Row>,
    /// The number of rows that were looked up, repeated ones counted each time.
    pub considered: usize,
}

impl Default for DupePredictor {
    /// A predictor with the default settings, for which no shingle is too common.
    fn default() -> Self {
        DupePredictor::new(PredictorSettings::default(), TooCommon::default())
            .expect("the defaults are valid")
    }
}

impl DupePredictor {
    /// A predictor that has learned no page.
    ///
    /// `common` holds the shingles that are removed from every text: [`TooCommon::among`] a sample of the site's pages.
    ///
    /// # Errors
    ///
    /// If the threshold is not within 0 to 1.
    pub fn new(settings: PredictorSettings, common: TooCommon) -> Result<Self, SettingsError> {
        let index = PackedIndex::new(settings.params()?).expect("optimal bands fit a signature");
        Ok(DupePredictor {
            settings,
            common,
            updates: 0,
            state: State::default(),
            index: Box::new(index),
            marks: Vec::new(),
        })
    }

    /// Replaces the [`PackedIndex`] with another index, which gets all signatures. The choice of the index is not saved.
    pub fn with_index(mut self, mut index: Box<dyn LshIndex>) -> Self {
        for (id, page) in (0..).zip(&self.state.pages) {
            index.insert(id, &page.signature);
        }
        self.index = index;
        self
    }

    /// Sets the state of a saved predictor, which must be valid.
    pub(super) fn restored(mut self, updates: u64, state: State) -> Self {
        for (id, page) in (0..).zip(&state.pages) {
            self.index.insert(id, &page.signature);
        }
        self.marks = vec![false; state.pages.len()];
        DupePredictor { updates, state, ..self }
    }

    /// The settings.
    pub fn settings(&self) -> &PredictorSettings {
        &self.settings
    }

    /// The shingles that are removed from every text.
    pub fn too_common(&self) -> &TooCommon {
        &self.common
    }

    /// The number of distinct pages that were learned.
    pub fn pages(&self) -> usize {
        self.state.pages.len()
    }

    /// Learns from a page: its address and its text. If the page was learned before, it is compared with its earlier version as with other
    /// pages, and then replaces it.
    pub fn update_model(&mut self, url: &str, text: &str) -> Learned {
        self.learn(&Address::parse(url), ShingleSet::of(text))
    }

    /// As [`update_model`](Self::update_model), for an address and a text that are parsed already.
    pub fn learn(&mut self, address: &Address, shingles: ShingleSet) -> Learned {
        let signature = Signature::of(shingles.without(&self.common).hashes());
        let candidates = self.index.candidates(&signature);
        let path = self.state.symbols.number(address.path());
        let query = self.state.number_pairs(address.query());
        for &candidate in &candidates {
            self.marks[candidate as usize] = true;
        }
        let observations = match self.state.path(path) {
            Some(known) => self.observe(known, &query, &signature),
            None => Vec::new(),
        };
        for &candidate in &candidates {
            self.marks[candidate as usize] = false;
        }
        self.state.path_mut(path).counts.get_or_insert_default();
        for (claim, counts) in observations {
            self.count(path, claim, counts);
        }
        let identity = xxh3_128(address.identity().as_bytes());
        let page = match self.state.page_numbers.get(&identity) {
            Some(&page) => {
                self.state.pages[page as usize].signature = signature.clone();
                page
            }
            None => {
                self.marks.push(false);
                self.state.add(super::state::Page { identity, path, query, signature: signature.clone() })
            }
        };
        self.index.insert(page, &signature);
        self.updates += 1;
        Learned { page, duplicates: candidates.len() }
    }

    /// The evidence from a new page about its path; the candidates must be marked.
    fn observe(
        &self,
        path: &PathState,
        query: &[(Symbol, Symbol)],
        signature: &Signature,
    ) -> Vec<(Observed, Counts)> {
        let mut comparison = Comparison::new(self, signature);
        let mut found = vec![(Observed::Path, comparison.counts(path.pages.iter()))];
        let mut note = |claim, counts: Counts| {
            if counts.total() > 0 {
                found.push((claim, counts));
            }
        };
        for &(param, value) in query {
            let rest = self.state.queries.find(&without(query, param));
            let others = path.by_rest.get(&(rest, param));
            let removed = path.by_query.get(&rest);
            let family = others.into_iter().flatten().chain(removed.into_iter().flatten());
            note(Observed::Param { rest, param }, comparison.counts(family));
            note(Observed::ParamValue { param, value }, comparison.counts(removed.into_iter().flatten()));
        }

        let rest = self.state.queries.find(query);
        let same = path.by_query.get(&rest);
        // The pages with the same query belong to the family of every parameter that this page lacks. If there are none, only those
        // parameters have a family with which some page has this query as its rest.
        let absent = match same {
            Some(_) => &path.params[..],
            None => path.params_by_rest.get(&rest).map_or(&[][..], |params| params),
        };
        for &param in absent.iter().filter(|&&param| query.iter().all(|&(name, _)| name != param)) {
            let added = path.by_rest.get(&(rest, param));
            let family = added.into_iter().flatten().chain(same.into_iter().flatten());
            note(Observed::Param { rest, param }, comparison.counts(family));
            let mut by_value: Vec<(Symbol, u32)> =
                added.into_iter().flatten().map(|&page| (self.state.value_of(page, param), page)).collect();
            by_value.sort_unstable();
            for pages in by_value.chunk_by(|one, two| one.0 == two.0) {
                let counts = comparison.counts(pages.iter().map(|(_, page)| page));
                note(Observed::ParamValue { param, value: pages[0].0 }, counts);
            }
        }
        found
    }

    fn count(&mut self, path: Symbol, claim: Observed, counts: Counts) {
        let State { param_counts, param_value_counts, .. } = &mut self.state;
        match claim {
            Observed::Path => {}
            Observed::Param { param, .. } => param_counts.entry(param).or_default().add(counts),
            Observed::ParamValue { param, value } => {
                param_value_counts.entry((param, value)).or_default().add(counts);
            }
        }
        let path = self.state.path_mut(path);
        match claim {
            Observed::Path => path.counts.get_or_insert_default().add(counts),
            Observed::Param { rest, param } => {
                path.param_counts.entry(param).or_default().add(counts);
                path.query_param_counts.entry((rest, param)).or_default().add(counts);
            }
            Observed::ParamValue { param, value } => {
                path.param_value_counts.entry((param, value)).or_default().add(counts);
            }
        }
    }

    /// The probability that the content of the address is known: [`estimate`](Self::estimate) without its reasons.
    pub fn duplicate_probability(&self, url: &str) -> f64 {
        self.best(&Address::parse(url)).probability()
    }

    /// The probability that the content of the address is known, and the rows that give it.
    pub fn estimate(&self, url: &str) -> Estimate {
        self.estimate_for(&Address::parse(url))
    }

    /// As [`estimate`](Self::estimate), for an address that is parsed already.
    pub fn estimate_for(&self, address: &Address) -> Estimate {
        let best = self.best(address);
        let mut rows: Vec<_> =
            best.rows.iter().zip(Table::ALL).filter_map(|(row, table)| row.map(|row| (table, row))).collect();
        rows.sort_by_key(|(table, _)| table.name());
        Estimate {
            probability: best.probability(),
            best: rows.into_iter().map(|(table, (key, counts))| self.state.row(table, key, counts)).collect(),
            considered: best.considered,
        }
    }

    fn best(&self, address: &Address) -> Best {
        let mut best = Best::default();
        let path_symbol = self.state.symbols.find(address.path());
        let Some(path) = self.state.path(path_symbol) else { return best };
        let key = Key { path: path_symbol, ..Key::EMPTY };
        best.consider(Table::Path, key, path.counts.as_ref());
        let query = self.state.find_pairs(address.query());
        let consider_param = |best: &mut Best, rest, param| {
            let key = Key { rest, param, ..key };
            best.consider(Table::Param, key, self.state.param_counts.get(&param));
            best.consider(Table::PathParam, key, path.param_counts.get(&param));
            best.consider(Table::PathQueryParam, key, path.query_param_counts.get(&(rest, param)));
        };
        let consider_value = |best: &mut Best, param, value| {
            let key = Key { param, value, ..key };
            best.consider(Table::ParamValue, key, self.state.param_value_counts.get(&(param, value)));
            best.consider(Table::PathParamValue, key, path.param_value_counts.get(&(param, value)));
        };
        for &(param, value) in query.iter().filter(|&&(param, _)| param != UNKNOWN) {
            let rest = self.state.queries.find(&without(&query, param));
            let removed = path.by_query.contains_key(&rest);
            if removed || path.by_rest.contains_key(&(rest, param)) {
                consider_param(&mut best, rest, param);
            }
            if removed {
                consider_value(&mut best, param, value);
            }
        }
        let rest = self.state.queries.find(&query);
        for &param in path.params_by_rest.get(&rest).into_iter().flatten() {
            consider_param(&mut best, rest, param);
            // All values of the parameter on this path are used, not only those that were seen with this rest, as in the original.
            for &value in path.values.get(&param).into_iter().flat_map(|values| &values.list) {
                consider_value(&mut best, param, value);
            }
        }
        best
    }

    /// The rows of a table that have observations, in the order of their claims.
    pub fn rows(&self, table: Table) -> Vec<Row> {
        let mut rows = Vec::new();
        self.state.each_row(table, |key, counts| rows.push(self.state.row(table, key, counts)));
        rows.sort_unstable_by(|one, two| one.claim.cmp(&two.claim));
        rows
    }

    /// The number of rows of a table that have observations, and their sums.
    pub fn totals(&self, table: Table) -> Totals {
        self.state.totals(table)
    }
}

impl fmt::Debug for DupePredictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DupePredictor")
            .field("settings", &self.settings)
            .field("too_common", &self.common.len())
            .field("pages", &self.pages())
            .field("paths", &self.state.paths.len())
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// The rows that pairs of pages are evidence for: a row of table 1, rows of tables 2 to 4, or rows of tables 5 and 6.
#[derive(Debug, Clone, Copy)]
enum Observed {
    Path,
    Param { rest: QueryId, param: Symbol },
    ParamValue { param: Symbol, value: Symbol },
}

/// Compares one new page with sets of earlier ones.
struct Comparison<'a> {
    predictor: &'a DupePredictor,
    signature: &'a Signature,
    rng: Xoshiro256PlusPlus,
    others: Vec<u32>,
}

impl<'a> Comparison<'a> {
    fn new(predictor: &'a DupePredictor, signature: &'a Signature) -> Self {
        // The generator is seeded by the number of the update for each call, so that no generator state has to be saved.
        let seed = predictor.settings.seed ^ predictor.updates.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Comparison { predictor, signature, rng: Xoshiro256PlusPlus::seed_from_u64(seed), others: Vec::new() }
    }

    /// Candidates count as duplicates without verification; other pages count as different if their signatures are too different. The rest
    /// counts as neither.
    fn counts<'p>(&mut self, pages: impl Iterator<Item = &'p u32>) -> Counts {
        let DupePredictor { marks, state, settings, .. } = self.predictor;
        let mut dup = 0;
        self.others.clear();
        for &page in pages {
            if marks[page as usize] {
                dup += 1;
            } else {
                self.others.push(page);
            }
        }
        let all = self.others.len();
        if all == 0 {
            return Counts { dup, nodup: 0 };
        }
        let compared = all.min(MAX_COMPARED);
        if compared < all {
            // The first steps of a Fisher-Yates shuffle.
            for at in 0..compared {
                let left = (all - at) as u128;
                let drawn = at + ((u128::from(self.rng.next_u64()) * left) >> 64) as usize;
                self.others.swap(at, drawn);
            }
        }
        let different = self.others[..compared].iter().filter(|&&page| {
            state.pages[page as usize].signature.jaccard(self.signature) < settings.jaccard_threshold
        });
        // The share times the size, truncated, even if no sample was drawn: this matches the original, rounding errors included.
        let nodup = different.count() as f64 / compared as f64 * all as f64;
        Counts { dup, nodup: nodup as u64 }
    }
}

/// The maximum over rows.
#[derive(Debug, Clone, Copy, Default)]
struct Best {
    probability: Option<f64>,
    /// By position in [`Table::ALL`], the first row that reaches the maximum.
    rows: [Option<(Key, Counts)>; 6],
    considered: usize,
}

impl Best {
    fn probability(&self) -> f64 {
        self.probability.unwrap_or(0.0)
    }

    fn consider(&mut self, table: Table, key: Key, counts: Option<&Counts>) {
        let Some(&counts) = counts else { return };
        self.considered += 1;
        let probability = counts.probability();
        let best = self.probability.unwrap_or(f64::NEG_INFINITY);
        if probability > best {
            self.probability = Some(probability);
            self.rows = [None; 6];
        }
        if probability >= best {
            self.rows[table as usize].get_or_insert((key, counts));
        }
    }
}
