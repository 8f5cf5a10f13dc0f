//! Politeness: slots, delays, concurrency, order.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use huntsman::{Crawls, Output, Page, Request, Result, Spider, Start, spider_fn};
use huntsman_testkit::{Answer, Reply, ScriptedDownloader, Site};

use super::support::{arrive_at_intervals, links, most_at_once, on_site, polite, quick, smallest_gap, tree};

/// When fetches started on all hosts.
fn all_starts(web: &ScriptedDownloader) -> Vec<Duration> {
    web.requests().iter().map(|fetched| fetched.started).collect()
}

fn any_page() -> ScriptedDownloader {
    ScriptedDownloader::new().otherwise(|_, _| Reply::html("x").after(Duration::from_millis(10)))
}

#[tokio::test(start_paused = true)]
async fn hosts_of_one_domain_share_a_slot() {
    let seeds = ["http://a.site.test/", "http://b.site.test/", "http://b.site.test/2", "http://site.test/"];
    for (slot_by, is_shared) in [("registrable_domain", true), ("host", false)] {
        let web = any_page();
        let crawl = polite(links(seeds), &web).set("slot_by", slot_by).set("robotstxt_obey", false);
        assert_eq!(crawl.run().await.unwrap().pages, 4);
        assert_eq!(smallest_gap(&all_starts(&web)) >= Duration::from_secs(1), is_shared, "{slot_by}");
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_of_one_address_share_a_slot_from_the_first_request_on() {
    let address: IpAddr = "192.0.2.7".parse().unwrap();
    let other: IpAddr = "192.0.2.8".parse().unwrap();
    let hosts = ["a.test", "b.test", "c.test", "d.test"];
    let web = hosts.into_iter().fold(any_page(), |web, host| web.resolve(host, address));
    let web = web.resolve("elsewhere.test", other);
    let seeds: Vec<String> =
        hosts.iter().chain(&["elsewhere.test"]).map(|host| format!("http://{host}/")).collect();
    let crawl = polite(links(&seeds), &web).set("slot_by", "ip").set("robotstxt_obey", false);
    assert_eq!(crawl.run().await.unwrap().pages, 5);
    let shared: Vec<Duration> = hosts.iter().flat_map(|host| web.starts(host)).collect();
    assert_eq!(shared.len(), 4);
    assert!(smallest_gap(&shared) >= Duration::from_secs(1), "{shared:?}");
    assert!(web.starts("elsewhere.test")[0] < Duration::from_secs(1), "another address waits for nobody");
}

#[tokio::test(start_paused = true)]
async fn ports_and_letter_case_share_the_slot_of_their_host() {
    let web = any_page();
    let seeds = ["http://A.test/1", "http://a.test:8080/2", "http://a.TEST:9090/3"];
    let crawl = polite(links(seeds), &web).set("robotstxt_obey", false);
    assert_eq!(crawl.run().await.unwrap().pages, 3);
    assert!(smallest_gap(&all_starts(&web)) >= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn requests_that_waited_together_for_robots_txt_leave_one_after_another() {
    let web = any_page()
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *").after(Duration::from_secs(9)));
    let seeds: Vec<String> = (0..8).map(|n| format!("http://a.test/{n}")).collect();
    let crawl = polite(links(&seeds), &web).set("concurrent_requests_per_domain", 4);
    assert_eq!(crawl.run().await.unwrap().pages, 8);
    let starts = web.starts("a.test");
    assert!(smallest_gap(&starts) >= Duration::from_secs(1), "{starts:?}");
}

/// A spider with the given start requests.
struct Given(Vec<Request>);

impl Spider for Given {
    type Item = ();
    fn start(&self) -> Start {
        Start::requests(self.0.clone())
    }
    fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn download_slot_puts_requests_into_one_slot() {
    let web = any_page();
    let request = |host: &str| Request::parse(&format!("http://{host}/")).unwrap();
    let spider = Given(
        ["a.test", "b.test", "c.test"].map(|host| request(host).meta("download_slot", "mirror")).into(),
    );
    polite(spider, &web).set("robotstxt_obey", false).run().await.unwrap();
    assert_eq!(web.requests().len(), 3);
    assert!(smallest_gap(&all_starts(&web)) >= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn higher_priority_goes_first_within_a_host() {
    let web = any_page();
    let request =
        |path: &str, priority| Request::parse(&format!("http://a.test/{path}")).unwrap().priority(priority);
    let spider = Given(vec![
        request("low", -3),
        request("usual", 0),
        request("high", 5),
        request("usual-2", 0),
        request("highest", 70_000),
    ]);
    quick(spider, &web).set("concurrent_requests", 1).run().await.unwrap();
    let paths: Vec<String> = web.requests().iter().map(|f| f.request.url.path().to_owned()).collect();
    assert_eq!(paths, ["/highest", "/high", "/usual", "/usual-2", "/low"]);
}

#[tokio::test(start_paused = true)]
async fn depth_first_goes_on_before_the_next_start_request() {
    let mut pages = Vec::new();
    for start in ["s", "t", "u"] {
        pages.push((format!("http://a.test/{start}"), format!("<a href=/{start}1>x</a>")));
        pages.push((format!("http://a.test/{start}1"), format!("<a href=/{start}2>x</a>")));
        pages.push((format!("http://a.test/{start}2"), "x".to_owned()));
    }
    let web = ScriptedDownloader::pages(pages);
    quick(links(["http://a.test/s", "http://a.test/t", "http://a.test/u"]), &web)
        .set("concurrent_requests", 1)
        .set("scheduler_order", "dfs")
        .run()
        .await
        .unwrap();
    let paths: Vec<String> = web.requests().iter().map(|f| f.request.url.path()[1..].to_owned()).collect();
    assert_eq!(paths.join(" "), "s s1 s2 t t1 t2 u u1 u2", "start requests keep their order");
}

#[tokio::test(start_paused = true)]
async fn the_total_concurrency_holds_over_all_hosts() {
    let seeds: Vec<String> = (0..60).map(|n| format!("http://h{}.test/{n}", n % 30)).collect();
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x")).latency(Duration::from_secs(1));
    let report = quick(links(&seeds), &web).set("concurrent_requests", 7).run().await.unwrap();
    assert_eq!(report.pages, 60);
    let most = most_at_once(&web);
    assert!((2..=7).contains(&most), "{most} at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_leased_while_callbacks_hold_too_many_bytes() {
    for (limit, waits) in [(10_000, true), (100_000_000, false)] {
        let body = "x".repeat(20_000);
        let web = ScriptedDownloader::new().otherwise(move |_, _| Reply::html(body.clone()));
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
        let seeds: Vec<String> = (0..12).map(|n| format!("http://h{n}.test/")).collect();
        let spider = spider_fn(seeds, move |_: &Page, out: &mut Output<()>| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // This uses real time, because a running callback holds the virtual clock.
            out.context().block_on(async { tokio::time::sleep(Duration::from_millis(100)).await });
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        });
        let report = quick(spider, &web)
            .set("concurrent_requests", 2)
            .set("scraper_slot_max_active_size", limit)
            .run()
            .await
            .unwrap();
        assert_eq!(report.pages, 12);
        let most = most.load(Ordering::SeqCst);
        assert_eq!(most <= 2, waits, "{most} callbacks at once with a limit of {limit} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_and_redirects_keep_the_delay_of_their_host() {
    let web =
        ScriptedDownloader::pages([("http://a.test/", "<a href=/r>r</a><a href=/e>e</a><a href=/b>b</a>")])
            .respond("http://a.test/r", Reply::redirect(302, "/r2"))
            .respond("http://a.test/r2", Reply::redirect(302, "/r3"))
            .respond("http://a.test/r3", Reply::html("x"))
            .respond("http://a.test/e", Reply::status(500))
            .then(Reply::html("x"))
            .respond("http://a.test/b", Reply::redirect(302, "http://b.test/x"))
            .respond("http://b.test/x", Reply::redirect(302, "http://a.test/y"))
            .respond("http://a.test/y", Reply::html("y"));
    let report = polite(links(["http://a.test/"]), &web)
        .set("concurrent_requests_per_domain", 4)
        .set("retry_backoff_base", 0.1)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 4);
    let starts = web.starts("a.test");
    assert_eq!(
        starts.len(),
        9,
        "robots.txt, four pages, two redirects, one retry, one detour: {:?}",
        web.urls()
    );
    assert!(smallest_gap(&starts) >= Duration::from_secs(1), "{starts:?}");
}

#[tokio::test(start_paused = true)]
async fn autothrottle_follows_the_latency_of_the_host() {
    let seeds: Vec<String> = (0..10).map(|n| format!("http://a.test/{n}")).collect();
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x").after(Duration::from_millis(200)));
    quick(links(&seeds), &web)
        .set("autothrottle_enabled", true)
        .set("download_delay_jitter", 0.0)
        .set("concurrent_requests_per_domain", 1)
        .run()
        .await
        .unwrap();
    let starts = web.starts("a.test");
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert!((2.5..=5.3).contains(&gaps[0]), "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] <= pair[0] + 0.001), "quick answers hurry the host: {gaps:?}");
    assert!((0.2..0.5).contains(gaps.last().unwrap()), "{gaps:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_measures_the_delay_between_starts() {
    let seeds = |port: u16| (0..12).map(move |n| format!("http://127.0.0.1:{port}/{n}"));
    let site = Site::builder().answer("/*", Answer::html("x")).start().await;
    let report = on_site(links(seeds(site.port())), &site)
        .set("robotstxt_obey", false)
        .set("concurrent_requests_per_domain", 16)
        .set("download_delay", 0.2)
        .set("download_delay_jitter", 0.0)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 12);
    arrive_at_intervals(&site, Duration::from_millis(200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_never_sees_more_at_once_than_allowed() {
    let mut site = Site::builder();
    for (url, html) in tree("h", 40) {
        let page = Answer::html(html).delay(Duration::from_millis(30));
        site = site.answer(url.trim_start_matches("http://h"), page);
    }
    let site = site.start().await;
    let report =
        on_site(links([site.url("/0")]), &site).set("concurrent_requests_per_domain", 3).run().await.unwrap();
    assert_eq!(report.pages, 40);
    assert!((2..=3).contains(&site.peak("127.0.0.1")), "{}", site.peak("127.0.0.1"));
}

#[tokio::test(start_paused = true)]
async fn crawls_of_one_process_share_the_delay_of_a_host() {
    let web = ScriptedDownloader::pages(tree("a.test", 12).into_iter().chain(tree("b.test", 12)))
        .latency(Duration::from_millis(300));
    let crawl = |seed: &str, delay: f64| {
        let crawl = polite(links([seed.to_owned()]), &web).set("robotstxt_obey", false);
        crawl.set("download_delay", delay).set("download_delay_jitter", 0.0)
    };
    let crawls = || Crawls::new().crawl(crawl("http://a.test/0", 2.0)).crawl(crawl("http://a.test/0", 0.5));
    let reports = crawls().crawl(crawl("http://b.test/0", 0.0)).run().await;
    let pages: Vec<u64> = reports.into_iter().map(|report| report.unwrap().pages).collect();
    assert_eq!(pages, [12, 12, 12], "each has its own seen requests");
    let (shared, alone) = (web.starts("a.test"), web.starts("b.test"));
    assert_eq!(shared.len(), 24);
    // While both have requests, the longer delay applies, and both get their turns.
    assert!(smallest_gap(&shared[..20]) >= Duration::from_secs(2), "{shared:?}");
    assert!(*alone.last().unwrap() < Duration::from_secs(5), "another host waits for nobody: {alone:?}");
}

#[tokio::test(start_paused = true)]
async fn crawls_of_one_process_keep_a_crawl_delay_together() {
    let web = ScriptedDownloader::pages(tree("a.test", 8))
        .respond("http://a.test/robots.txt", Reply::text("User-agent: *\nCrawl-delay: 4"))
        .latency(Duration::from_secs(5));
    let crawl = || polite(links(["http://a.test/0"]), &web);
    for report in Crawls::new().crawl(crawl()).crawl(crawl()).run().await {
        assert_eq!(report.unwrap().pages, 8);
    }
    assert_eq!(web.peak("a.test"), 1, "one at a time");
    assert!(smallest_gap(&web.starts("a.test")) >= Duration::from_secs(4), "{:?}", web.starts("a.test"));
}

#[tokio::test(start_paused = true)]
async fn crawls_may_run_in_turn_and_one_that_fails_stops_no_other() {
    let web = ScriptedDownloader::pages(["a", "b", "c"].map(|host| (format!("http://{host}.test/"), "x")));
    let crawl = |host: &str| quick(links([format!("http://{host}.test/")]), &web);
    let reports = Crawls::new()
        .crawl(crawl("a"))
        .crawl(crawl("b").set("no_such_setting", 1))
        .crawl(crawl("c"))
        .run_in_turn()
        .await;
    let ends: Vec<Option<u64>> = reports.iter().map(|report| report.as_ref().ok().map(|r| r.pages)).collect();
    assert_eq!(ends, [Some(1), None, Some(1)]);
    assert_eq!(web.urls(), ["http://a.test/", "http://c.test/"]);
    assert!(web.requests()[1].started >= web.requests()[0].ended.unwrap());
}
