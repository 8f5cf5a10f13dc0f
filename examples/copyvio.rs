//! Checks the articles of a site against the pages that they link to.
//!
//! Starts its own sites: `cargo run --example copyvio`.

use std::sync::Arc;

use huntsman::prelude::*;
use huntsman::sweep::{CheckPlan, Links, Reading, Subject, Sweep, Workspace, external_links};
use huntsman_testkit::Site;

/// The words of a story.
fn story(n: usize) -> String {
    (0..200).map(|at| format!("word{} ", (n * 7_919 + at * 104_729) % 99_991)).collect()
}

#[tokio::main]
async fn main() -> Result<()> {
    // The third page is copied from another author, with every seventh word replaced.
    let words = story(2);
    let changed = words.split(' ').enumerate().map(|(at, word)| if at % 7 == 6 { "other" } else { word });
    let theirs = changed.collect::<Vec<_>>().join(" ");
    let sources = Site::builder()
        .page("/1", format!("<p>{}", story(1_001)))
        .page("/2", format!("<p>{theirs}"))
        .start()
        .await;
    let mut site = Site::builder();
    for n in 0..3 {
        let next = format!("<nav><a href='/{}'>next</a></nav>", (n + 1) % 3);
        let link = format!("<a href='{}'>see also</a>", sources.url(&format!("/{n}")));
        site = site.page(
            &format!("/{n}"),
            format!("<title>{n}</title>{next}<main><p>{}</p>{link}</main>", story(n)),
        );
    }
    let site = site.start().await;

    let spider = spider_fn([site.url("/0")], |page: &Page, out: &mut Output<Arc<Subject>>| {
        out.follow_links(page);
        if let Ok(reading) = Reading::of_page(page, out.context(), None) {
            out.item(Arc::new(Subject::of_page(page.url().as_str(), reading, external_links(page))));
        }
        Ok(())
    });
    let allowed = vec![format!("127.0.0.1:{}", site.port()), format!("127.0.0.1:{}", sources.port())];
    // Sources are read by another crawl with a pace of its own.
    let workspace = Workspace::start(None, |crawler| crawler.set("allow_addresses", allowed.clone()))?;
    let sweep = Sweep::new(workspace, vec![Arc::new(Links)], CheckPlan::default(), |article, checked| {
        let checked = checked?;
        for source in &checked.result.sources {
            let found = checked.found.get(&source.url);
            let verdict =
                found.map_or(format!("{:?}", source.status), |found| found.evidence.verdict.to_string());
            let url = article.url.as_deref().unwrap_or_default();
            println!("{url} and {}: C {:.2}, verdict {verdict}", source.url, source.confidence.value());
        }
        Ok(())
    });
    let report = huntsman::crawl(spider)
        .set("allow_addresses", allowed)
        .set("scope", "origin")
        .delay(Duration::ZERO)
        .pipeline(sweep)
        .run()
        .await?;
    println!("{report}");
    Ok(())
}
