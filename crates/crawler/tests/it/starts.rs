//! Tests of starts that components request, besides those that come with leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use huntsman_crawler::{
    Context, CrawlerBuilder, Downloader, DownloaderMiddleware, FetchError, OnRequest, Output, Page, Request,
    Response, Result, spider_fn,
};
use huntsman_testkit::{Reply, ScriptedDownloader};

struct Web(Arc<ScriptedDownloader>);

impl Downloader for Web {
    async fn fetch(&self, request: &Request) -> Result<Response, FetchError> {
        self.0.fetch(request).await
    }
}

/// Sends a request to another host before each request.
struct AsksFirst(Arc<AtomicUsize>);

impl DownloaderMiddleware for AsksFirst {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        if request.url.host_str() != Some("oracle.example") {
            let question = Request::parse("http://oracle.example/")?;
            cx.download(question).await?;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(OnRequest::Continue)
    }
}

#[tokio::test(start_paused = true)]
async fn a_visit_that_waits_for_another_host_holds_no_place() {
    let web = Arc::new(
        ScriptedDownloader::new()
            .otherwise(|_, _| Reply::html("<p>here</p>").after(Duration::from_millis(50))),
    );
    let asked = Arc::new(AtomicUsize::new(0));
    let seeds: Vec<String> = (0..4).map(|n| format!("http://h{n}.example/")).collect();
    let spider = spider_fn(seeds, |page: &Page, out: &mut Output<String>| {
        out.item(page.url().to_string());
        Ok(())
    });
    let crawl = CrawlerBuilder::new(spider)
        .set("download_delay", 0.0)
        .set("concurrent_requests", 2)
        .downloader(Web(Arc::clone(&web)))
        .middleware(AsksFirst(Arc::clone(&asked)))
        .run();
    let report = tokio::time::timeout(Duration::from_secs(600), crawl).await.expect("it ends").unwrap();
    assert_eq!((report.pages, asked.load(Ordering::SeqCst)), (4, 4));
}
