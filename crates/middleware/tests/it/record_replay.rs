//! Crawls that are recorded into a folder and replayed from it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use huntsman_crawler::{CrawlReport, CrawlerBuilder, FetchErrorKind, Output, Page, Result, spider_fn};
use huntsman_middleware::{Defaults, Fixture, exchanges_in};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

/// Pages, a redirect, a page that fails at first, and rules for robots.
fn web() -> ScriptedDownloader {
    let links = ["/old", "/gone", "/busy", "/closed"].map(|link| format!("<a href='{link}'>x</a>")).concat();
    ScriptedDownloader::pages([("http://h/", links)])
        .respond("http://h/old", Reply::redirect(302, "new?y=2"))
        .respond("http://h/new?y=2", Reply::html("<p>target</p>").header("set-cookie", "sid=hunter2"))
        .respond("http://h/gone", Reply::status(404).body("nothing here"))
        .respond("http://h/busy", Reply::status(503))
        .then(Reply::html("<p>at last</p>"))
        .respond("http://h/robots.txt", Reply::text("User-agent: *\nDisallow: /closed"))
}

/// A network that fails a test if it is used.
fn no_network() -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(|request, _| {
        panic!("{} was sent", request.url);
    })
}

/// Crawls, and returns the pages that reached the spider as well.
async fn crawl(web: &ScriptedDownloader, set: &[(&str, Value)]) -> Result<(CrawlReport, Vec<String>)> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let pages = Arc::clone(&seen);
    let spider = spider_fn(["http://h/"], move |page: &Page, out: &mut Output<()>| {
        pages.lock().unwrap().push(format!("{} {}", page.url(), page.text()));
        out.follow_links(page);
        Ok(())
    });
    let builder = CrawlerBuilder::new(spider).plugin(Defaults).downloader(web.clone()).set("seed", 7);
    let report =
        set.iter().fold(builder, |builder, (name, value)| builder.set(name, value.clone())).run().await?;
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort();
    Ok((report, seen))
}

fn dir(name: &'static str, folder: &Path) -> (&'static str, Value) {
    (name, json!(folder.to_str().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn a_replay_gives_what_was_recorded_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let (report, recorded) = crawl(&web(), &[dir("record_dir", folder.path())]).await.unwrap();
    assert_eq!(recorded, ["http://h/ xxxx", "http://h/busy at last", "http://h/new?y=2 target"]);
    // robots.txt, the start, a redirect and its target, 404, 503 and the page that came then.
    assert_eq!(report.stat("record/exchanges"), 7);
    for path in exchanges_in(folder.path()).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
    let (report, replayed) = crawl(&no_network(), &[dir("replay_dir", folder.path())]).await.unwrap();
    assert_eq!(replayed, recorded);
    let stats = ["replay/answered", "replay/missing", "robotstxt/forbidden", "retry/count"];
    assert_eq!(stats.map(|key| report.stat(key)), [7, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_recorded_fails_once_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    crawl(&web(), &[dir("record_dir", folder.path())]).await.unwrap();
    let of = |part: &str| {
        let paths = exchanges_in(folder.path()).unwrap();
        paths.into_iter().find(|path| path.to_str().unwrap().contains(part)).unwrap()
    };
    std::fs::remove_file(of("h-new-")).unwrap();
    let (report, seen) = crawl(&no_network(), &[dir("replay_dir", folder.path())]).await.unwrap();
    assert_eq!((report.stat("replay/missing"), seen.len()), (1, 2));
    assert_eq!(report.stat("drops/failed"), 2, "the page, and that with 404");

    // A body that is lost is no page without content.
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains("h-busy-") && !path.to_str().unwrap().ends_with(".fixture.json") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let (report, _) = crawl(&no_network(), &[dir("replay_dir", folder.path())]).await.unwrap();
    assert_eq!(report.stat("replay/missing"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_recording_that_is_not_there_or_damaged_is_told_before_the_crawl() {
    let folder = tempfile::tempdir().unwrap();
    let error = crawl(&no_network(), &[dir("replay_dir", folder.path())]).await.unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("no exchange is recorded"), "{error}");
    std::fs::write(folder.path().join("a.fixture.json"), "{\n  \"version\": 1,,\n}").unwrap();
    let error = crawl(&no_network(), &[dir("replay_dir", folder.path())]).await.unwrap_err();
    assert!(error.to_string().contains("a.fixture.json") && error.to_string().contains("line 2"), "{error}");
    let both = [dir("replay_dir", folder.path()), dir("record_dir", folder.path())];
    assert!(crawl(&no_network(), &both).await.unwrap_err().to_string().contains("set one of them"));
}

#[tokio::test(start_paused = true)]
async fn a_download_that_failed_fails_in_a_replay_with_the_same_error() {
    let folder = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages([("http://h/", "<a href=/down>x</a> <a href=/late>x</a>")])
        .respond("http://h/down", Reply::error(FetchErrorKind::Tls))
        .respond("http://h/late", Reply::error(FetchErrorKind::Reset))
        .then(Reply::html("<p>at last</p>"))
        .respond("http://h/robots.txt", Reply::error(FetchErrorKind::FirstByteTimeout))
        .then(Reply::text("User-agent: *\nAllow: /"));
    let (report, recorded) =
        crawl(&web, &[dir("record_dir", folder.path()), ("host_max_failures", json!(0))]).await.unwrap();
    assert_eq!(recorded, ["http://h/ x x", "http://h/late at last"]);
    // The three attempts at /down, one at /late, one at robots.txt.
    assert_eq!(report.stat("record/failures"), 5);
    let exceptions = |report: &CrawlReport| {
        ["tls", "connection_reset", "first_byte_timeout"]
            .map(|kind| report.stat(&format!("retry/reason_count/{kind}")))
    };
    let dropped = |report: &CrawlReport| [report.stat("drops/failed"), report.stat("retry/max_reached")];
    for delays in [json!([10.0]), json!([0.0, 0.0, 0.0])] {
        let set = [
            dir("replay_dir", folder.path()),
            ("robots_retry_delays", delays),
            ("host_max_failures", json!(0)),
        ];
        let (replay, replayed) = crawl(&no_network(), &set).await.unwrap();
        assert_eq!(replayed, recorded);
        assert_eq!((exceptions(&replay), dropped(&replay)), (exceptions(&report), dropped(&report)));
        assert_eq!(exceptions(&replay)[..2], [2, 1], "each attempt fails with its own error");
        assert_eq!(replay.stat("replay/missing"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_has_a_limit_and_what_it_cuts_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let set = [dir("record_dir", folder.path()), ("record_max_bytes", json!(2_500))];
    let (report, seen) = crawl(&web(), &set).await.unwrap();
    assert_eq!((report.stat("record/exchanges"), report.stat("record/left_out")), (2, 5));
    assert_eq!(seen.len(), 3, "the crawl itself goes on");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_page_is_a_fixture_and_a_failed_download_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::pages([("http://h/", "<a href=/lost>Mills</a>")])
        .otherwise(|_, _| Reply::error(FetchErrorKind::Tls));
    let set = [dir("record_dir", folder.path()), ("robotstxt_obey", json!(false)), ("retry_times", json!(0))];
    crawl(&web, &set).await.unwrap();
    let paths = exchanges_in(folder.path()).unwrap();
    assert_eq!(paths.len(), 1, "{paths:?}");
    let page = Fixture::file(&paths[0]).unwrap().page();
    assert_eq!((page.url().as_str(), page.text()), ("http://h/", "Mills"));
}
