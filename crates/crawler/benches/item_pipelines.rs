//! Cost of items on their way through pipelines, in a crawl of scripted pages. `cargo bench -p huntsman-crawler --bench item_pipelines`.
//!
//! 100,000 items of 100 pages pass two pipelines that do not wait; the least time of some rounds counts, because a crawl has noise that only adds.

use std::time::Instant;

use huntsman_crawler::{Context, CrawlerBuilder, OnItem, Output, Page, Pipeline, Result, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader};

const PAGES: usize = 100;
const ITEMS_PER_PAGE: usize = 1_000;
const ROUNDS: usize = 40;

/// Counts the items, as a stage that does next to nothing.
struct Count(u64);

impl Pipeline<(usize, String)> for Count {
    async fn process_item(&mut self, item: (usize, String), _: &Context) -> Result<OnItem<(usize, String)>> {
        self.0 += item.0 as u64;
        Ok(OnItem::Keep(item))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(runtime.block_on(crawl()));
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{} items: least {:.2} ms, median {:.2} ms",
        PAGES * ITEMS_PER_PAGE,
        times[0],
        times[ROUNDS / 2]
    );
}

/// Milliseconds of one crawl.
async fn crawl() -> f64 {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let seeds: Vec<String> = (0..PAGES).map(|n| format!("http://a.test/{n}")).collect();
    let spider = spider_fn(seeds, |_: &Page, out: &mut Output<(usize, String)>| {
        (0..ITEMS_PER_PAGE).for_each(|n| out.item((n, String::new())));
        Ok(())
    });
    let crawl = CrawlerBuilder::new(spider)
        .downloader(web)
        .set("download_delay", 0.0)
        .set("concurrent_requests_per_domain", 16)
        .pipeline(Count(0))
        .pipeline(Count(0));
    let start = Instant::now();
    let report = crawl.run().await.expect("it runs");
    assert_eq!(report.stat("item_scraped_count"), (PAGES * ITEMS_PER_PAGE) as i64);
    start.elapsed().as_secs_f64() * 1e3
}
