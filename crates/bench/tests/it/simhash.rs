//! `huntsman-bench simhash`.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Said, huntsman_bench, run};

fn bench(directory: &Path, args: &[&str]) -> Said {
    run(huntsman_bench(directory).args(["simhash"]).args(args))
}

fn value(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

fn refused(said: &Said, says: &str) {
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.stderr.contains(says), "{says}: {said:?}");
}

/// The shares of pairs within 0 to 7 bits for a kind, level by level, with the default feature set.
fn curves(quality: &Value, kind: &str) -> Vec<Vec<f64>> {
    let cells = quality["cells"].as_array().unwrap().iter().filter(|cell| cell["kind"] == kind);
    let numbers = |cell: &Value| -> Vec<f64> {
        assert_eq!(cell["features"][0]["features"], "words-log");
        let within = cell["features"][0]["within"].as_array().unwrap();
        within.iter().map(|share| share.as_f64().unwrap()).collect()
    };
    cells.map(numbers).collect()
}

#[test]
fn copies_are_found_unrelated_texts_are_not_and_more_changes_are_found_less() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--only", "quality", "--stories", "40", "--words", "300", "--seed", "5", "--json"];
    let said = bench(dir.path(), &args);
    let out = value(&said);
    assert_eq!((&out["seed"], &out["index"]), (&json!(5), &Value::Null));
    let quality = &out["quality"];
    for kind in ["copy", "layout"] {
        assert_eq!(curves(quality, kind), [[1.0; 8]], "{kind}");
    }
    // Punctuation within words, as in "3.0", splits them.
    assert!(curves(quality, "casepunct")[0][7] > 0.7);
    for kind in ["unrelated", "template"] {
        let curves = curves(quality, kind);
        assert!(
            !curves.is_empty() && curves.iter().flatten().all(|share| *share == 0.0),
            "{kind}: {curves:?}"
        );
    }
    for kind in ["kwords", "typo", "replace", "delete", "addpara", "truncate", "chrome"] {
        let curves = curves(quality, kind);
        assert!(curves.len() > 1, "{kind}");
        for shares in &curves {
            assert!(shares.is_sorted(), "{kind}: a larger k finds no less: {shares:?}");
        }
        // With forty pairs a level, the shares vary a little.
        let at_7: Vec<f64> = curves.iter().map(|shares| shares[7]).collect();
        assert!(at_7.windows(2).all(|pair| pair[1] <= pair[0] + 0.1), "{kind}: {at_7:?}");
    }
    let (one, tenth) = (&curves(quality, "kwords")[0], &curves(quality, "replace")[5]);
    assert!(one[7] > 0.9 && tenth[3] < 0.1, "{one:?} {tenth:?}");
    for cell in quality["cells"].as_array().unwrap() {
        let long = cell["len"] == 900;
        assert_eq!(cell["pairs"], if cell["kind"] == "unrelated" { json!(60) } else { json!(40) }, "{cell}");
        assert!(cell["about"].is_string() && (cell["len"] == 300 || long), "{cell}");
        for curve in cell["features"].as_array().unwrap() {
            let quantiles: Vec<u64> =
                curve["quantiles"].as_array().unwrap().iter().map(|bits| bits.as_u64().unwrap()).collect();
            assert!(quantiles.len() == 7 && quantiles.is_sorted() && quantiles[6] <= 128, "{cell}");
        }
    }
    let mut again = value(&bench(dir.path(), &[&args[..], &["--write-pairs", "pairs.jsonl"]].concat()));
    assert_eq!(again, out, "the same seed gives the same figures");
    let read = value(&bench(dir.path(), &["--pairs", "pairs.jsonl", "--json"]));
    again["quality"]["file"] = json!("pairs.jsonl");
    assert_eq!(read["quality"], again["quality"]);
}

#[test]
fn pairs_of_a_file_are_judged_by_their_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let words = |from: usize| (from..from + 200).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ");
    let pair = |kind: &str, dup: u8, a: String, b: String| json!({"pair": 1, "lang": "en", "len": 200, "kind": kind, "level": 0.01, "dup": dup, "a": a, "b": b});
    let lines = [
        pair("replace", 1, words(0), words(0).replace("word7 ", "other ")),
        pair("my own", 1, words(0), words(1000)),
        pair("unrelated", 0, words(0), words(2000)),
        json!({"a": words(5), "b": words(5)}),
    ];
    let file = lines.map(|line| line.to_string()).join("\n");
    std::fs::write(dir.path().join("pairs.jsonl"), &file).unwrap();
    let out = value(&bench(dir.path(), &["--pairs", "pairs.jsonl", "--json"]));
    let quality = &out["quality"];
    assert_eq!((&quality["file"], &quality["pairs"]), (&json!("pairs.jsonl"), &json!(4)));
    assert_eq!(out.get("speed"), None, "a file of pairs asks for nothing else");
    assert_eq!(curves(quality, "replace")[0][7], 1.0);
    assert_eq!(curves(quality, "my own"), [[0.0; 8]]);
    assert_eq!(curves(quality, "unrelated"), [[0.0; 8]]);
    assert_eq!(curves(quality, "pair"), [[1.0; 8]]);

    let packed = zstd::encode_all(file.as_bytes(), 1).unwrap();
    std::fs::write(dir.path().join("packed"), packed).unwrap();
    let mut again = value(&bench(dir.path(), &["--pairs", "packed", "--json"]));
    again["quality"]["file"] = json!("pairs.jsonl");
    assert_eq!(again, out);

    let markdown = bench(dir.path(), &["--pairs", "pairs.jsonl", "--markdown"]);
    assert!(markdown.stdout.contains("| 1 % of the words replaced | 200 | 1 | "), "{markdown:?}");
    let table = bench(dir.path(), &["--pairs", "pairs.jsonl"]);
    assert!(table.stdout.contains("4 pairs of pairs.jsonl") && table.stdout.contains("seed 1"), "{table:?}");
}

#[test]
fn a_measurement_that_is_impossible_is_refused_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.jsonl"), "{\"a\": \"x\", \"b\": \"y\"}\n{\"a\": 1}\n").unwrap();
    refused(&bench(dir.path(), &["--pairs", "bad.jsonl"]), "bad.jsonl:2: ");
    refused(&bench(dir.path(), &["--pairs", "none.jsonl"]), "none.jsonl: there is no such file");
    refused(
        &bench(dir.path(), &["--only", "quantity"]),
        "possible values: quality, speed, index, add, join, redis",
    );
    refused(&bench(dir.path(), &["--k", "8"]), "8 is not in 0..=7");
    refused(
        &bench(dir.path(), &["--only", "redis", "--redis", "http://x"]),
        "not the address of a Redis server",
    );
    refused(&bench(dir.path(), &["--only", "speed", "--text", "none.txt"]), "--text none.txt: ");
    refused(&bench(dir.path(), &["--json", "--markdown"]), "cannot be used with");
    // This holds for the process of a part, too; its error message comes first.
    let said = bench(dir.path(), &["--only", "quality,add", "--pairs", "bad.jsonl", "--json"]);
    refused(&said, "bad.jsonl:2: ");
    assert!(said.stderr.contains("the part `quality` ended"), "{said:?}");
}

#[test]
fn indexes_find_what_comparing_all_finds_and_tell_what_they_cost() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("scratch")).unwrap();
    let args = ["--only", "index,add", "--documents", "20000", "--add", "300", "--words", "100"];
    let out = value(&bench(dir.path(), &[&args[..], &["--dir", "scratch", "--json"]].concat()));
    assert_eq!(out["index"]["documents"], 20_000);
    let indexes = out["index"]["indexes"].as_array().unwrap();
    let made: Vec<Value> = indexes.iter().map(|index| json!([index["k"], index["spread"]])).collect();
    assert_eq!(made, [json!([3, "even"]), json!([3, "texts"]), json!([7, "even"]), json!([7, "texts"])]);
    for index in indexes {
        let number = |pointer: &str| {
            let value = index.pointer(pointer).and_then(Value::as_f64);
            value.unwrap_or_else(|| panic!("{pointer} of {index}"))
        };
        assert_eq!(number("/scan/recall"), 1.0);
        assert!(number("/scan/found") > 500.0 && number("/scan/hindi_documents") > 4_000.0);
        // At least the hash and the id are stored, and no table that is several times as large.
        assert!((20.0..150.0).contains(&number("/memory/bytes_per_document")), "{index}");
        assert!((20.0..40.0).contains(&(number("/disk/log_bytes") / 20_000.0)), "{index}");
        assert!(number("/pairs/count") > 0.0);
        assert!(number("/disk/inserts_per_s") > 0.0 && number("/memory/build_core_s") >= 0.0);
        let queries = index["queries"].as_array().unwrap();
        let found: Vec<f64> = queries.iter().map(|queries| queries["found"].as_f64().unwrap()).collect();
        // A hit finds the document from which it was made.
        assert!(found.len() == 3 && found[1] >= 1.0, "{found:?}");
        for times in queries.iter().map(|queries| &queries["times"]) {
            assert!(times["p50_us"].as_f64() <= times["p99_us"].as_f64(), "{times}");
        }
        for inserts in index["inserts"].as_array().unwrap() {
            assert_eq!((&inserts["documents"], &inserts["batches"]["count"]), (&json!(4_000), &json!(4)));
            assert!(inserts["documents_per_s"].as_f64().unwrap() > 0.0);
        }
    }
    let add = &out["add"];
    assert_eq!((&add["stories"], &add["indexed"]), (&json!(300), &json!(20_000)));
    assert!(
        add["copies"].as_u64().unwrap() > 0 && add["flagged"].as_u64() >= add["copies"].as_u64(),
        "{add}"
    );
    assert!(add["stories_per_s"].as_f64().unwrap() > 0.0 && add["text_bytes"].as_u64().unwrap() > 300_000);
    let left = std::fs::read_dir(dir.path().join("scratch")).unwrap().count();
    assert_eq!(left, 0, "temporary files are gone");
}

#[test]
fn every_layout_of_redis_and_every_feature_set_has_its_figures() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--only", "speed,redis", "--redis-documents", "1000", "--words", "60", "--redis", "--json"];
    let out = value(&bench(dir.path(), &args));
    let indexes = out["redis"]["indexes"].as_array().unwrap();
    let layouts: Vec<&str> = indexes.iter().map(|index| index["layout"].as_str().unwrap()).collect();
    assert_eq!(layouts, ["compact", "compact", "seed", "seed", "log", "log"]);
    for index in indexes {
        for name in [
            "bytes_per_document",
            "inserts_per_s",
            "queries_per_s",
            "single_queries_per_s",
            "wide_queries_per_s",
        ] {
            assert!(index[name].as_f64().is_some_and(|number| number > 0.0), "{name} of {index}");
        }
    }
    let texts = out["speed"]["texts"].as_array().unwrap();
    assert_eq!(texts.len(), 2);
    for text in texts {
        let rates = text["fingerprint_mb_s"].as_array().unwrap();
        assert!(rates.len() == 4 && rates.iter().all(|rate| rate.as_f64().unwrap() > 0.0), "{text}");
    }
}

#[test]
fn a_redis_server_that_is_named_is_measured_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = huntsman_testkit::redis::Server::start();
    let url = server.url();
    let args = ["--only", "redis", "--redis-documents", "1000", "--redis", &url];
    let said = bench(dir.path(), &args);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("log, ids of 16 digits"), "{said:?}");
    refused(&bench(dir.path(), &args), "there are documents of an earlier run (BENCH-COMPACT-0)");
}
