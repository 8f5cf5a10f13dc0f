//! A CSV feed; `bench/lines` compares it with `scrapy/csv_feed.py`.

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
        Start::urls(["http://127.0.0.1:8790/feed.csv"])
    }

    fn parse(&self, page: &Page, out: &mut Output<Offer>) -> Result<()> {
        for row in page.body_text().lines().skip(1) {
            let [id, name, price] = row.split(';').collect::<Vec<_>>()[..] else {
                // A quoted field with the delimiter in it.
                let fields: Vec<&str> = row.split('"').collect();
                let [id, name, price] = fields[..] else { return Err(Error::msg("three fields are needed")) };
                let (id, price) = (id.trim_matches(';'), price.trim_matches(';'));
                out.item(Offer { id: id.parse()?, name: name.to_owned(), price: price.parse()? });
                continue;
            };
            out.item(Offer { id: id.parse()?, name: name.to_owned(), price: price.parse()? });
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
