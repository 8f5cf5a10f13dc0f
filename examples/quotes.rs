//! A spider that reads quotes from a paginated site and writes them to a file.
//!
//! Starts its own site, so it runs without a network: `cargo run --example quotes`.

use huntsman::prelude::*;
use huntsman_testkit::sites;

#[derive(Serialize)]
struct Quote {
    text: String,
    author: String,
    tags: Vec<String>,
}

struct Quotes {
    start: Url,
}

impl Spider for Quotes {
    type Item = Quote;

    fn start(&self) -> Start {
        Start::urls([self.start.as_str().to_owned()])
    }

    fn parse(&self, page: &Page, out: &mut Output<Quote>) -> Result<()> {
        for quote in page.select("div.quote")? {
            out.item(Quote {
                text: quote.text_of("span.text")?,
                author: quote.text_of("small.author")?,
                tags: quote.css("a.tag::text")?.get_all().to_vec(),
            });
        }
        // Follows the next page, if there is one; its address is resolved against the page's URL.
        for next in page.select("li.next a")? {
            out.follow(next.href()?);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = sites::quotes().start().await;
    let file = std::env::temp_dir().join(format!("quotes-{}.jsonl", std::process::id()));

    let report = huntsman::crawl(Quotes { start: site.url("/") })
        // A local site needs no pause of a second between requests, and its address must be allowed explicitly.
        .delay(Duration::from_millis(5))
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .pipeline(JsonLines::create(&file)?)
        .run()
        .await?;

    println!("{report}");
    let lines = std::fs::read_to_string(&file)?;
    println!("{} quotes, the first one: {}", lines.lines().count(), lines.lines().next().unwrap_or(""));
    assert_eq!(report.stat("item_scraped_count") as usize, lines.lines().count());
    assert!(lines.lines().count() > 10, "the site has more than one page of quotes");
    std::fs::remove_file(&file)?;
    Ok(())
}
