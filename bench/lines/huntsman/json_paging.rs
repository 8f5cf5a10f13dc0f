//! Paging through JSON; `bench/lines` compares it with `scrapy/json_paging.py`.

use huntsman::prelude::*;

#[derive(Deserialize)]
struct Answer {
    things: Vec<Thing>,
    next: Option<u32>,
}

#[derive(Deserialize)]
struct Thing {
    id: u32,
    name: Names,
}

#[derive(Deserialize)]
struct Names {
    en: String,
}

#[derive(Serialize)]
struct Item {
    id: u32,
    name: String,
}

struct Things;

impl Spider for Things {
    type Item = Item;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/api/things?page=1"])
    }

    fn parse(&self, page: &Page, out: &mut Output<Item>) -> Result<()> {
        let answer: Answer = page.json()?;
        for thing in answer.things {
            out.item(Item { id: thing.id, name: thing.name.en });
        }
        if let Some(next) = answer.next {
            out.follow(page.url().join(&format!("?page={next}"))?);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Things)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
