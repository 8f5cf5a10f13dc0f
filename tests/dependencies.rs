//! The direction of dependencies between the crates of the workspace, as ARCHITECTURE.md promises it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Normal dependencies of every workspace package: on each other, and on others.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let packages = metadata["packages"].as_array().expect("a list of packages");
    packages
        .iter()
        .map(|package| {
            let normal =
                package["dependencies"].as_array().expect("a list").iter().filter(|d| d["kind"].is_null());
            (text(&package["name"]), normal.map(|d| text(&d["name"])).collect())
        })
        .collect()
}

#[test]
fn crates_depend_only_downwards() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("huntsman-files", &[][..]),
        ("huntsman-store", &["huntsman-files"]),
        ("huntsman-html", &[]),
        ("huntsman-detect", &["huntsman-files", "huntsman-html", "huntsman-store"]),
        ("huntsman-crawler", &["huntsman-detect", "huntsman-files", "huntsman-html", "huntsman-store"]),
        (
            "huntsman-middleware",
            &["huntsman-crawler", "huntsman-detect", "huntsman-files", "huntsman-html", "huntsman-store"],
        ),
        (
            "huntsman",
            &[
                "huntsman-middleware",
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-store",
            ],
        ),
        ("huntsman-cli", &["huntsman"]),
        ("huntsman-testkit", &["huntsman-crawler", "huntsman-detect", "huntsman-files", "huntsman-store"]),
    ]);
    let found = dependencies();
    assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<_>>(), allowed.keys().copied().collect());
    for (name, dependencies) in &found {
        for dependency in dependencies.iter().filter(|d| d.starts_with("huntsman")) {
            assert!(
                allowed[name.as_str()].contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn detect_and_html_know_no_network_and_no_runtime() {
    let found = dependencies();
    for name in ["huntsman-files", "huntsman-html", "huntsman-detect", "huntsman-store"] {
        for banned in ["tokio", "reqwest", "http", "hyper", "clap"] {
            assert!(!found[name].contains(banned), "{name} must not depend on {banned}");
        }
    }
    assert!(!found["huntsman-html"].contains("url"), "html does not know what an address means");
}

#[test]
fn only_the_command_line_parses_arguments() {
    for (name, dependencies) in dependencies() {
        let parses = dependencies.contains("clap") || dependencies.contains("indicatif");
        assert!(!parses || name == "huntsman-cli", "{name}");
    }
}
