//! The scheduler: which host may be asked now. All politeness lives here.
//!
//! Pure: time comes in as an argument, nothing waits and nothing is sent. One task of the engine owns it, tells it what
//! happens, and asks [`Scheduler::next`] until that says to wait. What there is to fetch it does not know; that is the
//! frontier's, which says when a host has work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::{HashMap, HashTable};

use crate::autothrottle::Observation;
use crate::clock::Timestamp;
use crate::context::Politeness;
use crate::host::HostKey;
use crate::settings::EngineSettings;

mod index;
mod learnt;
mod memory;
mod rules;
mod slot;
#[cfg(test)]
mod tests;

use index::{Index, SlotId};
pub(crate) use learnt::Learnt;
use memory::{Memory, Remembered};
use rules::Rules;
use slot::{Place, Shared, Slot, Trust, Work};

/// An idle slot is forgotten after this and its delay (POL-7).
const LINGER: Duration = Duration::from_secs(60);
/// Idle slots forgotten per call at most: more than one call can make, so that they never pile up, and little enough for
/// one call to stay below 100 us.
const FORGET: usize = 64;
/// Waiting slots made ready per call before one of them is served: bounds a call when a great many are due at once.
const WAKE: usize = 16;

/// What [`Scheduler::next`] wants done.
#[derive(Debug)]
pub enum Next {
    /// Lease one request of the host and send it. If there is none, say so with [`Scheduler::nothing_due`].
    Fetch(Ticket),
    /// The start that was asked for with [`Scheduler::request_start`] is granted.
    Start {
        /// As given when it was asked for.
        waiter: u64,
        /// The start.
        ticket: Ticket,
    },
    /// The host is given up: its queue is to be dropped for this reason, and whoever waits for a start of it is to be
    /// told; the scheduler has forgotten them. Said again when the host has work again.
    GiveUp {
        /// The host.
        host: HostKey,
        /// Stable name in snake_case.
        reason: &'static str,
    },
    /// Nothing may start before this time, unless something is told meanwhile.
    Wait(Timestamp),
    /// Nothing will start by waiting: there is no work, all places are taken, or the scheduler is paused.
    Idle,
}

/// One granted start of a request. It takes a place until it is given to [`Scheduler::ended`] or
/// [`Scheduler::nothing_due`]. One that is dropped, with the task that held it, gives its place back when
/// [`Scheduler::next`] is called, and counts as sent.
///
/// Who holds one asks [`leaves`](Ticket::leaves) right before the request is sent.
#[derive(Debug)]
#[must_use = "a ticket takes a place until it is ended"]
pub struct Ticket {
    /// The slot.
    pub host: HostKey,
    slot: SlotId,
    /// Number of the start in its slot.
    start: u32,
    granted: Timestamp,
    wakes: u32,
    version: u32,
    gap: Duration,
    limit: u32,
    shared: Arc<Shared>,
    is_ended: bool,
    lost: Arc<Lost>,
}

/// Slots of tickets that were dropped, one entry per ticket.
#[derive(Debug, Default)]
struct Lost {
    count: AtomicUsize,
    slots: Mutex<Vec<SlotId>>,
}

impl Lost {
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
    /// Whether the rules of the slot became stricter since this was granted. A request that was not sent yet must not be
    /// sent then: give the ticket back as [`Outcome::Unused`] and ask for a start with [`Scheduler::request_start`].
    pub fn is_void(&self) -> bool {
        self.shared.version.load(Ordering::Acquire) != self.version
    }

    /// Notes that the request is sent now, as [`sent`](Ticket::sent) does, unless it must not be: this is void, or another request of
    /// the slot was sent since the grant, less than the delay ago, because both waited for the same thing, such as robots.txt. The
    /// ticket is to be given back then, as one that is void.
    pub fn leaves(&self, now: Timestamp) -> bool {
        let leave = |sent: u64| {
            let is_early = Timestamp(sent) >= self.granted && now < Timestamp(sent) + self.gap;
            (!is_early).then_some(sent.max(now.0))
        };
        !self.is_void() && self.shared.sent.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave).is_ok()
    }

    /// The delay between starts that was in force at the grant, without jitter.
    pub(crate) fn gap(&self) -> Duration {
        self.gap
    }

    /// The requests in flight on its slot that were allowed at the grant.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Notes that the request is sent now. The gap to the next start counts from here, so that middlewares that took their
    /// time between the grant and the sending do not bring two requests closer together than the delay.
    pub fn sent(&self, now: Timestamp) {
        self.shared.sent.fetch_max(now.0, Ordering::AcqRel);
    }
}

/// How a granted start ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing was sent: denied by robots.txt, answered from a cache, void. It costs the host no delay.
    Unused,
    /// An answer came, of whatever status.
    Answer {
        /// Its status code.
        status: u16,
        /// From the request sent to the headers received.
        latency: Duration,
        /// Its `Retry-After`, counted from now. Obeyed on 429, 503 and 3xx unless it is beyond `retry_after_max`: then it is
        /// not believed.
        retry_after: Option<Duration>,
        /// Whether AutoThrottle may learn from the latency (`autothrottle_dont_adjust_delay` says no).
        adjust_delay: bool,
    },
    /// No answer came.
    Failed {
        /// Whether the host was not reached (DNS, refused, TLS): this counts against it, up to giving it up. Other failures may
        /// be those of one page; if they took long, the host has to stand back while others answer.
        host_failure: bool,
    },
}

/// How a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Asked as its delay allows, or not known.
    Active,
    /// Not asked before this time: `Retry-After`, failures, or a wish.
    Sleeping(Timestamp),
    /// Failed too often; one probe after this time.
    Down(Timestamp),
    /// Refused for good.
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

/// Decides which host may be asked now: the owner of delays, concurrency, back-off and fairness.
///
/// - Between two granted starts of a slot there is at least the delay in force at the second one, whatever is called in
///   between; with a crawl delay in force there is one request at a time.
/// - Among the slots that may start, the one with the fewest requests in flight is served, ties round robin in key order.
/// - Hosts that fail do not hold back those that answer: while a host that answers has work, failing hosts get at most half
///   of all places, and a quarter is kept from hosts that never answered.
///
/// Every call is O(log n) in the number of slots; slots that wait for their delay are never looked at. A slot takes about
/// 310 bytes, is made when its host is first named, and is forgotten 60 s and its delay after it had something to do.
pub struct Scheduler {
    rules: Rules,
    slots: Vec<Option<Slot>>,
    free: Vec<SlotId>,
    by_host: HashTable<SlotId>,
    hasher: foldhash::fast::RandomState,
    index: Index,
    memory: Memory,
    /// What an earlier run learnt of hosts that have no slot yet.
    restored: HashMap<HostKey, Learnt>,
    /// What was learnt since it was last asked for, and what is forgotten; `None` if nobody asks.
    changes: Option<HashMap<HostKey, Option<Learnt>>>,
    give_ups: VecDeque<SlotId>,
    lost: Arc<Lost>,
    /// The slot served last.
    last: HostKey,
    /// The latest time that was told: time never goes back.
    now: Timestamp,
    concurrency: u32,
    active: u32,
    /// Requests in flight, and slots that have something to do, by [`Trust`].
    active_of: [u32; 3],
    busy_of: [u32; 3],
    is_paused: bool,
    holds_leases: bool,
}

impl Scheduler {
    /// With the politeness of the settings; `seed` decides the jitter.
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

    /// Goes on with what an earlier run learnt, and notes what this one learns, for [`changes`](Self::changes).
    pub(crate) fn resume_with(&mut self, learnt: HashMap<HostKey, Learnt>) {
        self.restored = learnt;
        self.changes = Some(HashMap::new());
    }

    /// What was learnt of hosts since the last call; `None` for what is forgotten.
    pub(crate) fn changes(&mut self) -> impl Iterator<Item = (HostKey, Option<Learnt>)> {
        self.changes.iter_mut().flat_map(HashMap::drain)
    }

    /// The frontier has due work for the host. May be said as often as one likes.
    pub fn woken(&mut self, host: HostKey, now: Timestamp) {
        self.has_work(host, Work::Due, now);
    }

    /// The frontier has delayed work for the host, first due at `at`.
    pub fn woken_at(&mut self, host: HostKey, at: Timestamp, now: Timestamp) {
        self.has_work(host, Work::At(at), now);
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

    /// What may be done now. To be called until it says [`Next::Wait`] or [`Next::Idle`], and again when that time has come
    /// or anything was told.
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
                // A ticket that was sent late moved the next start of its slot; only now is that seen.
                Some(id) if self.put(id) => return self.grant(id),
                Some(_) => {}
                None if woken < WAKE => break,
                None => woken = 0,
            }
        }
        self.index.first_waiting().map_or(Next::Idle, |(at, _)| Next::Wait(at))
    }

    /// The lease for a [`Next::Fetch`] came back empty. The start is refunded; the slot sleeps until `next_at`, when its
    /// first delayed request is due, or until it is woken.
    pub fn nothing_due(&mut self, ticket: Ticket, next_at: Option<Timestamp>, now: Timestamp) {
        self.no_more_due(&ticket, next_at, now);
        self.ended(ticket, Outcome::Unused, now);
    }

    /// The lease for a [`Next::Fetch`] took the last request that is due. Optional: saves the empty lease that would find
    /// out.
    pub fn no_more_due(&mut self, ticket: &Ticket, next_at: Option<Timestamp>, now: Timestamp) {
        self.tick(now);
        self.change(ticket.slot, |slot, _| {
            // Woken since: what the lease saw is no longer so.
            if slot.wakes == ticket.wakes {
                slot.work = next_at.map_or(Work::None, Work::At);
            }
        });
    }

    /// Asks for one more start of a slot: for robots.txt, for a download that a component wants, for a request whose ticket
    /// was void. It is granted before new leases of the slot.
    ///
    /// Who holds a ticket must end it before waiting for another start: where one request at a time is allowed, it would
    /// wait for itself.
    pub fn request_start(&mut self, host: HostKey, waiter: u64, now: Timestamp) {
        self.tick(now);
        let id = self.slot_of(host);
        self.change(id, |slot, _| slot.waiters.get_or_insert_default().push_back(waiter));
        self.give_up_again(id);
    }

    /// Takes back a [`request_start`](Self::request_start) that was not granted yet; else it does nothing.
    pub fn cancel_start(&mut self, host: &HostKey, waiter: u64) {
        let Some(id) = self.find(host) else { return };
        self.change(id, |slot, _| {
            if let Some(waiters) = &mut slot.waiters {
                waiters.retain(|&other| other != waiter);
            }
        });
    }

    /// A granted start ended.
    pub fn ended(&mut self, mut ticket: Ticket, outcome: Outcome, now: Timestamp) {
        self.tick(now);
        ticket.is_ended = true;
        let mut give_up = None;
        self.active -= 1;
        self.change(ticket.slot, |slot, rules| {
            slot.active -= 1;
            match outcome {
                Outcome::Unused => slot.refund(ticket.start),
                Outcome::Answer { status, latency, retry_after, adjust_delay } => {
                    let seen = Observation { latency, status, retry_after };
                    slot.answered(rules, ticket.start, seen, adjust_delay, now);
                }
                Outcome::Failed { host_failure } => {
                    slot.held(now.since(ticket.granted));
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
    /// A crawl delay only rises, because authorities with different robots.txt share the slot of their host; zero lifts it.
    /// A concurrency of 0 is no limit.
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

    /// Nothing is granted until [`resume`](Self::resume); what is in flight ends as ever.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Ends a pause.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// While held, no [`Next::Fetch`] is granted, but starts that were asked for are: a callback that waits for a download
    /// of its own gets it although the bytes of waiting pages have used up their budget.
    pub fn hold_leases(&mut self, held: bool) {
        self.holds_leases = held;
    }

    /// Starts granted and not ended, of all slots.
    pub fn active(&self) -> usize {
        self.active as usize
    }

    /// Slots that are kept.
    pub fn slots(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many hosts have something to do, and how many are down or given up. Looks at every slot that is kept.
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

    /// Whether nothing is in flight and nothing could start but what is parked: asleep, down, or delayed in the frontier.
    /// False as long as a slot waits for the delay between its starts. Without any work it is true.
    pub fn is_parked(&self) -> bool {
        self.active == 0 && self.give_ups.is_empty() && self.index.all_parked()
    }

    /// The delay between starts in force; `None` if the host has no slot.
    pub fn delay_of(&self, host: &HostKey) -> Option<Duration> {
        self.find(host).map(|id| self.slot(id).delay())
    }

    /// How the slot of the host is; [`SlotState::Active`] if it has none.
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

    /// The slot of a host, made if new.
    fn slot_of(&mut self, host: HostKey) -> SlotId {
        if let Some(id) = self.find(&host) {
            return id;
        }
        let hash = self.hash(&host);
        let remembered = self.memory.take(&host);
        let gave_up = remembered.as_ref().and_then(|rules| rules.gave_up);
        let own = remembered.and_then(|rules| rules.own).or_else(|| self.rules.own(&host));
        let mut slot = Slot::new(host, own, &self.rules);
        slot.gave_up = gave_up;
        if let Some(learnt) = self.restored.remove(&slot.key) {
            slot.restore(&self.rules, learnt);
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

    /// Notes what is learnt of a slot, if somebody wants to know and there is anything to tell.
    fn note(&mut self, id: SlotId) {
        let Some(changes) = &mut self.changes else { return };
        let slot = self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept");
        let learnt = slot.learnt(&self.rules, self.now);
        if learnt != slot.noted {
            slot.noted = learnt;
            changes.insert(slot.key.clone(), learnt);
        }
    }

    /// Changes a slot and puts it where it belongs then.
    fn change(&mut self, id: SlotId, change: impl FnOnce(&mut Slot, &Rules)) {
        let slot = self.slots[id as usize].as_mut().expect("indexes and tickets name slots that are kept");
        change(slot, &self.rules);
        self.put(id);
    }

    /// Puts a slot where it belongs; the answer is whether it may be granted a start now.
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
    /// Without this, silent hosts, each holding its places until a timeout, would in turn take every place that a host which
    /// answers gives back (R3).
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
        slot.bump();
        if !slot.is_giving_up {
            slot.is_giving_up = true;
            self.give_ups.push_back(id);
        }
        self.put(id);
    }

    /// A host that was given up has work again: that is to be dropped as well.
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

    /// Forgets slots that had nothing to do for long enough, but remembers rules that were learnt (POL-7).
    fn forget_idle(&mut self) {
        for _ in 0..FORGET {
            let Some((_, id)) = self.index.first_idle().filter(|&(until, _)| until <= self.now) else {
                return;
            };
            // A ticket that was sent late may have moved the end of its calm.
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
            if let (Some(changes), Some(_)) = (&mut self.changes, slot.noted) {
                changes.insert(slot.key.clone(), None);
            }
            let own = slot.own.filter(|own| own.is_learnt);
            if own.is_some() || slot.gave_up.is_some() {
                self.memory.insert(slot.key, Remembered { own, gave_up: slot.gave_up });
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
