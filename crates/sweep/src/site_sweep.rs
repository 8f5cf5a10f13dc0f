//! A sweep whose results are written to files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use huntsman_crawler::{Context, CrawlerBuilder, Page, Result, Spider};
use huntsman_detect::words;

use super::candidates::{CandidateSource, Subject};
use super::checked::Checked;
use super::findings::Findings;
use super::plan::CheckPlan;
use super::reading::{Reading, external_links};
use super::sweep::Sweep;
use super::workspace::Workspace;

/// Where a [`SiteSweep`] keeps its files.
#[derive(Clone, Debug)]
pub struct SweepFiles {
    /// The file of results, with a line of JSON for each pair of an article and a source. It is created, or continued.
    pub results: PathBuf,
    /// The folder of pairs of texts side by side: those that the report shows, and those that it would have shown before more serious ones were
    /// found. It is created.
    pub pairs: PathBuf,
    /// The folder of articles that wait for their check. It is created.
    pub articles: PathBuf,
}

/// A sweep that writes its results to files and continues after a kill, as `huntsman sweep` does.
///
/// It is a [`Sweep`] with [`Findings`]. The plan must keep texts ([`CheckPlan::keep_texts`]), or the report cannot show
/// them. [`write_report`](crate::write_report) makes an HTML page of the results.
#[derive(Debug)]
pub struct SiteSweep {
    /// Reads the sources.
    pub workspace: Workspace,
    /// Finds the sources.
    pub sources: Vec<Arc<dyn CandidateSource>>,
    /// How each article is checked.
    pub plan: CheckPlan,
    /// Maximum number of articles that are checked at once.
    pub at_once: usize,
    /// The time at which all checks end; the remaining sources are late.
    pub until: Option<Instant>,
}

impl SiteSweep {
    /// Adds the sweep to a crawl. `article_of` gives the article of an item, if it has one; `warn` gets each error of a
    /// check or a query once.
    ///
    /// With `is_in_job`, the job of the crawl stores the position in the results file and the articles that wait. A
    /// resumed run then continues both; without a job, each run begins the file anew.
    ///
    /// # Errors
    /// A file or folder cannot be written.
    pub fn install<S: Spider>(
        self,
        builder: CrawlerBuilder<S>,
        files: &SweepFiles,
        is_in_job: bool,
        article_of: impl Fn(&S::Item) -> Option<Arc<Subject>> + Send + 'static,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<CrawlerBuilder<S>> {
        let warn = Arc::new(warn);
        let query_warn = Arc::clone(&warn);
        let findings = Findings::open(&files.results, &files.pairs, query_warn)?;
        let done = findings.clone();
        let subject_of = move |item: &S::Item| {
            let article = article_of(item)?;
            (!done.is_done(article.url.as_deref()?)).then_some(article)
        };
        let written = findings.clone();
        let take = move |subject: &Subject, checked: Result<Checked>| match checked {
            Ok(checked) => written.write(subject, checked),
            Err(error) => {
                let url = subject.url.as_deref().unwrap_or_default();
                warn(&format!("{url} could not be checked: {error}"));
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
            return Ok(builder.pipeline(sweep.pending(&files.articles)?));
        }
        let (sweep, articles) = sweep.pending_in_job(&files.articles)?;
        Ok(builder.pipeline(sweep).persist(findings).persist(articles))
    }
}

/// The article on a page of a crawl: its text, if it has at least `min_words` words, and its links to other sites.
/// `None` for error pages and for pages without a text, such as images. PDF files are not read.
pub fn article_of(page: &Page, cx: &Context, min_words: usize) -> Option<Arc<Subject>> {
    if !page.response().status.is_success() || !page.kind().is_textual() {
        return None;
    }
    let reading = Reading::of_page(page, cx, None).ok()?;
    let is_article = words::count(reading.text.text()) >= min_words;
    let url = page.request().requested_url();
    is_article.then(|| Arc::new(Subject::of_page(url, reading, external_links(page))))
}
