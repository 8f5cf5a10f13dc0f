//! Tests of failures that the engine survives or that end it: panics on its own tasks, and pages that are never
//! settled.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};

use super::*;

/// An item whose destructor panics after it has passed the pipelines: on the task of the pipelines, outside of every
/// user method that the engine guards.
struct Explosive {
    is_armed: bool,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(!self.is_armed || std::thread::panicking(), "the item explodes");
    }
}

struct Arm;

impl Pipeline<Explosive> for Arm {
    async fn process_item(&mut self, mut item: Explosive, _: &Context) -> Result<OnItem<Explosive>> {
        item.is_armed = true;
        Ok(OnItem::Keep(item))
    }
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_pipelines_task_ends_the_crawl_with_an_error_and_no_page_is_fetched_twice() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 50)).latency(Duration::from_millis(20)));
    let spider = spider_fn(["http://a.example/0"], |page: &Page, out: &mut Output<Explosive>| {
        out.item(Explosive { is_armed: false });
        out.follow_links(page);
        Ok(())
    });
    let crawl = quick(spider, &web).pipeline(Arm).run();
    let ended = tokio::time::timeout(Duration::from_secs(60), crawl).await.expect("the crawl ends");
    let error = ended.expect_err("the crawl ends with an error").to_string();
    assert_eq!(error, "the task of the item pipelines panicked: the item explodes");
    assert_eq!(web.requests().len(), 1, "the page whose item exploded is not fetched again");
}

/// A pipeline whose methods panic before they return a future that could be guarded.
struct Hasty(&'static str);

impl Pipeline<String> for Hasty {
    fn process_item(
        &mut self,
        item: String,
        _: &Context,
    ) -> impl Future<Output = Result<OnItem<String>>> + Send {
        assert!(self.0 != "process_item", "hasty process_item");
        async { Ok(OnItem::Keep(item)) }
    }

    fn flush(&mut self) -> impl Future<Output = Result<()>> + Send {
        assert!(self.0 != "flush", "hasty flush");
        async { Ok(()) }
    }

    fn close(&mut self) -> impl Future<Output = Result<()>> + Send {
        assert!(self.0 != "close", "hasty close");
        async { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_that_panics_before_it_gives_a_future_is_caught_like_any_other() {
    for (method, expected) in [
        ("process_item", Ok(0)),
        ("flush", Err("writing items: panicked: hasty flush")),
        ("close", Err("closing a pipeline: panicked: hasty close")),
    ] {
        let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 5)));
        let crawl = quick(all_links(&["http://a.example/0"]), &web).pipeline(Hasty(method)).run();
        let ended = tokio::time::timeout(Duration::from_secs(60), crawl).await.expect("the crawl ends");
        let told = ended.map(|report| report.stat("item_scraped_count")).map_err(|error| error.to_string());
        assert_eq!(told, expected.map_err(str::to_owned), "{method}");
    }
}

/// A log that panics on every line, like one whose output and standard error are closed pipes.
struct ClosedPipe;

impl<S: tracing::Subscriber> Layer<S> for ClosedPipe {
    fn on_event(&self, _: &tracing::Event<'_>, _: LayerContext<'_, S>) {
        panic!("the log is a closed pipe");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_panics_costs_lines_of_the_log_and_nothing_else() {
    let _log = tracing::subscriber::set_default(tracing_subscriber::registry().with(ClosedPipe));
    assert!(catch_unwind(AssertUnwindSafe(|| tracing::info!("a line"))).is_err(), "the log panics");
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 20)));
    struct Picky;
    impl Pipeline<String> for Picky {
        async fn process_item(&mut self, _: String, _: &Context) -> Result<OnItem<String>> {
            Err(huntsman_crawler::Error::msg("not this one"))
        }
    }
    let crawl = quick(all_links(&["http://a.example/0", "nonsense"]), &web).pipeline(Picky).run();
    let report = tokio::time::timeout(Duration::from_secs(60), crawl).await.expect("the crawl ends").unwrap();
    assert_eq!((report.pages, report.stat("item_error_count")), (20, 20));
    assert_eq!(web.requests().len(), 20);
}

/// A downloader that cancels every request of `/cursed` although the crawl is not stopped.
struct Cancels(Arc<AtomicUsize>);

impl Downloader for Cancels {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        if request.url.path() == "/cursed" {
            self.0.fetch_add(1, Ordering::SeqCst);
            return Err(FetchError::new(FetchErrorKind::Cancelled, "somebody else gave it up"));
        }
        Ok(Response::html(request.url.clone(), "<a href=/cursed>x</a>"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_given_back_three_times_is_a_failure_of_its_own() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&dropped);
    let crawl = CrawlerBuilder::new(all_links(&["http://a.example/"]))
        .set("download_delay", 0.0)
        .downloader(Cancels(Arc::clone(&fetched)))
        .observer(move |event: &Event<'_>| {
            if let Event::RequestDropped(drop) = event {
                seen.lock().unwrap().push((drop.url.clone(), drop.reason.to_string(), drop.detail.clone()));
            }
        })
        .run();
    let report =
        tokio::time::timeout(Duration::from_secs(600), crawl).await.expect("the crawl ends").unwrap();
    assert_eq!(report.finish_reason, "finished");
    assert_eq!(report.pages, 1);
    assert_eq!(fetched.load(Ordering::SeqCst), 3);
    let detail = "given back to the queue 3 times, the last time because it was cancelled";
    assert_eq!(
        *dropped.lock().unwrap(),
        [("http://a.example/cursed".to_owned(), "given_back".to_owned(), Some(detail.to_owned()))]
    );
}
