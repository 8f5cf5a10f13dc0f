//! The data that is kept of the pages: names as numbers, sets of pages, and the counts.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use super::rows::{Claim, Counts, Row, Table, Totals};
use super::saved::PageRecord;
use crate::minhash::Signature;

/// The number of a name, value or path.
pub(super) type Symbol = u32;
/// The number of a query, or of the rest of one.
pub(super) type QueryId = u32;
/// The parameters of a query, in the order of the names' numbers.
pub(super) type Pairs = Arc<[(Symbol, Symbol)]>;

/// Stands for anything that was never seen. No stored item has this number.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The most parameters of a path that are looked up for addresses that lack them. MaybeDont has no such limit. A page with the query of an
/// earlier one is evidence for all of them, so a hostile site could fill the memory with rows.
const MAX_PATH_PARAMS: usize = 512;

/// Values and their numbers, in the order of their arrival.
#[derive(Debug)]
pub(super) struct Numbered<T: ?Sized> {
    numbers: HashMap<Arc<T>, u32>,
    values: Vec<Arc<T>>,
}

impl<T: ?Sized> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: ?Sized + Hash + Eq> Numbered<T> {
    pub(super) fn find(&self, value: &T) -> u32 {
        self.numbers.get(value).copied().unwrap_or(UNKNOWN)
    }

    pub(super) fn number(&mut self, value: &T) -> u32
    where
        for<'a> Arc<T>: From<&'a T>,
    {
        if let Some(&number) = self.numbers.get(value) {
            return number;
        }
        let number = self.values.len() as u32;
        let value: Arc<T> = value.into();
        self.values.push(Arc::clone(&value));
        self.numbers.insert(value, number);
        number
    }

    pub(super) fn values(&self) -> &[Arc<T>] {
        &self.values
    }
}

/// A page that was learned.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) identity: u128,
    pub(super) path: Symbol,
    pub(super) query: Pairs,
    pub(super) signature: Signature,
}

impl Page {
    fn value(&self, param: Symbol) -> Option<Symbol> {
        self.query.iter().find(|&&(name, _)| name == param).map(|&(_, value)| value)
    }
}

/// The pages of one path, and the rows about it.
#[derive(Debug, Default)]
pub(super) struct PathState {
    /// The pages, in the order in which they were first seen; all other lists of pages have the same order.
    pub(super) pages: Vec<u32>,
    /// The pages with exactly this query.
    pub(super) by_query: HashMap<QueryId, Vec<u32>>,
    /// The pages that have a parameter, by the rest of the query and the parameter.
    pub(super) by_rest: HashMap<(QueryId, Symbol), Vec<u32>>,
    /// The parameters that occur in `by_rest` with a rest.
    pub(super) params_by_rest: HashMap<QueryId, Vec<Symbol>>,
    /// The parameters of all pages, up to [`MAX_PATH_PARAMS`], and the values of each.
    pub(super) values: HashMap<Symbol, Values>,
    /// The keys of `values`, in the order of their arrival.
    pub(super) params: Vec<Symbol>,
    pub(super) counts: Option<Counts>,
    pub(super) param_counts: HashMap<Symbol, Counts>,
    pub(super) query_param_counts: HashMap<(QueryId, Symbol), Counts>,
    pub(super) param_value_counts: HashMap<(Symbol, Symbol), Counts>,
}

/// The distinct values of a parameter.
#[derive(Debug, Default)]
pub(super) struct Values {
    seen: HashSet<Symbol>,
    pub(super) list: Vec<Symbol>,
}

/// All learned data except the index.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) symbols: Numbered<str>,
    pub(super) queries: Numbered<[(Symbol, Symbol)]>,
    pub(super) path_numbers: HashMap<Symbol, usize>,
    pub(super) paths: Vec<(Symbol, PathState)>,
    pub(super) pages: Vec<Page>,
    pub(super) page_numbers: HashMap<u128, u32>,
    pub(super) param_counts: HashMap<Symbol, Counts>,
    pub(super) param_value_counts: HashMap<(Symbol, Symbol), Counts>,
}

/// The pairs without one parameter.
pub(super) fn without(pairs: &[(Symbol, Symbol)], param: Symbol) -> Vec<(Symbol, Symbol)> {
    pairs.iter().copied().filter(|&(name, _)| name != param).collect()
}

impl State {
    /// The numbers of the names and values of a query; [`UNKNOWN`] for those that were never seen.
    pub(super) fn find_pairs(&self, query: &[(String, String)]) -> Vec<(Symbol, Symbol)> {
        let mut pairs: Vec<_> =
            query.iter().map(|(name, value)| (self.symbols.find(name), self.symbols.find(value))).collect();
        pairs.sort_unstable();
        pairs
    }

    pub(super) fn number_pairs(&mut self, query: &[(String, String)]) -> Pairs {
        let mut pairs: Vec<_> = query
            .iter()
            .map(|(name, value)| (self.symbols.number(name), self.symbols.number(value)))
            .collect();
        pairs.sort_unstable();
        pairs.into()
    }

    pub(super) fn path(&self, symbol: Symbol) -> Option<&PathState> {
        self.path_numbers.get(&symbol).map(|&at| &self.paths[at].1)
    }

    pub(super) fn path_mut(&mut self, symbol: Symbol) -> &mut PathState {
        let State { path_numbers, paths, .. } = self;
        let at = *path_numbers.entry(symbol).or_insert_with(|| {
            paths.push((symbol, PathState::default()));
            paths.len() - 1
        });
        &mut paths[at].1
    }

    /// Adds a page that was not seen before to all sets; returns its number.
    pub(super) fn add(&mut self, page: Page) -> u32 {
        let id = self.pages.len() as u32;
        let query = self.queries.number(&page.query);
        let rests: Vec<(QueryId, Symbol, Symbol)> = page
            .query
            .iter()
            .map(|&(param, value)| (self.queries.number(&without(&page.query, param)), param, value))
            .collect();
        let path = self.path_mut(page.path);
        path.pages.push(id);
        path.by_query.entry(query).or_default().push(id);
        for (rest, param, value) in rests {
            let family = path.by_rest.entry((rest, param)).or_default();
            family.push(id);
            let first = family.len() == 1;
            if !path.values.contains_key(&param) {
                if path.params.len() == MAX_PATH_PARAMS {
                    continue;
                }
                path.params.push(param);
            }
            if first {
                path.params_by_rest.entry(rest).or_default().push(param);
            }
            let values = path.values.entry(param).or_default();
            if values.seen.insert(value) {
                values.list.push(value);
            }
        }
        self.page_numbers.insert(page.identity, id);
        self.pages.push(page);
        id
    }

    /// The value of a parameter on a page, for sorting pages by it.
    pub(super) fn value_of(&self, page: u32, param: Symbol) -> Symbol {
        self.pages[page as usize].value(param).unwrap_or(UNKNOWN)
    }

    pub(super) fn text(&self, symbol: Symbol) -> String {
        self.symbols.values()[symbol as usize].to_string()
    }

    /// The pairs of a query as text, sorted by name.
    pub(super) fn query_text(&self, query: QueryId) -> Vec<(String, String)> {
        let pairs = &self.queries.values()[query as usize];
        let mut texts: Vec<_> =
            pairs.iter().map(|&(name, value)| (self.text(name), self.text(value))).collect();
        texts.sort_unstable();
        texts
    }

    /// Calls `visit` with every row that has observations.
    pub(super) fn each_row(&self, table: Table, mut visit: impl FnMut(Key, Counts)) {
        let mut pass = |key: Key, counts: &Counts| {
            if counts.total() > 0 {
                visit(key, *counts);
            }
        };
        match table {
            Table::Param => {
                for (&param, counts) in &self.param_counts {
                    pass(Key { param, ..Key::EMPTY }, counts);
                }
            }
            Table::ParamValue => {
                for (&(param, value), counts) in &self.param_value_counts {
                    pass(Key { param, value, ..Key::EMPTY }, counts);
                }
            }
            Table::Path => {
                for (path, state) in &self.paths {
                    if let Some(counts) = &state.counts {
                        pass(Key { path: *path, ..Key::EMPTY }, counts);
                    }
                }
            }
            Table::PathParam => {
                for (path, state) in &self.paths {
                    for (&param, counts) in &state.param_counts {
                        pass(Key { path: *path, param, ..Key::EMPTY }, counts);
                    }
                }
            }
            Table::PathQueryParam => {
                for (path, state) in &self.paths {
                    for (&(rest, param), counts) in &state.query_param_counts {
                        pass(Key { path: *path, rest, param, ..Key::EMPTY }, counts);
                    }
                }
            }
            Table::PathParamValue => {
                for (path, state) in &self.paths {
                    for (&(param, value), counts) in &state.param_value_counts {
                        pass(Key { path: *path, param, value, ..Key::EMPTY }, counts);
                    }
                }
            }
        }
    }

    pub(super) fn totals(&self, table: Table) -> Totals {
        let mut totals = Totals::default();
        self.each_row(table, |_, counts| {
            totals.rows += 1;
            totals.counts.add(counts);
        });
        totals
    }

    /// A row in its public form.
    pub(super) fn row(&self, table: Table, key: Key, counts: Counts) -> Row {
        let text = |symbol| self.text(symbol);
        let claim = match table {
            Table::Path => Claim::Path { path: text(key.path) },
            Table::Param => Claim::Param { param: text(key.param) },
            Table::PathParam => Claim::PathParam { path: text(key.path), param: text(key.param) },
            Table::PathQueryParam => Claim::PathQueryParam {
                path: text(key.path),
                rest: self.query_text(key.rest),
                param: text(key.param),
            },
            Table::ParamValue => Claim::ParamValue { param: text(key.param), value: text(key.value) },
            Table::PathParamValue => {
                Claim::PathParamValue { path: text(key.path), param: text(key.param), value: text(key.value) }
            }
        };
        Row { claim, counts }
    }

    /// The pages in their stored form.
    pub(super) fn records(&self) -> Vec<PageRecord> {
        self.pages
            .iter()
            .map(|page| PageRecord {
                identity: [(page.identity >> 64) as u64, page.identity as u64],
                path: page.path,
                query: page.query.to_vec(),
                signature: page.signature.clone(),
            })
            .collect()
    }
}

/// The key of a row within its table; parts that its table does not use are [`UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) path: Symbol,
    pub(super) rest: QueryId,
    pub(super) param: Symbol,
    pub(super) value: Symbol,
}

impl Key {
    pub(super) const EMPTY: Key = Key { path: UNKNOWN, rest: UNKNOWN, param: UNKNOWN, value: UNKNOWN };
}
