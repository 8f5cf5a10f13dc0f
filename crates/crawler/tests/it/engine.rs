//! Tests of the whole engine: crawls with scripted responses, in virtual time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{
    Context, CrawlerBuilder, Downloader, DownloaderMiddleware, DropReason, Event, FetchError, FetchErrorKind,
    OnException, OnFollow, OnItem, OnPage, OnRequest, OnResponse, Output, Page, Pipeline, Politeness,
    Request, RequestListener, Response, Result, Spider, SpiderMiddleware, Start, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

mod concurrent;
mod survival;

/// A spider that follows every link and gives the path of every page as an item.
fn all_links(seeds: &[&str]) -> impl Spider<Item = String> + use<> {
    let seeds: Vec<String> = seeds.iter().map(|&seed| seed.to_owned()).collect();
    spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        out.item(page.url().to_string());
        out.follow_links(page);
        Ok(())
    })
}

/// A crawler without delay, with scripted responses.
fn quick<S: Spider>(spider: S, web: &Arc<ScriptedDownloader>) -> CrawlerBuilder<S> {
    CrawlerBuilder::new(spider)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 16)
        .set("seed", 7)
        .downloader(Web(Arc::clone(web)))
}

struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

/// A pipeline that stores the items it receives.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Kept {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Pipeline<String> for Kept {
    async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
        self.0.lock().unwrap().push(item.clone());
        Ok(OnItem::Keep(item))
    }
}

/// `n` pages on a host; page i links to 2i+1 and 2i+2.
fn tree(host: &str, n: usize) -> Vec<(String, String)> {
    let page = |i: usize| {
        let links: String = [2 * i + 1, 2 * i + 2]
            .into_iter()
            .filter(|&child| child < n)
            .map(|child| format!("<a href=/{child}>x</a>"))
            .collect();
        (format!("http://{host}/{i}"), format!("<title>{i}</title>{links}"))
    };
    (0..n).map(page).collect()
}

#[tokio::test(start_paused = true)]
async fn every_page_is_delivered_once() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 200)));
    let kept = Kept::default();
    let report = quick(all_links(&["http://a.example/0"]), &web).pipeline(kept.clone()).run().await.unwrap();
    assert_eq!(report.pages, 200);
    assert_eq!(report.finish_reason, "finished");
    assert_eq!(kept.all().len(), 200);
    assert_eq!(kept.all().into_iter().collect::<BTreeSet<_>>().len(), 200);
    assert_eq!(web.requests().len(), 200);
    assert_eq!(report.stat("item_scraped_count"), 200);
}

#[tokio::test(start_paused = true)]
async fn starts_on_one_host_are_at_least_the_delay_apart() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 50)).latency(Duration::from_millis(30)));
    let report = quick(all_links(&["http://a.example/0"]), &web)
        .set("download_delay", 0.25)
        .set("download_delay_jitter", 0.0)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 50);
    let gap = web.smallest_gap("a.example").unwrap();
    assert!(gap >= Duration::from_millis(250), "{gap:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panicking_callback_costs_one_page_and_keeps_what_it_gave() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 7)));
    let kept = Kept::default();
    let spider = spider_fn(["http://a.example/0"], |page: &Page, out: &mut Output<String>| {
        out.item(page.url().path().to_owned());
        out.follow_links(page);
        assert!(page.url().path() != "/1", "page 1 is cursed");
        Ok(())
    });
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&dropped);
    let report = quick(spider, &web)
        .pipeline(kept.clone())
        .observer(move |event: &Event<'_>| {
            if let Event::RequestDropped(drop) = event {
                seen.lock().unwrap().push((drop.url.clone(), drop.reason.to_string()));
            }
        })
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 6);
    assert_eq!(kept.all().len(), 7, "items given before the panic are kept");
    assert_eq!(*dropped.lock().unwrap(), [("http://a.example/1".to_owned(), "callback_panic".to_owned())]);
    assert_eq!(report.stat("spider_exceptions/panic"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_page_limit_is_exact_and_the_rest_is_recorded() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 300)).latency(Duration::from_millis(10)));
    let left = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&left);
    let report = quick(all_links(&["http://a.example/0"]), &web)
        .set("closespider_pagecount", 37)
        .observer(move |event: &Event<'_>| {
            if let Event::RequestDropped(drop) = event {
                assert_eq!(drop.reason, "not_crawled");
                counted.fetch_add(1, Ordering::SeqCst);
            }
        })
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (37, "closespider_pagecount"));
    assert_eq!(web.requests().len(), 37);
    assert_eq!(report.stat("scheduler/enqueued"), 37 + i64::try_from(left.load(Ordering::SeqCst)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_page_limit_of_a_host_is_exact() {
    let mut pages = tree("a.example", 40);
    pages.extend(tree("b.example", 40));
    let web = Arc::new(ScriptedDownloader::pages(pages).latency(Duration::from_millis(10)));
    let report = quick(all_links(&["http://a.example/0", "http://b.example/0"]), &web)
        .set("max_pages_per_host", 5)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 10);
    assert_eq!(web.requests().iter().filter(|request| request.url().contains("a.example")).count(), 5);
    assert!(report.stat("drops/skipped/host_page_limit") > 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_reaches_failed_and_is_recorded_once() {
    struct Checker(Arc<Mutex<Vec<String>>>);
    impl Spider for Checker {
        type Item = ();
        fn start(&self) -> Start {
            Start::urls(["http://a.example/gone", "http://a.example/fine"])
        }
        fn parse(&self, _: &Page, _: &mut Output<()>) -> Result<()> {
            Ok(())
        }
        fn failed(
            &self,
            request: &Request,
            error: &huntsman_crawler::Error,
            out: &mut Output<()>,
        ) -> Result<()> {
            self.0.lock().unwrap().push(format!("{} {error}", request.url.path()));
            out.follow("http://a.example/instead".parse()?);
            Ok(())
        }
    }
    let web = ScriptedDownloader::new()
        .respond("http://a.example/gone", Reply::error(FetchErrorKind::Dns))
        .respond("http://a.example/fine", Reply::html("fine"))
        .respond("http://a.example/instead", Reply::html("instead"));
    let failed = Arc::new(Mutex::new(Vec::new()));
    let report = quick(Checker(Arc::clone(&failed)), &Arc::new(web)).run().await.unwrap();
    assert_eq!(report.pages, 2, "the request from `failed` was followed");
    assert_eq!(report.stat("drops/failed/dns"), 1);
    assert_eq!(report.failed_seeds.len(), 1);
    assert!(failed.lock().unwrap()[0].starts_with("/gone dns"), "{failed:?}");
}

/// Records the order in which the hooks run.
struct Traced(&'static str, i32, Arc<Mutex<Vec<String>>>);

impl DownloaderMiddleware for Traced {
    fn name(&self) -> &'static str {
        self.0
    }
    fn order(&self) -> i32 {
        self.1
    }
    async fn process_request(&self, _: &mut Request, _: &Context) -> Result<OnRequest> {
        self.2.lock().unwrap().push(format!("> {}", self.0));
        Ok(OnRequest::Continue)
    }
    async fn process_response(&self, _: &Request, _: &mut Response, _: &Context) -> Result<OnResponse> {
        self.2.lock().unwrap().push(format!("< {}", self.0));
        Ok(OnResponse::Continue)
    }
    async fn process_exception(&self, _: &Request, _: &FetchError, _: &Context) -> Result<OnException> {
        self.2.lock().unwrap().push(format!("! {}", self.0));
        Ok(OnException::Pass)
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_run_up_before_and_down_after_the_download() {
    let trace = Arc::new(Mutex::new(Vec::new()));
    let traced = |name, order| Traced(name, order, Arc::clone(&trace));
    let web = ScriptedDownloader::new()
        .respond("http://a.example/", Reply::html("x"))
        .respond("http://a.example/e", Reply::error(FetchErrorKind::Reset));
    let web = Arc::new(web);
    let run = |seed: &'static str| {
        quick(all_links(&[seed]), &web)
            .middleware(traced("late", 900))
            .middleware(traced("early", 100))
            .middleware(traced("middle", 500))
            .set("downloader_middlewares", serde_json::json!({"middle": "off", "late": 50}))
            .run()
    };
    run("http://a.example/").await.unwrap();
    assert_eq!(*trace.lock().unwrap(), ["> late", "> early", "< early", "< late"]);
    trace.lock().unwrap().clear();
    run("http://a.example/e").await.unwrap();
    assert_eq!(*trace.lock().unwrap(), ["> late", "> early", "! early", "! late"]);
}

#[tokio::test]
async fn an_unknown_component_name_is_an_error_with_a_hint() {
    let web = Arc::new(ScriptedDownloader::new());
    let trace = Arc::new(Mutex::new(Vec::new()));
    let error = quick(all_links(&[]), &web)
        .middleware(Traced("retry", 550, trace))
        .set("downloader_middlewares", serde_json::json!({"rety": 1}))
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("did you mean retry?"), "{error}");
}

/// A middleware that responds, drops or reschedules, depending on the path.
struct Decides;

impl DownloaderMiddleware for Decides {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        Ok(match request.url.path() {
            "/answered" => {
                OnRequest::Respond(Box::new(Response::html(request.url.clone(), "<title>own</title>")))
            }
            "/dropped" => OnRequest::Drop(DropReason::skipped("not_wanted").detail("by test")),
            "/moved" => {
                let mut other = request.clone();
                other.url.set_path("/target");
                other.unassign();
                OnRequest::Reschedule(Box::new(other))
            }
            "/broken" => return Err(huntsman_crawler::Error::msg("out of cheese")),
            "/panics" => panic!("as asked"),
            "/later" if request.retries == 0 => {
                let mut other = request.clone();
                other.retries = 1;
                other.unfiltered = true;
                other.not_before = Some(cx.now() + Duration::from_secs(20));
                OnRequest::Reschedule(Box::new(other))
            }
            _ => OnRequest::Continue,
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_middleware_can_answer_drop_reschedule_and_fail() {
    let seeds = ["/answered", "/dropped", "/moved", "/broken", "/panics", "/later"]
        .map(|path| format!("http://a.example{path}"));
    let web = ScriptedDownloader::new()
        .respond("http://a.example/target", Reply::html("t"))
        .respond("http://a.example/later", Reply::html("l"));
    let web = Arc::new(web);
    let spider = spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        out.item(format!("{} {}", page.callback(), page.url().path()));
        Ok(())
    });
    let kept = Kept::default();
    let drops = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&drops);
    let report = quick(spider, &web)
        .middleware(Decides)
        .pipeline(kept.clone())
        .observer(move |event: &Event<'_>| {
            if let Event::RequestDropped(drop) = event {
                seen.lock().unwrap().push(format!("{} {} {}", drop.reason, drop.component, drop.url));
            }
        })
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 3);
    assert_eq!(
        kept.all().into_iter().collect::<BTreeSet<_>>(),
        ["parse /answered", "parse /later", "parse /target"].map(str::to_owned).into()
    );
    let mut drops = drops.lock().unwrap().clone();
    drops.sort();
    assert_eq!(
        drops,
        [
            "middleware_error Decides http://a.example/broken",
            "not_wanted Decides http://a.example/dropped",
            "panic middleware http://a.example/panics",
        ]
    );
    assert!(report.elapsed_s >= 20.0, "the delayed request waited in virtual time: {}", report.elapsed_s);
}

#[tokio::test(start_paused = true)]
async fn spider_middlewares_see_starts_pages_and_follows() {
    struct Guard;
    impl SpiderMiddleware for Guard {
        fn process_start(&self, request: &mut Request, _: &Context) -> Result<OnFollow> {
            Ok(if request.url.path() == "/never" { OnFollow::drop("unwanted") } else { OnFollow::Keep })
        }
        fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
            Ok(if page.url().path() == "/1" {
                OnPage::Skip(DropReason::skipped("thin"))
            } else {
                OnPage::Parse
            })
        }
        fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
            assert_eq!(request.depth, page.request().depth + 1);
            assert_eq!(request.referer.as_deref(), Some(page.url().as_str()));
            Ok(if request.url.path() == "/2" { OnFollow::drop("unwanted") } else { OnFollow::Keep })
        }
    }
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 7)));
    let report = quick(all_links(&["http://a.example/0", "http://a.example/never"]), &web)
        .spider_middleware(Guard)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 1, "page 1 was skipped, page 2 never asked for");
    assert_eq!((report.stat("refused/unwanted"), report.stat("drops/skipped/thin")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_spider_middleware_adds_requests_hears_all_and_hands_findings_to_observers() {
    /// Skips /1 but follows /5 from it; records the requests that every page gives, before any filter.
    struct Listener(Arc<Mutex<Vec<String>>>);
    #[derive(Clone)]
    struct Note(String);
    impl SpiderMiddleware for Listener {
        fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
            let path = page.url().path().to_owned();
            page.extensions.insert(Note(path.clone()));
            let told = Arc::clone(&self.0);
            let from = path.clone();
            page.extensions.insert(RequestListener::new(move |request| {
                told.lock().unwrap().push(format!("{from} {}", request.url.path()));
            }));
            if path == "/1" {
                page.follow = vec![Request::parse("http://a.example/5").unwrap()];
                return Ok(OnPage::Skip(DropReason::skipped("thin")));
            }
            Ok(OnPage::Parse)
        }
        fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
            assert_eq!(request.depth, page.request().depth + 1);
            Ok(if request.url.path() == "/2" { OnFollow::drop("unwanted") } else { OnFollow::Keep })
        }
    }
    let pages = [
        ("http://a.example/0", "<a href=/1>1</a><a href=/2>2</a><a href=/0>self</a>"),
        ("http://a.example/1", "<a href=/3>3</a>"),
        ("http://a.example/5", "<a href=/0>0</a>"),
    ];
    let web = Arc::new(ScriptedDownloader::pages(pages));
    let (told, delivered) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
    let seen = Arc::clone(&delivered);
    let report = quick(all_links(&["http://a.example/0"]), &web)
        .spider_middleware(Listener(Arc::clone(&told)))
        .observer(move |event: &Event<'_>| {
            if let Event::PageDelivered { request, items, found } = event {
                let Note(path) = found.get().expect("the middleware left it");
                assert_eq!(path, request.url.path());
                seen.lock().unwrap().push(format!("{path} {items}"));
            }
        })
        .run()
        .await
        .unwrap();
    assert_eq!(report.stat("observer_panics"), 0);
    assert_eq!(*told.lock().unwrap(), ["/0 /1", "/0 /2", "/0 /0", "/1 /5", "/5 /0"]);
    assert_eq!(*delivered.lock().unwrap(), ["/0 1", "/5 1"]);
    assert_eq!((report.stat("drops/skipped/thin"), report.stat("refused/unwanted")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn breadth_first_never_goes_back_up_and_depth_first_finishes_a_branch() {
    for (order, depths) in [("bfs", true), ("dfs", false)] {
        let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 31)));
        let kept = Kept::default();
        let spider = spider_fn(["http://a.example/0"], |page: &Page, out: &mut Output<String>| {
            out.item(page.request().depth.to_string());
            out.follow_links(page);
            Ok(())
        });
        quick(spider, &web)
            .set("concurrent_requests", 1)
            .set("scheduler_order", order)
            .pipeline(kept.clone())
            .run()
            .await
            .unwrap();
        let sequence: Vec<u32> = kept.all().iter().map(|depth| depth.parse().unwrap()).collect();
        assert_eq!(sequence.len(), 31);
        assert_eq!(sequence.is_sorted(), depths, "{order}: {sequence:?}");
        if order == "dfs" {
            assert_eq!(sequence[..5], [0, 1, 2, 3, 4]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn small_hosts_are_not_held_back_by_a_big_one() {
    let mut seeds: Vec<String> = (0..2_000).map(|n| format!("http://big.example/{n}")).collect();
    for host in 0..9 {
        seeds.extend((0..10).map(|n| format!("http://small{host}.example/{n}")));
    }
    let web = Arc::new(
        ScriptedDownloader::new().otherwise(|_, _| Reply::html("x")).latency(Duration::from_millis(10)),
    );
    let report = quick(spider_fn(seeds, |_: &Page, _: &mut Output<()>| Ok(())), &web)
        .set("concurrent_requests_per_domain", 1)
        .set("concurrent_requests", 10)
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 2_090);
    let requests = web.requests();
    let last_small = requests.iter().rposition(|request| request.url().contains("small")).unwrap();
    assert!(last_small < 150, "the last page of a small host came as number {last_small}");
}

#[tokio::test(start_paused = true)]
async fn the_start_source_is_pulled_lazily() {
    struct Many(Arc<AtomicUsize>);
    impl Spider for Many {
        type Item = ();
        fn start(&self) -> Start {
            let pulled = Arc::clone(&self.0);
            Start::requests((0..1_000_000).map(move |n| {
                pulled.fetch_add(1, Ordering::SeqCst);
                Request::parse(&format!("http://a.example/{n}")).unwrap()
            }))
        }
        fn parse(&self, _: &Page, out: &mut Output<()>) -> Result<()> {
            if out.context().stats().get("response_received_count") >= 50 {
                out.context().stop("enough");
            }
            Ok(())
        }
    }
    let pulled = Arc::new(AtomicUsize::new(0));
    let web = Arc::new(ScriptedDownloader::new().otherwise(|_, _| Reply::html("x")));
    let report = quick(Many(Arc::clone(&pulled)), &web).set("start_high_water", 2_000).run().await.unwrap();
    assert_eq!(report.finish_reason, "enough");
    assert!(pulled.load(Ordering::SeqCst) <= 4_000, "{pulled:?}");
}

#[tokio::test(start_paused = true)]
async fn parked_work_does_not_keep_an_idle_crawl_open_for_ever() {
    struct Park;
    impl DownloaderMiddleware for Park {
        async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
            let mut again = request.clone().meta("parked_reason", "robots_unreachable").unfiltered();
            again.not_before = Some(cx.now() + Duration::from_secs(10));
            Ok(OnRequest::Reschedule(Box::new(again)))
        }
    }
    let web = Arc::new(ScriptedDownloader::new());
    let report = quick(all_links(&["http://a.example/0"]), &web)
        .set("max_parked_wait", 25.0)
        .middleware(Park)
        .run()
        .await
        .unwrap();
    assert_eq!(report.stat("drops/failed/robots_unreachable"), 1);
    assert!((25.0..40.0).contains(&report.elapsed_s), "{}", report.elapsed_s);
    assert_eq!(report.failed_seeds.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_lets_flights_end_and_records_the_rest() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 100)).latency(Duration::from_secs(1)));
    let crawler = quick(all_links(&["http://a.example/0"]), &web).build().unwrap();
    let handle = crawler.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        handle.stop("shutdown");
    });
    let report = crawler.run().await.unwrap();
    assert_eq!(report.finish_reason, "shutdown");
    assert_eq!(report.pages, web.requests().len() as u64, "what was in flight was delivered");
    assert!(report.stat("drops/skipped/not_crawled") > 0);
    let enqueued = report.stat("scheduler/enqueued");
    assert_eq!(enqueued, i64::try_from(report.pages).unwrap() + report.stat("drops/skipped/not_crawled"));
}

#[tokio::test(start_paused = true)]
async fn a_flight_that_does_not_end_is_cut_off_after_the_drain_timeout() {
    let web = Arc::new(ScriptedDownloader::new().respond("http://a.example/0", Reply::never()));
    let crawler = quick(all_links(&["http://a.example/0"]), &web).build().unwrap();
    let handle = crawler.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.stop("shutdown");
    });
    let report = crawler.run().await.unwrap();
    assert!((15.0..17.5).contains(&report.elapsed_s), "{}", report.elapsed_s);
    assert_eq!(report.stat("drops/skipped/not_crawled"), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_while_paused() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 60)).latency(Duration::from_secs(1)));
    let crawler = quick(all_links(&["http://a.example/0"]), &web).build().unwrap();
    let handle = crawler.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        handle.pause();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        handle.resume();
    });
    let report = crawler.run().await.unwrap();
    assert_eq!(report.pages, 60);
    assert!(report.elapsed_s > 3_600.0);
    let starts = web.starts("a.example");
    let first = starts[0];
    let paused = (Duration::from_millis(2_600), Duration::from_secs(3_601));
    let during = starts.iter().filter(|&&at| at - first > paused.0 && at - first < paused.1).count();
    assert_eq!(during, 0);
}

#[tokio::test(start_paused = true)]
async fn a_nested_download_takes_its_turn_at_the_slot() {
    struct Nested;
    impl DownloaderMiddleware for Nested {
        async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
            if request.url.path() == "/0" {
                let inner = Request::parse("http://a.example/inner")?;
                let response = cx.download(inner).await?;
                assert_eq!(response.status, 200);
                let host = request.host();
                cx.set_politeness(&host, Politeness::CrawlDelay(Duration::from_secs(3))).await;
            }
            Ok(OnRequest::Continue)
        }
    }
    let mut pages = tree("a.example", 4);
    pages.push(("http://a.example/inner".into(), "inner".into()));
    let web = Arc::new(ScriptedDownloader::pages(pages));
    let report = quick(all_links(&["http://a.example/0"]), &web).middleware(Nested).run().await.unwrap();
    assert_eq!(report.pages, 4);
    assert_eq!(web.urls()[0], "http://a.example/inner");
    let gap = web.smallest_gap("a.example").unwrap();
    assert!(gap >= Duration::from_secs(3), "the delay counts from the nested download on: {gap:?}");
    assert_eq!(web.peak("a.example"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_quota_of_the_crawl_holds_over_all_hosts() {
    let seeds: Vec<String> = (0..40).map(|n| format!("http://h{n}.example/")).collect();
    let web = Arc::new(ScriptedDownloader::new().otherwise(|_, _| Reply::html("x")));
    let spider = spider_fn(seeds, |_: &Page, _: &mut Output<()>| Ok(()));
    let report = quick(spider, &web).set("requests_per_second", 4.0).run().await.unwrap();
    assert_eq!(report.pages, 40);
    assert!(report.elapsed_s >= 39.0 / 4.0, "{}", report.elapsed_s);
    assert!(report.elapsed_s <= 11.0, "{}", report.elapsed_s);
}

#[tokio::test(start_paused = true)]
async fn items_are_acknowledged_before_their_page_counts_as_delivered() {
    #[derive(Clone)]
    struct Slow(Arc<AtomicUsize>);
    impl Pipeline<String> for Slow {
        async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(OnItem::Keep(item))
        }
        async fn flush(&mut self) -> Result<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let flushes = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&flushes);
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 3)));
    quick(all_links(&["http://a.example/0"]), &web)
        .pipeline(Slow(Arc::clone(&flushes)))
        .observer(move |event: &Event<'_>| {
            if matches!(event, Event::PageDelivered { .. }) {
                assert!(seen.load(Ordering::SeqCst) > 0, "delivered before its items were flushed");
            }
        })
        .run()
        .await
        .map(|report| assert_eq!(report.stat("observer_panics"), 0))
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_that_cannot_write_ends_the_crawl_with_its_error() {
    struct Full;
    impl Pipeline<String> for Full {
        async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
            Ok(OnItem::Keep(item))
        }
        async fn flush(&mut self) -> Result<()> {
            Err(huntsman_crawler::Error::msg("no space left on device"))
        }
    }
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 30)));
    let error = quick(all_links(&["http://a.example/0"]), &web).pipeline(Full).run().await.unwrap_err();
    assert!(error.to_string().contains("no space left on device"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_drops_fails_panics_and_hangs_on_single_items() {
    struct Picky;
    impl Pipeline<String> for Picky {
        async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
            match item.rsplit('/').next() {
                Some("1") => Ok(OnItem::Drop("too_small".into())),
                Some("2") => Err(huntsman_crawler::Error::msg("bad item")),
                Some("3") => panic!("worse item"),
                Some("4") => std::future::pending().await,
                _ => Ok(OnItem::Keep(item)),
            }
        }
    }
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 10)));
    let kept = Kept::default();
    let crawl = quick(all_links(&["http://a.example/0"]), &web).pipeline(Picky).pipeline(kept.clone());
    let report = crawl.run().await.unwrap();
    assert_eq!((report.pages, kept.all().len()), (10, 6));
    assert_eq!(report.stat("item_dropped_reasons_count/too_small"), 1);
    assert_eq!(report.stat("item_error_count"), 3);
}

#[tokio::test]
async fn a_callback_may_wait_for_a_future() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 8)));
    let spider = spider_fn(["http://a.example/0"], |page: &Page, out: &mut Output<String>| {
        let answer = out.context().block_on(async {
            tokio::task::yield_now().await;
            41 + 1
        });
        assert_eq!(answer, 42);
        out.follow_links(page);
        Ok(())
    });
    let report = quick(spider, &web).set("callback_threads", 1).run().await.unwrap();
    assert_eq!(report.pages, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cheap_callbacks_that_run_in_place_may_wait_fail_and_panic_too() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 600)));
    let spider = spider_fn(["http://a.example/0"], |page: &Page, out: &mut Output<String>| {
        out.item(page.url().path().to_owned());
        out.follow_links(page);
        match page.url().path() {
            "/100" => panic!("as asked"),
            "/200" => Err(huntsman_crawler::Error::msg("as asked")),
            "/300" => {
                out.context().block_on(tokio::task::yield_now());
                Ok(())
            }
            _ => Ok(()),
        }
    });
    let kept = Kept::default();
    let report = quick(spider, &web).pipeline(kept.clone()).run().await.unwrap();
    assert_eq!((report.pages, kept.all().len()), (598, 600));
    assert_eq!(report.stat("spider_exceptions/count"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_callback_may_give_more_than_memory_should_hold() {
    let web = Arc::new(ScriptedDownloader::new().otherwise(|_, _| Reply::html("x")));
    let spider = spider_fn(["http://a.example/"], |page: &Page, out: &mut Output<String>| {
        if page.url().path() == "/" {
            for n in 0..5_000 {
                out.item(n.to_string());
            }
            for n in 0..3_000 {
                out.follow(page.url().join(&n.to_string())?);
            }
        }
        Ok(())
    });
    let kept = Kept::default();
    let report = quick(spider, &web).pipeline(kept.clone()).run().await.unwrap();
    assert_eq!((report.pages, kept.all().len()), (3_001, 5_000));
}

#[tokio::test(start_paused = true)]
async fn idle_observers_may_push_more_work() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 3)));
    let crawler = quick(all_links(&["http://a.example/1"]), &web).build().unwrap();
    let handle = crawler.handle();
    handle.push(Request::parse("http://a.example/2").unwrap());
    assert_eq!(crawler.run().await.unwrap().pages, 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_callback_label_is_an_error_of_that_request() {
    struct Labels;
    impl Spider for Labels {
        type Item = ();
        fn start(&self) -> Start {
            Start::requests([
                Request::parse("http://a.example/1").unwrap().callback("detail"),
                Request::parse("http://a.example/2").unwrap().callback("gone"),
            ])
        }
        fn callbacks(&self) -> &[&str] {
            &["detail"]
        }
        fn parse(&self, page: &Page, _: &mut Output<()>) -> Result<()> {
            assert_eq!(page.callback(), "detail");
            Ok(())
        }
    }
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 3)));
    let report = quick(Labels, &web).run().await.unwrap();
    assert_eq!((report.pages, report.stat("drops/failed/unknown_callback")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn limits_on_items_and_time_close_the_crawl() {
    let run = |name: &'static str, value: f64| {
        let web = ScriptedDownloader::pages(tree("a.example", 500)).latency(Duration::from_secs(1));
        let value: serde_json::Value =
            if value.fract() == 0.0 { (value as u64).into() } else { value.into() };
        quick(all_links(&["http://a.example/0"]), &Arc::new(web)).set(name, value).run()
    };
    assert_eq!(run("closespider_itemcount", 20.0).await.unwrap().finish_reason, "closespider_itemcount");
    let report = run("closespider_timeout", 5.5).await.unwrap();
    assert_eq!(report.finish_reason, "closespider_timeout");
    assert!((5.5..8.0).contains(&report.elapsed_s), "{}", report.elapsed_s);
}
