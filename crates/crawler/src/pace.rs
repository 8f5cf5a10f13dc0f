//! Politeness across several crawls of one process: together they treat a host as one crawl would.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::host::HostKey;

/// Up to this number of hosts, old ones are not looked for.
const MIN_HOSTS: usize = 1_024;

/// The starts on each host, shared by all crawls that were given a clone of it
/// ([`CrawlerBuilder::pace`](crate::CrawlerBuilder::pace)).
///
/// Between two starts on a host passes at least the longer of the delays that the two crawls have for it, and the
/// number of requests in flight stays within the stricter of their limits. What only one crawl knows (`Retry-After`
/// and failures) applies to that crawl only.
///
/// Hosts whose delay has passed are forgotten. A start costs a lock for a fraction of a microsecond.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notifies when a request ended, or when the first of the waiting starts has begun or was cancelled.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    hosts: HashMap<HostKey, Entry, foldhash::fast::RandomState>,
    /// When there are more hosts than this, old ones are looked for.
    most: usize,
    /// Number of the next waiting start.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    last: Instant,
    /// The delay of the crawl that made the last start.
    gap: Duration,
    in_flight: u32,
    /// The smallest limit among the crawls with a request in flight.
    limit: u32,
    /// Waiting starts, served in order of arrival. Otherwise a crawl with a short delay would always be ahead of a
    /// crawl with a long one.
    waiting: BTreeSet<u64>,
}

/// A waiting start; it leaves the queue when it is dropped.
struct Place<'a> {
    pace: &'a Pace,
    host: &'a HostKey,
    number: u64,
}

/// What a start waits for.
enum Wait {
    Until(Instant),
    Freed,
}

/// A request in flight; dropping it ends the request.
#[derive(Debug)]
pub(crate) struct Flight {
    pace: Pace,
    host: HostKey,
}

impl Pace {
    /// A pace without any starts so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until a crawl with this delay and this concurrency for a host may start a request there.
    pub(crate) async fn start(&self, host: &HostKey, gap: Duration, limit: u32) -> Flight {
        let mut place = None;
        loop {
            // Listen before the check; otherwise the end of a request between the two would be missed.
            let mut freed = pin!(self.0.freed.notified());
            freed.as_mut().enable();
            let number = place.as_ref().map(|place: &Place<'_>| place.number);
            let (wait, number) = {
                let mut state = self.state();
                let wait = state.start(host, gap, limit, number, Instant::now());
                let number = wait.is_some().then(|| state.wait(host, number)).flatten();
                (wait, number)
            };
            place = place.or_else(|| number.map(|number| Place { pace: self, host, number }));
            match wait {
                None => return Flight { pace: self.clone(), host: host.clone() },
                Some(Wait::Until(at)) => tokio::time::sleep_until(at).await,
                Some(Wait::Freed) => freed.await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // If a thread panicked while it held the lock, the map is still consistent.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records a start, or returns what it has to wait for.
    fn start(
        &mut self,
        host: &HostKey,
        gap: Duration,
        limit: u32,
        number: Option<u64>,
        now: Instant,
    ) -> Option<Wait> {
        if let Some(entry) = self.hosts.get_mut(host) {
            let first = entry.waiting.first().copied();
            if first.is_some() && first != number {
                return Some(Wait::Freed);
            }
            if entry.in_flight > 0 && entry.in_flight >= limit.min(entry.limit) {
                return Some(Wait::Freed);
            }
            let at = entry.last + gap.max(entry.gap);
            if at > now {
                return Some(Wait::Until(at));
            }
            entry.limit = if entry.in_flight == 0 { limit } else { limit.min(entry.limit) };
            (entry.last, entry.gap) = (now, gap);
            entry.in_flight += 1;
            return None;
        }
        if self.hosts.len() >= self.most.max(MIN_HOSTS) {
            self.hosts.retain(|_, entry| {
                entry.in_flight > 0 || !entry.waiting.is_empty() || entry.last + entry.gap > now
            });
            self.most = self.hosts.len() * 2;
        }
        let entry = Entry { last: now, gap, in_flight: 1, limit, waiting: BTreeSet::new() };
        self.hosts.insert(host.clone(), entry);
        None
    }

    /// Adds a start to the waiting ones, unless it has a number already. Returns its number.
    fn wait(&mut self, host: &HostKey, number: Option<u64>) -> Option<u64> {
        if number.is_some() {
            return None;
        }
        self.next += 1;
        self.hosts.get_mut(host)?.waiting.insert(self.next);
        Some(self.next)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.pace.state().hosts.get_mut(self.host) {
            entry.waiting.remove(&self.number);
        }
        self.pace.0.freed.notify_waiters();
    }
}

impl Flight {
    /// Records that the server received the request only at this time; the gap to the next request counts from there.
    pub(crate) fn sent(&self, at: Instant) {
        if let Some(entry) = self.pace.state().hosts.get_mut(&self.host) {
            entry.last = entry.last.max(at);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(entry) = self.pace.state().hosts.get_mut(&self.host) {
            entry.in_flight -= 1;
        }
        self.pace.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_longer_delay_and_the_stricter_limit_count() {
        let pace = Pace::new();
        let host = HostKey::new("a");
        let begun = Instant::now();
        let first = pace.start(&host, SECOND * 5, 1).await;
        let other = pace.clone();
        let waiting = tokio::spawn(async move { other.start(&HostKey::new("a"), SECOND, 4).await });
        tokio::time::sleep(SECOND * 20).await;
        assert!(!waiting.is_finished(), "one at a time, says the first");
        drop(first);
        let second = waiting.await.unwrap();
        drop(second);
        assert_eq!(begun.elapsed(), SECOND * 20);
        drop(pace.start(&host, SECOND * 5, 1).await);
        assert_eq!(begun.elapsed(), SECOND * 25, "after the start of the second");
        drop(pace.start(&host, SECOND, 4).await);
        assert_eq!(begun.elapsed(), SECOND * 30, "its own delay is short, that of the one before is not");
        drop(pace.start(&HostKey::new("b"), SECOND, 4).await);
        assert_eq!(begun.elapsed(), SECOND * 30, "other hosts do not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_whose_delay_has_passed_are_forgotten() {
        let pace = Pace::new();
        for n in 0..100_000 {
            drop(pace.start(&HostKey::new(&format!("h{n}")), SECOND, 1).await);
            tokio::time::advance(SECOND / 100).await;
        }
        assert!(pace.state().hosts.len() <= 2 * MIN_HOSTS, "{}", pace.state().hosts.len());
    }
}
