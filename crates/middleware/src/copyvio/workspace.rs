//! Checks over a network: sources are looked for, and read by a crawl that is kept open.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use huntsman_crawler::{CrawlReport, CrawlerBuilder, Error, Handle, HttpDownloader, Request, Result};
use huntsman_detect::copyvio::{
    Article, Boilerplate, Check, CheckOptions, CheckResult, Direction, Evidence, Exclusions, LicenceHint,
    SourceStatus, Text,
};
use huntsman_detect::urlparts::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use url::Url;

use super::cache::{CheckCache, Key, SAME};
use super::candidates::{Candidate, CandidateError, CandidateSource, Given, Subject};
use super::desk::{Arrival, Desk, Ordered};
use super::pdf::PdfText;
use super::reading::{Reading, TextKind};
use crate::Defaults;

/// Reads sources and compares articles with them: any number of checks at once, at most one request in flight to each registrable
/// domain over all of them, with robots.txt, the address guard and all limits of a crawl. (The reference's *global* workers; a
/// workspace for each check is its *local* ones.)
///
/// A check ends when all its sources were read, when one is a violation (short circuit: those in flight still count, those that were
/// not begun are skipped), or when its time is over: what is in flight then is cut off, and those sources are late. What several
/// checks want is fetched once, and what was read in the last ten minutes is not fetched again, up to 64 MiB of texts.
///
/// ```no_run
/// # async fn run() -> huntsman_crawler::Result<()> {
/// use std::sync::Arc;
/// use huntsman_detect::copyvio::Text;
/// use huntsman_middleware::copyvio::{CandidateSource, CheckPlan, Given, Subject, Workspace};
///
/// let workspace = Workspace::start(None, |crawler| crawler)?;
/// let article = Subject::new(Text::new("The old mill stands on the bank of the river."));
/// let given: Arc<dyn CandidateSource> = Arc::new(Given::new(["https://example.org/mill"]));
/// let checked = workspace.check(Arc::new(article), &[given], CheckPlan::default()).await?;
/// println!("{:?}", checked.result.best());
/// workspace.finish().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Workspace(Arc<Inner>);

struct Inner {
    desk: Desk,
    handle: Handle,
    crawl: Mutex<Option<JoinHandle<Result<CrawlReport>>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.stop("finished");
    }
}

/// How a check is done.
#[derive(Clone, Debug)]
pub struct CheckPlan {
    /// What counts as a violation, and whether one is enough.
    pub options: CheckOptions,
    /// How long it may take, the texts of the last sources included. 30 s.
    pub max_time: Duration,
    /// How long one source may take. 5 s.
    pub source_time: Duration,
    /// Questions to search engines and indexes, in all. 8.
    pub max_queries: usize,
    /// Sources that are read, in all; more are skipped. 200.
    pub max_sources: usize,
    /// Sources that are not read.
    pub exclusions: Option<Arc<Exclusions>>,
    /// What links of mirrors of the article's wiki have in them.
    pub mirror_hints: Arc<[String]>,
    /// Whether texts are given back with the result.
    pub keep_texts: bool,
    /// Results of earlier checks.
    pub cache: Option<Arc<CheckCache>>,
    /// What is known to stand on many sites, and so is no evidence.
    pub boilerplate: Option<Arc<Boilerplate>>,
}

impl Default for CheckPlan {
    fn default() -> Self {
        Self {
            options: CheckOptions::default(),
            max_time: Duration::from_secs(30),
            source_time: Duration::from_secs(5),
            max_queries: 8,
            max_sources: 200,
            exclusions: None,
            mirror_hints: Arc::default(),
            keep_texts: false,
            cache: None,
            boilerplate: None,
        }
    }
}

/// What came of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checked {
    /// The reference's numbers, the most suspicious source first.
    pub result: CheckResult,
    /// By source: what was found in those that were compared.
    pub found: HashMap<String, Found>,
    /// By source: what it was found by.
    pub found_by: HashMap<String, Arc<str>>,
    /// Questions that were put to search engines and indexes.
    pub queries: usize,
    /// A violation ended it: sources that had not been begun were skipped.
    pub short_circuit: bool,
    /// Questions were left out, since the check was over before.
    pub possible_miss: bool,
    /// Questions that had no answer: who was asked, and why.
    pub errors: Vec<(Arc<str>, String)>,
    /// How long it took.
    pub time: Duration,
    /// It is the result of an earlier check, of that time.
    #[serde(skip)]
    pub cached: Option<SystemTime>,
}

/// What was found in a source that was compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// What it shares with the article.
    pub evidence: Evidence,
    /// The licence that the source is under, by its own word.
    pub licence: Option<LicenceHint>,
    /// Which of the two was there first.
    pub direction: Direction,
    /// What it says, if texts are kept; of a result of an earlier check, the best source's only.
    #[serde(skip)]
    pub text: Option<Text>,
}

impl Checked {
    pub(crate) fn of(result: CheckResult) -> Self {
        Self {
            result,
            found: HashMap::new(),
            found_by: HashMap::new(),
            queries: 0,
            short_circuit: false,
            possible_miss: false,
            errors: Vec::new(),
            time: Duration::ZERO,
            cached: None,
        }
    }

    /// Whether all sources were wanted: none was skipped, no question left out.
    fn is_whole(&self) -> bool {
        !self.possible_miss
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Skipped)
    }

    /// Whether another check would find the same: nothing failed that is no source's fault.
    fn is_final(&self) -> bool {
        self.errors.is_empty()
            && !self.result.sources.iter().any(|source| source.status == SourceStatus::Late)
    }
}

impl Found {
    /// Compares an article, prepared from the text of `subject`, with a source; `boilerplate` is what is known to stand on many sites.
    pub fn of(
        prepared: &Article<'_>,
        subject: &Subject,
        source: &Reading,
        boilerplate: Option<&Boilerplate>,
        keep_text: bool,
    ) -> Self {
        let document = source.text.document();
        Self {
            evidence: match boilerplate {
                Some(boilerplate) => prepared.compare_knowing(&document, boilerplate),
                None => prepared.compare(&document),
            },
            licence: source.licence.clone(),
            direction: Direction::of(subject.dates, source.dates),
            text: keep_text.then(|| source.text.clone()),
        }
    }
}

/// What a check waits for.
#[derive(Debug)]
pub(crate) enum Message {
    /// What came of a source.
    Arrived(usize, Arrival),
    /// The answer to a question, and who was asked.
    Answer(Arc<str>, Result<Vec<Candidate>, CandidateError>),
    /// There are no more questions.
    NoQuestions,
}

/// Domains that are asked at once: as many as the reference has workers.
const WORKERS: usize = 8;
/// Bytes of texts that are kept for the next checks, and for how long.
const RECENT_BYTES: usize = 64 << 20;
const RECENT_LIFE: Duration = Duration::from_secs(600);

impl Workspace {
    /// Starts the crawl that reads sources: with [`Defaults`], and what `configure` makes of it (settings, another downloader).
    /// Without `pdf`, PDF files have no text.
    ///
    /// # Errors
    /// A setting is unknown or wrong, or this is not within a tokio runtime.
    pub fn start(
        pdf: Option<Arc<dyn PdfText>>,
        configure: impl FnOnce(CrawlerBuilder<Desk>) -> CrawlerBuilder<Desk>,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|cause| Error::usage(format!("a workspace for checks: {cause}")))?;
        let desk = Desk::new(pdf, RECENT_BYTES, RECENT_LIFE);
        let builder = CrawlerBuilder::new(desk.clone())
            .plugin(Defaults)
            .downloader_with(HttpDownloader::new)
            .observer(desk.clone())
            .middleware(desk.clone());
        let builder =
            Self::settings().into_iter().fold(builder, |builder, (name, value)| builder.set(name, value));
        let crawler = configure(builder).build()?;
        let handle = crawler.handle();
        handle.keep_open(true);
        let closing = desk.clone();
        let crawl = runtime.spawn(async move {
            // Also when the crawl is dropped with its runtime.
            let _closing = ClosingAll(closing);
            crawler.run().await
        });
        Ok(Self(Arc::new(Inner { desk, handle, crawl: Mutex::new(Some(crawl)) })))
    }

    /// The settings that make it what it is, for those who replace all settings in [`start`](Self::start).
    pub fn settings() -> Vec<(&'static str, Value)> {
        vec![
            ("slot_by", json!("registrable_domain")),
            ("concurrent_requests", json!(WORKERS)),
            ("concurrent_requests_per_domain", json!(1)),
            ("download_delay", json!(0.0)),
            ("download_binary", json!(true)),
            ("download_maxsize", json!(TextKind::Pdf.most_bytes())),
            ("robots_retry_delays", json!([])),
            ("retry_enabled", json!(false)),
        ]
    }

    /// Compares an article with what `sources` find for it. Equal addresses are read once; the address of the article itself is no
    /// source. For an article that is too small for a check nothing is asked or read.
    ///
    /// # Errors
    /// The workspace is finished, or a comparison panicked. A question without an answer is none: it is told in the result.
    pub async fn check(
        &self,
        subject: Arc<Subject>,
        sources: &[Arc<dyn CandidateSource>],
        plan: CheckPlan,
    ) -> Result<Checked> {
        let Some(cache) = plan.cache.clone() else { return self.check_anew(subject, sources, plan).await };
        let key = Key::of(&subject, sources, &plan);
        let kept = {
            let cache = Arc::clone(&cache);
            tokio::task::spawn_blocking(move || cache.get(key, SystemTime::now())).await??
        };
        let usable = kept.filter(|kept| plan.options.short_circuit || kept.is_whole());
        if let Some(mut kept) = usable
            && self.still_holds(&subject, &mut kept, &plan).await?
        {
            return Ok(kept);
        }
        let checked = self.check_anew(subject, sources, plan).await?;
        if checked.is_final() {
            let checked = checked.clone();
            tokio::task::spawn_blocking(move || cache.put(key, &checked, SystemTime::now())).await??;
        }
        Ok(checked)
    }

    /// Whether the best source of an earlier result still has its confidence; if so, what was found in it now is in the result.
    async fn still_holds(
        &self,
        subject: &Arc<Subject>,
        kept: &mut Checked,
        plan: &CheckPlan,
    ) -> Result<bool> {
        let best = kept.result.best().filter(|best| best.status == SourceStatus::Compared);
        let Some((url, confidence)) = best.map(|best| (best.url.clone(), best.confidence)) else {
            return Ok(true);
        };
        let given: Arc<dyn CandidateSource> = Arc::new(Given::new([&url]));
        let again = self.check_anew(Arc::clone(subject), &[given], plan.clone()).await?;
        let now = again.result.best().map_or(0.0, |best| best.confidence.value());
        let holds = (now - confidence.value()).abs() < SAME;
        if holds {
            kept.found.extend(again.found);
            kept.time = again.time;
        }
        Ok(holds)
    }

    async fn check_anew(
        &self,
        subject: Arc<Subject>,
        sources: &[Arc<dyn CandidateSource>],
        plan: CheckPlan,
    ) -> Result<Checked> {
        let start = Instant::now();
        let (send, messages) = mpsc::channel();
        let number = self.0.desk.open(send.clone(), start + plan.max_time, &plan)?;
        // Before anything that may fail.
        let closing = Closing { desk: self.0.desk.clone(), number };
        let check = Check::new(subject.text.exact(), plan.options);
        let max_queries = if check.is_too_small() { 0 } else { plan.max_queries };
        let questions = Arc::new(Questions::default());
        let asking = tokio::spawn(ask(
            Arc::clone(&subject),
            sources.to_vec(),
            max_queries,
            NoMoreQuestions(send),
            Arc::clone(&questions),
        ));
        let handle = self.0.handle.clone();
        let session = move || {
            let prepared = Article::new(subject.text.document());
            let session = Session {
                start,
                plan: &plan,
                subject: &subject,
                prepared,
                check,
                desk: &closing.desk,
                handle,
                number,
                own: subject.url.as_deref().and_then(|url| Some(canonical(&Url::parse(url).ok()?))),
                sources: Vec::new(),
                seen: HashSet::new(),
                waiting: HashSet::new(),
                found: HashMap::new(),
                found_by: HashMap::new(),
                errors: Vec::new(),
            };
            session.run(&messages, &asking, &questions)
        };
        Ok(tokio::task::spawn_blocking(session).await?)
    }

    /// The crawl that reads, for its stats.
    pub fn handle(&self) -> &Handle {
        &self.0.handle
    }

    /// Ends the reading, and gives its report.
    ///
    /// # Errors
    /// The crawl failed as a whole, or was finished before.
    pub async fn finish(&self) -> Result<CrawlReport> {
        let crawl = self.0.crawl.lock().unwrap_or_else(PoisonError::into_inner).take();
        let crawl = crawl.ok_or_else(|| Error::usage("this workspace was finished before"))?;
        self.0.handle.stop("finished");
        crawl.await?
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("desk", &self.0.desk).finish_non_exhaustive()
    }
}

/// How many questions there are, and how many were answered.
#[derive(Debug, Default)]
struct Questions {
    planned: AtomicUsize,
    asked: AtomicUsize,
    answered: AtomicUsize,
}

/// Says that there are no more questions, also when whoever asked them panicked.
struct NoMoreQuestions(Sender<Message>);

impl Drop for NoMoreQuestions {
    fn drop(&mut self) {
        // The check may have ended.
        let _ = self.0.send(Message::NoQuestions);
    }
}

/// Puts the questions of all sources of candidates, one after the other.
async fn ask(
    subject: Arc<Subject>,
    sources: Vec<Arc<dyn CandidateSource>>,
    max_queries: usize,
    answers: NoMoreQuestions,
    count: Arc<Questions>,
) {
    let mut left = max_queries;
    let mut plan = Vec::new();
    for source in &sources {
        for question in source.questions(&subject) {
            if !question.is_empty() {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            plan.push((source, question));
        }
    }
    count.planned.store(plan.len(), Ordering::Relaxed);
    for (source, question) in plan {
        count.asked.fetch_add(usize::from(!question.is_empty()), Ordering::Relaxed);
        let answer = source.find(&subject, &question).await;
        count.answered.fetch_add(1, Ordering::Relaxed);
        if answers.0.send(Message::Answer(source.name().into(), answer)).is_err() {
            return;
        }
    }
}

/// A check while it lasts.
struct Session<'a> {
    start: Instant,
    plan: &'a CheckPlan,
    subject: &'a Subject,
    prepared: Article<'a>,
    check: Check,
    desk: &'a Desk,
    handle: Handle,
    number: u64,
    /// The address of the article itself.
    own: Option<String>,
    sources: Vec<String>,
    seen: HashSet<String>,
    waiting: HashSet<usize>,
    found: HashMap<String, Found>,
    found_by: HashMap<String, Arc<str>>,
    errors: Vec<(Arc<str>, String)>,
}

impl Session<'_> {
    fn run(
        mut self,
        messages: &Receiver<Message>,
        asking: &JoinHandle<()>,
        questions: &Questions,
    ) -> Checked {
        let mut is_asking = true;
        let mut is_over = self.check.is_over();
        while is_asking || !self.waiting.is_empty() {
            let left = (self.start + self.plan.max_time).saturating_duration_since(Instant::now());
            // The time is over, or the crawl has ended.
            let Ok(message) = messages.recv_timeout(left) else { break };
            match message {
                Message::NoQuestions => is_asking = false,
                Message::Answer(by, Ok(candidates)) => {
                    candidates.into_iter().for_each(|candidate| self.take(candidate, &by));
                }
                Message::Answer(by, Err(error)) => self.errors.push((by, error.to_string())),
                Message::Arrived(at, arrival) => {
                    if self.waiting.remove(&at) {
                        self.arrived(at, arrival);
                    }
                }
            }
            if self.check.is_over() && !is_over {
                (is_over, is_asking) = (true, false);
                asking.abort();
                let begun = self.desk.no_more(self.number);
                let (waiting, skipped) = self.waiting.iter().partition(|at| begun.contains(at));
                self.waiting = waiting;
                self.unread(skipped, Check::skip);
            }
        }
        asking.abort();
        let late = std::mem::take(&mut self.waiting);
        self.unread(late, Check::late);
        let short_circuit = self.check.is_over() && !self.check.is_too_small();
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Checked {
            short_circuit,
            possible_miss: count(&questions.answered) < count(&questions.planned),
            found: self.found,
            found_by: self.found_by,
            queries: count(&questions.asked),
            errors: self.errors,
            time: self.start.elapsed(),
            ..Checked::of(self.check.finish())
        }
    }

    /// Sources of which nothing was read, in the order in which they were found.
    fn unread(
        &mut self,
        sources: HashSet<usize>,
        tell: impl Fn(&mut Check, String) -> &huntsman_detect::copyvio::Source,
    ) {
        let mut sources: Vec<usize> = sources.into_iter().collect();
        sources.sort_unstable();
        for at in sources {
            tell(&mut self.check, self.sources[at].clone());
        }
    }

    /// A source was found.
    fn take(&mut self, candidate: Candidate, by: &Arc<str>) {
        let Candidate { url: source, text, dates } = candidate;
        if !self.seen.insert(source.clone()) {
            return;
        }
        let url = match Url::parse(&source) {
            Ok(url) if self.own.as_ref().is_some_and(|own| *own == canonical(&url)) => return,
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
            Ok(url) => Err(format!("{}: is not fetched", url.scheme())),
            Err(error) => Err(error.to_string()),
        };
        self.found_by.insert(source.clone(), Arc::clone(by));
        let rule = self.plan.exclusions.as_ref().and_then(|exclusions| exclusions.rule_for(&source));
        if let Some(rule) = rule {
            self.check.exclude(source, rule);
            return;
        }
        if self.check.is_over() || self.sources.len() >= self.plan.max_sources {
            self.check.skip(source);
            return;
        }
        let at = self.sources.len();
        self.sources.push(source.clone());
        if let Some(text) = text {
            self.arrived(at, Arrival::Text(Arc::new(Reading { text, dates, ..Reading::default() })));
            return;
        }
        match url {
            Err(why) => {
                self.check.fail(source, why);
            }
            Ok(url) => match self.desk.order(&url, self.number, at) {
                Ordered::Known(reading) => self.arrived(at, Arrival::Text(reading)),
                Ordered::Waits => {
                    self.waiting.insert(at);
                }
                Ordered::First => {
                    self.waiting.insert(at);
                    self.handle.push(Request::get(url).unfiltered());
                }
            },
        }
    }

    /// A source was read, or cannot be.
    fn arrived(&mut self, at: usize, arrival: Arrival) {
        let source = self.sources[at].clone();
        match arrival {
            Arrival::Text(reading) => {
                self.check.compare(&source, reading.text.exact());
                let found = Found::of(
                    &self.prepared,
                    self.subject,
                    &reading,
                    self.plan.boilerplate.as_deref(),
                    self.plan.keep_texts,
                );
                self.found.insert(source, found);
            }
            Arrival::Excluded(why) => {
                self.check.exclude(source, why);
            }
            Arrival::Failed(why) => {
                self.check.fail(source, why);
            }
        }
    }
}

struct Closing {
    desk: Desk,
    number: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.desk.close(self.number);
    }
}

/// Closes the checks of a crawl that has ended, in whatever way.
struct ClosingAll(Desk);

impl Drop for ClosingAll {
    fn drop(&mut self) {
        self.0.close_all();
    }
}
