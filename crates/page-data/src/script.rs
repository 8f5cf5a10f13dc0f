//! The value that a script assigns to a variable: `window.__STATE__ = {...};`.
//!
//! Scripts are not run. The name is looked for, and the value behind the sign `=` is read as far as it is balanced.

use serde_json::Value;

use crate::error::Error;
use crate::lenient::{read_prefix, read_quoted};

/// Most places of a script at which an assignment is tried, so that no script costs more than as many passes over it.
const MAX_TRIES: usize = 100;

/// The value that a script assigns to a variable or property with this name: an object, an array or another literal, or `JSON.parse("...")`
/// of a text. The name may be written as in `window.__STATE__`, `__STATE__` or `app.state`; `window["__STATE__"] = ...` is found, too. The
/// first assignment whose value can be read counts; `None` if the script has no assignment to the name.
///
/// # Errors
/// The script assigns to the name, but no value can be read; the message tells about the first one, with line and column within it.
pub fn assigned(script: &str, name: &str) -> Option<Result<Value, Error>> {
    // A script says `window.state`, `self.state`, `state` or `window["state"]` for the same variable.
    let name = ["window.", "self.", "globalThis.", "top."]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    if name.is_empty() {
        return None;
    }
    let mut first_fault = None;
    let places = script.match_indices(name).filter_map(|(at, _)| value_after(script, at, name));
    for value in places.take(MAX_TRIES) {
        match read(value) {
            Ok(value) => return Some(Ok(value)),
            Err(fault) => drop(first_fault.get_or_insert(fault)),
        }
    }
    first_fault.map(Err)
}

/// What is assigned to the name at this place; `None` if the name is a part of another one, or nothing is assigned.
fn value_after<'a>(script: &'a str, at: usize, name: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    if script[..at].ends_with(is_part) {
        return None;
    }
    let mut rest = &script[at + name.len()..];
    if let Some(quote) = script[..at].chars().next_back().filter(|c| matches!(c, '"' | '\'')) {
        rest = rest.strip_prefix(quote)?.trim_start().strip_prefix(']')?;
    } else if rest.starts_with(is_part) {
        return None;
    }
    let value = rest.trim_start().strip_prefix('=')?;
    // A comparison or an arrow assigns nothing.
    (!value.starts_with(['=', '>'])).then(|| value.trim_start())
}

fn read(value: &str) -> Result<Value, Error> {
    let parsed = value.strip_prefix("window.").unwrap_or(value).strip_prefix("JSON.parse");
    let Some(argument) = parsed.and_then(|rest| rest.trim_start().strip_prefix('(')) else {
        return read_prefix(value);
    };
    let text = read_quoted(argument.trim_start());
    read_prefix(&text.ok_or_else(|| Error::new("JSON.parse of something else than a text"))?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(script: &str, name: &str) -> Value {
        assigned(script, name).unwrap().unwrap()
    }

    #[test]
    fn a_value_ends_where_its_brackets_are_balanced() {
        let script =
            "var a=1;window.__STATE__ = {\"t\":\"}; <b>\",\"l\":[1,{}]};window.__STATE__.x=2;run({});";
        let state = json!({"t": "}; <b>", "l": [1, {}]});
        for name in ["window.__STATE__", "__STATE__", "self.__STATE__"] {
            assert_eq!(value(script, name), state);
        }
        assert_eq!(value(script, "a"), json!(1));
    }

    #[test]
    fn other_ways_to_assign_are_known() {
        assert_eq!(value("window['state'] = [1]", "state"), json!([1]));
        assert_eq!(value("app.state={a:'b',}", "app.state"), json!({"a": "b"}));
        assert_eq!(value(r#"state = JSON.parse("{\"a\":\"\\u00e9\"}")"#, "state"), json!({"a": "é"}));
        assert_eq!(value("state = null; state = f(); state = {}", "state"), json!(null));
        assert_eq!(value("state = f(); state = {a: 1}", "state"), json!({"a": 1}));
    }

    #[test]
    fn parts_of_names_and_comparisons_assign_nothing() {
        for script in
            ["mystate = {}", "state2 = {}", "state == {}", "state => {}", "f(state)", "\"state\": {}", ""]
        {
            assert_eq!(assigned(script, "state"), None, "{script}");
        }
    }

    #[test]
    fn an_assignment_that_is_no_value_is_told() {
        let fault = assigned("state = load({})", "state").unwrap().unwrap_err().to_string();
        assert_eq!(fault, "\"load\" is not a value, at line 1, column 1");
        let parse = assigned("state = JSON.parse(atob('x'))", "state").unwrap().unwrap_err().to_string();
        assert!(parse.contains("JSON.parse"), "{parse}");
    }

    #[test]
    fn a_script_of_many_assignments_ends() {
        let script = "s=[".repeat(100_000);
        assert!(assigned(&script, "s").unwrap().is_err());
    }
}
