//! The handle: controls a crawl from outside.

use crate::context::{Context, Message, Politeness};
use crate::host::HostKey;
use crate::report::HostReport;
use crate::request::Request;
use crate::stats::Stats;

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
