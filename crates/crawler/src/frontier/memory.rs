//! The frontier in memory: fast, exact, and lost when the process ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::packed::Packed;
use super::queue::{ChangedHosts, Queue, QueuePosition};
use super::seen::Seen;
use super::{End, Frontier, Lease, LeaseId, Leased, Order, Pushed, Settled};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

/// A [`Frontier`] in memory.
///
/// A queued request with a 60-byte URL takes some 270 bytes, a seen one 29. Pushing and leasing cost one to four
/// microseconds each with a million queued requests. The state is under one lock, which is held for one call at most.
/// Typed values of a request (`extensions`) are kept, because it never leaves the process.
#[derive(Debug)]
pub struct MemoryFrontier {
    order: Order,
    state: Mutex<State>,
    /// Kept outside of the lock, because the engine reads it after every event.
    queued: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    queue: Queue<Packed>,
    seen: Seen,
    sequence: u64,
}

impl MemoryFrontier {
    /// An empty frontier.
    pub fn new(order: Order) -> Self {
        Self { order, state: Mutex::default(), queued: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while the state is half changed, except for a bug in the maps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a call that changed the queues.
    fn finish(&self, state: &mut State, changed: ChangedHosts, pushed: &mut Pushed) {
        self.queued.store(state.queue.len(), Ordering::Release);
        pushed.woken = state.queue.woken(changed);
    }

    /// Queues a request; if its fingerprint was seen, the request is returned.
    fn offer(&self, state: &mut State, request: Request, changed: &mut ChangedHosts) -> Option<Request> {
        let fingerprint = request.fingerprint();
        if !request.unfiltered && !state.seen.insert(fingerprint) {
            return Some(request);
        }
        state.sequence += 1;
        let place = QueuePosition::of(&request, self.order, state.sequence);
        let at = request.not_before;
        let (host, packed) = Packed::new(request, fingerprint);
        state.queue.enqueue(&host, place, at, packed, changed);
        None
    }
}

impl Frontier for MemoryFrontier {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        let mut state = self.lock();
        state.queue.release_all();
        self.queued.store(state.queue.len(), Ordering::Release);
        Ok(state.queue.hosts())
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        let mut state = self.lock();
        let state = &mut *state;
        let (mut pushed, mut changed) = (Pushed::default(), state.queue.begin());
        for request in batch {
            match self.offer(state, request, &mut changed) {
                None => pushed.accepted += 1,
                Some(_) => pushed.duplicates += 1,
            }
        }
        self.finish(state, changed, &mut pushed);
        Ok(pushed)
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        let mut state = self.lock();
        let queue = &mut state.queue;
        queue.make_due(host, now);
        let mut leased = Leased::default();
        while leased.leases.len() < max {
            let Some((lease, held)) = queue.pop(host) else { break };
            leased.leases.push(Lease { id: LeaseId(lease), request: held.request.unpack(host) });
        }
        (leased.due, leased.next_at) = queue.due_and_next(host);
        queue.forget_if_empty(host);
        self.queued.store(queue.len(), Ordering::Release);
        Ok(leased)
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        let mut state = self.lock();
        let state = &mut *state;
        let (mut pushed, mut changed) = (Pushed::default(), state.queue.begin());
        for settled in batch {
            // A lease that is no longer out was settled before; its end is not counted again.
            if let Some(held) = state.queue.end(settled.lease.0) {
                match settled.end {
                    End::Done => {}
                    End::Release => state.queue.release(held, &mut changed),
                    End::Reschedule(request) => match self.offer(state, *request, &mut changed) {
                        None => pushed.accepted += 1,
                        Some(known) => pushed.refused.push(known),
                    },
                }
            }
            for child in settled.children {
                match self.offer(state, child, &mut changed) {
                    None => pushed.accepted += 1,
                    Some(_) => pushed.duplicates += 1,
                }
            }
        }
        self.finish(state, changed, &mut pushed);
        Ok(pushed)
    }

    async fn longest_queues(&self, most: usize) -> Result<Vec<(HostKey, u64)>> {
        Ok(self.lock().queue.longest(most))
    }

    async fn queued_of(&self, host: &HostKey) -> Result<u64> {
        Ok(self.lock().queue.queued_of(host))
    }

    async fn peek(&self, host: &HostKey, most: usize) -> Result<Vec<Request>> {
        let state = self.lock();
        Ok(state.queue.of_host(host).take(most).map(|packed| packed.unpack(host)).collect())
    }

    fn has_seen(&self, fingerprint: Fingerprint) -> bool {
        self.lock().seen.contains(fingerprint)
    }

    fn len(&self) -> u64 {
        self.queued.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn hosts_that_are_done_leave_nothing_behind() {
        let frontier = MemoryFrontier::new(Order::Bfs);
        let requests: Vec<Request> =
            (0..20_000).map(|n| Request::parse(&format!("http://h{n}.example/")).unwrap()).collect();
        let hosts: Vec<HostKey> = requests.iter().map(Request::host).collect();
        frontier.push(requests).await.unwrap();
        for host in hosts {
            let lease = frontier.lease(&host, 1, Timestamp(0)).await.unwrap().leases.pop().unwrap();
            frontier
                .settle(vec![Settled { lease: lease.id, host, end: End::Done, children: Vec::new() }])
                .await
                .unwrap();
        }
        assert!(frontier.lock().queue.is_empty_and_shrunk());
    }
}
