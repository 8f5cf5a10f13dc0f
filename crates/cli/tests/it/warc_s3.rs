//! Archives in a bucket: crawls, documents and single records of them.

#![cfg(feature = "s3")]

use std::path::Path;
use std::process::Command;

use huntsman_testkit::Site;
use huntsman_testkit::moto::Server;

use crate::common::{Said, crawl, field, huntsman, lines, run};

/// The command with the server and credentials.
fn at(server: &Server, directory: &Path) -> Command {
    let mut command = huntsman(directory);
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_"));
    for (name, _) in ours {
        command.env_remove(name);
    }
    command.env("AWS_ENDPOINT_URL", server.url()).env("NO_PROXY", "127.0.0.1,localhost");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

fn done(server: &Server, directory: &Path, arguments: &[&str]) -> Said {
    let said = run(at(server, directory).args(arguments));
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    said
}

/// The titles of a crawl over archives.
fn titles(server: &Server, directory: &Path, out: &str, arguments: &[&str]) -> Vec<String> {
    done(server, directory, &[&["crawl", "--out", out, "--profile", "test"], arguments].concat());
    let mut titles = field(&lines(directory.join(out).join("pages.jsonl")), "title");
    titles.sort();
    titles
}

/// The requests for objects since the log had this length.
fn asked(server: &Server, since: usize) -> Vec<String> {
    let log = server.log();
    let requests = log[since..]
        .lines()
        .filter_map(|line| Some(line.split_once('"')?.1.split_once(" HTTP")?.0.to_owned()));
    requests.filter(|request| request.starts_with("GET /web/") && !request.contains('?')).collect()
}

#[test]
fn archives_in_a_bucket_are_read_whole_or_by_the_ranges_of_an_index() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let path = dir.path();
    let words = |page: usize| (0..120).map(|n| format!("word{} ", page * 1_000 + n)).collect::<String>();
    let mut site =
        Site::builder().page("/", (0..40).map(|n| format!("<a href='/{n}'>{n}</a>")).collect::<String>());
    for page in 0..40 {
        site = site.page(&format!("/{page}"), format!("<title>Page {page}</title><p>{}", words(page % 39)));
    }
    let site = site.start_blocking();
    let said = run(crawl(path, &site).args(["--warc", "archive", "--set", "warc_max_bytes=8000"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(huntsman(path).args(["warc", "index", "archive", "--out", "index.cdxj"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = run(huntsman(path).args(["warc", "pack", "archive", "--wacz", "site.wacz"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    server.make_bucket("web");
    let mut files: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(path.join("archive")).unwrap() {
        let entry = entry.unwrap();
        files.push(entry.file_name().into_string().unwrap());
        server.put(
            "web",
            &format!("crawls/archive/{}", files[files.len() - 1]),
            &std::fs::read(entry.path()).unwrap(),
        );
    }
    assert!(files.len() > 3, "{files:?}");
    let index = std::fs::read(path.join("index.cdxj")).unwrap();
    server.put("web", "crawls/indexes/index.cdxj", &index);
    server.put("web", "site.wacz", &std::fs::read(path.join("site.wacz")).unwrap());
    std::fs::rename(path.join("archive"), path.join("local")).unwrap();
    let start = site.url("/").to_string();
    let asked_site = site.requests().len();

    let expected = titles(&server, path, "local-out", &[&start, "--from-warc", "local"]);
    assert_eq!(expected.len(), 41);
    for (out, archive) in [
        ("prefix", "s3://web/crawls/archive"),
        ("pattern", "s3://web/crawls/**/*.warc.gz"),
        ("packed", "s3://web/site.wacz"),
        ("index", "s3://web/crawls/indexes/index.cdxj"),
    ] {
        assert_eq!(titles(&server, path, out, &[&start, "--from-warc", archive]), expected, "{archive}");
    }
    let all = titles(&server, path, "all", &["--from-warc", "s3://web/site.wacz", "--all"]);
    assert_eq!(all, expected);
    assert_eq!(site.requests().len(), asked_site, "nobody was asked");

    // An index beside which no file is: the bucket is where its names lead, and nothing of it is listed.
    let since = server.log().len();
    let arguments = [&start, "--from-warc", "index.cdxj", "--from-warc", "s3://web/crawls/archive/"];
    assert_eq!(titles(&server, path, "base", &arguments), expected);
    let (requests, pages) = (asked(&server, since), expected.len());
    assert_eq!(requests.len(), pages, "{requests:?}");

    // The documents of single records are those of the whole files; one of 40 pages is a copy.
    let pages: Vec<String> = String::from_utf8(index)
        .unwrap()
        .lines()
        .filter(|line| line.contains("\"status\": \"200\""))
        .map(str::to_owned)
        .collect();
    std::fs::write(path.join("some.cdxj"), pages[5..].join("\n")).unwrap();
    let since = server.log().len();
    let arguments = ["dedup", "hash", "s3://web/crawls/archive/", "--ids", "some.cdxj"];
    let some = done(&server, path, &arguments);
    assert_eq!(some.stdout.lines().count(), pages.len() - 5, "{some:?}");
    assert_eq!(asked(&server, since).len(), pages.len() - 5);
    let sorted = |said: &Said| {
        let mut lines: Vec<String> = said.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let whole = sorted(&done(&server, path, &["dedup", "hash", "s3://web/crawls/archive/*.warc.gz"]));
    assert!(sorted(&some).iter().all(|line| whole.contains(line)), "{some:?}");
    assert_eq!(sorted(&done(&server, path, &["dedup", "hash", "s3://web/site.wacz"])), whole);
    assert_eq!(sorted(&done(&server, path, &["dedup", "hash", "local"])), whole);
    let built =
        done(&server, path, &["dedup", "build", "s3://web/site.wacz", "--index", "near", "--flags", "-"]);
    assert_eq!(built.stdout.lines().count(), 1, "the planted pair: {built:?}");

    for (archive, why) in [
        ("s3://web/none", "there is neither an object of this name nor one under it"),
        ("s3://web/crawls/*.warc.gz", "no object matches the pattern"),
        ("s3://web/crawls/indexes", "no object below it ends with .warc"),
    ] {
        let said = run(at(&server, path).args(["crawl", &start, "--from-warc", archive, "--out", "none"]));
        assert!(said.code == Some(2) && said.stderr.contains(why), "{archive}: {said:?}");
    }
    // What was there when the crawl began may be gone later: that page fails, and says why.
    for file in &files {
        server.delete("web", &format!("crawls/archive/{file}"));
    }
    let said = run(at(&server, path).args([
        "crawl",
        &start,
        "--from-warc",
        "index.cdxj",
        "--from-warc",
        "s3://web/crawls/",
        "--out",
        "gone",
        "--profile",
        "test",
    ]));
    assert!(said.code == Some(1) && said.stderr.contains("it is not there"), "{said:?}");
}
