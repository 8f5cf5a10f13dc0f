//! The conformance table names the test of each promise; this checks that every named test exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The `file::test` names in the table, as written.
fn named(text: &str) -> BTreeSet<(String, String)> {
    text.split('`')
        .filter_map(|code| code.split_once(".rs::"))
        .map(|(file, test)| (format!("{file}.rs"), test.to_owned()))
        .collect()
}

#[test]
fn every_test_that_the_table_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("docs/conformance.md")).expect("the table is in the repository");
    let named = named(&table);
    assert!(named.len() > 100, "the table names {} tests only", named.len());
    let mut unknown = Vec::new();
    for (file, test) in named {
        let path =
            if file.starts_with("tests/") { root.join(&file) } else { root.join("crates").join(&file) };
        let source = fs::read_to_string(path).unwrap_or_default();
        // The name is that of a function, or of a test that a macro generates.
        if !source.contains(&format!("fn {test}(")) && !source.contains(&format!("{test} =>")) {
            unknown.push(format!("{file}::{test}"));
        }
    }
    assert!(unknown.is_empty(), "no such tests:\n{}", unknown.join("\n"));
}
