//! The HTTP cache and incremental crawls, through settings of the command.

mod common;

use common::{crawl, field, huntsman, lines, report, run};
use huntsman_testkit::{RunningSite, Site};

fn small() -> RunningSite {
    Site::builder().page("/", "<a href='/a'>a</a>").page("/a", "a").start_blocking()
}

#[test]
fn the_second_crawl_over_a_cache_asks_the_server_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let crawl = |out: &str| {
        let mut command = crawl(dir.path(), &site);
        command.args(["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache", "--out", out]);
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
        lines(dir.path().join(out).join("pages.jsonl"))
    };
    let first = crawl("one");
    let asked = site.seen().len();
    let second = crawl("two");
    assert_eq!(site.seen().len(), asked, "the second crawl asked the server");
    assert_eq!((field(&first, "url").len(), field(&first, "url")), (2, field(&second, "url")));
    let stats = report(&dir.path().join("two"));
    assert_eq!(stats["stats"]["httpcache/hit"], 2, "{stats}");
}

#[test]
fn what_gave_items_is_skipped_in_the_next_crawl() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    for (out, pages) in [("one", 2), ("two", 1)] {
        let mut command = crawl(dir.path(), &site);
        command.args(["--set", "delta_enabled=true", "--set", "incremental_dir=known", "--out", out]);
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(lines(dir.path().join(out).join("pages.jsonl")).len(), pages);
    }
    let drops = lines(dir.path().join("two/drops.jsonl"));
    assert_eq!(
        (drops.len(), &drops[0]["reason"], &drops[0]["component"]),
        (1, &"delta".into(), &"incremental".into())
    );
}

#[test]
fn the_components_are_listed() {
    let said = run(huntsman(&std::env::temp_dir()).args(["settings", "--components", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    for name in ["http_cache", "incremental"] {
        let listed = value["downloader"].as_array().unwrap().iter().any(|row| row["name"] == name);
        assert!(listed, "{name}: {value}");
    }
}
