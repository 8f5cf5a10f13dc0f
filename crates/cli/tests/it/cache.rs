//! The HTTP cache and incremental crawls, through settings of the command; and `huntsman cache`.

use std::io::{Read, Write};
use std::path::Path;

use huntsman_testkit::{Answer, Gate, RunningSite, Site};
use serde_json::Value;

use crate::common::{Said, crawl, field, huntsman, lines, report, run, wait_for};

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
    let asked = site.requests().len();
    let second = crawl("two");
    assert_eq!(site.requests().len(), asked, "the second crawl asked the server");
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

/// Makes a cache of a small site with a crawl.
fn cached(directory: &Path) -> RunningSite {
    let large = "<p>many words</p>".repeat(2_000);
    let site = Site::builder()
        .page("/", "<a href='/a'>a</a><a href='/large'>l</a><a href='/moved'>m</a><a href='/packed'>p</a>")
        .page("/a", "a")
        .page("/large", large)
        .answer("/moved", Answer::redirect(302, "/a"))
        .answer("/packed", Answer::html(gzip(b"packed text")).header("content-encoding", "gzip"))
        .start_blocking();
    let mut command = crawl(directory, &site);
    command.args(["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache"]);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    site
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn cache(directory: &Path, args: &[&str]) -> Said {
    run(huntsman(directory).arg("cache").args(args))
}

fn listed(directory: &Path, args: &[&str]) -> Vec<Value> {
    let said = cache(directory, &[&["ls", "cache", "--json"], args].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn the_cache_is_listed_with_patterns_and_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let site = cached(dir.path());
    let all = listed(dir.path(), &[]);
    let expected = ["/", "/a", "/large", "/moved", "/packed"].map(|path| site.url(path).to_string());
    assert_eq!(field(&all, "url"), expected);
    let large = all.iter().find(|answer| answer["url"] == expected[2].as_str()).unwrap();
    assert_eq!(
        (&large["bytes"], &large["method"], &large["status"]),
        (&34_000.into(), &"GET".into(), &200.into())
    );
    assert!(large["stored_bytes"].as_u64().unwrap() < 2_000, "it is compressed: {large}");
    assert!(large["stored"].is_string() && large["used"].is_string() && large["varies_by"].is_object());
    assert_eq!(field(&listed(dir.path(), &["*/[al]*"]), "url"), expected[1..3]);
    assert_eq!(field(&listed(dir.path(), &["re:/moved$"]), "status"), ["302"]);
    let said = cache(dir.path(), &["ls", "cache"]);
    assert_eq!(said.stdout.lines().count(), 5);
    assert!(said.stdout.contains("  302  ") && said.stdout.contains("34.0 kB  GET   "), "{}", said.stdout);
    assert!(said.stderr.starts_with("5 responses, "), "{}", said.stderr);
    assert_eq!(cache(dir.path(), &["ls", "cache", "re:("]).code, Some(2));
}

#[test]
fn an_answer_is_printed_or_missed_with_exit_1() {
    let dir = tempfile::tempdir().unwrap();
    let site = cached(dir.path());
    let get = |path: &str, args: &[&str]| {
        let url = site.url(path).to_string();
        let made = [&["cache", "get", "cache", &url], args].concat();
        huntsman(dir.path()).args(made).output().unwrap()
    };
    assert_eq!(get("/a", &[]).stdout, b"a");
    assert_eq!(get("/large", &["--body"]).stdout.len(), 34_000);
    assert_eq!(get("/packed#fragment", &[]).stdout, b"packed text");
    assert_eq!(get("/packed", &["--raw"]).stdout, gzip(b"packed text"));
    let headers = String::from_utf8(get("/moved", &["--headers"]).stdout).unwrap();
    assert!(headers.starts_with("HTTP/1.1 302 Found\n") && headers.contains("location: /a\n"), "{headers}");
    for (path, args) in [("/none", &[][..]), ("/a", &["--method", "POST"]), ("/a", &["--variant", "2"])] {
        let missed = get(path, args);
        assert_eq!((missed.status.code(), missed.stdout.len()), (Some(1), 0), "{path} {args:?}");
        assert!(String::from_utf8_lossy(&missed.stderr).contains("is not stored in cache"));
    }
    assert_eq!(get("/a", &["--headers", "--body"]).status.code(), Some(2));
}

#[test]
fn answers_are_removed_and_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let site = cached(dir.path());
    let url = site.url("/a").to_string();
    let said = cache(dir.path(), &["rm", "cache", &url]);
    assert!(said.code == Some(0) && said.stderr.starts_with("removed 1 response, "), "{said:?}");
    assert_eq!(cache(dir.path(), &["rm", "cache", &url]).code, Some(1), "it is gone");
    let asked = site.count("/a");
    let mut again = crawl(dir.path(), &site);
    again.args(["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache", "--out", "again"]);
    assert_eq!(run(&mut again).code, Some(0));
    assert_eq!((site.count("/a"), site.count("/large")), (asked + 1, 1));
    assert!(
        cache(dir.path(), &["rm", "cache", "--older-than", "1h"]).stderr.starts_with("removed 0 responses")
    );
    assert_eq!(listed(dir.path(), &[]).len(), 5);
    assert!(
        cache(dir.path(), &["rm", "cache", "--older-than", "0"]).stderr.contains("; 0 responses, 0 B left")
    );
    assert_eq!(cache(dir.path(), &["rm", "cache", "--all"]).code, Some(0));
    for wrong in [
        &["rm", "cache"][..],
        &["rm", "cache", &url, "--all"],
        &["rm", "nowhere", "--all"],
        &["ls", "nowhere"],
    ] {
        assert_eq!(cache(dir.path(), wrong).code, Some(2), "{wrong:?}");
    }
    assert!(!dir.path().join("nowhere").exists());
}

/// A record of a WARC file: its fields and its block.
type Record = (Vec<(String, String)>, Vec<u8>);

/// Parses records exactly as the standard describes them, independently of our own code.
fn records(file: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        let mut record = Vec::new();
        member.read_to_end(&mut record).expect("a gzip member");
        rest = member.into_inner();
        let end = record.windows(4).position(|window| window == b"\r\n\r\n").expect("the end of the head");
        let head = std::str::from_utf8(&record[..end]).expect("the head is UTF-8");
        let mut lines = head.split("\r\n");
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let fields: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").expect("a field"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let block = &record[end + 4..];
        let length: usize = get(&fields, "Content-Length").parse().expect("a length");
        assert_eq!(&block[length..], b"\r\n\r\n", "two line ends, and nothing behind them");
        records.push((fields, block[..length].to_vec()));
    }
    records
}

fn get<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found: Vec<&str> =
        fields.iter().filter(|(field, _)| field == name).map(|(_, value)| &**value).collect();
    assert_eq!(found.len(), 1, "{name} in {fields:?}");
    found[0]
}

#[test]
fn an_exported_archive_has_every_answer_in_a_member_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let site = cached(dir.path());
    let said = cache(dir.path(), &["export-warc", "cache", "--out", "site.warc.gz"]);
    assert!(said.code == Some(0) && said.stderr.starts_with("wrote 5 responses"), "{said:?}");
    let records = records(&std::fs::read(dir.path().join("site.warc.gz")).unwrap());
    let (info, fields) = &records[0];
    assert_eq!((get(info, "WARC-Type"), get(info, "WARC-Filename")), ("warcinfo", "site.warc.gz"));
    assert!(String::from_utf8_lossy(fields).starts_with("software: huntsman/"));
    let id = get(info, "WARC-Record-ID");
    let mut bodies = std::collections::BTreeMap::new();
    let mut ids = std::collections::BTreeSet::from([id]);
    for (fields, block) in &records[1..] {
        assert_eq!(get(fields, "WARC-Type"), "response");
        assert_eq!(get(fields, "Content-Type"), "application/http;msgtype=response");
        assert_eq!(get(fields, "WARC-Warcinfo-ID"), id);
        assert!(ids.insert(get(fields, "WARC-Record-ID")), "ids are unique");
        assert!(get(fields, "WARC-Date").ends_with('Z'));
        let end = block.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(block[..end].to_vec()).unwrap();
        assert!(head.starts_with("HTTP/1.1 "), "{head}");
        let body = &block[end + 4..];
        assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{head}");
        assert!(!head.contains("\r\ntransfer-encoding"), "{head}");
        bodies.insert(get(fields, "WARC-Target-URI").to_owned(), body.to_vec());
    }
    let urls = ["/", "/a", "/large", "/moved", "/packed"].map(|path| site.url(path).to_string());
    assert!(bodies.keys().eq(&urls));
    assert_eq!((&bodies[&urls[1]][..], bodies[&urls[2]].len()), (&b"a"[..], 34_000));
    assert_eq!(bodies[&urls[4]], gzip(b"packed text"), "as it came");

    let again = cache(dir.path(), &["export-warc", "cache", "--out", "site.warc.gz"]);
    assert!(again.code == Some(2) && again.stderr.contains("exists"), "{again:?}");
    let some =
        huntsman(dir.path()).args(["cache", "export-warc", "cache", "*/a", "--out", "-"]).output().unwrap();
    assert_eq!(self::records(&some.stdout).len(), 2);
}

#[test]
fn a_cache_in_use_is_said() {
    let dir = tempfile::tempdir().unwrap();
    drop(cached(dir.path()));
    let gate = Gate::default();
    let site = Site::builder().answer("/", Answer::html("slow").behind(&gate)).start_blocking();
    let mut running = crawl(dir.path(), &site);
    running.args(["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache", "--out", "slow"]);
    let mut child = running.spawn().unwrap();
    wait_for(&site, "/");
    for args in
        [&["ls", "cache"][..], &["rm", "cache", "--all"], &["export-warc", "cache", "--out", "x.warc.gz"]]
    {
        let said = cache(dir.path(), args);
        assert_eq!(said.code, Some(1), "{args:?}: {said:?}");
        assert!(said.stderr.contains("another process"), "{args:?}: {}", said.stderr);
    }
    assert!(!dir.path().join("x.warc.gz").exists() && !dir.path().join("x.warc.gz.new").exists());
    gate.open();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(listed(dir.path(), &[]).len(), 6);
}
