//! A crawl that reports which pages nearly equal earlier ones.
//!
//! Starts its own site: `cargo run --example near_dup`.

use huntsman::middleware::NearDuplicates;
use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

const STORIES: usize = 40;

/// Every fourth story is a copy of the one before it, with a few words replaced.
fn story(n: usize) -> String {
    let (of, edited) = if n % 4 == 3 { (n - 1, n) } else { (n, 0) };
    let word = |at: usize| match at {
        100..102 if edited > 0 => format!("edited{edited} "),
        _ => format!("word{} ", (of * 7_919 + at * 104_729) % 99_991),
    };
    let text: String = (0..400).map(word).collect();
    let next = format!("<nav><a href='/story?n={}'>next</a></nav>", n + 1);
    format!(
        "<title>Story {n}</title>{}<main><p>{text}</main>",
        if n + 1 < STORIES { next } else { String::new() }
    )
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .route("/story", |asked| {
            let n = asked.query().and_then(|query| query.strip_prefix("n=")?.parse().ok());
            Answer::html(story(n.unwrap_or(0)))
        })
        .start()
        .await;

    let spider = spider_fn([site.url("/story?n=0")], |page: &Page, out: &mut Output<String>| {
        if let Some(found) = page.extensions.get::<NearDuplicates>() {
            for near in &found.matches {
                println!("{} is {} bits from {}", page.url(), near.distance, near.url);
            }
        }
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .set("near_dup_enabled", true)
        // A distance of 7 finds edited copies, too; 3 is enough for plain copies.
        .set("near_dup_distance", 7)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .delay(Duration::ZERO)
        .run()
        .await?;
    println!("{report}");
    Ok(())
}
