//! The quotes of https://quotes.toscrape.com/, a site that is there to be crawled.

use huntsman::prelude::*;

/// What is read from each quote.
#[derive(Debug, Item, Serialize)]
pub struct Quote {
    #[item(css = "span.text")]
    text: String,
    #[item(css = "small.author")]
    author: String,
    #[item(css = "a.tag")]
    tags: Vec<String>,
}

/// Reads the quotes of a page, and follows the link to the next one.
pub struct Quotes {
    start: String,
}

/// The spider for the arguments of the command line: `-a start=URL` begins elsewhere.
pub fn spider(arguments: &Arguments) -> Result<Quotes> {
    let start = arguments.parse_or("start", "https://quotes.toscrape.com/".to_owned())?;
    Ok(Quotes { start })
}

impl Spider for Quotes {
    type Item = Quote;

    fn start(&self) -> Start {
        Start::urls([self.start.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<Quote>) -> Result<()> {
        out.items(page.items("div.quote")?);
        out.requests(page.follow_all("li.next a")?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use huntsman::middleware::Fixture;

    use super::*;

    /// `cargo run -- check` compares all that this page gives with what is expected of the fixture.
    #[test]
    fn the_saved_page_gives_its_quotes_and_the_next_page() {
        let html = include_str!("../../fixtures/quotes/first.body.html");
        let page = Fixture::html("https://quotes.toscrape.com/", html).unwrap();
        let spider = spider(&Arguments::default()).unwrap();
        let given = page.parse(&spider).ok().unwrap();
        assert_eq!((given.items.len(), given.requests[0].url.path()), (2, "/page/2/"));
        let quote = &given.items[0];
        assert_eq!(quote.text, "Measure twice, cut once.");
        assert_eq!(quote.author, "Ada Miller");
        assert_eq!(quote.tags, ["work", "tools"]);
    }
}
