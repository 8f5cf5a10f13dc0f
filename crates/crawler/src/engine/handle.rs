//! The handle: steers a crawl from outside.

use crate::context::{Context, Message, Politeness};
use crate::host::HostKey;
use crate::report::HostReport;
use crate::request::Request;
use crate::stats::Stats;

/// Steers a running crawl; cheap to clone, and safe to keep after the crawl has ended.
#[derive(Clone, Debug)]
pub struct Handle {
    cx: Context,
}

impl Handle {
    pub(crate) fn new(cx: Context) -> Self {
        Self { cx }
    }

    /// Takes no more requests, lets what is in flight end, and closes with a finish reason (`shutdown` for signals).
    pub fn stop(&self, reason: &str) {
        self.cx.stop(reason);
    }

    /// Ends now: what is in flight is dropped and goes back to the queue.
    pub fn abort(&self) {
        self.cx.tell(Message::Abort);
    }

    /// Starts no more downloads until [`Handle::resume`]; those in flight end.
    pub fn pause(&self) {
        self.cx.tell(Message::Pause);
    }

    /// Goes on after [`Handle::pause`].
    pub fn resume(&self) {
        self.cx.tell(Message::Resume);
    }

    /// Whether the crawl stays open when nothing is left to do, for requests that are pushed from outside; it then ends by
    /// [`Handle::stop`], a limit, or when this is taken back. Off at the start; said before the crawl runs, it is in force when
    /// it begins.
    pub fn keep_open(&self, open: bool) {
        self.cx.tell(Message::KeepOpen(open));
    }

    /// Queues a request.
    pub fn push(&self, request: Request) {
        self.cx.push(vec![request]);
    }

    /// Changes the politeness of a slot.
    pub fn politeness(&self, host: &HostKey, change: Politeness) {
        self.cx.tell(Message::Politeness(host.clone(), change, None));
    }

    /// As [`Context::hosts`].
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
