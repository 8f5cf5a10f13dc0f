//! Item pipelines: one that cleans and drops items, then one that writes a CSV file.
//!
//! Starts its own site: `cargo run --example pipeline`.

use huntsman::prelude::*;
use huntsman_testkit::sites;

#[derive(Serialize)]
struct Author {
    name: String,
    page: String,
}

/// Drops authors that were seen already. A pipeline is owned by one task, so plain fields are enough.
#[derive(Default)]
struct Once {
    seen: std::collections::HashSet<String>,
}

impl Pipeline<Author> for Once {
    async fn process_item(&mut self, item: Author, _: &Context) -> Result<OnItem<Author>> {
        if self.seen.insert(item.name.clone()) {
            Ok(OnItem::Keep(item))
        } else {
            Ok(OnItem::Drop("seen".into()))
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = sites::quotes().start().await;
    let file = std::env::temp_dir().join(format!("authors-{}.csv", std::process::id()));

    let spider = spider_fn([site.url("/").to_string()], |page: &Page, out: &mut Output<Author>| {
        for name in page.css("small.author::text")?.get_all() {
            out.item(Author { name: name.clone(), page: page.url().to_string() });
        }
        out.follow_links(page);
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .profile(Profile::Test)
        .set("scope", "host")
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        .pipeline(Once::default())
        .pipeline(Csv::create(&file)?)
        .run()
        .await?;

    println!("{report}");
    let csv = std::fs::read_to_string(&file)?;
    print!("{}", csv.lines().take(4).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(csv.lines().count() as i64, 1 + report.stat("item_scraped_count"));
    assert!(report.stat("item_dropped_reasons_count/seen") > 0);
    std::fs::remove_file(&file)?;
    Ok(())
}
