//! Tables of fingerprints as Parquet: written and read back by other programs, on disk and in a bucket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Said, field, huntsman, lines, run};

/// The Python that has readers of Parquet.
fn python() -> String {
    let tools = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "../../target".to_owned());
    let installed = format!("{tools}/test-tools/engines-3/bin/python");
    // The programs run in folders of their own, where a relative path leads nowhere.
    match fs::canonicalize(Path::new(&installed).parent().unwrap()) {
        Ok(folder) => folder.join("python").to_string_lossy().into_owned(),
        Err(_) => "python3".to_owned(),
    }
}

/// Runs a program of Python in a folder, and returns what it prints.
fn py(folder: &Path, program: &str) -> String {
    let output = Command::new(python()).args(["-c", program]).current_dir(folder).output();
    let output = output.expect("there is a Python: ./setup.sh installs it");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "this needs duckdb and pyarrow (./setup.sh installs them): {stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn dedup(folder: &Path, arguments: &[&str]) -> Said {
    run(huntsman(folder).arg("dedup").args(arguments))
}

fn done(folder: &Path, arguments: &[&str]) -> Said {
    let said = dedup(folder, arguments);
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
    said
}

/// The command is refused without doing anything, and says why.
fn refused(folder: &Path, arguments: &[&str], why: &str) {
    let said = dedup(folder, arguments);
    assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
    assert!(said.stderr.contains(why), "{arguments:?}: {}", said.stderr);
}

fn report(folder: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

/// All documents of an index, sorted, with the names that the index has for languages: a table has no spelling of its own.
fn documents(folder: &Path, index: &str) -> Vec<String> {
    let said = done(folder, &["export", "--index", index]);
    let named = said.stdout.replace("\"lang\":\"hi\"", "\"lang\":\"HINDI\"");
    let named = ["en", "English"]
        .into_iter()
        .fold(named, |text, spelt| text.replace(&format!("\"lang\":\"{spelt}\""), "\"lang\":\"ENGLISH\""));
    let mut lines: Vec<String> = named.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Fingerprints in which halves with a sign, both kinds of large numbers, and two spellings of a language occur.
fn noise(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

fn hashes(path: &Path, ids: impl Iterator<Item = Value>) {
    let lines = ids.enumerate().map(|(at, id)| {
        let at = at as u64;
        let (hi, lo) = (noise(at / 2 + 1), noise(at / 2 + 70_000_000) ^ (at % 2));
        let lang = ["hi", "en", "HINDI"][at as usize / 2 % 3];
        json!({"id": id, "lang": lang, "simhash": format!("{hi:016x}{lo:016x}")}).to_string() + "\n"
    });
    fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn an_export_builds_the_same_index_whatever_its_ids_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let kinds: [(&str, Vec<Value>); 4] = [
        ("numbers", (0..3_000).map(Value::from).collect()),
        ("large", (0..3_000_u64).map(|id| (u64::MAX - id * id).into()).collect()),
        ("texts", (0..3_000).map(|id| format!("https://example.org/कहानी/{id}").into()).collect()),
        ("digits", (0..300).map(|id| id.to_string().into()).collect()),
    ];
    for (kind, ids) in kinds {
        let at = |name: &str| format!("{name}-{kind}");
        hashes(&path.join("hashes.jsonl"), ids.into_iter());
        done(path, &["build", "hashes.jsonl", "--index", &at("first")]);
        done(path, &["export", "--index", &at("first"), "--parquet", &at("exported")]);
        done(path, &["build", &at("exported"), "--index", &at("second")]);
        assert_eq!(documents(path, &at("second")), documents(path, &at("first")), "{kind}");
        // The same documents again are there already.
        done(
            path,
            &["add", "hashes.jsonl", "--index", &at("second"), "--report", "report.json", "--flags", "flags"],
        );
        let report = report(path, "report.json");
        assert_eq!(report["unchanged"], report["processed"], "{kind}: {report}");
    }
}

#[test]
fn another_reader_finds_the_columns_order_and_bands_of_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    hashes(&path.join("hashes.jsonl"), (0..5_000).map(Value::from));
    done(path, &["build", "hashes.jsonl", "--index", "index", "--k", "5"]);
    done(path, &["export", "--index", "index", "--parquet", "exported"]);
    done(path, &["export", "--index", "index", "--parquet", "narrow", "--no-bands"]);
    let said = py(
        path,
        r#"
import json, pyarrow.parquet as pq
table = pq.read_table("exported/part-00000.parquet")
print([(f.name, str(f.type)) for f in table.schema])
print(pq.read_table("narrow/part-00000.parquet").column_names)
rows = table.to_pylist()
assert rows == sorted(rows, key=lambda r: (r["lang"], r["hi"], r["lo"]))
assert any(r["hi"] < 0 for r in rows) and {r["lang"] for r in rows} == {"HINDI", "ENGLISH"}
given = {}
for line in open("hashes.jsonl"):
    line = json.loads(line)
    given[line["id"]] = int(line["simhash"], 16)
for r in rows:
    whole = (r["hi"] % 2**64) << 64 | r["lo"] % 2**64
    assert whole == given[r["id"]]
    assert [r[f"b{b}"] % 2**32 for b in range(4)] == [whole >> s & 0xffffffff for s in (96, 64, 32, 0)]
assert len(rows) == len(given)
told = {k.decode(): v.decode() for k, v in pq.ParquetFile("exported/part-00000.parquet").metadata.metadata.items()}
print({k: v for k, v in told.items() if k.startswith("huntsman")})
"#,
    );
    let types = "[('id', 'int64'), ('lang', 'string'), ('hi', 'int64'), ('lo', 'int64'), \
                 ('b0', 'int32'), ('b1', 'int32'), ('b2', 'int32'), ('b3', 'int32')]";
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], [types, "['id', 'lang', 'hi', 'lo']"]);
    for part in [
        "'huntsman.version': '1'",
        "'huntsman.features': 'words-log'",
        "'huntsman.k': '5'",
        "'huntsman.documents': '5000'",
    ] {
        assert!(lines[2].contains(part), "{said}");
    }
}

/// Writes `foreign.parquet` (as Spark does, with snappy) and `packed.parquet` (one column of 16 bytes, with gzip), and the same as JSON lines.
/// Every tenth row has no fingerprint.
const FOREIGN: &str = r#"
import json, random, pyarrow as pa, pyarrow.parquet as pq
random.seed(3)
ids = [random.randrange(10**15) for _ in range(4000)]
hashes = []
for at in range(4000):
    fresh = random.getrandbits(128)
    hashes.append(hashes[-1] ^ 1 << at % 128 if at % 4 == 3 else fresh)
langs = ["hi" if at // 4 % 2 else "English" for at in range(4000)]
signed = lambda n: n - 2**64 if n >= 2**63 else n
gone = lambda at: at % 10 == 9
half = lambda shift: [None if gone(at) else signed(h >> shift & 2**64 - 1) for at, h in enumerate(hashes)]
rows = {"story_id": ids, "language": langs, "h1": half(64), "h2": half(0)}
pq.write_table(pa.table(rows), "foreign.parquet", compression="snappy", row_group_size=700)
fp = pa.array([None if gone(at) else h.to_bytes(16, "big") for at, h in enumerate(hashes)], pa.binary(16))
pq.write_table(pa.table({"id": ids, "fp128": fp}), "packed.parquet", compression="gzip")
with open("lines.jsonl", "w") as lines:
    for at in range(4000):
        if not gone(at):
            lines.write(json.dumps({"id": ids[at], "lang": langs[at], "simhash": f"{hashes[at]:032x}"}) + "\n")
"#;

const COLUMNS: &str = "id=story_id,lang=language,hi=h1,lo=h2";

/// Flags without their times, and with the names that the index has for languages.
fn flags(path: &Path) -> Vec<Value> {
    let mut flags = lines(path);
    for flag in &mut flags {
        let flag = flag.as_object_mut().expect("an object");
        flag.remove("ts");
        let lang = if flag["lang"] == "hi" || flag["lang"] == "HINDI" { "HINDI" } else { "ENGLISH" };
        flag.insert("lang".to_owned(), lang.into());
    }
    flags
}

#[test]
fn foreign_tables_are_built_added_and_queried_like_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    py(path, FOREIGN);
    done(path, &["add", "lines.jsonl", "--index", "lines", "--flags", "lines.flags"]);
    let expected = flags(&path.join("lines.flags"));
    assert!(expected.len() > 500, "{}", expected.len());

    let table = ["foreign.parquet", "--columns", COLUMNS];
    let said = done(
        path,
        &[&["add"], &table[..], &["--index", "table", "--flags", "table.flags", "--report", "add.json"]]
            .concat(),
    );
    assert_eq!(flags(&path.join("table.flags")), expected);
    assert_eq!(documents(path, "table"), documents(path, "lines"));
    assert!(said.stderr.contains("400 without a fingerprint"), "{}", said.stderr);
    let of_add = report(path, "add.json");
    assert_eq!((&of_add["processed"], &of_add["errors"]), (&json!(3_600), &json!(0)));
    assert_eq!(of_add["left_out"], json!({"without_fingerprint": 400}));

    done(path, &[&["build"], &table[..], &["--index", "built"]].concat());
    assert_eq!(documents(path, "built"), documents(path, "lines"));
    let asked = |input: &[&str], flags: &str| {
        done(path, &[&["query"], input, &["--index", "lines", "--flags", flags]].concat());
    };
    asked(&table, "table.query");
    asked(&["lines.jsonl"], "lines.query");
    assert_eq!(flags(&path.join("table.query")), flags(&path.join("lines.query")));

    // One column of bytes, and the language by a flag. A pattern names tables, too.
    let packed = ["pack*.parquet", "--columns", "fp=fp128", "--lang", "hi", "--index", "packed"];
    done(path, &[&["build"], &packed[..]].concat());
    let stored = documents(path, "packed");
    assert_eq!(stored.len(), 3_600);
    assert!(stored.iter().all(|line| line.contains("\"HINDI\"")), "{}", stored[0]);
}

#[test]
fn unfinished_foreign_and_mixed_tables_are_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    hashes(&path.join("hashes.jsonl"), (0..100).map(Value::from));
    done(path, &["build", "hashes.jsonl", "--index", "index", "--features", "char5"]);
    done(path, &["export", "--index", "index", "--parquet", "exported"]);
    py(path, FOREIGN);
    py(
        path,
        r#"
import pyarrow.parquet as pq
table = pq.read_table("exported/part-00000.parquet")
for name, key, value in [("newer", "version", "2"), ("unknown", "features", "words-2040")]:
    told = dict(table.schema.metadata)
    told[f"huntsman.{key}".encode()] = value
    pq.write_table(table.replace_schema_metadata(told), f"{name}.parquet")
"#,
    );
    let build = |input: &[&str], why| refused(path, &[&["build"], input, &["--index", "new"]].concat(), why);
    build(&["newer.parquet"], "version 2");
    build(&["unknown.parquet"], "words-2040");
    build(&["exported", "--features", "words-log"], "char5");
    build(&["foreign.parquet"], "no column");
    build(&["foreign.parquet", "--columns", "id=story_id,hi=h1,lo=h2"], "--columns lang=NAME or --lang LANG");
    let whole = fs::read(path.join("exported/part-00000.parquet")).unwrap();
    fs::write(path.join("exported/part-00000.parquet"), &whole[..whole.len() / 2]).unwrap();
    build(&["exported"], "part-00000.parquet");
    fs::write(path.join("exported/part-00000.parquet"), &whole).unwrap();
    fs::rename(path.join("exported/_DONE.json"), path.join("done")).unwrap();
    build(&["exported"], "_DONE.json");
    fs::rename(path.join("done"), path.join("exported/_DONE.json")).unwrap();
    assert!(!path.join("new").exists());
    done(path, &["build", "hashes.jsonl", "--index", "other"]);
    refused(path, &["add", "exported", "--index", "other"], "char5");
    // An index that is new takes the features of the table.
    done(path, &["build", "exported", "--index", "same"]);
    assert!(done(path, &["stats", "--index", "same"]).stdout.contains("char5"));
    // A table among texts is told, and the texts are read.
    fs::create_dir(path.join("mixed")).unwrap();
    fs::create_dir(path.join("mixed/below")).unwrap();
    fs::copy(path.join("hashes.jsonl"), path.join("mixed/hashes.jsonl")).unwrap();
    fs::copy(path.join("foreign.parquet"), path.join("mixed/below/foreign.parquet")).unwrap();
    let said = dedup(path, &["build", "mixed", "--index", "mix"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(
        said.stderr.contains("below/foreign.parquet") && documents(path, "mix").len() == 100,
        "{}",
        said.stderr
    );
}

/// Lists of ids as engines leave them: a file of another column, and a folder whose files have no extension.
const LISTS: &str = r#"
import os, pyarrow as pa, pyarrow.parquet as pq
wanted = list(range(0, 900, 3))
pq.write_table(pa.table({"id": wanted}), "ids.parquet")
pq.write_table(pa.table({"n": [None] + wanted, "Story_ID": [str(i) for i in wanted] + [None]}), "named.parquet")
os.mkdir("unloaded")
for part in range(3):
    pq.write_table(pa.table({"id": pa.array(wanted[part::3], pa.uint64())}), f"unloaded/20261126_{part}_x", compression="gzip")
open("unloaded/_SUCCESS", "w").close()
open("unloaded/20261126_3_x", "w").close()
open("named.csv", "w").write("n,story\n" + "".join(f"x,{i}\n" for i in wanted))
"#;

#[test]
fn lists_of_ids_are_csv_or_parquet_files_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    py(path, LISTS);
    hashes(&path.join("hashes.jsonl"), (0..900).map(Value::from));
    done(path, &["build", "hashes.jsonl", "--index", "all"]);
    done(path, &["export", "--index", "all", "--parquet", "exported"]);
    let wanted: Vec<String> = {
        let mut ids: Vec<String> = (0..900).step_by(3).map(|id| id.to_string()).collect();
        ids.sort();
        ids
    };
    for (number, list) in [
        &["--ids", "ids.parquet"][..],
        &["--ids", "named.parquet", "--ids-column", "story_id"],
        &["--ids", "unloaded"],
        &["--ids", "unloaded/*_[0-3]_x"],
        &["--ids", "named.csv", "--ids-column", "story"],
    ]
    .into_iter()
    .enumerate()
    {
        for input in ["hashes.jsonl", "exported"] {
            let index = format!("{input}-{number}");
            let said = done(path, &[&["build", input, "--index", &index], list].concat());
            let stored: Vec<Value> =
                documents(path, &index).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(field(&stored, "id"), wanted, "{list:?}");
            assert!(!said.stderr.contains("not in the input"), "{}", said.stderr);
        }
    }
    // An export is a list, too: here of the documents that it has itself.
    done(path, &["build", "hashes.jsonl", "--index", "again", "--ids", "exported"]);
    assert_eq!(documents(path, "again"), documents(path, "all"));
    let refuse = |list: &[&str], why| {
        refused(path, &[&["build", "hashes.jsonl", "--index", "none", "--ids"], list].concat(), why);
    };
    refuse(&["named.parquet"], "no column id; it has n, Story_ID; --ids-column");
    refuse(&["named.csv", "--ids-column", "id"], "no column id");
    refuse(&["gone.parquet"], "gone.parquet");
    fs::create_dir(path.join("empty")).unwrap();
    refuse(&["empty"], "no file with ids");
}

#[test]
fn greedy_clusters_in_the_order_of_a_column_are_what_flags_of_each_day_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // Times as Spark writes them. The order of ids is another one.
    py(
        path,
        r#"
import datetime, json, random, pyarrow as pa, pyarrow.parquet as pq
random.seed(9)
hashes, rows = [], []
for at in range(3000):
    near = hashes[-1] ^ (3 << random.randrange(126)) if at % 3 else random.getrandbits(128)
    hashes.append(near if at % 7 else hashes[at // 2 - 1] if at > 2 else near)
    rows.append((random.randrange(10**9), near if at % 7 else hashes[-1]))
start = datetime.datetime(1969, 12, 1)
times = [start + datetime.timedelta(hours=at) for at in range(3000)]
signed = lambda n: n - 2**64 if n >= 2**63 else n
shuffled = list(range(3000)); random.shuffle(shuffled)
table = pa.table({
    "id": [rows[at][0] for at in shuffled], "lang": ["hi"] * 3000,
    "hi": [signed(rows[at][1] >> 64) for at in shuffled], "lo": [signed(rows[at][1] & 2**64 - 1) for at in shuffled],
    "published": [times[at] for at in shuffled]})
pq.write_table(table, "stories.parquet", use_deprecated_int96_timestamps=True)
with open("by-day.jsonl", "w") as lines:
    for id, h in rows:
        lines.write(json.dumps({"id": id, "lang": "hi", "simhash": f"{h:032x}"}) + "\n")
"#,
    );
    done(path, &["add", "by-day.jsonl", "--index", "index", "--flags", "flags.jsonl"]);
    done(path, &["join", "stories.parquet", "--out", "near"]);
    let said =
        done(path, &["cluster", "near", "--link", "greedy", "--keep", "oldest", "--order-by", "published"]);
    let clusters = py(
        path,
        r#"
import duckdb
for row in duckdb.sql("select id, kept, distance from 'near/cluster/*.parquet'").fetchall():
    print(*row)
"#,
    );
    let found: std::collections::BTreeMap<u64, (u64, u64)> = clusters
        .lines()
        .map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            (numbers[0], (numbers[1], numbers[2]))
        })
        .collect();
    let order: Vec<u64> =
        lines(path.join("by-day.jsonl")).iter().map(|line| line["id"].as_u64().unwrap()).collect();
    let flags: std::collections::BTreeMap<u64, Vec<(u64, usize, u64)>> = lines(path.join("flags.jsonl"))
        .iter()
        .map(|flag| {
            let matches = flag["matches"].as_array().unwrap().iter().map(|near| {
                let (id, distance) = (near["id"].as_u64().unwrap(), near["distance"].as_u64().unwrap());
                (distance, order.iter().position(|one| *one == id).unwrap(), id)
            });
            (flag["id"].as_u64().unwrap(), matches.collect())
        })
        .collect();
    let (mut kept, mut copies) = (std::collections::BTreeSet::new(), 0);
    for id in &order {
        let near = flags.get(id).into_iter().flatten().filter(|(.., near)| kept.contains(near)).min();
        let told = found.get(id).copied().unwrap_or((*id, 0));
        match near {
            Some((distance, _, near)) => {
                copies += 1;
                assert_eq!(told, (*near, *distance), "{id}");
            }
            None => {
                kept.insert(*id);
                assert_eq!(told, (*id, 0));
            }
        }
    }
    // Some flags name copies only: these documents are kept.
    assert!(copies > 1_000 && flags.len() > copies + 50, "{copies} of {}: {}", flags.len(), said.stderr);
    refused(path, &["cluster", "near", "--keep", "longest"], "--order-by");
    refused(path, &["cluster", "near", "--order-by", "date"], "no column date");
}

#[test]
fn a_join_reports_its_numbers_in_json_and_as_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // 5,000 documents share a band, and 3 rows have no fingerprint.
    let mut rows = "id,lang,hi,lo\n1,hi,,\n2,hi,5,\n3,hi,,5\n".to_owned();
    for id in 10..6_010_u64 {
        let hi = if id < 5_010 { 7 << 32 | noise(id) >> 32 } else { noise(id) };
        rows += &format!("{id},hi,{},{}\n", hi as i64, noise(id + 1_000_000 * (id % 50)) as i64);
        if id % 100 == 0 {
            rows +=
                &format!("{},hi,{},{}\n", id + 100_000, hi as i64, noise(id + 1_000_000 * (id % 50)) as i64);
        }
    }
    fs::write(path.join("in.csv"), rows).unwrap();
    let arguments =
        ["join", "in.csv", "--out", "near", "--report", "report.json", "--metrics-file", "join.prom"];
    let said = done(path, &arguments);
    assert!(said.stderr.contains("needs up to") && said.stderr.contains("are free"), "{}", said.stderr);
    let told = report(path, "report.json");
    let number = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("{name}: {told}"));
    assert_eq!((number("rows"), number("without_fingerprint"), number("folded")), (6_060, 3, 60));
    assert_eq!(number("input_bytes"), fs::metadata(path.join("in.csv")).unwrap().len());
    assert!(number("candidates") > 0 && number("heavy_values") == 1, "{told}");
    let heavy = &told["heaviest"][0];
    assert_eq!(*heavy, json!({"lang": "HINDI", "key": 0, "rows": 5_000, "id": "10"}));
    let keys = told["keys"].as_array().unwrap();
    assert!(keys.len() == 4 && keys.iter().all(|key| key["seconds"].is_number()), "{told}");
    let on_disk: u64 = ["pairs", "same"]
        .map(|table| fs::metadata(path.join("near").join(table).join("part-00000.parquet")).unwrap().len())
        .iter()
        .sum();
    assert_eq!(number("bytes"), on_disk);
    assert!(told["elapsed_s"].is_number() && told["peak_rss_bytes"].is_number(), "{told}");
    let metrics = fs::read_to_string(path.join("join.prom")).unwrap();
    for line in [
        "huntsman_join_rows 6060",
        "huntsman_join_without_fingerprint 3",
        "huntsman_join_folded 60",
        "huntsman_join_steps_done 4",
        "huntsman_join_heavy_value_rows{lang=\"HINDI\",key=\"0\",id=\"10\"} 5000",
        &format!("huntsman_join_result_bytes {on_disk}"),
        &format!("huntsman_join_candidates{{key=\"0\"}} {}", keys[0]["candidates"]),
    ] {
        assert!(metrics.lines().any(|has| has == line), "{line}: {metrics}");
    }
    huntsman_testkit::prometheus::check_metrics(&metrics);
    // The same command again reads what is done, and its numbers stay.
    done(path, &arguments);
    let again = fs::read_to_string(path.join("join.prom")).unwrap();
    assert!(
        again.contains("huntsman_join_rows 6060\n") && again.contains("huntsman_join_folded 60\n"),
        "{again}"
    );
}

/// Stories in two files, ten a day and one a minute; every second one is live.
#[cfg(feature = "sql")]
const STORIES: &str = r#"
import datetime, os, pyarrow as pa, pyarrow.parquet as pq
os.mkdir("stories")
day, minute = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1)
for name, ids in [("a", range(600)), ("b", range(600, 1000))]:
    pq.write_table(pa.table({
        "id": ids,
        "published": [day + datetime.timedelta(days=id // 10) for id in ids],
        "seen": pa.array([minute + datetime.timedelta(minutes=id) for id in ids], pa.timestamp("us")),
        "live": [id % 2 == 0 for id in ids],
        "score": [id / 4 for id in ids],
        "language": ["hi" if id % 5 else None for id in ids],
        "tags": [["a", "b"] for id in ids],
    }), f"stories/{name}.parquet")
pq.write_table(pa.table({"n": [3, 700, 5000], "big": pa.array([2**64 - 1, 2**63, 7], pa.uint64())}), "wanted.parquet")
pq.write_table(pa.table({"id": [1]}), "narrow.parquet")
"#;

/// The ids of an index, sorted.
#[cfg(feature = "sql")]
fn ids(folder: &Path, index: &str) -> Vec<u64> {
    let documents = documents(folder, index);
    let id = |line: &String| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap();
    let mut ids: Vec<u64> = documents.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

#[cfg(feature = "sql")]
#[test]
fn a_query_chooses_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    py(path, STORIES);
    hashes(
        &path.join("hashes.jsonl"),
        (0..1_000).map(Value::from).chain([json!(u64::MAX), json!(1_u64 << 63)]),
    );
    let chosen = |number: usize, arguments: &[&str]| {
        let index = format!("index-{number}");
        let said = done(path, &[&["build", "hashes.jsonl", "--index", &index], arguments].concat());
        (ids(path, &index), said.stderr)
    };
    let every_third: Vec<u64> = (0..1_000).step_by(3).collect();
    for (number, (query, wanted)) in [
        ("SELECT id FROM 'stories/*.parquet' WHERE id % 3 = 0", every_third.clone()),
        ("SELECT id AS story FROM stories WHERE id % 3 = 0;", every_third),
        ("SELECT id FROM stories WHERE published = '2026-01-02' AND live", (10..20).step_by(2).collect()),
        ("SELECT id FROM stories WHERE strftime('%m', published) = '04'", (900..1_000).collect()),
        ("SELECT id, language FROM stories WHERE seen < '2026-01-01 00:04'", (0..4).collect()),
        (
            "SELECT id, tags FROM (SELECT id, 1 AS tags FROM stories WHERE score > 249)",
            (997..1_000).collect(),
        ),
        ("SELECT id FROM stories JOIN 'wanted.parquet' ON n = id", vec![3, 700]),
        ("SELECT n FROM 'wanted.parquet' UNION SELECT min(id) FROM 'stories/b.parquet'", vec![3, 600, 700]),
        ("SELECT big FROM 'wanted.parquet' WHERE n < 1000", vec![1 << 63, u64::MAX]),
        ("SELECT count(*) - 1 FROM stories", vec![999]),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(chosen(number, &["--ids-sql", query]).0, wanted, "{query}");
    }
    let (found, said) = chosen(
        100,
        &["--ids-sql", "SELECT language, n FROM stories, 'wanted.parquet' WHERE id = 1", "--ids-column", "n"],
    );
    assert_eq!(found, [3, 700]);
    assert!(
        said.contains("--ids-sql: 3 documents") && said.contains("--ids-sql: 1 of the list were not"),
        "{said}"
    );
}

#[cfg(feature = "sql")]
#[test]
fn a_query_that_cannot_be_carried_out_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    py(path, STORIES);
    fs::write(path.join("stories.csv"), "id\n1\n").unwrap();
    fs::copy(path.join("narrow.parquet"), path.join("stories/c.parquet")).unwrap();
    hashes(&path.join("hashes.jsonl"), (0..10).map(Value::from));
    for (query, why) in [
        ("SELECT id FROM 'none.parquet'", "none.parquet: No such file"),
        ("SELECT id FROM 'none/*.parquet'", "none/*.parquet: "),
        ("SELECT id FROM 'stories/*.csv'", "no file of the folder matches the pattern"),
        ("SELECT id FROM 'stories.csv'", "no whole Parquet file"),
        ("SELECT id FROM 'stories/a.parquet' WHERE", "incomplete input"),
        ("SELECT nobody FROM 'stories/a.parquet'", "no such column: nobody"),
        ("SELECT tags FROM 'stories/a.parquet'", "no such column: tags"),
        ("SELECT \"tags.list.element\" AS id FROM 'stories/a.parquet'", "has lists"),
        ("SELECT score AS id FROM 'stories/a.parquet'", "0.0 in the result: ids are whole numbers or texts"),
        (
            "SELECT language, live FROM 'stories/a.parquet'",
            "no column id; it has language, live; --ids-column",
        ),
        ("SELECT live FROM stories", "c.parquet: it has no column live"),
        ("SELECT id FROM 'stories/a.parquet'; SELECT 1", "one query is wanted"),
        ("DELETE FROM 'stories/a.parquet'", "only SELECT is allowed"),
        ("ATTACH 'other.db' AS other", "only SELECT is allowed"),
        ("CREATE TABLE x (id)", "only SELECT is allowed"),
    ] {
        refused(path, &["build", "hashes.jsonl", "--index", "new", "--ids-sql", query], why);
    }
    let both = ["--ids", "narrow.parquet", "--ids-sql", "SELECT 1"];
    refused(path, &[&["build", "hashes.jsonl", "--index", "new"], &both[..]].concat(), "cannot be used with");
    assert!(!path.join("new").exists() && !path.join("other.db").exists());
}

#[cfg(feature = "s3")]
mod in_a_bucket {
    use huntsman_testkit::moto::Server;

    use super::*;

    fn at(server: &Server, folder: &Path, arguments: &[&str]) -> Said {
        let mut command = huntsman(folder);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
            command.env_remove(name);
        }
        command.env("AWS_ENDPOINT_URL", server.url()).env("NO_PROXY", "127.0.0.1,localhost");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        run(command.arg("dedup").args(arguments))
    }

    fn done(server: &Server, folder: &Path, arguments: &[&str]) -> Said {
        let said = at(server, folder, arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        said
    }

    fn refused(server: &Server, folder: &Path, arguments: &[&str], why: &str) {
        let said = at(server, folder, arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(why), "{arguments:?}: {}", said.stderr);
    }

    /// Puts the files of a folder under a prefix.
    fn put(server: &Server, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_file() {
                server.put("stories", &format!("{prefix}/{name}"), &fs::read(&path).unwrap());
            }
        }
    }

    #[test]
    fn tables_and_lists_are_read_as_from_the_disk() {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        let path = folder.path();
        server.make_bucket("stories");
        // The export is larger than the pieces that are fetched.
        hashes(&path.join("hashes.jsonl"), (0..150_000).map(Value::from));
        super::done(path, &["build", "hashes.jsonl", "--index", "index"]);
        super::done(path, &["export", "--index", "index", "--parquet", "exported"]);
        assert!(fs::metadata(path.join("exported/part-00000.parquet")).unwrap().len() > 2 << 20);
        put(&server, &path.join("exported"), "deep/exported");
        done(&server, path, &["build", "s3://stories/deep/exported", "--index", "fetched"]);
        assert!(documents(path, "fetched") == documents(path, "index"));

        // Foreign tables, one of them alone and one under a prefix; lists of ids.
        py(path, FOREIGN);
        py(path, LISTS);
        server.put("stories", "one/foreign.parquet", &fs::read(path.join("foreign.parquet")).unwrap());
        let foreign = ["s3://stories/one/foreign.parquet", "--columns", COLUMNS];
        done(&server, path, &[&["add"], &foreign[..], &["--index", "foreign", "--flags", "flags"]].concat());
        super::done(path, &["add", "lines.jsonl", "--index", "lines", "--flags", "lines.flags"]);
        assert_eq!(flags(&path.join("flags")), flags(&path.join("lines.flags")));
        put(&server, &path.join("unloaded"), "lists/unloaded");
        server.put("stories", "lists/named.parquet", &fs::read(path.join("named.parquet")).unwrap());
        server.put("stories", "lists/named.csv", &fs::read(path.join("named.csv")).unwrap());
        for (number, list) in [
            &["s3://stories/lists/unloaded/"][..],
            &["s3://stories/lists/unloaded"],
            &["s3://stories/lists/named.parquet", "--ids-column", "Story_ID"],
            &["s3://stories/lists/named.csv", "--ids-column", "story"],
        ]
        .into_iter()
        .enumerate()
        {
            let index = format!("some-{number}");
            let build = ["build", "s3://stories/deep/exported/", "--index", &index, "--ids"];
            done(&server, path, &[&build[..], list].concat());
            let ids: Vec<u64> = documents(path, &index)
                .iter()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap())
                .collect();
            assert!(ids.len() == 300 && ids.iter().all(|id| id % 3 == 0 && *id < 900), "{list:?}: {ids:?}");
        }

        // A join finds the same pairs, and its clusters read the order from the bucket again.
        done(&server, path, &["join", "s3://stories/deep/exported", "--out", "near"]);
        super::done(path, &["join", "exported", "--out", "local"]);
        let part =
            |out: &str, table: &str| fs::read(path.join(out).join(table).join("part-00000.parquet")).unwrap();
        assert!(part("near", "pairs") == part("local", "pairs"));
        let cluster = ["--link", "greedy", "--keep", "longest", "--order-by", "id"];
        done(&server, path, &[&["cluster", "near"], &cluster[..]].concat());
        super::done(path, &[&["cluster", "local"], &cluster[..]].concat());
        assert!(part("near", "cluster") == part("local", "cluster"));
    }

    #[cfg(feature = "sql")]
    #[test]
    fn a_query_chooses_among_the_rows_of_objects() {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        let path = folder.path();
        server.make_bucket("stories");
        py(path, STORIES);
        put(&server, &path.join("stories"), "2026/stories");
        hashes(&path.join("hashes.jsonl"), (0..1_000).map(Value::from));
        for (number, table) in
            ["s3://stories/2026/stories/*.parquet", "s3://stories/2026/stories"].into_iter().enumerate()
        {
            let query = format!("SELECT id FROM '{table}' WHERE published >= '2026-01-02' AND live");
            let index = format!("index-{number}");
            done(&server, path, &["build", "hashes.jsonl", "--index", &index, "--ids-sql", &query]);
            assert_eq!(ids(path, &index), (10..1_000).step_by(2).collect::<Vec<u64>>(), "{table}");
        }
        for (query, why) in [
            ("SELECT id FROM 's3://stories/2026/none'", "neither an object of this name nor one under it"),
            ("SELECT id FROM 's3://stories/2026/stories/*.csv'", "no file of the folder matches the pattern"),
        ] {
            refused(&server, path, &["build", "hashes.jsonl", "--index", "new", "--ids-sql", query], why);
        }
    }

    #[test]
    fn what_is_not_whole_or_not_there_is_refused() {
        let (server, folder) = (Server::start(), tempfile::tempdir().unwrap());
        let path = folder.path();
        server.make_bucket("stories");
        hashes(&path.join("hashes.jsonl"), (0..100).map(Value::from));
        super::done(path, &["build", "hashes.jsonl", "--index", "index"]);
        super::done(path, &["export", "--index", "index", "--parquet", "exported"]);
        put(&server, &path.join("exported"), "whole");
        put(&server, &path.join("exported"), "cut");
        server.put("stories", "cut/part-00000.parquet", b"PAR1");
        server.put("stories", "unfinished/part-00000.parquet", b"PAR1");
        for command in [&["build", "--index", "new"][..], &["join", "--out", "new"]] {
            let refuse = |input: &str, why: &str| refused(&server, path, &[command, &[input]].concat(), why);
            refuse("s3://stories/unfinished", "_DONE.json");
            refuse("s3://stories/cut", "is not the file that _DONE.json lists");
            refuse("s3://stories/none.parquet", "neither an object of this name nor one under it");
            refuse("s3://no-such-bucket/x", "check its name");
        }
        let ids = |list: &str, why: &str| {
            refused(&server, path, &["build", "hashes.jsonl", "--index", "new", "--ids", list], why);
        };
        ids("s3://stories/none", "neither an object of this name nor one under it");
        ids("s3://stories/whole/part-00000.parquet?", "no file of the folder matches the pattern");
        assert!(!path.join("new").exists());
    }
}
