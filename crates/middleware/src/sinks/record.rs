//! An item as a record: selects, orders and renames its fields.

use huntsman_crawler::{Error, Result};
use serde::Serialize;
use serde_json::{Map, Value};

/// The column of the fields that have no column of their own, in formats with columns that lose nothing.
#[cfg(any(feature = "parquet", feature = "sqlite"))]
pub(super) const REST: &str = "_rest";

/// Which fields of an item are written, in which order and under which names.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) chosen: Option<Vec<String>>,
    pub(super) renamed: Vec<(String, String)>,
}

impl Fields {
    /// Whether items are written as they are.
    pub(super) fn is_all(&self) -> bool {
        self.chosen.is_none() && self.renamed.is_empty()
    }

    /// The name under which a field is written.
    pub(super) fn title<'a>(&'a self, field: &'a str) -> &'a str {
        self.renamed.iter().find(|(from, _)| from == field).map_or(field, |(_, to)| to)
    }

    /// The fields of an item that are to be written. Absent ones are left out.
    pub(super) fn select(&self, item: &impl Serialize) -> Result<Map<String, Value>> {
        let mut all = object(item)?;
        let pick = |(field, value): (String, Value)| (self.title(&field).to_owned(), value);
        Ok(match &self.chosen {
            None => all.into_iter().map(pick).collect(),
            Some(chosen) => chosen
                .iter()
                .filter_map(|field| Some((field.clone(), all.remove(field)?)))
                .map(pick)
                .collect(),
        })
    }
}

/// An item as named fields.
pub(super) fn object(item: &impl Serialize) -> Result<Map<String, Value>> {
    match serde_json::to_value(item)? {
        Value::Object(fields) => Ok(fields),
        other => {
            let kind = match other {
                Value::Null => "nothing",
                Value::Bool(_) => "true or false",
                Value::Number(_) => "a number",
                Value::String(_) => "a text",
                _ => "a list",
            };
            Err(Error::msg(format!("an item with named fields is needed, and this one is {kind}")))
        }
    }
}
