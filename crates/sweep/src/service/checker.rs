//! Carries out orders: a limited number at once, all of them with one workspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use huntsman::detect::copyvio::{CheckOptions, Degree, SourceStatus, Text};
use huntsman::sweep::{
    CandidateSource, CheckPlan, Checked, Found, GivenUrls, Memory, MemoryPermit, Reading, Subject, Workspace,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::article::Article;
use super::metrics::{Action, Telemetry};
use super::order::{CompareOrder, SearchOrder, SourceOrder};
use super::reader::Reader;
use super::refusal::Refusal;
use crate::copyvio::Comparison;

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
/// The name of a source that was pasted.
pub(crate) const PASTED: &str = "pasted text";

/// Carries out orders; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Checker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workspace: Workspace,
    reader: Reader,
    plan: CheckPlan,
    /// The candidate sources that the operator configured.
    sources: Vec<Arc<dyn CandidateSource>>,
    places: Arc<Semaphore>,
    most: usize,
    waiting: AtomicUsize,
    comparisons: Memory,
    articles: Memory,
    telemetry: Arc<Telemetry>,
}

/// The result of an order.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) article: Article,
    pub(crate) comparison: Comparison,
    /// Words per window.
    pub(crate) degree: Degree,
    /// How long the order took, including the reading of the article.
    pub(crate) time: Duration,
    /// Only for a search that is shown as a page: the best sources again, with their texts.
    pub(crate) pairs: Option<Comparison>,
    /// Memory that is reserved until the response was sent.
    pub(crate) room: Option<MemoryPermit>,
}

impl Checker {
    /// A checker that carries out at most `most` orders at once.
    pub(crate) fn new(
        workspace: Workspace,
        reader: Reader,
        plan: CheckPlan,
        sources: Vec<Arc<dyn CandidateSource>>,
        most: usize,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        let places = Arc::new(Semaphore::new(most));
        Self(Arc::new(Inner {
            workspace,
            reader,
            plan,
            sources,
            places,
            most,
            waiting: AtomicUsize::new(0),
            comparisons: Memory::new(COMPARISONS),
            articles: Memory::new(ARTICLES),
            telemetry,
        }))
    }

    /// The number of running orders, and of waiting ones.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.0.most - self.0.places.available_permits(), self.0.waiting.load(Ordering::Relaxed))
    }

    /// The crawl that reads sources; its stats are published.
    pub(crate) fn workspace(&self) -> &Workspace {
        &self.0.workspace
    }

    /// Compares an article with one source.
    ///
    /// # Errors
    /// Those of the article; `no_data` and `timeout` if the source has no text, `busy`.
    pub(crate) async fn compare(&self, order: CompareOrder) -> Result<Done, Refusal> {
        let start = Instant::now();
        let outcome = self.compared(order, start).await;
        self.count(Action::Compare, &outcome, start);
        outcome
    }

    /// Finds and reads the sources of an article; with `shows`, the texts of the best ones are read as well.
    ///
    /// # Errors
    /// Those of the article; `no_search_method`, `search_error`, `busy`.
    pub(crate) async fn search(&self, order: SearchOrder, shows: bool) -> Result<Done, Refusal> {
        let start = Instant::now();
        let outcome = self.searched(order, shows, start).await;
        self.count(Action::Search, &outcome, start);
        outcome
    }

    async fn compared(&self, order: CompareOrder, start: Instant) -> Result<Done, Refusal> {
        let place = self.place().await?;
        let CompareOrder { article, source, degree, .. } = order;
        let mut article = Article::read(article, &self.0.reader).await?;
        // The user may compare a page with itself and with its mirrors.
        let subject = Subject { url: None, mirror_hints: Arc::default(), ..article.subject.clone() };
        let name = article.page.title.clone();
        let options = CheckOptions { degree, ..CheckOptions::compare() };
        let (comparison, room) = match source {
            SourceOrder::Text(text) => {
                let text = Text::new(text);
                let room = self.room(&self.0.comparisons, Found::bytes(&subject.text, &text)).await?;
                let boilerplate = self.0.plan.boilerplate.clone();
                // If the client goes away, the comparison still runs to its end and holds its slot and its memory
                // until then.
                let compare = move || {
                    let _place = place;
                    let reading = if text.is_empty() {
                        Err("it has no text".to_owned())
                    } else {
                        Ok(Reading { text, ..Reading::default() })
                    };
                    let sources = vec![(PASTED.to_owned(), reading)];
                    (Comparison::of(name, &subject, degree, boilerplate.as_deref(), sources), Some(room))
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
                let checked = self.check(place, Arc::new(subject), vec![given], plan).await?;
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
        Ok(Done { article, comparison, degree, time: start.elapsed(), pairs: None, room })
    }

    async fn searched(&self, order: SearchOrder, shows: bool, start: Instant) -> Result<Done, Refusal> {
        let sources = self.sources(&order);
        if sources.is_empty() {
            return Err(Refusal::new(
                "no_search_method",
                "neither links nor a search engine are to be used, or this server has none, and no 'source' is named",
            ));
        }
        let place = self.place().await?;
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
        let checked = self.check(Arc::clone(&place), Arc::clone(&subject), sources, plan).await?;
        if let [(by, error), ..] = checked.errors.as_slice()
            && checked.result.sources.is_empty()
        {
            return Err(Refusal::new("search_error", format!("{by}: {error}")));
        }
        let comparison = Comparison::of_check(article.page.title.clone(), &article.subject, checked);
        let pairs = if shows { self.pairs(place, &subject, &comparison).await? } else { None };
        Ok(Done { article, comparison, degree, time: start.elapsed(), pairs, room: None })
    }

    /// Checks the best sources again to get their texts; most of them were read a moment ago. The first check does
    /// not keep all texts, because there may be hundreds of sources.
    async fn pairs(
        &self,
        place: Arc<OwnedSemaphorePermit>,
        subject: &Arc<Subject>,
        comparison: &Comparison,
    ) -> Result<Option<Comparison>, Refusal> {
        let shares = |compared: &&&crate::copyvio::Compared| {
            compared.evidence().is_some_and(|evidence| !evidence.passages.is_empty())
        };
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
        let checked = self.check(place, Arc::clone(subject), vec![given], plan).await?;
        Ok(Some(Comparison::of_check(comparison.name.clone(), subject, checked)))
    }

    /// The candidate sources for an order: given addresses and links first, then search.
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

    /// Runs a check to its end even if its client went away. It holds its slot until then, so the limit on concurrent
    /// checks is never exceeded.
    async fn check(
        &self,
        place: Arc<OwnedSemaphorePermit>,
        subject: Arc<Subject>,
        sources: Vec<Arc<dyn CandidateSource>>,
        mut plan: CheckPlan,
    ) -> Result<Checked, Refusal> {
        let workspace = self.0.workspace.clone();
        plan.memory = Some(self.0.comparisons.clone());
        let room = self.room(&self.0.articles, ARTICLE_BYTES * subject.text.text().len()).await?;
        let check = async move {
            let (_place, _room) = (place, room);
            workspace.check(subject, &sources, plan).await
        };
        tokio::spawn(check).await.map_err(Refusal::of_task)?.map_err(Refusal::unhandled)
    }

    /// Waits for a slot.
    async fn place(&self) -> Result<Arc<OwnedSemaphorePermit>, Refusal> {
        let places = Arc::clone(&self.0.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Ok(Arc::new(place));
        }
        let _waits = Waits::of(&self.0.waiting, self.0.most * QUEUE).ok_or_else(busy)?;
        match tokio::time::timeout(self.wait(), places.acquire_owned()).await {
            Ok(place) => place.map(Arc::new).map_err(Refusal::unhandled),
            Err(_) => Err(busy()),
        }
    }

    /// Waits for memory.
    async fn room(&self, memory: &Memory, bytes: usize) -> Result<MemoryPermit, Refusal> {
        tokio::time::timeout(self.wait(), memory.reserve(bytes)).await.map_err(|_| busy())
    }

    /// How long an order may wait for slots and memory that others hold.
    fn wait(&self) -> Duration {
        self.0.plan.max_time
    }

    fn count(&self, action: Action, outcome: &Result<Done, Refusal>, start: Instant) {
        let code = outcome.as_ref().err().map_or("ok", |refusal| refusal.code);
        self.0.telemetry.checked(action, code, start.elapsed());
        if let Ok(done) = outcome {
            self.0.telemetry.compared(&done.comparison);
        }
    }
}

fn busy() -> Refusal {
    Refusal::new("busy", "too many checks at once; come again in a minute")
}

/// Counts one waiting order until it is dropped.
struct Waits<'c>(&'c AtomicUsize);

impl<'c> Waits<'c> {
    fn of(count: &'c AtomicUsize, most: usize) -> Option<Self> {
        let waits = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < most).then_some(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
