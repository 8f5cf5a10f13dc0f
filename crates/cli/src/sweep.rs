//! Sweeps: each page of a site is checked as an article, to find its sources.

mod args;

use std::sync::Arc;

use huntsman::sweep::{SiteSweep, SweepFiles};
use huntsman::{CrawlerBuilder, Spider};

use crate::exit::Outcome;
use crate::output::{OutputDir, SWEEP};
use crate::render::warn;
use crate::spider::PageRecord;

pub(crate) use args::SweepArgs;

/// How a crawl checks its pages.
#[derive(Debug)]
pub(crate) struct Sweeping {
    pub(crate) sweep: SiteSweep,
    /// Minimum number of words of an article.
    pub(crate) min_words: usize,
}

impl Sweeping {
    /// Makes a crawl check its pages and write the results into a directory; a job stores how far it came.
    ///
    /// # Errors
    /// The results of an earlier run in the directory cannot be continued.
    pub(crate) fn install<S>(
        self,
        builder: CrawlerBuilder<S>,
        directory: &OutputDir,
        is_in_job: bool,
    ) -> Outcome<CrawlerBuilder<S>>
    where
        S: Spider<Item = PageRecord>,
    {
        let article_of = |record: &PageRecord| record.article.as_ref().map(Arc::clone);
        Ok(self.sweep.install(builder, &files(directory), is_in_job, article_of, warn)?)
    }
}

/// The files of a sweep in an output directory.
pub(crate) fn files(directory: &OutputDir) -> SweepFiles {
    SweepFiles { results: directory.file(SWEEP), pairs: directory.pairs(), articles: directory.articles() }
}
