//! Carries out orders: a limited number at once, all with one workspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use huntsman_detect::copyvio::{CheckOptions, Degree, SourceStatus, Text};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::article::Article;
use super::order::{CompareOrder, SearchOrder, SourceOrder};
use super::reader::ArticleReader;
use super::refusal::Refusal;
use crate::candidates::{CandidateSource, GivenUrls, Subject};
use crate::checked::{Checked, Found};
use crate::comparison::{Compared, Comparison};
use crate::memory::{Memory, MemoryPermit};
use crate::plan::CheckPlan;
use crate::reading::Reading;
use crate::workspace::Workspace;

/// Time limit for a comparison with a page, as in the reference's web tool.
const COMPARE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of waiting orders per order that may run.
const QUEUE: usize = 4;
/// Memory for all concurrent comparisons together: two texts of the maximum size take nearly all of it, so other
/// comparisons wait.
const COMPARISONS: usize = 256 << 20;
/// Memory for all articles of concurrent checks together, and (below) the memory per byte of an article's text.
const ARTICLES: usize = 64 << 20;
const ARTICLE_BYTES: usize = 40;
/// Number of pairs of texts that the page of a search shows.
const PAIRS: usize = 3;
/// The name of a source that was given as a text.
pub const PASTED: &str = "pasted text";

/// Carries out orders to compare and check articles, a limited number at once. Cheap to clone; clones share the limits.
///
/// Orders beyond the limit wait, as long as a check may take ([`CheckPlan::max_time`]); if four times as many wait, an
/// order is refused with `busy`. All comparisons together take at most 256 MiB, and the articles of all checks together
/// at most 64 MiB; an order waits for its share. An order that runs continues to its end if its caller goes away.
#[derive(Clone, Debug)]
pub struct Checker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workspace: Workspace,
    reader: ArticleReader,
    plan: CheckPlan,
    /// The candidate sources that the operator configured.
    sources: Vec<Arc<dyn CandidateSource>>,
    /// One permit for each order that may run.
    slots: Arc<Semaphore>,
    max_running: usize,
    waiting: AtomicUsize,
    comparisons: Memory,
    articles: Memory,
}

/// The result of an order.
#[derive(Debug)]
pub struct OrderResult {
    /// The article as it was read.
    pub article: Article,
    /// The article compared with its sources.
    pub comparison: Comparison,
    /// Words per window of the confidence.
    pub degree: Degree,
    /// The time that the order took, including the reading of the article.
    pub time: Duration,
    /// The best sources again with their texts, if a search was asked for them and there are any.
    pub pairs: Option<Comparison>,
    /// Memory of the comparison, reserved until this value is dropped: keep it until the response was sent.
    pub memory: Option<MemoryPermit>,
}

impl Checker {
    /// A checker that runs at most `max_running` orders at once. Searches are done as `plan` says, with those of the
    /// candidate sources `sources` that an order wants: `given`, `links` and all others, by their names.
    pub fn new(
        workspace: Workspace,
        reader: ArticleReader,
        plan: CheckPlan,
        sources: Vec<Arc<dyn CandidateSource>>,
        max_running: usize,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(max_running));
        Self(Arc::new(Inner {
            workspace,
            reader,
            plan,
            sources,
            slots,
            max_running,
            waiting: AtomicUsize::new(0),
            comparisons: Memory::new(COMPARISONS),
            articles: Memory::new(ARTICLES),
        }))
    }

    /// The number of running orders, and of waiting ones.
    pub fn load(&self) -> (usize, usize) {
        (self.0.max_running - self.0.slots.available_permits(), self.0.waiting.load(Ordering::Relaxed))
    }

    /// The workspace that reads the sources, for its stats.
    pub fn workspace(&self) -> &Workspace {
        &self.0.workspace
    }

    /// Compares an article with one source.
    ///
    /// # Errors
    /// `bad_title`, `bad_oldid`, `bad_article` and `timeout` if the article cannot be read; `no_data` and `timeout` if the
    /// source has no text; `busy`.
    pub async fn compare(&self, order: CompareOrder) -> Result<OrderResult, Refusal> {
        let start = Instant::now();
        let slot = self.slot().await?;
        let CompareOrder { article, source, degree } = order;
        let mut article = Article::read(article, &self.0.reader).await?;
        // The user may compare a page with itself and with its mirrors.
        let subject = Subject { url: None, mirror_hints: Arc::default(), ..article.subject.clone() };
        let name = article.page.title.clone();
        let options = CheckOptions { degree, ..CheckOptions::compare() };
        let (comparison, memory) = match source {
            SourceOrder::Text(text) => {
                let text = Text::new(text);
                let memory = self.memory(&self.0.comparisons, Found::bytes(&subject.text, &text)).await?;
                let boilerplate = self.0.plan.boilerplate.clone();
                // If the client goes away, the comparison still runs to its end and holds its slot and its memory
                // until then.
                let compare = move || {
                    let _slot = slot;
                    let reading = if text.is_empty() {
                        Err("it has no text".to_owned())
                    } else {
                        Ok(Reading { text, ..Reading::default() })
                    };
                    let sources = vec![(PASTED.to_owned(), reading)];
                    (Comparison::of(name, &subject, degree, boilerplate.as_deref(), sources), Some(memory))
                };
                tokio::task::spawn_blocking(compare).await.map_err(Refusal::of_task)?
            }
            SourceOrder::Page(url) => {
                let time = COMPARE_TIME.min(self.0.plan.max_time);
                let plan = CheckPlan {
                    options,
                    max_time: time,
                    source_time: time,
                    keep_texts: true,
                    boilerplate: self.0.plan.boilerplate.clone(),
                    ..CheckPlan::default()
                };
                let given: Arc<dyn CandidateSource> = Arc::new(GivenUrls::new([url]));
                let checked = self.check(slot, Arc::new(subject), vec![given], plan).await?;
                (Comparison::of_check(name, &article.subject, checked), None)
            }
        };
        if let Some(compared) = comparison.sources.first()
            && compared.source.status != SourceStatus::Compared
        {
            let why = compared.reason();
            let is_late = compared.source.status == SourceStatus::Late || why.contains("timeout");
            let code = if is_late { "timeout" } else { "no_data" };
            return Err(Refusal::new(code, format!("{}: {why}", compared.name)));
        }
        article.subject.links.clear();
        Ok(OrderResult { article, comparison, degree, time: start.elapsed(), pairs: None, memory })
    }

    /// Finds the sources of an article, reads them and compares them with it. With `with_pairs`, the texts of the three
    /// best sources are read as well.
    ///
    /// # Errors
    /// `no_search_method` if no candidate source is left; `bad_title`, `bad_oldid`, `bad_article` and `timeout` if the
    /// article cannot be read; `search_error` if a query failed and nothing else was found; `busy`.
    pub async fn search(&self, order: SearchOrder, with_pairs: bool) -> Result<OrderResult, Refusal> {
        let start = Instant::now();
        let sources = self.sources(&order);
        if sources.is_empty() {
            return Err(Refusal::new(
                "no_search_method",
                "neither links nor a search engine are to be used, or this server has none, and no 'source' is named",
            ));
        }
        let slot = self.slot().await?;
        let article = Article::read(order.article, &self.0.reader).await?;
        let subject = Arc::new(article.subject.clone());
        let mut plan = self.0.plan.clone();
        if order.nocache {
            plan.cache = None;
        }
        if order.noskip {
            plan.options.short_circuit = false;
        }
        let degree = plan.options.degree;
        let checked = self.check(Arc::clone(&slot), Arc::clone(&subject), sources, plan).await?;
        if let [(by, error), ..] = checked.errors.as_slice()
            && checked.result.sources.is_empty()
        {
            return Err(Refusal::new("search_error", format!("{by}: {error}")));
        }
        let comparison = Comparison::of_check(article.page.title.clone(), &article.subject, checked);
        let pairs = if with_pairs { self.pairs(slot, &subject, &comparison).await? } else { None };
        Ok(OrderResult { article, comparison, degree, time: start.elapsed(), pairs, memory: None })
    }

    /// Checks the best sources again to get their texts; most of them were read a moment ago. The first check does
    /// not keep all texts, because there may be hundreds of sources.
    async fn pairs(
        &self,
        slot: Arc<OwnedSemaphorePermit>,
        subject: &Arc<Subject>,
        comparison: &Comparison,
    ) -> Result<Option<Comparison>, Refusal> {
        let shares =
            |compared: &&&Compared| compared.evidence().is_some_and(|evidence| !evidence.passages.is_empty());
        let ranked = comparison.ranked();
        let best: Vec<&str> =
            ranked.iter().filter(shares).take(PAIRS).map(|compared| compared.name.as_str()).collect();
        if best.is_empty() {
            return Ok(None);
        }
        let given: Arc<dyn CandidateSource> = Arc::new(GivenUrls::new(best));
        let plan = CheckPlan {
            options: CheckOptions::compare(),
            max_time: COMPARE_TIME,
            source_time: COMPARE_TIME,
            keep_texts: true,
            boilerplate: self.0.plan.boilerplate.clone(),
            ..CheckPlan::default()
        };
        let checked = self.check(slot, Arc::clone(subject), vec![given], plan).await?;
        Ok(Some(Comparison::of_check(comparison.name.clone(), subject, checked)))
    }

    /// The candidate sources for an order: given URLs and links first, then search engines and indexes.
    fn sources(&self, order: &SearchOrder) -> Vec<Arc<dyn CandidateSource>> {
        let mut sources: Vec<Arc<dyn CandidateSource>> = Vec::new();
        if !order.sources.is_empty() {
            sources.push(Arc::new(GivenUrls::new(&order.sources)));
        }
        let is_used = |source: &&Arc<dyn CandidateSource>| match source.name() {
            "given" => true,
            "links" => order.use_links,
            _ => order.use_engine,
        };
        sources.extend(self.0.sources.iter().filter(is_used).cloned());
        sources
    }

    /// Runs a check to its end even if its caller went away. It holds its slot until then, so the limit on concurrent
    /// checks is never exceeded.
    async fn check(
        &self,
        slot: Arc<OwnedSemaphorePermit>,
        subject: Arc<Subject>,
        sources: Vec<Arc<dyn CandidateSource>>,
        mut plan: CheckPlan,
    ) -> Result<Checked, Refusal> {
        let workspace = self.0.workspace.clone();
        plan.memory = Some(self.0.comparisons.clone());
        let memory = self.memory(&self.0.articles, ARTICLE_BYTES * subject.text.text().len()).await?;
        let check = async move {
            let (_slot, _memory) = (slot, memory);
            workspace.check(subject, &sources, plan).await
        };
        tokio::spawn(check).await.map_err(Refusal::of_task)?.map_err(Refusal::unhandled)
    }

    /// Waits for a slot.
    async fn slot(&self) -> Result<Arc<OwnedSemaphorePermit>, Refusal> {
        let slots = Arc::clone(&self.0.slots);
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            return Ok(Arc::new(slot));
        }
        let most = self.0.max_running * QUEUE;
        let _waiting = WaitingOrder::of(&self.0.waiting, most).ok_or_else(busy)?;
        match tokio::time::timeout(self.max_wait(), slots.acquire_owned()).await {
            Ok(slot) => slot.map(Arc::new).map_err(Refusal::unhandled),
            Err(_) => Err(busy()),
        }
    }

    /// Waits for memory.
    async fn memory(&self, memory: &Memory, bytes: usize) -> Result<MemoryPermit, Refusal> {
        tokio::time::timeout(self.max_wait(), memory.reserve(bytes)).await.map_err(|_| busy())
    }

    /// How long an order may wait for slots and memory that others hold.
    fn max_wait(&self) -> Duration {
        self.0.plan.max_time
    }
}

fn busy() -> Refusal {
    Refusal::new("busy", "too many checks at once; come again in a minute")
}

/// Counts one waiting order until it is dropped.
struct WaitingOrder<'c>(&'c AtomicUsize);

impl<'c> WaitingOrder<'c> {
    fn of(count: &'c AtomicUsize, most: usize) -> Option<Self> {
        let waiting = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(waiting)
    }
}

impl Drop for WaitingOrder<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
