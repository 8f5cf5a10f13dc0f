//! The table of what must hold, `conformance.toml`, names tests. A name whose test does not exist would be a promise that nothing checks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    promise: Vec<Promise>,
    measure: Vec<Measure>,
}

/// One row: what must hold, and the tests that fail if it does not.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    id: String,
    statement: String,
    state: State,
    tests: Vec<String>,
    #[serde(default)]
    note: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Holds,
    Partly,
    Missing,
    Later,
}

/// A claim about wall-clock time or memory, and how it is measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measure {
    id: String,
    claim: String,
    how: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> Table {
    let text =
        fs::read_to_string(root().join("tests/conformance.toml")).expect("the table is in the repository");
    toml::from_str(&text).expect("the table can be read")
}

/// Whether the file has a function of this name, or a name from which a macro makes one.
fn exists(file: &str, test: &str) -> bool {
    let path = if file.starts_with("tests/") { root().join(file) } else { root().join("crates").join(file) };
    let source = fs::read_to_string(path).unwrap_or_default();
    source.contains(&format!("fn {test}(")) || source.contains(&format!("{test} =>"))
}

#[test]
fn every_test_that_the_table_names_exists() {
    let table = table();
    let named: BTreeSet<&str> = table.promise.iter().flat_map(|row| &row.tests).map(String::as_str).collect();
    assert!(named.len() > 100, "the table names {} tests only", named.len());
    let unknown: Vec<&str> = named
        .into_iter()
        .filter(|name| {
            !name.split_once("::").is_some_and(|(file, test)| file.ends_with(".rs") && exists(file, test))
        })
        .collect();
    assert!(unknown.is_empty(), "no such tests:\n{}", unknown.join("\n"));
}

#[test]
fn what_holds_is_proved_and_what_does_not_is_explained() {
    let table = table();
    let measured: BTreeSet<&str> = table.measure.iter().flat_map(|row| row.id.split(", ")).collect();
    for Measure { id, claim, how } in &table.measure {
        assert!(!claim.is_empty() && how.contains('`'), "the measure {id} says how it is done");
    }
    for Promise { id, statement, state, tests, note } in &table.promise {
        assert!(!id.is_empty() && !statement.is_empty());
        // A test in the text of a note would not be looked for.
        assert!(!note.contains(".rs::"), "{id}: the note names a test; tests have a list of their own");
        match state {
            State::Holds => assert!(
                !tests.is_empty() || measured.contains(id.as_str()),
                "{id} ({statement}) holds by no test and no measure"
            ),
            State::Partly | State::Missing | State::Later => {
                assert!(!note.is_empty(), "{id} ({statement}): the note says what is missing");
            }
        }
    }
}
