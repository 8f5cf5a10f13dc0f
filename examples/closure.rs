//! A crawl in a few lines: seeds, a closure, and the report.
//!
//! Starts its own site: `cargo run --example closure`.

use huntsman::prelude::*;
use huntsman_testkit::sites;

#[tokio::main]
async fn main() -> Result<()> {
    let site = sites::linked(50, 6).start().await;

    let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<()>| {
        println!("{:3}  {}", page.request().depth, page.title().unwrap_or("-"));
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .run()
        .await?;

    println!("{report}");
    assert_eq!(report.pages, 50);
    Ok(())
}
