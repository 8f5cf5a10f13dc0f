//! The abilities of middlewares, and the positions of the built-in ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman::{
    Context, DownloaderMiddleware, DropReason, FetchError, FetchErrorKind, OnException, OnItem, OnRequest,
    OnResponse, Output, Page, Pipeline, Request, Response, Result, Spider, Start, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

use super::support::{Log, links, quick};

/// Names and orders of a crawl's installed components, in the order of the chain.
fn placed(infos: &[huntsman::ComponentInfo]) -> Vec<(&'static str, i32)> {
    let mut placed: Vec<_> = infos.iter().filter_map(|info| Some((info.name, info.order?))).collect();
    placed.sort_by_key(|(_, order)| *order);
    placed
}

#[tokio::test]
async fn the_polite_stack_has_scrapys_order() {
    let web = ScriptedDownloader::new();
    let crawler = huntsman::CrawlerBuilder::new(links(["http://a.test/"]))
        .plugin(huntsman::middleware::Defaults)
        .downloader(web)
        .set("scope", "host")
        .build()
        .unwrap();
    let (downloader, spider) = crawler.components();
    let downloader = placed(downloader);
    for expected in [
        ("offsite", 50),
        ("robots_txt", 100),
        ("download_timeout", 350),
        ("default_headers", 400),
        ("user_agent", 500),
        ("retry", 550),
        ("meta_refresh", 580),
        ("http_compression", 590),
        ("redirect", 600),
        ("cookies", 700),
        ("downloader_stats", 850),
    ] {
        assert!(downloader.contains(&expected), "{expected:?} is not in {downloader:?}");
    }
    for name in ["http_cache", "incremental"] {
        assert!(
            !downloader.iter().any(|(placed, _)| *placed == name),
            "{name} is off unless it is asked for"
        );
    }
    let spider = placed(spider);
    for expected in [("http_error", 50), ("referer", 700), ("url_length", 800), ("depth", 900)] {
        assert!(spider.contains(&expected), "{expected:?} is not in {spider:?}");
    }
}

#[tokio::test]
async fn a_component_that_is_not_configured_is_listed_as_off() {
    let crawler = huntsman::CrawlerBuilder::new(links(["http://a.test/"]))
        .plugin(huntsman::middleware::Defaults)
        .downloader(ScriptedDownloader::new())
        .set("cookies_enabled", false)
        .set("downloader_middlewares", serde_json::json!({"meta_refresh": "off"}))
        .build()
        .unwrap();
    let (downloader, _) = crawler.components();
    for name in ["cookies", "meta_refresh"] {
        let info = downloader.iter().find(|info| info.name == name).expect("it is listed");
        assert_eq!(info.order, None, "{name}");
    }
    assert!(downloader.iter().any(|info| info.name == "retry" && info.order == Some(550)));
}

type Decide = dyn Fn(&Request) -> Option<OnRequest> + Send + Sync;
type Answer = dyn Fn(&Request, &mut Response) -> Option<OnResponse> + Send + Sync;
type Mend = dyn Fn(&Request, &FetchError) -> Option<OnException> + Send + Sync;

/// A middleware made of closures that records its calls.
struct Hooks {
    name: &'static str,
    order: i32,
    request: Box<Decide>,
    response: Box<Answer>,
    exception: Box<Mend>,
    seen: Arc<Mutex<Vec<String>>>,
}

fn hooks(name: &'static str, order: i32, seen: &Arc<Mutex<Vec<String>>>) -> Hooks {
    Hooks {
        name,
        order,
        request: Box::new(|_| None),
        response: Box::new(|_, _| None),
        exception: Box::new(|_, _| None),
        seen: Arc::clone(seen),
    }
}

impl Hooks {
    fn note(&self, hook: char, request: &Request) {
        self.seen.lock().unwrap().push(format!("{hook}{} {}", self.name, request.url.path()));
    }
}

impl DownloaderMiddleware for Hooks {
    fn name(&self) -> &'static str {
        self.name
    }
    fn order(&self) -> i32 {
        self.order
    }
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        self.note('>', request);
        Ok((self.request)(request).unwrap_or(OnRequest::Continue))
    }
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        _: &Context,
    ) -> Result<OnResponse> {
        self.note('<', request);
        Ok((self.response)(request, response).unwrap_or(OnResponse::Continue))
    }
    async fn process_exception(
        &self,
        request: &Request,
        error: &FetchError,
        _: &Context,
    ) -> Result<OnException> {
        self.note('!', request);
        Ok((self.exception)(request, error).unwrap_or(OnException::Pass))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_a_middleware_passes_all_response_hooks() {
    let web = ScriptedDownloader::new();
    let seen = Arc::default();
    let mut middle = hooks("middle", 520, &seen);
    middle.request =
        Box::new(|request| Some(OnRequest::Respond(Box::new(Response::html(request.url.clone(), "own")))));
    let report = quick(links(["http://a.test/x"]), &web)
        .middleware(hooks("early", 510, &seen))
        .middleware(middle)
        .middleware(hooks("late", 530, &seen))
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, web.requests().len()), (1, 0));
    assert_eq!(*seen.lock().unwrap(), [">early /x", ">middle /x", "<late /x", "<middle /x", "<early /x"]);
}

#[tokio::test(start_paused = true)]
async fn an_exception_may_become_an_answer_or_another_request() {
    let web = ScriptedDownloader::new()
        .respond("http://a.test/mended", Reply::error(FetchErrorKind::Tls))
        .respond("http://a.test/moved", Reply::error(FetchErrorKind::Tls))
        .respond("http://a.test/elsewhere", Reply::html("x"));
    let seen = Arc::default();
    let mut mender = hooks("mender", 530, &seen);
    mender.exception = Box::new(|request, error| {
        assert_eq!(error.kind(), FetchErrorKind::Tls);
        Some(match request.url.path() {
            "/mended" => OnException::Respond(Box::new(Response::html(request.url.clone(), "own"))),
            _ => {
                let mut other = request.clone();
                other.url.set_path("/elsewhere");
                other.unassign();
                OnException::Reschedule(Box::new(other))
            }
        })
    });
    let log = Log::default();
    let report = quick(links(["http://a.test/mended", "http://a.test/moved"]), &web)
        .set("retry_enabled", false)
        .set("concurrent_requests", 1)
        .middleware(hooks("early", 510, &seen))
        .middleware(mender)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!((report.pages, log.dropped().len()), (2, 0));
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen[..5],
        [">early /mended", ">mender /mended", "!mender /mended", "<mender /mended", "<early /mended"],
        "the first answer wins and passes the response hooks"
    );
    assert!(!seen.contains(&"!early /mended".to_owned()));
    assert_eq!(web.count("http://a.test/elsewhere"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_response_may_become_another_request_or_a_drop() {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let seen = Arc::default();
    let mut judge = hooks("judge", 530, &seen);
    judge.response = Box::new(|request, response| match request.url.path() {
        "/thin" => Some(OnResponse::Drop(DropReason::skipped("thin").status(response.status))),
        "/old" => {
            let mut other = request.clone();
            other.url.set_path("/new");
            other.unassign();
            Some(OnResponse::Reschedule(Box::new(other)))
        }
        _ => None,
    });
    let log = Log::default();
    let report = quick(links(["http://a.test/thin", "http://a.test/old"]), &web)
        .set("concurrent_requests", 1)
        .middleware(hooks("early", 510, &seen))
        .middleware(judge)
        .observer(log.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 1);
    let drop = log.drop_of("http://a.test/thin");
    assert_eq!((&*drop.reason, &*drop.component, drop.status), ("thin", "judge", Some(200)));
    let seen = seen.lock().unwrap();
    assert!(!seen.contains(&"<early /old".to_owned()), "the chain stops: {seen:?}");
    assert!(seen.contains(&"<early /new".to_owned()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn of_equal_order_built_in_goes_first_then_the_name() {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let seen = Arc::default();
    let mut own = hooks("a_own", 500, &seen);
    own.request = Box::new(|request| {
        assert!(request.headers.contains_key("user-agent"), "user_agent, of order 500 too, ran before");
        None
    });
    let report = quick(links(["http://a.test/x"]), &web)
        .middleware(hooks("c_own", 500, &seen))
        .middleware(own)
        .middleware(hooks("b_own", 500, &seen))
        .run()
        .await
        .unwrap();
    assert_eq!(report.pages, 1);
    assert_eq!(seen.lock().unwrap()[..3], [">a_own /x", ">b_own /x", ">c_own /x"]);
}

#[tokio::test(start_paused = true)]
async fn a_rescheduled_request_keeps_what_the_spider_set() {
    struct Given(Arc<Mutex<Vec<String>>>);
    impl Spider for Given {
        type Item = ();
        fn start(&self) -> Start {
            let request = Request::parse("http://a.test/from").unwrap();
            Start::requests([request.callback("detail").priority(9).meta("shelf", "b").cb_kwarg("page", 3)])
        }
        fn parse(&self, page: &Page, _: &mut Output<()>) -> Result<()> {
            let request = page.request();
            let kwargs = request.cb_kwargs().unwrap();
            self.0.lock().unwrap().push(format!(
                "{} {} {} {}",
                page.callback(),
                request.priority,
                request.meta["shelf"],
                kwargs["page"]
            ));
            Ok(())
        }
    }
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let seen = Arc::default();
    let mut mover = hooks("mover", 520, &seen);
    mover.request = Box::new(|request| {
        (request.url.path() == "/from").then(|| {
            let mut other = request.clone();
            other.url.set_path("/to");
            other.unassign();
            OnRequest::Reschedule(Box::new(other))
        })
    });
    let said = Arc::default();
    quick(Given(Arc::clone(&said)), &web).middleware(mover).run().await.unwrap();
    assert_eq!(*said.lock().unwrap(), ["detail 9 \"b\" 3"]);
    assert_eq!(web.urls(), ["http://a.test/to"]);
}

/// Stores items in a slow remote place: a batch of items takes a second.
struct Remote {
    under_way: tokio::task::JoinSet<usize>,
    log: Log,
}

impl Pipeline<usize> for Remote {
    async fn process_item(&mut self, item: usize, _: &Context) -> Result<OnItem<usize>> {
        self.log.line(item.to_string());
        self.under_way.spawn(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            item
        });
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        while let Some(stored) = self.under_way.join_next().await {
            self.log.line(format!("stored {}", stored.expect("no panic")));
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn items_keep_their_order_and_a_pipeline_may_work_on_many_at_once() {
    let web = ScriptedDownloader::pages([("http://a.test/", "x")]);
    let spider = spider_fn(["http://a.test/"], |_: &Page, out: &mut Output<usize>| {
        (0..500).for_each(|item| out.item(item));
        Ok(())
    });
    let log = Log::default();
    let pipeline = Remote { under_way: tokio::task::JoinSet::new(), log: log.clone() };
    let report = quick(spider, &web).pipeline(pipeline).observer(log.clone()).run().await.unwrap();
    assert!((1.0..2.0).contains(&report.elapsed_s), "{} s for 500 items of one second", report.elapsed_s);
    let lines = log.lines();
    let items: Vec<usize> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    assert!(items.into_iter().eq(0..500));
    let closed = lines.iter().position(|line| line.starts_with("idle")).expect("it ended");
    let stored = lines[..closed].iter().filter(|line| line.starts_with("stored")).count();
    assert_eq!(stored, 500, "before their page is settled");
}
