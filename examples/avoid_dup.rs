//! A crawl that learns that a session id does not change the page, and stops fetching copies.
//!
//! Starts its own site: `cargo run --example avoid_dup`.

use huntsman::middleware::AvoidDup;
use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

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
    format!("<title>Article {n}</title><main><p>{text}</main><ul>{links}</ul>")
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .route("/article", |asked| {
            let id =
                asked.query().and_then(|query| query.strip_prefix("id=")?.split('&').next()?.parse().ok());
            Answer::html(article(id.unwrap_or(0)))
        })
        .start()
        .await;

    let spider = spider_fn([site.url("/article?id=0")], |page: &Page, out: &mut Output<String>| {
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .set("avoid_dup_content_enabled", true)
        .set("avoid_dup_content_initial_queue_limit", 50)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .delay(Duration::ZERO)
        .per_host(4)
        .run()
        .await?;

    println!("{report}");
    if let Some(avoid_dup) = report.component::<AvoidDup>() {
        for rule in avoid_dup.rules() {
            println!("{}: {} requests skipped, such as {}", rule.rule, rule.skipped, rule.example);
        }
        if let Some((_, most)) = avoid_dup.totals().and_then(|totals| totals.loss()) {
            println!("at most {:.1} % of the skips would have brought new content", 100.0 * most);
        }
    }
    Ok(())
}
