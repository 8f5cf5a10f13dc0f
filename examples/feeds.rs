//! Reads the offers of a shop from an XML feed, and their prices from a CSV file.
//!
//! Starts its own site: `cargo run --example feeds`.

use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

#[derive(Serialize)]
struct Offer {
    title: String,
    price: Option<String>,
    page: Url,
}

/// The columns of the CSV file. A row that does not fit is left out, and told when the feed was read.
#[derive(Serialize, Deserialize)]
struct Price {
    name: String,
    price: f64,
}

const OFFERS: &str = "<?xml version='1.0'?>
<rss xmlns:g='http://base.google.com/ns/1.0'><channel>
  <item><title>Wind mill</title><link>/offer/1</link><g:price>120 EUR</g:price></item>
  <item><title>Water mill</title><link>/offer/2</link></item>
</channel></rss>";
const PRICES: &str = "name;price\nWind mill;120\nWater mill;95.5\nBeaver;not for sale\n";

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .answer("/offers.xml", Answer::status(200).header("Content-Type", "application/xml").body(OFFERS))
        .answer("/prices.csv", Answer::status(200).header("Content-Type", "text/csv").body(PRICES))
        .start()
        .await;
    let addresses = vec![format!("127.0.0.1:{}", site.port())];

    let urls = [site.url("/offers.xml")];
    let offers = XmlFeed::new(urls, "item", |item: PageNode<'_>, _: &Page, out: &mut Output<Offer>| {
        let link = item.nodes("link")?;
        let link = link.first().ok_or_else(|| Error::msg("an offer has no link"))?;
        out.item(Offer {
            title: item.xpath("title/text()")?.get_or("-"),
            // The prefix is the one of the feed.
            price: item.xpath("g:price/text()")?.get(),
            page: link.href()?,
        });
        Ok(())
    });
    let report = huntsman::crawl(offers)
        .set("allow_addresses", addresses.clone())
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    assert_eq!(report.stat("item_scraped_count"), 2);

    // If the rows are the items, no function is needed.
    let prices = CsvFeed::<Price>::items([site.url("/prices.csv")]).delimiter(b';');
    let report =
        huntsman::crawl(prices).set("allow_addresses", addresses).pipeline(JsonLines::stdout()).run().await?;
    // The report names the row that is no price; the others were read.
    println!("{report}");
    assert_eq!((report.stat("item_scraped_count"), report.stat("feed/damaged")), (2, 1));
    Ok(())
}
