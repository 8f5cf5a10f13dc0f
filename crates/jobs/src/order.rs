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
        for (name, value) in &self.args {
            if value.is_array() || value.is_object() || value.is_null() {
                return Err(format!("argument {name}: use a text, a number, or true or false"));
            }
            check_flag("argument", name, value)?;
        }
        check_settings(&self.settings)
    }
}

/// Whether settings can be passed on; the error says which one cannot.
pub(crate) fn check_settings(settings: &Map<String, Value>) -> Result<(), String> {
    settings.iter().try_for_each(|(name, value)| match value {
        Value::Null => Err(format!("setting {name}: null is no value")),
        value => check_flag("setting", name, value),
    })
}

fn check_flag(kind: &str, name: &str, value: &Value) -> Result<(), String> {
    if name.trim().is_empty() || name.contains(|c: char| c == '=' || c.is_control()) {
        return Err(format!("{kind} {name:?}: this is no name"));
    }
    if text(value).contains('\0') {
        return Err(format!("{kind} {name}: the value has a character that no program accepts"));
    }
    Ok(())
}

/// A value as text for a command line; lists and tables, which only settings have, as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Flags with names and values. Each is one word, so that a value cannot be taken for a flag.
pub(crate) fn flags<'a>(
    flag: &str,
    all: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> impl Iterator<Item = String> {
    all.into_iter().map(move |(name, value)| format!("{flag}{name}={}", text(value)))
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
        let with_args = order(&json!({ "args": { "a": "--out=/x", "b": 3, "c": true } })).unwrap();
        let words: Vec<String> = flags("--argument=", &with_args.args).collect();
        assert_eq!(words, ["--argument=a=--out=/x", "--argument=b=3", "--argument=c=true"]);
        let with_settings = order(&json!({ "settings": { "a": ["x:1", "y:2"], "t": { "b": 1 } } })).unwrap();
        let words: Vec<String> = flags("--set=", &with_settings.settings).collect();
        assert_eq!(words, ["--set=a=[\"x:1\",\"y:2\"]", "--set=t={\"b\":1}"]);
    }

    #[test]
    fn orders_that_cannot_be_passed_on_are_refused() {
        let many: Map<String, Value> = (0..101).map(|n| (n.to_string(), json!(1))).collect();
        for (more, part) in [
            (json!({ "args": { "a=b": 1 } }), "no name"),
            (json!({ "settings": { " ": 1 } }), "no name"),
            (json!({ "args": { "a": [1] } }), "use a text"),
            (json!({ "settings": { "a": null } }), "null is no value"),
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
