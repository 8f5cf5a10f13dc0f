//! An XML feed; `bench/lines` compares it with `scrapy/xml_feed.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
#[item(prefix(g = "http://shop.example/ns"))]
struct Offer {
    #[item(xpath = "@id")]
    id: u32,
    #[item(xpath = "name")]
    name: String,
    #[item(xpath = "g:price")]
    price: f64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(XmlFeed::<Offer>::items(["http://127.0.0.1:8790/feed.xml"], "item"));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
