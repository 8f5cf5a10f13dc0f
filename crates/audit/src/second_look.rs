//! A second look at slow pages: a time counts only if it is long once more, while nothing else is asked of the host.
//!
//! The requests have the lowest priority, so that nothing else of their host is queued when they are sent. They wait until nothing is under way
//! there either, and only one of them is under way at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{Context, OnRequest, Request, Timestamp, meta};
use url::{Position, Url};

/// How often a request has waited.
const WAITED: MetaKey<u64> = MetaKey::new("audit_waited");

/// Pages that are looked at twice.
const MAX_PAGES: usize = 1_000;
/// Lower than any priority that a crawl gives.
const PRIORITY: i32 = i32::MIN / 2;
/// How long a request waits for those that are under way before it asks again, and how often it does: four minutes in all.
const WAIT: Duration = Duration::from_millis(100);
const MAX_WAITS: u64 = 2_400;
/// A request that was not heard of for this time is no longer waited for.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// Whether a second look is under way, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct SecondLooks {
    /// Until when the one under way is waited for, in microseconds; 0 without one.
    until: AtomicU64,
    asked: AtomicUsize,
    /// Number of requests that are under way, by host with its port. There are no more hosts than requests in flight.
    in_flight: Mutex<HashMap<String, usize>>,
}

impl SecondLooks {
    /// A request for a page that was slow; `None` if there were enough of them.
    pub(crate) fn request(&self, url: &Url) -> Option<Request> {
        let request = Request::get(url.clone())
            .unfiltered()
            .priority(PRIORITY)
            .with_meta(meta::DONT_RETRY, true)
            .with_meta(meta::DONT_CACHE, true);
        (self.asked.fetch_add(1, Ordering::Relaxed) < MAX_PAGES).then_some(request)
    }

    /// Notes that a request was sent.
    pub(crate) fn sent(&self, request: &Request) {
        *self.in_flight().entry(host_of(request)).or_default() += 1;
    }

    /// Notes that a download has ended.
    pub(crate) fn ended(&self, request: &Request) {
        let (host, mut in_flight) = (host_of(request), self.in_flight());
        if let Some(number) = in_flight.get_mut(&host) {
            *number -= 1;
            if *number == 0 {
                in_flight.remove(&host);
            }
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request go, or puts it back while another one is under way.
    pub(crate) fn admit(&self, request: &Request, cx: &Context) -> OnRequest {
        let now: Timestamp = cx.now();
        let until = (now + FORGOTTEN).0;
        let waited = request.meta_value(WAITED).unwrap_or(0);
        let is_alone = waited >= MAX_WAITS || !self.in_flight().contains_key(&host_of(request));
        let take = |before: u64| (is_alone && before <= now.0).then_some(until);
        if self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok() {
            return OnRequest::Continue;
        }
        let mut later = request.clone().unfiltered().with_meta(WAITED, waited + 1);
        later.not_before = Some(now + WAIT);
        OnRequest::Reschedule(Box::new(later))
    }

    /// Notes that the second look that was under way has ended.
    pub(crate) fn looked(&self) {
        self.until.store(0, Ordering::Release);
    }
}

fn host_of(request: &Request) -> String {
    request.url[Position::BeforeHost..Position::AfterPort].to_owned()
}
