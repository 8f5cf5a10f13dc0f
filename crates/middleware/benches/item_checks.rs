//! Cost of the checks of items, in a crawl of scripted pages. `cargo bench -p huntsman-middleware --bench item_checks`.
//!
//! 100,000 items of 100 pages, with six fields, pass no pipeline, or the checks; the least time of some rounds counts, because a crawl has noise
//! that only adds.

use std::time::Instant;

use huntsman_crawler::{CrawlerBuilder, Output, Page, Spider, spider_fn};
use huntsman_middleware::{Defaults, ItemChecks};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde::Serialize;
use serde_json::{Value, json};

const PAGES: usize = 100;
const ITEMS_PER_PAGE: usize = 1_000;
const ROUNDS: usize = 15;

#[derive(Clone, Serialize)]
struct Book {
    title: String,
    author: String,
    price: f64,
    isbn: Option<String>,
    tags: Vec<String>,
    pages: u32,
}

fn book() -> Book {
    Book {
        title: "Mills of the north".to_owned(),
        author: "A. Miller".to_owned(),
        price: 10.5,
        isbn: None,
        tags: vec!["mills".to_owned(), "north".to_owned()],
        pages: 300,
    }
}

/// What a crawl does with its items.
#[derive(Clone, Copy, PartialEq)]
enum Checks {
    /// There is no pipeline, as in a command without these settings.
    None,
    /// The pipeline is there and has nothing to do.
    Off,
    Coverage,
    Schema,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let schema = std::env::temp_dir().join(format!("item-checks-{}.json", std::process::id()));
    let rules = json!({"required": ["title"], "properties": {"price": {"type": "number", "minimum": 0}}});
    huntsman_files::write(&schema, rules.to_string()).expect("the folder can be written");
    let json = serde_json::to_value(book()).expect("it is JSON");
    println!("{} items in ms, the least of {ROUNDS} rounds: structs, JSON", PAGES * ITEMS_PER_PAGE);
    let all = [
        ("no pipeline", Checks::None),
        ("off", Checks::Off),
        ("coverage", Checks::Coverage),
        ("schema", Checks::Schema),
    ];
    for (name, checks) in all {
        let path = schema.to_string_lossy();
        let structs = least(|| runtime.block_on(crawl(book(), checks, &path)));
        let values = least(|| runtime.block_on(crawl::<Value>(json.clone(), checks, &path)));
        println!("{name:12} {structs:7.1} {values:7.1}");
    }
    huntsman_files::remove_file(&schema).expect("it is there");
}

fn least(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min)
}

/// Milliseconds of one crawl.
async fn crawl<I: Clone + Serialize + Send + Sync + 'static>(item: I, checks: Checks, schema: &str) -> f64 {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let seeds: Vec<String> = (0..PAGES).map(|n| format!("http://a.test/{n}")).collect();
    let spider = spider_fn(seeds, move |_: &Page, out: &mut Output<I>| {
        (0..ITEMS_PER_PAGE).for_each(|_| out.item(item.clone()));
        Ok(())
    });
    let mut crawl = quick(spider).downloader(web);
    if checks != Checks::None {
        crawl = crawl.pipeline(ItemChecks::default());
    }
    crawl = match checks {
        Checks::Coverage => crawl.set("item_coverage", true),
        Checks::Schema => crawl.set("item_schema", schema),
        Checks::None | Checks::Off => crawl,
    };
    let start = Instant::now();
    let report = crawl.run().await.expect("it runs");
    assert_eq!(report.stat("item_scraped_count"), (PAGES * ITEMS_PER_PAGE) as i64);
    start.elapsed().as_secs_f64() * 1e3
}

fn quick<S: Spider>(spider: S) -> CrawlerBuilder<S> {
    CrawlerBuilder::new(spider)
        .plugin(Defaults)
        .set("download_delay", 0.0)
        .set("robotstxt_obey", false)
        .set("concurrent_requests_per_domain", 16)
}
