//! The handle: controls a crawl from outside.

use tokio::sync::oneshot;

use crate::context::{Context, ControlMessage, Message, Politeness};
use crate::control::{Addition, CrawlState, CrawlStatus, HostStatus, QueuedRequest};
use crate::host::HostKey;
use crate::report::HostReport;
use crate::request::Request;
use crate::stats::Stats;

/// The greatest number of hosts or requests in one list.
const MAX_LISTED: usize = 1_000;

/// Controls a running crawl. It is cheap to clone, and may be kept after the crawl has ended.
#[derive(Clone, Debug)]
pub struct Handle {
    cx: Context,
}

impl Handle {
    pub(crate) fn new(cx: Context) -> Self {
        Self { cx }
    }

    /// Stops the crawl with a finish reason (`shutdown` for signals): it takes no more requests, and requests in
    /// flight may end.
    pub fn stop(&self, reason: &str) {
        self.cx.stop(reason);
    }

    /// Ends the crawl at once: requests in flight are cancelled and return to the queue.
    pub fn abort(&self) {
        self.cx.tell(Message::Abort);
    }

    /// Starts no more downloads until [`Handle::resume`]; downloads in flight continue.
    pub fn pause(&self) {
        self.cx.tell(Message::Pause);
    }

    /// Continues after [`Handle::pause`].
    pub fn resume(&self) {
        self.cx.tell(Message::Resume);
    }

    /// Whether the crawl stays open when it has nothing to do, for requests that are pushed from outside. It then
    /// ends by [`Handle::stop`], by a limit, or when this is switched off. Off by default; a call before the crawl
    /// runs takes effect when it starts.
    pub fn keep_open(&self, open: bool) {
        self.cx.tell(Message::KeepOpen(open));
    }

    /// Queues a request.
    pub fn push(&self, request: Request) {
        self.cx.push(vec![request]);
    }

    /// Changes the politeness of a slot.
    pub fn set_politeness(&self, host: &HostKey, change: Politeness) {
        self.cx.tell(Message::Politeness(host.clone(), change, None));
    }

    /// The crawl at this moment. Before the crawl runs it is answered when the crawl begins.
    pub async fn status(&self) -> CrawlStatus {
        let overview = self.cx.overview().await;
        let number = |key: &str| u64::try_from(self.stats().get(key)).unwrap_or(0);
        CrawlStatus {
            state: overview.map_or(CrawlState::Ended, |overview| overview.state),
            elapsed_s: self.cx.clock().elapsed().as_secs_f64(),
            pages: number("pages/delivered"),
            items: number("item_scraped_count"),
            requests: number("engine/requests_sent"),
            failed: number("drops/failed"),
            skipped: number("drops/skipped"),
            wire_bytes: number("engine/wire_bytes"),
            queued: overview.map_or(0, |overview| overview.queued),
            in_flight: overview.map_or(0, |overview| overview.in_flight),
            hosts_active: overview.map_or(0, |overview| overview.hosts_active),
            hosts_down: overview.map_or(0, |overview| overview.hosts_down),
        }
    }

    /// The hosts with the longest queues, longest first, and after them hosts that had the most requests; at most `most`, and at most
    /// 1,000. It looks at the queues of all hosts, which takes some milliseconds for a million.
    pub async fn host_list(&self, most: usize) -> Vec<HostStatus> {
        self.ask(|reply| ControlMessage::Hosts(most.min(MAX_LISTED), reply)).await.unwrap_or_default()
    }

    /// One host; `None` if the crawl has neither queued nor sent a request of it, or has ended.
    pub async fn host_status(&self, host: &HostKey) -> Option<HostStatus> {
        let host = host.clone();
        self.ask(|reply| ControlMessage::Host(host, reply)).await.flatten()
    }

    /// The next requests of a host, or of all hosts beginning with the longest queue; at most `most`, and at most 1,000. They stay in
    /// the queue.
    pub async fn peek(&self, host: Option<&HostKey>, most: usize) -> Vec<QueuedRequest> {
        let host = host.cloned();
        self.ask(|reply| ControlMessage::Queue(host, most.min(MAX_LISTED), reply)).await.unwrap_or_default()
    }

    /// Queues a request as [`push`](Self::push) does, and tells what was done: it may be out of scope, or known.
    pub async fn add(&self, request: Request) -> Addition {
        self.ask(|reply| ControlMessage::Add(Box::new(request), reply)).await.unwrap_or(Addition::Ended)
    }

    /// Removes a host: its queued requests are dropped as `dropped_by_user`, and so are those that are found later in this run of the
    /// crawl. Requests in flight end as usual. Returns the length of its queue.
    pub async fn remove_host(&self, host: &HostKey) -> u64 {
        let host = host.clone();
        self.ask(|reply| ControlMessage::RemoveHost(host, reply)).await.unwrap_or(0)
    }

    /// Asks the loop; `None` if the crawl has ended.
    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> ControlMessage) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.cx.tell(Message::Control(message(reply)));
        answer.await.ok()
    }

    /// A report for each of the busiest hosts at this moment, like [`Context::hosts`].
    pub async fn hosts(&self) -> Vec<HostReport> {
        self.cx.hosts().await
    }

    /// The stats of the crawl.
    pub fn stats(&self) -> &Stats {
        self.cx.stats()
    }

    /// The context of the crawl.
    pub fn context(&self) -> &Context {
        &self.cx
    }
}
