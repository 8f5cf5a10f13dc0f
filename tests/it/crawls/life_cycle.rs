//! How crawls open, end and close.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use huntsman::store::Backend;
use huntsman::{
    Context, Event, Handle, Job, OnItem, Output, Page, Pipeline, Request, Result, Spider, Start, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{Log, links, quick, tree};

/// Logs when it opens and closes, and fails to open if asked to.
struct Door(&'static str, Log, bool);

impl Pipeline<String> for Door {
    async fn open(&mut self, _: &Context) -> Result<()> {
        self.1.line(format!("open {}", self.0));
        if self.2 { Err(huntsman::Error::msg("locked")) } else { Ok(()) }
    }
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        self.1.line(format!("{} {item}", self.0));
        Ok(OnItem::Keep(item))
    }
    async fn close(&mut self) -> Result<()> {
        self.1.line(format!("close {}", self.0));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_opens_and_closes_in_order() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let log = Log::default();
    quick(links(["http://a.test/"]), &web)
        .pipeline(Door("first", log.clone(), false))
        .pipeline(Door("second", log.clone(), false))
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(
        log.lines(),
        [
            "engine started",
            "open first",
            "open second",
            "spider opened, 0 queued",
            "first http://a.test/",
            "second http://a.test/",
            "idle",
            "close second",
            "close first",
            "spider closed: finished",
            "engine stopped",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_opened_is_closed_when_a_later_pipeline_fails_to_open() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let log = Log::default();
    let error = quick(links(["http://a.test/"]), &web)
        .pipeline(Door("first", log.clone(), false))
        .pipeline(Door("second", log.clone(), true))
        .pipeline(Door("third", log.clone(), false))
        .run()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    assert_eq!(log.lines(), ["open first", "open second", "close first"]);
    assert!(web.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_limit_names_itself() {
    for (name, value) in [
        ("closespider_timeout", 20),
        ("closespider_itemcount", 5),
        ("closespider_pagecount", 5),
        ("closespider_errorcount", 3),
        ("closespider_timeout_no_item", 20),
        ("closespider_pagecount_no_item", 5),
    ] {
        let web = ScriptedDownloader::pages(tree("a.test", 300)).latency(Duration::from_secs(1));
        let gives_items = name == "closespider_itemcount";
        let fails = name == "closespider_errorcount";
        let spider = spider_fn(["http://a.test/0"], move |page: &Page, out: &mut Output<String>| {
            if gives_items {
                out.item("item".to_owned());
            }
            out.follow_links(page);
            if fails { Err(huntsman::Error::msg("as asked")) } else { Ok(()) }
        });
        let report = quick(spider, &web)
            .set("concurrent_requests", 4)
            .set("concurrent_requests_per_domain", 4)
            .set(name, value)
            .run()
            .await
            .unwrap();
        assert_eq!(report.finish_reason, name);
        assert!(web.requests().len() < 200, "{name} closed the crawl early");
    }
}

#[tokio::test(start_paused = true)]
async fn an_abort_is_cancelled() {
    let web = ScriptedDownloader::pages(tree("a.test", 50)).latency(Duration::from_secs(60));
    let crawler = quick(links(["http://a.test/0"]), &web).build().unwrap();
    let handle = crawler.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        handle.abort();
    });
    let report = crawler.run().await.unwrap();
    assert_eq!(report.finish_reason, "cancelled");
    assert!(report.elapsed_s < 12.0, "it does not wait for what is in flight: {}", report.elapsed_s);
}

#[tokio::test(start_paused = true)]
async fn a_start_source_without_any_url_is_a_start_error() {
    let web = ScriptedDownloader::new();
    let report = quick(links(["no address at all"]), &web).run().await.unwrap();
    assert_eq!((report.finish_reason.as_str(), report.pages), ("start_error", 0));
    assert!(!report.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_callback_keeps_its_output_and_is_reported() {
    let web = ScriptedDownloader::pages(tree("a.test", 7));
    let spider = spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<String>| {
        out.item(page.url().path().to_owned());
        out.follow_links(page);
        if page.url().path() == "/1" { Err(huntsman::Error::msg("no price on the page")) } else { Ok(()) }
    });
    let log = Log::default();
    let report = quick(spider, &web).observer(log.clone()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (6, 7), "its items and links were kept");
    assert_eq!(report.stat("spider_exceptions/count"), 1);
    let drop = log.drop_of("http://a.test/1");
    assert_eq!((&*drop.reason, drop.detail.as_deref()), ("callback_error", Some("no price on the page")));
    assert!(log.lines().contains(&"http://a.test/1: no price on the page".to_owned()), "{:?}", log.lines());
    assert!(report.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_idle_crawl_takes_work_from_its_observer() {
    let web = ScriptedDownloader::pages(tree("a.test", 3));
    let handle: Arc<OnceLock<Handle>> = Arc::default();
    let (asked, idle) = (Arc::clone(&handle), Arc::new(Mutex::new(0)));
    let times = Arc::clone(&idle);
    let crawler = quick(links(["http://a.test/1"]), &web)
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::SpiderIdle) {
                let mut times = times.lock().unwrap();
                *times += 1;
                if *times == 1 {
                    asked.get().unwrap().push(Request::parse("http://a.test/2").unwrap());
                }
            }
        })
        .build()
        .unwrap();
    handle.set(crawler.handle()).unwrap();
    let report = crawler.run().await.unwrap();
    assert_eq!((report.pages, *idle.lock().unwrap()), (2, 2));
    assert!(report.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_is_kept_open_waits_for_requests() {
    let web = ScriptedDownloader::pages(tree("a.test", 2));
    let crawler = quick(spider_fn([""; 0], |_: &Page, _: &mut Output<String>| Ok(())), &web)
        .set("max_parked_wait", 5.0)
        .build()
        .unwrap();
    let handle = crawler.handle();
    handle.keep_open(true);
    let crawl = tokio::spawn(crawler.run());
    for path in ["0", "1"] {
        // This is longer than the crawl would wait for parked requests: there are none.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!crawl.is_finished());
        handle.push(Request::parse(&format!("http://a.test/{path}")).unwrap());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    handle.keep_open(false);
    let report = crawl.await.unwrap().unwrap();
    assert_eq!(report.pages, 2);
    assert!(report.is_finished());
}

#[tokio::test(start_paused = true)]
async fn an_idle_observer_may_give_another_reason() {
    let web = ScriptedDownloader::pages(tree("a.test", 3));
    let handle: Arc<OnceLock<Handle>> = Arc::default();
    let asked = Arc::clone(&handle);
    let crawler = quick(links(["http://a.test/1"]), &web)
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::SpiderIdle) {
                asked.get().unwrap().stop("nothing_new");
            }
        })
        .build()
        .unwrap();
    handle.set(crawler.handle()).unwrap();
    assert_eq!(crawler.run().await.unwrap().finish_reason, "nothing_new");
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_breaks_nothing() {
    let web = ScriptedDownloader::pages(tree("a.test", 7));
    let log = Log::default();
    let report = quick(links(["http://a.test/0"]), &web)
        .observer(|event: &Event<'_>| assert!(!matches!(event, Event::PageDelivered { .. }), "as asked"))
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, log.delivered().len()), (7, 7));
    assert_eq!(report.stat("observer_panics"), 7);
}

#[tokio::test(start_paused = true)]
async fn two_crawls_in_one_process_keep_their_own_stats_and_settings() {
    let web = ScriptedDownloader::pages(tree("a.test", 20).into_iter().chain(tree("b.test", 9)));
    let crawl = |host: &str, agent: &str| {
        let (web, agent) = (web.clone(), agent.to_owned());
        let spider = links([format!("http://{host}/0")]);
        async move { quick(spider, &web).set("user_agent", agent).run().await.unwrap() }
    };
    let (a, b) =
        tokio::join!(crawl("a.test", "alpha/1 (+http://x.test)"), crawl("b.test", "beta/1 (+http://x.test)"));
    assert_eq!((a.pages, b.pages), (20, 9));
    assert_eq!((a.stat("item_scraped_count"), b.stat("item_scraped_count")), (20, 9));
    for fetched in web.requests() {
        let agent = fetched.request.headers["user-agent"].to_str().unwrap();
        let expected = if fetched.url().contains("a.test") { "alpha/1" } else { "beta/1" };
        assert!(agent.starts_with(expected), "{} {agent}", fetched.url());
    }
}

#[tokio::test(start_paused = true)]
async fn too_much_memory_closes_the_crawl() {
    struct Endless;
    impl Spider for Endless {
        type Item = ();
        fn start(&self) -> Start {
            Start::requests((0..).map(|n| Request::parse(&format!("http://a.test/{n}")).expect("an address")))
        }
        fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
            Ok(())
        }
    }
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x").after(Duration::from_secs(1)));
    let crawl = quick(Endless, &web).set("memusage_limit_mb", 1).set("memusage_check_interval", 2.0);
    let report = crawl.set("start_high_water", 100).run().await.unwrap();
    assert_eq!(report.finish_reason, "memusage_exceeded");
    assert!(report.stat("memusage/max") > 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn the_queue_goes_to_disk_when_memory_is_near_its_limit() {
    let pages: String = (0..3_000).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let web = ScriptedDownloader::new().otherwise(move |request, _| match request.url.path() {
        "/" => Reply::html(pages.clone()),
        _ => Reply::html("x").after(Duration::from_secs(1)),
    });
    // So much that what the crawl itself takes changes little.
    let ballast = vec![1_u8; 300 << 20];
    let crawl = async |name: &str, value: u64| {
        let folder = tempfile::tempdir().unwrap();
        let job = Job::open(folder.path().join("job"), Backend::default()).unwrap();
        let crawl = quick(links(["http://a.test/"]), &web).job(job).set(name, value);
        crawl.set("memusage_check_interval", 0.5).set("closespider_pagecount", 5).run().await.unwrap()
    };
    // The first crawl also brings the code that both run into memory.
    let max = crawl("memusage_warning_mb", 1 << 20).await.stat("memusage/max");
    let Some(max) = u64::try_from(max).ok().filter(|max| *max > 0) else { return };
    let report = crawl("memusage_limit_mb", (max >> 20) * 100 / 95).await;
    assert_eq!(report.finish_reason, "closespider_pagecount", "below the limit the crawl goes on");
    assert!(report.stat("memusage/spilled") > 1_000, "{}", report.stat("memusage/spilled"));
    drop(ballast);
}

/// Takes five seconds for each item, and logs when it is done.
struct Slow(Log);

impl Pipeline<String> for Slow {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        self.0.line(format!("has {item}"));
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_whose_items_are_being_taken_when_the_crawl_ends_is_settled() {
    let dir = tempfile::tempdir().unwrap();
    for has_job in [false, true] {
        let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
        let log = Log::default();
        let run = async |stop: bool| {
            let crawl = quick(links(["http://a.test/"]), &web).set("drain_timeout", 0.0);
            let crawl = crawl.pipeline(Slow(log.clone())).observer(log.clone());
            let crawl = match has_job {
                true => crawl.job(Job::open(dir.path().join("job"), Backend::Redb).unwrap()),
                false => crawl,
            };
            let crawler = crawl.build().unwrap();
            let handle = crawler.handle();
            let running = tokio::spawn(crawler.run());
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stop {
                handle.stop("enough");
            }
            running.await.unwrap().unwrap()
        };
        run(true).await;
        if has_job {
            run(false).await;
        }
        assert_eq!(log.delivered(), ["http://a.test/"], "job: {has_job}");
        let items = log.lines().iter().filter(|line| *line == "has http://a.test/").count();
        assert_eq!((items, log.dropped().len()), (1, 0), "job: {has_job}");
    }
}
