//! Sending: every request to the network needs a start from the scheduler, whatever its origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::active::{ActiveBytes, CountedBytes};
use crate::context::{Context, Message};
use crate::event::Event;
use crate::fetch::{DynDownloader, FetchError, FetchErrorKind, Watch};
use crate::frontier::DynFrontier;
use crate::host::HostKey;
use crate::host_stats::HostStats;
use crate::meta;
use crate::pace::{Flight, Pace};
use crate::request::{Request, SentMark};
use crate::response::Response;
use crate::retry_after::requested_wait;
use crate::schedule::{Outcome, Ticket};
use crate::stats::Counter;

/// The last step before the network.
pub(crate) struct Sender {
    downloader: Box<dyn DynDownloader>,
    requests: Counter,
    wire_bytes: Counter,
    pace: Option<Pace>,
    active: ActiveBytes,
    pub(crate) hosts: HostStats,
    frontier: Arc<dyn DynFrontier>,
    /// Whether other processes share the queue.
    is_shared: AtomicBool,
}

impl Sender {
    pub(crate) fn new(
        downloader: Box<dyn DynDownloader>,
        cx: &Context,
        pace: Option<Pace>,
        active: ActiveBytes,
        frontier: Arc<dyn DynFrontier>,
    ) -> Self {
        Self {
            downloader,
            requests: cx.stats().counter("engine/requests_sent"),
            wire_bytes: cx.stats().counter("engine/wire_bytes"),
            pace,
            active,
            hosts: HostStats::new(cx.settings().stats_top_hosts),
            frontier,
            is_shared: AtomicBool::new(false),
        }
    }

    /// From now on the frontier is asked before each request, because other processes share its queue.
    pub(crate) fn share(&self) {
        self.is_shared.store(true, Ordering::Release);
    }

    pub(crate) async fn address(&self, host: &str) -> Option<std::net::IpAddr> {
        self.downloader.address(host).await
    }

    /// Waits until the slot of the request grants a start, and fetches.
    pub(crate) async fn send(&self, request: &Request, cx: &Context) -> Result<Response, FetchError> {
        let (ticket, flight) = self.start(request, cx).await?;
        let mut end =
            TicketEnd { ticket: Some(ticket), outcome: Outcome::Failed { host_failure: false }, cx };
        let started = cx.now();
        self.requests.inc();
        if let Some(mark) = request.extensions.get::<SentMark>() {
            mark.set();
        }
        let mut result = if cx.has_observers() {
            cx.emit(&Event::RequestReachedDownloader { request });
            self.downloader.fetch_watched(request, Watch::new(cx, request)).await
        } else {
            self.downloader.fetch(request).await
        };
        end.outcome = match &mut result {
            Ok(response) => {
                // Hold the bytes before the start ends; otherwise the next request could start while this response is
                // not counted yet.
                let bytes =
                    response.body.len().max(response.decoded.as_ref().map_or(0, |decoded| decoded.len()));
                response.counted = CountedBytes(Some(self.active.count(bytes)));
                self.wire_bytes.add(i64::try_from(response.wire_bytes).unwrap_or(i64::MAX));
                // On a new connection the server receives the request later than we send it; the gap to the next one
                // counts from then.
                let connecting = [response.timings.dns, response.timings.connect].into_iter().flatten().sum();
                if let Some(ticket) = &end.ticket {
                    ticket.sent(started + connecting);
                }
                if let Some(flight) = &flight {
                    flight.sent(cx.clock().instant(started + connecting));
                }
                let (status, latency) = (response.status.as_u16(), response.timings.ttfb);
                self.hosts.record_response(&request.host(), status, response.wire_bytes, latency);
                let slows = matches!(status, 429 | 503 | 300..=399);
                Outcome::Answer {
                    status,
                    latency,
                    bytes,
                    retry_after: if slows { requested_wait(&response.headers, cx.now()) } else { None },
                    adjust_delay: !request.meta_flag(meta::AUTOTHROTTLE_DONT_ADJUST_DELAY),
                }
            }
            Err(error) => {
                self.hosts.record_failure(&request.host(), error.kind(), &error.to_string());
                Outcome::Failed { host_failure: error.is_host_failure() }
            }
        };
        drop(end);
        drop(flight);
        if cx.has_observers() {
            cx.emit(&Event::RequestLeftDownloader { request, error: result.as_ref().err() });
            if let Ok(response) = &result {
                cx.emit(&Event::ResponseDownloaded { request, response });
            }
        }
        result
    }
}

impl Sender {
    /// Returns the start that came with the lease, or requests one; then waits for its turn among the crawls that share a
    /// pace, and among the processes that share the queue.
    async fn start(&self, request: &Request, cx: &Context) -> Result<(Ticket, Option<Flight>), FetchError> {
        let host = request.host();
        let mut held = cx.take_ticket();
        loop {
            match held {
                Some(ticket) if ticket.host == host && !ticket.is_void() => {
                    let flight = match &self.pace {
                        Some(pace) => Some(pace.start(&host, ticket.gap(), ticket.limit()).await),
                        None => None,
                    };
                    if self.is_shared.load(Ordering::Acquire) {
                        self.turn(&host, &ticket).await?;
                    }
                    if ticket.try_send(cx.now()) {
                        return Ok((ticket, flight));
                    }
                    cx.tell(Message::Ended(ticket, Outcome::Unused));
                }
                // Either the start is void, because the slot's rules became stricter since the grant (a Crawl-delay was
                // just read). Or it is for another slot: if it were kept, it would hold a place while it waits for one,
                // and once all places were held that way, no request would ever get one.
                Some(ticket) => cx.tell(Message::Ended(ticket, Outcome::Unused)),
                None => {}
            }
            let (sender, receiver) = oneshot::channel();
            cx.tell(Message::Start(host.clone(), sender));
            let granted = receiver.await.map_err(|_| {
                FetchError::new(FetchErrorKind::Cancelled, "the crawl ended before this request's turn")
            })?;
            held = Some(granted);
        }
    }

    /// Waits for the turn of this process. If the queue cannot be reached, the request goes back to it.
    async fn turn(&self, host: &HostKey, ticket: &Ticket) -> Result<(), FetchError> {
        let turn = self.frontier.turn(host, ticket.gap()).await;
        turn.map_err(|error| FetchError::new(FetchErrorKind::Cancelled, error.to_string()))
    }
}

/// Ends a start, even if the task is dropped in the middle.
struct TicketEnd<'a> {
    ticket: Option<Ticket>,
    outcome: Outcome,
    cx: &'a Context,
}

impl Drop for TicketEnd<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.cx.tell(Message::Ended(ticket, self.outcome));
        }
    }
}
