//! The frontier on disk: its queue and seen set outlive the process, and memory does not grow with them.
//!
//! The part of the state that is needed soon is in memory, and every commit appends the changes to a journal, in one
//! atomic batch of the store. Opening replays the journal. When the journal has grown to twice the size of the state
//! it describes, a checkpoint replaces it. Three rules bound the memory: requests beyond a limit go to disk in
//! segments, host by host, beginning with the last ones of the longest queues; fingerprints beyond a limit become
//! sorted runs; and committed data is removed from memory. The store therefore gets a few large rows in ascending
//! order instead of many small rows in random order, which makes the cost of a request independent of the number of
//! requests.
//!
//! Keys: `f/j/` journal rows, `f/s/` segments (zstd), `f/r/` runs, each with a big-endian number; `f/c` information
//! about the last commit, which the frontier itself does not need.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use huntsman_store::{Batch, Durability, Store};

use super::queue::{ChangedHosts, Queue, QueuePosition};
use super::{End, Frontier, Lease, LeaseId, Leased, Order, Pushed, Settled};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::host::HostKey;
use crate::request::{Fingerprint, Request};
use crate::simulated::blocking;

mod journal;
mod known;
mod row;
mod saved;

pub(crate) use saved::SavedQueue;

use journal::{Journal, Op, Segment, put_bytes, take_bytes};
use known::Known;
use row::{Row, damaged};

/// The memory limits of a [`DiskFrontier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskLimits {
    /// Number of queued requests in memory, some 300 bytes each (`frontier_memory_limit`); the others are on disk.
    pub requests: usize,
    /// Number of fingerprints in memory, 29 bytes each. Older ones are on disk and take 1.6 bytes of memory.
    pub seen: usize,
    /// Number of bytes of changes after which a commit is due at once.
    pub uncommitted: usize,
}

impl Default for DiskLimits {
    fn default() -> Self {
        Self { requests: 100_000, seen: 1 << 20, uncommitted: 16 << 20 }
    }
}

/// A [`Frontier`] on a [`Store`]. Cheap to clone; all clones share one queue.
///
/// Without a job it commits by itself: at [`Frontier::sync`], and when [`DiskLimits::uncommitted`] is reached.
/// Changes that were not committed when the process dies are undone: requests pushed since are unknown, and requests
/// settled since are queued again. `extensions` of requests are kept as long as the request stays in memory.
#[derive(Clone, Debug)]
pub struct DiskFrontier(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    order: Order,
    store: Arc<dyn Store>,
    limits: DiskLimits,
    state: Mutex<State>,
    /// Kept outside of the lock, because the engine reads it after every event.
    queued: AtomicU64,
    /// One commit at a time.
    committing: Mutex<()>,
    durability: Durability,
    /// Whether a job decides when to commit.
    has_job: bool,
}

#[derive(Debug)]
struct State {
    queue: Queue<Row>,
    known: Known,
    segments: Segments,
    journal: Journal,
    sequence: u64,
    /// Rows of the journal that are stored.
    rows: std::ops::Range<u64>,
    /// Bytes of the stored rows, and of the rows that the last checkpoint wrote.
    stored: usize,
    checkpoint: usize,
    /// The error of a failed commit: the store keeps its former contents, and nothing may be written on top of it.
    failed: Option<String>,
}

/// Requests on disk.
#[derive(Debug, Default)]
struct Segments {
    /// Segments of each host, by the place of their next request.
    by_host: HashMap<HostKey, BTreeMap<(QueuePosition, u64), Segment>, foldhash::fast::RandomState>,
    /// Segments that are not committed yet, and the number of their bytes that no commit has taken.
    pending: HashMap<u64, Vec<u8>>,
    fresh: usize,
    /// Segments that are used up, but needed for replaying the journal until the next checkpoint.
    dead: Vec<u64>,
    last: u64,
}

/// The content of a segment, which may not be committed yet.
fn segment_bytes(pending: &HashMap<u64, Vec<u8>>, segment: u64, store: &dyn Store) -> Result<Vec<u8>> {
    match pending.get(&segment) {
        Some(bytes) => Ok(bytes.clone()),
        None => store.get(&segment_key(segment))?.ok_or_else(damaged),
    }
}

/// A commit that is to be written: all changes up to one moment.
#[derive(Debug)]
pub(crate) struct Commit {
    batch: Batch,
    segments: Vec<u64>,
    run: u64,
    /// Number of requests that are leased.
    leased: u64,
}

/// Approximate size of the largest row of the journal.
const ROW: usize = 1 << 20;
/// A journal up to this size needs no checkpoint.
const SMALL_JOURNAL: usize = 8 << 20;
/// Greatest number of requests in a segment, and of requests loaded from disk at once.
const SEGMENT: usize = 256;
const LOAD: usize = 64;
/// Number of requests that may stay in memory when the process needs it.
const SPILLED: usize = 1_024;
/// Number of due requests of a host that stay in memory, if there is room.
const KEEP: usize = 64;

const JOURNAL: &[u8] = b"f/j/";

fn journal_key(row: u64) -> Vec<u8> {
    [JOURNAL, &row.to_be_bytes()].concat()
}

fn segment_key(segment: u64) -> Vec<u8> {
    [b"f/s/", &segment.to_be_bytes()[..]].concat()
}

impl DiskFrontier {
    /// Opens the queue of a store, or creates one. It reads what is needed soon, which takes a second for ten million
    /// queued requests.
    ///
    /// # Errors
    /// The store fails, or its data is damaged.
    pub fn open(store: Arc<dyn Store>, order: Order, limits: DiskLimits) -> Result<Self> {
        Self::start(store, order, limits, Durability::Process, false)
    }

    /// Like [`DiskFrontier::open`], for a job, which decides when to commit.
    pub(crate) fn open_for_job(
        store: Arc<dyn Store>,
        order: Order,
        limits: DiskLimits,
        durability: Durability,
    ) -> Result<Self> {
        Self::start(store, order, limits, durability, true)
    }

    fn start(
        store: Arc<dyn Store>,
        order: Order,
        limits: DiskLimits,
        durability: Durability,
        has_job: bool,
    ) -> Result<Self> {
        let state = Replay::of(&*store, limits)?;
        let queued = AtomicU64::new(state.queue.len());
        let (state, committing) = (Mutex::new(state), Mutex::new(()));
        Ok(Self(Arc::new(Shared { order, store, limits, state, queued, committing, durability, has_job })))
    }

    /// Whether there are enough changes for a commit to be due.
    pub(crate) fn is_commit_due(&self) -> bool {
        let state = self.0.lock();
        state.journal.bytes() + state.segments.fresh >= self.0.limits.uncommitted
    }

    /// All changes since the last commit. They must be written by [`DiskFrontier::write`], in the same order.
    pub(crate) fn prepare(&self) -> Commit {
        let mut state = self.0.lock();
        state.prepare(self.0.limits)
    }

    /// Writes a commit together with rows of other parts.
    ///
    /// # Errors
    /// The store fails; every later call then fails, too.
    pub(crate) fn write(&self, commit: Commit, others: Batch) -> Result<()> {
        self.0.write(commit, others)
    }

    /// Returns the error of a commit that failed, if one did.
    pub(crate) fn check(&self) -> Result<()> {
        self.0.working().map(drop)
    }

    /// Gives up a prepared commit. Every later call fails, because the next commit would leave a gap.
    pub(crate) fn fail(&self, error: &Error) {
        self.0.lock().failed = Some(error.to_string());
    }

    /// Ends a call that changed the queues.
    fn finish(&self, state: &mut State, changed: ChangedHosts, pushed: &mut Pushed) -> Result<()> {
        if state.queue.in_memory() > self.0.limits.requests {
            state.spill(self.0.limits.requests);
        }
        self.0.queued.store(state.queue.len(), Ordering::Release);
        pushed.woken = state.queue.woken(changed);
        Ok(())
    }

    /// Queues a request; if its fingerprint was seen, the request is returned.
    fn offer(
        &self,
        state: &mut State,
        request: Request,
        changed: &mut ChangedHosts,
    ) -> Result<Option<Request>> {
        let fingerprint = request.fingerprint();
        if !request.unfiltered {
            if !state.known.insert(fingerprint, &*self.0.store)? {
                return Ok(Some(request));
            }
            state.journal.seen(fingerprint);
            if state.known.is_full() {
                let run = state.known.flush();
                state.journal.push(Op::Run(run));
            }
        }
        state.sequence += 1;
        let place = QueuePosition::of(&request, self.0.order, state.sequence);
        let (at, host) = (request.not_before, request.host());
        let row = Row::new(request, fingerprint, place, &host);
        state.journal.add(place.sequence, Arc::clone(&row.bytes));
        state.queue.enqueue(&host, place, at, row, changed);
        Ok(None)
    }

    /// Commits if there are enough changes and no other commit is running.
    async fn commit_if_due(&self) -> Result<()> {
        if self.0.has_job || !self.is_commit_due() { Ok(()) } else { self.commit().await }
    }

    async fn commit(&self) -> Result<()> {
        let shared = Arc::clone(&self.0);
        blocking(move || {
            // The lock is held from taking the changes until they are written, so that commits are written in order.
            let _one = shared.committing.lock().unwrap_or_else(PoisonError::into_inner);
            let commit = shared.lock().prepare(shared.limits);
            shared.write(commit, Batch::new())
        })
        .await?
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while the state is half changed, except for a bug in the maps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state; an error if a commit failed.
    fn working(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        match &state.failed {
            None => Ok(state),
            Some(what) => Err(Error::msg(what.clone())),
        }
    }

    fn write(&self, commit: Commit, others: Batch) -> Result<()> {
        // After a failed commit the next one would leave a gap.
        drop(self.working()?);
        let Commit { mut batch, segments, run, leased } = commit;
        batch.append(others);
        if batch.is_empty() {
            return Ok(());
        }
        batch.put(saved::COMMIT, saved::LastCommit { at: Timestamp::wall(), leased }.to_bytes());
        let written = self.store.write(&batch, self.durability);
        let mut state = self.lock();
        match written {
            Ok(()) => {
                for segment in segments {
                    state.segments.pending.remove(&segment);
                }
                state.known.committed(run);
                Ok(())
            }
            Err(error) => {
                state.failed = Some(error.to_string());
                Err(Error::from(error).context("writing the queue"))
            }
        }
    }
}

impl State {
    fn new(limits: DiskLimits) -> Self {
        Self {
            queue: Queue::default(),
            known: Known::new(limits.seen.max(1)),
            segments: Segments::default(),
            journal: Journal::default(),
            sequence: 0,
            rows: 0..0,
            stored: 0,
            checkpoint: 0,
            failed: None,
        }
    }

    fn prepare(&mut self, limits: DiskLimits) -> Commit {
        let mut batch = Batch::new();
        let mut rows = Rows::default();
        let mut ops = self.journal.take().peekable();
        if ops.peek().is_some() {
            let small = SMALL_JOURNAL.min(limits.uncommitted);
            if self.stored > small && self.stored > 2 * self.checkpoint {
                drop(ops);
                self.renew(&mut rows, &mut batch);
            } else {
                ops.for_each(|op| rows.push(&op));
                rows.push(&self.counters());
            }
        }
        self.write_rows(rows, &mut batch);
        // The journal refers to a segment that was used up before it was written, unless there was a checkpoint in
        // between.
        for (segment, bytes) in &self.segments.pending {
            batch.put(segment_key(*segment), bytes.clone());
        }
        self.known.pending().for_each(|(key, value)| batch.put(key.clone(), value.clone()));
        self.segments.fresh = 0;
        let segments = self.segments.pending.keys().copied().collect();
        Commit { batch, segments, run: self.known.last_run, leased: self.queue.leased() as u64 }
    }

    /// Replaces the journal with a checkpoint.
    fn renew(&mut self, rows: &mut Rows, batch: &mut Batch) {
        self.checkpoint(rows);
        self.rows.clone().for_each(|row| batch.delete(journal_key(row)));
        self.rows.start = self.rows.end;
        self.segments.dead.drain(..).for_each(|segment| batch.delete(segment_key(segment)));
        self.stored = 0;
        self.checkpoint = rows.bytes;
    }

    fn write_rows(&mut self, rows: Rows, batch: &mut Batch) {
        self.stored += rows.bytes;
        for row in rows.rows {
            batch.put(journal_key(self.rows.end), row);
            self.rows.end += 1;
        }
    }

    fn counters(&self) -> Op {
        Op::Counters { sequence: self.sequence, segment: self.segments.last, run: self.known.last_run }
    }

    /// The whole state as journal steps that start from an empty state.
    fn checkpoint(&mut self, rows: &mut Rows) {
        let dead = &self.segments.dead;
        self.segments.pending.retain(|segment, _| !dead.contains(segment));
        self.known.runs().for_each(|run| rows.push(&Op::Run(run)));
        let young: Vec<u128> = self.known.young().collect();
        young.chunks(ROW / 16).for_each(|some| rows.push(&Op::Seen(some.to_vec())));
        rows.push(&self.counters());
        for segment in self.segments.by_host.values().flat_map(BTreeMap::values) {
            rows.push(&Op::Segment(segment.clone()));
        }
        self.queue.each(|row| rows.push(&Op::Add(Arc::clone(&row.bytes))));
    }

    /// Moves requests to disk until a quarter of the limit is free, beginning with the last ones of the longest
    /// queues.
    fn spill(&mut self, limit: usize) {
        let enough = limit - limit / 4;
        for keep in [KEEP, KEEP / 8, 0] {
            for (host, mut extra) in self.queue.largest_hosts(keep.min(limit / 16)) {
                while extra > 0 && self.queue.in_memory() > enough {
                    let rows = self.queue.spill(&host, extra.min(SEGMENT));
                    extra -= rows.len().min(extra);
                    self.store_segment(&host, &rows);
                }
            }
            if self.queue.in_memory() <= enough {
                return;
            }
        }
    }

    fn store_segment(&mut self, host: &HostKey, rows: &[(QueuePosition, Row)]) {
        let Some((first, _)) = rows.first() else { return };
        self.segments.last += 1;
        let id = self.segments.last;
        let mut bytes = Vec::new();
        for (place, row) in rows {
            self.journal.gone(place.sequence);
            put_bytes(&row.bytes, &mut bytes);
        }
        let bytes = pack(&bytes);
        let count = u32::try_from(rows.len()).expect("a segment is small");
        let segment = Segment { id, host: host.clone(), count, next: 0, first: *first };
        self.journal.push(Op::Segment(segment.clone()));
        self.segments.fresh += bytes.len();
        self.segments.pending.insert(id, bytes);
        self.segments.by_host.entry(host.clone()).or_default().insert((*first, id), segment);
    }

    /// The next requests of a host, of which those on disk are read and stay there.
    fn peek(&self, host: &HostKey, most: usize, store: &dyn Store) -> Result<Vec<Request>> {
        let mut due: BTreeMap<QueuePosition, Row> =
            self.queue.due_of(host).take(most).map(|(place, row)| (place, row.clone())).collect();
        for segment in self.segments.by_host.get(host).into_iter().flat_map(BTreeMap::values) {
            if due.len() >= most && due.last_key_value().is_none_or(|(last, _)| *last < segment.first) {
                break;
            }
            let bytes = segment_bytes(&self.segments.pending, segment.id, store)?;
            for (place, row) in segment.clone().load(&bytes, segment.count)? {
                due.insert(place, Row::stored(&row));
            }
            while due.len() > most {
                due.pop_last();
            }
        }
        let delayed = self.queue.delayed_of(host);
        due.values().chain(delayed).take(most).map(|row| row.request(host)).collect()
    }

    /// Loads requests from disk until the first one of a host is in memory.
    fn make_ready(&mut self, host: &HostKey, store: &dyn Store) -> Result<()> {
        while let Some(segments) = self.segments.by_host.get_mut(host) {
            let Some(first) = segments.first_entry() else {
                self.segments.by_host.remove(host);
                break;
            };
            if self.queue.first(host).is_some_and(|own| own < first.key().0) {
                break;
            }
            let mut segment = first.remove();
            let bytes = segment_bytes(&self.segments.pending, segment.id, store)?;
            let until = segment.count.min(segment.next + LOAD as u32);
            let loaded = segment.load(&bytes, until)?;
            self.journal.push(Op::Loaded { id: segment.id, until });
            if segment.next == segment.count {
                self.segments.dead.push(segment.id);
            } else {
                segments.insert((segment.first, segment.id), segment);
            }
            self.queue.unspill(host, loaded.into_iter().map(|(place, bytes)| (place, Row::stored(&bytes))));
        }
        Ok(())
    }
}

/// Compresses the requests of one host, which are similar: to a tenth of the bytes, at a microsecond per request.
fn pack(bytes: &[u8]) -> Vec<u8> {
    const LEVEL: i32 = 1;
    zstd::bulk::compress(bytes, LEVEL).expect("memory can be compressed into memory")
}

impl Segment {
    /// Loads the requests of the segment up to an index, which becomes the next one.
    fn load(&mut self, packed: &[u8], until: u32) -> Result<Vec<(QueuePosition, Box<[u8]>)>> {
        if until < self.next || until > self.count {
            return Err(damaged());
        }
        let unpacked = zstd::stream::decode_all(packed).map_err(|_| damaged())?;
        let (mut bytes, mut loaded) = (&unpacked[..], Vec::new());
        for index in 0..self.count {
            let row = take_bytes(&mut bytes)?;
            if index < self.next {
                continue;
            }
            let place = Row::head(row)?.place;
            if index == until {
                self.first = place;
                break;
            }
            loaded.push((place, row.into()));
        }
        self.next = until;
        Ok(loaded)
    }
}

/// Rows of the journal that are being built.
#[derive(Default)]
struct Rows {
    rows: Vec<Vec<u8>>,
    bytes: usize,
}

impl Rows {
    fn push(&mut self, op: &Op) {
        if self.rows.last().is_none_or(|row| row.len() >= ROW) {
            self.rows.push(Vec::new());
        }
        if let Some(row) = self.rows.last_mut() {
            let before = row.len();
            journal::encode(op, row);
            self.bytes += row.len() - before;
        }
    }
}

/// Checks a counter that was read: a number that no crawl can have reached means damage.
fn counted(number: u64) -> Result<u64> {
    if number <= u64::MAX / 2 { Ok(number) } else { Err(damaged()) }
}

/// The journal, read from its beginning.
struct Replay<'a> {
    store: &'a dyn Store,
    state: State,
    /// Requests in memory, by sequence.
    rows: HashMap<u64, Box<[u8]>>,
    segments: HashMap<u64, Segment>,
}

impl<'a> Replay<'a> {
    fn of(store: &'a dyn Store, limits: DiskLimits) -> Result<State> {
        let state = State::new(limits);
        let mut replay = Self { store, state, rows: HashMap::new(), segments: HashMap::new() };
        let mut result = Ok(());
        store.scan(JOURNAL, &mut |key, row| {
            result = replay.row(key, row);
            result.is_ok()
        })?;
        result?;
        replay.finish()
    }

    fn row(&mut self, key: &[u8], row: &[u8]) -> Result<()> {
        let number =
            key.get(JOURNAL.len()..).and_then(|number| number.try_into().ok()).map(u64::from_be_bytes);
        let number = counted(number.ok_or_else(damaged)?)?;
        let rows = &mut self.state.rows;
        if rows.is_empty() {
            *rows = number..number;
        }
        if rows.end != number {
            return Err(damaged());
        }
        rows.end += 1;
        self.state.stored += row.len();
        let mut rest = row;
        while !rest.is_empty() {
            self.step(journal::decode(&mut rest)?)?;
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<()> {
        match op {
            Op::Add(bytes) => {
                let sequence = Row::head(&bytes)?.place.sequence;
                self.rows.insert(sequence, bytes[..].into());
            }
            Op::Gone(sequence) => drop(self.rows.remove(&sequence)),
            Op::Seen(all) => all.into_iter().for_each(|seen| self.state.known.add(Fingerprint(seen))),
            Op::Segment(segment) => drop(self.segments.insert(segment.id, segment)),
            Op::Loaded { id, until } => {
                let segment = self.segments.get_mut(&id).ok_or_else(damaged)?;
                let bytes = self.store.get(&segment_key(id))?.ok_or_else(damaged)?;
                for (place, row) in segment.load(&bytes, until)? {
                    self.rows.insert(place.sequence, row);
                }
                if segment.next == segment.count {
                    self.segments.remove(&id);
                    self.state.segments.dead.push(id);
                }
            }
            Op::Run(run) => self.state.known.replay_run(run, self.store)?,
            Op::Counters { sequence, segment, run } => {
                self.state.sequence = counted(sequence)?;
                self.state.segments.last = counted(segment)?;
                self.state.known.last_run = counted(run)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<State> {
        let Self { mut state, rows, segments, .. } = self;
        let mut changed = state.queue.begin();
        for bytes in rows.into_values() {
            let head = Row::head(&bytes)?;
            state.queue.enqueue(&head.host, head.place, head.at, Row::stored(&bytes), &mut changed);
        }
        for segment in segments.into_values() {
            state.queue.add_spilled(&segment.host, u64::from(segment.count - segment.next));
            let of_host = state.segments.by_host.entry(segment.host.clone()).or_default();
            of_host.insert((segment.first, segment.id), segment);
        }
        Ok(state)
    }
}

impl Frontier for DiskFrontier {
    async fn open(&self) -> Result<Vec<(HostKey, u64)>> {
        let mut state = self.0.working()?;
        state.queue.release_all();
        self.0.queued.store(state.queue.len(), Ordering::Release);
        Ok(state.queue.hosts())
    }

    async fn push(&self, batch: Vec<Request>) -> Result<Pushed> {
        let mut pushed = Pushed::default();
        {
            let mut state = self.0.working()?;
            let state = &mut *state;
            let mut changed = state.queue.begin();
            for request in batch {
                match self.offer(state, request, &mut changed)? {
                    None => pushed.accepted += 1,
                    Some(_) => pushed.duplicates += 1,
                }
            }
            self.finish(state, changed, &mut pushed)?;
        }
        self.commit_if_due().await?;
        Ok(pushed)
    }

    async fn lease(&self, host: &HostKey, max: usize, now: Timestamp) -> Result<Leased> {
        let mut state = self.0.working()?;
        let state = &mut *state;
        state.queue.make_due(host, now);
        let mut leased = Leased::default();
        while leased.leases.len() < max {
            state.make_ready(host, &*self.0.store)?;
            let Some((lease, held)) = state.queue.pop(host) else { break };
            leased.leases.push(Lease { id: LeaseId(lease), request: held.request.request(host)? });
        }
        (leased.due, leased.next_at) = state.queue.due_and_next(host);
        state.queue.forget_if_empty(host);
        self.0.queued.store(state.queue.len(), Ordering::Release);
        Ok(leased)
    }

    async fn settle(&self, batch: Vec<Settled>) -> Result<Pushed> {
        let mut pushed = Pushed::default();
        {
            let mut state = self.0.working()?;
            let state = &mut *state;
            let mut changed = state.queue.begin();
            for settled in batch {
                // A lease that is no longer out was settled before; its end is not counted again.
                if let Some(held) = state.queue.end(settled.lease.0) {
                    match settled.end {
                        End::Done => state.journal.gone(held.place.sequence),
                        End::Release => state.queue.release(held, &mut changed),
                        End::Reschedule(request) => {
                            state.journal.gone(held.place.sequence);
                            match self.offer(state, *request, &mut changed)? {
                                None => pushed.accepted += 1,
                                Some(known) => pushed.refused.push(known),
                            }
                        }
                    }
                }
                for child in settled.children {
                    match self.offer(state, child, &mut changed)? {
                        None => pushed.accepted += 1,
                        Some(_) => pushed.duplicates += 1,
                    }
                }
            }
            self.finish(state, changed, &mut pushed)?;
        }
        self.commit_if_due().await?;
        Ok(pushed)
    }

    async fn longest_queues(&self, most: usize) -> Result<Vec<(HostKey, u64)>> {
        Ok(self.0.working()?.queue.longest(most))
    }

    async fn spill(&self) -> Result<u64> {
        let moved = {
            let mut state = self.0.working()?;
            let before = state.queue.in_memory();
            state.spill(self.0.limits.requests.min(SPILLED));
            before.saturating_sub(state.queue.in_memory()) as u64
        };
        // What was moved is in memory, packed, until it is committed.
        self.commit_if_due().await?;
        Ok(moved)
    }

    async fn queued_of(&self, host: &HostKey) -> Result<u64> {
        Ok(self.0.working()?.queue.queued_of(host))
    }

    async fn peek(&self, host: &HostKey, most: usize) -> Result<Vec<Request>> {
        self.0.working()?.peek(host, most, &*self.0.store)
    }

    fn has_seen(&self, fingerprint: Fingerprint) -> bool {
        self.0.lock().known.is_in_memory(fingerprint)
    }

    fn len(&self) -> u64 {
        self.0.queued.load(Ordering::Acquire)
    }

    async fn sync(&self) -> Result<()> {
        if self.0.has_job { Ok(()) } else { self.commit().await }
    }

    fn is_durable(&self) -> bool {
        true
    }
}
