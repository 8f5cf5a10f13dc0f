//! The records that a crawl writes into its directory.

use huntsman_crawler::{Backend, CrawlerBuilder, Job, Result, Spider};
use huntsman_middleware::sinks::{DropLog, JsonLines};
use serde::Serialize;

use crate::{DROPS, OutputDir, PAGES};

impl OutputDir {
    /// Makes a crawl write its drops into `drops.jsonl`. Unless the queue is in memory, the crawl gets the job of this directory, and the
    /// file continues at the position of the job's last commit. Its items go where its pipelines put them. The log of drops has to be
    /// finished after the crawl, as with [`OutputDir::attach`].
    ///
    /// # Errors
    /// The job cannot be opened, or the file cannot be written.
    pub fn attach_job<S: Spider>(&self, builder: CrawlerBuilder<S>) -> Result<(CrawlerBuilder<S>, DropLog)> {
        let drops = self.file(DROPS);
        if self.store() == Backend::Memory {
            let drops = DropLog::create(drops)?;
            return Ok((builder.observer(drops.clone()), drops));
        }
        let job = Job::open(self.job(), self.store())?;
        let drops = DropLog::of_job(drops)?;
        Ok((builder.job(job).observer(drops.clone()).persist(drops.clone()), drops))
    }

    /// Makes a crawl write its items into `pages.jsonl` and its drops into `drops.jsonl`. Unless the queue is in memory, the crawl gets the
    /// job of this directory, and the files continue at the positions of the job's last commit. The log of drops has to be finished after
    /// the crawl ([`DropLog::finish`]): a missing record of a drop is as bad as a missing page.
    ///
    /// # Errors
    /// The job cannot be opened, or a file cannot be written.
    pub fn attach<S>(&self, builder: CrawlerBuilder<S>) -> Result<(CrawlerBuilder<S>, DropLog)>
    where
        S: Spider,
        S::Item: Serialize,
    {
        let (builder, drops) = self.attach_job(builder)?;
        let pages = self.file(PAGES);
        if self.store() == Backend::Memory {
            let mut pages = JsonLines::create(pages)?;
            // A crawl that several processes share has its queue elsewhere.
            let settled = pages.settled();
            return Ok((builder.observer(settled).pipeline(pages), drops));
        }
        let (pages, position) = JsonLines::of_job(pages)?;
        Ok((builder.pipeline(pages).persist(position), drops))
    }
}
