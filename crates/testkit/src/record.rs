//! The requests that a test server received, with their times, and figures computed from them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::sync::watch;

/// A request as a route's handler gets it.
#[derive(Clone, Debug)]
pub struct SiteRequest {
    /// The requested host: the address of the listener, or a host name that the site has routes for.
    pub host: String,
    /// Method.
    pub method: Method,
    /// Path and query as sent.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, at most 8 MiB.
    pub body: Bytes,
    /// Number of the connection, from 0, counted over all hosts of the site.
    pub connection: u64,
    /// Number of earlier requests for the same host and target: 0 for the first one.
    pub nth: u64,
}

impl SiteRequest {
    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The first value of a query parameter, percent-decoded.
    pub fn param(&self, name: &str) -> Option<String> {
        let pairs = url::form_urlencoded::parse(self.query()?.as_bytes());
        pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    /// A header as text; `None` if absent or not visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is still being sent.
    Running,
    /// All of it was passed to the network.
    Sent,
    /// The client closed the connection before the end.
    ClientLeft,
    /// The server's own limits on time or bytes ended it.
    CutOff,
}

/// A request with the data of its response, on the server's clock.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The request.
    pub request: SiteRequest,
    /// When the head of the request was complete, since the start of the site.
    pub started: Duration,
    /// When the response ended, since the start of the site; `None` while it is being sent.
    pub ended: Option<Duration>,
    /// Bytes of the response that the network accepted, including its head.
    pub sent: u64,
    /// How the response ended.
    pub outcome: Outcome,
}

impl RecordedRequest {
    /// How long the response took, or has taken up to `now` if it is still being sent.
    pub fn duration(&self, now: Duration) -> Duration {
        self.ended.unwrap_or(now).saturating_sub(self.started)
    }
}

/// The requests to a finished or a running site, in the order in which they started.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Every request.
    pub requests: Vec<RecordedRequest>,
    /// First lines of received data that was not an HTTP request.
    pub malformed: Vec<String>,
    /// Largest number of concurrent requests, per host.
    pub peaks: HashMap<String, usize>,
    /// Number of accepted connections, per listening address.
    pub connections: HashMap<String, u64>,
    /// Time on the site's clock when the record was taken.
    pub now: Duration,
}

impl Record {
    /// Requests to a host.
    pub fn to<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a RecordedRequest> {
        self.requests.iter().filter(move |seen| seen.request.host == host)
    }

    /// Largest number of concurrent requests to a host.
    pub fn peak(&self, host: &str) -> usize {
        self.peaks.get(host).copied().unwrap_or(0)
    }

    /// Smallest time between the starts of two requests to a host; `None` if there were fewer than two.
    pub fn smallest_gap(&self, host: &str) -> Option<Duration> {
        let mut starts: Vec<Duration> = self.to(host).map(|seen| seen.started).collect();
        starts.sort_unstable();
        starts.windows(2).map(|pair| pair[1] - pair[0]).min()
    }
}

/// The record of a running site.
#[derive(Debug)]
pub(crate) struct Log {
    started: Instant,
    state: Mutex<State>,
    finished: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    record: Record,
    live: HashMap<String, usize>,
    counts: HashMap<(String, String), u64>,
    panics: Vec<String>,
}

/// More requests than any test makes; further requests are answered but not recorded, so that memory stays bounded.
const MAX_SEEN: usize = 1 << 20;
const MAX_MALFORMED: usize = 1_000;

impl Log {
    pub(crate) fn new() -> Arc<Self> {
        let (finished, _) = watch::channel(0);
        Arc::new(Self { started: Instant::now(), state: Mutex::default(), finished })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connected(&self, listener: &str) {
        *self.state().record.connections.entry(listener.to_owned()).or_default() += 1;
    }

    /// Records the start of a request and numbers it among those for the same host and target.
    pub(crate) fn begin(self: &Arc<Self>, request: &mut SiteRequest) -> Running {
        let started = self.started.elapsed();
        let mut state = self.state();
        let count = state.counts.entry((request.host.clone(), request.target.clone())).or_default();
        request.nth = *count;
        *count += 1;
        let live = state.live.entry(request.host.clone()).or_default();
        *live += 1;
        let live = *live;
        let peak = state.record.peaks.entry(request.host.clone()).or_default();
        *peak = live.max(*peak);
        let index = state.record.requests.len();
        if index < MAX_SEEN {
            let (ended, sent, outcome) = (None, 0, Outcome::Running);
            state.record.requests.push(RecordedRequest {
                request: request.clone(),
                started,
                ended,
                sent,
                outcome,
            });
        }
        Running {
            log: Arc::clone(self),
            index,
            host: request.host.clone(),
            sent: 0,
            outcome: Outcome::CutOff,
        }
    }

    pub(crate) fn malformed(&self, line: &[u8]) {
        let mut state = self.state();
        if state.record.malformed.len() < MAX_MALFORMED {
            let line = &line[..line.len().min(200)];
            state.record.malformed.push(String::from_utf8_lossy(line).escape_debug().to_string());
        }
    }

    pub(crate) fn panicked(&self, what: String) {
        self.state().panics.push(what);
    }

    pub(crate) fn panics(&self) -> Vec<String> {
        self.state().panics.clone()
    }

    pub(crate) fn record(&self) -> Record {
        let mut record = self.state().record.clone();
        record.now = self.started.elapsed();
        record
    }

    /// Calls `read` with the record, which is not copied.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(&self.state().record)
    }

    /// The number of ended requests, updated while the site runs.
    pub(crate) fn finished(&self) -> watch::Receiver<u64> {
        self.finished.subscribe()
    }
}

/// A request whose response is being sent; its end is recorded when this is dropped, even if the task is cancelled.
#[derive(Debug)]
pub(crate) struct Running {
    log: Arc<Log>,
    index: usize,
    host: String,
    pub(crate) sent: u64,
    pub(crate) outcome: Outcome,
}

impl Drop for Running {
    fn drop(&mut self) {
        let ended = self.log.started.elapsed();
        let mut state = self.log.state();
        if let Some(live) = state.live.get_mut(&self.host) {
            *live -= 1;
        }
        if let Some(seen) = state.record.requests.get_mut(self.index) {
            seen.ended = Some(ended);
            seen.sent = self.sent;
            seen.outcome = self.outcome;
        }
        drop(state);
        self.log.finished.send_modify(|count| *count += 1);
    }
}
