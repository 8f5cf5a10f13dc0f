//! robots.txt over whole crawls.

use std::time::Duration;

use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site};

use super::support::{Log, arrive_at_intervals, links, on_site, polite, smallest_gap, tree};

#[tokio::test(start_paused = true)]
async fn robots_txt_is_asked_for_once_whatever_waits() {
    let seeds: Vec<String> = (0..30).map(|n| format!("http://a.test/{n}")).collect();
    let robots = Reply::text("User-agent: *\nDisallow: /secret").after(Duration::from_secs(3));
    let web = ScriptedDownloader::new()
        .respond("http://a.test/robots.txt", robots)
        .otherwise(|_, _| Reply::html("x").after(Duration::from_millis(10)));
    let log = Log::default();
    let report = polite(links(&seeds), &web)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 8)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(web.count("http://a.test/robots.txt"), 1);
    assert_eq!(web.urls()[0], "http://a.test/robots.txt");
    assert!(web.requests()[1].started >= Duration::from_secs(3), "pages wait for it");
    assert_eq!((report.pages, report.requests), (30, 31));
    assert_eq!(report.stat("response_received_count"), 30, "it is no page");
    assert!(log.delivered().iter().all(|url| !url.ends_with("robots.txt")));
}

#[tokio::test(start_paused = true)]
async fn crawl_delay_makes_the_crawl_serial() {
    let web = ScriptedDownloader::pages(tree("a.test", 12))
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nCrawl-delay: 2"))
        .latency(Duration::from_millis(2_500));
    let report = polite(links(["http://a.test/0"]), &web)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 8)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 12);
    assert_eq!(web.peak("a.test"), 1, "one at a time");
    assert!(smallest_gap(&web.starts("a.test")) >= Duration::from_millis(2_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_measures_the_crawl_delay() {
    let mut site = Site::builder().robots("User-agent: *\nCrawl-delay: 0.4");
    for (url, html) in tree("h", 7) {
        site = site.page(url.trim_start_matches("http://h"), html);
    }
    let site = site.start().await;
    let report = on_site(links([site.url("/0")]), &site).run().await.unwrap();
    assert_eq!(report.pages, 7);
    arrive_at_intervals(&site, Duration::from_millis(400));
    assert_eq!(site.peak("127.0.0.1"), 1);
}

#[tokio::test(start_paused = true)]
async fn robots_503_parks_the_host_and_ends_within_max_parked_wait() {
    let mut pages = tree("ill.test", 5);
    pages.extend(tree("well.test", 5));
    let web = ScriptedDownloader::pages(pages).respond("http://ill.test/robots.txt", Reply::status(503));
    let log = Log::default();
    let report = polite(links(["http://ill.test/0", "http://well.test/0"]), &web)
        .set("max_parked_wait", 30.0)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 5, "the other host is crawled meanwhile");
    assert!(report.elapsed_s < 60.0, "{}", report.elapsed_s);
    assert!(!web.urls().contains(&"http://ill.test/0".to_owned()), "nothing is asked before robots.txt");
    let drop = log.drop_of("http://ill.test/0");
    assert_eq!(drop.reason, "robots_unreachable");
    assert_eq!(report.failed_seeds.len(), 1, "{:?}", report.failed_seeds);
    assert!(web.count("http://ill.test/robots.txt") >= 2, "it was asked again");
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_recovers_lets_the_host_be_crawled() {
    let web = ScriptedDownloader::pages(tree("a.test", 5))
        .respond("http://a.test/robots.txt", Reply::status(500))
        .then(Reply::status(502))
        .then(Reply::text("User-agent: *\nDisallow: /4"));
    let log = Log::default();
    let report = polite(links(["http://a.test/0"]), &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(report.pages, 4);
    assert_eq!(log.drop_of("http://a.test/4").reason, "robots");
    let asked: Vec<Duration> =
        web.requests().iter().filter(|f| f.url().ends_with("robots.txt")).map(|f| f.started).collect();
    assert_eq!(asked.len(), 3);
    assert!(asked[1] - asked[0] >= Duration::from_secs(10), "{asked:?}");
    assert!(asked[2] - asked[1] >= Duration::from_secs(60), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_page_is_recorded_with_its_line() {
    let web = ScriptedDownloader::pages([("http://a.test/", "<a href=/private/x>p</a><a href=/open>o</a>")])
        .respond("http://a.test/open", Reply::html("o"))
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nDisallow: /private/"));
    let log = Log::default();
    let report = polite(links(["http://a.test/"]), &web).observer(log.clone()).run().await.unwrap();
    let drop = log.drop_of("http://a.test/private/x");
    assert_eq!((&*drop.reason, &*drop.component), ("robots", "robots_txt"));
    assert!(drop.detail.as_deref().is_some_and(|detail| detail.contains("Disallow: /private/")), "{drop:?}");
    assert_eq!((drop.referer.as_deref(), drop.depth), (Some("http://a.test/"), 1));
    assert!(
        log.lines().contains(&"http://a.test/private/x: Disallow: /private/".to_owned()),
        "{:?}",
        log.lines()
    );
    assert_eq!(web.count("http://a.test/private/x"), 0);
    assert_eq!(report.stat("robotstxt/forbidden"), 1);
}

#[tokio::test(start_paused = true)]
async fn observers_get_the_sitemaps_of_robots_txt() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]).respond(
        "http://a.test/robots.txt",
        Reply::text("Sitemap: /map.xml\nSitemap: http://b.test/all.xml"),
    );
    let log = Log::default();
    polite(links(["http://a.test/"]), &web).observer(log.clone()).run().await.unwrap();
    for sitemap in ["http://a.test/map.xml", "http://b.test/all.xml"] {
        assert!(log.lines().contains(&sitemap.to_owned()), "{:?}", log.lines());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_user_agent_of_robots_txt_is_that_of_the_pages() {
    let site = Site::builder()
        .page("/", "x")
        .answer("/robots.txt", Answer::text("User-agent: shy\nDisallow: /\n\nUser-agent: *\nAllow: /"))
        .start()
        .await;
    let shy = "shy/1.0 (+http://shy.test/bot)";
    let report = on_site(links([site.url("/")]), &site).set("user_agent", shy).run().await.unwrap();
    assert_eq!((report.pages, site.count("/")), (0, 0));
    assert_eq!(site.requests()[0].request.header("user-agent"), Some(shy));
}
