//! Crawls a shop by rules: categories are followed, the pages of books are read, everything else is left alone.
//!
//! Starts its own site: `cargo run --example rules`.

use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

#[derive(Serialize)]
struct Book {
    title: String,
    shelf: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .page("/", "<a href=/shelf/mills>Mills</a> <a href=/shelf/dams>Dams</a> <a href=/cart>Cart</a>")
        .page(
            "/shelf/mills",
            "<a href=/book/1>Wind</a> <a href=/book/2>Water</a> <a href=/book/2/print>print</a>",
        )
        .page("/shelf/dams", "<a href=/book/3>Beavers</a> <a href=/shelf/mills>Mills</a>")
        .route("/book/*", |asked| {
            Answer::html(format!("<h1>Book {}</h1><a href=/cart>buy</a>", asked.path()))
        })
        .page("/cart", "nothing is bought here")
        .start()
        .await;

    // The spider reads books. It knows nothing of links.
    let shop = spider_fn([site.url("/").as_str()], |page: &Page, out: &mut Output<Book>| {
        if page.callback() == "book" {
            let shelf = page.request().referer.as_deref().unwrap_or("-").to_owned();
            out.item(Book { title: page.css("h1::text")?.get_or("-"), shelf });
        }
        Ok(())
    });
    let spider = Rules::new(shop)
        // Without a callback: the links of these pages are followed.
        .rule(LinkExtractor::new().allow("/shelf/")?)
        // With a callback: these pages are read, and their links are not followed.
        .rule(Rule::new(LinkExtractor::new().allow("/book/")?.deny("/print")?).callback("book"));

    let report = huntsman::crawl(spider)
        .delay(Duration::from_millis(5))
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .pipeline(JsonLines::stdout())
        .run()
        .await?;

    println!("{report}");
    assert_eq!((report.pages, report.stat("item_scraped_count")), (6, 3));
    assert_eq!((site.count("/cart"), site.count("/book/2/print")), (0, 0));
    Ok(())
}
