//! Crawls that are archived.

use huntsman_crawler::{CrawlerBuilder, Output, Page, spider_fn};
use huntsman_middleware::{Defaults, Warc, WarcBuilder};
use huntsman_testkit::{Reply, ScriptedDownloader};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_bodies_that_arrive_at_once_one_is_written_and_the_others_refer_to_it() {
    const COPIES: i64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let body = "<p>the same words</p>".repeat(5_000);
    let web = ScriptedDownloader::new().otherwise(move |_, _| Reply::html(body.clone()));
    let seeds: Vec<String> = (0..COPIES).map(|n| format!("http://h{n}.test/")).collect();
    let report = CrawlerBuilder::new(spider_fn(seeds, |_: &Page, _: &mut Output<()>| Ok(())))
        .plugin(Defaults)
        .downloader(web)
        .set("robotstxt_obey", false)
        .set("concurrent_requests", 64)
        .warc(Warc::to(folder.path().join("archive")))
        .run()
        .await
        .unwrap();
    assert_eq!((report.stat("warc/responses"), report.stat("warc/revisits")), (1, COPIES - 1));
}
