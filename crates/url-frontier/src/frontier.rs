//! The frontier of one node.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use huntsman_crawler::{
    Frontier, FrontierLink, HostKey, Lease, LeaseId, Leased, Order, OwnedSince, Pushed, Request, Result,
    SavedPoliteness, Settled, SlotBy, Timestamp,
};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, ErrorKind};
use crate::link::Link;
use crate::node::Node;
use crate::settings::UrlFrontierSettings;

/// A [`Frontier`] in a URLFrontier server; see the [page of the crate](crate).
///
/// What it holds of the queues when the crawl ends goes back to them; if it is dropped before, the server serves it again when the time is
/// over for which it was served.
#[derive(Debug)]
pub struct UrlFrontier {
    node: Arc<Node>,
    /// A thread of its own keeps the connection, so that the frontier may be made and used on any runtime, or on none.
    runtime: Option<Runtime>,
    is_working: AtomicBool,
}

impl UrlFrontier {
    /// Connects to the server. It blocks for as long as the server takes.
    ///
    /// # Errors
    /// The server cannot be reached or is no URLFrontier server, the settings name no job, or the order is another than [`Order::Bfs`], as the
    /// server serves URLs in the order in which they were found.
    pub fn join(settings: UrlFrontierSettings, order: Order) -> Result<Self, Error> {
        if order != Order::Bfs {
            let message = "a URLFrontier server serves URLs in the order in which they were found: use scheduler_order bfs, or a Redis server";
            return Err(Error::new(ErrorKind::Input, message));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("url-frontier")
            .enable_all()
            .build()
            .map_err(|error| Error::new(ErrorKind::Io, format!("starting a thread: {error}")))?;
        let (reply, replied) = mpsc::channel();
        runtime.spawn(async move { drop(reply.send(Link::connect(settings).await)) });
        match replied.recv().unwrap_or_else(|_| Err(ended())) {
            Ok(link) => Ok(Self {
                node: Arc::new(Node::new(link)),
                runtime: Some(runtime),
                is_working: AtomicBool::new(false),
            }),
            Err(error) => {
                // Dropping it would wait, which a task of another runtime may not.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Runs on the thread of the frontier.
    async fn on_its_thread<T, F>(&self, work: impl FnOnce(Arc<Node>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let runtime = self.runtime.as_ref().expect("the runtime is there until the frontier is dropped");
        Ok(runtime.spawn(work(Arc::clone(&self.node))).await.map_err(|_| ended())??)
    }
}

fn ended() -> Error {
    Error::new(ErrorKind::Io, "the thread of the queue has ended")
}

impl Frontier for UrlFrontier {
    fn attach(&self, link: FrontierLink) -> Result<Option<OwnedSince>> {
        if link.slot_by() == SlotBy::Ip {
            return Err(huntsman_crawler::Error::usage(
                "slot_by ip cannot be used with a shared frontier, as each node would find addresses of its own: use host or \
                 registrable_domain",
            ));
        }
        self.node.attach(link)?;
        // A host is a node's for as long as a URL of it is; the crawl is told of each.
        Ok(Some(Box::new(|_| None)))
    }

    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        if !self.is_working.swap(true, Ordering::AcqRel) {
            let node = Arc::clone(&self.node);
            self.runtime.as_ref().map(|runtime| runtime.spawn(async move { node.work().await }));
        }
        Ok(self.node.held().hosts())
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        if batch.is_empty() {
            return Ok(Pushed::default());
        }
        self.on_its_thread(|node| async move { node.push(batch).await }).await
    }

    async fn lease(&self, host: &HostKey, max: usize, _now: Timestamp) -> Result<Leased> {
        if self.node.held().waiting_of(host) == 0 {
            let host = host.clone();
            self.on_its_thread(|node| async move {
                node.ask_for(&host).await;
                Ok(())
            })
            .await?;
            if self.node.keeps_delays() {
                return Ok(Leased::default());
            }
        }
        let leases = self.node.lease(host, max).into_iter();
        let leases = leases.map(|(lease, request)| Lease { id: LeaseId(lease), request }).collect();
        Ok(Leased { leases, due: self.node.held().waiting_of(host), next_at: None })
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        if batch.is_empty() {
            return Ok(Pushed::default());
        }
        self.on_its_thread(|node| async move { node.settle(batch).await }).await
    }

    fn len(&self) -> u64 {
        self.node.held().count()
    }

    async fn longest_queues(&self, most: usize) -> Result<Vec<(HostKey, u64)>> {
        let mut hosts = self.node.held().hosts();
        hosts.sort_unstable_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        hosts.truncate(most);
        Ok(hosts)
    }

    async fn queued_of(&self, host: &HostKey) -> Result<u64> {
        Ok(self.node.held().waiting_of(host))
    }

    async fn peek(&self, host: &HostKey, most: usize) -> Result<Vec<Request>> {
        Ok(self.node.held().peek(host, most))
    }

    async fn turn(&self, host: &HostKey, delay: Duration) -> Result<()> {
        let host = host.clone();
        self.on_its_thread(|node| async move { node.turn(&host, delay).await }).await
    }

    fn is_finished(&self) -> bool {
        self.node.is_finished()
    }

    fn learnt(&self, hosts: Vec<(HostKey, Option<SavedPoliteness>)>) {
        self.node.learnt(hosts);
    }

    fn left(&self) {
        self.node.leave();
    }

    async fn sync(&self) -> Result<()> {
        self.on_its_thread(|node| async move { node.give_back().await }).await
    }

    fn is_durable(&self) -> bool {
        true
    }
}

impl Drop for UrlFrontier {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting is not possible here, as this may be a task of another runtime; nothing that runs is needed any more.
            runtime.shutdown_background();
        }
    }
}
