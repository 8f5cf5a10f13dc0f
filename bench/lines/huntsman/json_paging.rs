//! Paging through JSON; `bench/lines` compares it with `scrapy/json_paging.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Thing {
    #[item(json = "$.id")]
    id: u32,
    #[item(json = "$.name.en")]
    name: String,
}

fn parse(page: &Page, out: &mut Output<Thing>) -> Result<()> {
    out.items(page.items_json("$.things[*]")?);
    if let Some(next) = page.json_path("$.next")?.value::<Option<u32>>()?.flatten() {
        out.follow(page.url().join(&format!("?page={next}"))?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(spider_fn(["http://127.0.0.1:8790/api/things?page=1"], parse));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
