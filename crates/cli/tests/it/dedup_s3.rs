//! `huntsman dedup` with a bucket: which objects it reads, in which order, and how it handles failures.

#![cfg(feature = "s3")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::moto::Server;
use huntsman_testkit::redis::{Counted, Cuts, Proxy};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::common::stories::stories;
use crate::common::{Said, huntsman, lines, run, said};

/// The command with an endpoint and credentials.
fn at(endpoint: &str, directory: &Path) -> Command {
    let mut command = huntsman(directory);
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.env("AWS_ENDPOINT_URL", endpoint).env("NO_PROXY", "127.0.0.1,localhost");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

/// Environment variables to set or to remove.
type Changes<'a> = &'a [(&'a str, Option<&'a str>)];

fn dedup(server: &Server, directory: &Path, arguments: &[&str]) -> Said {
    run(at(&server.url(), directory).arg("dedup").args(arguments))
}

fn done(server: &Server, directory: &Path, arguments: &[&str]) -> Said {
    let said = dedup(server, directory, arguments);
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
    said
}

fn ids(said: &Said) -> Vec<Value> {
    let id = |line: &str| serde_json::from_str::<Value>(line).expect("a JSON line")["id"].clone();
    said.stdout.lines().map(id).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

/// Stories in ten languages in compressed and plain files, in folders whose names test the order.
fn files(seed: u64) -> BTreeMap<String, Vec<u8>> {
    let stories = stories(&mut StdRng::seed_from_u64(seed), 24);
    let json_lines = |part: &[Value]| -> Vec<u8> {
        part.iter().flat_map(|story| (story.to_string() + "\n").into_bytes()).collect()
    };
    let text = |story: &Value| story["text"].as_str().expect("a text").to_owned();
    let (packed, rest) = stories.split_at(80);
    let (other, rest) = rest.split_at(60);
    let (plain, single) = rest.split_at(40);
    let mut files = BTreeMap::new();
    files.insert("deep/one.jsonl.gz".to_owned(), gzip(&json_lines(packed)));
    files.insert("deep/er/two.ndjson.zst".to_owned(), zstd::encode_all(&*json_lines(other), 3).unwrap());
    // This object is longer than a piece that is fetched at once.
    let long = json!({"id": "long", "lang": "en", "text": "a long text", "pad": "x".repeat(3 << 20)});
    let all = [json_lines(plain), json_lines(&[long]), json_lines(&plain[..20])].concat();
    files.insert("deep.jsonl".to_owned(), all);
    for (number, story) in single.iter().enumerate() {
        let name = match number % 4 {
            0 => format!("deep-{number}.txt"),
            1 => format!("deep/a b+{number}%41.txt"),
            2 => format!("कहानी/{number} &=?#.html"),
            _ => format!("zz/{number}/story.TXT"),
        };
        let body = if name.ends_with(".html") { format!("<p>{}</p>", text(story)) } else { text(story) };
        files.insert(name, body.into_bytes());
    }
    files.insert("deep/empty.txt".to_owned(), Vec::new());
    files.insert("deep/empty.jsonl".to_owned(), Vec::new());
    files.insert("picture.png".to_owned(), b"no text".to_vec());
    files
}

fn put_in_folder(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Flags without their times.
fn flags(path: &Path) -> Vec<Value> {
    let mut flags = lines(path);
    flags.iter_mut().for_each(|flag| {
        flag.as_object_mut().expect("an object").remove("ts");
    });
    flags
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_bucket_gives_what_the_same_folder_gives_also_over_connections_that_break() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let files = files(11);
    put_in_folder(&path.join("folder"), &files);
    server.make_bucket("stories");
    for (name, bytes) in &files {
        server.put("stories", &format!("day/{name}"), bytes);
        server.put("stories", &format!("day-old/{name}"), b"{\"id\":\"not of this day\"}");
    }
    done(&server, path, &["add", "folder", "--index", "a", "--flags", "a.jsonl"]);
    let expected = flags(&path.join("a.jsonl"));
    assert!(expected.len() > 30, "{}", expected.len());

    let arguments = ["add", "s3://stories/day", "--index", "b", "--flags", "b.jsonl"];
    let said = done(&server, path, &arguments);
    assert_eq!(flags(&path.join("b.jsonl")), expected, "{}", said.stderr);
    let exported = done(&server, path, &["export", "--index", "a"]).stdout;
    assert_eq!(sorted(&done(&server, path, &["export", "--index", "b"]).stdout), sorted(&exported));
    let hashed = done(&server, path, &["hash", "folder"]).stdout;
    assert_eq!(done(&server, path, &["hash", "s3://stories/day/"]).stdout, hashed, "also in the same order");

    // Repeating the run changes nothing.
    let written = std::fs::read(path.join("b.jsonl")).unwrap();
    let again = done(&server, path, &[&arguments[..], &["--report", "again.json"]].concat());
    assert_eq!(std::fs::read(path.join("b.jsonl")).unwrap(), written, "{}", again.stderr);
    let report: Value = serde_json::from_slice(&std::fs::read(path.join("again.json")).unwrap()).unwrap();
    assert_eq!((&report["flagged"], &report["errors"]), (&json!(0), &json!(0)));
    assert_eq!(
        report["unchanged"].as_u64().unwrap() + report["skipped_short"].as_u64().unwrap(),
        report["processed"]
    );

    // Many responses are cut off, some in the middle of a piece; the rest of the object is then fetched.
    let proxy = Proxy::start(server.port());
    let cuts = Cuts { seed: 5, max_bytes: 1_500_000, counted: Counted::Answers };
    println!("{cuts:?}");
    proxy.cut(Some(cuts));
    let said = run(at(&format!("http://127.0.0.1:{}", proxy.port()), path).args([
        "dedup",
        "hash",
        "s3://stories/day",
    ]));
    assert_eq!((said.code, said.stdout == hashed), (Some(0), true), "{}", said.stderr);

    // One object with lines, one with a document, and one with lines under another name.
    server.put("stories", "odd", b"{\"id\":7,\"lang\":\"en\",\"text\":\"a text\"}\n");
    let one = |input: &str| ids(&done(&server, path, &["hash", input]));
    assert_eq!(one("s3://stories/odd"), [json!(7)]);
    assert_eq!(one("s3://stories/day/deep/one.jsonl.gz").len(), 80);
    assert_eq!(one("s3://stories/day/zz/3/story.TXT"), [json!("story.TXT")]);
}

#[test]
fn more_objects_than_a_page_come_in_order_and_a_list_fetches_only_its_own() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    server.make_bucket("many");
    // An object that is no document is listed but not fetched.
    let is_story = |number: &usize| number % 20 == 17;
    for number in 0..1_050 {
        let name = format!("{number}.{}", if is_story(&number) { "txt" } else { "png" });
        server.put("many", &name, format!("story {name}").as_bytes());
    }
    let mut names: Vec<String> = (0..1_050).filter(is_story).map(|number| format!("{number}.txt")).collect();
    names.sort();
    let said = done(&server, path, &["hash", "s3://many", "--lang", "en"]);
    assert_eq!(ids(&said), names);
    assert_eq!(server.log().matches("GET /many/").count(), names.len(), "{}", server.log());

    // A name with two slashes in a row cannot be requested; only that object is lost.
    server.put("many", "57//5.txt", b"a story");
    server.put("many", "//x.jsonl", b"");
    server.put("many", "a/../b.png", b"");
    let said = dedup(&server, path, &["hash", "s3://many", "--lang", "en"]);
    assert_eq!((said.code, ids(&said) == names), (Some(1), true), "{}", said.stderr);
    assert!(
        said.stderr.contains("s3://many/57//5.txt: ") && said.stderr.contains("s3://many///x.jsonl: "),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("b.png"), "{}", said.stderr);

    let before = server.log().matches("GET /many/").count();
    std::fs::write(path.join("ids.csv"), "id,path\n5001,17.txt\n5002,1037.txt\n1017.txt,\n5009,gone.txt\n")
        .unwrap();
    let said = dedup(&server, path, &["hash", "s3://many", "--lang", "en", "--ids", "ids.csv"]);
    assert_eq!(ids(&said), [json!("1017.txt"), json!(5002), json!(5001)]);
    assert!(said.stderr.contains("1 of the list were not in the input, such as 5009"), "{}", said.stderr);
    assert_eq!(server.log().matches("GET /many/").count() - before, 3, "{}", server.log());
}

#[test]
fn a_broken_record_is_reported_by_object_and_line_and_costs_no_other() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    server.make_bucket("day");
    let line = |id: &str| format!("{{\"id\":\"{id}\",\"lang\":\"en\",\"text\":\"a text\"}}\n");
    let packed = gzip((0..5_000).map(|at| line(&at.to_string())).collect::<String>().as_bytes());
    server.put("day", "a/cut.jsonl.gz", &packed[..packed.len() / 2]);
    server.put("day", "a/good.jsonl", format!("{}no json\n{}", line("good 1"), line("good 2")).as_bytes());
    server.put("day", "a/latin.txt", b"na\xefve");
    server.put("day", "a/long.txt", "word ".repeat(1_000).as_bytes());
    server.put("day", "a/long.jsonl", format!("{}{}", line(&"x".repeat(5_000)), line("short")).as_bytes());
    server.put("day", "a/z.txt", b"the last one");
    let arguments =
        ["hash", "s3://day/a", "--lang", "en", "--max-document", "4096", "--errors", "errors.jsonl"];
    let said = dedup(&server, path, &arguments);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let read = ids(&said);
    assert!(read.len() > 100, "{}", read.len());
    assert_eq!(read[read.len() - 4..], ["good 1", "good 2", "short", "z.txt"]);
    for told in [
        "s3://day/a/cut.jsonl.gz:",
        "s3://day/a/good.jsonl:2: ",
        "s3://day/a/latin.txt: byte 3 is not UTF-8",
        "s3://day/a/long.txt: longer than 4096 bytes; raise --max-document",
        "s3://day/a/long.jsonl:1: longer than 4096 bytes",
    ] {
        assert!(said.stderr.contains(told), "{told}: {}", said.stderr);
    }
    let errors = lines(path.join("errors.jsonl"));
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert_eq!((&errors[1]["source"], &errors[1]["line"]), (&json!("s3://day/a/good.jsonl"), &json!(2)));
}

#[test]
fn mistakes_are_reported_before_any_work() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let path = directory.path();
    server.make_bucket("day");
    server.put_public("day", "open.jsonl", b"{\"id\":1,\"lang\":\"en\",\"text\":\"a text\"}\n");
    server.put("day", "a//b.txt", b"a text");
    let url = server.url();
    let add = |input: &str, changes: Changes<'_>| {
        let mut command = at(&url, path);
        for (name, value) in changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(command.args(["dedup", "add", input, "--index", "new"]))
    };
    let none: Changes<'_> = &[];
    let cases: [(&str, Changes<'_>, i32, &[&str]); 11] = [
        ("s3://gone/x", none, 2, &["NoSuchBucket", "AWS_REGION"]),
        (
            "s3://day/none",
            none,
            2,
            &["s3://day/none: there is neither an object of this name nor one under it"],
        ),
        ("s3://day/none/", none, 2, &["nor one under it"]),
        ("s3://day/a//b.txt", none, 2, &["two slashes in a row"]),
        ("s3://", none, 2, &["s3://BUCKET"]),
        ("s3://user@day/x", none, 2, &["s3://BUCKET"]),
        (
            "s3://day",
            &[("AWS_ENDPOINT_URL", Some("http://127.0.0.1:1"))],
            1,
            &["refused", "AWS_ENDPOINT_URL"],
        ),
        (
            "s3://day",
            &[("AWS_ENDPOINT_URL", Some("http://10.0.0.1"))],
            2,
            &["in the clear", "AWS_ALLOW_HTTP"],
        ),
        ("s3://day", &[("AWS_ENDPOINT_URL", Some("nonsense"))], 2, &["AWS_ENDPOINT_URL nonsense"]),
        ("s3://day", &[("AWS_MAX_ATTEMPTS", Some("0"))], 2, &["AWS_MAX_ATTEMPTS 0"]),
        ("s3://day", &[("AWS_SECRET_ACCESS_KEY", None)], 2, &["AWS_SECRET_ACCESS_KEY"]),
    ];
    for (input, changes, code, told) in cases {
        let said = add(input, changes);
        assert_eq!(said.code, Some(code), "{input} {changes:?}: {}", said.stderr);
        for told in told {
            assert!(said.stderr.contains(told), "{input} {changes:?}: {told}: {}", said.stderr);
        }
    }
    assert!(!path.join("new").exists());
    let anonymous: Changes<'_> =
        &[("AWS_ACCESS_KEY_ID", None), ("AWS_SECRET_ACCESS_KEY", None), ("AWS_SKIP_SIGNATURE", Some("true"))];
    let said = add("s3://day/open.jsonl", anonymous);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    std::fs::remove_dir_all(path.join("new")).unwrap();
    server.put("day", "closed.jsonl", b"{\"id\":1,\"lang\":\"en\",\"text\":\"a text\"}\n");
    let denied = add("s3://day/closed.jsonl", anonymous);
    server.lock();
    let unknown = add("s3://day/open.jsonl", none);
    for (said, told) in [(denied, "access is denied"), (unknown, "InvalidAccessKeyId")] {
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(told) && said.stderr.contains("AWS_ACCESS_KEY_ID"), "{}", said.stderr);
    }
    assert!(!path.join("new").exists());
}

/// A run whose output is not read until [`Held::rest`], so that it blocks in the middle of the first, long object.
struct Held(std::process::Child);

impl Held {
    /// A bucket with a long object before the others.
    fn start(server: &Server, path: &Path, others: usize) -> Self {
        server.make_bucket("day");
        let line =
            json!({"lang": "en", "simhash": "7449c7685b0c642c0292f31604708d03", "pad": "x".repeat(500)});
        let long: String = (0..70_000)
            .map(|number| {
                let mut line = line.clone();
                line["id"] = json!(number);
                line.to_string() + "\n"
            })
            .collect();
        server.put("day", "a.jsonl", long.as_bytes());
        for number in 0..others {
            server.put("day", &format!("b{number:04}.txt"), format!("story {number}").as_bytes());
        }
        let mut command = at(&server.url(), path);
        command
            .args(["dedup", "hash", "s3://day", "--lang", "en", "--jobs", "1"])
            .env("AWS_MAX_ATTEMPTS", "2");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        // Names are listed before any object is fetched. Sixteen pieces are fetched ahead, so more requests mean that
        // the first pieces were read.
        let start = Instant::now();
        while server.log().matches("\"GET /day/a.jsonl HTTP/1.1\" 206").count() < 18 {
            assert!(start.elapsed() < Duration::from_secs(120), "{}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Self(child)
    }

    fn rest(mut self) -> Said {
        let mut stdout = self.0.stdout.take().expect("it is piped");
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).map(|_| all)
        });
        let mut output = self.0.wait_with_output().expect("an own child can be waited for");
        output.stdout = reader.join().expect("a reader does not panic").expect("a pipe can be read");
        said(output)
    }
}

#[test]
fn objects_that_are_removed_or_changed_meanwhile_are_reported_and_cost_no_other() {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let held = Held::start(&server, directory.path(), 5);
    server.delete("day", "b0001.txt");
    server.delete("day", "b0003.txt");
    server.put("day", "b0003.txt", b"another story");
    let said = held.rest();
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let read = ids(&said);
    assert_eq!(read[70_000..], ["b0000.txt", "b0002.txt", "b0004.txt"]);
    assert!(said.stderr.contains("s3://day/b0001.txt: it is not there any more"), "{}", said.stderr);
    assert!(said.stderr.contains("s3://day/b0003.txt: it was changed"), "{}", said.stderr);
}

#[test]
fn a_server_that_goes_away_ends_the_input_and_never_an_object_in_its_middle() {
    let (mut server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let held = Held::start(&server, directory.path(), 100);
    server.kill();
    let said = held.rest();
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let read = ids(&said);
    assert!(!read.is_empty() && read.len() < 70_000, "{}", read.len());
    assert!(read.iter().enumerate().all(|(at, id)| *id == at), "lines came in order");
    assert!(said.stderr.contains("s3://day/a.jsonl:"), "{}", said.stderr);
    assert!(said.stderr.contains("does not answer any more"), "{}", said.stderr);
    // The run stops and does not try one object after the other.
    assert!(said.stderr.lines().count() < 100, "{}", said.stderr);
}

/// A server that lists one object and always names a continuation token, these ones in turn.
fn circling(tokens: &'static [&'static str]) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut listed = 0;
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let body = if head.windows(9).any(|part| part == b"list-type") {
                let (token, name) = (tokens[listed % tokens.len()], format!("{listed}.txt"));
                listed += 1;
                format!(
                    "<ListBucketResult><IsTruncated>true</IsTruncated>\
                     <NextContinuationToken>{token}</NextContinuationToken><Contents><Key>{name}</Key><Size>4</Size>\
                     <LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"e\"</ETag></Contents>\
                     </ListBucketResult>"
                )
            } else {
                "text".to_owned()
            };
            let headers = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nETag: \"e\"\r\nConnection: close";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[test]
fn a_listing_that_repeats_where_to_go_on_ends_with_an_error() {
    for tokens in [&["again"][..], &["one", "two", "three"]] {
        let directory = tempfile::tempdir().unwrap();
        let said = run(at(&circling(tokens), directory.path()).args(["dedup", "hash", "s3://bucket/"]));
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        assert!(said.stderr.contains("the listing broke off"), "{}", said.stderr);
        assert!(said.stderr.contains("a token that it gave before"), "{}", said.stderr);
        assert!(said.stderr.lines().count() < 50, "{}", said.stderr);
    }
}
