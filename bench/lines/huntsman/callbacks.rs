//! Two callbacks, the second with an argument; `bench/lines` compares it with `scrapy/callbacks.py`.

use huntsman::prelude::*;

#[derive(Item, Serialize)]
struct Book {
    #[item(css = "h1")]
    title: String,
    #[item(css = "p.price", re = r"[\d.]+")]
    price: f64,
    #[item(xpath = "//th[.='Code']/following-sibling::td")]
    code: String,
    #[item(skip)]
    shelf: String,
    #[item(url)]
    url: Url,
}

#[derive(Serialize, Deserialize)]
enum To {
    #[serde(rename = "parse")]
    Shelves,
    Book {
        shelf: String,
    },
}

fn parse(page: &Page, out: &mut Output<Book>) -> Result<()> {
    match page.route()? {
        To::Shelves => {
            for row in page.select("li")? {
                let shelf = row.css("i.shelf::text")?.get_or("");
                for link in row.select("a.book")? {
                    out.go(link.href()?, To::Book { shelf: shelf.clone() })?;
                }
            }
            out.go_all(page, "a.next", To::Shelves)?;
        }
        To::Book { shelf } => out.item(Book { shelf, ..page.item()? }),
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let crawl = huntsman::crawl(spider_fn(["http://127.0.0.1:8790/books/0"], parse));
    let crawl = crawl.delay(Duration::ZERO).set("allow_addresses", vec!["127.0.0.1:8790"]); // loopback
    crawl.pipeline(JsonLines::stdout()).run().await?;
    Ok(())
}
