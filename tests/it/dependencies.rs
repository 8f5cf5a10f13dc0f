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
        ("huntsman-browser", &["huntsman-files"]),
        ("huntsman-bucket", &[]),
        ("huntsman-disk", &["huntsman-files"]),
        (
            "huntsman-bulk",
            &["huntsman-bucket", "huntsman-detect", "huntsman-disk", "huntsman-files", "huntsman-metrics"],
        ),
        ("huntsman-store", &["huntsman-files"]),
        ("huntsman-html", &[]),
        ("huntsman-css", &[]),
        ("huntsman-xpath", &[]),
        ("huntsman-derive", &["huntsman-css", "huntsman-json-path", "huntsman-xpath"]),
        ("huntsman-json-path", &[]),
        ("huntsman-page-data", &[]),
        ("huntsman-text", &[]),
        ("huntsman-warc", &["huntsman-bucket", "huntsman-disk"]),
        ("huntsman-detect", &["huntsman-files", "huntsman-html", "huntsman-text"]),
        ("huntsman-metrics", &["huntsman-files"]),
        ("huntsman-redis", &[]),
        (
            "huntsman-dedup",
            &[
                "huntsman-bucket",
                "huntsman-bulk",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-metrics",
                "huntsman-redis",
                "huntsman-text",
                "huntsman-warc",
            ],
        ),
        (
            "huntsman-crawler",
            &[
                "huntsman-css",
                "huntsman-derive",
                "huntsman-files",
                "huntsman-html",
                "huntsman-json-path",
                "huntsman-page-data",
                "huntsman-store",
                "huntsman-text",
                "huntsman-xpath",
            ],
        ),
        ("huntsman-cluster", &["huntsman-crawler", "huntsman-redis"]),
        ("huntsman-url-frontier", &["huntsman-crawler"]),
        (
            "huntsman-middleware",
            &[
                "huntsman-browser",
                "huntsman-bucket",
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-store",
                "huntsman-text",
                "huntsman-warc",
            ],
        ),
        (
            "huntsman-serve",
            &[
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-metrics",
                "huntsman-output",
                "huntsman-sweep",
            ],
        ),
        (
            "huntsman-output",
            &[
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-disk",
                "huntsman-files",
                "huntsman-middleware",
                "huntsman-text",
            ],
        ),
        (
            "huntsman-sweep",
            &[
                "huntsman-middleware",
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-output",
                "huntsman-store",
                "huntsman-text",
            ],
        ),
        (
            "huntsman-project",
            &[
                "huntsman-crawler",
                "huntsman-files",
                "huntsman-jobs",
                "huntsman-middleware",
                "huntsman-output",
                "huntsman-serve",
                "huntsman-shell",
                "huntsman-testkit",
            ],
        ),
        ("huntsman-jobs", &["huntsman-crawler", "huntsman-files", "huntsman-output", "huntsman-serve"]),
        (
            "huntsman-audit",
            &[
                "huntsman-crawler",
                "huntsman-detect",
                "huntsman-disk",
                "huntsman-files",
                "huntsman-html",
                "huntsman-middleware",
                "huntsman-output",
                "huntsman-text",
                "huntsman-warc",
                "huntsman-xpath",
            ],
        ),
        ("huntsman-shell", &["huntsman-crawler", "huntsman-files", "huntsman-middleware"]),
        (
            "huntsman",
            &[
                "huntsman-jobs",
                "huntsman-audit",
                "huntsman-bulk",
                "huntsman-cluster",
                "huntsman-metrics",
                "huntsman-middleware",
                "huntsman-output",
                "huntsman-project",
                "huntsman-serve",
                "huntsman-crawler",
                "huntsman-dedup",
                "huntsman-detect",
                "huntsman-files",
                "huntsman-html",
                "huntsman-store",
                "huntsman-sweep",
                "huntsman-text",
                "huntsman-url-frontier",
                "huntsman-warc",
            ],
        ),
        ("huntsman-cli", &["huntsman", "huntsman-dedup", "huntsman-testkit"]),
        ("huntsman-feature-union", &[]),
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

/// Crates without a network.
const PURE: [&str; 11] = [
    "css",
    "derive",
    "detect",
    "files",
    "html",
    "json-path",
    "metrics",
    "page-data",
    "store",
    "text",
    "xpath",
];

/// Crates that a macro may be made of: a user's compiler waits for them, in `release` once more than the crates of a crawl.
const OF_MACROS: [&str; 10] = [
    "cssparser",
    "huntsman-css",
    "huntsman-json-path",
    "huntsman-xpath",
    "precomputed-hash",
    "proc-macro2",
    "quote",
    "regex-syntax",
    "selectors",
    "syn",
];

#[test]
fn the_macro_needs_no_crate_but_grammars() {
    let found = dependencies();
    for name in ["huntsman-derive", "huntsman-css"] {
        for dependency in &found[name] {
            assert!(OF_MACROS.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn pure_crates_know_no_network_and_no_runtime() {
    let found = dependencies();
    for name in PURE.map(|name| format!("huntsman-{name}")) {
        for banned in NETWORK.into_iter().chain(["clap"]) {
            assert!(!found[&name].contains(banned), "{name} must not depend on {banned}");
        }
    }
    assert!(!found["huntsman-html"].contains("url"), "html does not know what an address means");
}

#[test]
fn pure_crates_open_no_socket_of_the_standard_library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in PURE {
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
fn only_commands_parse_arguments() {
    for (name, dependencies) in dependencies() {
        let parses = dependencies.contains("clap") || dependencies.contains("indicatif");
        let is_command = ["huntsman-bench", "huntsman-cli", "huntsman-project"].contains(&name.as_str());
        assert!(!parses || is_command, "{name}");
    }
}

#[test]
fn a_library_needs_no_crate_of_commands() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "huntsman", "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let has = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    assert!(has("huntsman-serve"), "the tree lists what is needed");
    for name in ["clap", "huntsman-project", "huntsman-shell", "indicatif", "rustyline"] {
        assert!(!has(name), "without the feature `project`, the library needs {name}");
    }
}

/// The built-in components that other sources name, and why. Taking out any other component touches its own file, its
/// `mod` line and its line in the list of `crates/middleware/src/lib.rs`, and the rest compiles.
const NAMED_ELSEWHERE: [(&str, &str); 15] = [
    ("avoid_dup", "the command reports what it learnt; the adapter for spider's crawls is made of it"),
    ("cookies", "scripts of a rendered page see and set the cookies of the crawl"),
    (
        "from_warc",
        "the command looks at no network before a crawl over archives and begins with their pages, and the prelude has its builder",
    ),
    ("http_cache", "the commands `cache` and `verify` read its files"),
    ("http_compression", "the recording decodes bodies by the same limits"),
    ("http_proxy", "the command and the search engines of copyvio checks read its settings"),
    ("incremental", "the command `verify` reads its files"),
    ("offsite", "an audit asks it which URLs belong to the site"),
    ("proxy_pool", "a session has one proxy of the pool"),
    ("recording", "the command refuses to mix two crawls in a file, and reports a failed write"),
    ("redirect", "meta refreshes are followed as redirects are"),
    ("referer", "a redirect sets the Referer of the next request by the same policy"),
    (
        "retry",
        "the HTTP cache does not store responses that are retried; a blocked request of a session is retried in another",
    ),
    ("robots_txt", "Nofollow, RobotsSitemaps and the command `robots` read its settings"),
    ("warc", "the command `cache` exports by its records, and the prelude has the folder of an archive"),
];

/// The list of built-in components: the file of each, and what it exports, the component first.
fn built_in() -> Vec<(String, Vec<String>)> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/middleware/src/lib.rs");
    let text = fs::read_to_string(list).expect("the list can be read");
    let (_, text) = text.split_once("built_in! {").expect("the list begins here");
    let (text, _) = text.split_once("\n}").expect("the list ends here");
    let line = |line: &str| {
        let (file, types) = line.trim().strip_suffix("};")?.split_once("::{")?;
        Some((file.to_owned(), types.split(", ").map(str::to_owned).collect()))
    };
    text.lines().filter(|text| !text.is_empty()).map(|text| line(text).expect("`file::{types};`")).collect()
}

/// The code of a source without comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// Whether a name occurs in code as a whole word.
fn has_name(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name)
        .any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + name.len()..].starts_with(is_word))
}

#[test]
fn a_built_in_component_is_named_in_its_own_file_and_in_one_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for (package, needed) in dependencies() {
        let folder = match package.strip_prefix("huntsman-") {
            Some(name) => format!("crates/{name}/src"),
            None => "src".to_owned(),
        };
        let can_name = |needed: &str| ["huntsman", "huntsman-middleware"].contains(&needed);
        if package == "huntsman-middleware" || needed.iter().any(|needed| can_name(needed)) {
            all.extend(sources(&root.join(folder)));
        }
    }
    let is_list = |path: &Path| path.ends_with("crates/middleware/src/lib.rs");
    let read = |path: &PathBuf| (path.clone(), code(&fs::read_to_string(path).expect("a source is text")));
    let all: Vec<(PathBuf, String)> = all.iter().filter(|path| !is_list(path)).map(read).collect();
    let components = root.join("crates/middleware/src");
    let list = built_in();
    assert!(list.len() > 20, "{} components were found", list.len());
    let mut named: BTreeMap<&str, BTreeSet<&Path>> = BTreeMap::new();
    for (file, types) in &list {
        let own = components.join(file);
        let others =
            all.iter().filter(|(path, _)| !path.starts_with(&own) && *path != own.with_extension("rs"));
        for (path, code) in others {
            let is_named = match path.starts_with(&components) {
                true => code.contains(&format!("{file}::")) || has_name(code, &types[0]),
                false => code.contains("middleware") && types.iter().any(|name| has_name(code, name)),
            };
            if is_named {
                named.entry(file).or_default().insert(path);
            }
        }
    }
    let expected: BTreeSet<&str> = NAMED_ELSEWHERE.iter().map(|(file, _)| *file).collect();
    assert_eq!(named.keys().copied().collect::<BTreeSet<_>>(), expected, "{named:#?}");
}
