//! `huntsman dedup export --parquet`, `join`, `cluster` and `sql`, run as processes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::huntsman;

/// Fingerprints in two languages; every second one is near to the one before it.
fn hashes(number: u64, path: &Path) {
    let mut lines = String::new();
    for id in 0..number {
        let noise = |number: u64| {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
        };
        let (hi, lo) = (noise(id / 2 + 1), noise(id / 2 + 70_000_000) ^ (id % 2));
        let lang = if id % 4 < 2 { "hi" } else { "en" };
        writeln!(lines, r#"{{"id":{id},"lang":"{lang}","simhash":"{hi:016x}{lo:016x}"}}"#).unwrap();
    }
    fs::write(path, lines).unwrap();
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = huntsman(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn csv(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join("part-00000.csv")).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_index_is_exported_joined_and_clustered() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    hashes(2_000, Path::new(&at("hashes.jsonl")));
    done(folder.path(), &["dedup", "build", &at("hashes.jsonl"), "--index", &at("index")]);
    done(folder.path(), &["dedup", "export", "--index", &at("index"), "--parquet", &at("exported")]);
    let report = at("report.json");
    done(
        folder.path(),
        &["dedup", "join", &at("exported"), "--out", &at("near"), "--format", "csv", "--report", &report],
    );
    let pairs = csv(&folder.path().join("near/pairs"));
    assert_eq!(pairs[0], "lang,a,b,distance");
    assert_eq!((pairs[1].as_str(), pairs[2].as_str()), ("ENGLISH,2,3,1", "ENGLISH,6,7,1"));
    assert_eq!(pairs.len(), 1_001);
    let by_pattern = ["dedup", "join", &at("exported/*.parquet"), "--out", &at("matched"), "--format", "csv"];
    done(folder.path(), &by_pattern);
    assert_eq!(csv(&folder.path().join("matched/pairs")), pairs);
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!((report["rows"].as_u64(), report["pairs"].as_u64()), (Some(2_000), Some(1_000)));
    done(folder.path(), &["dedup", "cluster", &at("near"), "--link", "greedy"]);
    assert_eq!(csv(&folder.path().join("near/cluster"))[1], "2,2,2,0,ENGLISH");
    let sql = done(folder.path(), &["dedup", "sql", "--dialect", "spark", "--table", "archive.docs"]);
    assert!(sql.contains("bit_count(x.hi ^ y.hi)") && sql.contains("FROM archive.docs"), "{sql}");
}

#[test]
fn a_killed_join_goes_on_and_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    hashes(60_000, Path::new(&at("hashes.jsonl")));
    let arguments = |out: &str| {
        ["dedup", "join", &at("hashes.jsonl"), "--out", &at(out), "--k", "7", "--memory", "64MB"]
            .map(str::to_owned)
    };
    done(folder.path(), &arguments("whole").each_ref().map(String::as_str));
    let mut kills = 0;
    // Each run is killed as soon as one more step than before is done.
    for steps in 0..30 {
        let mut child = huntsman(folder.path())
            .args(arguments("killed"))
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let temp = folder.path().join("killed/temp");
        let is_ended = loop {
            let found = fs::read_dir(&temp).into_iter().flatten().flatten();
            let pairs = found.filter(|entry| entry.file_name().to_string_lossy().ends_with(".pairs")).count();
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success());
                break true;
            }
            if pairs > 2 * steps {
                break false;
            }
            std::thread::yield_now();
        };
        if is_ended {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 5, "{kills}");
    done(folder.path(), &arguments("killed").each_ref().map(String::as_str));
    for table in ["pairs", "same"] {
        let read =
            |out: &str| fs::read(folder.path().join(out).join(table).join("part-00000.parquet")).unwrap();
        assert!(read("whole") == read("killed"), "{table}");
    }
}

#[test]
fn a_full_disk_is_told_with_the_missing_bytes_and_the_join_goes_on_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    hashes(60_000, Path::new(&at("hashes.jsonl")));
    done(folder.path(), &["dedup", "join", &at("hashes.jsonl"), "--out", &at("whole")]);
    let mut told = Vec::new();
    // The limit on file sizes stands for a disk: each run gets a little further.
    for blocks in [100, 800, 1_200] {
        let huntsman = huntsman(folder.path());
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"])
            .arg(huntsman.get_program())
            .args(["dedup", "join", &at("hashes.jsonl"), "--out", &at("full")])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("make room, then run the same command again"), "{stderr}");
        let missing = stderr.split("; up to ").last().unwrap().split(" bytes are missing").next().unwrap();
        told.push(missing.parse::<u64>().unwrap_or_else(|_| panic!("{stderr}")));
    }
    assert!(told.iter().all(|missing| *missing >= 1 << 20), "{told:?}");
    done(folder.path(), &["dedup", "join", &at("hashes.jsonl"), "--out", &at("full")]);
    for table in ["pairs", "same"] {
        let read =
            |out: &str| fs::read(folder.path().join(out).join(table).join("part-00000.parquet")).unwrap();
        assert!(read("whole") == read("full"), "{table}");
    }
}

#[test]
fn wrong_sizes_forms_and_inputs_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_string_lossy().into_owned();
    for (arguments, told) in [
        (vec!["join", "gone.parquet", "--out", &out], "gone.parquet"),
        (vec!["join", "x.parquet", "--out", &out, "--memory", "1MB"], "64MB"),
        (vec!["join", "x.parquet", "--out", &out, "--format", "xls"], "jsonl"),
        (vec!["join", "x.parquet", "--out", &out, "--columns", "hash=h"], "fp"),
        (vec!["cluster", &out], "dedup join"),
        (vec!["sql", "--dialect", "oracle"], "bigquery"),
    ] {
        let output = huntsman(folder.path()).arg("dedup").args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{arguments:?}: {:?}", output.stderr);
    }
}
