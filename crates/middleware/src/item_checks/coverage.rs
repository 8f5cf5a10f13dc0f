//! Coverage: in how many items each field is not empty.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use huntsman_crawler::{Counter, Stats, log};
use serde_json::Value;

/// The stats with the number of items in which a field is not empty.
const COUNTED: &str = "item_field_count/";
/// Levels of objects within objects that are looked into.
const MAX_DEPTH: usize = 8;
/// Longest path of a field, in bytes; one that is longer counts as cut.
const MAX_PATH: usize = 200;

/// Counts the fields of items that are not empty.
#[derive(Debug)]
pub(super) struct Coverage {
    stats: Stats,
    max_fields: usize,
    items: Counter,
    fields: HashMap<String, Counter, FixedState>,
    /// The path of the field that is looked at.
    path: String,
}

impl Coverage {
    pub(super) fn new(max_fields: usize, stats: Stats) -> Self {
        let items = stats.counter("item_coverage_count");
        Self { stats, max_fields, items, fields: HashMap::default(), path: String::new() }
    }

    /// Counts the fields of one item.
    pub(super) fn count(&mut self, item: &Value) {
        self.items.inc();
        self.path.clear();
        if self.visit(item, 0) {
            if self.stats.get("item_coverage_cut_count") == 0 {
                log::warn!(
                    "items have more than {} fields (setting item_coverage_fields) or longer names than {MAX_PATH} bytes; the coverage \
                     of the others is not counted",
                    self.max_fields
                );
            }
            self.stats.inc("item_coverage_cut_count");
        }
    }

    /// Counts the fields of an object. Returns whether one was left out.
    fn visit(&mut self, value: &Value, depth: usize) -> bool {
        let Value::Object(object) = value else { return false };
        let (length, mut is_cut) = (self.path.len(), false);
        for (name, value) in object {
            if is_empty(value) {
                continue;
            }
            if depth > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            is_cut |= !self.add();
            if depth + 1 < MAX_DEPTH {
                is_cut |= self.visit(value, depth + 1);
            }
            self.path.truncate(length);
        }
        is_cut
    }

    /// Counts the field of the path. Returns whether it has a counter.
    fn add(&mut self) -> bool {
        if let Some(counter) = self.fields.get(&self.path) {
            counter.inc();
            return true;
        }
        if self.fields.len() >= self.max_fields || self.path.len() > MAX_PATH {
            return false;
        }
        let counter = self.stats.counter(&format!("{COUNTED}{}", self.path));
        counter.inc();
        self.fields.insert(self.path.clone(), counter);
        true
    }

    /// Writes the shares into the stats.
    pub(super) fn finish(&self) {
        let items = self.items.get();
        if items == 0 {
            return;
        }
        // Not only the fields of this run: a job has those of earlier ones.
        for (key, count) in self.stats.snapshot() {
            if let (Some(path), Some(count)) = (key.strip_prefix(COUNTED), count.as_f64()) {
                self.stats.set(&format!("coverage/{path}"), count / items as f64);
            }
        }
    }
}

/// Whether a field says nothing: null, a text of white space, a list or an object without content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim_start().is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_count_by_path_if_they_are_not_empty() {
        let stats = Stats::default();
        let mut coverage = Coverage::new(100, stats.clone());
        for item in [
            json!({"title": "a", "price": 0, "seller": {"name": "x", "mail": ""}, "tags": [], "sold": false}),
            json!({"title": " \n", "price": null, "seller": {}, "tags": ["t"]}),
            json!({"title": "b", "seller": {"name": null}}),
            json!("no object"),
        ] {
            coverage.count(&item);
        }
        coverage.finish();
        let all = stats.snapshot();
        let shares: Vec<(&str, f64)> = all
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix("coverage/")?, value.as_f64()?)))
            .collect();
        let expected = [
            ("price", 0.25),
            ("seller", 0.5),
            ("seller.name", 0.25),
            ("sold", 0.25),
            ("tags", 0.25),
            ("title", 0.5),
        ];
        assert_eq!(shares, expected);
        assert_eq!((stats.get("item_coverage_count"), stats.get("item_field_count/title")), (4, 2));
        assert!(!all.contains_key("item_coverage_cut_count"));
    }

    #[test]
    fn fields_beyond_the_limits_are_told_as_cut() {
        let stats = Stats::default();
        let mut coverage = Coverage::new(2, stats.clone());
        coverage.count(&json!({"a": 1, "b": 1}));
        coverage.count(&json!({"a": 1, "c": 1, "d": 1}));
        coverage.count(&json!({"x".repeat(MAX_PATH + 1): 1}));
        let mut deep = json!(1);
        (0..100).for_each(|_| deep = json!({"a": deep.take()}));
        coverage.count(&deep);
        let fields = stats.snapshot().keys().filter(|key| key.starts_with("item_field_count/")).count();
        assert_eq!(
            (fields, stats.get("item_coverage_cut_count"), stats.get("item_field_count/a")),
            (2, 3, 3)
        );
    }
}
