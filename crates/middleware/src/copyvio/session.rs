//! A check while it lasts: what is asked for, what is waited for, what came.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use huntsman_crawler::{Handle, Request, Result};
use huntsman_detect::copyvio::{Article, Check, Source};
use huntsman_detect::urlparts::canonical;
use tokio::task::JoinHandle;
use url::Url;

use super::candidates::{Candidate, CandidateError, CandidateSource, Subject};
use super::checked::{Checked, Found};
use super::desk::{Arrival, Desk, Ordered};
use super::memory::Room;
use super::plan::CheckPlan;
use super::reading::Reading;

/// Compares an article with what sources of candidates find for it.
///
/// # Errors
/// The crawl that reads has ended, or a comparison panicked.
pub(crate) async fn check(
    desk: &Desk,
    handle: &Handle,
    subject: Arc<Subject>,
    sources: &[Arc<dyn CandidateSource>],
    plan: CheckPlan,
) -> Result<Checked> {
    let start = Instant::now();
    let (send, messages) = mpsc::channel();
    let number = desk.open(send.clone(), start + plan.max_time, &plan)?;
    // Before anything that may fail.
    let closing = Closing { desk: desk.clone(), number };
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
    let handle = handle.clone();
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

struct Closing {
    desk: Desk,
    number: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.desk.close(self.number);
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
            // The time is over and what is there was taken note of, or the crawl has ended.
            let Ok(message) = messages.recv_timeout(self.left()) else { break };
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

    fn left(&self) -> Duration {
        (self.start + self.plan.max_time).saturating_duration_since(Instant::now())
    }

    /// Sources of which nothing was read, in the order in which they were found.
    fn unread(&mut self, sources: HashSet<usize>, tell: impl Fn(&mut Check, String) -> &Source) {
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
            Ok(_) if self.left().is_zero() => {
                self.waiting.insert(at);
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

    /// Waits for the memory in which a source is compared, if it is bounded; nothing if the time is over before.
    fn room(&self, source: &Reading) -> Option<Option<Room>> {
        let Some(memory) = &self.plan.memory else { return Some(None) };
        let bytes = Found::bytes(&self.subject.text, &source.text);
        let room = tokio::time::timeout(self.left(), memory.room(bytes));
        tokio::runtime::Handle::current().block_on(room).ok().map(Some)
    }

    /// A source was read, or cannot be.
    fn arrived(&mut self, at: usize, arrival: Arrival) {
        if self.left().is_zero() {
            // There may be many, and each takes time: late, as all that are still waited for.
            self.waiting.insert(at);
            return;
        }
        let source = self.sources[at].clone();
        match arrival {
            Arrival::Text(reading) => {
                if let Some(hint) = reading.addresses.mirror(&self.subject.mirror_hints) {
                    self.check.exclude(source, hint.to_string());
                    return;
                }
                let Some(_room) = self.room(&reading) else {
                    self.waiting.insert(at);
                    return;
                };
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
            Arrival::Failed(why) => {
                self.check.fail(source, why);
            }
        }
    }
}
