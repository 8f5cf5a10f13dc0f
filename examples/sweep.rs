//! Sweeps a site: checks each of its pages against the pages that it links to, and writes the results and a report.
//!
//! Starts its own sites: `cargo run --example sweep`. A job makes the sweep continue after a stop.

use std::path::PathBuf;
use std::sync::Arc;

use huntsman::prelude::*;
use huntsman::sweep::{
    CheckPlan, Links, SiteSweep, Subject, SweepFiles, Workspace, article_of, write_report,
};
use huntsman::{Backend, Job};
use huntsman_testkit::Site;

/// The words of a story.
fn story(n: usize) -> String {
    (0..200).map(|at| format!("word{} ", (n * 7_919 + at * 104_729) % 99_991)).collect()
}

/// Crawls all pages of a site; those with 50 words are articles.
struct Articles {
    first: Url,
}

impl Spider for Articles {
    type Item = Arc<Subject>;

    fn start(&self) -> Start {
        Start::urls([self.first.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<Arc<Subject>>) -> Result<()> {
        out.follow_links(page);
        let article = article_of(page, out.context(), 50);
        article.into_iter().for_each(|article| out.item(article));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // The second article of five is taken from another site.
    let sources = Site::builder().page("/mill", format!("<p>{}", story(1))).start().await;
    let mut site = Site::builder();
    for n in 0..5 {
        let next = format!("<nav><a href='/{}'>next</a></nav>", (n + 1) % 5);
        let link = format!("<a href='{}'>see also</a>", sources.url("/mill"));
        site = site.page(&format!("/{n}"), format!("{next}<main><p>{}</p>{link}</main>", story(n)));
    }
    let site = site.start().await;
    let allowed = vec![format!("127.0.0.1:{}", site.port()), format!("127.0.0.1:{}", sources.port())];

    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| {
        std::env::temp_dir().join(format!("huntsman-sweep-{}", std::process::id())).display().to_string()
    }));
    let files = SweepFiles {
        results: folder.join("sweep.jsonl"),
        pairs: folder.join("pairs"),
        articles: folder.join("articles"),
    };
    huntsman::files::create_dir_all(&folder)?;
    let sweep = SiteSweep {
        workspace: Workspace::start(None, |crawler| crawler.set("allow_addresses", allowed.clone()))?,
        sources: vec![Arc::new(Links)],
        plan: CheckPlan { keep_texts: true, ..CheckPlan::default() },
        at_once: 4,
        until: None,
    };
    let crawl = huntsman::crawl(Articles { first: site.url("/0") })
        .set("allow_addresses", allowed)
        .set("scope", "origin")
        .delay(Duration::ZERO)
        .job(Job::open(folder.join("job"), Backend::Redb)?);
    let article = |article: &Arc<Subject>| Some(Arc::clone(article));
    let report = sweep.install(crawl, &files, true, article, |warning| eprintln!("{warning}"))?.run().await?;
    println!("{report}");

    let page = folder.join("sweep.html");
    let totals = write_report(&files, "a made-up site", &page)?;
    println!("{} articles with sources, {} suspected: {}", totals.articles, totals.suspected, page.display());
    assert_eq!((totals.articles, totals.suspected), (5, 1));
    Ok(())
}
