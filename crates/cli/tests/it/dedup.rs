//! `huntsman dedup`, run as a process: what it finds, what a kill leaves, what it refuses.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use huntsman::detect::near::Language;
use huntsman::detect::simhash::{Features, SimHash};
use huntsman::detect::words::Words;
use huntsman_testkit::redis::Server;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::common::stories::{stories, write};
use crate::common::{Said, huntsman, lines, run, said};

fn hash_of(story: &Value) -> SimHash {
    match story["simhash"].as_str() {
        Some(hash) => hash.parse().expect("a fingerprint"),
        None => SimHash::with(Features::WordsLog, &Words::of(story["text"].as_str().expect("a text"))),
    }
}

type Matches = BTreeMap<String, Vec<(u64, String)>>;

/// The matches that `add` must flag: each story is compared with all before it. For `query` (`with_later`), it is
/// compared with all others.
fn naive(stories: &[Value], k: u32, with_later: bool) -> Matches {
    let hashed: Vec<(Language, SimHash)> = stories
        .iter()
        .map(|story| (Language::parse(story["lang"].as_str().unwrap()).unwrap(), hash_of(story)))
        .collect();
    let mut found = Matches::new();
    for (at, (language, hash)) in hashed.iter().enumerate() {
        let until = if with_later { hashed.len() } else { at };
        let others = (0..until).filter(|other| *other != at && hashed[*other].0 == *language);
        let near: Vec<(u64, String)> = others
            .map(|other| (u64::from(hash.distance(hashed[other].1)), stories[other]["id"].to_string()))
            .filter(|(distance, _)| *distance <= u64::from(k))
            .collect();
        if !near.is_empty() {
            found.insert(stories[at]["id"].to_string(), sorted(near));
        }
    }
    found
}

fn sorted(mut near: Vec<(u64, String)>) -> Vec<(u64, String)> {
    near.sort();
    near
}

/// The matches in the flags; each document has at most one line.
fn flagged(flags: &[Value]) -> Matches {
    let mut all = Matches::new();
    for flag in flags {
        let matches = flag["matches"].as_array().expect("matches");
        let near: Vec<(u64, String)> = matches
            .iter()
            .map(|near| (near["distance"].as_u64().expect("a distance"), near["id"].to_string()))
            .collect();
        assert_eq!(flag["min_distance"], near[0].0, "the nearest is first: {flag}");
        assert!(near.is_sorted_by_key(|(distance, _)| *distance), "{flag}");
        let twice = all.insert(flag["id"].to_string(), sorted(near));
        assert!(twice.is_none(), "flagged twice: {flag}");
    }
    all
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn sorted_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn dedup(directory: &Path, arguments: &[&str]) -> Said {
    run(huntsman(directory).arg("dedup").args(arguments))
}

fn done(directory: &Path, arguments: &[&str]) -> Said {
    let said = dedup(directory, arguments);
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
    said
}

/// Tests everything that an index promises, for any kind of storage.
fn round_trip(index: &[&str], seed: u64) {
    eprintln!("seed {seed}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let stories = stories(&mut StdRng::seed_from_u64(seed), 24);
    write(&path.join("stories.jsonl"), &stories);
    let with = |command: &[&'static str]| -> Vec<String> {
        command.iter().chain(index).map(|part| (*part).to_owned()).collect()
    };
    let go = |arguments: &[String]| done(path, &arguments.iter().map(String::as_str).collect::<Vec<_>>());

    let add = with(&["add", "stories.jsonl", "--flags", "flags.jsonl", "--report", "report.json"]);
    go(&add);
    let flags = lines(path.join("flags.jsonl"));
    let naive_flags = naive(&stories, 3, false);
    assert!(naive_flags.len() > 50, "the stories have near-duplicates: {}", naive_flags.len());
    assert_eq!(flagged(&flags), naive_flags);
    let report = crate::common::lines(path.join("report.json")).remove(0);
    assert_eq!(
        [&report["processed"], &report["flagged"], &report["skipped_short"], &report["errors"]],
        [&json!(stories.len()), &json!(flags.len()), &json!(0), &json!(0)]
    );
    for key in ["elapsed_s", "cpu_s", "peak_rss_bytes", "index_bytes"] {
        assert!(report[key].is_number(), "{key}: {report}");
    }

    // The same day is added again.
    let before = std::fs::read(path.join("flags.jsonl")).unwrap();
    go(&add);
    assert_eq!(std::fs::read(path.join("flags.jsonl")).unwrap(), before);
    let report = crate::common::lines(path.join("report.json")).remove(0);
    assert_eq!([&report["flagged"], &report["unchanged"]], [&json!(0), &json!(stories.len())]);

    let said = go(&with(&["query", "stories.jsonl"]));
    assert_eq!(flagged(&json_lines(&said.stdout)), naive(&stories, 3, true));

    let hashes = done(path, &["hash", "stories.jsonl"]).stdout;
    let in_order: Vec<Value> = json_lines(&hashes).into_iter().map(|line| line["id"].clone()).collect();
    assert_eq!(in_order, stories.iter().map(|story| story["id"].clone()).collect::<Vec<_>>());
    let export = go(&with(&["export"])).stdout;
    assert_eq!(sorted_lines(&export), sorted_lines(&hashes));

    let stats = json_lines(&go(&with(&["stats", "--json"])).stdout).remove(0);
    assert_eq!(stats["documents"], stories.len());
    assert_eq!(stats["languages"]["HINDI"]["documents"], 24);
}

#[test]
fn a_directory_finds_what_comparing_all_finds() {
    for seed in [rand::random(), 7] {
        round_trip(&["--index", "index"], seed);
    }
}

#[test]
fn every_layout_of_redis_finds_what_comparing_all_finds() {
    for layout in ["compact", "seed", "log"] {
        let server = Server::start();
        round_trip(&["--index", &server.url(), "--layout", layout], rand::random());
    }
}

#[test]
fn a_build_finds_all_pairs_and_fingerprints_are_an_input_too() {
    let seed = rand::random();
    eprintln!("seed {seed}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let stories = stories(&mut StdRng::seed_from_u64(seed), 20);
    write(&path.join("stories.jsonl"), &stories);
    let hashes = done(path, &["hash", "stories.jsonl", "--jobs", "3"]).stdout;
    std::fs::write(path.join("hashes.jsonl"), &hashes).unwrap();
    done(path, &["build", "hashes.jsonl", "--index", "plain", "--k", "7"]);
    done(path, &["build", "hashes.jsonl", "--index", "flagged", "--k", "7", "--flags", "pairs.jsonl"]);
    assert_eq!(flagged(&lines(path.join("pairs.jsonl"))), naive(&stories, 7, false));
    for index in ["plain", "flagged"] {
        let said = done(path, &["query", "hashes.jsonl", "--index", index]);
        assert_eq!(
            flagged(&json_lines(&said.stdout)),
            naive(&stories, 7, true),
            "{index}: k is the index's own"
        );
        assert_eq!(sorted_lines(&done(path, &["export", "--index", index]).stdout), sorted_lines(&hashes));
    }
    // Building again duplicates nothing.
    done(path, &["build", "hashes.jsonl", "--index", "plain"]);
    assert_eq!(sorted_lines(&done(path, &["export", "--index", "plain"]).stdout), sorted_lines(&hashes));
}

/// Fingerprints in clusters, enough for many batches.
fn clusters(random: &mut StdRng, number: usize) -> Vec<Value> {
    let mut hashes: Vec<u128> = Vec::new();
    for at in 0..number {
        let hash = match hashes.get(random.random_range(0..at + 1)) {
            Some(hash) if random.random_bool(0.3) => hash ^ 1 << random.random_range(0..128),
            _ => random.random(),
        };
        hashes.push(hash);
    }
    let lang = |at: usize| if at.is_multiple_of(3) { "ta" } else { "hi" };
    let line =
        |(at, hash): (usize, &u128)| json!({"id": at, "lang": lang(at), "simhash": format!("{hash:032x}")});
    hashes.iter().enumerate().map(line).collect()
}

/// Starts the command repeatedly and kills it after increasing times, until it ends by itself. Returns the number of
/// kills.
fn kill_until_done(path: &Path, arguments: &[&str], random: &mut StdRng) -> u32 {
    let mut kills = 0;
    loop {
        let mut command = huntsman(path);
        command.arg("dedup").args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let most = 30 + 40 * u64::from(kills);
        std::thread::sleep(Duration::from_millis(random.random_range(5..most)));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "{arguments:?}: {status}");
                return kills;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
    }
}

#[test]
fn killed_at_any_time_nothing_is_lost_and_nothing_is_flagged_twice() {
    let seed: u64 = rand::random();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut random, 8_000);
    write(&path.join("day.jsonl"), &documents);
    let naive_flags = naive(&documents, 3, false);
    let exported = |index: &str| sorted_lines(&done(path, &["export", "--index", index]).stdout);
    let all = sorted_lines(&std::fs::read_to_string(path.join("day.jsonl")).unwrap());
    let server = Server::start();
    let url = server.url();
    for (index, flags) in [("index", "flags.jsonl"), (&*url, "redis.jsonl")] {
        let add = ["add", "day.jsonl", "--index", index, "--flags", flags];
        let kills = kill_until_done(path, &add, &mut random);
        eprintln!("{index}: {kills} kills of add");
        assert_eq!(flagged(&lines(path.join(flags))), naive_flags, "{index}");
        assert_eq!(exported(index), all, "{index}");
    }
    let kills = kill_until_done(path, &["build", "day.jsonl", "--index", "built"], &mut random);
    eprintln!("{kills} kills of build");
    assert_eq!(exported("built"), all);
}

#[test]
fn a_torn_last_flag_is_cut_off_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(1), 300);
    write(&path.join("day.jsonl"), &documents);
    let add = ["add", "day.jsonl", "--index", "index", "--flags", "flags.jsonl"];
    done(path, &add);
    let whole = std::fs::read_to_string(path.join("flags.jsonl")).unwrap();
    for cut in [1, 30, 200] {
        // This is the state after a kill while the flags of the first batch are being written: the index is still
        // empty.
        std::fs::remove_dir_all(path.join("index")).unwrap();
        std::fs::write(path.join("flags.jsonl"), &whole[..whole.len() - cut]).unwrap();
        let said = done(path, &add);
        assert!(said.stderr.contains("the end was not written whole"), "{}", said.stderr);
        assert_eq!(flagged(&lines(path.join("flags.jsonl"))), flagged(&json_lines(&whole)), "{cut}");
    }
}

#[test]
fn flags_with_sectors_that_a_power_cut_lost_are_cut_off_and_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(1), 300);
    write(&path.join("day.jsonl"), &documents);
    let add = ["add", "day.jsonl", "--index", "index", "--flags", "flags.jsonl"];
    done(path, &add);
    let whole = std::fs::read_to_string(path.join("flags.jsonl")).unwrap();
    for lost in [0..512, 512..1_024, 1_024..whole.len(), 0..whole.len()] {
        std::fs::remove_dir_all(path.join("index")).unwrap();
        let mut bytes = whole.clone().into_bytes();
        bytes[lost.clone()].fill(0);
        std::fs::write(path.join("flags.jsonl"), bytes).unwrap();
        let said = done(path, &add);
        assert!(said.stderr.contains("the end was not written whole"), "{lost:?}: {}", said.stderr);
        assert_eq!(flagged(&lines(path.join("flags.jsonl"))), flagged(&json_lines(&whole)), "{lost:?}");
    }
    let image = [&[0; 1_024][..], b"EFI PART\0\x01\x02\n"].concat();
    std::fs::write(path.join("flags.jsonl"), &image).unwrap();
    assert_eq!(dedup(path, &add).code, Some(2), "another file is not cut");
    assert_eq!(std::fs::read(path.join("flags.jsonl")).unwrap(), image);
}

#[test]
fn an_unreadable_record_is_reported_by_its_line_and_costs_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let good = |id: u32| format!("{{\"id\":{id},\"lang\":\"en\",\"text\":\"one two three\"}}\n").into_bytes();
    let bad: [(&[u8], &str); 11] = [
        (b"not json\n", "one JSON object"),
        (b"{\"id\":1,\"lang\":\"en\",\"text\":\"cut\n", "one JSON object"),
        (b"{\"id\":1,\"lang\":\"en\",\"text\":\"\xff\xfe\"}\n", "byte 29 is not UTF-8"),
        (b"{\"lang\":\"en\",\"text\":\"a\"}\n", "no id"),
        (b"{\"id\":-5,\"lang\":\"en\",\"text\":\"a\"}\n", "whole numbers from 0"),
        (b"{\"id\":1.5,\"lang\":\"en\",\"text\":\"a\"}\n", "whole numbers from 0"),
        (b"{\"id\":[1],\"lang\":\"en\",\"text\":\"a\"}\n", "whole numbers from 0"),
        (b"{\"id\":1,\"lang\":\"no such language\",\"text\":\"a\"}\n", "lang \"no such language\""),
        (b"{\"id\":1,\"lang\":\"en\"}\n", "neither text nor html nor simhash"),
        (b"{\"id\":1,\"lang\":\"en\",\"simhash\":\"xyz\"}\n", "32 hexadecimal digits"),
        (b"{\"id\":1,\"simhash\":\"00ff00a903020050811849801c12181f\"}\n", "use --lang"),
    ];
    let mut input = b"\xef\xbb\xbf".to_vec();
    input.extend(good(0));
    for (at, (line, _)) in bad.iter().enumerate() {
        input.extend(*line);
        input.extend(good(at as u32 + 1));
    }
    input.extend(format!("{{\"id\":99,\"text\":\"{}\"}}\n", "x".repeat(3_000)).into_bytes());
    input.extend(good(50));
    std::fs::write(path.join("day.jsonl"), &input).unwrap();
    let add = ["add", "day.jsonl", "--index", "index", "--max-document", "2000"];
    let said = done(path, &[&add[..], &["--report", "r.json", "--errors", "errors.jsonl"]].concat());
    for (at, (_, message)) in bad.iter().enumerate() {
        let start = format!("day.jsonl:{}: ", 2 * at + 2);
        let told = said.stderr.lines().find(|line| line.contains(&start)).unwrap_or_default();
        assert!(told.contains(message), "{message}: {told}\n{}", said.stderr);
    }
    assert!(said.stderr.contains("day.jsonl:24: longer than 2000 bytes"), "{}", said.stderr);
    let report = lines(path.join("r.json")).remove(0);
    assert_eq!(
        [&report["processed"], &report["errors"], &report["short"]],
        [&json!(13), &json!(12), &json!(13)]
    );
    assert_eq!(lines(path.join("errors.jsonl")).len(), 12);
    assert_eq!(done(path, &["export", "--index", "index"]).stdout.lines().count(), 13);
}

#[test]
fn ids_and_languages_come_back_as_they_were_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let text =
        "The quick brown fox jumps over the lazy dog and runs away from all of the hunters. ".repeat(5);
    let input = [
        json!({"id": 7, "lang": "en", "text": text}),
        json!({"id": "7", "lang": "ENGLISH", "text": text}),
        json!({"id": u64::MAX, "lang": "English", "html": format!("<p>{text}</p><script>no text</script>")}),
        json!({"id": "no lang", "text": text}),
        json!({"id": "html lang", "lang": null, "html": format!("<html lang=en-GB><p>{text}")}),
        json!({"id": "empty", "lang": "en", "text": " .,; "}),
        json!({"id": "short", "lang": "en", "text": "three short words"}),
        json!({"id": "short too", "lang": "en", "text": "three short words"}),
        json!({"id": "digits", "text": "12 34 56"}),
        json!({"id": 7, "lang": "en", "text": text.to_uppercase()}),
        json!({"id": "short", "lang": "en", "text": "three other words"}),
    ];
    write(&path.join("day.jsonl"), &input);
    let said = done(path, &["add", "day.jsonl", "--index", "index", "--report", "r.json"]);
    let flags = json_lines(&said.stdout);
    let told: Vec<(Value, Value, usize)> = flags
        .iter()
        .map(|flag| (flag["id"].clone(), flag["lang"].clone(), flag["matches"].as_array().unwrap().len()))
        .collect();
    let expected = [
        (json!("7"), json!("ENGLISH"), 1),
        (json!(u64::MAX), json!("English"), 2),
        (json!("no lang"), json!("en"), 3),
        (json!("html lang"), json!("en"), 4),
    ];
    assert_eq!(told, expected);
    assert!(flags[0].get("lang_confidence").is_none());
    assert!(flags[2]["lang_confidence"].as_f64().is_some_and(|sure| sure > 0.0 && sure <= 1.0));
    let order: Vec<&Value> = flags[3]["matches"].as_array().unwrap().iter().map(|near| &near["id"]).collect();
    assert_eq!(order, [&json!(7), &json!(u64::MAX), &json!("7"), &json!("no lang")], "numbers first");
    let report = lines(path.join("r.json")).remove(0);
    for (key, number) in
        [("processed", 11), ("skipped_short", 1), ("unchanged", 1), ("replaced", 1), ("unknown_language", 1)]
    {
        assert_eq!(report[key], number, "{key}: {report}");
    }
    assert!(
        said.stderr.contains("day.jsonl:11: id short of en was there with another text"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("of unknown language"), "{}", said.stderr);
    let more = done(path, &["add", "day.jsonl", "--index", "more", "--min-words", "3"]);
    let short: Vec<Value> =
        json_lines(&more.stdout).into_iter().filter(|flag| flag["id"] == "short too").collect();
    assert_eq!(short[0]["matches"], json!([{"id": "short", "distance": 0}]));
}

#[test]
fn export_spells_languages_as_the_first_input_did() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let story = |id: u32, lang: &str| json!({"id": id, "lang": lang, "simhash": format!("{id:032x}")});
    write(&path.join("a.jsonl"), &[story(1, "Hindi"), story(2, "en-GB"), story(3, "hi")]);
    write(&path.join("b.jsonl"), &[story(4, "hi"), story(5, "English"), story(6, "fr-CA"), story(7, "fr")]);
    let exported = |index: &[&str]| -> Vec<(Value, Value)> {
        let said = done(path, &[&["export"], index].concat());
        let line = |line: Value| (line["id"].clone(), line["lang"].clone());
        let mut all: Vec<_> = json_lines(&said.stdout).into_iter().map(line).collect();
        all.sort_by_key(|(id, _)| id.as_u64());
        all
    };
    let expected = ["Hindi", "en-GB", "Hindi", "Hindi", "English", "fr-CA", "fr"];
    let [compact, log, seed] = ["0", "1", "2"].map(|database| format!("{}/{database}", server.url()));
    let places: [&[&str]; 4] = [
        &["--index", "index"],
        &["--index", &compact],
        &["--index", &log, "--layout", "log"],
        &["--index", &seed, "--layout", "seed"],
    ];
    for index in places {
        done(path, &[&["build", "a.jsonl"], index].concat());
        done(path, &[&["add", "b.jsonl"], index].concat());
        let langs: Vec<Value> = exported(index).into_iter().map(|(_, lang)| lang).collect();
        if index.contains(&"seed") {
            assert_eq!([&langs[0], &langs[2], &langs[4]], ["hi", "hi", "en"]);
            assert!(!server.cli(&["-n", "2", "KEYS", "*"]).contains("spellings"));
        } else {
            assert_eq!(langs, expected, "{index:?}");
        }
    }
}

#[test]
fn packed_files_folders_lists_and_stdin_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"lang\":\"en\",\"text\":\"a text\"}}\n");
    let packed = |text: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap()
    };
    // The file has two gzip members, as when files are concatenated.
    std::fs::write(path.join("a.jsonl.gz"), [packed(&line("gz 1")), packed(&line("gz 2"))].concat()).unwrap();
    std::fs::write(path.join("b.jsonl.zst"), zstd::encode_all(line("zst").as_bytes(), 3).unwrap()).unwrap();
    std::fs::create_dir_all(path.join("folder/deep")).unwrap();
    std::fs::write(path.join("folder/b.txt"), "a text").unwrap();
    std::fs::write(path.join("folder/latin.txt"), b"na\xefve").unwrap();
    std::fs::write(path.join("folder/deep/17.html"), "<title>x</title><p>a text").unwrap();
    std::fs::write(path.join("folder/picture.png"), "no text").unwrap();
    let mut command = huntsman(path);
    command.args(["dedup", "hash", "a.jsonl.gz", "b.jsonl.zst", "folder", "-", "--lang", "en"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(line("stdin").trim_end().as_bytes()).unwrap();
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let ids: Vec<Value> = json_lines(&said.stdout).into_iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["gz 1", "gz 2", "zst", "b.txt", "deep/17.html", "stdin"]);
    assert!(said.stderr.contains("latin.txt: byte 3 is not UTF-8"), "{}", said.stderr);

    std::fs::write(path.join("ids.csv"), "title,id,lang,path\n\"a, b\",17,hi,\nc,5,,b.txt\nd,gone,,\n")
        .unwrap();
    let said = done(path, &["hash", "folder", "a.jsonl.gz", "--ids", "ids.csv"]);
    let told: Vec<(Value, Value)> =
        json_lines(&said.stdout).into_iter().map(|line| (line["id"].clone(), line["lang"].clone())).collect();
    assert_eq!((&told[0].0, told.len()), (&json!(5), 2));
    assert_eq!(told[1], (json!(17), json!("hi")));
    assert!(said.stderr.contains("1 of the list were not in the input, such as gone"), "{}", said.stderr);

    // The lines before the damage count, and so do other inputs.
    let cut = packed(&(0..5_000).map(|at| line(&at.to_string())).collect::<String>());
    std::fs::write(path.join("cut.jsonl.gz"), &cut[..cut.len() / 2]).unwrap();
    let said = dedup(path, &["hash", "cut.jsonl.gz", "b.jsonl.zst"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("cut.jsonl.gz:"), "{}", said.stderr);
    let read = json_lines(&said.stdout);
    assert!(read.len() > 100 && read.last().unwrap()["id"] == "zst", "{}", read.len());
}

#[test]
fn mistakes_are_reported_before_any_work() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write(&path.join("day.jsonl"), &clusters(&mut StdRng::seed_from_u64(1), 10));
    std::fs::write(path.join("notes.txt"), "my notes\n").unwrap();
    std::fs::write(path.join("titles.csv"), "title\nx\n").unwrap();
    done(path, &["build", "day.jsonl", "--index", "index"]);
    let cases: [(&[&str], &str); 14] = [
        (&["add", "day.jsonl", "--index", "index", "--k", "8"], "would not be exact"),
        (&["add", "day.jsonl", "--index", "index", "--k", "7"], "made for k = 3"),
        (&["query", "day.jsonl", "--index", "index", "--features", "char5"], "words-log"),
        (&["add", "day.jsonl", "--index", "index", "--features", "words-lg"], "did you mean words-log"),
        (&["query", "day.jsonl", "--index", "none"], "there is no index"),
        (&["stats", "--index", "none"], "there is no index"),
        (&["export", "--index", "none"], "there is no index"),
        (&["add", "none.jsonl", "--index", "new"], "none.jsonl"),
        (&["add", "day.jsonl", "--index", "new", "--flags", "notes.txt"], "something else than flags"),
        (&["add", "day.jsonl", "--index", "new", "--layout", "seed"], "--layout is for an index in Redis"),
        (&["add", "day.jsonl", "--index", "new", "--lang", "no lang"], "--lang"),
        (&["add", "day.jsonl", "--index", "new", "--ids", "titles.csv"], "no column id"),
        (&["add", "s3://", "--index", "new"], "s3://"),
        (&["add", "day.jsonl", "--index", "http://host/"], "redis://"),
    ];
    for (arguments, message) in cases {
        let said = dedup(path, arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(message), "{arguments:?}: {}", said.stderr);
    }
    assert!(!path.join("new").exists() && !path.join("none").exists());
    assert_eq!(std::fs::read_to_string(path.join("notes.txt")).unwrap(), "my notes\n");
}

/// A run that reads stdin, with the address of its metrics.
struct Live {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    address: String,
}

fn live(path: &Path, arguments: &[&str]) -> Live {
    let mut command = huntsman(path);
    command.args(["dedup", "add", "-", "--metrics", "127.0.0.1:0"]).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
    let address = address.trim_end().trim_end_matches("/metrics").to_owned();
    Live { child, stderr, address }
}

impl Live {
    fn feed(&mut self, documents: &[Value]) {
        let text: String = documents.iter().map(|line| line.to_string() + "\n").collect();
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Scrapes the metrics until they contain a line.
    fn wait_for(&self, line: &str) -> String {
        let mut text = String::new();
        for _ in 0..300 {
            text = self.metrics();
            if text.lines().any(|other| other.starts_with(line)) {
                return text;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{line} never came:\n{text}");
    }

    /// Closes the input; returns the exit code and stderr.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

#[test]
fn a_run_tells_its_metrics_and_holds_its_index() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(3), 1_500);
    let mut live = live(path, &["--index", "index", "--flags", "flags.jsonl", "--metrics-file", "end.prom"]);
    live.feed(&documents[..1_100]);
    // A batch has 1,024 documents; the rest waits for more input.
    let text = live.wait_for("huntsman_stage_seconds_count{lang=\"HINDI\",stage=\"insert\"} 682");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for line in [
        "huntsman_docs_processed_total{lang=\"TAMIL\"} 342",
        "huntsman_stage_seconds_bucket{lang=\"HINDI\",stage=\"query\",le=\"+Inf\"} 682",
        "huntsman_stage_seconds_count{lang=\"HINDI\",stage=\"fetch\"} 682",
        "huntsman_candidates_per_query_bucket{le=\"+Inf\"} ",
        "huntsman_heavy_bucket_total 0",
        "process_resident_memory_bytes ",
        "huntsman_index_docs{lang=\"HINDI\"} ",
        "huntsman_index_bytes{lang=\"\",part=\"log\"} ",
    ] {
        live.wait_for(line);
    }

    write(&path.join("other.jsonl"), &documents[..2]);
    let said = dedup(path, &["add", "other.jsonl", "--index", "index", "--flags", "other-flags.jsonl"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("wait for its end"), "{}", said.stderr);
    let said = dedup(path, &["add", "other.jsonl", "--index", "other", "--flags", "flags.jsonl"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("another process writes it"), "{}", said.stderr);

    live.feed(&documents[1_100..]);
    let (code, said) = live.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(flagged(&lines(path.join("flags.jsonl"))), naive(&documents, 3, false));
    let end = std::fs::read_to_string(path.join("end.prom")).unwrap();
    assert!(end.contains("\nhuntsman_docs_processed_total{lang=\"HINDI\"} 1000\n"), "{end}");
}

#[test]
fn a_lost_redis_server_is_reported_and_the_run_can_be_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(4), 3_000);
    let mut server = Server::builder().durable().start();
    let url = format!("{}?patience=0.3", server.url());
    let flags = ["--index", &url, "--flags", "flags.jsonl"];
    let mut live = live(path, &flags);
    live.feed(&documents[..1_024]);
    live.wait_for("huntsman_stage_seconds_count{lang=\"HINDI\",stage=\"insert\"} 682");
    server.kill();
    live.feed(&documents[1_024..2_048]);
    let (code, said) = live.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("run the same command again when the server is back"), "{said}");
    server.start_again();
    write(&path.join("day.jsonl"), &documents);
    done(path, &[&["add", "day.jsonl"], &flags[..]].concat());
    assert_eq!(flagged(&lines(path.join("flags.jsonl"))), naive(&documents, 3, false));
    let said = dedup(path, &["add", "day.jsonl", "--index", "redis://127.0.0.1:1/?patience=0.1"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let said = dedup(path, &["stats", "--index", &server.url(), "--features", "char5"]);
    assert_eq!(said.code, Some(2), "{}", said.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_the_run_can_be_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(5), 4_000);
    write(&path.join("day.jsonl"), &documents);
    let add = ["dedup", "add", "day.jsonl", "--index", "index", "--flags", "flags.jsonl"];
    // With blocks of 512 bytes or of 1 KiB: in either case the limit is reached before the whole index is written.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -f 60; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_huntsman")]);
    let full = run(shell.args(add).current_dir(path));
    assert_eq!(full.code, Some(1), "{}", full.stderr);
    assert!(full.stderr.contains("error:") && full.stderr.contains("processed"), "{}", full.stderr);
    done(path, &add[1..]);
    assert_eq!(flagged(&lines(path.join("flags.jsonl"))), naive(&documents, 3, false));
    let out: PathBuf = path.join("day.jsonl");
    let all = sorted_lines(&std::fs::read_to_string(out).unwrap());
    assert_eq!(sorted_lines(&done(path, &["export", "--index", "index"]).stdout), all);
}

#[cfg(unix)]
#[test]
fn an_interrupt_finishes_what_was_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let documents = clusters(&mut StdRng::seed_from_u64(6), 1_100);
    let mut live = live(path, &["--index", "index", "--flags", "flags.jsonl"]);
    live.feed(&documents);
    live.wait_for("huntsman_stage_seconds_count{lang=\"HINDI\",stage=\"insert\"} 682");
    let pid = live.child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let mut said = String::new();
    live.stderr.read_to_string(&mut said).unwrap();
    assert_eq!(live.child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.contains("run the same command again"), "{said}");
    assert_eq!(done(path, &["export", "--index", "index"]).stdout.lines().count(), 1_024);
}

#[test]
fn a_flipped_bit_is_found_by_verify_and_mended_by_repair() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let hash =
        |id: u64| json!({"id": id, "lang": "hi", "simhash": format!("{:032x}", rand::random::<u128>() | 1)});
    let all: Vec<Value> = (0..300).map(hash).collect();
    write(&dir.path().join("all.jsonl"), &all);
    let index = |what: &str, args: &[&str]| {
        let mut command = huntsman(dir.path());
        command.args(["dedup", what, "--index", "index"]).args(args);
        run(&mut command)
    };
    let add = || index("add", &["all.jsonl", "--flags", "flags.jsonl"]);
    assert_eq!(add().code, Some(0));
    let log = dir.path().join("index/log-0000000001");
    let whole = std::fs::read(&log).unwrap();
    let said = index("verify", &["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let verdict: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&verdict["whole"], &verdict["counts"]["documents"]), (&json!(true), &json!(300)));
    for _ in 0..20 {
        // The last 32 bytes only record that everything before them was synced.
        let at = rng.random_range(32..whole.len() - 32);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << rng.random_range(0..8);
        std::fs::write(&log, &bytes).unwrap();
        let said = index("query", &["all.jsonl"]);
        assert_eq!(said.code, Some(1), "bit in byte {at}: {said:?}");
        assert!(
            said.stderr.contains("log-0000000001") && said.stderr.contains("dedup repair"),
            "{}",
            said.stderr
        );
        let said = index("verify", &[]);
        assert_eq!(said.code, Some(1), "bit in byte {at}: {said:?}");
        assert!(said.stdout.contains("damaged") && said.stdout.contains("at byte"), "{}", said.stdout);
        assert_eq!(std::fs::read(&log).unwrap(), bytes, "nothing is changed");
        let said = index("repair", &[]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stdout.contains("lost") && said.stdout.contains("kept"), "{}", said.stdout);
        assert_eq!(std::fs::read(log.with_extension("damaged")).unwrap(), bytes);
        assert_eq!(index("verify", &[]).code, Some(0));
        assert_eq!(add().code, Some(0));
        let said = index("verify", &["--json"]);
        let verdict: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(verdict["counts"]["documents"], 300, "what was lost is there again");
    }
    let missing = run(huntsman(dir.path()).args(["dedup", "verify", "--index", "nothing"]));
    assert!(missing.code == Some(2) && missing.stderr.contains("no index"), "{missing:?}");
    assert!(!dir.path().join("nothing").exists());
}

#[cfg(unix)]
#[test]
fn archives_and_their_texts_are_inputs() {
    use huntsman_testkit::Site;

    let dir = tempfile::tempdir().unwrap();
    let text = |word: &str| (0..80).map(|n| format!("{word}{n}")).collect::<Vec<_>>().join(" ");
    let links = "<a href='/one'>1</a><a href='/two'>2</a><a href='/gone'>3</a>";
    let site = Site::builder()
        .page("/", format!("{links}<p>{}", text("root")))
        .page("/one", format!("<p>{}", text("same")))
        .page("/two", format!("<p class=other>{}", text("same")))
        .start_blocking();
    let said = run(crate::common::crawl(dir.path(), &site).args(["--warc", "archive"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let build = [
        "dedup",
        "build",
        "archive/*.warc.gz",
        "--index",
        "index",
        "--flags",
        "flags.jsonl",
        "--report",
        "report.json",
    ];
    let said = run(huntsman(dir.path()).args(build));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("records left out: 1 with another status than 200"), "{said:?}");
    let flags = lines(dir.path().join("flags.jsonl"));
    let two: Vec<String> = ["/one", "/two"].iter().map(|path| site.url(path).to_string()).collect();
    let line = flags[0].to_string();
    assert!(flags.len() == 1 && two.iter().all(|url| line.contains(url)), "{flags:?}");

    // The text of the first page, as an archive of texts has it.
    let text = text("same");
    let wet = format!(
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://other.example/\r\nWARC-Date: 2026-01-31T12:00:00Z\r\n\
         WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
        text.len()
    );
    std::fs::write(dir.path().join("texts.warc.wet"), wet).unwrap();
    let said = run(huntsman(dir.path()).args([
        "dedup",
        "query",
        "texts.warc.wet",
        "--index",
        "index",
        "--id",
        "url-date",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("20260131120000/http://other.example/") && said.stdout.contains(&two[0]),
        "{said:?}"
    );
    let said = run(huntsman(dir.path()).args(["dedup", "query", "none-*.warc.gz", "--index", "index"]));
    assert!(said.code == Some(2) && said.stderr.contains("no file matches the pattern"), "{said:?}");
}
