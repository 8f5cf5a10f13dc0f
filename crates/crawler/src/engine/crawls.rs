//! Several crawls in one process, at once or one after another.

use std::fmt;

use futures_util::future::join_all;

use super::builder::CrawlerBuilder;
use crate::error::Result;
use crate::fetch::BoxFuture;
use crate::pace::Pace;
use crate::report::CrawlReport;
use crate::spider::Spider;

/// Crawls that run together, each with its own spider, settings, stats and cookies. They share one [`Pace`], so a
/// host that several of them visit gets no more requests than from one polite crawler.
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, Crawls, Output, Page, spider_fn};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> huntsman_crawler::Result<()> {
/// # let web = ScriptedDownloader::pages([("http://a.test/", "x"), ("http://b.test/", "y")]);
/// # let crawl = |url: &str| {
/// #     let spider = spider_fn([url.to_owned()], |_: &Page, _: &mut Output<()>| Ok(()));
/// #     CrawlerBuilder::new(spider).downloader(web.clone())
/// # };
/// let reports = Crawls::new().crawl(crawl("http://a.test/")).crawl(crawl("http://b.test/")).run().await;
/// for report in reports {
///     println!("{}", report?);
/// }
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Crawls {
    crawls: Vec<BoxFuture<'static, Result<CrawlReport>>>,
    pace: Pace,
}

impl Crawls {
    /// An empty set of crawls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a crawl. It is built when it is about to run; an error in building it becomes its result.
    pub fn crawl<S: Spider>(mut self, crawl: CrawlerBuilder<S>) -> Self {
        let crawl = crawl.pace(self.pace.clone());
        self.crawls.push(Box::pin(crawl.run()));
        self
    }

    /// Runs all crawls at once. The results are in the order in which the crawls were added; a crawl that fails does
    /// not stop the others.
    pub async fn run(self) -> Vec<Result<CrawlReport>> {
        join_all(self.crawls).await
    }

    /// Runs the crawls one after another, in the order in which they were added. A crawl that fails does not stop the
    /// next.
    pub async fn run_in_turn(self) -> Vec<Result<CrawlReport>> {
        let mut results = Vec::with_capacity(self.crawls.len());
        for crawl in self.crawls {
            results.push(crawl.await);
        }
        results
    }
}

impl fmt::Debug for Crawls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crawls").field("crawls", &self.crawls.len()).finish_non_exhaustive()
    }
}
