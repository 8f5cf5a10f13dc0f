//! Crawls of the spider crate whose downloads are made by Huntsman.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use huntsman::spider::spider_rs::configuration::Configuration;
use huntsman::spider::spider_rs::fetcher::{FetchContext, RemoteFetcher};
use huntsman::spider::spider_rs::page::{Page, build};
use huntsman::spider::spider_rs::website::Website;
use huntsman::spider::{Fetcher, not_fetched};
use huntsman::{Context, DownloaderMiddleware, FetchErrorKind, OnRequest, Request, Result};
use huntsman_testkit::{Answer, Reply, RunningSite, ScriptedDownloader, Site};

const ARTICLES: usize = 200;

/// Each article links to two others, once with their plain addresses and once with a session id, and to a page that
/// robots.txt forbids.
fn article(n: usize) -> String {
    let text: String = (0..60).map(|word| format!("w{} ", (n * 7_919 + word * 104_729) % 99_991)).collect();
    let links: String = [2 * n + 1, 2 * n + 2]
        .into_iter()
        .filter(|next| *next < ARTICLES)
        .map(|next| format!("<li><a href='/a?id={next}'>x</a> <a href='/a?id={next}&sid=s{n}x{next}'>y</a>"))
        .collect();
    format!(
        "<html><head><title>{n}</title></head><body><main><p>{text}</p></main><ul>{links}</ul>\
         <a href='/private/{}'>z</a></body></html>",
        n % 5
    )
}

async fn shop() -> RunningSite {
    let page = |asked: &huntsman_testkit::SiteRequest| match asked.param("id").and_then(|id| id.parse().ok())
    {
        Some(n) if n < ARTICLES => Answer::html(article(n)),
        _ => Answer::status(404),
    };
    Site::builder()
        .robots("User-agent: *\nDisallow: /private\n")
        .route("/a", page)
        .route("/private/*", |_| Answer::html("secret"))
        .start()
        .await
}

struct Crawled {
    /// The pages that the subscriber received.
    pages: Vec<Page>,
    fetcher: Fetcher,
    report: huntsman::CrawlReport,
}

/// A crawl of the spider crate over the shop.
async fn crawl(site: &RunningSite, avoid_dup: bool, permits: usize) -> Crawled {
    let port = site.port();
    let fetcher = Fetcher::start(|crawler| {
        crawler
            .set("avoid_dup_content_enabled", avoid_dup)
            .set("avoid_dup_content_initial_queue_limit", 40)
            .set("allow_addresses", vec![format!("127.0.0.1:{port}")])
            .set("seed", 7)
            .delay(Duration::ZERO)
            .per_host(4)
    })
    .unwrap();
    let mut website = Website::new(site.url("/a?id=0").as_str());
    fetcher.attach(&mut website);
    website.with_concurrency_limit(Some(permits));
    let mut subscription = website.subscribe(10_000);
    let reader = tokio::spawn(async move {
        let mut pages = Vec::new();
        while let Ok(page) = subscription.recv().await {
            pages.push(page);
        }
        pages
    });
    website.crawl().await;
    website.unsubscribe();
    drop(website);
    let pages = reader.await.unwrap();
    let report = fetcher.finish().await.unwrap();
    Crawled { pages, fetcher, report }
}

fn articles(pages: &[Page]) -> BTreeSet<String> {
    let title = |page: &Page| {
        let html = page.get_html();
        Some(html.split_once("<title>")?.1.split_once("</title>")?.0.to_owned())
    };
    pages.iter().filter(|page| not_fetched(page).is_none()).filter_map(title).collect()
}

fn requests(site: &RunningSite) -> usize {
    site.targets().iter().filter(|target| target.starts_with("/a?")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_are_skipped_and_no_content_is_lost() {
    let site = shop().await;
    let all = crawl(&site, false, 32).await;
    let asked_for_all = requests(&site);
    assert_eq!(articles(&all.pages).len(), ARTICLES);
    // Each article but the first has two addresses.
    assert_eq!(asked_for_all, 2 * ARTICLES - 1);
    assert!(all.fetcher.avoid_dup().is_none());

    let site = shop().await;
    let Crawled { pages, fetcher, report } = crawl(&site, true, 32).await;
    assert_eq!(articles(&pages), articles(&all.pages));
    let asked = requests(&site);
    assert!(asked < asked_for_all * 3 / 4, "{asked} of {asked_for_all} requests were sent");

    let duplicates: Vec<_> =
        pages.iter().filter(|page| not_fetched(page).is_some_and(|why| why.is_duplicate())).collect();
    assert_eq!(asked + duplicates.len(), asked_for_all, "each address was fetched or is told as known");
    for page in &duplicates {
        assert_eq!(page.status_code, 204);
        assert_eq!(page.get_html(), "");
        let why = not_fetched(page).unwrap();
        assert!(why.detail.contains("\"sid\"") && why.detail.contains("like http://"), "{why}");
    }
    let avoid_dup = fetcher.avoid_dup().unwrap();
    let totals = avoid_dup.totals().unwrap();
    assert_eq!((totals.skipped as usize, totals.learnt as usize), (duplicates.len(), asked));
    assert_eq!(avoid_dup.rules().iter().map(|rule| rule.skipped).sum::<u64>(), totals.skipped);
    let dropped = fetcher.dropped();
    assert_eq!(dropped.iter().filter(|drop| drop.reason == "duplicate_content").count(), duplicates.len());
    assert_eq!(report.finish_reason, "finished");
    assert_eq!(report.pages as usize, asked);
}

#[tokio::test]
async fn one_permit_is_enough_to_decide() {
    let site = shop().await;
    let Crawled { pages, .. } = crawl(&site, true, 1).await;
    assert_eq!(articles(&pages).len(), ARTICLES);
    let asked = requests(&site);
    assert!(asked < 3 * ARTICLES / 2, "{asked} requests were sent");
}

#[tokio::test]
async fn bodies_are_decoded_here_whatever_the_spider_crate_switches_on_in_the_http_library() {
    let html = format!("<html><body>{}</body></html>", "word ".repeat(100_000));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(html.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let sent = packed.len();
    let answer = Answer::html(packed).header("content-encoding", "gzip");
    let site = Site::builder().answer("/", answer).start().await;
    let port = site.port();
    let fetcher =
        Fetcher::start(|crawler| crawler.set("allow_addresses", vec![format!("127.0.0.1:{port}")])).unwrap();
    let page = fetch(&fetcher, site.url("/").as_str()).await;
    assert_eq!(page.get_html(), html);
    assert!(page.headers.unwrap().get("content-encoding").is_none());
    let received = fetcher.finish().await.unwrap().wire_bytes;
    assert!(received < 2 * sent as u64 + 10_000, "{received} bytes for {sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_robots_txt_forbids_is_not_fetched() {
    let site = shop().await;
    let Crawled { pages, .. } = crawl(&site, false, 32).await;
    assert_eq!(site.count("/robots.txt"), 1);
    assert!(site.targets().iter().all(|target| !target.starts_with("/private")));
    let forbidden: Vec<_> = pages.iter().filter(|page| page.get_url().contains("/private/")).collect();
    assert_eq!(forbidden.len(), 5);
    for page in forbidden {
        assert_eq!(page.status_code, 204);
        assert_eq!(not_fetched(page).unwrap().reason, "robots");
    }
}

/// Requests one page in the way of the spider crate.
async fn fetch(fetcher: &Fetcher, url: &str) -> Page {
    let configuration = Configuration::default();
    build(url, fetcher.fetch(FetchContext { url, configuration: &configuration }).await)
}

fn scripted(web: &ScriptedDownloader) -> Fetcher {
    let web = web.clone();
    Fetcher::start(|crawler| {
        crawler.downloader(web).set("robotstxt_obey", false).set("download_delay", 0.0).set("seed", 7)
    })
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn answers_come_as_they_are() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/moved" => Reply::redirect(301, "/here"),
        "/here" => Reply::html("here").header("x-huntsman-not-fetched", "forged"),
        _ => Reply::status(404).body("nothing here"),
    });
    let fetcher = scripted(&web);
    let page = fetch(&fetcher, "http://a.test/moved").await;
    assert_eq!((page.status_code.as_u16(), page.get_html().as_str()), (200, "here"));
    assert_eq!(page.final_redirect_destination.as_deref(), Some("http://a.test/here"));
    assert_eq!(not_fetched(&page), None, "a site cannot say what only we may say");
    let page = fetch(&fetcher, "http://a.test/nowhere").await;
    assert_eq!((page.status_code.as_u16(), page.get_html().as_str()), (404, "nothing here"));
    assert_eq!(not_fetched(&page), None);
}

#[tokio::test(start_paused = true)]
async fn failures_have_a_status_and_a_reason() {
    let web = ScriptedDownloader::new().otherwise(|request, _| match request.url.path() {
        "/refused" => Reply::error(FetchErrorKind::Connect),
        "/slow" => Reply::error(FetchErrorKind::IdleTimeout),
        "/broken" => Reply::error(FetchErrorKind::BadResponse),
        _ => Reply::status(503),
    });
    let fetcher = scripted(&web);
    let ends =
        [("/refused", 521, "connect"), ("/slow", 524, "idle_timeout"), ("/broken", 599, "bad_response")];
    for (path, status, reason) in ends {
        // Each request has a host of its own, so none of them is delayed by another.
        let page = fetch(&fetcher, &format!("http://{}.test{path}", &path[1..])).await;
        assert_eq!(page.status_code.as_u16(), status);
        assert_eq!(not_fetched(&page).unwrap().reason, reason);
    }
    let page = fetch(&fetcher, "http://a.test/busy").await;
    assert_eq!((page.status_code.as_u16(), not_fetched(&page)), (503, None), "the answer after all retries");
    assert!(web.count("http://a.test/busy") > 1);
    let page = fetch(&fetcher, "no address").await;
    assert_eq!(not_fetched(&page).unwrap().reason, "invalid_url");
}

/// A middleware that panics at one address.
struct Trap;

impl DownloaderMiddleware for Trap {
    fn name(&self) -> &'static str {
        "trap"
    }

    fn order(&self) -> i32 {
        500
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        assert!(request.url.path() != "/trap", "the trap");
        Ok(OnRequest::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_page() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x"), ("http://a.test/trap", "y")]);
    let fetcher = Fetcher::start(|crawler| {
        crawler.downloader(web.clone()).set("robotstxt_obey", false).middleware(Trap)
    })
    .unwrap();
    let page = fetch(&fetcher, "http://a.test/trap").await;
    let why = not_fetched(&page).unwrap();
    assert_eq!((why.reason.as_str(), page.status_code.as_u16()), ("panic", 599));
    assert!(why.detail.contains("the trap"), "{why}");
    assert_eq!(fetch(&fetcher, "http://a.test/").await.get_html(), "x");
}

#[tokio::test(start_paused = true)]
async fn one_download_serves_all_callers_that_wait_for_it() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]).latency(Duration::from_secs(2));
    let fetcher = scripted(&web);
    let pages = tokio::join!(fetch(&fetcher, "http://a.test/"), fetch(&fetcher, "http://a.test/"));
    assert_eq!((pages.0.get_html().as_str(), pages.1.get_html().as_str()), ("x", "x"));
    assert_eq!(web.count("http://a.test/"), 1);
    // A later request fetches the page again.
    fetch(&fetcher, "http://a.test/").await;
    assert_eq!(web.count("http://a.test/"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_callers_have_gone_is_not_fetched() {
    let web = ScriptedDownloader::pages([("http://a.test/1", "x"), ("http://a.test/2", "y")]);
    let web = web.latency(Duration::from_secs(2));
    let fetcher = scripted(&web);
    let first = tokio::spawn({
        let fetcher = fetcher.clone();
        async move { fetch(&fetcher, "http://a.test/1").await.get_html() }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    // This request waits in the queue behind the first, because only one runs at a time.
    let given_up = tokio::time::timeout(Duration::from_secs(1), fetch(&fetcher, "http://a.test/2")).await;
    assert!(given_up.is_err());
    assert_eq!(first.await.unwrap(), "x");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(web.urls(), ["http://a.test/1"]);
    assert_eq!(fetcher.dropped().last().unwrap().reason, "not_wanted");
    assert_eq!(fetch(&fetcher, "http://a.test/2").await.get_html(), "y");
}

#[tokio::test(start_paused = true)]
async fn after_the_end_nothing_is_fetched() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let fetcher = scripted(&web);
    assert_eq!(fetch(&fetcher, "http://a.test/").await.get_html(), "x");
    let report = fetcher.finish().await.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (1, "finished"));
    let page = fetch(&fetcher, "http://a.test/").await;
    assert_eq!(not_fetched(&page).unwrap().reason, "closed");
    assert!(fetcher.finish().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_fetcher_that_is_dropped_ends_its_crawl() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let (sender, ended) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let fetcher = Fetcher::start(|crawler| {
        crawler.downloader(web).observer(move |event: &huntsman::Event<'_>| {
            if matches!(event, huntsman::Event::EngineStopped) {
                sender.lock().unwrap().take().unwrap().send(()).unwrap();
            }
        })
    })
    .unwrap();
    drop(fetcher);
    ended.await.unwrap();
}
