//! Paging through JSON; `bench/lines` compares it with `scrapy/json_paging.py`.

use huntsman::prelude::*;

#[derive(Serialize)]
struct Thing {
    id: u32,
    name: String,
}

fn parse(page: &Page, out: &mut Output<Thing>) -> Result<()> {
    for thing in page.json_path("$.things[*]")?.nodes() {
        let id = thing.json_path("$.id")?.value()?.unwrap_or(0);
        out.item(Thing { id, name: thing.json_path("$.name.en")?.get_or("") });
    }
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
