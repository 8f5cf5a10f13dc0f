//! A login by a form; `bench/lines` compares it with `scrapy/login.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Order {
    #[item(css = "::text")]
    order: String,
}

fn parse(page: &Page, out: &mut Output<Order>) -> Result<()> {
    if page.callback() == "orders" {
        out.items(page.items("li.order")?);
    } else {
        let form = Form::of(page, "#login")?.set("user", "ann")?.set("password", "secret")?;
        out.request(form.request()?.callback("orders"));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(spider_fn(["http://127.0.0.1:8790/login"], parse));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
