//! Whole crawls whose pages are rendered, by a stand-in for the browser and in virtual time.

mod auto;
mod kills;
mod stand_in;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{
    CrawlReport, CrawlerBuilder, FetchErrorKind, Output, Page, Request, Result, Spider, Start,
};
use huntsman_middleware::browser::Rendering;
use huntsman_middleware::{Cookies, Defaults, Render, RenderRequest, RenderedPage};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

use stand_in::StandIn;

/// What the spider saw of a page.
#[derive(Clone, Debug, Default)]
struct Seen {
    body: String,
    flags: Vec<&'static str>,
    is_rendered: bool,
    record: Value,
    times: usize,
}

type Pages = Arc<Mutex<BTreeMap<String, Seen>>>;

/// Notes each page, and follows its links.
struct Notes {
    start: Vec<Request>,
    pages: Pages,
}

impl Spider for Notes {
    type Item = ();

    fn start(&self) -> Start {
        Start::requests(self.start.clone())
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let mut pages = self.pages.lock().unwrap();
        let seen = pages.entry(page.url().to_string()).or_default();
        seen.times += 1;
        seen.body = page.body_text().to_owned();
        seen.flags = page.response().flags.clone();
        seen.is_rendered = page.rendered().is_some();
        seen.record = page.record_fields.get("render").cloned().unwrap_or_default();
        out.follow_links(page);
        Ok(())
    }
}

struct Crawled {
    report: CrawlReport,
    pages: BTreeMap<String, Seen>,
    browser: Arc<StandIn>,
}

impl Crawled {
    fn page(&self, url: &str) -> &Seen {
        self.pages.get(url).unwrap_or_else(|| panic!("{url} is not among {:?}", self.pages.keys()))
    }
}

/// A crawl of these requests, which notes its pages.
fn builder_of(
    web: &ScriptedDownloader,
    start: Vec<Request>,
    set: &[(&str, Value)],
    pages: &Pages,
    browser: &Arc<StandIn>,
) -> CrawlerBuilder<Notes> {
    let renderer = Arc::clone(browser);
    let builder = CrawlerBuilder::new(Notes { start, pages: Arc::clone(pages) })
        .plugin(Defaults)
        .component(move |settings| Render::with_renderer(settings, renderer))
        .downloader(web.clone())
        .set("seed", 7)
        .set("download_delay", 0.0)
        .set("download_delay_jitter", 0.0)
        .set("scope", "host");
    set.iter().fold(builder, |builder, (name, value)| builder.set(name, value.clone()))
}

async fn crawl_of(web: &ScriptedDownloader, start: Vec<Request>, set: &[(&str, Value)]) -> Crawled {
    let (pages, browser) = (Pages::default(), Arc::new(StandIn::default()));
    let report = builder_of(web, start, set, &pages, &browser).run().await.unwrap();
    let pages = std::mem::take(&mut *pages.lock().unwrap());
    Crawled { report, pages, browser }
}

async fn crawl(web: &ScriptedDownloader, set: &[(&str, Value)]) -> Crawled {
    let mut settings = vec![("render", json!("all"))];
    settings.extend_from_slice(set);
    crawl_of(web, vec![Request::parse("http://h/").unwrap()], &settings).await
}

fn web<const N: usize>(pages: [(&str, &str); N]) -> ScriptedDownloader {
    ScriptedDownloader::pages(pages.map(|(url, body)| (url.to_owned(), body.to_owned())))
}

#[tokio::test(start_paused = true)]
async fn the_spider_sees_the_rendered_page_and_its_links_are_followed() {
    let web = web([
        ("http://h/", "<meta charset=latin1><p data-fetch=\"/list\" data-url=\"/#all\"></p>"),
        ("http://h/list", "<a href='/b'>\u{e9}</a>"),
        ("http://h/b", "b"),
    ])
    .respond(
        "http://h/",
        Reply::status(200)
            .header("content-type", "text/html; charset=latin1")
            .body("<p data-fetch=\"/list\" data-url=\"/#all\">"),
    );
    let crawled = crawl(&web, &[]).await;
    let start = crawled.page("http://h/#all");
    assert!(start.body.contains("<a href='/b'>\u{e9}</a>"), "{}", start.body);
    assert_eq!((start.flags.as_slice(), start.is_rendered), (&["rendered"][..], true));
    assert_eq!(start.record["requests"], 2);
    assert_eq!(crawled.page("http://h/b").body, "b");
    // The document is the response that the crawl has already, and what a page asks for is no page.
    assert_eq!(web.count("http://h/"), 1);
    assert_eq!((crawled.report.pages, crawled.report.stat("render/pages")), (2, 2));
    assert_eq!(crawled.report.stat("render/requests/fetch"), 1);
}

#[tokio::test(start_paused = true)]
async fn pages_are_rendered_as_the_setting_and_their_requests_say() {
    let web = web([("http://h/", "<p data-fetch=\"/list\">"), ("http://h/list", "x")]);
    let plain = || vec![Request::parse("http://h/").unwrap()];
    let asked = || vec![Request::parse("http://h/").unwrap().render(Rendering::default())];
    for (mode, start, expected) in [
        ("never", plain(), false),
        ("never", asked(), false),
        ("requested", plain(), false),
        ("requested", asked(), true),
        ("auto", asked(), true),
        ("all", plain(), true),
    ] {
        let crawled = crawl_of(&web, start, &[("render", json!(mode))]).await;
        assert_eq!(crawled.page("http://h/").is_rendered, expected, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_page_of_html_is_left_as_it_is() {
    let web = web([("http://h/", "<a href='/t'></a><a href='/j'></a><a href='/gone'></a>")])
        .respond("http://h/t", Reply::text("data-fetch=\"/x\""))
        .respond("http://h/j", Reply::status(200).header("content-type", "application/json").body("{}"))
        .respond("http://h/gone", Reply::html("gone"));
    let crawled = crawl(&web, &[]).await;
    assert!(!crawled.page("http://h/t").is_rendered && !crawled.page("http://h/j").is_rendered);
    assert_eq!(web.count("http://h/x"), 0);
}

#[tokio::test(start_paused = true)]
async fn each_request_of_a_page_has_a_start_of_its_slot() {
    let mut pages = vec![("http://h/".to_owned(), String::new())];
    for n in 0..10 {
        pages[0].1.push_str(&format!("<a href='/{n}'></a>"));
        let page = format!("<script src=\"/bundle.js\"></script><p data-fetch=\"/data/{n}\"></p>");
        pages.push((format!("http://h/{n}"), page));
        pages.push((format!("http://h/data/{n}"), format!("data of {n}")));
    }
    let web = ScriptedDownloader::pages(pages)
        .respond("http://h/bundle.js", Reply::status(200).header("content-type", "text/javascript").body("x"))
        .latency(Duration::from_millis(30));
    let crawled = crawl(&web, &[("download_delay", json!(0.5)), ("render_pages", json!(4))]).await;
    assert_eq!(crawled.report.pages, 11);
    assert!(web.smallest_gap("h").unwrap() >= Duration::from_millis(500), "{:?}", web.smallest_gap("h"));
    assert_eq!(web.count("http://h/bundle.js"), 1, "one for all pages");
    assert_eq!(crawled.report.stat("render/source/kept"), 9);
    assert!(crawled.page("http://h/3").body.contains("data of 3"));
    // Ten pages wait for a start twice or more, each for half a second and longer.
    assert!(crawled.browser.waited.load(Ordering::Relaxed) > 4_000, "{:?}", crawled.browser.waited);
    assert!(crawled.browser.peak.load(Ordering::Relaxed) <= 4);
}

#[tokio::test(start_paused = true)]
async fn what_robots_txt_forbids_is_never_asked_for() {
    let web =
        web([("http://h/", "<script src=\"/private/a.js\"></script><p data-fetch=\"/private/b\"></p>")])
            .respond("http://h/robots.txt", Reply::text("User-agent: *\nDisallow: /private/"))
            .otherwise(|_, _| Reply::text("secret"));
    let crawled = crawl(&web, &[]).await;
    assert!(crawled.page("http://h/").body.contains("refused: robots"));
    assert!(!web.urls().iter().any(|url| url.contains("private")), "{:?}", web.urls());
    assert_eq!(crawled.report.stat("render/refused/robots"), 2);
    assert_eq!(crawled.report.stat("drops/skipped"), 0, "it is no request of the crawl");
}

#[tokio::test(start_paused = true)]
async fn the_browser_takes_redirects_and_failures_itself() {
    let web = web([
        (
            "http://h/",
            "<p data-fetch=\"/moved\"></p><p data-fetch=\"/busy\"></p><p data-fetch=\"/lost\"></p>",
        ),
        ("http://h/target", "at the target"),
    ])
    .respond("http://h/moved", Reply::redirect(302, "/target"))
    .respond("http://h/busy", Reply::status(503).body("busy"))
    .respond("http://h/lost", Reply::error(FetchErrorKind::Reset));
    let crawled = crawl(&web, &[]).await;
    let page = &crawled.page("http://h/").body;
    assert!(page.contains("at the target") && page.contains("busy"), "{page}");
    assert!(page.contains("refused: connection_reset"), "{page}");
    assert_eq!((web.count("http://h/busy"), web.count("http://h/lost")), (1, 1), "no retries");
    assert_eq!(crawled.report.stat("render/requests/fetch"), 4);
}

#[tokio::test(start_paused = true)]
async fn other_sites_give_scripts_and_data_as_the_setting_says() {
    let page = "<script src=\"http://cdn.test/a.js\"></script><p sheet=\"http://cdn.test/a.css\"></p>\
                <p data-fetch=\"http://api.test/b\"></p>";
    for (setting, expected) in [
        ("script,xhr", &["http://cdn.test/a.js", "http://api.test/b"][..]),
        ("all", &["http://cdn.test/a.js", "http://cdn.test/a.css", "http://api.test/b"]),
        ("none", &[]),
    ] {
        let web = web([("http://h/", page)]).otherwise(|request, _| {
            let is_robots = request.url.path() == "/robots.txt";
            if is_robots { Reply::status(404) } else { Reply::text("x") }
        });
        let crawled = crawl(&web, &[("render_third_party", json!(setting))]).await;
        let asked: Vec<_> =
            web.urls().into_iter().filter(|url| url.contains(".test/") && !url.contains("robots")).collect();
        assert_eq!(asked, expected, "{setting}");
        assert_eq!(crawled.report.stat("render/refused/third_party"), 3 - expected.len() as i64);
        assert_eq!(crawled.report.pages, 1, "none of them is a page, nor out of scope");
    }
}

#[tokio::test(start_paused = true)]
async fn cookies_of_servers_and_of_scripts_are_those_of_the_crawl() {
    let web = ScriptedDownloader::new()
        .respond(
            "http://h/",
            Reply::html("<p data-cookie=\"js=1; Path=/\"></p><p data-fetch=\"/data\"></p><a href='/b'></a>")
                .header("set-cookie", "server=1; Path=/"),
        )
        .respond("http://h/data", Reply::text("d").header("set-cookie", "api=1; Path=/; HttpOnly"))
        .respond("http://h/b", Reply::html("<p data-seen></p>"));
    let crawled = crawl(&web, &[]).await;
    let sent = |url: &str| {
        let asked = web.requests().into_iter().find(|fetched| fetched.url() == url).unwrap();
        let cookies = asked.request.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned());
        let mut cookies: Vec<String> = cookies.unwrap_or_default().split("; ").map(str::to_owned).collect();
        cookies.sort();
        cookies
    };
    assert_eq!(sent("http://h/data"), ["server=1"]);
    assert_eq!(sent("http://h/b"), ["api=1", "js=1", "server=1"]);
    let seen = &crawled.page("http://h/b").body;
    for line in ["server=1; Path=/", "js=1; Path=/", "api=1; Path=/; HttpOnly"] {
        assert!(seen.contains(line), "{line} in {seen}");
    }
    let jars = crawled.report.component::<Cookies>().unwrap();
    assert_eq!(jars.jars().with("", |jar| jar.len()), 3);
}

#[tokio::test(start_paused = true)]
async fn windows_that_a_page_opens_are_links() {
    let web = web([
        ("http://h/", "<body><p data-popup=\"/opened?a=1&lt=2\"></p></body>"),
        ("http://h/opened?a=1&lt=2", "new"),
    ]);
    let crawled = crawl(&web, &[]).await;
    assert_eq!(crawled.report.pages, 2, "{:?}", crawled.pages.keys());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_crashes_the_browser_is_tried_three_times_and_then_taken_as_it_is() {
    let web = web([("http://h/", "<p data-crash></p><a href='/b'></a>"), ("http://h/b", "b")]);
    let crawled = crawl(&web, &[]).await;
    let page = crawled.page("http://h/");
    assert_eq!((page.times, page.is_rendered, page.flags.as_slice()), (1, false, &["render_crashed"][..]));
    assert_eq!(web.count("http://h/"), 3);
    assert_eq!((crawled.report.stat("render/crashed"), crawled.report.stat("render/static")), (3, 1));
    assert!(crawled.page("http://h/b").is_rendered, "it costs its page only");
}

#[tokio::test(start_paused = true)]
async fn pages_from_a_cache_do_not_hold_the_place_that_others_need() {
    let folder = tempfile::tempdir().unwrap();
    let mut pages = vec![("http://h/".to_owned(), String::new())];
    for n in 0..6 {
        pages[0].1.push_str(&format!("<a href='/{n}'></a>"));
        pages.push((format!("http://h/{n}"), format!("<p data-fetch=\"/data/{n}\"></p>")));
    }
    let data = |request: &Request, _| match request.url.path() {
        "/robots.txt" => Reply::status(404),
        path => Reply::status(203).header("content-type", "text/plain").body(path.to_owned()),
    };
    let web = ScriptedDownloader::pages(pages).otherwise(data).latency(Duration::from_millis(10));
    let set = [
        ("httpcache_enabled", json!(true)),
        ("httpcache_dir", json!(folder.path().to_str().unwrap())),
        ("httpcache_ignore_http_codes", json!([203])),
        ("concurrent_requests_per_domain", json!(1)),
        ("render_pages", json!(2)),
    ];
    assert_eq!(crawl(&web, &set).await.report.pages, 7);
    // The pages are in the cache now, and what they ask for is not.
    let again = tokio::time::timeout(Duration::from_secs(600), crawl(&web, &set)).await;
    let again = again.expect("nobody waits for ever");
    assert_eq!((again.report.pages, again.report.stat("render/source/crawl")), (7, 6));
    assert_eq!((web.count("http://h/3"), web.count("http://h/data/3")), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_have_the_tree_of_a_page_and_what_it_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let web = web([("http://h/", "<p data-fetch=\"/list\"></p>"), ("http://h/list", "from a script")]);
    let archive = folder.path().join("archive");
    crawl(&web, &[("warc_dir", json!(archive.to_str().unwrap()))]).await;
    let file = std::fs::read_dir(&archive).unwrap().next().unwrap().unwrap().path();
    let mut reader = huntsman_warc::WarcReader::new(std::fs::File::open(file).unwrap());
    let (mut found, mut page) = (BTreeMap::new(), String::new());
    while let Some(head) = reader.next_head().unwrap() {
        let block = String::from_utf8_lossy(&reader.block(1 << 20).unwrap().bytes).into_owned();
        let uri = head.get("WARC-Target-URI").unwrap_or_default().to_owned();
        if head.kind() == "response" && uri == "http://h/" {
            page = head.get("WARC-Record-ID").unwrap().to_owned();
        }
        if matches!(head.kind(), "response" | "resource") {
            found.insert(uri, (block, head.get("WARC-Concurrent-To").map(str::to_owned)));
        }
    }
    assert!(found.contains_key("http://h/list"), "{:?}", found.keys());
    let (tree, of) = &found["urn:dom:http://h/"];
    assert!(tree.contains("from a script"), "{tree}");
    assert_eq!(of.as_deref(), Some(page.as_str()));
}
