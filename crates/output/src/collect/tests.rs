//! Tests of what is kept of the records of several nodes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Directories of nodes.
struct Nodes(TempDir);

impl Nodes {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn directory(&self, node: &str) -> PathBuf {
        self.0.path().join(node)
    }

    /// Writes the file of a node.
    fn write(&self, node: &str, file: &str, text: &str) {
        std::fs::create_dir_all(self.directory(node)).unwrap();
        std::fs::write(self.directory(node).join(file), text).unwrap();
    }

    fn lines(&self, node: &str, file: &str, lines: &[Value]) {
        self.write(node, file, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    fn collect(&self, nodes: &[&str]) -> Result<Collected> {
        let directories: Vec<PathBuf> = nodes.iter().map(|node| self.directory(node)).collect();
        collect(&directories, &self.directory("merged"))
    }

    /// The lines of a file that was collected, in order.
    fn merged(&self, file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory("merged").join(file)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn urls(&self, file: &str) -> Vec<String> {
        self.merged(file).iter().map(|line| line["url"].as_str().unwrap().to_owned()).collect()
    }
}

fn page(work: &str, epoch: u64, url: &str) -> Value {
    json!({"url": url, "final_url": url, "status": 200, "work": work, "epoch": epoch})
}

fn settled(work: &str, epoch: u64) -> Value {
    json!({"settled": work, "epoch": epoch})
}

#[test]
fn each_request_is_kept_as_it_was_settled() {
    let nodes = Nodes::new();
    let refused = |url: &str| json!({"url": url, "reason": "depth"});
    nodes.lines(
        "n1",
        PAGES,
        &[
            page("0/1", 1, "http://h/lost"),
            page("0/2", 1, "http://h/settled"),
            settled("0/2", 1),
            page("0/3", 1, "http://h/dropped"),
            page("0/4", 1, "http://h/killed"),
            page("0/5", 1, "http://h/replaced"),
            page("1/1", 1, "http://g/other"),
        ],
    );
    nodes.lines("n1", DROPS, &[refused("http://h/lost?"), refused("http://h/deep")]);
    nodes.lines("n2", PAGES, &[page("0/1", 2, "http://h/lost"), settled("0/1", 2)]);
    nodes.lines(
        "n2",
        DROPS,
        &[page("0/3", 2, "http://h/dropped"), settled("0/3", 2), settled("0/5", 2), refused("http://h/deep")],
    );
    let collected = nodes.collect(&["n1", "n2"]).unwrap();
    let kept = [
        page("0/1", 2, "http://h/lost"),
        page("0/2", 1, "http://h/settled"),
        page("0/4", 1, "http://h/killed"),
        page("1/1", 1, "http://g/other"),
    ];
    assert_eq!(nodes.merged(PAGES), kept);
    assert_eq!(nodes.urls(DROPS), ["http://h/dropped", "http://h/deep"]);
    assert_eq!((collected.superseded, collected.torn), (3, 0));
    assert_eq!(collected.records, BTreeMap::from([(PAGES.to_owned(), 4), (DROPS.to_owned(), 2)]));
}

#[test]
fn of_a_request_that_nobody_settled_the_last_whole_record_is_kept() {
    let nodes = Nodes::new();
    let torn = r#"{"url":"http://h/a","final_url":"http://h/a","work":"0/1","epo"#;
    nodes.lines("n1", PAGES, &[page("0/1", 1, "http://h/a"), page("0/2", 1, "http://h/b")]);
    nodes.write("n2", PAGES, &format!("{}\n{torn}", page("0/2", 2, "http://h/b")));
    let collected = nodes.collect(&["n1", "n2"]).unwrap();
    assert_eq!(nodes.merged(PAGES), [page("0/1", 1, "http://h/a"), page("0/2", 2, "http://h/b")]);
    assert_eq!((collected.superseded, collected.torn), (1, 1));
}

#[test]
fn items_follow_the_page_that_counts() {
    let nodes = Nodes::new();
    let item = |name: &str, epoch: u64| json!({"name": name, "work": "0/1", "epoch": epoch});
    nodes.lines("n1", PAGES, &[page("0/1", 1, "http://h/a")]);
    nodes.lines("n1", "items.jsonl", &[item("old", 1), json!({"work": "Hamlet"})]);
    nodes.lines("n2", PAGES, &[page("0/1", 2, "http://h/a"), settled("0/1", 2)]);
    nodes.lines("n2", "items.jsonl", &[item("first", 2), item("second", 2), json!({"work": "Hamlet"})]);
    nodes.write("n2", "items.csv", "name\nfirst\n");
    nodes.write("n2", "report.json", "{}");
    let collected = nodes.collect(&["n1", "n2"]).unwrap();
    let hamlet = json!({"work": "Hamlet"});
    assert_eq!(
        nodes.merged("items.jsonl"),
        [item("first", 2), item("second", 2), hamlet.clone(), hamlet],
        "a line that names no request stands for itself"
    );
    assert_eq!(collected.left_out, [nodes.directory("n2").join("items.csv")]);
}

#[test]
fn what_is_no_directory_of_the_crawl_is_refused_and_nothing_is_overwritten() {
    let nodes = Nodes::new();
    nodes.lines("n1", PAGES, &[page("0/1", 1, "http://h/a")]);
    nodes.lines("n2", PAGES, &[page("0/1", 1, "http://g/b")]);
    let told = |nodes: &Nodes, names: &[&str]| nodes.collect(names).unwrap_err().to_string();
    let error = told(&nodes, &["n1", "n2"]);
    assert!(error.contains("not of one crawl") && error.contains("0/1"), "{error}");
    assert!(!nodes.directory("merged").join(PAGES).exists());
    std::fs::create_dir(nodes.directory("n3")).unwrap();
    let error = told(&nodes, &["n1", "n3"]);
    assert!(error.contains("n3") && error.contains("no records"), "{error}");
    assert!(told(&nodes, &["n4"]).contains("reading"));
    nodes.collect(&["n1"]).unwrap();
    let error = told(&nodes, &["n1"]);
    assert!(error.contains("merged holds a pages.jsonl already"), "{error}");
}

/// Nodes take a request one after the other; each may die before the record, in it, before it is settled, or after.
#[test]
fn random_deaths_lose_no_request_and_keep_none_twice() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    for _ in 0..50 {
        let nodes = Nodes::new();
        let mut files: BTreeMap<(String, &str), String> = BTreeMap::new();
        // Which file has the record that counts, for those whose settling was told.
        let mut expected = BTreeMap::new();
        for number in 0..40 {
            let (work, url) = (format!("{}/{number}", number % 3), format!("http://h/{number}"));
            for epoch in 1..5 {
                let node = format!("n{}", random.random_range(0..3));
                let file = if random.random_bool(0.7) { PAGES } else { DROPS };
                let text = files.entry((node.clone(), file)).or_default();
                let death = random.random_range(0..4);
                let line = page(&work, epoch, &url).to_string();
                match death {
                    0 => continue,
                    _ => *text += &format!("{line}\n"),
                }
                if death == 1 {
                    expected.insert(work.clone(), (file, epoch));
                    continue;
                }
                *text += &format!("{}\n", settled(&work, epoch));
                expected.insert(work.clone(), (file, epoch));
                break;
            }
        }
        for node in ["n0", "n1", "n2"] {
            for file in [PAGES, DROPS] {
                let text = files.get(&(node.to_owned(), file)).map_or("", String::as_str);
                nodes.write(node, file, text);
            }
        }
        nodes.collect(&["n0", "n1", "n2"]).unwrap();
        let mut found = BTreeMap::new();
        for file in [PAGES, DROPS] {
            for line in nodes.merged(file) {
                let kept = (file, line["epoch"].as_u64().unwrap());
                assert_eq!(found.insert(line["work"].as_str().unwrap().to_owned(), kept), None);
            }
        }
        assert_eq!(found, expected);
    }
}
