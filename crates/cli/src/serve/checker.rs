//! Does orders: at most so many at once, all of them over one workspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use huntsman::detect::copyvio::{CheckOptions, Degree, SourceStatus, Text};
use huntsman::middleware::copyvio::{
    CandidateSource, CheckPlan, Checked, Found, Given, Memory, Reading, Room, Subject, Workspace,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::article::Article;
use super::metrics::{Action, Telemetry};
use super::order::{CompareOrder, SearchOrder, SourceOrder};
use super::reader::Reader;
use super::refusal::Refusal;
use crate::copyvio::Comparison;

/// Time of a comparison with a page, as in the reference's web tool.
const COMPARE_TIME: Duration = Duration::from_secs(10);
/// Who waits for a place, for each place.
const QUEUE: usize = 4;
/// Memory of all comparisons that are done at the same time: two texts as large as they may be take nearly all of it, so others wait.
const COMPARISONS: usize = 256 << 20;
/// Memory of all articles of checks that are done at the same time, and what one takes for each byte of its text.
const ARTICLES: usize = 64 << 20;
const ARTICLE_BYTES: usize = 40;
/// Pairs of texts that the page of a search shows.
const PAIRS: usize = 3;
/// The name of a source that was pasted.
pub(crate) const PASTED: &str = "pasted text";

/// Does orders; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Checker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    workspace: Workspace,
    reader: Reader,
    plan: CheckPlan,
    /// What finds sources, as the operator has it.
    sources: Vec<Arc<dyn CandidateSource>>,
    places: Arc<Semaphore>,
    most: usize,
    waiting: AtomicUsize,
    comparisons: Memory,
    articles: Memory,
    telemetry: Arc<Telemetry>,
}

/// What came of an order.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) article: Article,
    pub(crate) comparison: Comparison,
    /// Words per window.
    pub(crate) degree: Degree,
    /// How long it took, the reading of the article included.
    pub(crate) time: Duration,
    /// Of a search that is shown: the best sources once more, with their texts.
    pub(crate) pairs: Option<Comparison>,
    /// The memory that it takes until it is told.
    pub(crate) room: Option<Room>,
}

impl Checker {
    /// `most` orders at once.
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

    /// Orders that are being done, and that wait for it.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.0.most - self.0.places.available_permits(), self.0.waiting.load(Ordering::Relaxed))
    }

    /// The crawl that reads sources, for its stats.
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

    /// Finds and reads the sources of an article; with `shows` the texts of the best of them as well.
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
        // A page may be compared with itself and with its mirrors.
        let subject = Subject { url: None, mirror_hints: Arc::default(), ..article.subject.clone() };
        let name = article.page.title.clone();
        let options = CheckOptions { degree, ..CheckOptions::compare() };
        let (comparison, room) = match source {
            SourceOrder::Text(text) => {
                let text = Text::new(text);
                let room = self.room(&self.0.comparisons, Found::bytes(&subject.text, &text)).await?;
                let boilerplate = self.0.plan.boilerplate.clone();
                // It goes on to its end when its client went away, and has its place and its room until then.
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
                let given: Arc<dyn CandidateSource> = Arc::new(Given::new([url]));
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

    /// The best sources once more, with their texts: most of them were read a moment ago. Not all are kept from the first time on, since
    /// there may be hundreds.
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
        let given: Arc<dyn CandidateSource> = Arc::new(Given::new(best));
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

    /// What finds sources for an order: given addresses, links, then what is searched with.
    fn sources(&self, order: &SearchOrder) -> Vec<Arc<dyn CandidateSource>> {
        let mut sources: Vec<Arc<dyn CandidateSource>> = Vec::new();
        if !order.sources.is_empty() {
            sources.push(Arc::new(Given::new(&order.sources)));
        }
        let is_used = |source: &&Arc<dyn CandidateSource>| match source.name() {
            "given" => true,
            "links" => order.use_links,
            _ => order.use_engine,
        };
        sources.extend(self.0.sources.iter().filter(is_used).cloned());
        sources
    }

    /// A check goes on to its end when its client went away: it holds its place until then, so that there are never more than were
    /// meant.
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

    /// Waits for a place.
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
    async fn room(&self, memory: &Memory, bytes: usize) -> Result<Room, Refusal> {
        tokio::time::timeout(self.wait(), memory.room(bytes)).await.map_err(|_| busy())
    }

    /// An order may wait so long for what others have.
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

/// One who waits.
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
