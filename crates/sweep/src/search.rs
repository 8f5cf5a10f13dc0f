//! Search engines as sources of candidates: whole sentences of the article are sent as phrase queries.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use huntsman_crawler::{
    Clock, Downloader, Error, FetchErrorKind, HttpDownloader, RateLimit, Request, Response, Settings,
    retry_after,
};
use huntsman_middleware::HttpProxy;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::candidates::{Candidate, CandidateError, CandidateSource, FindFuture, Subject};

mod brave;
mod engine;
mod google;
mod searxng;

pub use engine::Engine;

/// Sends sentences of an article to a search engine as phrase queries, as the reference does: at most one query per
/// second and five results each, over all checks that share it.
///
/// It has its own downloader, whose address guard permits the engine's own host and port and otherwise only what the
/// settings allow; it does not fetch the results. After an engine reports too many queries, it gets none for as long as
/// it says, a minute if it does not say, at most an hour; queries fail meanwhile.
///
/// ```no_run
/// # fn run() -> huntsman_crawler::Result<()> {
/// use huntsman_crawler::Settings;
/// use huntsman_sweep::{Engine, SearchEngine};
///
/// let ours = SearchEngine::new(Engine::searxng("https://search.example.org/")?, &Settings::default())?;
/// let brave = SearchEngine::new(Engine::brave_from_env()?, &Settings::default())?.budget(100);
/// # Ok(()) }
/// ```
pub struct SearchEngine<D = HttpDownloader> {
    engine: Engine,
    downloader: D,
    user_agent: Option<HeaderValue>,
    proxy: Option<String>,
    max_queries: usize,
    results: usize,
    budget: usize,
    /// Number of queries so far.
    sent: AtomicUsize,
    limit: Option<RateLimit>,
    /// Until then the engine gets no queries.
    closed_until: Mutex<Option<Instant>>,
}

/// Maximum size of an engine's response.
const MAX_ANSWER_BYTES: usize = 2 << 20;
const MAX_ANSWER_TIME: Duration = Duration::from_secs(10);
/// How long the engine gets no queries after it refused one, unless it says how long; and the maximum.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(60);
const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// Longer URLs among the results are ignored.
const MAX_URL_BYTES: usize = 8_192;

impl SearchEngine {
    /// A candidate source that queries an engine over HTTP, with the proxy, the user agent and the TLS options of the
    /// settings.
    ///
    /// # Errors
    /// A setting for the network cannot be understood.
    pub fn new(engine: Engine, settings: &Settings) -> Result<Self, Error> {
        let mut settings = settings.clone();
        settings.allow_addresses.extend(engine.named_address());
        settings.download_binary = true;
        let proxy = HttpProxy::from_settings(&settings)?;
        let proxy = proxy.and_then(|proxy| proxy.proxy_for(engine.base()).cloned());
        let user_agent = HeaderValue::from_str(&settings.user_agent).ok();
        let downloader = HttpDownloader::new(&settings)?;
        Ok(Self { user_agent, proxy, ..SearchEngine::with_downloader(engine, downloader) })
    }
}

impl<D: Downloader> SearchEngine<D> {
    /// A candidate source that queries an engine through a given downloader, as tests do.
    pub fn with_downloader(engine: Engine, downloader: D) -> Self {
        let plain = Self {
            engine,
            downloader,
            user_agent: None,
            proxy: None,
            max_queries: 8,
            results: 5,
            budget: usize::MAX,
            sent: AtomicUsize::new(0),
            limit: None,
            closed_until: Mutex::default(),
        };
        plain.pace(Duration::from_secs(1))
    }

    /// Sets the time between two queries; default one second.
    pub fn pace(mut self, pace: Duration) -> Self {
        self.limit = RateLimit::every(pace, Clock::start());
        self
    }

    /// Sets the number of queries for an article; default 8. If there are fewer, they are spaced evenly over the
    /// article.
    pub fn max_queries(mut self, queries: usize) -> Self {
        self.max_queries = queries;
        self
    }

    /// Sets the number of results taken from each response; default 5, 1 to 10.
    pub fn results(mut self, results: usize) -> Self {
        self.results = results.clamp(1, 10);
        self
    }

    /// Limits the number of queries over all checks; further ones fail. Default: no limit.
    pub fn budget(mut self, queries: usize) -> Self {
        self.budget = queries;
        self
    }

    /// Waits until the rate limit and the engine permit a query, and counts it.
    async fn wait_for_slot(&self) -> Result<(), CandidateError> {
        let name = self.engine.name();
        self.is_open()?;
        if let Some(limit) = &self.limit {
            limit.wait().await;
        }
        // Another query may have been refused meanwhile.
        self.is_open()?;
        if self.sent.fetch_add(1, Ordering::Relaxed) >= self.budget {
            self.sent.fetch_sub(1, Ordering::Relaxed);
            return Err(CandidateError::Quota(format!(
                "the budget of {} questions to {name} is used up",
                self.budget
            )));
        }
        Ok(())
    }

    /// Whether the engine accepts queries, as far as its responses say.
    fn is_open(&self) -> Result<(), CandidateError> {
        let closed = *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner);
        match closed.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(left) if !left.is_zero() => Err(CandidateError::Quota(format!(
                "{} was asked too often; it is left alone for {} more seconds",
                self.engine.name(),
                left.as_secs().max(1)
            ))),
            _ => Ok(()),
        }
    }

    /// Sends one query.
    async fn query(&self, phrase: &str) -> Result<Vec<Candidate>, CandidateError> {
        self.wait_for_slot().await?;
        let mut request = self.engine.request(phrase, self.results)?;
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(agent) = &self.user_agent {
            request.headers.insert(header::USER_AGENT, agent.clone());
        }
        let mut meta = |key: &str, value: Value| drop(request.meta.insert(key.to_owned(), value));
        meta("download_maxsize", json!(MAX_ANSWER_BYTES));
        meta("download_timeout", json!(MAX_ANSWER_TIME.as_secs_f64()));
        if let Some(proxy) = &self.proxy {
            meta("proxy", json!(proxy));
        }
        let answer = self.fetch(&request).await?;
        match self.engine.read(&answer) {
            Ok(urls) => Ok(self.candidates(urls)),
            Err(Refusal::Quota(why)) => Err(CandidateError::Quota(self.backoff(why, &answer))),
            Err(Refusal::Failed(why)) => Err(CandidateError::Failed(why)),
        }
    }

    /// Fetches the response. Of an error only its kind is reported: the message of a library may contain the URL, and
    /// so the key.
    async fn fetch(&self, request: &Request) -> Result<Response, CandidateError> {
        self.downloader.fetch(request).await.map_err(|error| {
            let what = match error.kind() {
                FetchErrorKind::TooLarge => format!("the answer has more than {MAX_ANSWER_BYTES} bytes"),
                _ if error.is_timeout() => "no answer in time".to_owned(),
                kind => kind.name().to_owned(),
            };
            CandidateError::Failed(format!("{} at {}: {what}", self.engine.name(), self.engine.place()))
        })
    }

    /// Pauses queries for as long as the response says; returns a sentence about it.
    fn backoff(&self, why: String, answer: &Response) -> String {
        let stated = self.engine.backoff(&answer.headers).or_else(|| stated_backoff(&answer.headers));
        let backoff = stated.unwrap_or(DEFAULT_BACKOFF).min(MAX_BACKOFF);
        *self.closed_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + backoff);
        match stated {
            Some(stated) => format!("{why}; it can be asked again in {} seconds", stated.as_secs()),
            None => why,
        }
    }

    /// The results that can be fetched, without repetitions.
    fn candidates(&self, urls: Vec<String>) -> Vec<Candidate> {
        let mut seen = HashSet::new();
        let is_page = |url: &String| {
            url.len() <= MAX_URL_BYTES
                && Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        };
        let urls = urls.into_iter().filter(is_page).filter(|url| seen.insert(url.clone()));
        urls.take(self.results).map(Candidate::new).collect()
    }
}

impl<D> fmt::Debug for SearchEngine<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchEngine")
            .field("engine", &self.engine)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl<D: Downloader> CandidateSource for SearchEngine<D> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn queries(&self, subject: &Subject) -> Vec<String> {
        let quoted = |phrase: String| {
            let is_kept = |c: char| c != '"' && !c.is_control();
            let bare: String = phrase.chars().map(|c| if is_kept(c) { c } else { ' ' }).collect();
            bare.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let phrases = subject.phrases(self.max_queries).into_iter().map(quoted);
        phrases.filter(|phrase| !phrase.is_empty()).collect()
    }

    fn find<'a>(&'a self, _: &'a Subject, query: &'a str) -> FindFuture<'a> {
        Box::pin(self.query(query))
    }
}

/// Why a response has no results.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    /// The engine refuses further queries for some time.
    Quota(String),
    /// Anything else.
    Failed(String),
}

/// How long a server asks clients to wait, by the usual headers.
fn stated_backoff(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let now = SystemTime::now();
    text("retry-after")
        .and_then(|value| retry_after::retry_after(value, now, MAX_BACKOFF))
        .or_else(|| retry_after::rate_limit_wait(text, now, MAX_BACKOFF))
}

/// The body as JSON; `None` if it is not JSON.
fn json_of(answer: &Response) -> Option<Value> {
    serde_json::from_slice(&answer.body).ok()
}

/// The strings of a field in each object of a list; `None` if it is not a list.
fn field_of_each(list: Option<&Value>, field: &str) -> Option<Vec<String>> {
    let of_one = |result: &Value| result.get(field)?.as_str().map(str::to_owned);
    Some(list?.as_array()?.iter().filter_map(of_one).collect())
}

/// The error for an unexpected response.
fn unexpected(name: &str, status: StatusCode) -> Refusal {
    Refusal::Failed(match status {
        _ if status.is_redirection() => {
            format!("{name} answers with a redirect; name the address that it leads to")
        }
        StatusCode::OK => format!("{name} does not answer as documented"),
        status => format!("{name} answers with status {status}"),
    })
}
