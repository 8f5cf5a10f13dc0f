//! The ordered queue of each host in memory, and the leased requests. All frontiers share this code.

use std::cmp::Reverse;
use std::collections::{BTreeMap, btree_map};

use hashbrown::HashMap;

use super::Order;
use crate::clock::Timestamp;
use crate::host::HostKey;
use crate::meta;
use crate::request::Request;

/// The position of a request among those of its host. It implements [`Order`], and returns a released request to its
/// former position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    pub(super) priority: Reverse<i32>,
    /// Start requests leave after requests that were found on pages.
    pub(super) is_start: bool,
    /// The score, inverted so that the highest comes first; 0 unless the order is best first.
    pub(super) score: u64,
    /// The sequence number of arrival; inverted for depth first. It is unique within a frontier.
    pub(super) sequence: u64,
}

impl QueuePosition {
    pub(super) const FIRST: Self =
        Self { priority: Reverse(i32::MAX), is_start: false, score: 0, sequence: 0 };
    const LAST: Self =
        Self { priority: Reverse(i32::MIN), is_start: true, score: u64::MAX, sequence: u64::MAX };

    /// The place of a request that arrived as number `sequence`.
    pub(super) fn of(request: &Request, order: Order, sequence: u64) -> Self {
        let is_start = request.depth == 0 && request.meta_flag(meta::IS_START_REQUEST);
        let score = match order {
            Order::BestFirst => !ascending(request.meta_value(meta::SCORE).unwrap_or(0.0)),
            Order::Bfs | Order::Dfs => 0,
        };
        // Start requests keep their own order, even if the crawl is depth first.
        let sequence = if order == Order::Dfs && !is_start { !sequence } else { sequence };
        Self { priority: Reverse(request.priority), is_start, score, sequence }
    }
}

/// Maps a number to bits with the same order; both zeros become equal.
fn ascending(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

type HostId = u32;

/// Number of hosts, and of leases, that capacity is kept for.
pub(super) const MIN_CAPACITY: usize = 1_024;

/// A host that has queued requests.
#[derive(Debug)]
struct Host {
    id: HostId,
    due: u32,
    delayed: u32,
    /// Number of due requests that are on disk.
    spilled: u64,
    /// The last call that changed it; each call records the earlier state of a host only once.
    changed_in: u64,
}

/// A request that is leased.
#[derive(Debug)]
pub(super) struct LeasedRequest<P> {
    pub(super) host: HostKey,
    pub(super) place: QueuePosition,
    pub(super) request: P,
}

/// When the first request of a host is due: 0 means now, `u64::MAX` never.
type Earliest = u64;

/// Hosts that a call changed, with their earliest due times before it.
pub(super) type ChangedHosts = Vec<(HostKey, Earliest)>;

/// The queues of all hosts, with requests in the form `P`.
///
/// There is one map for all hosts, because a map per host would take a kilobyte for a host with one request.
#[derive(Debug)]
pub(super) struct Queue<P> {
    hosts: HashMap<HostKey, Host, foldhash::fast::RandomState>,
    free: Vec<HostId>,
    due: BTreeMap<(HostId, QueuePosition), P>,
    delayed: Delayed<P>,
    leases: HashMap<u64, LeasedRequest<P>, foldhash::fast::RandomState>,
    spilled: u64,
    last_lease: u64,
    calls: u64,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Self {
            hosts: HashMap::default(),
            free: Vec::new(),
            due: BTreeMap::new(),
            delayed: BTreeMap::new(),
            leases: HashMap::default(),
            spilled: 0,
            last_lease: 0,
            calls: 0,
        }
    }
}

impl Host {
    /// A host without requests. Ids of removed hosts are reused.
    fn new(ids: usize, free: &mut Vec<HostId>) -> Self {
        let id = free
            .pop()
            .unwrap_or_else(|| HostId::try_from(ids).expect("memory ends before four billion hosts"));
        Self { id, due: 0, delayed: 0, spilled: 0, changed_in: 0 }
    }

    /// Number of its requests, in memory or not.
    fn queued(&self) -> u64 {
        u64::from(self.due) + u64::from(self.delayed) + self.spilled
    }
}

type Delayed<P> = BTreeMap<(HostId, Timestamp, u64), (QueuePosition, P)>;

fn earliest<P>(delayed: &Delayed<P>, host: &Host) -> Earliest {
    match (host.due > 0 || host.spilled > 0, host.delayed) {
        (true, _) => 0,
        (false, 0) => Earliest::MAX,
        (false, _) => next_of(delayed, host.id).map_or(Earliest::MAX, |at| at.0),
    }
}

fn next_of<P>(delayed: &Delayed<P>, id: HostId) -> Option<Timestamp> {
    let mut delayed = delayed.range((id, Timestamp(0), 0)..=(id, Timestamp::MAX, u64::MAX));
    delayed.next().map(|((_, at, _), _)| *at)
}

/// Shrinks a map once nearly all of it is empty. Returns whether it did.
fn shrink_if_sparse<K: Eq + std::hash::Hash, V>(
    map: &mut HashMap<K, V, foldhash::fast::RandomState>,
) -> bool {
    let is_sparse = map.capacity() > MIN_CAPACITY && map.len() < map.capacity() / 8;
    if is_sparse {
        map.shrink_to(map.len() * 2);
    }
    is_sparse
}

impl<P> Queue<P> {
    /// Begins a call that has to report which hosts it wakes.
    pub(super) fn begin(&mut self) -> ChangedHosts {
        self.calls += 1;
        ChangedHosts::new()
    }

    /// The hosts whose first request is due earlier than before the call.
    pub(super) fn woken(&mut self, changed: ChangedHosts) -> Vec<HostKey> {
        shrink_if_sparse(&mut self.leases);
        let is_woken = |(host, before): (HostKey, Earliest)| {
            let now = self.hosts.get(&host).map_or(Earliest::MAX, |entry| self.earliest(entry));
            (now < before).then_some(host)
        };
        changed.into_iter().filter_map(is_woken).collect()
    }

    /// Number of queued requests, including delayed ones, without leased ones.
    pub(super) fn len(&self) -> u64 {
        (self.due.len() + self.delayed.len()) as u64 + self.spilled
    }

    fn earliest(&self, host: &Host) -> Earliest {
        earliest(&self.delayed, host)
    }

    /// When the first delayed request is due.
    fn next_of(&self, id: HostId) -> Option<Timestamp> {
        next_of(&self.delayed, id)
    }

    /// The host's entry, created if it is missing. Before the first change of a call, `touched` records its earlier
    /// state.
    fn touch(&mut self, host: &HostKey, changed: &mut ChangedHosts) -> &mut Host {
        let (call, delayed) = (self.calls, &self.delayed);
        let (ids, free) = (self.hosts.len(), &mut self.free);
        let entry = self.hosts.entry(host.clone()).or_insert_with(|| Host::new(ids, free));
        if entry.changed_in != call {
            entry.changed_in = call;
            changed.push((host.clone(), earliest(delayed, entry)));
        }
        entry
    }

    /// Queues a request that is due at once or at a given time.
    pub(super) fn enqueue(
        &mut self,
        host: &HostKey,
        place: QueuePosition,
        at: Option<Timestamp>,
        request: P,
        changed: &mut ChangedHosts,
    ) {
        let entry = self.touch(host, changed);
        let id = entry.id;
        match at {
            None => {
                entry.due += 1;
                self.due.insert((id, place), request);
            }
            Some(at) => {
                entry.delayed += 1;
                self.delayed.insert((id, at, place.sequence), (place, request));
            }
        }
    }

    /// Makes those delayed requests of a host due whose time has come.
    pub(super) fn make_due(&mut self, host: &HostKey, now: Timestamp) {
        let Some(entry) = self.hosts.get_mut(host) else { return };
        if entry.delayed == 0 {
            return;
        }
        let id = entry.id;
        let is_due = (id, Timestamp(0), 0)..=(id, now, u64::MAX);
        for (_, (place, request)) in self.delayed.extract_if(is_due, |_, _| true) {
            entry.delayed -= 1;
            entry.due += 1;
            self.due.insert((id, place), request);
        }
    }

    /// The place of the first due request of a host that is in memory.
    pub(super) fn first(&self, host: &HostKey) -> Option<QueuePosition> {
        let entry = self.hosts.get(host)?;
        if entry.due == 0 {
            return None;
        }
        let mut due = self.due.range((entry.id, QueuePosition::FIRST)..=(entry.id, QueuePosition::LAST));
        due.next().map(|((_, place), _)| *place)
    }

    /// Leases the first due request of a host that is in memory.
    pub(super) fn pop(&mut self, host: &HostKey) -> Option<(u64, &LeasedRequest<P>)> {
        let entry = self.hosts.get_mut(host)?;
        let id = entry.id;
        let key = self
            .due
            .range((id, QueuePosition::FIRST)..)
            .next()
            .map(|(key, _)| *key)
            .filter(|key| key.0 == id)?;
        let btree_map::Entry::Occupied(first) = self.due.entry(key) else { return None };
        let request = first.remove();
        entry.due -= 1;
        self.last_lease += 1;
        let held = LeasedRequest { host: host.clone(), place: key.1, request };
        let held = self.leases.entry(self.last_lease).insert(held).into_mut();
        Some((self.last_lease, held))
    }

    /// Number of due requests of a host, and when the first delayed one is due.
    pub(super) fn due_and_next(&self, host: &HostKey) -> (u64, Option<Timestamp>) {
        let Some(entry) = self.hosts.get(host) else { return (0, None) };
        let next_at = if entry.delayed == 0 { None } else { self.next_of(entry.id) };
        (u64::from(entry.due) + entry.spilled, next_at)
    }

    /// Forgets a host without queued requests.
    pub(super) fn forget_if_empty(&mut self, host: &HostKey) {
        if let hashbrown::hash_map::EntryRef::Occupied(entry) = self.hosts.entry_ref(host)
            && entry.get().due == 0
            && entry.get().delayed == 0
            && entry.get().spilled == 0
        {
            self.free.push(entry.remove().id);
        }
        // A crawl that was broad once does not keep the memory for it.
        if self.hosts.is_empty() {
            self.free.clear();
            self.free.shrink_to(MIN_CAPACITY);
        }
        if shrink_if_sparse(&mut self.hosts) {
            self.free.shrink_to(0);
        }
    }

    /// Ends a lease; `None` if it is no longer out.
    pub(super) fn end(&mut self, lease: u64) -> Option<LeasedRequest<P>> {
        self.leases.remove(&lease)
    }

    /// Returns a leased request to its place. It was due when it was leased.
    pub(super) fn release(&mut self, held: LeasedRequest<P>, changed: &mut ChangedHosts) {
        self.enqueue(&held.host, held.place, None, held.request, changed);
    }

    /// Returns all leased requests to the queue.
    pub(super) fn release_all(&mut self) {
        let mut changed = self.begin();
        let mut leases: Vec<(u64, LeasedRequest<P>)> = self.leases.drain().collect();
        leases.sort_unstable_by_key(|(lease, _)| *lease);
        for (_, held) in leases {
            self.release(held, &mut changed);
        }
    }

    /// The hosts with queued requests and their numbers, by name.
    pub(super) fn hosts(&self) -> Vec<(HostKey, u64)> {
        let mut hosts: Vec<(HostKey, u64)> =
            self.hosts.iter().map(|(host, entry)| (host.clone(), entry.queued())).collect();
        hosts.sort_unstable();
        hosts
    }

    /// The hosts with the longest queues, longest first. It looks at all hosts, but copies only the names that it returns.
    pub(super) fn longest(&self, most: usize) -> Vec<(HostKey, u64)> {
        let mut hosts: Vec<(Reverse<u64>, &HostKey)> =
            self.hosts.iter().map(|(host, entry)| (Reverse(entry.queued()), host)).collect();
        if most > 0 && most < hosts.len() {
            hosts.select_nth_unstable(most - 1);
        }
        hosts.truncate(most);
        hosts.sort_unstable();
        hosts.into_iter().map(|(Reverse(queued), host)| (host.clone(), queued)).collect()
    }

    /// Number of queued requests of a host, including delayed ones.
    pub(super) fn queued_of(&self, host: &HostKey) -> u64 {
        self.hosts.get(host).map_or(0, Host::queued)
    }

    /// The due requests of a host that are in memory, with their places, in their order.
    pub(super) fn due_of(&self, host: &HostKey) -> impl Iterator<Item = (QueuePosition, &P)> {
        let id = self.hosts.get(host).map(|entry| entry.id).into_iter();
        id.flat_map(|id| self.due.range((id, QueuePosition::FIRST)..=(id, QueuePosition::LAST)))
            .map(|((_, place), request)| (*place, request))
    }

    /// The delayed requests of a host, by their time.
    pub(super) fn delayed_of(&self, host: &HostKey) -> impl Iterator<Item = &P> {
        let id = self.hosts.get(host).map(|entry| entry.id).into_iter();
        id.flat_map(|id| self.delayed.range((id, Timestamp(0), 0)..=(id, Timestamp::MAX, u64::MAX)))
            .map(|(_, (_, request))| request)
    }
}

/// Operations for a frontier that keeps a part of its queues on disk.
impl<P> Queue<P> {
    /// Number of due requests in memory, without leased ones.
    pub(super) fn in_memory(&self) -> usize {
        self.due.len()
    }

    /// The hosts with more than `keep` due requests in memory, the longest queues first.
    pub(super) fn largest_hosts(&self, keep: usize) -> Vec<(HostKey, usize)> {
        let mut hosts: Vec<(HostKey, usize)> = self
            .hosts
            .iter()
            .filter(|(_, entry)| entry.due as usize > keep)
            .map(|(host, entry)| (host.clone(), entry.due as usize - keep))
            .collect();
        hosts.sort_unstable_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
        hosts
    }

    /// Removes the last `most` due requests of a host from memory and returns them in order; they count as spilled.
    pub(super) fn spill(&mut self, host: &HostKey, most: usize) -> Vec<(QueuePosition, P)> {
        let Some(entry) = self.hosts.get_mut(host) else { return Vec::new() };
        let id = entry.id;
        let keys: Vec<(HostId, QueuePosition)> = self
            .due
            .range((id, QueuePosition::FIRST)..=(id, QueuePosition::LAST))
            .rev()
            .take(most)
            .map(|(key, _)| *key)
            .collect();
        let mut taken = Vec::with_capacity(keys.len());
        for key in keys.into_iter().rev() {
            if let Some(request) = self.due.remove(&key) {
                entry.due -= 1;
                entry.spilled += 1;
                self.spilled += 1;
                taken.push((key.1, request));
            }
        }
        taken
    }

    /// Puts spilled requests of a host back into memory.
    pub(super) fn unspill(&mut self, host: &HostKey, requests: impl IntoIterator<Item = (QueuePosition, P)>) {
        let Some(entry) = self.hosts.get_mut(host) else { return };
        for (place, request) in requests {
            entry.due += 1;
            entry.spilled -= 1;
            self.spilled -= 1;
            self.due.insert((entry.id, place), request);
        }
    }

    /// Counts requests of a host that are already on disk.
    pub(super) fn add_spilled(&mut self, host: &HostKey, count: u64) {
        let (ids, free) = (self.hosts.len(), &mut self.free);
        self.hosts.entry(host.clone()).or_insert_with(|| Host::new(ids, free)).spilled += count;
        self.spilled += count;
    }

    /// Number of leased requests.
    pub(super) fn leased(&self) -> usize {
        self.leases.len()
    }

    /// The queued requests of a host in memory: due ones in their order, then delayed ones by their time.
    pub(super) fn of_host(&self, host: &HostKey) -> impl Iterator<Item = &P> {
        self.due_of(host).map(|(_, request)| request).chain(self.delayed_of(host))
    }

    /// Forgets all queued requests of a host, in memory or not. Returns their number.
    pub(super) fn remove_host(&mut self, host: &HostKey) -> u64 {
        let Some(entry) = self.hosts.remove(host) else { return 0 };
        let id = entry.id;
        self.due
            .extract_if((id, QueuePosition::FIRST)..=(id, QueuePosition::LAST), |_, _| true)
            .for_each(drop);
        let delayed = (id, Timestamp(0), 0)..=(id, Timestamp::MAX, u64::MAX);
        self.delayed.extract_if(delayed, |_, _| true).for_each(drop);
        self.spilled -= entry.spilled;
        self.free.push(id);
        entry.queued()
    }

    /// Calls `visit` with all requests in memory, queued and leased.
    pub(super) fn each(&self, mut visit: impl FnMut(&P)) {
        self.due.values().for_each(&mut visit);
        self.delayed.values().for_each(|(_, request)| visit(request));
        self.leases.values().for_each(|held| visit(&held.request));
    }
}

#[cfg(test)]
impl<P> Queue<P> {
    /// Whether no trace of former hosts is left, not even unused capacity.
    pub(super) fn is_empty_and_shrunk(&self) -> bool {
        self.hosts.is_empty()
            && self.due.is_empty()
            && self.leases.is_empty()
            && self.hosts.capacity() <= 2 * MIN_CAPACITY
            && self.free.is_empty()
    }
}
