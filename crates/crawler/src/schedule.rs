//! The scheduler: decides which host may get a request now. All politeness is implemented here.
//!
//! It is pure: the time is an argument, and it neither waits nor sends. One task of the engine owns it, reports
//! events to it, and calls [`Scheduler::next`] until that returns a time to wait for. The scheduler does not know the
//! requests; the frontier does, and reports when a host has queued requests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::{HashMap, HashTable};

use crate::autothrottle::Observation;
use crate::clock::Timestamp;
use crate::context::Politeness;
use crate::frontier::OwnedSince;
use crate::host::HostKey;
use crate::settings::EngineSettings;

mod index;
mod memory;
mod rules;
mod saved_politeness;
mod slot;
#[cfg(test)]
mod tests;

use index::{Index, SlotId};
use memory::{Memory, RememberedSlot};
use rules::Rules;
pub use saved_politeness::SavedPoliteness;
use slot::{Place, Shared, Slot, Trust, Work};

/// An idle slot is forgotten after this time and its delay.
const LINGER: Duration = Duration::from_secs(60);
/// Greatest number of idle slots forgotten per call: more than one call can create, so that they never accumulate,
/// and few enough that one call stays below 100 us.
const FORGET: usize = 64;
/// Number of waiting slots made ready per call before one of them is served. It bounds a call when very many slots
/// are due at once.
const WAKE: usize = 16;

/// The next action that [`Scheduler::next`] requests.
#[derive(Debug)]
pub enum Next {
    /// Lease one request of the host and send it. If there is none, call [`Scheduler::nothing_due`].
    Fetch(Ticket),
    /// Grants a start that was requested with [`Scheduler::request_start`].
    Start {
        /// The id that was given with the request for the start.
        waiter: u64,
        /// The granted start.
        ticket: Ticket,
    },
    /// The host is given up. The caller must drop its queue for this reason and notify the callers that wait for a
    /// start of it; the scheduler has forgotten those. Returned again if the host gets new requests.
    GiveUp {
        /// The host.
        host: HostKey,
        /// Stable name in snake_case.
        reason: &'static str,
    },
    /// No start is possible before this time, unless an event is reported meanwhile.
    Wait(Timestamp),
    /// Waiting will not make a start possible: there are no requests, the limit of requests in flight is reached, or
    /// the scheduler is paused.
    Idle,
}

/// One granted start of a request. It counts as in flight until it is passed to [`Scheduler::ended`] or
/// [`Scheduler::nothing_due`]. If it is dropped, together with the task that held it, the next call of
/// [`Scheduler::next`] ends it, and it counts as sent.
///
/// The holder calls [`try_send`](Ticket::try_send) right before it sends the request.
#[derive(Debug)]
#[must_use = "a ticket takes a place until it is ended"]
pub struct Ticket {
    /// The slot.
    pub host: HostKey,
    slot: SlotId,
    /// Number of this start within its slot.
    start: u32,
    granted: Timestamp,
    wakes: u32,
    version: u32,
    gap: Duration,
    limit: u32,
    shared: Arc<Shared>,
    is_ended: bool,
    lost: Arc<DroppedTickets>,
}

/// The slots of dropped tickets, one entry per ticket.
#[derive(Debug, Default)]
struct DroppedTickets {
    count: AtomicUsize,
    slots: Mutex<Vec<SlotId>>,
}

impl DroppedTickets {
    fn add(&self, slot: SlotId) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn take(&self) -> Vec<SlotId> {
        if self.count.swap(0, Ordering::Acquire) == 0 {
            return Vec::new();
        }
        std::mem::take(&mut self.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_ended {
            self.lost.add(self.slot);
        }
    }
}

impl Ticket {
    /// Whether the rules of the slot became stricter since the grant. If the request was not sent yet, it must not be
    /// sent then: return the ticket as [`Outcome::Unused`] and request a new start with [`Scheduler::request_start`].
    pub fn is_void(&self) -> bool {
        self.shared.version.load(Ordering::Acquire) != self.version
    }

    /// Records that the request is sent now, like [`sent`](Ticket::sent), and returns whether it may be. It may not
    /// if the ticket is void, or if another request of the slot was sent since the grant and less than the delay ago;
    /// that happens if both waited for the same thing, such as robots.txt. The ticket must then be returned like a
    /// void one.
    pub fn try_send(&self, now: Timestamp) -> bool {
        let leave = |sent: u64| {
            let is_early = Timestamp(sent) >= self.granted && now < Timestamp(sent) + self.gap;
            (!is_early).then_some(sent.max(now.0))
        };
        !self.is_void() && self.shared.sent.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave).is_ok()
    }

    /// The delay between starts that was in force at the time of the grant, without jitter.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    /// The limit of requests in flight of its slot at the time of the grant.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Records that the request is sent now. The gap to the next start counts from here, so that middlewares that
    /// take time between the grant and the sending do not bring two requests closer together than the delay.
    pub fn sent(&self, now: Timestamp) {
        self.shared.sent.fetch_max(now.0, Ordering::AcqRel);
    }
}

/// The outcome of a granted start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// No request was sent: robots.txt forbade it, a cache answered, or the ticket was void. The next start of the
    /// host is not delayed.
    Unused,
    /// A response was received, with any status.
    Answer {
        /// Its status code.
        status: u16,
        /// Time from sending the request to receiving the headers.
        latency: Duration,
        /// Bytes of its body, which are only logged.
        bytes: usize,
        /// Its `Retry-After`, counted from now. It is obeyed on 429, 503 and 3xx, unless it exceeds `retry_after_max`: a
        /// longer one is not believed.
        retry_after: Option<Duration>,
        /// Whether AutoThrottle may learn from the latency; `autothrottle_dont_adjust_delay` forbids it.
        adjust_delay: bool,
    },
    /// There was no response.
    Failed {
        /// Whether the host could not be reached (DNS, refused, TLS). Such failures count against the host, until it
        /// is given up. Other failures may be the fault of one page; if they take long, the host gets lower
        /// precedence than hosts that answer.
        host_failure: bool,
    },
}

/// The state of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// The host gets requests as its delay allows, or is not known.
    Active,
    /// The host gets no request before this time, because of `Retry-After`, failures, or a call.
    Sleeping(Timestamp),
    /// The host failed too often; it gets one probe after this time.
    Down(Timestamp),
    /// The host is given up for good.
    GaveUp(&'static str),
}

impl SlotState {
    /// `active`, `sleeping`, `down` or `gave_up`, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Sleeping(_) => "sleeping",
            Self::Down(_) => "down",
            Self::GaveUp(_) => "gave_up",
        }
    }
}

/// Decides which host may get a request now. It owns delays, concurrency, back-off and fairness.
///
/// - Between two granted starts of a slot passes at least the delay that is in force at the second one, whatever is
///   called in between; with a crawl delay in force there is one request at a time.
/// - Among the slots that may start, the one with the fewest requests in flight is served; ties are resolved round
///   robin in key order.
/// - Failing hosts do not hold back hosts that answer: while a host that answers has queued requests, failing hosts
///   get at most half of all places, and a quarter of the places is not given to hosts that have not answered yet.
///
/// Every call is O(log n) in the number of slots; slots that wait for their delay are never scanned. A slot takes
/// about 310 bytes. It is created when its host is first named, and forgotten 60 s plus its delay after it was last
/// busy.
pub struct Scheduler {
    rules: Rules,
    slots: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    by_host: HashTable<SlotId>,
    hasher: foldhash::fast::RandomState,
    index: Index,
    memory: Memory,
    /// What an earlier run learnt about hosts that have no slot yet.
    restored: HashMap<HostKey, SavedPoliteness>,
    /// What was learnt since the last call of `changes`; an entry of `None` is forgotten. The whole map is `None` if
    /// changes are not recorded.
    changes: Option<HashMap<HostKey, Option<SavedPoliteness>>>,
    /// Since when this process works on a host; `None` unless processes share the hosts.
    owned_since: Option<OwnedSince>,
    give_ups: VecDeque<SlotId>,
    lost: Arc<DroppedTickets>,
    /// The slot that was served last.
    last: HostKey,
    /// The latest time that was passed in; time never goes back.
    now: Timestamp,
    concurrency: u32,
    active: u32,
    /// Requests in flight, and busy slots, by [`Trust`].
    active_of: [u32; 3],
    busy_of: [u32; 3],
    is_paused: bool,
    holds_leases: bool,
}

impl Scheduler {
    /// A scheduler with the politeness of the settings; `seed` determines the jitter.
    pub fn new(settings: &EngineSettings, seed: u64) -> Self {
        Self {
            rules: Rules::new(settings, seed),
            slots: Vec::new(),
            free: Vec::new(),
            by_host: HashTable::new(),
            hasher: foldhash::fast::RandomState::default(),
            index: Index::default(),
            memory: Memory::default(),
            restored: HashMap::new(),
            changes: None,
            owned_since: None,
            give_ups: VecDeque::new(),
            lost: Arc::default(),
            last: HostKey::new(""),
            now: Timestamp(0),
            concurrency: rules::limit(settings.concurrent_requests),
            active: 0,
            active_of: [0; 3],
            busy_of: [0; 3],
            is_paused: false,
            holds_leases: false,
        }
    }

    /// Continues with what an earlier run learnt, and records what this run learns, for [`changes`](Self::changes).
    pub(crate) fn resume_with(&mut self, politeness: HashMap<HostKey, SavedPoliteness>) {
        self.restored = politeness;
        self.changes = Some(HashMap::new());
    }

    /// What was learnt about hosts since the last call; `None` if it was forgotten.
    pub(crate) fn changes(&mut self) -> impl Iterator<Item = (HostKey, Option<SavedPoliteness>)> {
        self.changes.iter_mut().flat_map(HashMap::drain)
    }

    /// What the next process that works on these hosts should know, with the times of the last starts.
    pub(crate) fn leave(
        &self,
        is_left: impl Fn(&HostKey) -> bool,
    ) -> Vec<(HostKey, Option<SavedPoliteness>)> {
        let slots = self.slots.iter().flatten().filter(|slot| is_left(&slot.key));
        let left = slots
            .filter_map(|slot| Some((slot.key.clone(), Some(slot.left_politeness(&self.rules, self.now)?))));
        left.collect()
    }

    /// Reports that the frontier has due requests of the host. May be called any number of times.
    pub fn woken(&mut self, host: HostKey, now: Timestamp) {
        self.has_work(host, Work::Due, now);
    }

    /// Reports that the frontier has delayed requests of the host, the first of them due at `at`.
    pub fn woken_at(&mut self, host: HostKey, at: Timestamp, now: Timestamp) {
        self.has_work(host, Work::At(at), now);
    }

    /// From now on processes share the hosts: the first start of a host waits for its delay since this process works on it.
    pub(crate) fn share_with(&mut self, owned_since: OwnedSince) {
        self.owned_since = Some(owned_since);
    }

    /// Takes over known hosts from another process: the next start of each waits for its delay from now on.
    pub(crate) fn adopt_known(&mut self, is_adopted: impl Fn(&HostKey) -> bool, now: Timestamp) {
        self.tick(now);
        for id in 0..self.slots.len() {
            if self.slots[id].as_ref().is_some_and(|slot| is_adopted(&slot.key)) {
                let id = SlotId::try_from(id).expect("memory ends before four billion slots");
                self.change(id, |slot, rules| slot.adopt(rules, None, now));
            }
        }
    }

    /// Takes over a host with due requests from another process, with what that process learnt about it. The first start waits for the
    /// delay since the last one; if that was not told, from now on, because the other process may have sent a request a moment ago.
    pub(crate) fn adopt(&mut self, host: HostKey, politeness: Option<SavedPoliteness>, now: Timestamp) {
        self.tick(now);
        let is_told = politeness.is_some_and(|politeness| politeness.last_start > Timestamp(0));
        let id = if is_told { self.slot_told(host) } else { self.slot_of(host) };
        self.change(id, |slot, rules| {
            slot.adopt(rules, politeness, now);
            slot.wakes = slot.wakes.wrapping_add(1);
            slot.work = Work::Due;
        });
        self.give_up_again(id);
    }

    fn has_work(&mut self, host: HostKey, work: Work, now: Timestamp) {
        self.tick(now);
        let id = self.slot_of(host);
        self.change(id, |slot, _| {
            slot.wakes = slot.wakes.wrapping_add(1);
            slot.work = earlier(slot.work, work);
        });
        self.give_up_again(id);
    }

    /// Returns the next action. Call it until it returns [`Next::Wait`] or [`Next::Idle`], and again when that time
    /// has come or an event was reported.
    pub fn next(&mut self, now: Timestamp) -> Next {
        self.tick(now);
        for id in self.lost.take() {
            self.active -= 1;
            self.change(id, |slot, _| slot.active -= 1);
        }
        self.forget_idle();
        if let Some(id) = self.give_ups.pop_front() {
            return self.tell_give_up(id);
        }
        if self.is_paused {
            return Next::Idle;
        }
        let mut woken = 0;
        loop {
            while woken < WAKE && self.wake_one() {
                woken += 1;
            }
            if self.active >= self.concurrency {
                return Next::Idle;
            }
            match self.index.first_ready(&self.last, self.allowed(), self.holds_leases) {
                // A ticket that was sent late moved the next start of its slot; that is only noticed here.
                Some(id) if self.put(id) => return self.grant(id),
                Some(_) => {}
                None if woken < WAKE => break,
                None => woken = 0,
            }
        }
        self.index.first_waiting().map_or(Next::Idle, |(at, _)| Next::Wait(at))
    }

    /// Reports that the lease for a [`Next::Fetch`] was empty. The start is refunded; the slot sleeps until
    /// `next_at`, when its first delayed request is due, or until it is woken.
    pub fn nothing_due(&mut self, ticket: Ticket, next_at: Option<Timestamp>, now: Timestamp) {
        self.no_more_due(&ticket, next_at, now);
        self.ended(ticket, Outcome::Unused, now);
    }

    /// Reports that the lease for a [`Next::Fetch`] took the last due request. This call is optional: it saves an
    /// empty lease.
    pub fn no_more_due(&mut self, ticket: &Ticket, next_at: Option<Timestamp>, now: Timestamp) {
        self.tick(now);
        self.change(ticket.slot, |slot, _| {
            // If the slot was woken since, the result of the lease is outdated.
            if slot.wakes == ticket.wakes {
                slot.work = next_at.map_or(Work::None, Work::At);
            }
        });
    }

    /// Requests one more start of a slot: for robots.txt, for a download of a component, for a request whose ticket
    /// was void. It is granted before new leases of the slot.
    ///
    /// The holder of a ticket must end it before it waits for another start. If the slot allows one request at a
    /// time, it would otherwise wait for itself.
    pub fn request_start(&mut self, host: HostKey, waiter: u64, now: Timestamp) {
        self.tick(now);
        let id = self.slot_of(host);
        self.change(id, |slot, _| slot.waiters.get_or_insert_default().push_back(waiter));
        self.give_up_again(id);
    }

    /// Cancels a [`request_start`](Self::request_start) that was not granted yet; otherwise it has no effect.
    pub fn cancel_start(&mut self, host: &HostKey, waiter: u64) {
        let Some(id) = self.find(host) else { return };
        self.change(id, |slot, _| {
            if let Some(waiters) = &mut slot.waiters {
                waiters.retain(|&other| other != waiter);
            }
        });
    }

    /// Reports the outcome of a granted start.
    pub fn ended(&mut self, mut ticket: Ticket, outcome: Outcome, now: Timestamp) {
        self.tick(now);
        ticket.is_ended = true;
        let mut give_up = None;
        self.active -= 1;
        self.change(ticket.slot, |slot, rules| {
            slot.active -= 1;
            match outcome {
                Outcome::Unused => slot.refund(ticket.start),
                Outcome::Answer { status, latency, retry_after, adjust_delay, .. } => {
                    let seen = Observation { latency, status, retry_after };
                    slot.answered(rules, ticket.start, seen, adjust_delay, now);
                }
                Outcome::Failed { host_failure } => {
                    slot.timed_out(now.since(ticket.granted));
                    if host_failure {
                        give_up = slot.failed(rules, ticket.start, now);
                    }
                }
            }
        });
        self.note(ticket.slot);
        if let Some(reason) = give_up {
            self.give_up(ticket.slot, reason);
        }
    }

    /// Changes the politeness of a slot.
    ///
    /// A crawl delay can only be raised, because authorities with different robots.txt share the slot of their host;
    /// zero removes it. A concurrency of 0 means no limit.
    pub fn adjust(&mut self, host: &HostKey, change: Politeness, now: Timestamp) {
        self.tick(now);
        let id = self.slot_of(host.clone());
        self.change(id, |slot, rules| match change {
            Politeness::CrawlDelay(delay) => slot.set_crawl_delay(rules, delay),
            Politeness::Delay(delay) => slot.set_delay(delay),
            Politeness::Concurrency(n) => slot.set_concurrency(rules, rules::limit(n)),
            Politeness::SleepUntil(until) => slot.sleep(until),
            Politeness::GiveUp(_) => {}
        });
        self.note(id);
        if let Politeness::GiveUp(reason) = change {
            self.give_up(id, reason);
        }
    }

    /// Grants no starts until [`resume`](Self::resume); requests in flight end as usual.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Ends a pause.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// While leases are held, no [`Next::Fetch`] is granted, but requested starts are. A callback that waits for a
    /// download of its own gets it even if the bytes of waiting pages have used up their budget.
    pub fn hold_leases(&mut self, held: bool) {
        self.holds_leases = held;
    }

    /// Number of starts that were granted and have not ended, over all slots.
    pub fn active(&self) -> usize {
        self.active as usize
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The numbers of busy hosts, and of hosts that are down or given up. Scans all slots.
    pub(crate) fn hosts_active_and_down(&self) -> (usize, usize) {
        let (mut active, mut down) = (0, 0);
        for slot in self.slots.iter().flatten() {
            if slot.is_down || slot.gave_up.is_some() {
                down += 1;
            } else if slot.is_busy() {
                active += 1;
            }
        }
        (active, down)
    }

    /// Whether nothing is in flight and all that could start is parked: asleep, down, or delayed in the frontier.
    /// False while a slot waits for the delay between its starts; true if there are no requests at all.
    pub fn is_parked(&self) -> bool {
        self.active == 0 && self.give_ups.is_empty() && self.index.all_parked()
    }

    /// The delay between starts that is in force; `None` if the host has no slot.
    pub fn delay_of(&self, host: &HostKey) -> Option<Duration> {
        self.find(host).map(|id| self.slot(id).delay())
    }

    /// The number of starts of the host that have not ended.
    pub fn active_of(&self, host: &HostKey) -> u32 {
        self.find(host).map_or(0, |id| self.slot(id).active)
    }

    /// The greatest number of starts of the host at once; `None` if the host has no slot or the number has no limit.
    pub fn limit_of(&self, host: &HostKey) -> Option<u32> {
        self.find(host).map(|id| self.slot(id).concurrency(&self.rules)).filter(|limit| *limit < u32::MAX)
    }

    /// The state of the slot of the host; [`SlotState::Active`] if it has none.
    pub fn slot_state(&self, host: &HostKey) -> SlotState {
        let Some(id) = self.find(host) else {
            let gave_up = self.memory.get(host).and_then(|rules| rules.gave_up);
            return gave_up.map_or(SlotState::Active, SlotState::GaveUp);
        };
        let slot = self.slot(id);
        if let Some(reason) = slot.gave_up {
            SlotState::GaveUp(reason)
        } else if slot.is_down {
            SlotState::Down(slot.sleeps_until(self.now).unwrap_or(self.now))
        } else if let Some(until) = slot.sleeps_until(self.now) {
            SlotState::Sleeping(until)
        } else {
            SlotState::Active
        }
    }

    fn tick(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    fn slot(&self, id: SlotId) -> &Slot {
        self.slots[id as usize].as_ref().expect("indexes and tickets name slots that are kept")
    }

    fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept")
    }

    fn hash(&self, host: &HostKey) -> u64 {
        std::hash::BuildHasher::hash_one(&self.hasher, host)
    }

    fn find(&self, host: &HostKey) -> Option<SlotId> {
        self.by_host.find(self.hash(host), |&id| self.slot(id).key == *host).copied()
    }

    /// The slot of a host; created if it is new. If another process may have sent a request to the host before this one works on it, the
    /// slot begins with that start.
    fn slot_of(&mut self, host: HostKey) -> SlotId {
        if let Some(id) = self.find(&host) {
            return id;
        }
        let since = self.owned_since.as_ref().and_then(|since| since(&host));
        let id = self.slot_told(host);
        if let Some(since) = since {
            self.change(id, |slot, rules| slot.adopt(rules, None, since));
        }
        id
    }

    /// As [`slot_of`](Self::slot_of), of a host whose last start is known.
    fn slot_told(&mut self, host: HostKey) -> SlotId {
        if let Some(id) = self.find(&host) {
            return id;
        }
        let hash = self.hash(&host);
        let remembered = self.memory.take(&host);
        let gave_up = remembered.as_ref().and_then(|rules| rules.gave_up);
        let own = remembered.and_then(|rules| rules.own).or_else(|| self.rules.own(&host));
        let mut slot = Slot::new(host, own, &self.rules);
        slot.gave_up = gave_up;
        if let Some(politeness) = self.restored.remove(&slot.key) {
            slot.restore(&self.rules, politeness);
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = Some(slot);
                id
            }
            None => {
                self.slots.push(Some(slot));
                SlotId::try_from(self.slots.len() - 1).expect("memory ends before four billion slots")
            }
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.by_host.insert_unique(hash, id, |&other| {
            let slot = slots[other as usize].as_ref().expect("the table holds slots that are kept");
            std::hash::BuildHasher::hash_one(hasher, &slot.key)
        });
        id
    }

    /// Records what was learnt about a slot, if changes are recorded and there is one.
    fn note(&mut self, id: SlotId) {
        let Some(changes) = &mut self.changes else { return };
        let slot = self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept");
        let politeness = slot.saved_politeness(&self.rules, self.owned_since.is_some(), self.now);
        if politeness.as_ref() != slot.saved.as_deref() {
            slot.saved = politeness.map(Box::new);
            changes.insert(slot.key.clone(), politeness);
        }
    }

    /// Changes a slot and updates its index entry.
    fn change(&mut self, id: SlotId, change: impl FnOnce(&mut Slot, &Rules)) {
        let slot = self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept");
        change(slot, &self.rules);
        self.put(id);
    }

    /// Moves a slot to the index where it belongs. Returns whether it may be granted a start now.
    fn put(&mut self, id: SlotId) -> bool {
        let slot = self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept");
        let place = slot.place(&self.rules, self.now, LINGER);
        if place != slot.place {
            self.index.remove(slot.place, &slot.key, id);
            self.index.insert(place, &slot.key, id);
            slot.place = place;
        }
        let (trust, is_busy) = (slot.trust(), slot.is_busy());
        if let Some(counted) = slot.counted {
            self.busy_of[counted as usize] -= 1;
            self.active_of[counted as usize] -= slot.counted_active;
        }
        slot.counted = is_busy.then_some(trust);
        slot.counted_active = slot.active;
        if is_busy {
            self.busy_of[trust as usize] += 1;
            self.active_of[trust as usize] += slot.active;
        }
        matches!(place, Place::Ready { .. })
    }

    /// Makes the earliest waiting slot ready if its time has come.
    fn wake_one(&mut self) -> bool {
        match self.index.first_waiting() {
            Some((at, id)) if at <= self.now => {
                self.put(id);
                true
            }
            _ => false,
        }
    }

    /// Which hosts may take a place now, by trust.
    ///
    /// Without this rule, silent hosts, each of which holds its places until a timeout, would one after the other
    /// take every place that an answering host releases.
    fn allowed(&self) -> [bool; 3] {
        let busy = |trust: Trust| self.busy_of[trust as usize];
        let active = |trust: Trust| self.active_of[trust as usize];
        if busy(Trust::Failing) == 0 || self.concurrency == u32::MAX {
            return [true; 3];
        }
        let (half, reserve) = (self.concurrency.div_ceil(2), self.concurrency.div_ceil(4));
        let unproven = active(Trust::New) + active(Trust::Failing);
        let leaves_reserve =
            busy(Trust::Proven) == 0 || self.concurrency == 1 || unproven < self.concurrency - reserve;
        let is_rest = busy(Trust::Proven) + busy(Trust::New) == 0;
        [true, leaves_reserve, is_rest || (leaves_reserve && active(Trust::Failing) < half)]
    }

    fn grant(&mut self, id: SlotId) -> Next {
        let now = self.now;
        let mut waiter = None;
        self.active += 1;
        let slot = self.slots[id as usize].as_mut().expect("indexes name slots that are kept");
        let start = slot.grant(&self.rules, now);
        if let Some(waiters) = &mut slot.waiters {
            waiter = waiters.pop_front();
            if waiters.is_empty() {
                slot.waiters = None;
            }
        }
        if waiter.is_none() {
            slot.work = Work::Due;
        }
        let shared = Arc::clone(slot.shared.get_or_insert_default());
        let ticket = Ticket {
            host: slot.key.clone(),
            slot: id,
            start,
            granted: now,
            wakes: slot.wakes,
            version: shared.version.load(Ordering::Acquire),
            gap: slot.delay(),
            limit: slot.concurrency(&self.rules),
            shared,
            is_ended: false,
            lost: Arc::clone(&self.lost),
        };
        self.last = slot.key.clone();
        self.put(id);
        match waiter {
            Some(waiter) => Next::Start { waiter, ticket },
            None => Next::Fetch(ticket),
        }
    }

    fn give_up(&mut self, id: SlotId, reason: &'static str) {
        let slot = self.slot_mut(id);
        slot.gave_up = Some(reason);
        slot.void_tickets();
        if !slot.is_giving_up {
            slot.is_giving_up = true;
            self.give_ups.push_back(id);
        }
        self.put(id);
    }

    /// A host that was given up has queued requests again; they must be dropped, too.
    fn give_up_again(&mut self, id: SlotId) {
        if let Some(reason) = self.slot(id).gave_up {
            self.give_up(id, reason);
        }
    }

    fn tell_give_up(&mut self, id: SlotId) -> Next {
        let slot = self.slot_mut(id);
        slot.is_giving_up = false;
        slot.work = Work::None;
        slot.waiters = None;
        let told = Next::GiveUp { host: slot.key.clone(), reason: slot.gave_up.unwrap_or(slot::HOST_DOWN) };
        self.put(id);
        told
    }

    /// Forgets slots that were idle for long enough, but remembers rules that were learnt.
    fn forget_idle(&mut self) {
        for _ in 0..FORGET {
            let Some((_, id)) = self.index.first_idle().filter(|&(until, _)| until <= self.now) else {
                return;
            };
            // A ticket that was sent late may have postponed the time at which the slot is forgotten.
            self.put(id);
            if !matches!(self.slot(id).place, Place::Idle(until) if until <= self.now) {
                continue;
            }
            let hash = self.hash(&self.slot(id).key);
            if let Ok(entry) = self.by_host.find_entry(hash, |&other| other == id) {
                entry.remove();
            }
            let slot = self.slots[id as usize].take().expect("indexes name slots that are kept");
            self.index.remove(slot.place, &slot.key, id);
            self.free.push(id);
            if let (Some(changes), Some(_)) = (&mut self.changes, slot.saved) {
                changes.insert(slot.key.clone(), None);
            }
            let own = slot.own.filter(|own| own.is_learnt);
            if own.is_some() || slot.gave_up.is_some() {
                self.memory.insert(slot.key, RememberedSlot { own, gave_up: slot.gave_up });
            }
        }
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("slots", &self.slots())
            .field("active", &self.active)
            .field("next_at", &self.index.first_waiting().map(|(at, _)| at))
            .finish_non_exhaustive()
    }
}

fn earlier(a: Work, b: Work) -> Work {
    match (a, b) {
        (Work::None, other) | (other, Work::None) => other,
        (Work::Due, _) | (_, Work::Due) => Work::Due,
        (Work::At(a), Work::At(b)) => Work::At(a.min(b)),
    }
}
