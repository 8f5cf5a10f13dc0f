//! What a test server saw: every request with its times, and what can be computed from them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::sync::watch;

/// A request as a route sees it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The host that was asked: the address of the listener, or a name that the site has routes for.
    pub host: String,
    /// Method.
    pub method: Method,
    /// Path and query as sent.
    pub target: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Body, at most 8 MiB.
    pub body: Bytes,
    /// Number of the connection, from 0, over all hosts of the site.
    pub connection: u64,
    /// How many requests for the same host and target came before: 0 for the first one.
    pub nth: u64,
}

impl Asked {
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

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is still being sent.
    Running,
    /// All of it was given to the network.
    Sent,
    /// The client left before.
    ClientLeft,
    /// The server's own limits on time or bytes ended it.
    CutOff,
}

/// One request with its answer, on the server's clock.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The request.
    pub asked: Asked,
    /// When its head was complete, since the start of the site.
    pub started: Duration,
    /// When its answer was over, since the start of the site; `None` while it runs.
    pub ended: Option<Duration>,
    /// Bytes of the answer that the network took, its head included.
    pub sent: u64,
    /// How the answer ended.
    pub outcome: Outcome,
}

impl Seen {
    /// How long the answer took, or has taken up to `now` if it still runs.
    pub fn held(&self, now: Duration) -> Duration {
        self.ended.unwrap_or(now).saturating_sub(self.started)
    }
}

/// The requests of a finished or a running site, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Every request.
    pub seen: Vec<Seen>,
    /// First lines of what came in and was no HTTP request.
    pub malformed: Vec<String>,
    /// Most requests at once, per host.
    pub peaks: HashMap<String, usize>,
    /// Connections that were accepted, per listening address.
    pub connections: HashMap<String, u64>,
    /// Time on the site's clock when the record was taken.
    pub now: Duration,
}

impl Record {
    /// Requests to a host.
    pub fn to<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Seen> {
        self.seen.iter().filter(move |seen| seen.asked.host == host)
    }

    /// Most requests at once on a host.
    pub fn peak(&self, host: &str) -> usize {
        self.peaks.get(host).copied().unwrap_or(0)
    }

    /// Smallest gap between the starts of two requests on a host; `None` if there were fewer than two.
    pub fn smallest_gap(&self, host: &str) -> Option<Duration> {
        let mut starts: Vec<Duration> = self.to(host).map(|seen| seen.started).collect();
        starts.sort_unstable();
        starts.windows(2).map(|pair| pair[1] - pair[0]).min()
    }
}

/// The record while the site runs.
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
    asked: HashMap<(String, String), u64>,
    panics: Vec<String>,
}

/// More requests than any test makes; what comes after is answered and not recorded, so that memory stays bounded.
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

    /// Notes the start of a request and numbers it among its equals.
    pub(crate) fn begin(self: &Arc<Self>, asked: &mut Asked) -> Running {
        let started = self.started.elapsed();
        let mut state = self.state();
        let count = state.asked.entry((asked.host.clone(), asked.target.clone())).or_default();
        asked.nth = *count;
        *count += 1;
        let live = state.live.entry(asked.host.clone()).or_default();
        *live += 1;
        let live = *live;
        let peak = state.record.peaks.entry(asked.host.clone()).or_default();
        *peak = live.max(*peak);
        let index = state.record.seen.len();
        if index < MAX_SEEN {
            let (ended, sent, outcome) = (None, 0, Outcome::Running);
            state.record.seen.push(Seen { asked: asked.clone(), started, ended, sent, outcome });
        }
        Running { log: Arc::clone(self), index, host: asked.host.clone(), sent: 0, outcome: Outcome::CutOff }
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

    /// Lets `read` look at the record without copying it.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Record) -> T) -> T {
        read(&self.state().record)
    }

    /// Counts ended requests.
    pub(crate) fn finished(&self) -> watch::Receiver<u64> {
        self.finished.subscribe()
    }
}

/// A request whose answer is being sent; its end is noted when this is dropped, also if the task is thrown away.
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
        if let Some(seen) = state.record.seen.get_mut(self.index) {
            seen.ended = Some(ended);
            seen.sent = self.sent;
            seen.outcome = self.outcome;
        }
        drop(state);
        self.log.finished.send_modify(|count| *count += 1);
    }
}
