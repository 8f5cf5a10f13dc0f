//! Two callbacks, the second with an argument; `bench/lines` compares it with `scrapy/callbacks.py`.

use huntsman::prelude::*;

#[derive(Serialize)]
struct Book {
    title: String,
    price: f64,
    code: String,
    shelf: String,
    url: Url,
}

struct Books;

impl Spider for Books {
    type Item = Book;

    fn start(&self) -> Start {
        Start::urls(["http://127.0.0.1:8790/books/0"])
    }

    fn callbacks(&self) -> &[&str] {
        &["book"]
    }

    fn parse(&self, page: &Page, out: &mut Output<Book>) -> Result<()> {
        if page.callback() == "book" {
            let shelf = page.request().cb_kwargs().and_then(|given| given["shelf"].as_str());
            let price = page.css("p.price::text")?.re_first(r"[\d.]+")?.unwrap_or_default();
            out.item(Book {
                title: page.css("h1::text")?.get_or(""),
                price: price.parse()?,
                code: page.xpath("//th[.='Code']/following-sibling::td/text()")?.get_or(""),
                shelf: shelf.unwrap_or_default().to_owned(),
                url: page.url().clone(),
            });
            return Ok(());
        }
        for row in page.select("li")? {
            let shelf = row.css("i.shelf::text")?.get_or("");
            for link in row.select("a.book")? {
                let request = Request::get(link.href()?).callback("book");
                out.request(request.cb_kwarg("shelf", shelf.clone()));
            }
        }
        for next in page.follow_all("a.next")? {
            out.request(next);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    huntsman::crawl(Books)
        .delay(Duration::ZERO) // loopback
        .set("allow_addresses", vec!["127.0.0.1:8790"]) // loopback
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    Ok(())
}
