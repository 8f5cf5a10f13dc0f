//! What a file of the user reads from pages, besides all that an audit knows: fields, and texts that pages contain or lack.

use std::collections::BTreeMap;
use std::path::Path;

use huntsman_crawler::{Error, Page, PageKind, Result};
use huntsman_middleware::{AuditSettings, Extraction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::audit::Audit;
use crate::page::is_whole;
use crate::tables::Table;

/// Columns of `custom.csv` that are there anyway.
const COLUMNS: [&str; 2] = ["url", "errors"];

/// What the fields and searches of the setting `audit_custom` found in a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Custom {
    /// The values of the fields; null for what the page does not have.
    pub fields: Map<String, Value>,
    /// For a search with `contains` how often the page has the text, for one with `lacks` whether it does not have it.
    pub searches: Map<String, Value>,
    /// What is wrong with values, and which were cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// The names of fields and searches of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CustomNames {
    pub(crate) fields: Vec<String>,
    pub(crate) searches: Vec<String>,
}

impl CustomNames {
    /// Adds the names of a page. All pages have the same ones, unless the file was changed while the crawl was stopped.
    pub(crate) fn add(&mut self, custom: &Custom) {
        for (known, found) in [(&mut self.fields, &custom.fields), (&mut self.searches, &custom.searches)] {
            known.extend(found.keys().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.searches.is_empty()
    }

    /// The values of a page in the order of the names; null for what is not known.
    pub(crate) fn values<'a>(&'a self, of: Option<&'a Custom>) -> impl Iterator<Item = (&'a String, Value)> {
        let value = move |name: &String, is_field: bool| {
            let found = of.map(|custom| if is_field { &custom.fields } else { &custom.searches });
            found.and_then(|found| found.get(name)).cloned().unwrap_or_default()
        };
        let fields = self.fields.iter().map(move |name| (name, value(name, true)));
        fields.chain(self.searches.iter().map(move |name| (name, value(name, false))))
    }
}

/// Reads pages.
#[derive(Debug)]
pub(crate) struct CustomReader {
    extraction: Extraction,
    /// Characters of a value.
    length: usize,
}

impl CustomReader {
    /// The reader that the settings name, if they do.
    ///
    /// # Errors
    /// The file is wrong; the error names it, the line and what to do.
    pub(crate) fn of(settings: &AuditSettings) -> Result<Option<Self>> {
        let Some(path) = &settings.audit_custom else { return Ok(None) };
        let extraction = Extraction::load(path)?;
        if let Some((name, _)) = extraction.names().find(|(name, _)| COLUMNS.contains(name)) {
            return Err(Error::usage(format!(
                "{path}: \"{name}\" is a column of each table of audits; give the field another name"
            )));
        }
        Ok(Some(Self { extraction, length: settings.audit_custom_length.max(1) }))
    }

    /// What is read, by name.
    pub(crate) fn queries(&self) -> BTreeMap<String, String> {
        self.extraction.names().map(|(name, query)| (name.to_owned(), query)).collect()
    }

    /// What a page has; `None` for what is no whole text that was answered with 2xx.
    pub(crate) fn read(&self, page: &Page) -> Option<Custom> {
        let response = page.response();
        if !response.status.is_success() || page.kind() == PageKind::Binary || !is_whole(response) {
            return None;
        }
        let mut custom = Custom::default();
        for found in self.extraction.read(page) {
            let value = match found.value {
                Ok(value) => value,
                Err(error) => {
                    custom.errors.push(format!("{}: {error}", found.name));
                    Value::Null
                }
            };
            let (value, is_cut) = cut(value, self.length);
            if is_cut {
                custom.errors.push(format!("{}: cut to {} characters", found.name, self.length));
            }
            let of = if found.is_search { &mut custom.searches } else { &mut custom.fields };
            of.insert(found.name.to_owned(), value);
        }
        Some(custom)
    }
}

/// A value of at most so many characters, and whether it was cut.
fn cut(value: Value, length: usize) -> (Value, bool) {
    let shortened = |text: String| match text.char_indices().nth(length) {
        Some((end, _)) => (format!("{}…", &text[..end]).into(), true),
        None => (text.into(), false),
    };
    match value {
        Value::String(text) => shortened(text),
        Value::Array(values) => {
            let (mut left, mut kept, mut is_cut) = (length, Vec::new(), false);
            for value in values {
                if left == 0 {
                    is_cut = true;
                    break;
                }
                let (value, is_value_cut) = cut(value, left);
                is_cut |= is_value_cut;
                let size =
                    value.as_str().map_or_else(|| value.to_string().len(), |text| text.chars().count());
                left = left.saturating_sub(size.max(1));
                kept.push(value);
            }
            (kept.into(), is_cut)
        }
        object @ Value::Object(_) => {
            let text = object.to_string();
            if text.chars().nth(length).is_some() { shortened(text) } else { (object, false) }
        }
        other => (other, false),
    }
}

impl Audit {
    /// Writes `custom.csv`: what the fields and searches of the user found in each page.
    pub(crate) fn write_custom(&self, folder: &Path) -> Result<()> {
        let names = self.site.custom_names();
        if names.is_empty() {
            return Ok(());
        }
        let columns = names.fields.iter().chain(&names.searches).map(String::as_str);
        let columns: Vec<&str> = ["url"].into_iter().chain(columns).chain(["errors"]).collect();
        let mut table = Table::with_columns(&folder.join("custom.csv"), &columns)?;
        self.each_page(&mut |page| {
            let Some(custom) = page.custom else { return Ok(()) };
            let mut row = Map::from_iter([("url".to_owned(), page.url.into())]);
            row.extend(names.values(Some(custom)).map(|(name, value)| (name.clone(), value)));
            row.insert("errors".to_owned(), custom.errors.join("; ").into());
            table.row(&row.into())
        })?;
        table.finish()
    }

    /// The line of a page as a row of a table: what fields and searches found has columns of its own.
    pub(crate) fn row_of_page(&self, page: &crate::tables::PageLine<'_>) -> Value {
        let mut row = json!(page);
        let names = self.site.custom_names();
        if let (Value::Object(row), false) = (&mut row, names.is_empty()) {
            row.shift_remove("custom");
            let values = names.values(page.custom);
            row.extend(values.map(|(name, value)| (format!("custom.{name}"), value)));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_to_a_number_of_characters_and_that_is_told() {
        for (value, length, expected, is_cut) in [
            (json!("ärger"), 5, json!("ärger"), false),
            (json!("ärgern"), 5, json!("ärger…"), true),
            (json!(["ab", "cd", "ef"]), 4, json!(["ab", "cd"]), true),
            (json!(["ab", "cdef"]), 4, json!(["ab", "cd…"]), true),
            (json!(["", "a"]), 4, json!(["", "a"]), false),
            (json!({"a": 1}), 7, json!({"a": 1}), false),
            (json!({"a": 1}), 6, json!("{\"a\":1…"), true),
            (json!(1234.5), 2, json!(1234.5), false),
            (json!(null), 1, json!(null), false),
        ] {
            assert_eq!(cut(value.clone(), length), (expected, is_cut), "{value}");
        }
    }

    #[test]
    fn all_names_are_known_that_any_page_has() {
        let page =
            |fields: Value| Custom { fields: fields.as_object().unwrap().clone(), ..Custom::default() };
        let mut names = CustomNames::default();
        names.add(&page(json!({"b": 1, "a": 2})));
        names.add(&page(json!({"a": 1, "c": 2})));
        assert_eq!(names.fields, ["b", "a", "c"]);
        let other = page(json!({"a": 1}));
        let values: Vec<Value> = names.values(Some(&other)).map(|(_, value)| value).collect();
        assert_eq!(values, [json!(null), json!(1), json!(null)]);
    }
}
