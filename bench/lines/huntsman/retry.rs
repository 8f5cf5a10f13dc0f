//! Trying again because of what a page says; `bench/lines` compares it with `scrapy/retry.py`.

use huntsman::middleware::retry_request;
use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Title {
    #[item(css = "h1")]
    title: String,
}

fn parse(page: &Page, out: &mut Output<Title>) -> Result<()> {
    if page.callback() != "page" {
        out.requests(page.follow_all("a")?.into_iter().map(|request| request.callback("page")));
    } else if page.select("p.wait")?.is_empty() {
        out.item(page.item()?);
    } else {
        out.requests(retry_request(page.request(), "wait", out.context()));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(spider_fn(["http://127.0.0.1:8790/busy"], parse));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
