//! `huntsman-bench copyvio`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{huntsman_bench, run};

fn bench(directory: &Path, args: &[&str]) -> Value {
    let said = run(huntsman_bench(directory).args(["copyvio"]).args(args).arg("--json"));
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn the_score_is_right_of_made_up_texts_of_all_kinds_but_a_notice_that_nothing_marks() {
    let dir = tempfile::tempdir().unwrap();
    let made = bench(dir.path(), &["--only", "synthetic", "--pairs", "4", "--seed", "3"]);
    let cases = made["synthetic"]["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    let (known, notice): (Vec<_>, Vec<_>) =
        cases.iter().partition(|case| !case["name"].as_str().unwrap().starts_with("a notice"));
    assert_eq!(notice.len(), 1);
    assert_eq!((&notice[0]["score_right"], &notice[0]["confidence_right"]), (&json!(0), &json!(0)));
    for case in known {
        assert_eq!(case["score_right"], case["pairs"], "{case}");
        if case["is_copy"] == false {
            assert_eq!(case["verdict"], "none", "{case}");
        }
    }
    // Changes that the reference's number cannot detect.
    for name in ["every 5th word replaced", "NFD against NFC (every vowel has an accent)"] {
        let case = cases.iter().find(|case| case["name"] == name).unwrap();
        assert_eq!((&case["band"], &case["confidence_right"]), (&json!("none"), &json!(0)), "{case}");
    }
    assert_eq!(
        bench(dir.path(), &["--only", "synthetic", "--pairs", "4", "--seed", "3"])["synthetic"],
        made["synthetic"],
        "a seed gives the same texts"
    );
}

#[test]
fn an_index_is_small_and_every_copied_run_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let made = bench(dir.path(), &["--only", "index", "--texts", "1000,2000"]);
    let indexes = made["index"].as_array().unwrap();
    assert_eq!(indexes.len(), 2);
    for index in indexes {
        assert!(index["copies"].as_u64().unwrap() >= 10);
        assert_eq!(index["copies_found"], index["copies"], "{index}");
        assert!(index["bytes_per_window"].as_f64().unwrap() < 16.0, "{index}");
    }
}

#[test]
fn the_speed_is_that_of_the_texts_that_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let words = |from: usize, to: usize| (from..to).map(|n| format!("w{n} ")).collect::<String>();
    fs::write(dir.path().join("a.txt"), words(0, 200)).unwrap();
    fs::write(dir.path().join("b.txt"), words(100, 250)).unwrap();
    let made = bench(dir.path(), &["--article", "a.txt", "--source", "b.txt"]);
    let speed = &made["speed"];
    assert_eq!((&speed["words"], &speed["shared_windows"]), (&json!([200, 150]), &json!(96)));
    assert!(speed["bytes_per_window"].as_f64().unwrap() < 16.0, "{speed}");
    assert!(speed["steps"].as_array().unwrap().iter().all(|step| step["us"].as_f64().unwrap() > 0.0));
    assert_eq!((&made["index"], &made["synthetic"]), (&Value::Null, &Value::Null));
}

#[test]
fn tables_are_for_people_or_in_markdown_and_an_impossible_measurement_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["copyvio", "--only", "synthetic", "--pairs", "1"];
    let said = run(huntsman_bench(dir.path()).args(args).arg("--markdown"));
    assert!(
        said.stdout.contains("| case | right | C | band |") && said.stdout.contains("| --- | ---: |"),
        "{said:?}"
    );
    let said = run(huntsman_bench(dir.path()).args(args));
    assert!(said.stdout.contains("every 5th word replaced") && said.stdout.contains("seed 1"), "{said:?}");
    for (args, says) in [
        (&["--article", "a.txt"][..], "--source"),
        (&["--article", "a.txt", "--source", "b.txt"][..], "a.txt"),
        (&["--texts", "5"][..], "5"),
        (&["--json", "--markdown"][..], "--markdown"),
    ] {
        let said = run(huntsman_bench(dir.path()).args(["copyvio"]).args(args));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(says), "{says}: {said:?}");
    }
}
