//! The built-in middlewares together, in whole crawls with scripted responses and in virtual time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{
    CrawlerBuilder, Downloader, FetchError, FetchErrorKind, Output, Page, Request, Response, Result, Spider,
    Start,
};
use huntsman_middleware::Defaults;
use huntsman_middleware::sinks::{DropLog, JsonLines};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde::Serialize;
use serde_json::Value;

struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

#[derive(Serialize)]
struct Record {
    url: String,
    final_url: String,
}

/// Follows every link.
struct Site(Vec<Request>);

impl Spider for Site {
    type Item = Record;

    fn start(&self) -> Start {
        Start::requests(self.0.clone())
    }

    fn parse(&self, page: &Page, out: &mut Output<Record>) -> Result<()> {
        out.item(Record {
            url: page.request().requested_url().to_owned(),
            final_url: page.url().to_string(),
        });
        out.follow_links(page);
        Ok(())
    }
}

/// One crawl with its files.
struct Crawl {
    web: Arc<ScriptedDownloader>,
    seeds: Vec<Request>,
    settings: Vec<(&'static str, Value)>,
}

struct Done {
    report: huntsman_crawler::CrawlReport,
    pages: BTreeMap<String, String>,
    drops: BTreeMap<String, Value>,
    elapsed: Duration,
}

impl Crawl {
    fn new(web: ScriptedDownloader, seeds: &[&str]) -> Self {
        let seeds = seeds.iter().map(|seed| Request::parse(seed).unwrap()).collect();
        Self { web: Arc::new(web), seeds, settings: Vec::new() }
    }

    fn set(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.settings.push((name, value.into()));
        self
    }

    async fn run(self) -> Done {
        let folder = tempfile::tempdir().unwrap();
        let (pages, drops) = (folder.path().join("pages.jsonl"), folder.path().join("drops.jsonl"));
        let mut builder = CrawlerBuilder::new(Site(self.seeds))
            .plugin(Defaults)
            .set("download_delay", 0.0)
            .set("robotstxt_obey", false)
            .set("seed", 7)
            .downloader(Web(Arc::clone(&self.web)))
            .pipeline(JsonLines::create(&pages).unwrap())
            .observer(DropLog::create(&drops).unwrap());
        for (name, value) in self.settings {
            builder = builder.set(name, value);
        }
        let started = tokio::time::Instant::now();
        let report = builder.run().await.unwrap();
        let elapsed = started.elapsed();
        let pages = lines(&pages).into_iter().map(|line| {
            (line["url"].as_str().unwrap().to_owned(), line["final_url"].as_str().unwrap().to_owned())
        });
        let (pages, mut drops_by_url): (Vec<_>, BTreeMap<String, Value>) = (pages.collect(), BTreeMap::new());
        for line in lines(&drops) {
            let url = line["url"].as_str().unwrap().to_owned();
            assert!(drops_by_url.insert(url.clone(), line).is_none(), "{url} was recorded twice");
        }
        let count = pages.len();
        let pages: BTreeMap<String, String> = pages.into_iter().collect();
        assert_eq!(pages.len(), count, "a page was delivered twice");
        assert!(pages.keys().all(|url| !drops_by_url.contains_key(url)), "a page is in both files");
        Done { report, pages, drops: drops_by_url, elapsed }
    }
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Done {
    fn reason(&self, url: &str) -> &str {
        self.drops.get(url).and_then(|drop| drop["reason"].as_str()).unwrap_or("no drop")
    }

    fn final_url(&self, url: &str) -> &str {
        self.pages.get(url).map_or("no page", String::as_str)
    }
}

fn links(to: &[&str]) -> Reply {
    Reply::html(to.iter().map(|href| format!("<a href='{href}'>x</a>")).collect::<String>())
}

#[tokio::test(start_paused = true)]
async fn redirects_are_one_record_under_the_requested_address() {
    let web = ScriptedDownloader::new()
        .respond("http://h/", links(&["/a", "/chain", "/known", "/loop", "/broken", "/mail", "/endless/0"]))
        .respond("http://h/a", Reply::html("a"))
        .respond("http://h/chain", Reply::redirect(302, "/one"))
        .respond("http://h/one", Reply::redirect(301, "/two"))
        .respond("http://h/two", Reply::html("two"))
        .respond("http://h/known", Reply::redirect(302, "/a"))
        .respond("http://h/loop", Reply::redirect(302, "/loop"))
        .respond("http://h/broken", Reply::redirect(302, "http://["))
        .respond("http://h/mail", Reply::redirect(302, "mailto:a@b"))
        .otherwise(|request, _| {
            let n: u32 = request.url.path().trim_start_matches("/endless/").parse().unwrap();
            Reply::redirect(302, &format!("/endless/{}", n + 1))
        });
    let crawl = Crawl::new(web, &["http://h/"]).set("redirect_max_times", 10);
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!(done.final_url("http://h/chain"), "http://h/two");
    assert_eq!(done.pages.len(), 3);
    for (url, reason) in [
        ("http://h/known", "redirect_duplicate"),
        ("http://h/loop", "redirect_loop"),
        ("http://h/broken", "bad_redirect"),
        ("http://h/mail", "http_status"),
        ("http://h/endless/0", "max_redirects"),
    ] {
        assert_eq!(done.reason(url), reason, "{url}");
    }
    assert_eq!(web.count("http://h/loop"), 1);
    assert_eq!(web.urls().iter().filter(|url| url.contains("endless")).count(), 11, "10 hops");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_retried_after_a_wait() {
    let web = ScriptedDownloader::new()
        .respond("http://h/", links(&["/busy", "/gone", "/reset", "/later"]))
        .respond("http://h/busy", Reply::status(503))
        .then(Reply::status(429).header("retry-after", "40"))
        .then(Reply::html("at last"))
        .respond("http://h/gone", Reply::status(404))
        .respond("http://h/reset", Reply::error(FetchErrorKind::Reset))
        .respond("http://h/later", Reply::status(503).header("retry-after", "3600"));
    let crawl = Crawl::new(web, &["http://h/"]);
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!(done.final_url("http://h/busy"), "http://h/busy");
    assert_eq!(
        (done.reason("http://h/gone"), &done.drops["http://h/gone"]["status"]),
        ("http_status", &404.into())
    );
    assert_eq!(done.reason("http://h/reset"), "connection_reset");
    assert_eq!((web.count("http://h/reset"), web.count("http://h/later")), (3, 1));
    assert_eq!(done.reason("http://h/later"), "http_status");
    assert!(done.elapsed >= Duration::from_secs(40), "{:?}", done.elapsed);
    assert_eq!(done.report.stat("retry/count"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_retried_request_whose_target_is_known_is_a_duplicate() {
    let web = ScriptedDownloader::new()
        .respond("http://h/", links(&["/a", "/b"]))
        .respond("http://h/a", Reply::html("a"))
        .respond("http://h/b", Reply::status(503))
        .then(Reply::redirect(302, "/a"));
    let done = Crawl::new(web, &["http://h/"]).run().await;
    assert_eq!(done.reason("http://h/b"), "redirect_duplicate");
    assert_eq!(done.pages.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn robots_txt_is_fetched_once_and_names_the_line() {
    let robots = "User-agent: *\nDisallow: /private\nCrawl-delay: 2\nSitemap: /map.xml\n";
    let web = ScriptedDownloader::new()
        .respond("http://h/robots.txt", Reply::text(robots))
        .respond("http://h/", links(&["/a", "/b", "/private/x", "/hop"]))
        .respond("http://h/a", Reply::html("a"))
        .respond("http://h/b", Reply::html("b"))
        .respond("http://h/hop", Reply::redirect(302, "/private/y"));
    let crawl =
        Crawl::new(web, &["http://h/"]).set("robotstxt_obey", true).set("concurrent_requests_per_domain", 8);
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!(web.count("http://h/robots.txt"), 1);
    assert_eq!(done.pages.len(), 3);
    for url in ["http://h/private/x", "http://h/hop"] {
        assert_eq!(done.reason(url), "robots");
        assert_eq!(done.drops[url]["detail"], "Disallow: /private");
    }
    let gap = web.smallest_gap("h").unwrap();
    assert!(gap >= Duration::from_millis(1_960), "{gap:?}");
    assert_eq!(web.peak("h"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_robots_txt_parks_its_host_and_not_the_others() {
    let web = ScriptedDownloader::new()
        .respond("http://down/robots.txt", Reply::status(503))
        .respond("http://back/robots.txt", Reply::error(FetchErrorKind::Reset))
        .then(Reply::text(""))
        .respond("http://back/", Reply::html("x"))
        .respond("http://up/robots.txt", Reply::status(404))
        .respond("http://up/", Reply::html("x"));
    let crawl = Crawl::new(web, &["http://down/", "http://down/b", "http://back/", "http://up/"])
        .set("robotstxt_obey", true)
        .set("max_parked_wait", 30.0);
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!(done.pages.len(), 2);
    for url in ["http://down/", "http://down/b"] {
        assert_eq!(done.reason(url), "robots_unreachable");
    }
    assert!(done.elapsed < Duration::from_secs(60), "{:?}", done.elapsed);
    assert!(web.count("http://down/robots.txt") <= 3);
    assert_eq!(web.count("http://down/"), 0);
}

#[tokio::test(start_paused = true)]
async fn cookies_and_credentials_go_where_they_belong() {
    let seen = |request: &Request, name: &str| {
        request.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    let web = ScriptedDownloader::new()
        .respond(
            "https://h/login",
            Reply::redirect(302, "/home").header("set-cookie", "sid=1; Secure; Path=/"),
        )
        .respond("https://h/home", Reply::redirect(302, "https://g/away"))
        .respond("https://g/away", Reply::redirect(302, "http://h/plain"))
        .respond("http://h/plain", Reply::html("done"));
    let crawl = Crawl::new(web, &["https://h/login"]).set("http_auth", serde_json::json!(["https://h=u:p"]));
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!(done.final_url("https://h/login"), "http://h/plain");
    let sent: Vec<_> = web
        .requests()
        .iter()
        .map(|fetched| {
            let request = &fetched.request;
            (fetched.url().to_owned(), seen(request, "cookie"), seen(request, "authorization").is_some())
        })
        .collect();
    let expected = [
        ("https://h/login", None, true),
        ("https://h/home", Some("sid=1"), true),
        ("https://g/away", None, false),
        ("http://h/plain", None, false),
    ];
    assert_eq!(sent, expected.map(|(url, cookie, auth)| (url.to_owned(), cookie.map(str::to_owned), auth)));
}

#[tokio::test(start_paused = true)]
async fn every_refused_link_has_one_record_and_its_reason() {
    let long = format!("/{}", "x".repeat(2_100));
    let deep = "/a/b/a/b/a/b";
    let web = ScriptedDownloader::new()
        .respond(
            "http://h/",
            Reply::html(format!(
                "<a href=/a>1</a><a href=/b rel=nofollow>2</a><a href=http://other/>3</a><a href=http://other/>3</a>\
                 <a href='{long}'>4</a><a href='{deep}'>5</a><a href=http://u:p@h/x>6</a><a href=/skip/x>7</a>\
                 <a href=/quiet>8</a><a href=ftp://h/>9</a>"
            )),
        )
        .respond("http://h/a", links(&["/b", "/c", "/"]))
        .respond("http://h/b", Reply::html("b"))
        .respond("http://h/c", links(&["/d", "/b"]))
        .respond("http://h/quiet", links(&["/only-here"]).header("x-robots-tag", "nofollow"));
    let done = Crawl::new(web, &["http://h/"])
        .set("scope", "host")
        .set("exclude", serde_json::json!(["*/skip/*"]))
        .set("depth_limit", 2)
        .run()
        .await;
    assert_eq!(
        done.pages.keys().map(String::as_str).collect::<Vec<_>>(),
        ["http://h/", "http://h/a", "http://h/b", "http://h/c", "http://h/quiet"]
    );
    for (url, reason) in [
        ("http://other/", "offsite"),
        (&format!("http://h{long}"), "url_length"),
        ("http://h/a/b/a/b/a/b", "path_repeats"),
        ("http://***@h/x", "userinfo"),
        ("http://h/skip/x", "excluded"),
        ("http://h/only-here", "nofollow"),
        ("http://h/d", "depth"),
    ] {
        assert_eq!(done.reason(url), reason, "{url}");
    }
    assert_eq!(done.drops.len(), 7, "{:?}", done.drops.keys());
}

#[tokio::test(start_paused = true)]
async fn a_redirect_out_of_scope_is_not_followed() {
    let web = ScriptedDownloader::new()
        .respond("http://h/", links(&["/out", "/trap"]))
        .respond("http://h/out", Reply::redirect(302, "http://other/"))
        .respond("http://h/trap", Reply::redirect(302, "http://u@h/"));
    let crawl = Crawl::new(web, &["http://h/"]).set("scope", "host");
    let web = Arc::clone(&crawl.web);
    let done = crawl.run().await;
    assert_eq!((done.reason("http://h/out"), done.reason("http://h/trap")), ("offsite", "userinfo"));
    assert_eq!(web.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_meta_refresh_is_followed_in_one_record() {
    let web = ScriptedDownloader::new()
        .respond("http://h/", Reply::html("<meta http-equiv=refresh content='0;url=/next'>"))
        .respond("http://h/next", Reply::html("<meta http-equiv=refresh content='60'>news"));
    let done = Crawl::new(web, &["http://h/"]).run().await;
    assert_eq!(done.final_url("http://h/"), "http://h/next");
}
