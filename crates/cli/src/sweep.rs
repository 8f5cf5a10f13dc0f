//! Sweeps: each page of a site is checked as an article, to find its sources.

mod args;
mod findings;
mod report;

use std::sync::Arc;
use std::time::Instant;

use huntsman::sweep::{CandidateSource, CheckPlan, Checked, Subject, Sweep, Workspace};
use huntsman::{CrawlerBuilder, Spider};

use crate::exit::Outcome;
use crate::output::OutputDir;
use crate::render::{escape, warn};
use crate::spider::PageRecord;

pub(crate) use args::SweepArgs;
pub(crate) use findings::whole as whole_articles;
pub(crate) use report::{Totals, write_report};

/// How a crawl checks its pages.
#[derive(Debug)]
pub(crate) struct Sweeping {
    pub(crate) workspace: Workspace,
    pub(crate) sources: Vec<Arc<dyn CandidateSource>>,
    pub(crate) plan: CheckPlan,
    /// Number of articles that are checked at once.
    pub(crate) at_once: usize,
    /// Minimum number of words of an article.
    pub(crate) min_words: usize,
    /// When the sweep has to end.
    pub(crate) until: Option<Instant>,
}

impl Sweeping {
    /// Makes a crawl check its pages and write the results into a directory. If the crawl has a job, the job stores
    /// the position in the results file and the articles that wait to be checked.
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
        let findings = findings::Findings::open(directory)?;
        let done = findings.clone();
        let subject_of = move |record: &PageRecord| {
            let article = record.article.as_ref()?;
            (!done.is_done(article.url.as_deref()?)).then(|| Arc::clone(article))
        };
        let taken = findings.clone();
        let take = move |subject: &Subject, checked: huntsman::Result<Checked>| match checked {
            Ok(checked) => taken.write(subject, checked),
            Err(error) => {
                let url = subject.url.as_deref().unwrap_or_default();
                warn(&format!("{} could not be checked: {error}", escape(url)));
                Ok(())
            }
        };
        let sweep = Sweep::of_items(self.workspace, self.sources, self.plan, subject_of, take);
        let sweep = sweep.at_once(self.at_once);
        let sweep = match self.until {
            Some(until) => sweep.until(until),
            None => sweep,
        };
        if !is_in_job {
            return Ok(builder.pipeline(sweep.pending(directory.articles())?));
        }
        let (sweep, articles) = sweep.pending_in_job(directory.articles())?;
        Ok(builder.pipeline(sweep).persist(findings).persist(articles))
    }
}
