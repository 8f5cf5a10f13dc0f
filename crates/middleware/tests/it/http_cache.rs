//! Whole crawls with the HTTP cache, in virtual time.

use std::path::Path;
use std::time::Duration;

use huntsman_crawler::{CrawlReport, CrawlerBuilder, Output, Page, Request, Result, Spider, Start};
use huntsman_middleware::Defaults;
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

/// Follows every link.
struct Site;

impl Spider for Site {
    type Item = String;

    fn start(&self) -> Start {
        Start::requests(["http://h/", "http://g/"].map(|url| Request::parse(url).unwrap()))
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        let flag = if page.response().has_flag("cached") { " cached" } else { "" };
        out.item(format!("{}{flag} {}", page.url(), page.body_text()));
        out.follow_links(page);
        Ok(())
    }
}

fn web() -> ScriptedDownloader {
    ScriptedDownloader::pages([
        ("http://h/", "<a href='/a'>a</a><a href='/moved'>m</a><a href='/gone'>g</a>"),
        ("http://h/a", "a of h"),
        ("http://g/", "<a href='/a'>a</a>"),
        ("http://g/a", "a of g"),
    ])
    .respond("http://h/moved", Reply::redirect(301, "/target"))
    .respond("http://h/target", Reply::html("moved").header("etag", "\"1\""))
    .respond("http://h/robots.txt", Reply::text("User-agent: *\nDisallow: /none"))
}

async fn crawl(web: &ScriptedDownloader, dir: &Path, set: &[(&str, Value)]) -> (CrawlReport, Vec<String>) {
    let items = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut builder = CrawlerBuilder::new(Site)
        .plugin(Defaults)
        .downloader(web.clone())
        .set("seed", 7)
        .set("httpcache_enabled", true)
        .set("httpcache_dir", dir.to_str().unwrap())
        .pipeline(Kept(std::sync::Arc::clone(&items)));
    for (name, value) in set {
        builder = builder.set(name, value.clone());
    }
    let report = builder.run().await.unwrap();
    let mut items = std::mem::take(&mut *items.lock().unwrap());
    items.sort();
    (report, items)
}

struct Kept(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl huntsman_crawler::Pipeline<String> for Kept {
    async fn process_item(
        &mut self,
        item: String,
        _: &huntsman_crawler::Context,
    ) -> Result<huntsman_crawler::OnItem<String>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(huntsman_crawler::OnItem::Keep(item))
    }
}

fn stat(report: &CrawlReport, key: &str) -> i64 {
    report.stats.get(&format!("httpcache/{key}")).and_then(Value::as_i64).unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn the_second_crawl_asks_the_servers_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let first_web = web();
    let (first, pages) = crawl(&first_web, &dir, &[]).await;
    // Two robots.txt, six pages of which one moved, and one page that is gone.
    assert_eq!(first_web.requests().len(), 9, "{:?}", first_web.urls());
    assert_eq!((stat(&first, "store"), stat(&first, "miss"), stat(&first, "hit")), (9, 9, 0));

    let nothing = ScriptedDownloader::new();
    let started = tokio::time::Instant::now();
    let (second, replayed) = crawl(&nothing, &dir, &[]).await;
    assert!(nothing.requests().is_empty(), "{:?}", nothing.urls());
    assert_eq!((stat(&second, "store"), stat(&second, "miss"), stat(&second, "hit")), (0, 0, 9));
    assert_eq!((first.pages, second.pages), (5, 5));
    let plain: Vec<String> = replayed.iter().map(|item| item.replace(" cached", "")).collect();
    assert!(replayed.iter().all(|item| item.contains(" cached")));
    assert_eq!(plain, pages);
    // If they were sent, seven requests of one host would take a second each.
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert_eq!(second.stats["downloader/response_count"], 9, "cached answers are counted, too");
}

#[tokio::test(start_paused = true)]
async fn without_a_network_only_what_is_stored_is_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let small = ScriptedDownloader::pages([("http://h/", "<a href='/a'>a</a>"), ("http://h/a", "a of h")])
        .respond("http://g/", Reply::status(503));
    crawl(&small, &dir, &[("retry_times", 0.into())]).await;
    let nothing = ScriptedDownloader::new();
    let (offline, pages) = crawl(&nothing, &dir, &[("httpcache_ignore_missing", true.into())]).await;
    assert!(nothing.requests().is_empty(), "{:?}", nothing.urls());
    assert_eq!(pages.len(), 2);
    assert_eq!(offline.stats["drops/skipped/not_cached"], 1, "a failure was not stored");
    assert_eq!(stat(&offline, "ignore"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rfc_policy_revalidates_across_crawls() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let rfc = [("httpcache_policy", "rfc".into())];
    let web = || {
        ScriptedDownloader::new().otherwise(|request, _| {
            let known = request.headers.get("if-none-match").is_some_and(|tag| tag == "\"1\"");
            match (request.url.path(), known) {
                ("/", false) => Reply::html("<a href='/a'>a</a>").header("etag", "\"1\""),
                ("/", true) => Reply::status(304),
                ("/a", _) => Reply::html("a").header("cache-control", "max-age=86400"),
                _ => Reply::status(404),
            }
        })
    };
    let (first, pages) = crawl(&web(), &dir, &rfc).await;
    assert_eq!((stat(&first, "store"), stat(&first, "uncacheable")), (4, 2), "a robots.txt says nothing");
    let again = web();
    let (second, replayed) = crawl(&again, &dir, &rfc).await;
    assert_eq!((stat(&second, "revalidate"), stat(&second, "hit"), stat(&second, "miss")), (2, 2, 2));
    assert_eq!(again.count("http://h/a"), 0);
    let plain: Vec<String> = replayed.iter().map(|item| item.replace(" cached", "")).collect();
    assert_eq!(plain, pages);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_not_answered_with_the_failure() {
    let folder = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages([("http://g/", "g")])
        .respond("http://h/", Reply::status(503))
        .then(Reply::html("back"));
    let (report, pages) = crawl(&web, &folder.path().join("cache"), &[]).await;
    assert_eq!((report.pages, web.count("http://h/")), (2, 2));
    assert!(pages.iter().any(|page| page.ends_with("back")), "{pages:?}");
}

#[tokio::test(start_paused = true)]
async fn coded_bodies_are_stored_as_received_and_decoded_again() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let mut coded = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coded.write_all(b"plain text").unwrap();
    let coded = coded.finish().unwrap();
    let web = ScriptedDownloader::pages([("http://g/", "g")])
        .respond("http://h/", Reply::html(coded).header("content-encoding", "gzip"));
    let (_, pages) = crawl(&web, &dir, &[]).await;
    let (_, replayed) = crawl(&ScriptedDownloader::new(), &dir, &[]).await;
    assert!(pages.contains(&"http://h/ plain text".to_owned()), "{pages:?}");
    assert!(replayed.contains(&"http://h/ cached plain text".to_owned()), "{replayed:?}");
}
