//! A CSV feed; `bench/lines` compares it with `scrapy/csv_feed.py`.

use huntsman::prelude::*;

#[derive(Serialize, Deserialize)]
struct Offer {
    id: u32,
    name: String,
    price: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let feed = CsvFeed::<Offer>::items(["http://127.0.0.1:8790/feed.csv"]).delimiter(b';');
    let crawl = huntsman::crawl(feed);
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
