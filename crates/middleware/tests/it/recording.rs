//! Recorded crawls.

use std::io::{Read, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman_crawler::{Backend, CrawlReport, CrawlerBuilder, Job, Output, Page, Result, spider_fn};
use huntsman_middleware::{Defaults, Recording};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

const LATIN: &[u8] = b"<p>caf\xe9</p>";

/// Pages, a redirect, a page that fails at first, bodies of all kinds.
fn web() -> ScriptedDownloader {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"<p>packed</p>").unwrap();
    let links = ["/old", "/gone", "/busy", "/latin", "/packed", "/cut", "/b?x=1#part"];
    let links: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
    ScriptedDownloader::pages([
        ("http://h/", links),
        ("http://h/new", "<p>new</p>".to_owned()),
        ("http://h/b?x=1", "<p>b</p>".to_owned()),
    ])
    .respond("http://h/old", Reply::redirect(302, "new?y=2#z"))
    .respond("http://h/new?y=2", Reply::html("<p>target</p>").header("set-cookie", "sid=secret"))
    .respond("http://h/gone", Reply::status(404).body("nothing here"))
    .respond("http://h/busy", Reply::status(503))
    .then(Reply::html("<p>at last</p>"))
    .respond(
        "http://h/latin",
        Reply::status(200).header("content-type", "text/html; charset=iso-8859-1").body(LATIN),
    )
    .respond("http://h/packed", Reply::html(packed.finish().unwrap()).header("content-encoding", "gzip"))
    .respond("http://h/cut", Reply::html("<p>begin").flag("truncated"))
    .respond("http://h/robots.txt", Reply::text("User-agent: *\nAllow: /"))
}

async fn crawl(web: &ScriptedDownloader, set: &[(&str, Value)], job: Option<&Path>) -> Result<CrawlReport> {
    let spider = spider_fn(["http://h/"], |page: &Page, out: &mut Output<()>| {
        out.follow_links(page);
        Ok(())
    });
    let builder = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web.clone()).set("seed", 7);
    let mut builder = set.iter().fold(builder, |builder, (name, value)| builder.set(name, value.clone()));
    if let Some(job) = job {
        builder = builder.job(Job::open(job, Backend::Redb)?);
    }
    builder.run().await
}

fn lines(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => {
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        }
        Some("zst") => text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap(),
        _ => text = String::from_utf8(bytes).unwrap(),
    }
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

/// The lines of a URL.
fn of<'a>(lines: &'a [Value], path: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["url"] == format!("http://h{path}")).collect()
}

#[tokio::test(start_paused = true)]
async fn every_response_is_a_line_in_every_format() {
    for name in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let set = [("recording_file", json!(path)), ("concurrent_requests_per_domain", json!(4))];
        let report = crawl(&web(), &set, None).await.unwrap();
        report.component::<Recording>().unwrap().finish().unwrap();
        let lines = lines(&path);
        assert_eq!(report.stat("recording/responses"), lines.len() as i64);
        let numbers: Vec<u64> = lines.iter().map(|line| line["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>(), "{name}");
        assert_eq!(lines[0]["url"], "http://h/", "robots.txt came first and is no part of the crawl");
        assert_eq!(lines.len(), 10, "{lines:?}");
        let one = |path: &str| match of(&lines, path)[..] {
            [line] => line.clone(),
            ref other => panic!("{path}: {other:?}"),
        };
        let old = one("/old");
        assert_eq!((&old["status"], &old["location"]), (&json!(302), &json!("http://h/new?y=2")));
        assert_eq!(
            (&one("/")["location"], &one("/")["depth"], &old["depth"]),
            (&Value::Null, &json!(0), &json!(1))
        );
        assert_eq!(one("/new?y=2")["body"], "<p>target</p>");
        assert_eq!((&one("/gone")["status"], &one("/gone")["body"]), (&json!(404), &json!("nothing here")));
        let busy: Vec<&Value> = of(&lines, "/busy").iter().map(|line| &line["status"]).collect();
        assert_eq!(busy, [&json!(503), &json!(200)], "a retry is a line of its own, and the last one counts");
        let latin = one("/latin");
        assert_eq!((&latin["body"], &latin["body_base64"]), (&Value::Null, &json!(STANDARD.encode(LATIN))));
        assert_eq!(latin["ctype"], "text/html; charset=iso-8859-1");
        assert_eq!(one("/packed")["body"], "<p>packed</p>");
        assert_eq!((&one("/cut")["truncated"], &one("/cut")["body"]), (&json!(true), &json!("<p>begin")));
        assert_eq!(one("/b?x=1")["truncated"], Value::Null, "the fragment is no part of the URL");
        let text: String = lines.iter().map(Value::to_string).collect();
        assert!(!text.contains("secret") && !text.to_lowercase().contains("cookie"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_of_the_http_cache_are_recorded_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let (web, cache) = (web(), folder.path().join("cache"));
    let mut recorded = Vec::new();
    for name in ["first.jsonl", "second.jsonl"] {
        let path = folder.path().join(name);
        let set = [
            ("recording_file", json!(path)),
            ("httpcache_enabled", json!(true)),
            ("httpcache_dir", json!(cache)),
            ("concurrent_requests_per_domain", json!(1)),
        ];
        drop(crawl(&web, &set, None).await.unwrap());
        let mut lines = lines(&path);
        // Failures are not stored, and numbers differ by them.
        lines.retain(|line| line["status"] != 503);
        lines.iter_mut().for_each(|line| line["n"] = Value::Null);
        recorded.push(lines);
    }
    assert_eq!(web.count("http://h/packed"), 1, "the second crawl had its answers from the cache");
    let sorted = |lines: &[Value]| {
        let mut texts: Vec<String> = lines.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&recorded[0]), sorted(&recorded[1]));
}

#[tokio::test]
async fn a_crawl_that_goes_on_adds_to_its_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (path, job) = (folder.path().join("a.jsonl.zst"), folder.path().join("job"));
    std::fs::create_dir(&job).unwrap();
    let web = web();
    let set = |pages: u64| {
        [
            ("recording_file", json!(path)),
            ("download_delay", json!(0.0)),
            ("retry_backoff_base", json!(0.01)),
            ("closespider_pagecount", json!(pages)),
        ]
    };
    let first = crawl(&web, &set(2), Some(&job)).await.unwrap();
    let before = lines(&path);
    assert!((2..8).contains(&before.len()), "{before:?}");
    drop(first);
    // What stands behind the last commit is of a process that was killed, and is recorded again.
    let committed = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&committed[..], &committed[..20]].concat()).unwrap();
    drop(crawl(&web, &set(0), Some(&job)).await.unwrap());
    let all = lines(&path);
    assert_eq!(all[..before.len()], before[..]);
    let numbers: Vec<u64> = all.iter().map(|line| line["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    for url in web.urls().iter().filter(|url| !url.ends_with("robots.txt")) {
        assert!(all.iter().any(|line| line["url"] == *url), "{url} is not recorded");
    }
    // A file that lost what the job had committed is not continued.
    std::fs::write(&path, &committed[..committed.len() / 2]).unwrap();
    let error = crawl(&web, &set(0), Some(&job)).await.unwrap_err().to_string();
    assert!(error.contains("a.jsonl.zst") && error.contains("--fresh"), "{error}");
}
