//! `huntsman-bench selectors`.

use std::fs;

use serde_json::{Value, json};

use crate::common::{huntsman_bench, run};

#[test]
fn pages_answer_queries_and_their_trees_are_xml() {
    let dir = tempfile::tempdir().unwrap();
    let page = "<!--a--b--><p class=x xmlns=u xlink:href=/x>one & <a href='/1?a=\"'>t\u{b}wo</a></p>\n<template><i>3";
    fs::create_dir(dir.path().join("pages")).unwrap();
    fs::create_dir(dir.path().join("trees")).unwrap();
    fs::write(dir.path().join("pages/one.html"), page).unwrap();
    fs::write(dir.path().join("pages/notes.txt"), "no page").unwrap();
    let queries = "# two of each\ncss\tp ::text\ncss\tp\nxpath\tcount(//i) + 1\nxpath\t//a[\n";
    fs::write(dir.path().join("queries"), queries).unwrap();
    let bench = |args: &[&str]| {
        run(huntsman_bench(dir.path())
            .args(["selectors", "--pages", "pages", "--queries", "queries"])
            .args(args))
    };
    let said = bench(&["--trees", "trees", "--full"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let made: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!((&made["page"], made["answers"].as_array().unwrap().len()), (&json!("one.html"), 4));
    assert_eq!(made["answers"][0]["values"], json!(["one & ", "t\u{fffd}wo"]));
    let paragraph = made["answers"][1]["values"][0].as_str().unwrap();
    assert!(paragraph.starts_with("<p  x > 10 "), "{paragraph}");
    assert_eq!(made["answers"][2]["values"], json!(["2"]));
    assert!(made["answers"][3]["error"].as_str().unwrap().contains("character 5"), "{made}");
    let tree = fs::read_to_string(dir.path().join("trees/one.html.xml")).unwrap();
    assert_eq!(
        tree,
        "<!--a==b--><html><head></head><body><p class=\"x\" xlink_x3A_href=\"/x\" _x78_mlns=\"u\">one &#38; \
         <a href=\"/1?a=&#34;\">t\u{fffd}wo</a></p>&#10;<template><i>3</i></template></body></html>"
    );
    let said = bench(&["--time"]);
    let made: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert!(made["queries_us"][0].is_number() && made["queries_us"][3].is_null(), "{made}");
    fs::write(dir.path().join("queries"), "p ::text\n").unwrap();
    assert!(bench(&[]).stderr.contains("line 1 does not begin with css or xpath"));
}
