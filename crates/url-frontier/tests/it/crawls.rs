//! Whole crawls whose queue is in a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{
    CrawlReport, CrawlerBuilder, Downloader, FetchError, Order, Output, Page, Profile, Request, Response,
    Timestamp, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use huntsman_url_frontier::UrlFrontier;
use huntsman_url_frontier::test_server::Server;
use tokio::sync::Barrier;

use super::nodes::{join, settings};

#[derive(Clone)]
struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

const HOSTS: usize = 5;
const PAGES: usize = 60;

fn url(page: usize) -> String {
    format!("http://h{}.example/{page}?b=2&a=1", page % HOSTS)
}

/// Pages that lead to others, also by other spellings of their URLs.
fn web(latency: Duration) -> Web {
    let pages = (0..PAGES).map(|page| {
        let to = (2 * page + 1..=2 * page + 3).filter(|to| *to < PAGES);
        let links: String = to
            .map(|to| {
                let other = url(to).replace("b=2&a=1", "a=1&b=2#x");
                format!("<a href='{}'>x</a><a href='{other}'>x</a>", url(to))
            })
            .collect();
        (url(page), format!("<title>{page}</title>{links}"))
    });
    Web(Arc::new(ScriptedDownloader::pages(pages).latency(latency)))
}

/// Pages that were seen, with the number of times.
type Seen = BTreeMap<String, usize>;

/// Crawls from the first page, with at most two requests in flight.
async fn crawl(web: &Web, frontier: Option<UrlFrontier>) -> (CrawlReport, Seen) {
    let seen = Arc::new(Mutex::new(Seen::new()));
    let spider = {
        let seen = Arc::clone(&seen);
        spider_fn([url(0)], move |page: &Page, out: &mut Output<()>| {
            *seen.lock().expect("no callback panics").entry(page.url().path().to_owned()).or_default() += 1;
            out.follow_links(page);
            Ok(())
        })
    };
    let builder = CrawlerBuilder::new(spider).profile(Profile::Test).concurrency(2).downloader(web.clone());
    let builder = match frontier {
        Some(frontier) => builder.frontier(frontier),
        None => builder,
    };
    let report = builder.run().await.expect("the crawl ends");
    assert_eq!(report.finish_reason, "finished");
    let seen = seen.lock().expect("no callback panics").clone();
    (report, seen)
}

async fn in_time<T>(crawl: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), crawl).await.expect("the crawl comes to its end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_over_the_server_is_that_of_one_machine() {
    let server = Server::start();
    let web = web(Duration::ZERO);
    let (alone, expected) = crawl(&web, None).await;
    let (report, seen) = in_time(crawl(&web, Some(join(&server)))).await;
    assert_eq!(seen, expected);
    assert_eq!((report.pages, report.seeds), (alone.pages, alone.seeds));
    assert_eq!(report.stat("dupefilter/filtered"), alone.stat("dupefilter/filtered"));
    assert!(server.queued("job").is_empty());
    assert_eq!(server.completed("job").len(), PAGES);
    assert_eq!(server.delays("job").len(), HOSTS, "the delay of each host was told");
    // The next crawl of the same job finds nothing to do.
    let (report, seen) = in_time(crawl(&web, Some(join(&server)))).await;
    assert_eq!((report.pages, seen.len()), (0, 0));
}

/// A web whose first answer to a crawl waits until the other crawl has asked, too.
struct Meeting {
    web: Web,
    both: Arc<Barrier>,
    has_met: AtomicBool,
}

impl Downloader for Meeting {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        if !self.has_met.swap(true, Ordering::AcqRel) {
            self.both.wait().await;
        }
        self.web.fetch(request).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_crawls_share_the_pages_of_a_job() {
    let server = Server::start().without_pauses();
    let web = web(Duration::ZERO);
    // As many hosts as pages, of which one crawl takes a few at a time.
    let urls: BTreeSet<String> = (0..PAGES).map(|n| format!("http://n{n}.example/")).collect();
    for (n, url) in urls.iter().enumerate() {
        assert!(server.put("job", &format!("queue {n}"), url));
    }
    let both = Arc::new(Barrier::new(2));
    let one = || {
        let spider = spider_fn([""; 0], |_: &Page, _: &mut Output<()>| Ok(()));
        let (web, both) = (web.clone(), Arc::clone(&both));
        let meeting = Meeting { web, both, has_met: AtomicBool::new(false) };
        let crawl = CrawlerBuilder::new(spider).profile(Profile::Test).concurrency(2).downloader(meeting);
        crawl.frontier(join(&server)).run()
    };
    let (first, second) = in_time(async { tokio::join!(one(), one()) }).await;
    let (first, second) = (first.expect("the crawl ends"), second.expect("the crawl ends"));
    assert!(first.requests > 0 && second.requests > 0, "both work");
    let mut asked = web.0.urls();
    asked.sort_unstable();
    assert_eq!(asked, urls.into_iter().collect::<Vec<_>>(), "each page is asked once");
    assert_eq!(server.completed("job").len(), PAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_in_the_middle_of_a_crawl_loses_nothing() {
    let mut server = Server::start().without_pauses();
    let web = web(Duration::from_millis(10));
    let frontier = join(&server);
    let restarts = async {
        for pages in [5, 20, 40] {
            while server.completed("job").len() < pages {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            server.stop();
            tokio::time::sleep(Duration::from_millis(30)).await;
            server.restart();
        }
    };
    let crawled = async { tokio::join!(crawl(&web, Some(frontier)), restarts) };
    let ((_, seen), ()) = in_time(crawled).await;
    assert_eq!(seen.len(), PAGES);
    assert_eq!(server.completed("job").len(), PAGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_of_another_crawler_are_crawled_and_those_that_it_did_are_not() {
    let server = Server::start();
    let web = web(Duration::ZERO);
    server.put("job", "h1.example", "http://h1.example/1?a=1&b=2");
    server.done("job", "h1.example", "http://h1.example/1?a=1&b=2");
    server.put("job", "h4.example", "http://h4.example/54?a=1&b=2");
    let (_, seen) = in_time(crawl(&web, Some(join(&server)))).await;
    assert!(!seen.contains_key("/1"), "another crawler did it");
    assert_eq!(seen.get("/54"), Some(&1));
    assert!(seen.contains_key("/2"));
    assert!(server.queued("job").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delay_is_kept_between_nodes_and_told_in_whole_seconds_again_after_a_restart() {
    let mut server = Server::start();
    let pages = [
        ("http://a.example/", "<a href='/1'>1</a><a href='/2'>2</a>"),
        ("http://a.example/1", ""),
        ("http://a.example/2", ""),
    ];
    let web = Web(Arc::new(ScriptedDownloader::pages(pages)));
    let one = |name: &'static str| {
        let spider = spider_fn(["http://a.example/"], |page: &Page, out: &mut Output<()>| {
            out.follow_links(page);
            Ok(())
        });
        let builder = CrawlerBuilder::new(spider).profile(Profile::Test).downloader(web.clone());
        let builder = builder.delay(Duration::from_millis(700)).frontier(join(&server));
        async move { builder.run().await.unwrap_or_else(|error| panic!("{name}: {error}")) }
    };
    let (first, second) = in_time(async { tokio::join!(one("first"), one("second")) }).await;
    assert_eq!(first.pages + second.pages, 3);
    assert_eq!(server.delays("job"), BTreeMap::from([("a.example".to_owned(), 1)]));
    let gap = web.0.smallest_gap("a.example").expect("the host was asked several times");
    assert!(gap >= Duration::from_millis(700), "{gap:?}");
    drop((first, second));

    // What a node has told is told again before it asks for anything else.
    let node = join(&server);
    node_tells(&node, "a.example", Duration::from_millis(30)).await;
    let told = server.delays("job");
    server.restart();
    assert!(server.delays("job").is_empty(), "the server has forgotten it");
    huntsman_crawler::Frontier::push(&node, vec![request("http://a.example/9")]).await.expect("push");
    assert_eq!(server.delays("job"), told);
}

fn request(url: &str) -> Request {
    Request::parse(url).expect("a URL")
}

/// Has a node tell the delay of a host of which it holds a URL.
async fn node_tells(node: &UrlFrontier, host: &str, delay: Duration) {
    use huntsman_crawler::{Frontier, HostKey};
    node.push(vec![request(&format!("http://{host}/8"))]).await.expect("push");
    let host = HostKey::new(host);
    while node.lease(&host, 1, Timestamp(0)).await.expect("lease").leases.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    node.turn(&host, delay).await.expect("turn");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_wants_to_be_left_alone_is_blocked_in_the_server() {
    let server = Server::start();
    let busy = Reply::status(503).header("retry-after", "2");
    let web = ScriptedDownloader::new().respond(&url(0), busy).then(Reply::html(""));
    let web = Web(Arc::new(web));
    let began = Timestamp::wall().0 / 1_000_000;
    in_time(crawl(&web, Some(join(&server)))).await;
    let blocks = server.blocks("job");
    let until = blocks.get("h0.example").copied().unwrap_or_default();
    assert!((began + 2..=began + 30).contains(&until), "{began}: {blocks:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unfiltered_request_is_left_out_and_told() {
    let server = Server::start();
    let web = Web(Arc::new(ScriptedDownloader::pages([(url(0), "<title>0</title>"), (url(1), "")])));
    let spider = spider_fn([url(0)], |_: &Page, out: &mut Output<()>| {
        out.request(request(&url(1)).unfiltered());
        Ok(())
    });
    let crawl =
        CrawlerBuilder::new(spider).profile(Profile::Test).downloader(web.clone()).frontier(join(&server));
    let report = in_time(crawl.run()).await.expect("the crawl ends");
    assert_eq!((report.pages, report.stat("refused/unfit_for_queue")), (1, 1));
    assert_eq!(web.0.urls().into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([url(0)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_come_back_ends_the_crawl_with_an_error() {
    let mut server = Server::start().without_pauses();
    let web = web(Duration::from_millis(10));
    let frontier = UrlFrontier::join(settings(&server).patience(Duration::from_millis(300)), Order::Bfs);
    let frontier = frontier.expect("the node joins");
    let spider = spider_fn([url(0)], |page: &Page, out: &mut Output<()>| {
        out.follow_links(page);
        Ok(())
    });
    let crawl = CrawlerBuilder::new(spider).profile(Profile::Test).downloader(web).frontier(frontier);
    let stopped = async {
        while server.completed("job").len() < 5 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        server.stop();
    };
    let (report, ()) = in_time(async { tokio::join!(crawl.run(), stopped) }).await;
    let said = match report {
        Ok(report) => report.failure().expect("the crawl has failed"),
        Err(error) => error.to_string(),
    };
    assert!(said.contains("cannot be reached"), "{said}");
    // The queue is whole: another crawl does the rest.
    server.restart();
    server.advance(61);
    let (_, seen) = in_time(self::crawl(&self::web(Duration::ZERO), Some(join(&server)))).await;
    assert!(!seen.is_empty());
    assert_eq!(server.completed("job").len(), PAGES);
}
