//! An XML feed; `bench/lines` compares it with `scrapy/xml_feed.py`.

use huntsman::prelude::*;

#[derive(Serialize)]
struct Offer {
    id: u32,
    name: String,
    price: f64,
}

struct Feed;

impl Spider for Feed {
    type Item = Offer;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/feed.xml"])
    }

    fn parse(&self, page: &Page, out: &mut Output<Offer>) -> Result<()> {
        let shop = XPathScope::new().prefix("g", "http://shop.example/ns");
        for node in page.nodes("//item")? {
            out.item(Offer {
                id: node.xpath("@id")?.get_or("").parse()?,
                name: node.xpath("name/text()")?.get_or(""),
                price: node.xpath_with("g:price/text()", &shop)?.get_or("").parse()?,
            });
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Feed)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
