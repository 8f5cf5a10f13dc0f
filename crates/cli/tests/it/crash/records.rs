//! Checks that every file of records must pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::scenario::Checked;

/// The lines of a file; an error if one is incomplete.
pub(crate) fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(format!("{}: the last line is torn", path.display()));
    }
    let parsed = text.lines().enumerate().map(|(at, line)| {
        serde_json::from_str(line).map_err(|cause| format!("{} line {}: {cause}", path.display(), at + 1))
    });
    parsed.collect()
}

/// Parses a file that consists of one JSON value.
pub(crate) fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    serde_json::from_slice(&text).map_err(|cause| format!("{}: {cause}", path.display()))
}

/// The values of a field in all lines, as text.
pub(crate) fn field(lines: &[Value], name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    lines.iter().map(|line| text(&line[name])).collect()
}

/// Checks that each expected entry is found exactly once, and that no others are found.
pub(crate) fn each_once(what: &str, expected: &[String], found: impl IntoIterator<Item = String>) -> Checked {
    let mut times: BTreeMap<String, i64> = expected.iter().map(|name| (name.clone(), 0)).collect();
    let mut unknown = Vec::new();
    for name in found {
        match times.get_mut(&name) {
            Some(times) => *times += 1,
            None => unknown.push(name),
        }
    }
    let with = |wrong: fn(i64) -> bool| -> Vec<&str> {
        times.iter().filter(|(_, times)| wrong(**times)).map(|(name, _)| name.as_str()).collect()
    };
    let (missing, more) = (with(|times| times == 0), with(|times| times > 1));
    if missing.is_empty() && more.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    let few = |names: &[&str]| format!("{} ({})", names.len(), names[..names.len().min(3)].join(", "));
    let unknown: Vec<&str> = unknown.iter().map(String::as_str).collect();
    Err(format!(
        "{what}: of {} there are {} missing, {} more than once, {} unknown",
        expected.len(),
        few(&missing),
        few(&more),
        few(&unknown)
    ))
}

/// Checks that no entry is found twice and none is unknown; missing entries are allowed.
pub(crate) fn none_twice(what: &str, expected: &[String], found: Vec<String>) -> Checked {
    let there: Vec<String> = expected.iter().filter(|name| found.contains(name)).cloned().collect();
    each_once(what, &there, found)
}
