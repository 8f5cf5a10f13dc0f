//! The frontier: the queue of each host, the seen set, and the leased requests. It knows neither politeness nor the
//! clock.

use std::future::Future;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::fetch::BoxFuture;
use crate::hand_over::HostNote;
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};
use crate::schedule::SavedPoliteness;

mod disk;
mod link;
mod memory;
mod packed;
mod queue;
mod seen;
mod stored;
mod work;

pub(crate) use disk::SavedQueue;
pub use disk::{DiskFrontier, DiskLimits};
pub(crate) use link::FrontierMessage;
pub use link::{FrontierLink, OwnedSince};
pub use memory::MemoryFrontier;
pub use stored::StoredRequest;
pub use work::{KnownTarget, Work, WorkName};

/// Identifies one lease of one request; unique within a frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A request that was handed out for processing.
#[derive(Debug)]
pub struct Lease {
    /// The number of the lease, which [`Settled`] names when the lease ends.
    pub id: LeaseId,
    /// The request.
    pub request: Request,
}

/// The result of [`Frontier::lease`].
#[derive(Debug, Default)]
pub struct Leased {
    /// The leased requests, at most as many as asked for, in the order of the queue.
    pub leases: Vec<Lease>,
    /// Requests of the host that are due now and were not handed out.
    pub due: u64,
    /// When the first delayed request of the host is due, if there is a delayed one.
    pub next_at: Option<Timestamp>,
}

/// How a lease ends.
#[derive(Debug)]
pub enum End {
    /// The request is done: its page was delivered, or it was dropped.
    Done,
    /// This request replaces the leased one: a retry or a redirect, possibly to another host. Unless it is
    /// `unfiltered`, its fingerprint is tested and inserted; if it was already known, the request is returned in
    /// [`Pushed::refused`].
    Reschedule(Box<Request>),
    /// The request was not processed and returns to its place in the queue.
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
    /// Requests found on its page; they are stored in the same atomic step.
    pub children: Vec<Request>,
}

/// The result of pushing requests.
#[derive(Debug, Default)]
pub struct Pushed {
    /// Number of requests that were accepted into the queue.
    pub accepted: u64,
    /// Number of requests that were already known.
    pub duplicates: u64,
    /// Hosts whose first request is due earlier than before the call, each listed once: the queue was empty and is no
    /// longer, or it had only delayed requests and now has one that is due or due earlier. A host that had a due
    /// request is not listed. A delayed request counts as due once a lease has seen that it is.
    pub woken: Vec<HostKey>,
    /// Requests of [`End::Reschedule`] whose fingerprint was already known; not counted as duplicates.
    pub refused: Vec<Request>,
    /// Leases that had ended before they were settled, because another process works on their hosts. Nothing of them was stored.
    pub void: u64,
    /// Requests that this frontier cannot hold, and why. They were not stored, and the engine tells that they are not crawled.
    pub unfit: Vec<(Request, String)>,
}

/// The order of requests of one priority within a host.
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

/// Storage of the queued requests of each host.
///
/// `push` deduplicates and enqueues in one step: two separate calls would race, and a crash between them would lose
/// the URL for ever. The engine assigns slot and fingerprint of a request before it is pushed ([`Request::host`],
/// [`Request::fingerprint`]).
///
/// Within a host, requests leave by priority (higher first), then by [`Order`]; start requests (depth 0 with
/// `meta["is_start_request"]`) leave after others of equal priority. Delayed requests (`not_before`) are skipped
/// until they are due.
pub trait Frontier: Send + Sync + 'static {
    /// Connects the frontier with the crawl that uses it, before [`open`](Self::open). A frontier whose queue other processes share tells
    /// through the link what they do, and returns since when this process works on a host; any other returns `None`.
    ///
    /// # Errors
    /// The crawl cannot use this frontier.
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>> {
        drop(link);
        Ok(None)
    }

    /// Opens the queue; requests that a crashed run had leased are queued again. Returns the hosts with queued
    /// requests, and how many each has.
    fn open(&self) -> impl Future<Output = Result<Vec<(HostKey, u64)>>> + Send;

    /// Deduplicates and enqueues requests.
    fn push(&self, batch: Vec<Request>) -> impl Future<Output = Result<Pushed>> + Send;

    /// Leases at most `max` requests of a host that are due at `now`.
    fn lease(
        &self,
        host: &HostKey,
        max: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Leased>> + Send;

    /// Ends leases and stores their children; each call is atomic.
    fn settle(&self, batch: Vec<Settled>) -> impl Future<Output = Result<Pushed>> + Send;

    /// Whether a fingerprint was seen, as far as the frontier can tell at once: `false` means "not known". Callbacks
    /// use it to discard the many links to known pages cheaply; `push` and `settle` check again in any case.
    fn has_seen(&self, fingerprint: Fingerprint) -> bool {
        let _ = fingerprint;
        false
    }

    /// Number of queued requests, including delayed ones, without leased ones.
    fn len(&self) -> u64;

    /// Whether no request is queued.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hosts with the longest queues and how long these are, longest first; at most `most` of them. Leased requests are not
    /// counted. It is for people who look at a running crawl; a frontier that cannot tell gives none.
    fn longest_queues(&self, most: usize) -> impl Future<Output = Result<Vec<(HostKey, u64)>>> + Send {
        let _ = most;
        async { Ok(Vec::new()) }
    }

    /// Number of queued requests of a host, without leased ones; 0 if the frontier cannot tell.
    fn queued_of(&self, host: &HostKey) -> impl Future<Output = Result<u64>> + Send {
        let _ = host;
        async { Ok(0) }
    }

    /// The next requests of a host, at most `most`, without leasing them: those that are due in the order in which they leave, then
    /// delayed ones by their time. A frontier that cannot tell gives none.
    fn peek(&self, host: &HostKey, most: usize) -> impl Future<Output = Result<Vec<Request>>> + Send {
        let _ = (host, most);
        async { Ok(Vec::new()) }
    }

    /// Whether this process may work on the host. Always true unless the queue is shared. If not, the engine tries again after some
    /// seconds, or, with a shared queue, when it is told that the host was adopted.
    fn claim(&self, host: &HostKey) -> impl Future<Output = Result<bool>> + Send {
        let _ = host;
        async { Ok(true) }
    }

    /// Waits until this process may send a request to the host, with regard to the others: asked before each request, also one of another
    /// process's host, which a callback or a component downloads. `delay` is the delay between requests to the host as this process knows
    /// it. Only called if the queue is shared.
    fn turn(&self, host: &HostKey, delay: Duration) -> impl Future<Output = Result<()>> + Send {
        let _ = (host, delay);
        async { Ok(()) }
    }

    /// Whether an empty queue is the end of the crawl. Asked while nothing is queued and nothing is in flight in this process; always true
    /// unless the queue is shared. A frontier that said no calls [`FrontierLink::woken`] when it would say yes.
    fn is_finished(&self) -> bool {
        true
    }

    /// Takes what was learnt about the politeness of hosts, so that the next process that works on them knows it; `None` if there is
    /// nothing to know any more. Only called if the queue is shared.
    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        drop(hosts);
    }

    /// Takes what components learnt about hosts, as [`learnt`](Self::learnt) takes their politeness.
    fn note(&self, notes: Vec<HostNote>) {
        drop(notes);
    }

    /// The crawl has ended, and [`learnt`](Self::learnt) and [`note`](Self::note) were told all that the next process should know of all
    /// hosts. Only called if the queue is shared.
    fn left(&self) {}

    /// Moves queued requests out of memory because the process needs it, and returns how many were moved. A frontier that has no other
    /// place for them moves none.
    fn spill(&self) -> impl Future<Output = Result<u64>> + Send {
        async { Ok(0) }
    }

    /// Makes everything settled so far durable.
    fn sync(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Whether queued requests outlive the process. If not, the engine records the remaining requests when a crawl is
    /// stopped.
    fn is_durable(&self) -> bool {
        false
    }
}

/// Object-safe version of [`Frontier`].
pub(crate) trait DynFrontier: Send + Sync {
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>>;
    fn is_finished(&self) -> bool;
    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>);
    fn note(&self, notes: Vec<HostNote>);
    fn left(&self);
    fn open(&self) -> BoxFuture<'_, Result<Vec<(HostKey, u64)>>>;
    fn push(&self, batch: Vec<Request>) -> BoxFuture<'_, Result<Pushed>>;
    fn lease<'a>(&'a self, host: &'a HostKey, max: usize, now: Timestamp) -> BoxFuture<'a, Result<Leased>>;
    fn settle(&self, batch: Vec<Settled>) -> BoxFuture<'_, Result<Pushed>>;
    fn has_seen(&self, fingerprint: Fingerprint) -> bool;
    fn len(&self) -> u64;
    fn longest_queues(&self, most: usize) -> BoxFuture<'_, Result<Vec<(HostKey, u64)>>>;
    fn queued_of<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<u64>>;
    fn peek<'a>(&'a self, host: &'a HostKey, most: usize) -> BoxFuture<'a, Result<Vec<Request>>>;
    fn claim<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<bool>>;
    fn turn<'a>(&'a self, host: &'a HostKey, delay: Duration) -> BoxFuture<'a, Result<()>>;
    fn spill(&self) -> BoxFuture<'_, Result<u64>>;
    fn sync(&self) -> BoxFuture<'_, Result<()>>;
    fn is_durable(&self) -> bool;
}

impl<T: Frontier> DynFrontier for T {
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>> {
        Frontier::attach(self, link)
    }

    fn is_finished(&self) -> bool {
        Frontier::is_finished(self)
    }

    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        Frontier::learnt(self, hosts);
    }

    fn note(&self, notes: Vec<HostNote>) {
        Frontier::note(self, notes);
    }

    fn left(&self) {
        Frontier::left(self);
    }

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

    fn has_seen(&self, fingerprint: Fingerprint) -> bool {
        Frontier::has_seen(self, fingerprint)
    }

    fn len(&self) -> u64 {
        Frontier::len(self)
    }

    fn longest_queues(&self, most: usize) -> BoxFuture<'_, Result<Vec<(HostKey, u64)>>> {
        Box::pin(Frontier::longest_queues(self, most))
    }

    fn queued_of<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<u64>> {
        Box::pin(Frontier::queued_of(self, host))
    }

    fn peek<'a>(&'a self, host: &'a HostKey, most: usize) -> BoxFuture<'a, Result<Vec<Request>>> {
        Box::pin(Frontier::peek(self, host, most))
    }

    fn claim<'a>(&'a self, host: &'a HostKey) -> BoxFuture<'a, Result<bool>> {
        Box::pin(Frontier::claim(self, host))
    }

    fn turn<'a>(&'a self, host: &'a HostKey, delay: Duration) -> BoxFuture<'a, Result<()>> {
        Box::pin(Frontier::turn(self, host, delay))
    }

    fn spill(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(Frontier::spill(self))
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(Frontier::sync(self))
    }

    fn is_durable(&self) -> bool {
        Frontier::is_durable(self)
    }
}
