//! Sweeps: the pages of a site as articles, each with its sources.

mod args;
mod findings;
mod report;

use std::sync::Arc;
use std::time::Instant;

use huntsman::middleware::copyvio::{CandidateSource, CheckPlan, Sweep, Workspace};

use crate::exit::Outcome;
use crate::output::OutputDir;
use crate::render::{escape, warn};
use crate::spider::PageRecord;

pub(crate) use args::SweepArgs;
pub(crate) use report::{Totals, write_report};

/// How the pages of a crawl are checked.
#[derive(Debug)]
pub(crate) struct Sweeping {
    pub(crate) workspace: Workspace,
    pub(crate) sources: Vec<Arc<dyn CandidateSource>>,
    pub(crate) plan: CheckPlan,
    /// Articles that are checked at once.
    pub(crate) at_once: usize,
    /// Words that a page must have to be an article.
    pub(crate) min_words: usize,
    /// When all has to end.
    pub(crate) until: Option<Instant>,
}

impl Sweeping {
    /// The pipeline that checks pages and writes what comes of them into a directory.
    ///
    /// # Errors
    /// What an earlier run wrote there cannot be gone on with.
    pub(crate) fn pipeline(self, directory: &OutputDir) -> Outcome<Sweep<PageRecord>> {
        let mut findings = findings::Findings::open(directory)?;
        let done = findings.done();
        let subject_of = move |record: &PageRecord| {
            let article = record.article.as_ref()?;
            (!done.contains(article.url.as_deref()?)).then(|| Arc::clone(article))
        };
        let sweep =
            Sweep::of_items(self.workspace, self.sources, self.plan, subject_of, move |subject, checked| {
                match checked {
                    Ok(checked) => findings.write(subject, checked),
                    Err(error) => {
                        let url = subject.url.as_deref().unwrap_or_default();
                        warn(&format!("{} could not be checked: {error}", escape(url)));
                        Ok(())
                    }
                }
            });
        let sweep = sweep.at_once(self.at_once).pending(directory.articles())?;
        Ok(match self.until {
            Some(until) => sweep.until(until),
            None => sweep,
        })
    }
}
