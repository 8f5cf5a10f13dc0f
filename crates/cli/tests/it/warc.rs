//! `crawl --warc` and `huntsman warc`, judged by other programs that read archives.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site, sites};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
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

/// The bytes of the files of an archive.
fn size(archive: &Path) -> u64 {
    files(archive).iter().map(|path| std::fs::metadata(path).unwrap().len()).sum()
}

#[test]
fn a_second_crawl_of_the_same_pages_takes_a_fifth_of_the_room_at_most() {
    let links: String = (0..20).map(|page| format!("<a href='/{page}'>{page}</a>")).collect();
    // Words that compress about as those of articles do.
    let words = |page: usize| -> String {
        (0..2_500_usize)
            .map(|n| format!("word{} ", (n + page * 7_919).wrapping_mul(2_654_435_761) % 40_009))
            .collect()
    };
    let mut site = Site::builder().page("/", links);
    for page in 0..20 {
        site = site.page(&format!("/{page}"), format!("<p>{}", words(page)));
    }
    let (dir, site) = (tempfile::tempdir().unwrap(), site.start_blocking());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    let first = size(&dir.path().join("archive"));
    assert_eq!(archived(dir.path(), &site, "two").code, Some(0));
    let second = size(&dir.path().join("archive")) - first;
    assert!(5 * second <= first, "{first} bytes, then {second}");
    let kinds = assert_accepted(dir.path(), "archive");
    assert_eq!(
        (kinds["revisit"], kinds["response"]),
        (22, 22),
        "20 pages, the start and robots.txt: {kinds:?}"
    );
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
    // `HUNTSMAN_KILLS=100` for a long run.
    let kills = std::env::var("HUNTSMAN_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..kills {
        let mut child = kept(dir.path(), &site).spawn().unwrap();
        let (before, more) = (site.requests().len(), random.random_range(1..3 * PAGES / kills));
        let deadline = Instant::now() + Duration::from_secs(60);
        while site.requests().len() < before + more && child.try_wait().unwrap().is_none() {
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

#[test]
fn an_index_leads_to_the_bytes_of_a_capture_alone() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    assert_eq!(warc(dir.path(), &["index", "archive", "--out", "archive/index.cdxj"]).code, Some(0));
    let (url, path) = (site.url("/packed").to_string(), files_ending(dir.path(), ".warc.gz").remove(0));
    let records = records(dir.path(), "archive");
    let wanted =
        records.iter().find(|record| record["url"] == url.as_str() && record["type"] == "response").unwrap();
    let (offset, length) = (wanted["offset"].as_u64().unwrap(), wanted["length"].as_u64().unwrap());
    let whole = std::fs::read(&path).unwrap();
    let at = usize::try_from(offset).unwrap();
    let end = at + usize::try_from(length).unwrap();
    // All other records are gone.
    let mut alone = vec![0; whole.len()];
    alone[at..end].copy_from_slice(&whole[at..end]);
    std::fs::write(&path, alone).unwrap();
    let said = warc(dir.path(), &["get", "--index", "archive/index.cdxj", &url]);
    assert_eq!((said.code, &*said.stdout), (Some(0), "<p>packed text</p>"), "{said:?}");
    let said = warc(dir.path(), &["get", &url]);
    assert!(said.code == Some(2) && said.stderr.contains("--index"), "{said:?}");
}

fn files_ending(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("archive")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn a_packed_archive_is_valid_and_has_the_pages_of_the_crawl() {
    let (dir, site) = (tempfile::tempdir().unwrap(), mixed());
    assert_eq!(archived(dir.path(), &site, "one").code, Some(0));
    let said =
        warc(dir.path(), &["pack", "archive/*.warc.gz", "--wacz", "site.wacz", "--title", "Mixed", "--text"]);
    assert!(said.code == Some(0) && said.stderr.contains("6 pages"), "{said:?}");
    let validated =
        Command::new("wacz").args(["validate", "-f", "site.wacz"]).current_dir(dir.path()).output();
    let validated = validated.expect("wacz (py-wacz) is in PATH: run ./setup.sh");
    let told = String::from_utf8_lossy(&validated.stdout).into_owned();
    assert!(validated.status.success() && told.contains("the passed WACZ is valid"), "{told}");
    let program = "import sys, zipfile, json
z = zipfile.ZipFile(sys.argv[1])
for name in ('pages', 'extraPages'):
    for line in z.read('pages/%s.jsonl' % name).decode().splitlines()[1:]:
        page = json.loads(line); print(name, page['url'], page['text'][:12])";
    let (passes, seen) = python(program, &[dir.path().join("site.wacz")]);
    assert!(passes && seen.starts_with(&format!("pages {} ", site.url("/"))), "{seen}");
    assert!(seen.contains(&format!("extraPages {} packed text", site.url("/packed"))), "{seen}");
}

#[test]
fn failed_downloads_links_and_wishes_of_sites_are_in_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let cut = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<p>half";
    let site = Site::builder()
        .page("/", "<a href='/cut'>c</a><a href='/none'>n</a><a href='/private'>p</a><a href='/cut'>c</a>")
        .answer("/cut", Answer::raw(cut))
        .answer("/none", Answer::raw(""))
        .answer("/private", Answer::html("<p>private").header("x-robots-tag", "noindex, noarchive"))
        .start_blocking();
    let crawled = |archive: &str, extra: &[&str]| {
        let mut command = crawl(dir.path(), &site);
        command.args(["--warc", archive, "--fresh", "--set", "retry_enabled=false"]).args(extra);
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_accepted(dir.path(), archive)
    };
    let kinds = crawled("all", &["--warc-outlinks", "--set", "warc_operator=me <me@site.example>"]);
    // Three responses, of which one is cut, and their requests; one request without an answer.
    assert_eq!((kinds["response"], kinds["request"]), (3, 4), "{kinds:?}");
    let path = files(&dir.path().join("all")).remove(0);
    let program = "import sys
from warcio.archiveiterator import ArchiveIterator
for r in ArchiveIterator(open(sys.argv[1], 'rb'), no_record_parse=True):
    h = r.rec_headers; path = (h.get_header('WARC-Target-URI') or '').rsplit('/', 1)[-1]
    told = h.get_header('WARC-Truncated'); body = r.content_stream().read().decode()
    if told: print('cut', path, told, body.endswith('<p>half'))
    if r.rec_type in ('metadata', 'warcinfo'):
        for line in body.splitlines():
            if line.split(':')[0] in ('fetchError', 'outlink', 'noarchive', 'operator'): print(path, line.replace(sys.argv[2], 'SITE/'))";
    let out = Command::new("warc-python")
        .args(["-c", program])
        .arg(&path)
        .arg(site.url("/").as_str())
        .output()
        .unwrap();
    let seen = String::from_utf8(out.stdout).unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            " operator: me <me@site.example>",
            " outlink: SITE/cut L a/@href",
            " outlink: SITE/none L a/@href",
            " outlink: SITE/private L a/@href",
            "cut cut disconnect True",
            "cut fetchError: incomplete_body",
            "none fetchError: connection_reset",
            "private noarchive: X-Robots-Tag",
        ],
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let kinds = crawled("some", &["--set", "warc_noarchive=skip"]);
    assert_eq!((kinds["response"], kinds["request"]), (2, 3), "{kinds:?}");
    let stats = &crate::common::report(&dir.path().join("out"))["stats"];
    assert_eq!(
        (stats["warc/noarchive"].as_u64(), stats["warc/failed_downloads"].as_u64()),
        (Some(1), Some(1))
    );
}
