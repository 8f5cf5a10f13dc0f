//! RobotsTxt: obeys robots.txt (RFC 9309) and the delays it asks for.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header;
use huntsman_crawler::robots::{MAX_BYTES, Meaning, Robots, RobotsAgent, product_token};
use huntsman_crawler::{
    Change, Component, Context, DownloaderMiddleware, DropReason, Error, Event, FetchError, FetchErrorKind,
    Hooks, HostKey, HostNote, OnRequest, Politeness, Request, Response, Result, Settings, Timestamp, log,
    meta, seconds, settings,
};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use url::Url;

use crate::{added, chain};

settings! {
    /// Settings of [`RobotsTxt`].
    pub struct RobotsSettings {
        /// Obeys robots.txt.
        robotstxt_obey: bool = true, test = false;
        /// Product token that is looked up in robots.txt; if unset, the first token of the User-Agent.
        robotstxt_user_agent: Option<String> = None;
        /// What an unreachable robots.txt (5xx, 429, network error) means: disallow or allow.
        robots_on_error: OnRobotsError = OnRobotsError::Disallow;
        /// Seconds for which a robots.txt is used before it is fetched again.
        robots_ttl: f64 = 86_400.0;
        /// Seconds for which requests to an authority are refused after robots.txt could not be fetched.
        robots_error_ttl: f64 = 3_600.0;
        /// Seconds after which an unreachable robots.txt is requested again.
        robots_retry_delays: Vec<f64> = vec![10.0, 60.0, 300.0];
        /// Longest Crawl-delay that is obeyed, in seconds.
        robots_max_crawl_delay: f64 = 30.0;
        /// What happens to a host whose Crawl-delay is longer than robots_max_crawl_delay: skip (its requests are
        /// dropped) or clamp (the longest obeyed delay is used).
        robots_over_cap: OverCap = OverCap::Skip;
        /// Number of authorities whose robots.txt is kept in memory.
        robots_cache_size: usize = 10_000;
    }
}

/// What an unreachable robots.txt means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRobotsError {
    /// All paths are forbidden (RFC 9309, 2.3.1.4).
    #[default]
    Disallow,
    /// All paths are allowed.
    Allow,
}

/// What happens to a host whose Crawl-delay is longer than `robots_max_crawl_delay`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverCap {
    /// Its requests are dropped, reason `crawl_delay`.
    #[default]
    Skip,
    /// The longest accepted delay is used, with a warning.
    Clamp,
}

mod stored;

/// Checks robots.txt before every request, and drops what it forbids with reason `robots`.
///
/// There is one file per scheme, host and port (and per product token, if requests set their own User-Agent). Requests
/// of one authority wait for a single fetch, which goes through the downloader chain and the slot of the host. A 2xx
/// response is parsed; 4xx except 429 allows everything. Any other status, more than 5 redirects, and network errors
/// forbid everything for the time being: requests wait in the queue while the file is requested again after
/// `robots_retry_delays`, then they are dropped with reason `robots_unreachable` for `robots_error_ttl`. The spider's `failed`
/// gets a [`FetchError`] of the kind that kept the file away, such as `dns`; that of a status is `middleware_error`. A file is used
/// for `robots_ttl`, or its max-age if that is shorter.
///
/// `Crawl-delay` and `Request-rate` set the delay of the slot; above `robots_max_crawl_delay` the authority is skipped
/// with reason `crawl_delay`, or the delay is clamped, by `robots_over_cap`. Requests with meta `dont_obey_robotstxt`,
/// for `/robots.txt` itself, and of other schemes than http and https are not checked.
///
/// In a job the fetched files are saved, so a restart does not fetch them again before they expire. With a shared queue they go with their
/// hosts to the next process.
#[derive(Clone)]
pub struct RobotsTxt(Arc<Inner>);

struct Inner {
    agent: Option<String>,
    default_agent: String,
    allow_on_error: bool,
    ttl: Duration,
    error_ttl: Duration,
    retries: Vec<Duration>,
    max_delay: Duration,
    clamp: bool,
    cache: Mutex<Cache>,
    fetch: Fetch,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Response, FetchError>> + Send>>;
/// Fetches a file: through the engine, or with a function of a test.
type Fetch = Box<dyn Fn(Request, Context) -> Fetching + Send + Sync>;

/// The reason why a request is dropped whose robots.txt could not be had.
const ROBOTS_UNREACHABLE: &str = "robots_unreachable";
/// Maximum number of redirects that are followed for a file (RFC 9309, section 2.3.1.2).
const MAX_REDIRECTS: u64 = 5;
/// A file is kept at least this long, whatever its max-age says.
const MIN_TTL: Duration = Duration::from_secs(300);
/// Maximum bytes of the rules of all files together; those of a hostile file take up to 3 MiB.
const MAX_CACHE_BYTES: usize = 64 << 20;

/// The result for one authority, and how long it holds.
#[derive(Debug)]
struct CachedVerdict {
    verdict: Verdict,
    /// After this time the file is requested again.
    until: Timestamp,
    /// Number of failed fetches in a row.
    failures: usize,
}

#[derive(Debug)]
enum Verdict {
    /// The rules of the file, which may be empty.
    Rules { rules: RobotsAgent, delay: Duration },
    /// The file asks for a longer delay than we accept.
    TooSlow(Duration),
    /// The file could not be fetched; it will be requested again.
    Wait(String),
    /// The file could not be fetched several times, or no request to its host is allowed at all.
    Refuse { reason: &'static str, why: String, kind: FetchErrorKind },
}

/// One fetch, shared by all requests that wait for it. If the task that fetches is dropped, another one takes over.
#[derive(Debug, Default)]
struct Entry {
    cached: OnceCell<CachedVerdict>,
    /// Number of failures in a row before this fetch.
    failures: usize,
}

/// A bounded cache; the least recently used entries are removed first.
#[derive(Debug)]
struct Cache {
    entries: HashMap<String, (Arc<Entry>, u64)>,
    clock: u64,
    bytes: usize,
    max: usize,
    max_bytes: usize,
    /// Changes to be written to the job; `None` without a job.
    changes: Option<Vec<Change>>,
    /// Files for the processes that work on their hosts later; `None` unless the queue is shared.
    notes: Option<Vec<HostNote>>,
}

/// The result of fetching a robots.txt.
struct FetchedRules {
    cached: CachedVerdict,
    /// Its serialized form for the job, if it is worth keeping.
    stored: Option<Vec<u8>>,
}

impl RobotsTxt {
    /// Creates the component from the settings; `None` if `robotstxt_obey` is off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RobotsSettings = settings.of()?;
        Ok(own.robotstxt_obey.then(|| {
            Self::with_fetch(
                settings,
                Box::new(|request, cx| Box::pin(async move { cx.download(request).await })),
            )
        }))
    }

    fn with_fetch(settings: &Settings, fetch: Fetch) -> Self {
        let own: RobotsSettings = settings.of_or_default();
        Self(Arc::new(Inner {
            agent: own.robotstxt_user_agent.clone(),
            default_agent: settings.user_agent.clone(),
            allow_on_error: own.robots_on_error == OnRobotsError::Allow,
            ttl: seconds(own.robots_ttl),
            error_ttl: seconds(own.robots_error_ttl),
            retries: own.robots_retry_delays.iter().map(|delay| seconds(*delay)).collect(),
            max_delay: seconds(own.robots_max_crawl_delay),
            clamp: own.robots_over_cap == OverCap::Clamp,
            cache: Mutex::new(Cache::new(own.robots_cache_size)),
            fetch,
        }))
    }
}

impl Inner {
    /// The product token of a request.
    fn token<'a>(&'a self, request: &'a Request) -> &'a str {
        let own = || request.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let agent = self.agent.as_deref().or_else(own).unwrap_or(&self.default_agent);
        product_token(agent)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches and evaluates the file of an authority.
    async fn fetch_rules(
        &self,
        request: &Request,
        token: &str,
        failures: usize,
        cx: &Context,
    ) -> FetchedRules {
        let robots = robots_request(request);
        let authority = robots.url.origin().ascii_serialization();
        cx.stats().inc("robotstxt/request_count");
        let answer = (self.fetch)(robots, cx.clone()).await;
        let now = cx.now();
        let (why, kind) = match answer {
            Ok(response) => {
                let status = response.status;
                cx.stats().inc("robotstxt/response_count");
                cx.stats().inc(&format!("robotstxt/response_status_count/{}", status.as_u16()));
                match Meaning::of_status(status) {
                    Meaning::Parsed => return self.read(&authority, &response, token, cx),
                    Meaning::AllowAll => {
                        let until = now + self.lifetime(&response);
                        let cached = CachedVerdict::rules(RobotsAgent::allow_all(), Duration::ZERO, until);
                        return FetchedRules { cached, stored: Some(stored::none(until)) };
                    }
                    Meaning::DisallowAll => {
                        (format!("robots.txt of {authority} answered {status}"), FetchErrorKind::Middleware)
                    }
                }
            }
            Err(error) => {
                cx.stats().inc(&format!("robotstxt/exception_count/{}", error.kind().name()));
                if error.kind() == FetchErrorKind::AddressRefused {
                    // Another request would fail in the same way.
                    let (reason, why) = (error.kind().name(), error.to_string());
                    let verdict = Verdict::Refuse { reason, why, kind: error.kind() };
                    return CachedVerdict { verdict, until: now + self.ttl, failures: 0 }.into();
                }
                (format!("robots.txt of {authority} cannot be had: {error}"), error.kind())
            }
        };
        cx.stats().inc("robotstxt/unreachable");
        if self.allow_on_error {
            log::warn!(%authority, "everything is allowed: {}", why.escape_debug());
            return CachedVerdict::rules(RobotsAgent::allow_all(), Duration::ZERO, now + self.error_ttl)
                .into();
        }
        match self.retries.get(failures) {
            Some(delay) => {
                log::info!(%authority, retry_in = ?delay, "its requests wait: {}", why.escape_debug());
                CachedVerdict { verdict: Verdict::Wait(why), until: now + *delay, failures: failures + 1 }
                    .into()
            }
            None => {
                log::warn!(%authority, "its requests are dropped: {}", why.escape_debug());
                let verdict = Verdict::Refuse { reason: ROBOTS_UNREACHABLE, why, kind };
                CachedVerdict { verdict, until: now + self.error_ttl, failures: 0 }.into()
            }
        }
    }

    /// Evaluates a response with the file.
    fn read(&self, authority: &str, response: &Response, token: &str, cx: &Context) -> FetchedRules {
        let robots = Robots::parse(&response.body);
        let sitemaps: Vec<String> = robots.sitemaps(&response.url).iter().map(ToString::to_string).collect();
        cx.emit(&Event::RobotsParsed { authority, sitemaps: &sitemaps });
        let until = cx.now() + self.lifetime(response);
        let rules = robots.agent(token);
        if let Some(asked) = rules.delay().filter(|asked| *asked > self.max_delay) {
            cx.stats().inc("robotstxt/over_cap");
            if self.clamp {
                log::warn!(%authority, ?asked, used = ?self.max_delay, "robots.txt asks for a longer delay than we accept");
            } else {
                log::warn!(%authority, ?asked, "skipped: robots.txt asks for a longer delay than we accept");
            }
        }
        let stored = self.cache().is_kept().then(|| stored::file(until, &response.body));
        FetchedRules { cached: self.verdict(rules, until), stored }
    }

    /// Applies our limits to the rules.
    fn verdict(&self, rules: RobotsAgent, until: Timestamp) -> CachedVerdict {
        let asked = rules.delay().unwrap_or_default();
        if asked > self.max_delay && !self.clamp {
            return CachedVerdict { verdict: Verdict::TooSlow(asked), until, failures: 0 };
        }
        CachedVerdict::rules(rules, asked.min(self.max_delay), until)
    }

    /// How long a file may be used.
    fn lifetime(&self, response: &Response) -> Duration {
        let max_age = response
            .headers
            .get_all(header::CACHE_CONTROL)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .find_map(|directive| {
                let (name, value) = directive.split_once('=')?;
                let seconds = value.trim().trim_matches('"').parse().ok()?;
                name.trim().eq_ignore_ascii_case("max-age").then(|| Duration::from_secs(seconds))
            });
        max_age.map_or(self.ttl, |age| age.max(MIN_TTL).min(self.ttl))
    }
}

impl CachedVerdict {
    fn rules(rules: RobotsAgent, delay: Duration, until: Timestamp) -> Self {
        Self { verdict: Verdict::Rules { rules, delay }, until, failures: 0 }
    }

    fn bytes(&self) -> usize {
        let heap = match &self.verdict {
            Verdict::Rules { rules, .. } => rules.heap_bytes(),
            Verdict::TooSlow(_) => 0,
            Verdict::Wait(why) | Verdict::Refuse { why, .. } => why.len(),
        };
        heap + size_of::<Self>()
    }
}

impl From<CachedVerdict> for FetchedRules {
    fn from(cached: CachedVerdict) -> Self {
        Self { cached, stored: None }
    }
}

/// The request for the file of an authority. It is marked so that it is not checked itself, ignores the scope, and is
/// neither retried nor delivered.
fn robots_request(request: &Request) -> Request {
    let mut url = request.url.clone();
    url.set_path("/robots.txt");
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let mut robots = Request::get(url)
        .unfiltered()
        .with_meta(meta::IS_ROBOTS_TXT, true)
        .with_meta(meta::DONT_OBEY_ROBOTSTXT, true)
        .with_meta(meta::ALLOW_OFFSITE, true)
        .with_meta(meta::DONT_RETRY, true)
        .with_meta(meta::DONT_METAREFRESH, true)
        .with_meta(meta::DONT_MERGE_COOKIES, true)
        .with_meta(meta::REDIRECT_TTL, MAX_REDIRECTS)
        // One byte more than is read, so that the parser can tell that its last line was truncated.
        .with_meta(meta::DOWNLOAD_MAXSIZE, MAX_BYTES as u64 + 1)
        .with_meta(meta::DOWNLOAD_TRUNCATE, true)
        .with_meta(meta::DOWNLOAD_BINARY, true);
    request.share_meta(meta::DOWNLOAD_SLOT, &mut robots);
    request.share_meta(meta::PROXY, &mut robots);
    if let Some(agent) = request.headers.get(header::USER_AGENT) {
        robots.headers.insert(header::USER_AGENT, agent.clone());
    }
    robots
}

impl Cache {
    fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            clock: 0,
            bytes: 0,
            max: max.max(1),
            max_bytes: MAX_CACHE_BYTES,
            changes: None,
            notes: None,
        }
    }

    /// The entry of a key; a new one if there is none or it has expired.
    fn entry(&mut self, key: &str, now: Timestamp) -> Arc<Entry> {
        self.clock += 1;
        let clock = self.clock;
        let mut failures = 0;
        if let Some((entry, used)) = self.entries.get_mut(key) {
            match entry.cached.get() {
                Some(cached) if cached.until <= now => failures = cached.failures,
                _ => {
                    *used = clock;
                    return Arc::clone(entry);
                }
            }
        }
        let entry = Arc::new(Entry { failures, ..Entry::default() });
        if let Some((old, _)) = self.entries.insert(key.to_owned(), (Arc::clone(&entry), clock)) {
            self.bytes = self.bytes.saturating_sub(old.cached.get().map_or(0, CachedVerdict::bytes));
        }
        entry
    }

    /// Updates the size of the cache with the result for a key, and evicts entries if needed.
    fn fetched(&mut self, host: &HostKey, key: &str, fetched: &FetchedRules) {
        if let (Some(notes), Some(stored)) = (&mut self.notes, &fetched.stored) {
            notes.push(stored::note(host, key, stored));
        }
        if let Some(changes) = &mut self.changes {
            changes.push((key.as_bytes().to_vec(), fetched.stored.clone()));
        }
        self.add_bytes(fetched.cached.bytes());
    }

    /// Whether files are kept anywhere else.
    fn is_kept(&self) -> bool {
        self.changes.is_some() || self.notes.is_some()
    }

    /// Adds to the size of the cache, and evicts entries if it is too large.
    fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        while self.entries.len() > self.max || self.bytes > self.max_bytes {
            // A tenth is evicted at a time: scanning all ages for each new authority would be quadratic.
            let mut ages: Vec<u64> = self
                .entries
                .values()
                .filter(|(entry, _)| entry.cached.initialized())
                .map(|(_, used)| *used)
                .collect();
            if ages.is_empty() {
                return;
            }
            let tenth = ages.len() / 10;
            let (_, limit, _) = ages.select_nth_unstable(tenth);
            let limit = *limit;
            let mut freed = 0;
            let changes = &mut self.changes;
            self.entries.retain(|key, (entry, used)| {
                let cached = entry.cached.get();
                let keep = cached.is_none() || *used > limit;
                if let (false, Some(changes)) = (keep, &mut *changes) {
                    changes.push((key.as_bytes().to_vec(), None));
                }
                freed += if keep { 0 } else { cached.map_or(0, CachedVerdict::bytes) };
                keep
            });
            self.bytes = self.bytes.saturating_sub(freed);
        }
    }
}

impl Component for RobotsTxt {
    const NAME: &'static str = "robots_txt";
    type Settings = RobotsSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(100).persist().hand_over()
    }
}

impl DownloaderMiddleware for RobotsTxt {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        if request.meta_flag(meta::DONT_OBEY_ROBOTSTXT)
            || !matches!(request.url.scheme(), "http" | "https")
            || request.url.path() == "/robots.txt"
        {
            return Ok(OnRequest::Continue);
        }
        let robots = &*self.0;
        let token = robots.token(request).to_owned();
        let key = format!("{} {}", &request.url[..url::Position::BeforePath], token.to_ascii_lowercase());
        let entry = robots.cache().entry(&key, cx.now());
        let fetch_rules = || async {
            let fetched = robots.fetch_rules(request, &token, entry.failures, cx).await;
            robots.cache().fetched(&request.host(), &key, &fetched);
            fetched.cached
        };
        let cached = entry.cached.get_or_init(fetch_rules).await;
        match &cached.verdict {
            Verdict::Rules { rules, delay } => {
                // The delay is set for each request, because a slot that was idle for long has forgotten it.
                if !delay.is_zero() {
                    cx.set_politeness(&request.host(), Politeness::CrawlDelay(*delay)).await;
                }
                let decision = rules.decide_url(&request.url);
                if decision.allowed {
                    if let Some(line) = decision.line {
                        let line = format!("{line} (line {})", line.number);
                        added::set_meta(request, meta::ROBOTS_LINE, line);
                    }
                    return Ok(OnRequest::Continue);
                }
                cx.stats().inc("robotstxt/forbidden");
                let line = decision.line.map(|line| line.to_string()).unwrap_or_default();
                cx.emit(&Event::RobotsBlocked { url: request.url.as_str(), line: &line });
                Ok(OnRequest::Drop(DropReason::skipped("robots").detail(line)))
            }
            Verdict::TooSlow(asked) => {
                let detail = format!("robots.txt asks for a delay of {} s", asked.as_secs_f64());
                Ok(OnRequest::Drop(DropReason::skipped("crawl_delay").detail(detail)))
            }
            Verdict::Wait(_) => {
                let mut parked = request.clone();
                added::strip(&mut parked);
                parked.not_before = Some(cached.until);
                parked.set_meta(meta::PARKED_REASON, ROBOTS_UNREACHABLE.to_owned());
                chain::set_unfiltered(&mut parked, Self::NAME);
                Ok(OnRequest::Reschedule(Box::new(parked)))
            }
            Verdict::Refuse { reason, why, kind } => {
                let dropped = match *reason {
                    ROBOTS_UNREACHABLE => {
                        let error = Error::from(FetchError::new(*kind, why.clone()));
                        DropReason::failed(*reason).with_error(error.context(*reason))
                    }
                    _ => DropReason::skipped(*reason),
                };
                Ok(OnRequest::Drop(dropped.detail(why.clone())))
            }
        }
    }
}

impl std::fmt::Debug for RobotsTxt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RobotsTxt").field("agent", &self.0.agent).finish_non_exhaustive()
    }
}

/// The URL of the robots.txt that applies to a URL.
pub fn robots_url(url: &Url) -> Option<Url> {
    matches!(url.scheme(), "http" | "https").then(|| robots_request(&Request::get(url.clone())).url)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use huntsman_crawler::FetchErrorKind;

    type Answer = dyn Fn(&Request, usize) -> Result<Response, FetchError> + Send + Sync;

    struct Bench {
        robots: Arc<RobotsTxt>,
        cx: Context,
        fetches: Arc<AtomicUsize>,
    }

    /// A middleware whose files come from a closure, one second after they are requested.
    fn bench(
        change: impl FnOnce(&mut Settings),
        answer: impl Fn(&Request, usize) -> Result<Response, FetchError> + Send + Sync + 'static,
    ) -> Bench {
        let mut settings = Settings::default();
        change(&mut settings);
        let fetches = Arc::new(AtomicUsize::new(0));
        let answer: Arc<Answer> = Arc::new(answer);
        let counter = Arc::clone(&fetches);
        let fetch = move |request: Request, _: Context| -> Fetching {
            let n = counter.fetch_add(1, Ordering::Relaxed);
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                answer(&request, n)
            })
        };
        let robots = Arc::new(RobotsTxt::with_fetch(&settings, Box::new(fetch)));
        Bench { robots, cx: Context::detached(settings), fetches }
    }

    fn file(request: &Request, status: u16, body: &str) -> Result<Response, FetchError> {
        Ok(Response::new(request.url.clone(), StatusCode::from_u16(status).unwrap(), body.to_owned()))
    }

    impl Bench {
        async fn ask_for(&self, mut request: Request) -> String {
            match self.robots.process_request(&mut request, &self.cx).await.unwrap() {
                OnRequest::Continue => "allowed".to_owned(),
                OnRequest::Drop(reason) => reason.reason.into_owned(),
                OnRequest::Reschedule(parked) => {
                    assert!(
                        parked.unfiltered
                            && parked.meta_text(meta::PARKED_REASON) == Some("robots_unreachable")
                    );
                    format!("wait {}", parked.not_before.unwrap().since(self.cx.now()).as_secs_f64().round())
                }
                other => panic!("{other:?}"),
            }
        }

        async fn ask(&self, url: &str) -> String {
            self.ask_for(Request::parse(url).unwrap()).await
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::Relaxed)
        }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_line_that_decides_is_named() {
        let bench =
            bench(|_| {}, |request, _| file(request, 200, "User-agent: *\nDisallow: /a\nAllow: /a/b\n"));
        let mut request = Request::parse("http://h/a?x").unwrap();
        let OnRequest::Drop(reason) = bench.robots.process_request(&mut request, &bench.cx).await.unwrap()
        else {
            panic!("allowed")
        };
        assert_eq!(reason, DropReason::skipped("robots").detail("Disallow: /a"));
        assert_eq!(bench.ask("http://h/a/b").await, "allowed");
        assert_eq!((bench.cx.stats().get("robotstxt/forbidden"), bench.fetches()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn one_fetch_serves_all_requests_that_wait_for_it() {
        let bench = Arc::new(bench(|_| {}, |request, _| file(request, 200, "")));
        let tasks: Vec<_> = (0..50)
            .map(|n| {
                let bench = Arc::clone(&bench);
                tokio::spawn(async move { bench.ask(&format!("http://h/{n}")).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), "allowed");
        }
        assert_eq!(bench.fetches(), 1);
        for other in ["https://h/", "http://h:8080/", "http://g/"] {
            bench.ask(other).await;
        }
        assert_eq!(bench.fetches(), 4, "one per scheme, host and port");
    }

    #[tokio::test(start_paused = true)]
    async fn another_task_takes_over_when_the_one_that_fetches_is_dropped() {
        let bench = Arc::new(bench(|_| {}, |request, _| file(request, 200, "User-agent: *\nDisallow: /")));
        let first = tokio::spawn({
            let bench = Arc::clone(&bench);
            async move { bench.ask("http://h/1").await }
        });
        let second = tokio::spawn({
            let bench = Arc::clone(&bench);
            async move { bench.ask("http://h/2").await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        first.abort();
        assert_eq!(second.await.unwrap(), "robots");
        assert_eq!(bench.fetches(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_goes_with_its_host_to_another_process() {
        use huntsman_crawler::HandOver;

        let first = bench(|_| {}, |request, _| file(request, 200, "User-agent: *\nDisallow: /a"));
        first.robots.begin();
        assert_eq!(first.ask("http://h/a").await, "robots");
        let notes = first.robots.learnt();
        assert_eq!((notes.len(), notes[0].host.as_str()), (1, "h"));
        assert!(first.robots.learnt().is_empty(), "it is told once");
        let second = bench(|_| {}, |request, _| file(request, 200, ""));
        let of_another = HostNote { about: "cookies http://h".to_owned(), ..notes[0].clone() };
        for note in [&of_another, &notes[0]] {
            second.robots.take_over(note);
        }
        assert_eq!((second.ask("http://h/a").await.as_str(), second.fetches()), ("robots", 0));
        let torn = HostNote { value: vec![b'f', 1], ..notes[0].clone() };
        let third = bench(|_| {}, |request, _| file(request, 200, ""));
        third.robots.take_over(&torn);
        assert_eq!((third.ask("http://h/a").await.as_str(), third.fetches()), ("allowed", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn statuses_allow_forbid_or_wait() {
        for (status, expected) in [
            (200, "robots"),
            (206, "robots"),
            (400, "allowed"),
            (401, "allowed"),
            (403, "allowed"),
            (404, "allowed"),
            (410, "allowed"),
            (429, "wait 10"),
            (500, "wait 10"),
            (503, "wait 10"),
            (302, "wait 10"),
        ] {
            // The body of a response without a success status is ignored.
            let bench = bench(|_| {}, move |request, _| file(request, status, "User-agent: *\nDisallow: /"));
            assert_eq!(bench.ask("http://h/a").await, expected, "{status}");
            let key = format!("robotstxt/response_status_count/{status}");
            assert_eq!(bench.cx.stats().get(&key), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn robots_5xx_parks_the_host_then_gives_up_for_a_while() {
        let bench = bench(|_| {}, |_, _| Err(FetchError::new(FetchErrorKind::Reset, "reset by peer")));
        assert_eq!(bench.ask("http://h/a").await, "wait 10");
        pass(5).await;
        assert_eq!(bench.ask("http://h/b").await, "wait 5");
        assert_eq!(bench.fetches(), 1);
        pass(5).await;
        assert_eq!(bench.ask("http://h/a").await, "wait 60");
        pass(60).await;
        assert_eq!(bench.ask("http://h/a").await, "wait 300");
        pass(300).await;
        assert_eq!(bench.ask("http://h/a").await, "robots_unreachable");
        assert_eq!(bench.ask("http://h/b").await, "robots_unreachable");
        pass(3_590).await;
        assert_eq!(bench.ask("http://h/c").await, "robots_unreachable");
        assert_eq!(bench.fetches(), 4);
        pass(20).await;
        assert_eq!(bench.ask("http://h/c").await, "wait 10", "the hour is over: it is asked again");
        assert_eq!(bench.cx.stats().get("robotstxt/exception_count/connection_reset"), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_may_not_be_asked_is_not_waited_for() {
        let bench =
            bench(|_| {}, |_, _| Err(FetchError::new(FetchErrorKind::AddressRefused, "private address")));
        assert_eq!(bench.ask("http://h/a").await, "address_refused");
        assert_eq!(bench.ask("http://h/b").await, "address_refused");
        assert_eq!(bench.fetches(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_comes_back_lets_the_parked_go_on() {
        let bench = bench(|_| {}, |request, n| file(request, if n < 2 { 503 } else { 200 }, ""));
        assert_eq!(bench.ask("http://h/a").await, "wait 10");
        pass(10).await;
        assert_eq!(bench.ask("http://h/a").await, "wait 60");
        pass(60).await;
        assert_eq!(bench.ask("http://h/a").await, "allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_can_mean_allowed() {
        let allow = |settings: &mut Settings| {
            settings.change(|own: &mut RobotsSettings| own.robots_on_error = OnRobotsError::Allow)
        };
        let bench = bench(allow, |request, _| file(request, 500, "User-agent: *\nDisallow: /"));
        assert_eq!(bench.ask("http://h/a").await, "allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_good_for_a_day_or_its_max_age() {
        for (max_age, good_for) in
            [(None, 86_400), (Some("public, Max-Age=600"), 600), (Some("max-age=1"), 300)]
        {
            let bench = bench(
                |_| {},
                move |request, _| {
                    let mut response = file(request, 200, "")?;
                    if let Some(value) = max_age {
                        response.headers.insert("cache-control", value.parse().unwrap());
                    }
                    Ok(response)
                },
            );
            bench.ask("http://h/").await;
            pass(good_for - 1).await;
            bench.ask("http://h/").await;
            assert_eq!(bench.fetches(), 1, "{max_age:?}");
            pass(2).await;
            bench.ask("http://h/").await;
            assert_eq!(bench.fetches(), 2, "{max_age:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_above_the_cap_skips_the_authority_or_is_clamped() {
        let slow = |request: &Request, _| file(request, 200, "User-agent: *\nCrawl-delay: 31\n");
        let skipping = bench(|_| {}, slow);
        assert_eq!(skipping.ask("http://h/a").await, "crawl_delay");
        let clamping = bench(
            |settings| settings.change(|own: &mut RobotsSettings| own.robots_over_cap = OverCap::Clamp),
            slow,
        );
        assert_eq!(clamping.ask("http://h/a").await, "allowed");
        let within = bench(|_| {}, |request, _| file(request, 200, "User-agent: *\nRequest-rate: 1/30\n"));
        assert_eq!(within.ask("http://h/a").await, "allowed");
    }

    #[tokio::test(start_paused = true)]
    async fn the_product_token_comes_from_the_setting_or_the_request() {
        let text = "User-agent: special\nDisallow: /s\n\nUser-agent: huntsman\nDisallow: /h\n";
        let bench = bench(|_| {}, move |request, _| file(request, 200, text));
        assert_eq!(bench.ask("http://h/h").await, "robots");
        let own = |path: &str| {
            Request::parse(&format!("http://h{path}")).unwrap().header("User-Agent", "Special/2 (x)").unwrap()
        };
        assert_eq!(bench.ask_for(own("/s")).await, "robots");
        assert_eq!(bench.ask_for(own("/h")).await, "allowed");
        let settled = |settings: &mut Settings| {
            settings.change(|own: &mut RobotsSettings| own.robotstxt_user_agent = Some("special".to_owned()))
        };
        let bench = super::tests::bench(settled, move |request, _| file(request, 200, text));
        assert_eq!(bench.ask("http://h/s").await, "robots");
    }

    #[tokio::test(start_paused = true)]
    async fn some_requests_are_never_checked() {
        let bench = bench(|_| {}, |request, _| file(request, 200, "User-agent: *\nDisallow: /"));
        for unchecked in [
            Request::parse("http://h/robots.txt").unwrap(),
            Request::parse("data:text/html,x").unwrap(),
            Request::parse("file:///tmp/x").unwrap(),
            Request::parse("http://h/a").unwrap().with_meta(meta::DONT_OBEY_ROBOTSTXT, true),
        ] {
            assert_eq!(bench.ask_for(unchecked).await, "allowed");
        }
        assert_eq!(bench.fetches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_fetch_is_marked_and_keeps_the_slot() {
        let bench = bench(
            |_| {},
            |request, _| {
                assert_eq!(request.url.as_str(), "http://h:81/robots.txt");
                assert!(request.meta_flag(meta::IS_ROBOTS_TXT) && request.meta_flag(meta::ALLOW_OFFSITE));
                assert_eq!(
                    (request.host().as_str(), request.meta_text(meta::PROXY)),
                    ("s", Some("http://p:1"))
                );
                file(request, 200, "")
            },
        );
        let request = Request::parse("http://u:p@h:81/a?b#c").unwrap();
        bench.ask_for(request.meta("download_slot", "s").meta("proxy", "http://p:1")).await;
        assert_eq!(bench.fetches(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_bounded_and_forgets_the_oldest() {
        let small =
            |settings: &mut Settings| settings.change(|own: &mut RobotsSettings| own.robots_cache_size = 100);
        let bench = bench(small, |request, _| file(request, 200, ""));
        for n in 0..500 {
            bench.ask(&format!("http://h{n}/")).await;
            bench.ask("http://often/").await;
        }
        assert!(bench.robots.0.cache().entries.len() <= 100);
        assert_eq!(bench.fetches(), 501, "what is used stays");
    }

    #[tokio::test(start_paused = true)]
    async fn hostile_files_do_not_fill_the_memory() {
        let lines: String = (0..1_000).map(|n| format!("Disallow:/{n}\n")).collect();
        let text = format!("User-agent:*\n{lines}");
        let bench = bench(|_| {}, move |request, _| file(request, 200, &text));
        let limit = 1 << 20;
        bench.robots.0.cache().max_bytes = limit;
        for n in 0..60 {
            bench.ask(&format!("http://h{n}/")).await;
        }
        let cache = bench.robots.0.cache();
        let held: usize = cache.entries.values().map(|(entry, _)| entry.cached.get().unwrap().bytes()).sum();
        assert_eq!(held, cache.bytes);
        assert!(held <= limit && held > limit / 2, "{held}");
    }
}
