//! The engine over a queue that other processes share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use huntsman_crawler::{
    CrawlerBuilder, Downloader, FetchError, Frontier, FrontierLink, HostKey, Leased, MemoryFrontier, Order,
    Output, OwnedSince, Page, Pushed, Request, Response, Result, SavedPoliteness, Settled, Timestamp,
    spider_fn,
};
use huntsman_testkit::ScriptedDownloader;

/// What a test does as the other processes.
#[derive(Default)]
struct Others {
    link: OnceLock<FrontierLink>,
    is_finished: AtomicBool,
    lost: Mutex<Option<HostKey>>,
    learnt: Mutex<Vec<(HostKey, Option<SavedPoliteness>)>>,
    /// Whose turns were asked for, and until when other processes have theirs.
    turns: Mutex<Vec<String>>,
    busy: Mutex<Option<Duration>>,
}

impl Others {
    fn link(&self) -> &FrontierLink {
        self.link.get().expect("the crawl has begun")
    }
}

/// A queue in memory that says it is shared.
struct Shared {
    queue: Arc<MemoryFrontier>,
    others: Arc<Others>,
}

impl Frontier for Shared {
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>> {
        let _ = self.others.link.set(link);
        Ok(Some(Box::new(|_| None)))
    }

    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        self.queue.open().await
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        self.queue.push(batch).await
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        self.queue.lease(host, max, now).await
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        self.queue.settle(batch).await
    }

    fn len(&self) -> u64 {
        self.queue.len()
    }

    async fn claim(&self, host: &HostKey) -> Result<bool> {
        Ok(self.others.lost.lock().unwrap().as_ref() != Some(host))
    }

    async fn turn(&self, host: &HostKey, delay: Duration) -> Result<()> {
        self.others.turns.lock().unwrap().push(format!("{host} {}", delay.as_secs()));
        let busy = self.others.busy.lock().unwrap().take();
        if let Some(time) = busy {
            tokio::time::sleep(time).await;
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        self.others.is_finished.load(Ordering::Relaxed)
    }

    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        self.others.learnt.lock().unwrap().extend(hosts);
    }

    fn is_durable(&self) -> bool {
        true
    }
}

struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

fn web() -> ScriptedDownloader {
    let page = |name: &str| (format!("http://{name}.example/"), format!("<title>{name}</title>"));
    ScriptedDownloader::pages(["a", "b", "c"].map(page))
}

fn crawl(
    web: &Arc<ScriptedDownloader>,
) -> (CrawlerBuilder<impl huntsman_crawler::Spider<Item = String> + use<>>, Arc<MemoryFrontier>, Arc<Others>)
{
    let (queue, others) = (Arc::new(MemoryFrontier::new(Order::Bfs)), Arc::new(Others::default()));
    let spider = spider_fn(["http://a.example/"], |page: &Page, out: &mut Output<String>| {
        out.item(page.url().to_string());
        Ok(())
    });
    let frontier = Shared { queue: Arc::clone(&queue), others: Arc::clone(&others) };
    let builder = CrawlerBuilder::new(spider)
        .set("download_delay", 1.0)
        .set("download_delay_jitter", 0.0)
        .set("seed", 7)
        .downloader(Web(Arc::clone(web)))
        .frontier(frontier);
    (builder, queue, others)
}

fn request(url: &str) -> Request {
    Request::parse(url).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_crawl_waits_while_others_work_and_takes_what_they_queue() {
    let web = Arc::new(web());
    let (builder, queue, others) = crawl(&web);
    let other = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(web.requests().len(), 1, "it has done its page, and waits");
        let pushed = queue.push(vec![request("http://b.example/")]).await.unwrap();
        others.link().woken(pushed.woken);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(web.requests().len(), 2);
        others.is_finished.store(true, Ordering::Relaxed);
        others.link().woken(Vec::new());
    };
    let (report, ()) = tokio::join!(builder.run(), other);
    let report = report.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (2, "finished"));
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_at_a_lost_host_is_given_up_and_the_crawl_goes_on() {
    let web = Arc::new(web().latency(Duration::from_secs(30)));
    let (builder, queue, others) = crawl(&web);
    let a = HostKey::new("a.example");
    let other = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(web.requests().len(), 1, "the page of the host is in flight");
        *others.lost.lock().unwrap() = Some(a.clone());
        let lost = a.clone();
        others.link().lost(move |host| *host == lost);
        let pushed = queue.push(vec![request("http://b.example/")]).await.unwrap();
        others.link().woken(pushed.woken);
        others.is_finished.store(true, Ordering::Relaxed);
    };
    let (report, ()) = tokio::join!(builder.run(), other);
    let report = report.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (1, "finished"));
    assert_eq!(queue.open().await.unwrap(), [(a, 1)], "the page is left to the other process");
}

#[tokio::test(start_paused = true)]
async fn an_adopted_host_waits_for_the_delay_that_another_process_learnt() {
    let web = Arc::new(web());
    let (builder, queue, others) = crawl(&web);
    let c = HostKey::new("c.example");
    let other = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        queue.push(vec![request("http://c.example/")]).await.unwrap();
        let learnt = SavedPoliteness { delay: Duration::from_secs(20), ..Default::default() };
        others.link().adopted(vec![(c.clone(), Some(learnt))], |_| true);
        tokio::time::sleep(Duration::from_secs(19)).await;
        assert_eq!(web.requests().len(), 1, "the other process may have asked a moment ago");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(web.requests().len(), 2);
        others.is_finished.store(true, Ordering::Relaxed);
        others.link().woken(Vec::new());
    };
    let (report, ()) = tokio::join!(builder.run(), other);
    assert_eq!(report.unwrap().pages, 2);
}

#[tokio::test(start_paused = true)]
async fn parked_requests_are_kept_while_other_processes_do_pages() {
    let web = Arc::new(web());
    let (builder, queue, others) = crawl(&web);
    let other = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let handle = others.link();
        let mut later = request("http://b.example/");
        later.not_before = Some(handle.now() + Duration::from_secs(200));
        let pushed = queue.push(vec![later]).await.unwrap();
        handle.woken(pushed.woken);
        for _ in 0..30 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            handle.progressed();
        }
        others.is_finished.store(true, Ordering::Relaxed);
        handle.woken(Vec::new());
    };
    let (report, ()) = tokio::join!(builder.set("max_parked_wait", 30.0).run(), other);
    assert_eq!(report.unwrap().pages, 2);
}

#[tokio::test(start_paused = true)]
async fn a_page_limit_leaves_the_queue_to_the_others() {
    let web = Arc::new(web());
    let (builder, queue, others) = crawl(&web);
    queue.push(vec![request("http://b.example/"), request("http://c.example/")]).await.unwrap();
    others.is_finished.store(true, Ordering::Relaxed);
    let report = builder.set("closespider_pagecount", 1).run().await.unwrap();
    assert_eq!((report.pages, report.finish_reason.as_str()), (1, "closespider_pagecount"));
    assert!(queue.len() > 0, "what is left is the work of other processes");
}

#[tokio::test(start_paused = true)]
async fn what_was_learnt_about_a_host_is_told() {
    let web = Arc::new(web());
    let (builder, _, others) = crawl(&web);
    let other = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        others.is_finished.store(true, Ordering::Relaxed);
        others.link().woken(Vec::new());
    };
    let spider_delay = builder.set("autothrottle_enabled", true).set("autothrottle_start_delay", 5.0);
    let (report, ()) = tokio::join!(spider_delay.run(), other);
    assert_eq!(report.unwrap().pages, 1);
    let learnt = others.learnt.lock().unwrap();
    assert!(learnt.iter().any(|(host, pace)| host.as_str() == "a.example" && pace.is_some()), "{learnt:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_turn_of_its_process() {
    let web = Arc::new(web());
    let (builder, _, others) = crawl(&web);
    *others.busy.lock().unwrap() = Some(Duration::from_secs(30));
    let other = async {
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(web.requests().is_empty(), "another process has its turn");
        others.is_finished.store(true, Ordering::Relaxed);
        others.link().woken(Vec::new());
    };
    let (report, ()) = tokio::join!(builder.run(), other);
    assert_eq!(report.unwrap().pages, 1);
    assert_eq!(*others.turns.lock().unwrap(), ["a.example 1"]);
}
