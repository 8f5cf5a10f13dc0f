//! Whole crawls over a shared queue.

use std::sync::Arc;

use huntsman_cluster::SharedFrontier;
use huntsman_crawler::{
    CrawlerBuilder, Downloader, FetchError, Order, Output, Page, Request, Response, spider_fn,
};
use huntsman_testkit::ScriptedDownloader;
use huntsman_testkit::redis::Server;

use super::scripts::settings;

struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

/// What the server says, without the end of the line.
fn ask(server: &Server, words: &[&str]) -> String {
    server.cli(words).trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crawl_that_ends_tells_the_next_owner_when_it_last_asked_each_host() {
    let server = Server::start();
    let web = Arc::new(ScriptedDownloader::pages([("http://a.example/", "<title>a</title>")]));
    let spider = spider_fn(["http://a.example/"], |page: &Page, out: &mut Output<String>| {
        out.item(page.url().to_string());
        Ok(())
    });
    let frontier = SharedFrontier::join(settings(&server.url()), Order::Bfs).expect("the node joins");
    let crawl = CrawlerBuilder::new(spider).downloader(Web(Arc::clone(&web))).frontier(frontier);
    assert_eq!(crawl.run().await.expect("the crawl").pages, 1);
    // Delay, end of a sleep, Crawl-delay, and the last start, of eight bytes each.
    assert_eq!(ask(&server, &["HSTRLEN", "hm:{job.0}:pace", "a.example"]), "32");
    let epoch = ask(&server, &["HGET", "hm:{job.0}:own", "epoch"]);
    assert_eq!(ask(&server, &["HGET", "hm:{job.0}:own", "told"]), epoch);

    // A node whose crawl did not end tells nothing: when it last asked a host is not known.
    let frontier = SharedFrontier::join(settings(&server.url()), Order::Bfs).expect("the node joins");
    while frontier.partitions_owned() == 0 {
        huntsman_crawler::Frontier::open(&frontier).await.expect("open");
    }
    drop(frontier);
    assert_ne!(ask(&server, &["HGET", "hm:{job.0}:own", "epoch"]), epoch, "it has owned the partition");
    assert_eq!(ask(&server, &["HGET", "hm:{job.0}:own", "told"]), epoch);
}
