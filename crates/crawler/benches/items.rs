//! What `#[derive(Item)]` costs beside the same values selected by hand. `cargo bench -p huntsman-crawler --bench items`.
//!
//! Both read the 40 products of a page of 21 KB whose tree is there, in turns; the regular expression of the hand-written code is compiled once, too. Its
//! numbers and addresses are converted as a careful author would.

// What the derive makes names the crate that most programs depend on.
extern crate huntsman_crawler as huntsman;

use std::fmt::Write;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Instant;

use huntsman_crawler::{Element, Error, Item, Page, Request, Response, Result};
use regex::Regex;
use url::Url;

#[derive(Item, Debug, PartialEq)]
struct Product {
    #[item(css = "h3")]
    name: String,
    #[item(css = "span.price", re = r"[0-9.]+")]
    price: f64,
    #[item(css = "p.stock::text", re = r"\((\d+)")]
    stock: u32,
    #[item(css = "a::attr(href)")]
    link: Url,
    #[item(css = "a.tag::text")]
    tags: Vec<String>,
    #[item(css = "em::text")]
    note: Option<String>,
}

fn by_hand(page: &Page) -> Result<Vec<Product>> {
    static PRICE: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9.]+").unwrap());
    static STOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\((\d+)").unwrap());
    let missing = |what: &str| Error::msg(format!("{what} is missing in {}", page.url()));
    let clean = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let product = |row: Element<'_>| {
        let price = row.text_of("span.price")?;
        let price = PRICE.find(&price).ok_or_else(|| missing("the price"))?.as_str().parse()?;
        let stock = row.css("p.stock::text")?.get().ok_or_else(|| missing("the stock"))?;
        let stock = STOCK.captures(&stock).ok_or_else(|| missing("the stock"))?[1].parse()?;
        let link = row.css("a::attr(href)")?.get().ok_or_else(|| missing("the link"))?;
        Ok(Product {
            name: clean(&row.text_of("h3")?),
            price,
            stock,
            link: page.join(&link).ok_or_else(|| missing("the link"))?,
            tags: row.css("a.tag::text")?.get_all().iter().map(|tag| clean(tag)).collect(),
            note: row.css("em::text")?.get().map(|note| clean(&note)),
        })
    };
    page.select("div.product")?.into_iter().map(product).collect()
}

fn page() -> Page {
    let mut html = "<html><body><main>".to_owned();
    for number in 0..40 {
        let note = if number % 3 == 0 { "<em>new</em>" } else { "" };
        write!(
            html,
            "<div class=product><h3>Product <b>{number}</b> of\n the shop</h3><div class=box><p class=text>A sentence or two about this product, with a \
             <i>word</i> that matters and others that do not, as on every page of this kind, to fill it up to its size.</p><span class='price \
             big'>£{number}.50 a piece</span></div><p class=stock>\n   In stock ({} available)</p><a href=/p/{number}>more</a><ul class=tags><li><a class=tag \
             href=/t/a>red</a><li><a class=tag href=/t/b>blue</a></ul>{note}</div>",
            number * 7
        )
        .unwrap();
    }
    let url = Url::parse("http://shop.example/list").unwrap();
    Page::new(Request::get(url.clone()), Response::html(url, html))
}

fn main() {
    let page = page();
    let (derived, hand) = (page.items::<Product>("div.product").unwrap(), by_hand(&page).unwrap());
    assert_eq!(derived, hand);
    println!("{} products of a page of {} bytes", derived.len(), page.body_text().len());
    let (mut best_derived, mut best_hand) = (f64::INFINITY, f64::INFINITY);
    // In turns, so that both meet the same machine.
    for _ in 0..60 {
        best_hand = best_hand.min(seconds(|| drop(black_box(by_hand(black_box(&page))))));
        best_derived =
            best_derived.min(seconds(|| drop(black_box(page.items::<Product>(black_box("div.product"))))));
    }
    println!(
        "by hand {:.1} us, derived {:.1} us: {:+.1} %",
        best_hand * 1e6,
        best_derived * 1e6,
        (best_derived / best_hand - 1.0) * 100.0
    );
}

fn seconds(mut work: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 20;
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| work());
    start.elapsed().as_secs_f64() / f64::from(ROUNDS)
}
