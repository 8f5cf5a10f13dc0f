//! An order: which spider is to run, with which arguments and settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most arguments, and most settings, of a job.
const MAX_ENTRIES: usize = 100;
/// Most bytes of all arguments and settings of a job: each change of the queue writes them anew.
const MAX_BYTES: usize = 8 << 10;

/// Which spider is to run. The names are looked up in the configuration; arguments and settings are passed on to its program as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) project: String,
    pub(crate) spider: String,
    #[serde(default)]
    pub(crate) args: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) settings: Map<String, Value>,
    /// The highest goes first.
    #[serde(default)]
    pub(crate) priority: i32,
}

impl Order {
    /// Whether the arguments and settings can be passed on; the error says which one cannot.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.args.len() > MAX_ENTRIES || self.settings.len() > MAX_ENTRIES {
            return Err(format!("a job has at most {MAX_ENTRIES} arguments and {MAX_ENTRIES} settings"));
        }
        let bytes: usize =
            flags("", &self.args).chain(flags("", &self.settings)).map(|flag| flag.len()).sum();
        if bytes > MAX_BYTES {
            return Err(format!(
                "arguments and settings have {bytes} bytes; at most {MAX_BYTES} are accepted"
            ));
        }
        for (kind, entries) in [("argument", entries(&self.args)), ("setting", entries(&self.settings))] {
            for (name, value) in entries {
                let is_name = !name.trim().is_empty() && !name.contains(|c: char| c == '=' || c.is_control());
                if !is_name {
                    return Err(format!("{kind} {name:?}: this is no name"));
                }
                match text(value) {
                    None => return Err(format!("{kind} {name}: use a text, a number, or true or false")),
                    Some(text) if text.contains('\0') => {
                        return Err(format!(
                            "{kind} {name}: the value has a character that no program accepts"
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

fn entries<'a>(all: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Vec<(&'a String, &'a Value)> {
    all.into_iter().collect()
}

/// A value as text for a command line.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Flags with names and values. Each is one word, so that a value cannot be taken for a flag.
pub(crate) fn flags<'a>(
    flag: &str,
    all: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> impl Iterator<Item = String> {
    all.into_iter().map(move |(name, value)| format!("{flag}{name}={}", text(value).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(more: &Value) -> Result<Order, String> {
        let mut whole = json!({ "project": "p", "spider": "s" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let order: Order = serde_json::from_value(whole).map_err(|error| error.to_string())?;
        order.check().map(|()| order)
    }

    #[test]
    fn values_become_single_words_of_a_command_line() {
        let order = order(&json!({ "args": { "a": "--out=/x", "b": 3, "c": true } })).unwrap();
        let words: Vec<String> = flags("--argument=", &order.args).collect();
        assert_eq!(words, ["--argument=a=--out=/x", "--argument=b=3", "--argument=c=true"]);
    }

    #[test]
    fn orders_that_cannot_be_passed_on_are_refused() {
        let many: Map<String, Value> = (0..101).map(|n| (n.to_string(), json!(1))).collect();
        for (more, part) in [
            (json!({ "args": { "a=b": 1 } }), "no name"),
            (json!({ "settings": { " ": 1 } }), "no name"),
            (json!({ "args": { "a": [1] } }), "use a text"),
            (json!({ "args": { "a": "x\0y" } }), "no program accepts"),
            (json!({ "args": { "a": "x".repeat(9_000) } }), "at most 8192"),
            (json!({ "args": many }), "at most 100"),
            (json!({ "priority": 1e12 }), "expected i32"),
            (json!({ "program": "/bin/sh" }), "unknown field"),
        ] {
            let error = order(&more).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
