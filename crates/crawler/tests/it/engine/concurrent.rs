//! Tests of pipelines that have many items at once.

use huntsman_crawler::{ConcurrentPipeline, Error};

use super::*;

/// Waits for each item as long as the item says: `number:milliseconds`.
#[derive(Clone, Default)]
struct Waits {
    at_once: Option<usize>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Waits {
    fn at_once(at_once: usize) -> Self {
        Self { at_once: Some(at_once), ..Self::default() }
    }
}

impl ConcurrentPipeline<String> for Waits {
    fn at_once(&self, settings: &huntsman_crawler::Settings) -> usize {
        self.at_once.unwrap_or(settings.concurrent_items)
    }

    async fn process_item(&self, item: String, _: &Context) -> Result<OnItem<String>> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let (_, wait) = item.split_once(':').expect("a number and a time");
        let (wait, fate) = wait.split_once(' ').unwrap_or((wait, ""));
        tokio::time::sleep(Duration::from_millis(wait.parse().expect("a time"))).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        match fate {
            "drops" => Ok(OnItem::Drop("as_asked".into())),
            "fails" => Err(Error::msg("as the item wants it")),
            "panics" => panic!("as the item wants it"),
            _ => Ok(OnItem::Keep(item)),
        }
    }
}

/// A crawl of one page that gives these items.
fn giving(items: Vec<String>) -> (impl Spider<Item = String>, Arc<ScriptedDownloader>) {
    let web = Arc::new(ScriptedDownloader::pages([("http://a.example/", "x")]));
    let spider = spider_fn(["http://a.example/"], move |_: &Page, out: &mut Output<String>| {
        out.items(items.iter().cloned());
        Ok(())
    });
    (spider, web)
}

/// Items whose times are far from rising.
fn uneven(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{i}:{}", (i * 7_919) % 300)).collect()
}

#[tokio::test(start_paused = true)]
async fn forty_items_that_wait_take_as_long_as_one_and_in_sixteens_as_long_as_three() {
    for (pipeline, most, seconds) in
        [(Waits::default(), 40, 0.2), (Waits::at_once(20), 20, 0.4), (Waits::at_once(16), 16, 0.6)]
    {
        let (spider, web) = giving((0..40).map(|i| format!("{i}:200")).collect());
        let kept = Kept::default();
        let crawl = quick(spider, &web).concurrent_pipeline(pipeline.clone()).pipeline(kept.clone());
        let report = crawl.run().await.unwrap();
        assert!((seconds..seconds + 0.05).contains(&report.elapsed_s), "{} s", report.elapsed_s);
        assert_eq!(pipeline.most.load(Ordering::SeqCst), most);
        assert!(kept.all().into_iter().eq((0..40).map(|i| format!("{i}:200"))));
    }
}

#[tokio::test(start_paused = true)]
async fn items_of_many_pages_wait_together() {
    let web = Arc::new(ScriptedDownloader::pages(tree("a.example", 40)));
    let seeds: Vec<String> = (0..40).map(|i| format!("http://a.example/{i}")).collect();
    let spider = spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        out.item(format!("{}:200", page.url().path()));
        Ok(())
    });
    let report = quick(spider, &web).concurrent_pipeline(Waits::default()).run().await.unwrap();
    assert_eq!((report.pages, report.stat("item_scraped_count")), (40, 40));
    assert!(report.elapsed_s < 0.5, "{} s", report.elapsed_s);
}

#[tokio::test(start_paused = true)]
async fn items_leave_in_the_order_in_which_they_came_through_stages_of_both_kinds() {
    // Fewer than a batch of a callback: a callback that waits for the pipelines blocks a thread, and with it the virtual time.
    let (spider, web) = giving(uneven(1_000));
    let (between, kept) = (Kept::default(), Kept::default());
    let stages = [Waits::at_once(16), Waits::at_once(5)];
    let crawl = quick(spider, &web)
        .concurrent_pipeline(stages[0].clone())
        .pipeline(between.clone())
        .concurrent_pipeline(stages[1].clone())
        .pipeline(kept.clone());
    let report = crawl.run().await.unwrap();
    assert_eq!(report.stat("item_scraped_count"), 1_000);
    assert_eq!(between.all(), uneven(1_000));
    assert_eq!(kept.all(), uneven(1_000));
    assert_eq!(stages.map(|stage| stage.most.load(Ordering::SeqCst)), [16, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_drop_an_error_a_panic_and_a_late_item_cost_one_item_each() {
    let mut items = uneven(20);
    let faults = ["3:0 drops", "5:10 fails", "7:20 panics", "11:999999"];
    for (at, fault) in [3, 5, 7, 11].into_iter().zip(faults) {
        fault.clone_into(&mut items[at]);
    }
    let expected: Vec<String> =
        items.iter().filter(|item| !faults.contains(&item.as_str())).cloned().collect();
    let (spider, web) = giving(items);
    let kept = Kept::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let crawl = quick(spider, &web)
        .set("item_timeout", 2.5)
        .concurrent_pipeline(Waits::default())
        .pipeline(kept.clone())
        .observer(move |event: &Event<'_>| {
            if let Event::ItemError { error } = event {
                seen.lock().unwrap().push((*error).to_owned());
            }
        });
    let report = crawl.run().await.unwrap();
    assert_eq!(kept.all(), expected);
    assert_eq!((report.pages, report.stat("item_scraped_count")), (1, 16));
    assert_eq!(report.stat("item_dropped_reasons_count/as_asked"), 1);
    assert_eq!(report.stat("item_error_count"), 3);
    let told = told.lock().unwrap();
    let expected = [
        "as the item wants it",
        "panicked: as the item wants it",
        "it took longer than 2.5 s (setting item_timeout)",
    ];
    assert_eq!(*told, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callbacks_wait_when_the_items_under_way_are_too_many() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    static DONE: AtomicUsize = AtomicUsize::new(0);
    static FURTHEST: AtomicUsize = AtomicUsize::new(0);
    struct Slow;
    impl ConcurrentPipeline<usize> for Slow {
        async fn process_item(&self, item: usize, _: &Context) -> Result<OnItem<usize>> {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let ahead = MADE.load(Ordering::SeqCst) - DONE.fetch_add(1, Ordering::SeqCst);
            FURTHEST.fetch_max(ahead, Ordering::SeqCst);
            Ok(OnItem::Keep(item))
        }
    }
    let web = Arc::new(ScriptedDownloader::pages([("http://a.example/", "x")]));
    let spider = spider_fn(["http://a.example/"], |_: &Page, out: &mut Output<usize>| {
        for item in 0..50_000 {
            MADE.fetch_add(1, Ordering::SeqCst);
            out.item(item);
        }
        Ok(())
    });
    let report = quick(spider, &web).concurrent_pipeline(Slow).run().await.unwrap();
    assert_eq!(report.stat("item_scraped_count"), 50_000);
    // One batch of a callback has at most 1,024 items, and it is acknowledged before the next one is filled.
    let furthest = FURTHEST.load(Ordering::SeqCst);
    assert!(furthest <= 2 * 1_024, "{furthest} items were made ahead");
}

#[tokio::test(start_paused = true)]
async fn a_page_is_settled_after_its_own_items_and_does_not_wait_for_those_of_later_pages() {
    #[derive(Clone, Default)]
    struct Flushed(Arc<Mutex<Vec<String>>>, Arc<Mutex<Vec<String>>>);
    impl Pipeline<String> for Flushed {
        async fn process_item(&mut self, item: String, _: &Context) -> Result<OnItem<String>> {
            self.0.lock().unwrap().push(item.clone());
            Ok(OnItem::Keep(item))
        }
        async fn flush(&mut self) -> Result<()> {
            self.1.lock().unwrap().append(&mut self.0.lock().unwrap());
            Ok(())
        }
    }
    // The page of the slow item comes last: pages that are parsed at the same time give their items in any order.
    let last = Reply::html("<title>2</title>").after(Duration::from_millis(100));
    let web = ScriptedDownloader::pages(tree("a.example", 2)).respond("http://a.example/2", last);
    let web = Arc::new(web);
    let seeds: Vec<String> = (0..3).map(|i| format!("http://a.example/{i}")).collect();
    let spider = spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        let path = page.url().path();
        out.item(format!("{path}:{}", if path == "/2" { 60_000 } else { 500 }));
        Ok(())
    });
    let flushed = Flushed::default();
    let durable = Arc::clone(&flushed.1);
    let delivered = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&delivered);
    let crawl = quick(spider, &web).concurrent_pipeline(Waits::default()).pipeline(flushed).observer(
        move |event: &Event<'_>| {
            if let Event::PageDelivered { request, .. } = event {
                let path = request.url.path();
                assert!(durable.lock().unwrap().iter().any(|item| item.starts_with(&format!("{path}:"))));
                seen.lock().unwrap().push((path.to_owned(), tokio::time::Instant::now()));
            }
        },
    );
    let began = tokio::time::Instant::now();
    let report = crawl.run().await.unwrap();
    assert_eq!((report.pages, report.stat("observer_panics")), (3, 0));
    let delivered = delivered.lock().unwrap();
    let early = delivered.iter().filter(|(_, at)| *at - began < Duration::from_secs(1)).count();
    assert_eq!(early, 2, "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn concurrent_pipelines_open_and_close_in_order_and_a_flush_that_fails_ends_the_crawl() {
    #[derive(Clone)]
    struct Told(&'static str, Arc<Mutex<Vec<String>>>, bool);
    impl Told {
        fn tell(&self, what: &str) {
            self.1.lock().unwrap().push(format!("{what} {}", self.0));
        }
    }
    impl ConcurrentPipeline<String> for Told {
        async fn open(&mut self, _: &Context) -> Result<()> {
            self.tell("open");
            Ok(())
        }
        async fn process_item(&self, item: String, _: &Context) -> Result<OnItem<String>> {
            self.tell("item");
            Ok(OnItem::Keep(item))
        }
        async fn flush(&self) -> Result<()> {
            self.tell("flush");
            if self.2 { Err(Error::msg("no space left on device")) } else { Ok(()) }
        }
        async fn close(&self) -> Result<()> {
            self.tell("close");
            Ok(())
        }
    }
    for fails in [false, true] {
        let (spider, web) = giving(vec!["1:0".to_owned()]);
        let told = Arc::default();
        let stages = ["a", "b"].map(|name| Told(name, Arc::clone(&told), fails && name == "b"));
        let [a, b] = stages;
        let ran = quick(spider, &web).concurrent_pipeline(a).concurrent_pipeline(b).run().await;
        let steps = ["open a", "open b", "item a", "item b", "flush a", "flush b", "close b", "close a"]
            .map(str::to_owned);
        assert_eq!(*told.lock().unwrap(), steps);
        match ran {
            Ok(report) => assert!(!fails && report.stat("item_scraped_count") == 1),
            Err(error) => {
                assert!(
                    fails && error.to_string().contains("writing items: no space left on device"),
                    "{error}"
                );
            }
        }
    }
}
