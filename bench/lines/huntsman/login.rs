//! A login by a form; `bench/lines` compares it with `scrapy/login.py`.

use huntsman::prelude::*;

#[derive(Serialize)]
struct Order {
    order: String,
}

struct Orders;

impl Spider for Orders {
    type Item = Order;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/login"])
    }

    fn callbacks(&self) -> &[&str] {
        &["orders"]
    }

    fn parse(&self, page: &Page, out: &mut Output<Order>) -> Result<()> {
        if page.callback() == "orders" {
            for order in page.css("li.order::text")?.get_all() {
                out.item(Order { order: order.clone() });
            }
            return Ok(());
        }
        let form = Form::of(page, "#login")?.set("user", "ann")?.set("password", "secret")?;
        out.request(form.request()?.callback("orders"));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Orders)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
