//! Pages of quotes, one after the other; `bench/lines` compares it with `scrapy/tutorial.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Quote {
    #[item(css = "span.text")]
    text: String,
    #[item(css = "small.author")]
    author: String,
    #[item(css = "a.tag")]
    tags: Vec<String>,
}

fn parse(page: &Page, out: &mut Output<Quote>) -> Result<()> {
    out.items(page.items("div.quote")?);
    out.requests(page.follow_all("li.next a")?);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(spider_fn(["http://127.0.0.1:8790/quotes/1"], parse));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
