//! Items that are read from pages by the selectors of their fields.
//!
//! Starts its own site, so it runs without a network: `cargo run --example derive_item`.

use huntsman::prelude::*;
use huntsman_testkit::Site;

/// A book of a shop. A selector or expression that is not valid would not compile.
#[derive(Item, Serialize, Debug)]
struct Book {
    // An element gives the text inside it, with white space collapsed.
    #[item(css = "h1")]
    title: String,
    // Of the regular expression the first group.
    #[item(css = ".stock", re = r"\((\d+) available\)")]
    stock: u32,
    #[item(css = ".price", with = pounds)]
    price: f64,
    #[item(css = ".crumbs li", join = " > ", default)]
    path: String,
    // Absolute URLs.
    #[item(css = "img")]
    pictures: Vec<Url>,
    // `None` if the page does not say it.
    #[item(xpath = "//dt[. = 'Pages']/following-sibling::dd[1]")]
    pages: Option<u32>,
    #[item(css = "div.review")]
    reviews: Vec<Review>,
    #[item(url)]
    page: Url,
}

/// An item inside of an item: its selectors look inside the element of the review.
#[derive(Item, Serialize, Debug)]
struct Review {
    #[item(css = "::attr(data-stars)")]
    stars: u8,
    #[item(css = "p")]
    text: String,
}

/// What `with` calls: a function from a text to a value, an `Option` or a `Result`.
fn pounds(text: &str) -> Result<f64, std::num::ParseFloatError> {
    text.trim_start_matches('£').parse()
}

const LIST: &str = "<a class=book href=/book/1>One</a><a class=book href=/book/2>Two</a>";
const FIRST: &str =
    "<ol class=crumbs><li>Home<li>Travel</ol><h1>The <i>Long</i> Way</h1><p class=price>£12.50</p>
    <p class=stock> In stock (7 available)</p><img src=/1.png><dl><dt>Pages<dd>321</dl>
    <div class=review data-stars=5><p>Good.</p></div><div class=review data-stars=2><p>Too long.</p></div>";
const SECOND: &str =
    "<h1>The Short Way</h1><p class=price>ask us</p><p class=stock>In stock (1 available)</p>";

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder().page("/", LIST).page("/book/1", FIRST).page("/book/2", SECOND).start().await;
    let file = std::env::temp_dir().join(format!("books-{}.jsonl", std::process::id()));

    let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<Book>| {
        if page.url().path() == "/" {
            page.follow_all("a.book")?.into_iter().for_each(|request| out.request(request));
        } else {
            // A book that cannot be read is counted, and the report names page, field and value.
            out.try_item(page.item());
        }
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .pipeline(JsonLines::create(&file)?)
        .run()
        .await?;

    println!("{report}");
    let book = std::fs::read_to_string(&file)?;
    print!("{book}");
    assert!(book.contains(r#""title":"The Long Way","stock":7,"price":12.5,"path":"Home > Travel""#));
    assert_eq!((report.stat("item_scraped_count"), report.stat("items/unread")), (1, 1));
    assert!(report.losses[0].first.contains("Book.price"));
    std::fs::remove_file(&file)?;
    Ok(())
}
