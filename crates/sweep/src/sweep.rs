//! Checks articles while they are crawled.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use huntsman_crawler::{Context, Error, OnItem, Pipeline, Result, Stats};
use huntsman_detect::copyvio::SourceStatus;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use xxhash_rust::xxh3::xxh3_64;

use super::candidates::{CandidateSource, Subject};
use super::checked::Checked;
use super::pending::{Pending, PendingArticles};
use super::plan::CheckPlan;
use super::workspace::Workspace;

/// Checks the articles among the items of a crawl, and passes each result to a function.
///
/// As a pipeline, it lets a page be acknowledged only after its article was checked and the result was taken, so a
/// crawl that is killed and resumed repeats the checks whose results were not taken. Meanwhile other pages wait in the
/// queue of items, so a source that hangs delays them; with a folder for waiting articles ([`pending`](Self::pending))
/// only the end of the crawl waits for checks. The workspace is a separate crawl, so each keeps its own pace, and no
/// registrable domain of the sources gets two requests at once, whichever articles name it.
///
/// Stats: `copyvio/articles`, `copyvio/failed`, `copyvio/sources` and `copyvio/sources/{status}`, `copyvio/violations`,
/// `copyvio/queries`, `copyvio/errors` (of queries), `copyvio/cached`.
///
/// ```no_run
/// # async fn run() -> huntsman_crawler::Result<()> {
/// use std::sync::Arc;
/// use huntsman_crawler::{Output, Page, spider_fn};
/// use huntsman_middleware::Defaults;
/// use huntsman_sweep::{CheckPlan, Links, Reading, Subject, Sweep, Workspace, external_links};
///
/// let spider = spider_fn(["https://example.org/"], |page: &Page, out: &mut Output<Arc<Subject>>| {
///     out.follow_links(page);
///     if let Ok(reading) = Reading::of_page(page, out.context(), None) {
///         out.item(Arc::new(Subject::of_page(page.url().as_str(), reading, external_links(page))));
///     }
///     Ok(())
/// });
/// let workspace = Workspace::start(None, |crawler| crawler)?;
/// let sweep = Sweep::new(workspace, vec![Arc::new(Links)], CheckPlan::default(), |subject, checked| {
///     println!("{:?}: {:?}", subject.url, checked?.result.best());
///     Ok(())
/// });
/// huntsman_crawler::CrawlerBuilder::new(spider).plugin(Defaults).pipeline(sweep).build()?.run().await?;
/// # Ok(()) }
/// ```
pub struct Sweep<I> {
    workspace: Workspace,
    sources: Arc<[Arc<dyn CandidateSource>]>,
    plan: CheckPlan,
    subject_of: Box<SubjectOf<I>>,
    take: Box<Take>,
    permits: Arc<Semaphore>,
    at_once: usize,
    until: Option<Instant>,
    pending: Option<Pending>,
    /// Hashes of the URLs of articles in this run: an article from the folder may come again with its page.
    started: HashSet<u64>,
    checks: JoinSet<(Arc<Subject>, Result<Checked>)>,
    /// The error that prevented an article from being stored: its page must not be acknowledged.
    failed: Option<Error>,
    stats: Option<Stats>,
}

type SubjectOf<I> = dyn Fn(&I) -> Option<Arc<Subject>> + Send;
type Take = dyn FnMut(&Subject, Result<Checked>) -> Result<()> + Send;

/// Maximum number of waiting articles for each one that is checked.
const WAITING: usize = 8;
/// Number of articles that are checked at once. With more, the waiting of one would use up the time of the others.
const AT_ONCE: usize = 16;

impl Sweep<Arc<Subject>> {
    /// Checks items that are articles. `take` gets each result, or the error of a check that failed; if `take` returns
    /// an error, the crawl ends.
    pub fn new(
        workspace: Workspace,
        sources: Vec<Arc<dyn CandidateSource>>,
        plan: CheckPlan,
        take: impl FnMut(&Subject, Result<Checked>) -> Result<()> + Send + 'static,
    ) -> Self {
        Self::of_items(workspace, sources, plan, |item: &Arc<Subject>| Some(Arc::clone(item)), take)
    }
}

impl<I> Sweep<I> {
    /// Checks the articles that items have, where they have one.
    pub fn of_items(
        workspace: Workspace,
        sources: Vec<Arc<dyn CandidateSource>>,
        plan: CheckPlan,
        subject_of: impl Fn(&I) -> Option<Arc<Subject>> + Send + 'static,
        take: impl FnMut(&Subject, Result<Checked>) -> Result<()> + Send + 'static,
    ) -> Self {
        Self {
            workspace,
            sources: sources.into(),
            plan,
            subject_of: Box::new(subject_of),
            take: Box::new(take),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            at_once: AT_ONCE,
            until: None,
            pending: None,
            started: HashSet::new(),
            checks: JoinSet::new(),
            failed: None,
            stats: None,
        }
    }

    /// Sets the maximum number of concurrent checks; default 16.
    #[must_use]
    pub fn at_once(mut self, articles: usize) -> Self {
        self.at_once = articles.clamp(1, 10_000);
        self.permits = Arc::new(Semaphore::new(self.at_once));
        self
    }

    /// Sets the time at which all checks end; the remaining sources are late.
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.until = Some(end);
        self
    }

    /// Stores articles in a folder until they are checked, so that the crawl continues meanwhile, and checks those that
    /// an earlier run left there. At most eight times as many wait as are checked at once.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn pending(mut self, folder: impl Into<PathBuf>) -> Result<Self> {
        self.pending = Some(Pending::open(folder.into(), false)?);
        Ok(self)
    }

    /// As [`pending`](Self::pending), for a crawl with a job: the job records which articles wait, so that a resumed
    /// run checks only those of completed pages. Register the second part with the builder:
    /// `builder.persist(articles)`; and with it the position of the file that `take` writes to, so that results and
    /// articles are saved at the same moment.
    ///
    /// # Errors
    /// As [`pending`](Self::pending).
    pub fn pending_in_job(mut self, folder: impl Into<PathBuf>) -> Result<(Self, PendingArticles)> {
        let pending = Pending::open(folder.into(), true)?;
        self.pending = Some(pending.clone());
        Ok((self, PendingArticles(pending)))
    }

    fn is_new(&self, subject: &Subject) -> bool {
        subject.url.as_ref().is_none_or(|url| !self.started.contains(&xxh3_64(url.as_bytes())))
    }

    fn start(&mut self, subject: Arc<Subject>) {
        if self.pending.is_some()
            && let Some(url) = &subject.url
        {
            self.started.insert(xxh3_64(url.as_bytes()));
        }
        let (workspace, mut plan, until) = (self.workspace.clone(), self.plan.clone(), self.until);
        let (sources, permits) = (Arc::clone(&self.sources), Arc::clone(&self.permits));
        self.checks.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire_owned().await;
            if let Some(until) = until {
                plan.max_time = plan.max_time.min(until.saturating_duration_since(Instant::now()));
            }
            let checked = workspace.check(Arc::clone(&subject), &sources, plan).await;
            (subject, checked)
        });
    }

    /// Takes results until at most `left` checks are running.
    async fn take_until(&mut self, left: usize) -> Result<()> {
        loop {
            let joined = match self.checks.len() > left {
                true => self.checks.join_next().await,
                false => self.checks.try_join_next(),
            };
            let Some(joined) = joined else { return Ok(()) };
            let (subject, checked) = joined.map_err(Error::from)?;
            self.count(&checked);
            (self.take)(&subject, checked)?;
            if let Some(pending) = &self.pending {
                pending.done(&subject)?;
            }
        }
    }

    fn count(&self, checked: &Result<Checked>) {
        let Some(stats) = &self.stats else { return };
        stats.inc("copyvio/articles");
        let Ok(checked) = checked else {
            stats.inc("copyvio/failed");
            return;
        };
        for source in &checked.result.sources {
            stats.inc("copyvio/sources");
            let status = match source.status {
                SourceStatus::Compared => "compared",
                SourceStatus::Excluded(_) => "excluded",
                SourceStatus::Skipped => "skipped",
                SourceStatus::Failed(_) => "failed",
                SourceStatus::Late => "late",
            };
            stats.inc(&format!("copyvio/sources/{status}"));
        }
        stats.add("copyvio/violations", i64::from(checked.result.violation));
        stats.add("copyvio/queries", i64::try_from(checked.queries).unwrap_or(i64::MAX));
        stats.add("copyvio/errors", i64::try_from(checked.errors.len()).unwrap_or(i64::MAX));
        stats.add("copyvio/cached", i64::from(checked.cached.is_some()));
    }
}

impl<I: Send + 'static> Pipeline<I> for Sweep<I> {
    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.stats = Some(cx.stats().clone());
        if let Some(pending) = &self.pending {
            pending.all()?.into_iter().for_each(|subject| self.start(Arc::new(subject)));
        }
        Ok(())
    }

    async fn process_item(&mut self, item: I, _: &Context) -> Result<OnItem<I>> {
        if let Some(subject) = (self.subject_of)(&item) {
            match &self.pending {
                Some(pending) if self.is_new(&subject) => {
                    if let Err(error) = pending.keep(&subject) {
                        // An error here would lose only the item, and its page would be acknowledged without its
                        // article.
                        self.failed.get_or_insert(error);
                        return Ok(OnItem::Keep(item));
                    }
                }
                Some(_) => return Ok(OnItem::Keep(item)),
                None => {}
            }
            self.start(subject);
        }
        Ok(OnItem::Keep(item))
    }

    async fn flush(&mut self) -> Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let left = if self.pending.is_some() { WAITING * self.at_once } else { 0 };
        self.take_until(left).await
    }

    async fn close(&mut self) -> Result<()> {
        self.take_until(0).await
    }
}

impl<I> fmt::Debug for Sweep<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("plan", &self.plan)
            .field("checks", &self.checks.len())
            .finish_non_exhaustive()
    }
}
