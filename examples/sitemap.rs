//! Crawls the pages that a site lists in its sitemaps, which robots.txt names, and follows no links.
//!
//! Starts its own site: `cargo run --example sitemap`.

use huntsman::Sitemaps;
use huntsman::prelude::*;
use huntsman_testkit::{Answer, Site};

/// The spider for the shop's pages. It needs no code for sitemaps.
struct Shop;

impl Spider for Shop {
    type Item = String;

    fn start(&self) -> Start {
        Start::none()
    }

    fn callbacks(&self) -> &[&str] {
        &["product", "article"]
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        println!("{:8} {}", page.callback(), page.title().unwrap_or("-"));
        out.item(page.callback().to_owned());
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let xml =
        |body: &str| Answer::status(200).header("Content-Type", "application/xml").body(body.to_owned());
    let products: String = (0..20)
        .map(|n| {
            let year = 2007 + n;
            format!("<url><loc>/product/{n}</loc><lastmod>{year}-06-01</lastmod></url>")
        })
        .collect();
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /checkout\nSitemap: /sitemaps.xml\n")
        .answer(
            "/sitemaps.xml",
            xml("<sitemapindex><sitemap><loc>/products.xml</loc></sitemap><sitemap><loc>/feed.xml</loc></sitemap>\
                 <sitemap><loc>/missing.xml</loc></sitemap></sitemapindex>"),
        )
        .answer("/products.xml", xml(&format!("<urlset>{products}</urlset>")))
        .answer(
            "/feed.xml",
            xml("<feed><entry><link href='/blog/1'/></entry><entry><link href='/blog/2'/></entry></feed>"),
        )
        .route("/*", |asked| Answer::html(format!("<title>Page {}</title>", asked.path())))
        .answer("/missing.xml", Answer::status(404))
        .start()
        .await;

    let spider = Sitemaps::new(Shop)
        .sitemap_urls([site.url("/robots.txt")])
        // The first rule that matches a page names its callback; pages without a match are skipped.
        .rule("/product/", "product")?
        .rule("/blog/", "article")?
        // Dates in sitemaps can be compared as text.
        .filter(|entry| entry.lastmod.as_deref().is_none_or(|date| date >= "2020"));
    let report = huntsman::crawl(spider)
        .delay(Duration::from_millis(5))
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .run()
        .await?;

    println!("{report}");
    // There are seven products since 2020 and two articles. The missing sitemap does not affect the others.
    assert_eq!(report.stat("item_scraped_count"), 9);
    assert_eq!((report.stat("sitemap/files"), report.stat("sitemap/failed")), (3, 1));
    Ok(())
}
