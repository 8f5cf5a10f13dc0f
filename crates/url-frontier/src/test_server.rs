//! A URLFrontier server for tests, in this process: its queues are in memory, and it serves them as the reference implementation does.
//!
//! - A served URL is held for the time that the caller names, and served again after it unless it is done.
//! - A queue is served again after its delay and up to a second: times are whole seconds, and the one of the last serving counts in full.
//! - A queue is not served while as many of its URLs are held as the caller asks for, nor while it is blocked.
//! - URLs of a queue leave by their time, then by their text.
//! - [`restart`](Server::restart) forgets holds, delays and blocks, and keeps the URLs.
//!
//! It does not keep anything on a disk, serves one job as if there were no other in its turn, and knows only the calls that a crawler
//! makes.

mod queues;
mod service;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};

use crate::message::{Item, KnownUrlItem, UrlInfo};
use queues::Queues;

/// A running server, which ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// What the server and its connections share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    queues: Mutex<Queues>,
    /// Seconds that the clock of the server is ahead.
    ahead: AtomicU64,
    knows_batches: AtomicBool,
    keeps_pauses: AtomicBool,
    /// How many of the next items cannot be stored.
    failures: AtomicU32,
    calls: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time in seconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        huntsman_crawler::Timestamp::wall().0 / 1_000_000 + self.ahead.load(Ordering::Acquire)
    }

    pub(crate) fn called(&self, method: &str) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(method.to_owned()).or_default() += 1;
    }

    pub(crate) fn knows_batches(&self) -> bool {
        self.knows_batches.load(Ordering::Acquire)
    }

    pub(crate) fn keeps_pauses(&self) -> bool {
        self.keeps_pauses.load(Ordering::Acquire)
    }

    /// Whether the next item cannot be stored.
    pub(crate) fn fails(&self) -> bool {
        self.failures.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
    }
}

impl Server {
    /// Starts a server on a free port of loopback.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        let shared = Arc::new(Shared::default());
        shared.knows_batches.store(true, Ordering::Release);
        shared.keeps_pauses.store(true, Ordering::Release);
        let (address, serving) = serve(&runtime, &shared, SocketAddr::from(([127, 0, 0, 1], 0)));
        Self { shared, address, serving: Some(serving), runtime: Some(runtime) }
    }

    /// A server that does not know `PutDiscovered`, as before version 2.6.
    pub fn without_batches(self) -> Self {
        self.shared.knows_batches.store(false, Ordering::Release);
        self
    }

    /// A server that serves a queue at once again, for tests of other things.
    pub fn without_pauses(self) -> Self {
        self.shared.keeps_pauses.store(false, Ordering::Release);
        self
    }

    /// The address, as `urlfrontier://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("urlfrontier://{}", self.address)
    }

    /// Ends the server: its connections break, and it forgets holds, delays and blocks.
    pub fn stop(&mut self) {
        if let (Some(serving), Some(runtime)) = (self.serving.take(), &self.runtime) {
            serving.abort();
            let (ended, has_ended) = std::sync::mpsc::channel::<()>();
            runtime.spawn(async move {
                // It was aborted, which is no news.
                let _ = serving.await;
                drop(ended);
            });
            // The port is free when the task has ended.
            let _ = has_ended.recv();
        }
        self.shared.queues().forget();
    }

    /// Starts the server again on the same port.
    ///
    /// # Panics
    /// The port is taken by now.
    pub fn restart(&mut self) {
        self.stop();
        let runtime = self.runtime.as_ref().expect("the runtime is there until the server is dropped");
        self.serving = Some(serve(runtime, &self.shared, self.address).1);
    }

    /// Puts the clock forward.
    pub fn advance(&self, seconds: u64) {
        self.shared.ahead.fetch_add(seconds, Ordering::AcqRel);
    }

    /// Fails to store the next items.
    pub fn fail(&self, items: u32) {
        self.shared.failures.store(items, Ordering::Release);
    }

    /// Puts a URL into a queue as another crawler does. Returns whether it is new.
    pub fn put(&self, job: &str, key: &str, url: &str) -> bool {
        let info = UrlInfo {
            url: url.to_owned(),
            key: key.to_owned(),
            crawl_id: job.to_owned(),
            ..UrlInfo::default()
        };
        let found = crate::message::DiscoveredUrlItem { info: Some(info) };
        let now = self.shared.now();
        self.shared.queues().put(Item::Discovered(found), now) == crate::message::Status::Ok
    }

    /// Says that a URL is done, as another crawler does.
    pub fn done(&self, job: &str, key: &str, url: &str) {
        let info = UrlInfo {
            url: url.to_owned(),
            key: key.to_owned(),
            crawl_id: job.to_owned(),
            ..UrlInfo::default()
        };
        let known = KnownUrlItem { info: Some(info), refetchable_from_date: 0 };
        let now = self.shared.now();
        self.shared.queues().put(Item::Known(known), now);
    }

    /// The URLs of a job that are not done, with the number of seconds since 1970 from which on they are served.
    pub fn queued(&self, job: &str) -> BTreeMap<String, u64> {
        self.shared.queues().queued(job)
    }

    /// How many URLs of a job are not done and not held.
    pub fn waiting(&self, job: &str) -> u64 {
        let now = self.shared.now();
        self.shared.queues().waiting(job, now)
    }

    /// The URLs of a job that are done.
    pub fn completed(&self, job: &str) -> Vec<String> {
        self.shared.queues().completed(job)
    }

    /// The names of the metadata that are kept with a URL.
    pub fn metadata(&self, job: &str, url: &str) -> Vec<String> {
        self.shared.queues().metadata(job, url)
    }

    /// The delay of each queue of a job that has one, in seconds.
    pub fn delays(&self, job: &str) -> BTreeMap<String, u32> {
        self.shared.queues().delays(job)
    }

    /// The end of the block of each queue of a job that has one, in seconds since 1970.
    pub fn blocks(&self, job: &str) -> BTreeMap<String, u64> {
        self.shared.queues().blocks(job)
    }

    /// How often a call was made.
    pub fn calls(&self, method: &str) -> u64 {
        let calls = self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.get(method).copied().unwrap_or(0)
    }

    /// The longest time for which a URL was to be held, in seconds.
    pub fn longest_hold(&self) -> u32 {
        self.shared.queues().longest_hold()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Accepts connections until the task is aborted, and theirs with it.
fn serve(runtime: &Runtime, shared: &Arc<Shared>, address: SocketAddr) -> (SocketAddr, JoinHandle<()>) {
    let (bound, is_bound) = std::sync::mpsc::channel();
    let shared = Arc::clone(shared);
    let serving = runtime.spawn(async move {
        let listener = TcpListener::bind(address).await.expect("the port is free");
        bound
            .send(listener.local_addr().expect("a bound socket has an address"))
            .expect("the thread that starts the server waits");
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                let service = service_fn(|request| service::answer(Arc::clone(&shared), request));
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                // A connection that breaks is the client's end of it.
                drop(server.serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    (is_bound.recv().expect("the server is bound"), serving)
}
