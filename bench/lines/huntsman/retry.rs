//! Trying again because of what a page says; `bench/lines` compares it with `scrapy/retry.py`.

use huntsman::middleware::retry_request;
use huntsman::prelude::*;

#[derive(Serialize)]
struct Title {
    title: String,
}

struct Busy;

impl Spider for Busy {
    type Item = Title;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/busy"])
    }

    fn callbacks(&self) -> &[&str] {
        &["page"]
    }

    fn parse(&self, page: &Page, out: &mut Output<Title>) -> Result<()> {
        if page.callback() != "page" {
            for request in page.follow_all("a")? {
                out.request(request.callback("page"));
            }
        } else if page.select("p.wait")?.is_empty() {
            out.item(Title { title: page.css("h1::text")?.get_or("") });
        } else if let Some(again) = retry_request(page.request(), "wait", out.context()) {
            out.request(again);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Busy)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
