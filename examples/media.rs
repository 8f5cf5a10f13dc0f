//! Images that items name: fetched once, stored in a folder, and listed in the items.
//!
//! Starts its own site: `cargo run --example media`.

use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<()> {
    let photo = |n: u8| {
        Answer::status(200)
            .header("Content-Type", "image/png")
            .body([b"\x89PNG\r\n\x1a\n", &[n][..]].concat())
    };
    let site = Site::builder()
        .page("/", "<a href=/mill>A mill</a> <a href=/barn>A barn</a> <img src=/logo.png>")
        .page("/mill", "<h1>Mill</h1><img src=/mill.png><img src=/logo.png>")
        .page("/barn", "<h1>Barn</h1><img src=/lost.png><img src=/logo.png>")
        .answer("/logo.png", photo(0))
        .answer("/mill.png", photo(1))
        .route("/*", |_| Answer::status(404))
        .start()
        .await;
    let folder = std::env::temp_dir().join(format!("images-{}", std::process::id()));
    let feed = folder.with_extension("jsonl");

    // An item of JSON needs no code for its images: the fields are `image_urls` and `images`.
    let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<Value>| {
        let sources = page.css("img::attr(src)")?;
        let urls: Vec<String> =
            sources.get_all().iter().filter_map(|src| page.join(src)).map(String::from).collect();
        out.item(json!({"page": page.url().path(), "image_urls": urls}));
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .concurrent_pipeline(Media::images(&folder))
        // The feed comes after it, so its lines have the field `images`.
        .pipeline(JsonLines::create(&feed)?)
        .run()
        .await?;

    println!("{report}");
    print!("{}", std::fs::read_to_string(&feed)?);
    // Three items name the logo, which was fetched once. One image is lost, and costs nothing else.
    assert_eq!(site.count("/logo.png"), 1);
    assert_eq!(report.stat("item_scraped_count"), 3);
    assert_eq!(
        (report.stat("file_status_count/downloaded"), report.stat("file_status_count/failed")),
        (2, 1)
    );
    std::fs::remove_dir_all(&folder)?;
    std::fs::remove_file(&feed)?;
    Ok(())
}
