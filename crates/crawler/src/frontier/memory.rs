//! The frontier in memory: fast, exact, and gone with the process.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::{End, Frontier, Lease, LeaseId, Leased, Order, Pushed, Settled};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};

mod packed;
mod seen;

use packed::Packed;
use seen::Seen;

/// A [`Frontier`] in memory.
///
/// A queued request of a 60-byte URL takes some 270 bytes, a seen one 29; pushing and leasing cost one to four
/// microseconds each with a million queued. Everything is under one lock, which is held for a call at most. Typed values of a request (`extensions`) are
/// kept, as it never leaves the process.
#[derive(Debug)]
pub struct MemoryFrontier {
    order: Order,
    state: Mutex<State>,
    /// Outside of the lock: the engine asks after every event.
    queued: AtomicU64,
}

/// Where a request stands among those of its host: what makes the order of [`Order`], and what brings a released
/// request back to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    priority: std::cmp::Reverse<i32>,
    /// Start requests go after those that pages led to.
    is_start: bool,
    /// Inverted, so that the highest comes first; 0 unless the order is best first.
    score: u64,
    /// When it came; inverted for depth first.
    sequence: u64,
}

impl Place {
    const FIRST: Self =
        Self { priority: std::cmp::Reverse(i32::MAX), is_start: false, score: 0, sequence: 0 };
}

type HostId = u32;

/// Hosts, and leases, that room is kept for.
const ROOM: usize = 1_024;

/// A host that has queued requests.
#[derive(Debug)]
struct Host {
    id: HostId,
    due: u32,
    delayed: u32,
    /// The last call that changed it, so that each call looks once at what it had before.
    touched: u64,
}

#[derive(Debug)]
struct Held {
    host: HostKey,
    place: Place,
    request: Packed,
}

/// One map for the queues of all hosts, as on a disk: a map per host would take a kilobyte for a host with one request.
#[derive(Debug, Default)]
struct State {
    hosts: HashMap<HostKey, Host, foldhash::fast::RandomState>,
    free: Vec<HostId>,
    due: BTreeMap<(HostId, Place), Packed>,
    delayed: BTreeMap<(HostId, Timestamp, u64), (Place, Packed)>,
    leases: HashMap<u64, Held, foldhash::fast::RandomState>,
    seen: Seen,
    sequence: u64,
    last_lease: u64,
    calls: u64,
}

/// When the first work of a host is due: 0 is now, `u64::MAX` never.
type Earliest = u64;

/// Hosts that a call changed, with what they had before.
type Touched = Vec<(HostKey, Earliest)>;

impl MemoryFrontier {
    /// An empty frontier.
    pub fn new(order: Order) -> Self {
        Self { order, state: Mutex::default(), queued: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the state is half changed, short of a bug in the maps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a call that changed the queues.
    fn finish(&self, state: &State, touched: Touched, pushed: &mut Pushed) {
        self.queued.store((state.due.len() + state.delayed.len()) as u64, Ordering::Release);
        let is_woken = |(host, before): (HostKey, Earliest)| {
            let now = state.hosts.get(&host).map_or(Earliest::MAX, |entry| state.earliest(entry));
            (now < before).then_some(host)
        };
        pushed.woken = touched.into_iter().filter_map(is_woken).collect();
    }

    fn place(&self, request: &Request, sequence: u64) -> Place {
        let is_start = request.depth == 0 && request.meta_flag("is_start_request");
        let score = match self.order {
            Order::BestFirst => !ascending(request.meta_f64("score").unwrap_or(0.0)),
            Order::Bfs | Order::Dfs => 0,
        };
        // Start requests keep their own order, also depth first (ENG-6).
        let sequence = if self.order == Order::Dfs && !is_start { !sequence } else { sequence };
        Place { priority: std::cmp::Reverse(request.priority), is_start, score, sequence }
    }

    /// Queues a request; one that was seen comes back.
    fn offer(&self, state: &mut State, request: Request, touched: &mut Touched) -> Option<Request> {
        let fingerprint = request.fingerprint();
        if !request.unfiltered && !state.seen.insert(fingerprint) {
            return Some(request);
        }
        state.sequence += 1;
        let place = self.place(&request, state.sequence);
        let at = request.not_before;
        let (host, packed) = Packed::new(request, fingerprint);
        state.enqueue(host, place, at, packed, touched);
        None
    }
}

/// Maps a number to bits of the same order; both zeros are one.
fn ascending(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

/// Gives back most of the room of a map once nearly all of it is empty; whether it did.
fn give_back_room<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V, foldhash::fast::RandomState>) -> bool {
    let is_roomy = map.capacity() > ROOM && map.len() < map.capacity() / 8;
    if is_roomy {
        map.shrink_to(map.len() * 2);
    }
    is_roomy
}

impl State {
    fn earliest(&self, host: &Host) -> Earliest {
        match (host.due, host.delayed) {
            (0, 0) => Earliest::MAX,
            (0, _) => self.next_at(host.id).map_or(Earliest::MAX, |at| at.0),
            _ => 0,
        }
    }

    /// When the first delayed request is due.
    fn next_at(&self, id: HostId) -> Option<Timestamp> {
        let mut delayed = self.delayed.range((id, Timestamp(0), 0)..=(id, Timestamp::MAX, u64::MAX));
        delayed.next().map(|((_, at, _), _)| *at)
    }

    fn enqueue(
        &mut self,
        host: HostKey,
        place: Place,
        at: Option<Timestamp>,
        request: Packed,
        touched: &mut Touched,
    ) {
        let (call, ids) = (self.calls, self.hosts.len());
        let free = &mut self.free;
        let entry = self.hosts.entry(host.clone()).or_insert_with(|| {
            let id = free
                .pop()
                .unwrap_or_else(|| HostId::try_from(ids).expect("memory ends before four billion hosts"));
            Host { id, due: 0, delayed: 0, touched: 0 }
        });
        let id = entry.id;
        let is_first = std::mem::replace(&mut entry.touched, call) != call;
        let had_none = entry.due == 0 && entry.delayed == 0;
        match at {
            None => entry.due += 1,
            Some(_) => entry.delayed += 1,
        }
        if is_first {
            let before = if had_none { Earliest::MAX } else { self.earliest_before(&host, at) };
            touched.push((host, before));
        }
        match at {
            None => drop(self.due.insert((id, place), request)),
            Some(at) => drop(self.delayed.insert((id, at, place.sequence), (place, request))),
        }
    }

    /// What a host had before the request that was just counted and is not queued yet.
    fn earliest_before(&self, host: &HostKey, at: Option<Timestamp>) -> Earliest {
        let Some(entry) = self.hosts.get(host) else { return Earliest::MAX };
        let due = entry.due - u32::from(at.is_none());
        if due > 0 { 0 } else { self.next_at(entry.id).map_or(Earliest::MAX, |at| at.0) }
    }

    /// Forgets a host that has nothing queued.
    fn forget_if_empty(&mut self, host: &HostKey) {
        if let hashbrown::hash_map::EntryRef::Occupied(entry) = self.hosts.entry_ref(host)
            && entry.get().due == 0
            && entry.get().delayed == 0
        {
            self.free.push(entry.remove().id);
        }
        // A crawl that was broad once does not keep the room for it.
        if self.hosts.is_empty() {
            self.free.clear();
            self.free.shrink_to(ROOM);
        }
        if give_back_room(&mut self.hosts) {
            self.free.shrink_to(0);
        }
    }

    fn release(&mut self, held: Held, touched: &mut Touched) {
        // It was due when it was leased.
        self.enqueue(held.host, held.place, None, held.request, touched);
    }
}

impl Frontier for MemoryFrontier {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        let mut state = self.lock();
        let state = &mut *state;
        state.calls += 1;
        let mut touched = Touched::new();
        let mut leases: Vec<(u64, Held)> = state.leases.drain().collect();
        leases.sort_unstable_by_key(|(lease, _)| *lease);
        for (_, held) in leases {
            state.release(held, &mut touched);
        }
        self.finish(state, touched, &mut Pushed::default());
        let mut hosts: Vec<(HostKey, u64)> = state
            .hosts
            .iter()
            .map(|(host, entry)| (host.clone(), u64::from(entry.due) + u64::from(entry.delayed)))
            .collect();
        hosts.sort_unstable();
        Ok(hosts)
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        let mut state = self.lock();
        let state = &mut *state;
        state.calls += 1;
        let (mut pushed, mut touched) = (Pushed::default(), Touched::new());
        for request in batch {
            match self.offer(state, request, &mut touched) {
                None => pushed.accepted += 1,
                Some(_) => pushed.duplicates += 1,
            }
        }
        self.finish(state, touched, &mut pushed);
        Ok(pushed)
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(entry) = state.hosts.get_mut(host) else { return Ok(Leased::default()) };
        let id = entry.id;
        let is_due = (id, Timestamp(0), 0)..=(id, now, u64::MAX);
        for (_, (place, request)) in state.delayed.extract_if(is_due, |_, _| true) {
            entry.delayed -= 1;
            entry.due += 1;
            state.due.insert((id, place), request);
        }
        let mut leased = Leased::default();
        while leased.leases.len() < max {
            let first = state.due.range((id, Place::FIRST)..).next().map(|(key, _)| *key);
            let Some(key) = first.filter(|key| key.0 == id) else { break };
            let btree_map::Entry::Occupied(first) = state.due.entry(key) else { break };
            let request = first.remove();
            entry.due -= 1;
            state.last_lease += 1;
            leased.leases.push(Lease { id: LeaseId(state.last_lease), request: request.unpack(host) });
            let held = Held { host: host.clone(), place: key.1, request };
            state.leases.insert(state.last_lease, held);
        }
        leased.due = u64::from(entry.due);
        leased.next_at = if entry.delayed == 0 { None } else { state.next_at(id) };
        state.forget_if_empty(host);
        self.queued.store((state.due.len() + state.delayed.len()) as u64, Ordering::Release);
        Ok(leased)
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        let mut state = self.lock();
        let state = &mut *state;
        state.calls += 1;
        let (mut pushed, mut touched) = (Pushed::default(), Touched::new());
        for settled in batch {
            // A lease that is not out any more was settled before: its end is not counted again.
            if let Some(held) = state.leases.remove(&settled.lease.0) {
                match settled.end {
                    End::Done => {}
                    End::Release => state.release(held, &mut touched),
                    End::Again(request) => match self.offer(state, *request, &mut touched) {
                        None => pushed.accepted += 1,
                        Some(known) => pushed.refused.push(known),
                    },
                }
            }
            for child in settled.children {
                match self.offer(state, child, &mut touched) {
                    None => pushed.accepted += 1,
                    Some(_) => pushed.duplicates += 1,
                }
            }
        }
        give_back_room(&mut state.leases);
        self.finish(state, touched, &mut pushed);
        Ok(pushed)
    }

    fn is_seen(&self, fingerprint: Fingerprint) -> bool {
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
        let state = frontier.lock();
        assert!(state.hosts.is_empty() && state.due.is_empty() && state.leases.is_empty());
        assert!(state.hosts.capacity() <= 2 * ROOM && state.free.is_empty());
    }
}
