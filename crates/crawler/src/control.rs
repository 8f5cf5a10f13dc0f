//! What a running crawl tells about itself to people and programs that look at it, and how such a view is switched on.
//! [`Handle`](crate::Handle) gives these values; the crate `huntsman-serve` serves them.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::drop::DropReason;
use crate::report::HostReport;
use crate::request::Request;
use crate::secrets::redacted;
use crate::settings;

/// Why requests of a host that was removed from a crawl are dropped.
pub(crate) const REMOVED: &str = "dropped_by_user";

settings! {
    /// Whether a crawl that a command runs can be looked at and steered while it runs (`huntsman control`). A program that crawls by
    /// the library serves its crawl with `huntsman_serve::control`.
    pub struct ControlSettings {
        /// Serves the control of the running crawl on 127.0.0.1; every request needs the token in `control_file`.
        control: bool = false;
        /// Port of the control; 0 lets the system choose a free one.
        control_port: u16 = 0;
        /// File into which address and token of the control are written, readable by its owner only; if unset, control.json in the
        /// directory of the crawl.
        control_file: Option<String> = None;
    }
}

/// Whether a crawl goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CrawlState {
    /// It fetches pages, or waits until it may.
    Running,
    /// It starts no downloads until it is resumed.
    Paused,
    /// It takes no more requests; those in flight may end.
    Stopping,
    /// It has ended, or has not begun.
    Ended,
}

impl CrawlState {
    /// `running`, `paused`, `stopping` or `ended`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        }
    }
}

/// A running crawl at a moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CrawlStatus {
    /// Whether it goes on.
    pub state: CrawlState,
    /// Seconds since the crawl was built.
    pub elapsed_s: f64,
    /// Pages delivered to the spider, those of earlier runs of its job included.
    pub pages: u64,
    /// Items that passed the pipelines.
    pub items: u64,
    /// Requests sent to the network.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that a rule rejected.
    pub skipped: u64,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// Requests in the queue.
    pub queued: u64,
    /// Requests that were taken from the queue and are not done.
    pub in_flight: u64,
    /// Hosts with requests in flight or in the queue, except hosts that are down.
    pub hosts_active: usize,
    /// Hosts that are down or were given up.
    pub hosts_down: usize,
}

/// A host of a running crawl at a moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct HostStatus {
    /// What happened at the host so far, with its queue, its delay and the state of its slot.
    #[serde(flatten)]
    pub report: HostReport,
    /// Requests in flight.
    pub in_flight: u32,
    /// Most requests in flight at once that its rules allow now; `None` is no limit.
    pub concurrency: Option<u32>,
    /// When the slot wakes, if it sleeps or is down; RFC 3339.
    pub until: Option<String>,
}

/// A request that waits in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueuedRequest {
    /// Its URL, without user and password.
    pub url: String,
    /// Its method.
    pub method: String,
    /// Its slot.
    pub host: String,
    /// The label of its callback.
    pub callback: String,
    /// Links followed from the start.
    pub depth: u16,
    /// Its priority; higher ones leave first.
    pub priority: i32,
    /// Failed attempts so far.
    pub retries: u8,
    /// When it is due, if it is delayed; RFC 3339.
    pub not_before: Option<String>,
}

impl QueuedRequest {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            url: redacted(request.url.as_str()).into_owned(),
            method: request.method.to_string(),
            host: request.host().to_string(),
            callback: request.callback.to_string(),
            depth: request.depth,
            priority: request.priority,
            retries: request.retries,
            not_before: request.not_before.map(Timestamp::to_rfc3339),
        }
    }
}

/// What was done with a request that was added from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addition {
    /// It is in the queue.
    Queued,
    /// It was seen before.
    Duplicate,
    /// A component refused it, such as the scope of the crawl.
    Refused(DropReason),
    /// The crawl takes no more requests.
    Ended,
}
