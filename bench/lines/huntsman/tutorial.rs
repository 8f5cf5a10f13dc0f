//! Pages of quotes, one after the other; `bench/lines` compares it with `scrapy/tutorial.py`.

use huntsman::prelude::*;

#[derive(Serialize)]
struct Quote {
    text: String,
    author: String,
    tags: Vec<String>,
}

struct Quotes;

impl Spider for Quotes {
    type Item = Quote;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/quotes/1"])
    }

    fn parse(&self, page: &Page, out: &mut Output<Quote>) -> Result<()> {
        for quote in page.select("div.quote")? {
            out.item(Quote {
                text: quote.text_of("span.text")?,
                author: quote.text_of("small.author")?,
                tags: quote.css("a.tag::text")?.get_all().to_vec(),
            });
        }
        for next in page.follow_all("li.next a")? {
            out.request(next);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Quotes)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
