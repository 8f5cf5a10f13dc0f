//! Retries, refusals and hosts that are down.

use std::time::Duration;

use huntsman::store::Backend;
use huntsman::{Context, FetchErrorKind, Job, OnItem, Pipeline, Request};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{Log, links, quick, tree};

#[tokio::test(start_paused = true)]
async fn retries_wait_in_the_frontier_and_delay_no_other() {
    let mut seeds = vec!["http://a.test/flaky".to_owned()];
    seeds.extend((0..20).map(|n| format!("http://a.test/{n}")));
    let web = ScriptedDownloader::new()
        .respond("http://a.test/flaky", Reply::error(FetchErrorKind::Reset))
        .then(Reply::html("at last"))
        .otherwise(|_, _| Reply::html("x"))
        .latency(Duration::from_millis(100));
    let log = Log::default();
    let report = quick(links(&seeds), &web)
        .set("concurrent_requests", 1)
        .set("retry_backoff_base", 20.0)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 21);
    let fetched = web.requests();
    assert_eq!(
        fetched.last().unwrap().url(),
        "http://a.test/flaky",
        "the wait took no place from the others"
    );
    assert!(fetched[20].started < Duration::from_secs(9), "the others went on: {:?}", fetched[20].started);
    assert!(fetched[21].started >= Duration::from_secs(10), "{:?}", fetched[21].started);
    assert_eq!(fetched[21].request.priority, -1);
    assert_eq!((report.stat("retry/count"), log.dropped().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_always_fails_is_tried_three_times() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/500", Reply::status(500))
        .respond("http://a.test/reset", Reply::error(FetchErrorKind::Reset))
        .respond("http://a.test/404", Reply::status(404));
    let log = Log::default();
    let seeds = ["http://a.test/500", "http://a.test/reset", "http://a.test/404"];
    let report = quick(links(seeds), &web).observer(log.clone()).run().await.unwrap();
    assert_eq!(seeds.map(|url| web.count(url)), [3, 3, 1]);
    let drop = log.drop_of("http://a.test/500");
    assert_eq!((&*drop.reason, drop.status), ("http_status", Some(500)));
    assert_eq!(log.drop_of("http://a.test/reset").reason, "connection_reset");
    assert_eq!(log.drop_of("http://a.test/404").status, Some(404));
    assert_eq!((report.stat("retry/max_reached"), report.failed_seeds.len()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn retry_after_slows_its_host_and_no_other() {
    let mut seeds = vec!["http://busy.test/first".to_owned()];
    seeds.extend((0..5).map(|n| format!("http://busy.test/{n}")));
    seeds.extend((0..20).map(|n| format!("http://calm.test/{n}")));
    let web = ScriptedDownloader::new()
        .respond("http://busy.test/first", Reply::status(429).header("retry-after", "50"))
        .then(Reply::html("x"))
        .otherwise(|_, _| Reply::html("x"))
        .latency(Duration::from_millis(50));
    let report = quick(links(&seeds), &web).set("concurrent_requests_per_domain", 1).run().await.unwrap();
    assert_eq!(report.pages, 26);
    let busy = web.starts("busy.test");
    assert!(busy[1] - busy[0] >= Duration::from_secs(50), "{busy:?}");
    let calm = web.starts("calm.test");
    assert!(calm.iter().all(|&at| at < Duration::from_secs(20)), "{calm:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_cap_fails_the_page_and_its_host_goes_on_more_slowly() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/late", Reply::status(503).header("retry-after", "315360000"))
        .respond("http://a.test/next", Reply::html("x"));
    let log = Log::default();
    let seeds = ["http://a.test/late", "http://a.test/next"];
    let crawl = quick(links(seeds), &web)
        .set("concurrent_requests", 1)
        .set("download_delay", 2.0)
        .set("download_delay_jitter", 0.0)
        .observer(log.clone());
    let report = crawl.run().await.unwrap();
    assert_eq!(web.count("http://a.test/late"), 1, "it is not waited for");
    assert_eq!(log.drop_of("http://a.test/late").status, Some(503));
    assert_eq!((report.pages, report.stat("retry/retry_after_too_long")), (1, 1));
    let starts = web.starts("a.test");
    let gap = starts[1] - starts[0];
    assert!((4.0..4.5).contains(&gap.as_secs_f64()), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn quick_429_answers_slow_the_host_down() {
    let seeds: Vec<String> = (0..5).map(|n| format!("http://a.test/{n}")).collect();
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::status(429).after(Duration::from_millis(1)));
    quick(links(&seeds), &web)
        .set("autothrottle_enabled", true)
        .set("autothrottle_start_delay", 0.1)
        .set("download_delay_jitter", 0.0)
        .set("concurrent_requests_per_domain", 1)
        .set("retry_times", 0)
        .run()
        .await
        .unwrap();
    let starts = web.starts("a.test");
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    assert_eq!(gaps.len(), 4);
    assert!(gaps[0] >= 1.0, "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] >= 2.0 * pair[0] - 0.01), "doubled each time: {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_host_is_given_up_and_its_queue_recorded() {
    let mut seeds: Vec<String> = (0..30).map(|n| format!("http://dead.test/{n}")).collect();
    seeds.push("http://live.test/0".to_owned());
    let web = ScriptedDownloader::pages(tree("live.test", 40))
        .otherwise(|_, _| Reply::error(FetchErrorKind::Connect));
    let log = Log::default();
    let report = quick(links(&seeds), &web)
        .set("concurrent_requests_per_domain", 1)
        .set("max_parked_wait", 7_200.0)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 40, "the live host loses nothing");
    let dropped = log.dropped();
    assert_eq!(dropped.len(), 30, "each once");
    assert!(dropped.iter().all(|drop| matches!(&*drop.reason, "connect" | "host_down")), "{dropped:?}");
    assert!(dropped.iter().any(|drop| drop.reason == "host_down"));
    assert!(web.starts("dead.test").len() < 20, "{} tries", web.starts("dead.test").len());
}

#[tokio::test(start_paused = true)]
async fn a_crawl_ends_although_its_last_requests_are_dropped_with_their_host() {
    let seeds = ["http://dead.test/1", "http://dead.test/2", "http://dead.test/3", "http://dead.test/4"];
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::error(FetchErrorKind::Dns));
    // Start requests are pulled only when the queue is empty; the line of statistics would wake the crawl up.
    let crawl = quick(links(seeds), &web).set("start_high_water", 1).set("retry_times", 3);
    let crawl = crawl.set("concurrent_requests_per_domain", 1).set("logstats_interval", 0.0);
    let crawl = crawl.set("host_max_failures", 1).set("host_max_cooldowns", 1).set("host_down_cooldown", 5.0);
    let report =
        tokio::time::timeout(Duration::from_secs(86_400), crawl.run()).await.expect("it ends").unwrap();
    assert_eq!(report.stat("drops/failed/host_down"), 4, "{report}");
}

/// A pipeline that downloads the address of each item twice more before it accepts the item.
struct Thrice;

impl Pipeline<String> for Thrice {
    async fn process_item(&mut self, item: String, cx: &Context) -> huntsman::Result<OnItem<String>> {
        cx.download(Request::parse(&item)?).await?;
        cx.download(Request::parse(&item)?).await?;
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_is_given_up_although_a_commit_waits_for_a_pipeline_that_waits_for_its_download() {
    let dir = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::new()
        .respond("http://good.test/", Reply::html("x"))
        .then(Reply::html("x").after(Duration::from_secs(60)))
        .respond("http://good.test/2", Reply::html("x"))
        .otherwise(|_, _| Reply::error(FetchErrorKind::Dns).after(Duration::from_secs(3)));
    let mut seeds = vec!["http://good.test/".to_owned(), "http://good.test/2".to_owned()];
    seeds.extend((0..6).map(|n| format!("http://dead.test/{n}")));
    let crawl = quick(links(&seeds), &web).pipeline(Thrice).set("retry_times", 0);
    let crawl = crawl.set("concurrent_requests_per_domain", 1).set("host_max_failures", 1);
    let crawl = crawl.set("host_max_cooldowns", 1).set("host_down_cooldown", 5.0);
    let crawl = crawl.job(Job::open(dir.path().join("job"), Backend::Redb).unwrap());
    let report =
        tokio::time::timeout(Duration::from_secs(86_400), crawl.run()).await.expect("it ends").unwrap();
    assert_eq!((report.pages, report.stat("drops/failed")), (2, 6), "{report}");
}
