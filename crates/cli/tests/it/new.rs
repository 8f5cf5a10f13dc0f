//! `huntsman new` and `huntsman genspider`.

use std::fs;
use std::path::Path;

use crate::common::{Said, huntsman, run};

fn said(directory: &Path, words: &[&str]) -> Said {
    run(huntsman(directory).args(words))
}

/// A directory with a project `shop` in it.
fn project() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let made = said(dir.path(), &["new", "shop"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let path = dir.path().join("shop");
    (dir, path)
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_new_project_has_the_files_of_the_template_and_its_own_name() {
    let (_dir, shop) = project();
    let manifest: toml::Table = toml::from_str(&read(&shop, "Cargo.toml")).unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("shop"));
    assert_eq!(manifest["dependencies"]["huntsman"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/project");
    for name in
        ["src/main.rs", "src/spiders/mod.rs", "src/spiders/quotes.rs", "fixtures/quotes/first.body.html"]
    {
        assert_eq!(read(&shop, name), read(&template, name), "{name}: it is what the tests compile");
    }
    for name in ["Cargo.toml", "README.md", "huntsman.toml", ".gitignore", ".github/workflows/ci.yml"] {
        assert!(!read(&shop, name).contains("project-name"), "{name}");
    }
    assert!(
        read(&shop, "huntsman.toml").contains("HUNTSMAN_DOWNLOAD_DELAY"),
        "it is a variable, and no place for the version"
    );
    // The settings file is one: the command reads it, too.
    let settings = said(&shop, &["settings", "--get", "download_delay", "--explain"]);
    assert!(settings.code == Some(0) && settings.stdout.contains("huntsman.toml"), "{settings:?}");
}

#[test]
fn a_project_may_depend_on_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let made = said(dir.path(), &["new", "shop", "--path", root.to_str().unwrap()]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let manifest: toml::Table = toml::from_str(&read(&dir.path().join("shop"), "Cargo.toml")).unwrap();
    assert_eq!(manifest["dependencies"]["huntsman"]["path"].as_str(), root.to_str());
    assert!(dir.path().join("shop/Cargo.lock").exists(), "the versions of the checkout are kept");
    let refused = said(dir.path(), &["new", "other", "--path", "nowhere"]);
    assert!(refused.code == Some(2) && !dir.path().join("other").exists(), "{refused:?}");
}

#[test]
fn a_new_project_is_never_written_over_another_one() {
    let (dir, shop) = project();
    fs::write(shop.join("src/main.rs"), "// mine").unwrap();
    let again = said(dir.path(), &["new", "shop"]);
    assert!(again.code == Some(2) && again.stderr.contains("exists"), "{again:?}");
    assert_eq!(read(&shop, "src/main.rs"), "// mine");
    fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(said(dir.path(), &["new", "file"]).code, Some(2));
}

#[test]
fn a_spider_of_a_project_is_run_by_its_program() {
    let (_dir, shop) = project();
    let refused = said(&shop, &["crawl", "quotes"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("cargo run -- crawl quotes"), "{refused:?}");
}

#[test]
fn a_bad_name_says_what_a_name_may_be() {
    let (dir, shop) = project();
    for name in ["", "Shop", "9lives", "a b", "../up", "match", "ünder", "a/b"] {
        let new = said(dir.path(), &["new", name]);
        let spider = said(&shop, &["genspider", name, "https://example.org/"]);
        for refused in [new, spider] {
            assert!(
                refused.code == Some(2) && refused.stderr.contains("lower-case letters"),
                "{name}: {refused:?}"
            );
        }
    }
    let taken = said(dir.path(), &["new", "serde"]);
    assert!(taken.code == Some(2) && taken.stderr.contains("another"), "{taken:?}");
}

#[test]
fn each_kind_of_spider_is_added_with_its_lines() {
    let (_dir, shop) = project();
    for kind in ["basic", "rules", "sitemap", "xmlfeed", "csvfeed", "api", "toml"] {
        let name = format!("my-{kind}");
        let made = said(&shop, &["genspider", "-t", kind, &name, "http://127.0.0.1:8000/a"]);
        assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""), "{made:?}");
        let module = name.replace('-', "_");
        let main = read(&shop, "src/main.rs");
        if kind == "toml" {
            assert!(read(&shop, "spiders/my-toml.toml").contains("http://127.0.0.1:8000/a"));
            assert!(main.contains("\"spiders/my-toml.toml\""), "{main}");
            let checked = said(&shop, &["crawl", "spiders/my-toml.toml", "--max-time", "0.1"]);
            assert!(checked.stderr.contains("127.0.0.1:8000"), "the file is read: {checked:?}");
        } else {
            assert!(read(&shop, &format!("src/spiders/{module}.rs")).contains("http://127.0.0.1:8000/a"));
            let line = format!("        .spider(\"{name}\", spiders::{module}::spider)\n");
            assert!(main.contains(&line), "{main}");
            assert!(read(&shop, "src/spiders/mod.rs").contains(&format!("pub mod {module};\n")));
        }
        let again = said(&shop, &["genspider", "-t", kind, &name, "http://127.0.0.1:8000/b"]);
        assert!(again.code == Some(2) && again.stderr.contains("exists"), "{again:?}");
        assert_eq!(read(&shop, "src/main.rs"), main);
    }
    let modules = read(&shop, "src/spiders/mod.rs");
    let modules: Vec<&str> = modules.lines().filter(|line| line.starts_with("pub mod ")).collect();
    assert!(modules.is_sorted(), "as `cargo fmt` has them: {modules:?}");
    let main = read(&shop, "src/main.rs");
    assert!(main.find(".spider(\"my-api\"") < main.find(".main()"), "{main}");
    assert_eq!(main.lines().filter(|line| line.contains(".spider(")).count(), 8);
}

#[test]
fn without_the_places_the_lines_are_told() {
    let (_dir, shop) = project();
    fs::write(shop.join("src/main.rs"), "fn main() { spiders().main() }\n").unwrap();
    fs::remove_file(shop.join("src/spiders/mod.rs")).unwrap();
    let made = said(&shop, &["genspider", "books", "https://books.example/"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    for line in ["pub mod books;", ".spider(\"books\", spiders::books::spider)"] {
        assert!(made.stderr.contains(line), "{made:?}");
    }
    assert_eq!(read(&shop, "src/main.rs"), "fn main() { spiders().main() }\n");
}

#[test]
fn a_spider_needs_a_project_and_a_url() {
    let (dir, shop) = project();
    let elsewhere = said(dir.path(), &["genspider", "books", "https://books.example/"]);
    assert!(elsewhere.code == Some(2) && elsewhere.stderr.contains("huntsman new"), "{elsewhere:?}");
    let relative = said(&shop, &["genspider", "books", "books.example"]);
    assert!(relative.code == Some(2) && !shop.join("src/spiders/books.rs").exists(), "{relative:?}");
}
