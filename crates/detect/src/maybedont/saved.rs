//! The stored form of a predictor.

use std::collections::HashSet;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::predictor::{DupePredictor, PredictorSettings};
use super::rows::Counts;
use super::state::{Page, State, Symbol};
use crate::minhash::Signature;
use huntsman_text::shingles::TooCommon;

/// The version of the format. Other versions are refused.
pub(super) const FORMAT: u32 = 1;

/// The names and values of a query, in the order of the names' indices.
type QueryRecord = Vec<(Symbol, Symbol)>;

/// A page; its names are indices into [`Saved::symbols`].
#[derive(Serialize, Deserialize)]
pub(super) struct PageRecord {
    /// The upper and lower half of the XXH3-128 of the canonical address.
    pub(super) identity: [u64; 2],
    pub(super) path: Symbol,
    pub(super) query: QueryRecord,
    pub(super) signature: Signature,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    settings: PredictorSettings,
    too_common: Vec<u64>,
    updates: u64,
    symbols: Vec<String>,
    pages: Vec<PageRecord>,
    param: Vec<(Symbol, Counts)>,
    param_value: Vec<(Symbol, Symbol, Counts)>,
    paths: Vec<PathRecord>,
}

/// The rows about one path.
#[derive(Serialize, Deserialize)]
struct PathRecord {
    path: Symbol,
    counts: Counts,
    param: Vec<(Symbol, Counts)>,
    query_param: Vec<(QueryRecord, Symbol, Counts)>,
    param_value: Vec<(Symbol, Symbol, Counts)>,
}

/// The ways in which a stored predictor may be damaged.
#[derive(Debug)]
enum Damage {
    Format(u32),
    Settings(super::predictor::SettingsError),
    Name(Symbol),
    RepeatedName,
    Query,
    RepeatedPage,
    Path,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Format(format) => {
                write!(f, "the predictor was saved in format {format}, this version reads format {FORMAT}")
            }
            Damage::Settings(error) => error.fmt(f),
            Damage::Name(symbol) => write!(f, "there is no name {symbol} in the saved predictor"),
            Damage::RepeatedName => f.write_str("a name is twice in the saved predictor"),
            Damage::Query => f.write_str("a query of the saved predictor is not sorted"),
            Damage::RepeatedPage => f.write_str("a page is twice in the saved predictor"),
            Damage::Path => f.write_str("the paths of the saved predictor are not those of its pages"),
        }
    }
}

impl Saved {
    fn of(predictor: &DupePredictor) -> Saved {
        let state = &predictor.state;
        let sorted = |mut rows: Vec<(Symbol, Symbol, Counts)>| {
            rows.sort_unstable_by_key(|&(param, value, _)| (param, value));
            rows
        };
        let sorted_params = |mut rows: Vec<(Symbol, Counts)>| {
            rows.sort_unstable_by_key(|&(param, _)| param);
            rows
        };
        let queries = state.queries.values();
        let paths = state.paths.iter().map(|(path, rows)| {
            let mut query_param: Vec<_> = rows
                .query_param_counts
                .iter()
                .map(|(&(rest, param), &counts)| (queries[rest as usize].to_vec(), param, counts))
                .collect();
            query_param.sort_unstable_by(|one, two| (&one.0, one.1).cmp(&(&two.0, two.1)));
            PathRecord {
                path: *path,
                counts: rows.counts.unwrap_or_default(),
                param: sorted_params(rows.param_counts.iter().map(|(&p, &counts)| (p, counts)).collect()),
                query_param,
                param_value: sorted(
                    rows.param_value_counts.iter().map(|(&(p, v), &counts)| (p, v, counts)).collect(),
                ),
            }
        });
        Saved {
            format: FORMAT,
            settings: predictor.settings.clone(),
            too_common: predictor.common.hashes(),
            updates: predictor.updates,
            symbols: state.symbols.values().iter().map(|text| text.to_string()).collect(),
            pages: state.records(),
            param: sorted_params(state.param_counts.iter().map(|(&p, &counts)| (p, counts)).collect()),
            param_value: sorted(
                state.param_value_counts.iter().map(|(&(p, v), &counts)| (p, v, counts)).collect(),
            ),
            paths: paths.collect(),
        }
    }

    fn restore(self) -> Result<DupePredictor, Damage> {
        if self.format != FORMAT {
            return Err(Damage::Format(self.format));
        }
        let common: TooCommon = self.too_common.into_iter().collect();
        let predictor = DupePredictor::new(self.settings, common).map_err(Damage::Settings)?;
        let mut state = State::default();
        for (at, text) in self.symbols.iter().enumerate() {
            if state.symbols.number(text.as_str()) as usize != at {
                return Err(Damage::RepeatedName);
            }
        }
        let names = self.symbols.len();
        let known =
            |symbol: Symbol| if (symbol as usize) < names { Ok(symbol) } else { Err(Damage::Name(symbol)) };
        let known_query = |query: &[(Symbol, Symbol)]| {
            for &(name, value) in query {
                known(name)?;
                known(value)?;
            }
            if query.windows(2).all(|pair| pair[0].0 < pair[1].0) { Ok(()) } else { Err(Damage::Query) }
        };
        for page in self.pages {
            known(page.path)?;
            known_query(&page.query)?;
            let identity = u128::from(page.identity[0]) << 64 | u128::from(page.identity[1]);
            if state.page_numbers.contains_key(&identity) {
                return Err(Damage::RepeatedPage);
            }
            let query = page.query.into();
            state.add(Page { identity, path: page.path, query, signature: page.signature });
        }
        for (param, counts) in self.param {
            state.param_counts.insert(known(param)?, counts);
        }
        for (param, value, counts) in self.param_value {
            state.param_value_counts.insert((known(param)?, known(value)?), counts);
        }
        let paths: HashSet<Symbol> = self.paths.iter().map(|path| path.path).collect();
        if paths.len() != self.paths.len() || paths != state.paths.iter().map(|(path, _)| *path).collect() {
            return Err(Damage::Path);
        }
        for record in self.paths {
            let mut query_param = Vec::with_capacity(record.query_param.len());
            for (rest, param, counts) in record.query_param {
                known_query(&rest)?;
                query_param.push(((state.queries.number(&rest), known(param)?), counts));
            }
            let path = state.path_mut(record.path);
            path.counts = Some(record.counts);
            path.query_param_counts.extend(query_param);
            for (param, counts) in record.param {
                path.param_counts.insert(known(param)?, counts);
            }
            for (param, value, counts) in record.param_value {
                path.param_value_counts.insert((known(param)?, known(value)?), counts);
            }
        }
        Ok(predictor.restored(self.updates, state))
    }
}

impl Serialize for DupePredictor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Saved::of(self).serialize(serializer)
    }
}

/// Values that no predictor can have saved give an error that says what is wrong.
impl<'de> Deserialize<'de> for DupePredictor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Saved::deserialize(deserializer)?.restore().map_err(D::Error::custom)
    }
}
