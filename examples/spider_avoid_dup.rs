//! A crawl of the spider crate that learns that a session id does not change the page, and stops fetching copies.
//!
//! Starts its own site: `cargo run --features spider --example spider_avoid_dup`.

use huntsman::prelude::*;
use huntsman::spider::spider_rs::website::Website;
use huntsman::spider::{Fetcher, not_fetched};
use huntsman_testkit::{Answer, RunningSite, Site, SiteRequest};

const ARTICLES: usize = 300;

/// Each article links to two others, once with their plain addresses and once with a session id, as many old shops
/// and forums do.
fn article(n: usize) -> String {
    let word = |word: usize| format!("word{} ", (n * 7_919 + word * 104_729) % 99_991);
    let text: String = (0..60).map(word).collect();
    let links: String = [2 * n + 1, 2 * n + 2]
        .into_iter()
        .filter(|next| *next < ARTICLES)
        .map(|next| {
            format!(
                "<li><a href='/article?id={next}'>{next}</a> <a href='/article?id={next}&sid={n}x'>{next}</a>"
            )
        })
        .collect();
    format!("<html><body><main><p>{text}</p></main><ul>{links}</ul></body></html>")
}

async fn site() -> RunningSite {
    let page = |asked: &SiteRequest| {
        Answer::html(article(asked.param("id").and_then(|id| id.parse().ok()).unwrap_or(0)))
    };
    Site::builder().route("/article", page).start().await
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = site().await;
    let mut website = Website::new(site.url("/article?id=0").as_str());
    website.with_concurrency_limit(Some(32));

    let fetcher = Fetcher::start(|crawler| {
        crawler
            .set("avoid_dup_content_initial_queue_limit", 50)
            .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
            .delay(Duration::ZERO)
            .per_host(4)
    })?;
    fetcher.attach(&mut website);

    let mut pages = website.subscribe(1_000);
    let reader = tokio::spawn(async move {
        let (mut fetched, mut passed_over) = (0, 0);
        while let Ok(page) = pages.recv().await {
            match not_fetched(&page) {
                None => fetched += 1,
                Some(_) => passed_over += 1,
            }
        }
        (fetched, passed_over)
    });
    website.crawl().await;
    // The receiver ends when the last sender is dropped.
    drop(website);
    let (fetched, passed_over) = reader.await.map_err(Error::from)?;

    println!("{}", fetcher.finish().await?);
    println!("{fetched} pages were fetched, {passed_over} addresses were not");
    if let Some(avoid_dup) = fetcher.avoid_dup() {
        for rule in avoid_dup.rules() {
            println!("{}: {} requests skipped, such as {}", rule.rule, rule.skipped, rule.example);
        }
        if let Some((_, most)) = avoid_dup.totals().and_then(|totals| totals.loss()) {
            println!("at most {:.1} % of the skips would have brought new content", 100.0 * most);
        }
    }
    Ok(())
}
