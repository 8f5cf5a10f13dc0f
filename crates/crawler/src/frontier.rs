//! The frontier: work per host, what was seen, and what is leased out. It knows no politeness and no clock.

use std::future::Future;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::fetch::BoxFuture;
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

mod disk;
mod memory;
mod packed;
mod queue;
mod seen;

pub(crate) use disk::SavedQueue;
pub use disk::{DiskFrontier, DiskLimits};
pub use memory::MemoryFrontier;

/// Names one lease of one request; unique within a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A request handed out to be worked on.
#[derive(Debug)]
pub struct Lease {
    /// To be given back with [`Settled`].
    pub id: LeaseId,
    /// The work.
    pub request: Request,
}

/// The answer to [`Frontier::lease`].
#[derive(Debug, Default)]
pub struct Leased {
    /// At most as many as asked for, in the order of the queue.
    pub leases: Vec<Lease>,
    /// Requests of the host that are due now and were not handed out.
    pub due: u64,
    /// When the first delayed request of the host is due, if there is one.
    pub next_at: Option<Timestamp>,
}

/// How a lease ends.
#[derive(Debug)]
pub enum End {
    /// The request is done, delivered or dropped.
    Done,
    /// This request takes its place: a retry or a redirect, maybe of another host. It keeps the identity of the
    /// work: unless it is `unfiltered`, its fingerprint is tested and inserted, and if it was known already the request
    /// comes back in [`Pushed::refused`].
    Again(Box<Request>),
    /// Not worked on: back to where it was.
    Release,
}

/// The end of one lease, with the requests found on its page.
#[derive(Debug)]
pub struct Settled {
    /// The lease.
    pub lease: LeaseId,
    /// Its host, as given to `lease`.
    pub host: HostKey,
    /// How it ended.
    pub end: End,
    /// Requests that the page led to; stored in the same atomic step.
    pub children: Vec<Request>,
}

/// What happened to pushed requests.
#[derive(Debug, Default)]
pub struct Pushed {
    /// Accepted into the queue.
    pub accepted: u64,
    /// Known already.
    pub duplicates: u64,
    /// Hosts whose first work is due earlier than before the call, each once: nothing queued became something, only
    /// delayed work became work that is due or is due earlier. A host with due work is not among them. Delayed requests
    /// count as due once a lease has seen them so.
    pub woken: Vec<HostKey>,
    /// Requests of [`End::Again`] whose fingerprint was known already; not among the duplicates.
    pub refused: Vec<Request>,
}

/// In which order the requests of one priority of one host leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First in, first out: breadth first (default).
    #[default]
    Bfs,
    /// Last in, first out: depth first, Scrapy's default.
    Dfs,
    /// By the score in `meta["score"]`, highest first; equal scores first in, first out.
    BestFirst,
}

/// Storage of work per host.
///
/// `push` dedupes and enqueues in one step: as two calls it would race, and a crash between the two would lose the
/// URL for ever. Slot and fingerprint of a request are assigned by the engine before it comes here
/// ([`Request::host`], [`Request::fingerprint`]).
///
/// Within a host, requests leave by priority (higher first), then by [`Order`]; start requests (depth 0 with
/// `meta["is_start_request"]`) go after others of equal priority. Delayed requests (`not_before`) are skipped until they are due.
pub trait Frontier: Send + Sync + 'static {
    /// Opens the queue; leases left by a dead run are work again. Answers with the hosts that have work, and how much.
    fn open(&self) -> impl Future<Output = Result<Vec<(HostKey, u64)>>> + Send;

    /// Dedupes and enqueues.
    fn push(&self, batch: Vec<Request>) -> impl Future<Output = Result<Pushed>> + Send;

    /// Hands out at most `max` requests of a host that are due at `now`.
    fn lease(
        &self,
        host: &HostKey,
        max: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Leased>> + Send;

    /// Ends leases and stores their children, atomically per call.
    fn settle(&self, batch: Vec<Settled>) -> impl Future<Output = Result<Pushed>> + Send;

    /// Whether a fingerprint was seen, as far as the frontier can tell at once: `false` means "not known". Lets callbacks drop
    /// the many links to known pages before anything is spent on them; `push` and `settle` decide all the same.
    fn is_seen(&self, fingerprint: Fingerprint) -> bool {
        let _ = fingerprint;
        false
    }

    /// Number of queued requests, delayed ones included, leased ones not.
    fn len(&self) -> u64;

    /// Whether no request is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// May this process work on the host? Always true unless the queue is shared.
    fn claim(&self, host: &HostKey) -> impl Future<Output = Result<bool>> + Send {
        let _ = host;
        async { Ok(true) }
    }

    /// Makes everything settled so far durable.
    fn sync(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Whether queued work outlives the process; if not, the engine records what is left over when a crawl is stopped.
    fn is_durable(&self) -> bool {
        false
    }
}

/// Object-safe twin of [`Frontier`].
pub(crate) trait DynFrontier: Send + Sync {
    fn open(&self) -> BoxFuture<'_, Result<Vec<(HostKey, u64)>>>;
    fn push(&self, batch: Vec<Request>) -> BoxFuture<'_, Result<Pushed>>;
    fn lease<'a>(&'a self, host: &'a HostKey, max: usize, now: Timestamp) -> BoxFuture<'a, Result<Leased>>;
    fn settle(&self, batch: Vec<Settled>) -> BoxFuture<'_, Result<Pushed>>;
    fn is_seen(&self, fingerprint: Fingerprint) -> bool;
    fn len(&self) -> u64;
    fn claim<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<bool>>;
    fn sync(&self) -> BoxFuture<'_, Result<()>>;
    fn is_durable(&self) -> bool;
}

impl<T: Frontier> DynFrontier for T {
    fn open(&self) -> BoxFuture<'_, Result<Vec<(HostKey, u64)>>> {
        Box::pin(Frontier::open(self))
    }

    fn push(&self, batch: Vec<Request>) -> BoxFuture<'_, Result<Pushed>> {
        Box::pin(Frontier::push(self, batch))
    }

    fn lease<'a>(&'a self, host: &'a HostKey, max: usize, now: Timestamp) -> BoxFuture<'a, Result<Leased>> {
        Box::pin(Frontier::lease(self, host, max, now))
    }

    fn settle(&self, batch: Vec<Settled>) -> BoxFuture<'_, Result<Pushed>> {
        Box::pin(Frontier::settle(self, batch))
    }

    fn is_seen(&self, fingerprint: Fingerprint) -> bool {
        Frontier::is_seen(self, fingerprint)
    }

    fn len(&self) -> u64 {
        Frontier::len(self)
    }

    fn claim<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<bool>> {
        Box::pin(Frontier::claim(self, host))
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Frontier::sync(self))
    }

    fn is_durable(&self) -> bool {
        Frontier::is_durable(self)
    }
}
