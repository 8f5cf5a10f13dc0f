//! What fields and searches of the user found: sums for each of them, and a table of pages.

use std::collections::{BTreeMap, HashMap};

use huntsman_crawler::Result;
use huntsman_middleware::AuditSettings;
use serde::Serialize;
use serde_json::{Value, json};

use super::blocks::{Blocks, Located, Rows};
use super::collect::text;
use crate::custom::{Custom as Found, CustomNames, CustomReader};

/// Pages that are in the table.
const MAX_PAGES: usize = 50_000;
/// Values of a field that are told apart, and that are shown.
const MAX_VALUES: usize = 10_000;
const SHOWN: usize = 5;

/// What a field or search found.
#[derive(Debug, Default)]
struct Sum {
    /// Pages that have it: a field with a value, a search that found or misses what it asks for.
    pages: usize,
    errors: usize,
    values: HashMap<String, usize>,
}

/// A field or search, as the script reads it.
#[derive(Debug, Serialize)]
struct Told {
    name: String,
    query: Option<String>,
    is_search: bool,
    pages: usize,
    errors: usize,
    /// The most frequent values, with the numbers of their pages.
    values: Vec<(String, usize)>,
}

/// What the user asked for.
pub(super) struct Custom<'a> {
    names: &'a CustomNames,
    sums: Vec<Sum>,
    pages: usize,
    rows: Rows,
}

impl<'a> Custom<'a> {
    pub(super) fn new(names: &'a CustomNames) -> Self {
        let number = names.fields.len() + names.searches.len();
        Self {
            names,
            sums: (0..number).map(|_| Sum::default()).collect(),
            pages: 0,
            rows: Rows::new("custom"),
        }
    }

    /// Counts a page.
    pub(super) fn add(&mut self, found: &Found) {
        self.pages += 1;
        for (at, (name, value)) in self.names.values(Some(found)).enumerate() {
            let sum = &mut self.sums[at];
            sum.errors +=
                usize::from(found.errors.iter().any(|error| {
                    error.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(':'))
                }));
            let is_search = at >= self.names.fields.len();
            if !has(&value, is_search) {
                continue;
            }
            sum.pages += 1;
            let shown = shown(&value);
            if sum.values.len() < MAX_VALUES || sum.values.contains_key(&shown) {
                *sum.values.entry(shown).or_default() += 1;
            }
        }
    }

    /// Adds a page to the table.
    pub(super) fn add_row(&mut self, page: u32, found: &Found, blocks: &mut Blocks) -> Result<()> {
        if self.rows.len() >= MAX_PAGES {
            return Ok(());
        }
        let values: Vec<Value> = self
            .names
            .values(Some(found))
            .map(|(_, value)| match value {
                Value::Number(_) | Value::Null | Value::Bool(_) => value,
                other => shown(&other).into(),
            })
            .collect();
        let errors = text(&found.errors.join("; "));
        self.rows.add(&(page, values, errors), blocks)
    }

    /// Writes the table; null if the user asked for nothing. What the fields are is known if the settings still name their file.
    pub(super) fn finish(self, settings: &AuditSettings, blocks: &mut Blocks) -> Result<Value> {
        if self.names.is_empty() {
            return Ok(Value::Null);
        }
        let queries: BTreeMap<String, String> = match CustomReader::of(settings) {
            Ok(Some(reader)) => reader.queries(),
            _ => BTreeMap::new(),
        };
        let fields = self.names.fields.iter().map(|name| (name, false));
        let names = fields.chain(self.names.searches.iter().map(|name| (name, true)));
        let told = names.zip(self.sums).map(|((name, is_search), sum)| {
            let mut values: Vec<(String, usize)> = sum.values.into_iter().collect();
            values.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            values.truncate(SHOWN);
            let query = queries.get(name).map(|query| text(query));
            Told { name: text(name), query, is_search, pages: sum.pages, errors: sum.errors, values }
        });
        let told: Vec<Told> = told.collect();
        let rows: Located = self.rows.finish(blocks)?;
        Ok(json!({"names": told, "pages": self.pages, "rows": rows}))
    }
}

/// Whether a page has what was asked for.
fn has(value: &Value, is_search: bool) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        Value::Bool(found) if is_search => *found,
        Value::Number(found) if is_search => found.as_u64() != Some(0),
        _ => true,
    }
}

/// A value for a table.
fn shown(value: &Value) -> String {
    match value {
        Value::String(found) => text(found),
        Value::Array(values) => {
            let parts =
                values.iter().map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
            text(&parts.collect::<Vec<_>>().join(", "))
        }
        other => text(&other.to_string()),
    }
}
