//! Rules for links; `bench/lines` compares it with `scrapy/rules.py`.

use huntsman::LinkExtractor;
use huntsman::prelude::*;

#[derive(Serialize)]
struct Item {
    name: String,
    colour: String,
}

struct Shop {
    items: LinkExtractor,
    categories: LinkExtractor,
}

fn categories() -> Result<LinkExtractor> {
    LinkExtractor::new().allow("/category/")?.deny("/category/9")
}

impl Spider for Shop {
    type Item = Item;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/shop"])
    }

    fn callbacks(&self) -> &[&str] {
        &["item"]
    }

    fn parse(&self, page: &Page, out: &mut Output<Item>) -> Result<()> {
        if page.callback() == "item" {
            out.item(Item {
                name: page.css("h1::text")?.get_or(""),
                colour: page.css("#colour::text")?.get_or(""),
            });
            return Ok(());
        }
        let items = self.items.links(page)?;
        for link in &items {
            out.request(link.request().callback("item"));
        }
        for link in self.categories.links(page)? {
            if !items.iter().any(|item| item.url == link.url) {
                out.request(link.request());
            }
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Shop { items: LinkExtractor::new().allow("/item/")?, categories: categories()? })
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
