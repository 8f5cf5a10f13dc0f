//! Callbacks as variants of an enum: what a page is for, and what its callback has to know, in one value that the compiler checks and
//! a job keeps.
//!
//! Starts its own site: `cargo run --example typed_callbacks`.

use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

/// What a page is for. The fields are what is known when its request is made.
#[derive(Serialize, Deserialize)]
enum To {
    List { page: u32 },
    Author { quoted_on: u32 },
}

#[derive(Serialize)]
struct Author {
    name: String,
    quoted_on: u32,
}

struct Authors {
    start: Url,
}

impl Spider for Authors {
    type Item = Author;

    fn start(&self) -> Start {
        Start::urls([self.start.as_str().to_owned()]).to(To::List { page: 1 })
    }

    fn parse(&self, page: &Page, out: &mut Output<Author>) -> Result<()> {
        // A variant that is left out here, or an argument that is forgotten below, does not compile.
        match page.route()? {
            To::List { page: number } => {
                out.go_all(page, "a.author", To::Author { quoted_on: number })?;
                out.go_all(page, "a.next", To::List { page: number + 1 })?;
            }
            To::Author { quoted_on } => {
                out.item(Author { name: page.css("h1::text")?.get_or("-"), quoted_on });
            }
        }
        Ok(())
    }

    fn failed(&self, request: &Request, error: &Error, _: &mut Output<Author>) -> Result<()> {
        if let To::Author { quoted_on } = request.route()? {
            println!("an author who is quoted on page {quoted_on} is missing: {error}");
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .page("/1", "<a class=author href=/author/ada>Ada</a> <a class=next href=/2>next</a>")
        .page("/2", "<a class=author href=/author/bob>Bob</a> <a class=author href=/author/cid>Cid</a>")
        .page("/author/ada", "<h1>Ada</h1>")
        .page("/author/bob", "<h1>Bob</h1>")
        .answer("/author/cid", Answer::status(404))
        .start()
        .await;

    let report = huntsman::crawl(Authors { start: site.url("/1") })
        .delay(Duration::from_millis(5))
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .pipeline(JsonLines::stdout())
        .run()
        .await?;
    println!("{report}");
    assert_eq!((report.pages, report.stat("item_scraped_count")), (4, 2));
    Ok(())
}
