//! Rules for links; `bench/lines` compares it with `scrapy/rules.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Ware {
    #[item(css = "h1")]
    name: String,
    #[item(css = "#colour")]
    colour: String,
}

fn parse(page: &Page, out: &mut Output<Ware>) -> Result<()> {
    if page.callback() == "ware" {
        out.item(page.item()?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let spider = Rules::new(spider_fn(["http://127.0.0.1:8790/shop"], parse))
        .rule(Rule::new(LinkExtractor::new().allow("/item/")?).callback("ware"))
        .rule(LinkExtractor::new().allow("/category/")?.deny("/category/9")?);
    let crawl = huntsman::crawl(spider);
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
