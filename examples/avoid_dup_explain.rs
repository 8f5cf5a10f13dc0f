//! What AvoidDup learnt in a crawl: the forms of addresses, and why one address would be skipped and another not.
//!
//! Starts its own site: `cargo run --example avoid_dup_explain`.

use huntsman::middleware::AvoidDup;
use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

const ARTICLES: usize = 200;

/// Each article links to two others, with and without a session id, and to one page of a list, of which each shows something else.
fn page(n: usize, is_list: bool) -> String {
    let word = |word: usize| format!("word{} ", (n * 7_919 + word * 104_729 + usize::from(is_list)) % 99_991);
    let text: String = (0..60).map(word).collect();
    let links: String = [2 * n + 1, 2 * n + 2]
        .into_iter()
        .filter(|next| *next < ARTICLES && !is_list)
        .map(|next| {
            format!(
                "<li><a href='/article?id={next}'>{next}</a> <a href='/article?id={next}&sid={n}x'>{next}</a> \
                 <a href='/list?page={next}'>list</a>"
            )
        })
        .collect();
    format!("<title>{n}</title><main><p>{text}</main><ul>{links}</ul>")
}

fn number(query: Option<&str>) -> usize {
    query.and_then(|query| query.split(['=', '&']).nth(1)?.parse().ok()).unwrap_or(0)
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .route("/article", |asked| Answer::html(page(number(asked.query()), false)))
        .route("/list", |asked| Answer::html(page(number(asked.query()), true)))
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

    let avoid_dup = report.component::<AvoidDup>().expect("it was switched on");
    for template in avoid_dup.picture(10).into_iter().flat_map(|picture| picture.templates) {
        let counts = template.counts;
        println!(
            "{}: {} fetched, {} new, {} skipped",
            template.template, counts.pages, counts.new, counts.skipped
        );
    }
    for address in ["/article?id=7&sid=another", "/list?page=7000", "/about"] {
        if let Some(explained) = avoid_dup.explain_url(&site.url(address)) {
            println!("\n{explained}");
        }
    }
    Ok(())
}
