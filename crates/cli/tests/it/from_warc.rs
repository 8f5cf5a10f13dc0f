//! `--from-warc`: crawls, audits and sweeps over archives.
#![cfg(unix)]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use crate::common::{Said, crawl, field, huntsman, lines, report, run};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn site() -> RunningSite {
    let same = "<title>Same</title><p>the same words</p>".repeat(400);
    Site::builder()
        .robots("User-agent: *\nDisallow: /closed\n")
        .page(
            "/",
            "<title>Start</title><a href='/packed'>p</a><a href='/moved'>m</a><a href='/missing'>n</a>\
             <a href='/copy'>c</a><a href='/x?b=2&a=1'>x</a><a href='/closed'>d</a><a href='/cut'>k</a><a href='/busy'>b</a>",
        )
        .answer("/packed", Answer::html(gzip(b"<title>Packed</title>text")).header("content-encoding", "gzip"))
        .answer("/moved", Answer::redirect(302, "/target"))
        .page("/target", "<title>Target</title>moved here")
        .page("/x?b=2&a=1", same.clone())
        .page("/copy", same)
        .page("/closed", "<title>Closed</title>")
        .answer("/busy", Answer::status(503))
        .answer("/cut", Answer::html("<title>Latin</title>caf\u{e9}".chars().map(|c| c as u8).collect::<Vec<u8>>()).header("content-type", "text/html; charset=iso-8859-1"))
        .start_blocking()
}

fn archived(directory: &Path, site: &RunningSite) {
    let mut command = crawl(directory, site);
    let said = run(command.args(["--warc", "archive", "--text", "--set", "robotstxt_obey=true"]));
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// Runs a command over archives. No address is allowed, so that a request to a site would be refused.
fn over(directory: &Path, arguments: &[&str]) -> Said {
    run(huntsman(directory).args(arguments).args(["--profile", "test", "--set", "log_level=warn"]))
}

/// URL and title of each page, sorted.
fn titled(out: &Path) -> Vec<(String, String)> {
    let text = |page: &Value, name: &str| page[name].as_str().unwrap_or_default().to_owned();
    let pages = lines(out.join("pages.jsonl"));
    let mut titled: Vec<_> = pages.iter().map(|page| (text(page, "url"), text(page, "title"))).collect();
    titled.sort();
    titled
}

/// What stands of each page and each drop, without its times and what only a network has.
fn facts(out: &Path) -> Vec<String> {
    let pick = |line: &Value, names: &[&str]| {
        names.iter().map(|name| line[name].to_string()).collect::<Vec<_>>().join(" ")
    };
    let pages = lines(out.join("pages.jsonl"));
    let drops = lines(out.join("drops.jsonl"));
    let mut facts: Vec<String> = pages
        .iter()
        .map(|page| {
            pick(
                page,
                &[
                    "url",
                    "requested_url",
                    "status",
                    "title",
                    "text",
                    "words",
                    "depth",
                    "referer",
                    "links",
                    "kind",
                ],
            )
        })
        .chain(drops.iter().map(|drop| pick(drop, &["url", "reason", "status", "depth"])))
        .collect();
    facts.sort();
    facts
}

#[test]
fn a_crawl_over_the_archive_gives_what_the_crawl_of_the_network_gave_and_asks_nobody() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let asked = site.requests().len();
    let start = site.url("/").to_string();
    let arguments = [
        "crawl",
        &start,
        "--from-warc",
        "archive",
        "--text",
        "--out",
        "again",
        "--set",
        "robotstxt_obey=true",
    ];
    let said = over(dir.path(), &arguments);
    assert_eq!(said.code, Some(0), "{said:?}");
    let network = facts(&dir.path().join("out"));
    assert!(network.len() >= 8, "{network:#?}");
    assert_eq!(facts(&dir.path().join("again")), network);
    assert_eq!(site.requests().len(), asked, "nobody was asked");
    let stats = &report(&dir.path().join("again"))["stats"];
    assert_eq!(stats["engine/requests_sent"].as_u64().unwrap_or(0), 0, "{stats}");
}

#[test]
fn what_is_not_archived_is_a_drop_and_a_start_url_fails_with_what_is_there() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let start = site.url("/").to_string();
    // Without the answer to robots.txt the page is asked for, which nobody archived.
    let said =
        over(dir.path(), &["crawl", &start, "--from-warc", "archive", "--ignore-robots", "--out", "one"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let drops = lines(dir.path().join("one/drops.jsonl"));
    let closed = drops.iter().find(|drop| drop["url"].as_str().unwrap().ends_with("/closed")).unwrap();
    assert_eq!(
        (closed["reason"].as_str(), closed["state"].as_str()),
        (Some("not_archived"), Some("skipped"))
    );
    assert_eq!(report(&dir.path().join("one"))["stats"]["from_warc/missing"], 1);

    let other = start.replace("http:", "https:");
    let said = over(dir.path(), &["crawl", &other, "--from-warc", "archive/*.warc.gz", "--out", "two"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("not_archived") && said.stderr.contains(&format!("the archives have {start}")),
        "{said:?}"
    );

    for (arguments, expected) in [
        (vec!["crawl", &start, "--from-warc", "nowhere"], "nowhere: "),
        (vec!["crawl", &start, "--from-warc", "x*.warc"], "no file matches the pattern"),
        (vec!["crawl", &start, "--from-warc", "archive", "--at", "soon"], "from_warc_at: soon: name a time"),
        (vec!["crawl", "--from-warc", "archive", "b.warc.gz"], "b.warc.gz is an archive and not a URL"),
    ] {
        let said = over(dir.path(), &arguments);
        assert!(said.code == Some(2) && said.stderr.contains(expected), "{arguments:?}: {said:?}");
    }
}

#[test]
fn all_pages_of_an_archive_are_pages_and_nothing_else_is_asked_for() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let said = over(dir.path(), &["crawl", "--from-warc", "archive", "--all", "--near-dup", "--out", "all"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = lines(dir.path().join("all/pages.jsonl"));
    let paths: Vec<String> = field(&pages, "url")
        .iter()
        .map(|url| url.split_once(&format!(":{}", site.port())).unwrap().1.to_owned())
        .collect();
    assert_eq!(paths, ["/", "/copy", "/cut", "/packed", "/target", "/x?b=2&a=1"]);
    assert!(pages.iter().all(|page| page["depth"] == 0));
    // Detectors run: one of the two pages with the same words is known.
    assert_eq!(report(&dir.path().join("all"))["stats"]["near_dup/flagged"], 1);
}

/// Two captures of a page, one that robots.txt forbids, a revisit of each kind, and what is no page.
const CAPTURES: &str = "import sys, io
from warcio.warcwriter import WARCWriter
from warcio.statusandheaders import StatusAndHeaders
out = open(sys.argv[1], 'wb')
w = WARCWriter(out, gzip=True)
def record(path, body, day, status='200 OK', kind='text/html', revisit=None):
    head = StatusAndHeaders(status, [('Content-Type', kind)], protocol='HTTP/1.1')
    date = '2026-01-%02dT00:00:00Z' % day
    if revisit:
        r = w.create_revisit_record('http://site.example' + path, digest='sha1:' + revisit[1], refers_to_uri='http://site.example' + revisit[0],
            refers_to_date='2026-01-01T00:00:00Z', http_headers=head, warc_headers_dict={'WARC-Date': date})
    else:
        r = w.create_warc_record('http://site.example' + path, 'response', payload=io.BytesIO(body),
            http_headers=head, warc_headers_dict={'WARC-Date': date})
    w.write_record(r)
    return r.rec_headers.get_header('WARC-Payload-Digest')
record('/robots.txt', b'User-agent: *\\nDisallow: /', 1, kind='text/plain')
digest = record('/', b'<title>First</title>', 1).split(':')[1]
record('/', b'<title>Second</title>', 2)
record('/', b'', 3, revisit=('/', digest))
record('/copy', b'', 3, revisit=('/', digest))
record('/gone', b'<title>Gone</title>', 1, status='404 Not Found')
record('/data', b'{}', 1, kind='application/json')
";

#[test]
fn every_response_is_a_page_whatever_robots_txt_says_and_with_a_time_one_of_each_url() {
    let dir = tempfile::tempdir().unwrap();
    let made = Command::new("warc-python").args(["-c", CAPTURES]).arg(dir.path().join("a.warc.gz")).output();
    let made = made.expect("warc-python (Python with warcio) is in PATH: run ./setup.sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let titles = |out: &str, extra: &[&str]| {
        let arguments =
            ["crawl", "--from-warc", "a.warc.gz", "--all", "--out", out, "--set", "robotstxt_obey=true"];
        let said = over(dir.path(), &[&arguments[..], extra].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let titled = titled(&dir.path().join(out)).into_iter();
        let path = |url: &str| url.strip_prefix("http://site.example").unwrap().to_owned();
        titled.map(|(url, title)| format!("{} {title}", path(&url))).collect::<Vec<_>>()
    };
    assert_eq!(titles("all", &[]), ["/ First", "/ Second", "/copy First"]);
    assert_eq!(titles("second", &["--at", "20260102"]), ["/ Second", "/copy First"]);
    // A crawl that follows links obeys the archived robots.txt, as the crawl of the network did.
    let arguments = ["crawl", "http://site.example/", "--from-warc", "a.warc.gz", "--out", "links"];
    let said = over(dir.path(), &[&arguments[..], &["--set", "robotstxt_obey=true"]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
}

#[test]
fn a_packed_archive_gives_what_its_files_give() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let start = site.url("/").to_string();
    let said = over(
        dir.path(),
        &[
            "crawl",
            &start,
            "--from-warc",
            "archive",
            "--text",
            "--out",
            "files",
            "--set",
            "robotstxt_obey=true",
        ],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(huntsman(dir.path()).args(["warc", "pack", "archive", "--wacz", "packed.wacz"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    std::fs::remove_dir_all(dir.path().join("archive")).unwrap();
    let packed = ["--from-warc", "packed.wacz"];
    let arguments = ["crawl", &start, "--text", "--out", "packed-out", "--set", "robotstxt_obey=true"];
    let said = over(dir.path(), &[&arguments[..], &packed].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(facts(&dir.path().join("packed-out")), facts(&dir.path().join("files")));
    let said = over(dir.path(), &["crawl", "--from-warc", "p*.wacz", "--all", "--out", "all"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("all/pages.jsonl")).len(), 6);
    // So do the other commands.
    let said = run(huntsman(dir.path()).args(["warc", "check", "packed.wacz"]));
    assert_eq!((said.code, &*said.stdout), (Some(0), ""), "{said:?}");
    let said = run(huntsman(dir.path()).args(["warc", "get", "packed.wacz", site.url("/packed").as_str()]));
    assert_eq!((said.code, &*said.stdout), (Some(0), "<title>Packed</title>text"), "{said:?}");
    let said = run(huntsman(dir.path()).args(["dedup", "hash", "packed.wacz"]));
    assert_eq!((said.code, said.stdout.lines().count()), (Some(0), 6), "five pages and robots.txt: {said:?}");
    let said = over(dir.path(), &["crawl", "packed.wacz"]);
    assert!(said.code == Some(2) && said.stderr.contains("is an archive and not a URL"), "{said:?}");
}

#[test]
fn audits_and_sweeps_read_archives_too() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let (start, asked) = (site.url("/").to_string(), site.requests().len());
    let said = over(dir.path(), &["audit", &start, "--from-warc", "archive", "--out", "audit"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let codes = field(&lines(dir.path().join("audit/issues.jsonl")), "code");
    assert!(codes.iter().any(|code| code == "broken-internal-link"), "{codes:?}");
    let said =
        over(dir.path(), &["sweep", &start, "--from-warc", "archive", "--min-words", "3", "--out", "sweep"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(dir.path().join("sweep/sweep.html").is_file());
    // Without a start, the pages of a file alone: each of those that the crawl of it has.
    let file = std::fs::read_dir(dir.path().join("archive")).unwrap().next().unwrap().unwrap().path();
    let said = over(dir.path(), &["audit", "--pages", file.to_str().unwrap(), "--out", "pages"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let judged = |out: &str| -> std::collections::BTreeSet<String> {
        field(&lines(dir.path().join(out).join("pages.jsonl")), "url").into_iter().collect()
    };
    assert_eq!(judged("pages"), judged("audit"));
    let titles = |out: &str| {
        let mut titles = field(&lines(dir.path().join(out).join("pages.jsonl")), "title");
        titles.sort();
        titles
    };
    assert_eq!(titles("pages"), titles("audit"));
    let codes = field(&lines(dir.path().join("pages/issues.jsonl")), "code");
    assert!(codes.iter().any(|code| code == "broken-internal-link"), "{codes:?}");
    assert_eq!(site.requests().len(), asked, "nobody was asked");
}

#[test]
fn damaged_archives_are_read_as_far_as_they_can_be_and_the_report_counts_what_is_lost() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    archived(dir.path(), &site);
    let archive = std::fs::read_dir(dir.path().join("archive")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&archive).unwrap();
    bytes.truncate(bytes.len() - 5);
    std::fs::write(&archive, bytes).unwrap();
    let said =
        over(dir.path(), &["crawl", site.url("/").as_str(), "--from-warc", "archive", "--out", "again"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("damaged at byte"), "{said:?}");
    assert_eq!(report(&dir.path().join("again"))["stats"]["from_warc/damaged"], 1);
}

/// Bodies without their codings under headers that still name them, or name them otherwise, as Common Crawl and older programs store them.
const FOREIGN: &str = "import sys, io, gzip
from warcio.warcwriter import WARCWriter
from warcio.statusandheaders import StatusAndHeaders
out = open(sys.argv[1], 'wb')
w = WARCWriter(out, gzip=True, warc_version='1.0')
def page(path, body, *headers):
    head = StatusAndHeaders('200 OK', [('Content-Type', 'text/html')] + list(headers), protocol='HTTP/1.1')
    w.write_record(w.create_warc_record('http://site.example' + path, 'response', payload=io.BytesIO(body),
        http_headers=head, warc_headers_dict={'WARC-Date': '2026-01-01T00:00:00Z'}))
page('/', b'<title>Root</title><a href=/a>1</a><a href=/b>2</a><a href=/c>3</a><a href=/d>4</a>',
     ('X-Crawler-Content-Encoding', 'gzip'), ('X-Crawler-Transfer-Encoding', 'chunked'), ('Content-Length', '7'))
page('/a', b'<title>A</title>', ('Content-Encoding', 'gzip'), ('Transfer-Encoding', 'chunked'))
page('/b', b'<title>B</title>', ('Content-Encoding', 'br'))
z = gzip.compress(b'<title>C</title>')
page('/c', b'%x\\r\\n' % len(z) + z + b'\\r\\n0\\r\\n\\r\\n', ('Content-Encoding', 'gzip'), ('Transfer-Encoding', 'chunked'))
page('/d', b'<title>D</title>')
";

#[test]
fn files_of_other_programs_are_crawled_whatever_they_did_to_codings() {
    let dir = tempfile::tempdir().unwrap();
    let made =
        Command::new("warc-python").args(["-c", FOREIGN]).arg(dir.path().join("foreign.warc.gz")).output();
    let made = made.expect("warc-python (Python with warcio) is in PATH: run ./setup.sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let arguments = ["crawl", "http://site.example/", "--from-warc", "foreign.warc.gz", "--out", "out"];
    let said = over(dir.path(), &arguments);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(field(&lines(dir.path().join("out/pages.jsonl")), "title"), ["A", "B", "C", "D", "Root"]);
}

/// What warcio finds: the number of records, and URL and body of each page.
const EXTRACT: &str = "import sys, json
from warcio.archiveiterator import ArchiveIterator
records, pages = 0, []
for r in ArchiveIterator(open(sys.argv[1], 'rb')):
    records += 1
    if r.rec_type != 'response' or r.http_headers is None: continue
    kind = (r.http_headers.get_header('Content-Type') or '').lower()
    body = r.content_stream().read()
    if r.http_headers.get_statuscode() == '200' and 'html' in kind:
        pages.append([r.rec_headers.get_header('WARC-Target-URI').strip('<>'), body.decode('utf-8', 'replace')])
print(json.dumps([records, pages]))";

#[test]
fn all_pages_that_wget_archived_are_those_that_warcio_extracts() {
    let (dir, site) = (tempfile::tempdir().unwrap(), site());
    let fetched = Command::new("wget")
        .args([
            "-q",
            "-r",
            "-l",
            "3",
            "-e",
            "robots=off",
            "--warc-file=wget",
            "--no-check-certificate",
            site.url("/").as_str(),
        ])
        .current_dir(dir.path())
        .env("no_proxy", "127.0.0.1")
        .status();
    // It ends with 8, because the site has a page with an error.
    assert_eq!(fetched.expect("wget is in PATH: run ./setup.sh").code(), Some(8));
    let extracted = Command::new("warc-python")
        .args(["-c", EXTRACT])
        .arg(dir.path().join("wget.warc.gz"))
        .output()
        .unwrap();
    assert!(extracted.status.success(), "{}", String::from_utf8_lossy(&extracted.stderr));
    let extracted: Value = serde_json::from_slice(&extracted.stdout).unwrap();
    let listed = run(huntsman(dir.path()).args(["warc", "ls", "--json", "wget.warc.gz"]));
    assert_eq!(
        (listed.code, listed.stdout.lines().count() as u64),
        (Some(0), extracted[0].as_u64().unwrap())
    );
    let checked = run(huntsman(dir.path()).args(["warc", "check", "wget.warc.gz"]));
    assert_eq!((checked.code, &*checked.stdout), (Some(0), ""), "{checked:?}");

    let said = over(dir.path(), &["crawl", "--from-warc", "wget.warc.gz", "--all", "--out", "all"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let title = |html: &str| Some(html.split_once("<title>")?.1.split_once("</title>")?.0.to_owned());
    let mut expected: Vec<(String, String)> = extracted[1]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| (page[0].as_str().unwrap().to_owned(), title(page[1].as_str().unwrap()).unwrap()))
        .collect();
    expected.sort();
    assert!(expected.len() >= 7, "{expected:?}");
    assert_eq!(titled(&dir.path().join("all")), expected);
}
