//! Checks over a network: sources are read by a crawl that is kept open.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::CONTENT_TYPE;
use huntsman_crawler::{
    Context, CrawlReport, CrawlerBuilder, DownloaderMiddleware, DropReason, Error, Event, Handle,
    HttpDownloader, Observer, OnRequest, Output, Page, Request, Result, Spider, Start,
};
use huntsman_detect::copyvio::{Article, Check, CheckOptions, CheckResult, Evidence, Exclusions, Text};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use url::Url;

use super::pdf::PdfText;
use super::reading::{NoText, TextKind};
use crate::{Defaults, added};

/// Reads sources and compares articles with them: any number of checks at once, at most one request in flight to each registrable
/// domain over all of them, with robots.txt, the address guard and all limits of a crawl.
///
/// A check ends when all its sources were read, when one is a violation (short circuit: those in flight still count, those that were
/// not begun are skipped), or when its time is over: what is in flight then is cut off, and those sources are late.
///
/// ```no_run
/// # async fn run() -> huntsman_crawler::Result<()> {
/// use std::sync::Arc;
/// use huntsman_detect::copyvio::Text;
/// use huntsman_middleware::copyvio::{CheckPlan, Workspace};
///
/// let workspace = Workspace::start(None, |crawler| crawler)?;
/// let article = Arc::new(Text::new("The old mill stands on the bank of the river."));
/// let checked = workspace.check(article, ["https://example.org/mill"], CheckPlan::default()).await?;
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
    /// Sources that are not read.
    pub exclusions: Option<Arc<Exclusions>>,
    /// What links of mirrors of the article's wiki have in them.
    pub mirror_hints: Arc<[String]>,
    /// Whether texts are given back with the result.
    pub keep_texts: bool,
}

impl Default for CheckPlan {
    fn default() -> Self {
        Self {
            options: CheckOptions::default(),
            max_time: Duration::from_secs(30),
            source_time: Duration::from_secs(5),
            exclusions: None,
            mirror_hints: Arc::default(),
            keep_texts: false,
        }
    }
}

/// What came of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The reference's numbers, the most suspicious source first.
    pub result: CheckResult,
    /// By source.
    pub found: HashMap<String, Found>,
    /// How long it took.
    pub time: Duration,
}

/// What was found in a source that was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// What it shares with the article.
    pub evidence: Evidence,
    /// What it says, if texts are kept.
    pub text: Option<Text>,
}

/// What comes of a source.
#[derive(Debug)]
enum Arrival {
    Text(Box<Text>),
    Excluded(String),
    Failed(String),
}

/// Reason of a request for which nobody waits any more.
const NOT_WANTED: &str = "not_wanted";
/// Domains that are asked at once: as many as the reference has workers.
const WORKERS: usize = 8;

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
        let desk = Desk { checks: Arc::default(), pdf };
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
            let _closing = Closing(closing);
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

    /// Compares an article with sources. Equal addresses are read once.
    ///
    /// # Errors
    /// The workspace is finished, or a comparison panicked.
    pub async fn check(
        &self,
        article: Arc<Text>,
        sources: impl IntoIterator<Item = impl Into<String>>,
        plan: CheckPlan,
    ) -> Result<Checked> {
        let mut seen = HashSet::new();
        let sources: Vec<String> = sources
            .into_iter()
            .map(Into::into)
            .filter(|source: &String| seen.insert(source.clone()))
            .collect();
        let workspace = self.clone();
        tokio::task::spawn_blocking(move || workspace.run(&article, &sources, &plan)).await?
    }

    fn run(&self, article: &Text, sources: &[String], plan: &CheckPlan) -> Result<Checked> {
        let start = Instant::now();
        let mut check = Check::new(article.exact(), plan.options);
        let prepared = Article::new(article.document());
        let mut found = HashMap::new();
        let (send, arrivals) = mpsc::channel();
        let number = self.0.desk.open(send, start + plan.max_time, plan)?;
        let _closing = ClosingCheck { desk: &self.0.desk, number };
        let mut waiting: HashSet<usize> = HashSet::new();
        for (at, source) in sources.iter().enumerate() {
            let rule = plan.exclusions.as_ref().and_then(|exclusions| exclusions.rule_for(source));
            if check.is_over() {
                check.skip(source);
            } else if let Some(rule) = rule {
                check.exclude(source, rule);
            } else {
                match Url::parse(source) {
                    Ok(url) if matches!(url.scheme(), "http" | "https") => {
                        waiting.insert(at);
                        if self.0.desk.order(&url, number, at) {
                            self.0.handle.push(Request::get(url).unfiltered());
                        }
                    }
                    Ok(url) => {
                        check.fail(source, format!("{}: is not fetched", url.scheme()));
                    }
                    Err(error) => {
                        check.fail(source, error.to_string());
                    }
                }
            }
        }
        let mut is_over = check.is_over();
        while !waiting.is_empty() {
            let left = (start + plan.max_time).saturating_duration_since(Instant::now());
            let (at, arrival) = match arrivals.recv_timeout(left) {
                Ok(arrived) => arrived,
                Err(RecvTimeoutError::Timeout) => break,
                // The crawl has ended.
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if !waiting.remove(&at) {
                continue;
            }
            let source = &sources[at];
            match arrival {
                Arrival::Text(text) => {
                    check.compare(source, text.exact());
                    let evidence = prepared.compare(&text.document());
                    let text = plan.keep_texts.then_some(*text);
                    found.insert(source.clone(), Found { evidence, text });
                }
                Arrival::Excluded(why) => {
                    check.exclude(source, why);
                }
                Arrival::Failed(why) => {
                    check.fail(source, why);
                }
            }
            if check.is_over() && !is_over {
                is_over = true;
                let begun = self.0.desk.no_more(number);
                waiting.retain(|at| {
                    let is_begun = begun.contains(at);
                    if !is_begun {
                        check.skip(&sources[*at]);
                    }
                    is_begun
                });
            }
        }
        let mut late: Vec<usize> = waiting.into_iter().collect();
        late.sort_unstable();
        late.into_iter().for_each(|at| {
            check.late(&sources[at]);
        });
        Ok(Checked { result: check.finish(), found, time: start.elapsed() })
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

/// The spider of the crawl that reads sources: hands them to their checks. Seen only by the closure that configures that crawl.
#[derive(Clone)]
pub struct Desk {
    checks: Arc<Mutex<Checks>>,
    pdf: Option<Arc<dyn PdfText>>,
}

#[derive(Default)]
struct Checks {
    last: u64,
    open: HashMap<u64, Open>,
    /// Whose sources these URLs are, each once, and which.
    orders: HashMap<String, Order>,
    is_closed: bool,
}

/// A check that waits for sources.
struct Open {
    send: mpsc::Sender<(usize, Arrival)>,
    end: Instant,
    source_time: Duration,
    mirror_hints: Arc<[String]>,
    begun: HashSet<usize>,
    /// Nothing more is begun.
    is_over: bool,
}

/// A URL that is in the queue or on its way.
#[derive(Default)]
struct Order {
    checks: Vec<(u64, usize)>,
    is_begun: bool,
}

impl Desk {
    const NAME: &'static str = "copyvio_desk";
    /// Before robots.txt and all others: what nobody wants costs nothing.
    const ORDER: i32 = 10;

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, send: mpsc::Sender<(usize, Arrival)>, end: Instant, plan: &CheckPlan) -> Result<u64> {
        let mut checks = self.checks();
        if checks.is_closed {
            return Err(Error::usage("this workspace is finished"));
        }
        checks.last += 1;
        let number = checks.last;
        let (source_time, mirror_hints) = (plan.source_time, Arc::clone(&plan.mirror_hints));
        let open = Open { send, end, source_time, mirror_hints, begun: HashSet::new(), is_over: false };
        checks.open.insert(number, open);
        Ok(number)
    }

    /// Takes note of who wants a URL; says whether it is to be asked for.
    fn order(&self, url: &Url, number: u64, source: usize) -> bool {
        let mut checks = self.checks();
        let order = checks.orders.entry(url.as_str().to_owned()).or_default();
        let is_first = order.checks.is_empty();
        order.checks.push((number, source));
        if order.is_begun
            && let Some(open) = checks.open.get_mut(&number)
        {
            open.begun.insert(source);
        }
        is_first
    }

    /// Nothing more of a check is begun; which sources were.
    fn no_more(&self, number: u64) -> HashSet<usize> {
        let mut checks = self.checks();
        let Some(open) = checks.open.get_mut(&number) else { return HashSet::new() };
        open.is_over = true;
        open.begun.clone()
    }

    /// How long a URL that is about to be asked for may take; `None` if nobody wants it any more.
    fn begin(&self, url: &str) -> Option<Duration> {
        let mut checks = self.checks();
        let Checks { open, orders, .. } = &mut *checks;
        let order = orders.get_mut(url)?;
        let now = Instant::now();
        let mut time = Duration::ZERO;
        for (number, source) in &order.checks {
            let Some(open) = open.get_mut(number) else { continue };
            // A redirect of one that was begun goes on.
            if !open.is_over || open.begun.contains(source) {
                open.begun.insert(*source);
                time = time.max(open.source_time.min(open.end.saturating_duration_since(now)));
            }
        }
        if time.is_zero() {
            orders.remove(url);
            return None;
        }
        order.is_begun = true;
        Some(time)
    }

    /// Tells those who want a URL what came of it.
    fn deliver(&self, url: &str, arrival: impl Fn(&[String]) -> Arrival) {
        let waiting: Vec<_> = {
            let mut checks = self.checks();
            let Some(order) = checks.orders.remove(url) else { return };
            let of_open = |(number, source): (u64, usize)| {
                let open = checks.open.get(&number)?;
                Some((open.send.clone(), source, Arc::clone(&open.mirror_hints)))
            };
            order.checks.into_iter().filter_map(of_open).collect()
        };
        for (send, source, hints) in waiting {
            // Who waited may have ended meanwhile.
            let _ = send.send((source, arrival(&hints)));
        }
    }
}

struct ClosingCheck<'a> {
    desk: &'a Desk,
    number: u64,
}

impl Drop for ClosingCheck<'_> {
    fn drop(&mut self) {
        self.desk.checks().open.remove(&self.number);
    }
}

/// Closes the checks of a crawl that has ended, in whatever way.
struct Closing(Desk);

impl Drop for Closing {
    fn drop(&mut self) {
        let mut checks = self.0.checks();
        checks.is_closed = true;
        checks.open.clear();
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("open", &self.checks().open.len()).finish_non_exhaustive()
    }
}

impl Spider for Desk {
    type Item = ();

    fn name(&self) -> &str {
        Self::NAME
    }

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, _: &mut Output<()>) -> Result<()> {
        let response = page.response();
        let media_type = response.content_type();
        let header = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let charset = header.and_then(huntsman_html::content_charset);
        self.deliver(page.request().requested_url(), |hints| {
            let text = TextKind::of_media(media_type.as_deref())
                .ok_or_else(|| NoText::MediaType(media_type.clone().unwrap_or_default()))
                .and_then(|kind| kind.read(&response.body, charset, hints, self.pdf.as_deref()));
            match text {
                Ok(text) => Arrival::Text(Box::new(text)),
                Err(NoText::Mirror(hint)) => Arrival::Excluded(hint.to_string()),
                Err(why) => Arrival::Failed(why.to_string()),
            }
        });
        Ok(())
    }
}

impl DownloaderMiddleware for Desk {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if request.is_nested() || request.meta_flag("robots") {
            return Ok(OnRequest::Continue);
        }
        let Some(time) = self.begin(request.requested_url()) else {
            return Ok(OnRequest::Drop(DropReason::skipped(NOT_WANTED)));
        };
        added::set_meta(request, "download_timeout", time.as_secs_f64().into());
        Ok(OnRequest::Continue)
    }
}

impl Observer for Desk {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        // Who asks for it by now has a request of their own in the queue.
        if dropped.component == Self::NAME {
            return;
        }
        let why = match &dropped.detail {
            Some(detail) => format!("{}: {detail}", dropped.reason),
            None => dropped.reason.to_string(),
        };
        self.deliver(&dropped.url, |_| Arrival::Failed(why.clone()));
    }
}
