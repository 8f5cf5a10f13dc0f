//! A local site for tests: it is built from routes, runs as a server, and records the requests of a crawl.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use url::Url;

use crate::answer::Answer;
use crate::record::{Log, Record, RecordedRequest, SiteRequest};
use crate::server::{self, Limits, Plan, Service};

/// The host that routes belong to until [`SiteBuilder::host`] names another.
pub const DEFAULT_HOST: &str = "127.0.0.1";

/// How long a dropped site may take to shut down; a handler that never returns is abandoned after that.
const MAX_END: Duration = Duration::from_secs(5);

type Route = Arc<dyn Fn(&SiteRequest) -> Answer + Send + Sync>;

/// The entry point for local sites; see [`Site::builder`].
#[derive(Clone, Copy, Debug)]
pub struct Site;

impl Site {
    /// A site without pages; every path gets 404 until routes are added.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use huntsman_testkit::{Answer, Site};
    /// let site = Site::builder()
    ///     .page("/", "<a href='/b'>b</a>")
    ///     .route("/b", |asked| Answer::text(format!("request number {}", asked.nth)))
    ///     .start()
    ///     .await;
    /// assert!(site.url("/b").as_str().starts_with("http://127.0.0.1:"));
    /// assert_eq!(site.count("/b"), 0);
    /// # }
    /// ```
    pub fn builder() -> SiteBuilder {
        SiteBuilder { current: DEFAULT_HOST.to_owned(), hosts: BTreeMap::new(), limits: Limits::default() }
    }
}

/// The routes of a site, by host.
#[derive(Clone)]
pub struct SiteBuilder {
    current: String,
    hosts: BTreeMap<String, Routes>,
    limits: Limits,
}

impl fmt::Debug for SiteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteBuilder")
            .field("hosts", &self.hosts.keys())
            .field("limits", &self.limits)
            .finish()
    }
}

#[derive(Clone, Default)]
struct Routes {
    exact: HashMap<String, Route>,
    /// Path prefixes, longest first.
    prefixes: Vec<(String, Route)>,
}

impl Routes {
    fn find(&self, target: &str) -> Option<&Route> {
        let path = target.split('?').next().unwrap_or_default();
        let exact = self.exact.get(target).or_else(|| self.exact.get(path));
        exact.or_else(|| {
            let matching = self.prefixes.iter().find(|(prefix, _)| path.starts_with(prefix.as_str()));
            matching.map(|(_, route)| route)
        })
    }
}

impl SiteBuilder {
    /// Sets the host that the following routes belong to (default [`DEFAULT_HOST`]).
    ///
    /// An IPv4 loopback address gets a listener of its own, on the same port as the others. Any other name is
    /// recognised by the `Host` header, or by the target of a proxy request, on all listeners.
    pub fn host(mut self, host: &str) -> Self {
        self.current = host.to_ascii_lowercase();
        self.hosts.entry(self.current.clone()).or_default();
        self
    }

    /// Adds an HTML page.
    pub fn page(self, path: &str, html: impl Into<String>) -> Self {
        let html = bytes::Bytes::from(html.into());
        self.route(path, move |_| Answer::html(html.clone()))
    }

    /// Adds a route that always gives the same response.
    pub fn answer(self, path: &str, answer: Answer) -> Self {
        self.route(path, move |_| answer.clone())
    }

    /// Adds a route. A path that ends with `*` matches all paths with that beginning (the longest match wins); a path
    /// with a query matches only that query, a path without one matches any query. If two paths are equal, the last
    /// one wins.
    ///
    /// If the handler panics, the client gets 500 and the test fails when the [`RunningSite`] is dropped.
    pub fn route(
        mut self,
        path: &str,
        handler: impl Fn(&SiteRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let route: Route = Arc::new(handler);
        let routes = self.hosts.entry(self.current.clone()).or_default();
        match path.strip_suffix('*') {
            Some(prefix) => {
                routes.prefixes.retain(|(known, _)| known != prefix);
                routes.prefixes.push((prefix.to_owned(), route));
                routes.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            }
            None => {
                routes.exact.insert(path.to_owned(), route);
            }
        }
        self
    }

    /// Adds a `/robots.txt`.
    pub fn robots(self, text: &str) -> Self {
        self.answer("/robots.txt", Answer::text(text.to_owned()))
    }

    /// Limits the time of every response (default 20 s); after it the connection is closed.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.limits.hold = hold;
        self
    }

    /// Limits the bytes of every response (default 64 MiB); after them the connection is closed.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Starts the server on a free port.
    ///
    /// # Panics
    /// If it cannot listen. Addresses other than 127.0.0.1 need an operating system on which all of 127.0.0.0/8 is
    /// local, such as Linux.
    pub async fn start(self) -> RunningSite {
        let (starting, ready) = self.launch();
        let port = ready.await.expect("the server answers before it ends").expect("the server can listen");
        starting.running(port)
    }

    /// Starts the server outside of an async runtime, for tests that drive a binary.
    ///
    /// # Panics
    /// As [`start`](Self::start), and if it is called within an async runtime.
    pub fn start_blocking(self) -> RunningSite {
        let (starting, ready) = self.launch();
        let port = ready.blocking_recv().expect("the server answers before it ends");
        starting.running(port.expect("the server can listen"))
    }

    /// The response that the site would give, without any network.
    pub(crate) fn answer_to(&self, request: &SiteRequest) -> Answer {
        let route = self.hosts.get(&request.host).and_then(|routes| routes.find(&request.target));
        match route {
            Some(route) => route(request),
            None => Answer::status(404).header("Content-Type", "text/html").body("<p>not found</p>"),
        }
    }

    fn launch(mut self) -> (Starting, oneshot::Receiver<std::io::Result<u16>>) {
        if self.hosts.is_empty() {
            self.hosts.insert(DEFAULT_HOST.to_owned(), Routes::default());
        }
        let hosts: Vec<String> = self.hosts.keys().cloned().collect();
        let mut addresses: Vec<Ipv4Addr> = hosts.iter().filter_map(|host| host.parse().ok()).collect();
        if addresses.is_empty() {
            addresses.push(Ipv4Addr::LOCALHOST);
        }
        assert!(addresses.iter().all(Ipv4Addr::is_loopback), "test sites listen on loopback addresses only");
        let first = hosts.iter().find(|host| *host == DEFAULT_HOST).unwrap_or(&hosts[0]).clone();
        let log = Log::new();
        let (limits, service) = (self.limits, Arc::new(self) as Arc<dyn Service>);
        let plan = Plan { addresses, limits, service, log: Arc::clone(&log) };
        let (ready, port) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (ending, ended) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("test-site".to_owned())
            .spawn(move || {
                server::run(plan, ready, stopped);
                let _ = ending.send(());
            })
            .expect("a thread can be started");
        (Starting { first, hosts, log, stop, ended, thread }, port)
    }
}

impl Service for SiteBuilder {
    fn host_of(&self, listener: &str, authority: Option<&str>) -> String {
        let name = authority.map(|authority| match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        });
        let name = name.unwrap_or_default().to_ascii_lowercase();
        // An address in the header may be false; only the address that was connected to is certain.
        let is_virtual = name.parse::<Ipv4Addr>().is_err() && self.hosts.contains_key(&name);
        if is_virtual { name } else { listener.to_owned() }
    }

    fn answer(&self, request: &SiteRequest) -> Answer {
        self.answer_to(request)
    }
}

struct Starting {
    first: String,
    hosts: Vec<String>,
    log: Arc<Log>,
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Starting {
    fn running(self, port: u16) -> RunningSite {
        let Self { first, hosts, log, stop, ended, thread } = self;
        RunningSite { port, first, hosts, log, stop: Some(stop), ended, thread: Some(thread) }
    }
}

/// A site that is served until this value is dropped.
///
/// It runs on a thread and a clock of its own. A test with a paused tokio clock must not wait for it: if the runtime
/// is idle, that clock jumps over every timeout while the bytes are still in transit. Use
/// [`ScriptedDownloader`](crate::ScriptedDownloader) there.
///
/// Dropping it fails the test if a handler has panicked.
#[derive(Debug)]
pub struct RunningSite {
    port: u16,
    first: String,
    hosts: Vec<String>,
    log: Arc<Log>,
    stop: Option<oneshot::Sender<()>>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl RunningSite {
    /// The port, which is the same on every host.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The hosts that have routes.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The URL of a path on [`DEFAULT_HOST`], or on the only host.
    ///
    /// # Panics
    /// If the path does not form a valid URL.
    pub fn url(&self, path: &str) -> Url {
        self.url_on(&self.first, path)
    }

    /// The URL of a path on a host.
    ///
    /// # Panics
    /// If host and path do not form a valid URL.
    pub fn url_on(&self, host: &str, path: &str) -> Url {
        let url = format!("http://{host}:{}{path}", self.port);
        Url::parse(&url).unwrap_or_else(|cause| panic!("{url} is no URL: {cause}"))
    }

    /// The record of all requests so far.
    pub fn record(&self) -> Record {
        self.log.record()
    }

    /// The requests so far, in the order in which they started.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.log.with(|record| record.requests.clone())
    }

    /// Targets (path and query) in the order in which the requests started, including `/robots.txt`.
    pub fn targets(&self) -> Vec<String> {
        self.log.with(|record| record.requests.iter().map(|seen| seen.request.target.clone()).collect())
    }

    /// Number of requests for a target (path and query), over all hosts.
    pub fn count(&self, target: &str) -> usize {
        self.log.with(|record| record.requests.iter().filter(|seen| seen.request.target == target).count())
    }

    /// Largest number of concurrent requests to a host.
    pub fn peak(&self, host: &str) -> usize {
        self.log.with(|record| record.peak(host))
    }

    /// Smallest time between the starts of two requests to a host; `None` if there were fewer than two.
    pub fn smallest_gap(&self, host: &str) -> Option<Duration> {
        self.log.with(|record| record.smallest_gap(host))
    }

    /// Waits until this number of responses has ended, at most 10 s; returns whether it has.
    pub async fn finished(&self, answers: u64) -> bool {
        let mut finished = self.log.finished();
        let enough = finished.wait_for(|count| *count >= answers);
        matches!(tokio::time::timeout(Duration::from_secs(10), enough).await, Ok(Ok(_)))
    }

    /// Stops serving and returns the whole record; responses that were still being sent count as cut off.
    pub fn stop(mut self) -> Record {
        self.end();
        self.log.record()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && self.ended.recv_timeout(MAX_END) != Err(mpsc::RecvTimeoutError::Timeout)
        {
            let _ = thread.join();
        }
    }
}

impl Drop for RunningSite {
    fn drop(&mut self) {
        self.end();
        let panics = self.log.panics();
        // A second panic while the first one unwinds would abort the process and hide the first one.
        if !panics.is_empty() && !std::thread::panicking() {
            panic!("{}", panics.join("; "));
        }
    }
}
