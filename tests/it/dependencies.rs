//! Checks the direction of dependencies between the crates of the workspace, as ARCHITECTURE.md states it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
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
        ("huntsman-text", &[]),
        ("huntsman-detect", &["huntsman-files", "huntsman-html", "huntsman-text"]),
        ("huntsman-metrics", &["huntsman-files"]),
        (
            "huntsman-dedup",
            &["huntsman-detect", "huntsman-files", "huntsman-html", "huntsman-metrics", "huntsman-text"],
        ),
        ("huntsman-crawler", &["huntsman-files", "huntsman-html", "huntsman-store", "huntsman-text"]),
        (
            "huntsman-middleware",
            &[
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-store",
                "huntsman-text",
            ],
        ),
        ("huntsman-serve", &["huntsman-crawler", "huntsman-metrics"]),
        (
            "huntsman-output",
            &["huntsman-crawler", "huntsman-detect", "huntsman-files", "huntsman-middleware"],
        ),
        (
            "huntsman",
            &[
                "huntsman-metrics",
                "huntsman-middleware",
                "huntsman-output",
                "huntsman-serve",
                "huntsman-crawler",
                "huntsman-dedup",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-store",
                "huntsman-text",
            ],
        ),
        ("huntsman-cli", &["huntsman", "huntsman-dedup", "huntsman-testkit"]),
        ("huntsman-bench", &["huntsman", "huntsman-cli", "huntsman-testkit"]),
        (
            "huntsman-testkit",
            &["huntsman-crawler", "huntsman-detect", "huntsman-files", "huntsman-store", "huntsman-text"],
        ),
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

/// Packages that open sockets, encrypt connections, or wait for them.
const NETWORK: [&str; 8] =
    ["tokio", "reqwest", "http", "hyper", "rustls", "rustls-platform-verifier", "native-tls", "object_store"];

#[test]
fn pure_crates_know_no_network_and_no_runtime() {
    let found = dependencies();
    for name in ["files", "html", "metrics", "text", "detect", "store"].map(|name| format!("huntsman-{name}"))
    {
        for banned in NETWORK.into_iter().chain(["clap"]) {
            assert!(!found[&name].contains(banned), "{name} must not depend on {banned}");
        }
    }
    assert!(!found["huntsman-html"].contains("url"), "html does not know what an address means");
}

#[test]
fn pure_crates_open_no_socket_of_the_standard_library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["files", "html", "metrics", "text", "detect", "store"] {
        let mut seen = 0;
        for file in sources(&root.join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&file).expect("a source is text");
            for socket in ["std::net", "TcpStream", "UdpSocket", "UnixStream"] {
                assert!(!text.contains(socket), "{} names {socket}", file.display());
            }
            seen += 1;
        }
        assert!(seen > 0, "{name} has sources");
    }
}

#[test]
fn the_crawler_knows_no_detector() {
    let found = dependencies();
    for name in ["huntsman-detect", "huntsman-dedup", "huntsman-middleware"] {
        assert!(!found["huntsman-crawler"].contains(name), "the crawler must not depend on {name}");
    }
}

/// The Rust files below a directory.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

#[test]
fn only_the_command_line_parses_arguments() {
    for (name, dependencies) in dependencies() {
        let parses = dependencies.contains("clap") || dependencies.contains("indicatif");
        assert!(!parses || ["huntsman-cli", "huntsman-bench"].contains(&name.as_str()), "{name}");
    }
}
