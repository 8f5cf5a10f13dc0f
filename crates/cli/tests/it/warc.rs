//! `crawl --warc` and `huntsman warc`, judged by other programs that read archives.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site, sites};
use serde_json::Value;

use crate::common::{Said, crawl, field, huntsman, lines, run};

/// Runs a Python program over files; the interpreter has warcio and cdxj-indexer.
fn python(program: &str, arguments: &[PathBuf]) -> (bool, String) {
    let out = Command::new("warc-python").args(["-c", program]).args(arguments).output();
    let out = out.expect("warc-python (Python with warcio and cdxj-indexer) is in PATH: run ./setup.sh");
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    (out.status.success(), said)
}

fn warc(directory: &Path, args: &[&str]) -> Said {
    run(huntsman(directory).arg("warc").args(args))
}

/// The finished files of an archive.
fn files(archive: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(archive).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.iter().all(|path| path.to_string_lossy().ends_with(".warc.gz")), "{files:?}");
    files
}

/// All readers accept the files, and the records of each type are counted.
fn assert_accepted(directory: &Path, archive: &str) -> BTreeMap<String, usize> {
    let files = files(&directory.join(archive));
    let (passes, said) =
        python("import sys\nfrom warcio.cli import main\nmain(['check', '-v'] + sys.argv[1:])", &files);
    assert!(
        passes && said.contains("digest pass") && !said.contains("digest present but not checked\n"),
        "{said}"
    );
    for file in &files {
        assert!(Command::new("gzip").arg("-t").arg(file).status().unwrap().success(), "{file:?}");
    }
    let said = warc(directory, &["check", archive]);
    assert!(said.code == Some(0) && said.stdout.is_empty(), "{said:?}");
    let (passes, expected) =
        python("import sys\nfrom cdxj_indexer.main import main\nmain(['-s', '-p'] + sys.argv[1:])", &files);
    assert!(passes, "{expected}");
    let said = warc(directory, &["index", archive]);
    assert!(said.code == Some(0), "{said:?}");
    assert_eq!(said.stdout, expected, "line for line as cdxj-indexer");
    let mut kinds = BTreeMap::new();
    for record in records(directory, archive) {
        *kinds.entry(record["type"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    kinds
}

fn records(directory: &Path, archive: &str) -> Vec<Value> {
    let said = warc(directory, &["ls", "--json", archive]);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn mixed() -> RunningSite {
    let same = "<p>the same words</p>".repeat(400);
    Site::builder()
        .robots("User-agent: *\nDisallow: /closed\n")
        .page(
            "/",
            "<a href='/packed'>p</a><a href='/moved'>m</a><a href='/missing'>n</a><a href='/empty'>e</a>\
             <a href='/x?b=2&a=1'>x</a><a href='/copy'>c</a><a href='/%C3%A4/./Dir/'>d</a>",
        )
        .answer("/packed", Answer::html(gzip(b"<p>packed text</p>")).header("content-encoding", "gzip"))
        .answer("/moved", Answer::redirect(302, "/target"))
        .page("/target", "<p>moved here</p>")
        .page("/empty", "")
        .page("/x?b=2&a=1", same.clone())
        .page("/copy", same)
        .page("/%C3%A4/Dir/", "<p>umlaut</p>")
        .start_blocking()
}

fn archived(directory: &Path, site: &RunningSite, out: &str) -> Said {
    let mut command = crawl(directory, site);
    command.args(["--warc", "archive", "--out", out, "--set", "robotstxt_obey=true"]);
    run(&mut command)
}

#[test]
fn every_exchange_is_archived_and_other_programs_accept_the_files() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    let said = archived(dir.path(), &site, "one");
    assert_eq!(said.code, Some(0), "{said:?}");
    let kinds = assert_accepted(dir.path(), "archive");
    let requests = site.requests().len();
    let count = |kind: &str| kinds.get(kind).copied().unwrap_or_default();
    assert_eq!(count("response") + count("revisit"), requests, "{kinds:?}");
    assert_eq!((count("request"), count("metadata")), (requests, requests));
    assert_eq!((count("warcinfo"), count("revisit")), (1, 1));
    let records = records(dir.path(), "archive");
    let answers =
        records.iter().filter(|record| matches!(record["type"].as_str(), Some("response" | "revisit")));
    let archived: BTreeSet<String> =
        answers.map(|record| record["url"].as_str().unwrap().to_owned()).collect();
    let asked: BTreeSet<String> = site.targets().iter().map(|target| site.url(target).to_string()).collect();
    assert_eq!(archived, asked);
    assert!(asked.iter().any(|url| url.ends_with("/robots.txt")));
}

#[test]
fn a_second_crawl_into_the_folder_refers_to_the_first() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    let before = assert_accepted(dir.path(), "archive");
    assert_eq!(archived(dir.path(), &site, "two").code, Some(0));
    let after = assert_accepted(dir.path(), "archive");
    // What has no body, and the page that does not exist, is not worth a reference.
    let fresh = after["response"] - before["response"];
    assert!(fresh <= 3, "{before:?} {after:?}");
    assert!(after["revisit"] >= before["revisit"] + before["response"] - 3, "{before:?} {after:?}");
    let url = site.url("/copy").to_string();
    let said = warc(dir.path(), &["get", "archive", &url]);
    assert!(said.code == Some(0) && said.stdout.starts_with("<p>the same words</p>"), "{said:?}");
}

#[test]
fn get_gives_the_decoded_body_and_the_head() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    let url = site.url("/packed").to_string();
    assert_eq!(warc(dir.path(), &["get", "archive", &url]).stdout, "<p>packed text</p>");
    let head = warc(dir.path(), &["get", "archive", &url, "--headers", "--at", "20010101000000"]).stdout;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-encoding: gzip"), "{head}");
    let missing = warc(dir.path(), &["get", "archive", "http://other.example/"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("no record of it"), "{missing:?}");
    assert_eq!(warc(dir.path(), &["get", "archive", &url, "--at", "yesterday"]).code, Some(2));
}

#[test]
fn damage_is_told_with_file_and_offset() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    let path = files(&dir.path().join("archive")).remove(0);
    let whole = std::fs::read(&path).unwrap();
    let records = records(dir.path(), "archive");
    let hit = &records[3];
    let offset = usize::try_from(hit["offset"].as_u64().unwrap()).unwrap();
    let mut flipped = whole.clone();
    flipped[offset + 60] ^= 0x10;
    std::fs::write(&path, flipped).unwrap();
    let said = warc(dir.path(), &["check", "archive"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout.contains(&format!("{} at byte {offset}:", path.file_name().unwrap().to_str().unwrap())),
        "{said:?}"
    );
    let said = warc(dir.path(), &["ls", "archive"]);
    assert_eq!((said.code, said.stdout.lines().count()), (Some(1), records.len() - 1), "{said:?}");
    std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
    let said = warc(dir.path(), &["check", "archive"]);
    assert!(said.code == Some(1) && said.stdout.contains("ends within"), "{said:?}");
}

/// A crawl of many pages with its queue on disk.
fn kept(directory: &Path, site: &RunningSite) -> Command {
    let mut command = crawl(directory, site);
    command.args(["--store", "redb", "--warc", "archive", "--concurrency", "64", "--per-host", "64"]);
    command.args(["--set", "job_commit_interval=0.05", "--set", "warc_max_bytes=50000"]);
    command.stderr(Stdio::null());
    command
}

/// Every page that was delivered has an exchange in the files.
fn assert_archived(directory: &Path, site: &RunningSite, pages: usize) {
    let kinds = assert_accepted(directory, "archive");
    let delivered: BTreeSet<String> =
        field(&lines(directory.join("out/pages.jsonl")), "url").into_iter().collect();
    assert_eq!(delivered.len(), pages);
    let records = records(directory, "archive");
    let archived: BTreeSet<&str> = records
        .iter()
        .filter(|record| record["type"] != "warcinfo")
        .filter_map(|record| record["url"].as_str())
        .collect();
    assert!(delivered.iter().all(|url| archived.contains(url.as_str())), "{kinds:?}");
    assert_eq!(kinds["request"], kinds["response"] + kinds.get("revisit").copied().unwrap_or_default());
    assert!(kinds["request"] <= site.requests().len());
}

#[test]
fn after_kills_no_page_is_missing_and_no_record_is_there_twice() {
    const PAGES: usize = 600;
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(PAGES, 8).start_blocking());
    for part in 1..=4 {
        let mut child = kept(dir.path(), &site).spawn().unwrap();
        let before = site.requests().len();
        let deadline = Instant::now() + Duration::from_secs(60);
        while site.requests().len() < before + 40 * part && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "{} requests came", site.requests().len());
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = run(kept(dir.path(), &site).stderr(Stdio::piped()));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_archived(dir.path(), &site, PAGES);
    assert!(files(&dir.path().join("archive")).len() > 3, "files are begun by their size");
}

#[test]
fn a_full_disk_stops_the_crawl_and_it_goes_on_with_more_room() {
    let dir = tempfile::tempdir().unwrap();
    let links: String = (0..60).map(|n| format!("<a href='/{n}'>{n}</a>")).collect();
    let site = Site::builder()
        .page("/", links)
        .route("/*", |asked| Answer::html(format!("{} {}", asked.path(), "many words ".repeat(20_000))))
        .start_blocking();
    let mut command = kept(dir.path(), &site);
    command.args(["--set", "warc_level=0"]);
    // One file, which may not grow as large as all pages are. A block is 512 or 1,024 bytes.
    let words: Vec<_> = std::iter::once(command.get_program().to_owned())
        .chain(command.get_args().map(|word| match word.to_str() {
            Some("warc_max_bytes=50000") => "warc_max_bytes=1000000000".into(),
            _ => word.to_owned(),
        }))
        .collect();
    let run_with = |limit: &str| {
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "sh"]).args(&words);
        limited.current_dir(dir.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        run(&mut limited)
    };
    let said = run_with("10000");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("may not grow further") && said.stderr.contains(".warc.gz"), "{said:?}");
    let kinds = assert_accepted(dir.path(), "archive");
    assert!(kinds["request"] > 5 && kinds["request"] < 61, "{kinds:?}");
    let said = run_with("unlimited");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_archived(dir.path(), &site, 61);
}
