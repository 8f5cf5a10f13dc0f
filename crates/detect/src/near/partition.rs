//! The documents of one language.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::bands;
use super::delta::{self, Delta};
use super::document::{DocId, NearMatch};
use super::frozen::{Frozen, FrozenBuilder, IdRef, merged_order};
use super::index::LanguageStats;
use super::language::Language;
use super::rows::Rows;
use super::work::Work;
use crate::simhash::SimHash;

/// Rows that are added while the lock is held once: some 0.1 ms, which is the longest that a query waits.
const ROWS_AT_ONCE: usize = 256;

/// Full deltas that may wait to be frozen, 5 MB each; beyond that, inserters merge, too.
const MAX_SEALED: usize = 48;

/// Ids that are looked up in a new part while all other threads wait.
const DELETED_AT_ONCE: usize = 1000;

/// The documents of one language: a delta that receives new rows, and parts that do not.
///
/// A full delta becomes a part. Parts are merged in the background such that each is larger than the sum of all smaller ones, so there are
/// few. A document has at most one live row: a replacement marks the old row as dead first.
#[derive(Debug)]
pub(super) struct Partition {
    language: Language,
    k: u32,
    /// Held by a writer from looking up the current rows until they are changed.
    writer: Mutex<()>,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    delta: Delta,
    parts: Vec<Part>,
    merges: Vec<Merge>,
    last_merge: u64,
}

#[derive(Debug)]
struct Part {
    body: Body,
    /// The merge that will replace this part.
    merge: Option<u64>,
}

/// Rows that can only be marked as dead.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// A full delta.
    Sealed(Arc<Delta>),
    /// Rows in the order of their ids.
    Frozen(Arc<Frozen>),
}

/// A merge in progress.
#[derive(Debug)]
struct Merge {
    number: u64,
    /// The ids that were removed from its parts since it began.
    deleted: Vec<DocId>,
}

/// A change to a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) id: IdRef<'a>,
    /// The new fingerprint; 0 removes the document.
    pub(super) hash: SimHash,
    /// Whether the document exists.
    pub(super) is_there: bool,
}

/// The documents at one moment. Documents that are removed later may be missing.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) parts: Vec<Body>,
    pub(super) delta: Vec<(DocId, SimHash)>,
}

/// Access for queries: the documents do not change as long as the view is held.
#[derive(Debug)]
pub(super) struct View<'a>(RwLockReadGuard<'a, State>);

macro_rules! each_body {
    ($body:expr, $part:ident => $do:expr) => {
        match $body {
            Body::Sealed($part) => $do,
            Body::Frozen($part) => $do,
        }
    };
}

impl Body {
    fn rows(&self) -> usize {
        each_body!(self, part => part.rows())
    }

    fn live(&self) -> usize {
        each_body!(self, part => part.live())
    }

    fn find(&self, id: IdRef<'_>) -> Option<SimHash> {
        each_body!(self, part => part.find(id).map(|row| part.hash(row)))
    }

    fn mark_deleted(&self, id: IdRef<'_>) -> bool {
        each_body!(self, part => part.mark_deleted(id))
    }

    fn near(&self, query: SimHash, k: u32, work: &mut Work, found: &mut Vec<NearMatch>) {
        each_body!(self, part => {
            part.near(query, k, work);
            found.extend(work.hits.drain(..).map(|hit| NearMatch { id: part.id(hit.row).into(), distance: hit.distance }));
        });
    }

    fn scan(&self, query: SimHash, k: u32, work: &mut Work, found: &mut Vec<NearMatch>) {
        each_body!(self, part => {
            part.scan(query, k, work);
            found.extend(work.hits.drain(..).map(|hit| NearMatch { id: part.id(hit.row).into(), distance: hit.distance }));
        });
    }

    /// The live rows, in the order of their ids.
    fn by_id(&self) -> Box<dyn Iterator<Item = (IdRef<'_>, SimHash)> + '_> {
        match self {
            Body::Sealed(delta) => {
                let rows = delta.by_id().into_iter().map(u32::from);
                Box::new(rows.map(|row| (delta.id(row), delta.hash(row))))
            }
            Body::Frozen(_) => self.documents(),
        }
    }

    /// The live rows.
    fn documents(&self) -> Box<dyn Iterator<Item = (IdRef<'_>, SimHash)> + '_> {
        each_body!(self, part => {
            let rows = (0..part.rows() as u32).filter(|row| !part.is_deleted(*row));
            Box::new(rows.map(|row| (part.id(row), part.hash(row))))
        })
    }

    pub(super) fn frozen(self, k: u32) -> Arc<Frozen> {
        match self {
            Body::Frozen(part) => part,
            Body::Sealed(_) => {
                let part = merged(&[self], k, &AtomicBool::new(false));
                Arc::new(part.expect("the build has no way to be stopped"))
            }
        }
    }
}

impl Partition {
    pub(super) fn new(language: Language, k: u32) -> Self {
        let state = State { delta: Delta::new(k), parts: Vec::new(), merges: Vec::new(), last_merge: 0 };
        Self { language, k, writer: Mutex::new(()), state: RwLock::new(state) }
    }

    /// A partition with initial documents.
    pub(super) fn with_rows(language: Language, k: u32, rows: Rows) -> Self {
        let partition = Self::new(language, k);
        for part in rows.freeze(k) {
            let body = Body::Frozen(Arc::new(part));
            partition.write().parts.push(Part { body, merge: None });
        }
        partition
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    // A lock that was poisoned by a panic is used on: every change is a single step, so each row is still either live or dead.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn view(&self) -> View<'_> {
        View(self.read())
    }

    /// Takes the writer's lock, which must be held from looking up the current rows until they are changed. If too much waits to be merged,
    /// the caller first merges, too: one delta at a time, because an inserter waits for it.
    pub(super) fn writer(&self) -> MutexGuard<'_, ()> {
        let guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        while self.read().sealed() >= MAX_SEALED {
            if !self.merge(delta::MAX_ROWS, &AtomicBool::new(false)) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        guard
    }

    /// Computes the changes after which the documents are as given. No id may occur twice; sorted ids are found faster.
    pub(super) fn changes<'a>(
        &self,
        _writer: &MutexGuard<'_, ()>,
        documents: impl Iterator<Item = (IdRef<'a>, SimHash)>,
    ) -> Vec<Change<'a>> {
        let state = self.read();
        let changes = documents.filter_map(|(id, hash)| {
            let old = state.find(id);
            let is_as_given = old.unwrap_or_default() == hash;
            (!is_as_given).then_some(Change { id, hash, is_there: old.is_some() })
        });
        changes.collect()
    }

    /// Makes changes that were computed under the same hold of the writer's lock. Returns whether there is something to merge.
    pub(super) fn apply(&self, _writer: &MutexGuard<'_, ()>, changes: &[Change<'_>]) -> bool {
        let mut was_sealed = false;
        for changes in changes.chunks(ROWS_AT_ONCE) {
            let mut state = self.write();
            for change in changes {
                if change.is_there {
                    state.mark_deleted(change.id);
                }
                if change.hash != SimHash::default() {
                    state.delta.push(change.id.into(), change.hash);
                    was_sealed |= state.seal_if_full(self.k);
                }
            }
        }
        was_sealed
    }

    /// A snapshot of the documents.
    pub(super) fn snapshot(&self) -> Snapshot {
        // The snapshot must contain all logged changes. A writer holds this lock from logging a change until it is made.
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.read();
        let rows = (0..state.delta.rows() as u32).filter(|row| !state.delta.is_deleted(*row));
        Snapshot {
            parts: state.parts.iter().map(|part| part.body.clone()).collect(),
            delta: rows.map(|row| (state.delta.id(row).into(), state.delta.hash(row))).collect(),
        }
    }

    /// Merges some parts of at most `limit` rows each, if necessary; returns whether it did. Ends early if `stop` is set.
    pub(super) fn merge(&self, limit: usize, stop: &AtomicBool) -> bool {
        let Some((number, inputs)) = self.write().begin_merge(limit.min(bands::MAX_ROWS)) else {
            return false;
        };
        let Some(part) = merged(&inputs, self.k, stop) else {
            self.write().abandon(number);
            return false;
        };
        loop {
            let deleted = {
                let mut state = self.write();
                let deleted = state.deleted(number);
                if deleted.len() <= DELETED_AT_ONCE {
                    deleted.iter().for_each(|id| {
                        part.mark_deleted(id.into());
                    });
                    state.end_merge(number, part);
                    break;
                }
                deleted
            };
            deleted.iter().for_each(|id| {
                part.mark_deleted(id.into());
            });
        }
        // Freeing a hundred megabytes takes a while; no other thread waits for it here.
        drop(inputs);
        true
    }

    /// Merges all that can be merged, and waits for merges of other threads.
    pub(super) fn settle(&self) {
        while self.merge(usize::MAX, &AtomicBool::new(false)) || !self.read().merges.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn stats(&self) -> LanguageStats {
        let state = self.read();
        let mut bytes = [0; 4];
        bytes[3] = state.delta.bytes();
        for part in &state.parts {
            match &part.body {
                Body::Sealed(delta) => bytes[3] += delta.bytes(),
                Body::Frozen(part) => {
                    bytes.iter_mut().zip(part.bytes()).for_each(|(sum, bytes)| *sum += bytes)
                }
            }
        }
        let bytes = ["hashes", "ids", "bands", "delta"].into_iter().zip(bytes.map(|bytes| bytes as u64));
        LanguageStats { documents: state.live() as u64, bytes: bytes.collect() }
    }
}

impl Snapshot {
    /// All documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = (IdRef<'_>, SimHash)> {
        let delta = self.delta.iter().map(|(id, hash)| (id.into(), *hash));
        self.parts.iter().flat_map(Body::documents).chain(delta)
    }
}

impl View<'_> {
    pub(super) fn near(&self, query: SimHash, k: u32, work: &mut Work) -> Vec<NearMatch> {
        let mut found = Vec::new();
        self.0.delta.near(query, k, work);
        let delta = &self.0.delta;
        found.extend(
            work.hits.drain(..).map(|hit| NearMatch { id: delta.id(hit.row).into(), distance: hit.distance }),
        );
        self.0.parts.iter().for_each(|part| part.body.near(query, k, work, &mut found));
        found.sort_unstable_by(NearMatch::order);
        found
    }

    pub(super) fn scan(&self, query: SimHash, k: u32, work: &mut Work) -> Vec<NearMatch> {
        let mut found = Vec::new();
        self.0.delta.scan(query, k, work);
        let delta = &self.0.delta;
        found.extend(
            work.hits.drain(..).map(|hit| NearMatch { id: delta.id(hit.row).into(), distance: hit.distance }),
        );
        self.0.parts.iter().for_each(|part| part.body.scan(query, k, work, &mut found));
        found.sort_unstable_by(NearMatch::order);
        found
    }

    pub(super) fn get(&self, id: &DocId) -> Option<SimHash> {
        self.0.find(id.into())
    }
}

impl State {
    fn live(&self) -> usize {
        self.delta.live() + self.parts.iter().map(|part| part.body.live()).sum::<usize>()
    }

    fn sealed(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part.body, Body::Sealed(_))).count()
    }

    fn find(&self, id: IdRef<'_>) -> Option<SimHash> {
        let in_delta = self.delta.find(id).map(|row| self.delta.hash(row));
        in_delta.or_else(|| self.parts.iter().rev().find_map(|part| part.body.find(id)))
    }

    fn mark_deleted(&mut self, id: IdRef<'_>) {
        if self.delta.mark_deleted(id) {
            return;
        }
        if let Some(part) = self.parts.iter().rev().find(|part| part.body.mark_deleted(id))
            && let Some(number) = part.merge
        {
            self.merge_of(number).deleted.push(id.into());
        }
    }

    fn seal_if_full(&mut self, k: u32) -> bool {
        let is_full = self.delta.is_full();
        if is_full {
            let delta = std::mem::replace(&mut self.delta, Delta::new(k));
            self.parts.push(Part { body: Body::Sealed(Arc::new(delta)), merge: None });
        }
        is_full
    }

    fn merge_of(&mut self, number: u64) -> &mut Merge {
        let merge = self.merges.iter_mut().find(|merge| merge.number == number);
        merge.expect("a part is marked as long as its merge goes on")
    }

    fn deleted(&mut self, number: u64) -> Vec<DocId> {
        std::mem::take(&mut self.merge_of(number).deleted)
    }

    fn begin_merge(&mut self, limit: usize) -> Option<(u64, Vec<Body>)> {
        let chosen = self.to_merge(limit);
        if chosen.is_empty() {
            return None;
        }
        self.last_merge += 1;
        let number = self.last_merge;
        self.merges.push(Merge { number, deleted: Vec::new() });
        let inputs = chosen.into_iter().map(|at| {
            self.parts[at].merge = Some(number);
            self.parts[at].body.clone()
        });
        Some((number, inputs.collect()))
    }

    /// The parts to merge now: all full deltas and, starting at the smallest part, each part that is not larger than the sum so far.
    fn to_merge(&self, limit: usize) -> BTreeSet<usize> {
        let mut chosen = BTreeSet::new();
        let mut sum = 0;
        let mut frozen = Vec::new();
        for (at, part) in self.parts.iter().enumerate().filter(|(_, part)| part.merge.is_none()) {
            match &part.body {
                Body::Sealed(delta) if sum + delta.live() <= limit => {
                    sum += delta.live();
                    chosen.insert(at);
                }
                Body::Sealed(_) => {}
                Body::Frozen(part) => frozen.push((part.live(), at)),
            }
        }
        let has_sealed = !chosen.is_empty();
        frozen.sort_unstable();
        for (live, at) in &frozen {
            if sum + live > limit || !(chosen.is_empty() || *live <= sum) {
                break;
            }
            sum += live;
            chosen.insert(*at);
        }
        if !has_sealed && chosen.len() < 2 {
            chosen.clear();
            // A part with a quarter of its rows dead is rebuilt.
            let is_wasteful = |&&(live, at): &&(usize, usize)| {
                live <= limit && (self.parts[at].body.rows() - live) * 4 > self.parts[at].body.rows()
            };
            chosen.extend(frozen.iter().find(is_wasteful).map(|(_, at)| at));
        }
        chosen
    }

    fn end_merge(&mut self, number: u64, part: Frozen) {
        self.parts.retain(|part| part.merge != Some(number));
        self.merges.retain(|merge| merge.number != number);
        if part.rows() > 0 {
            self.parts.push(Part { body: Body::Frozen(Arc::new(part)), merge: None });
        }
    }

    fn abandon(&mut self, number: u64) {
        self.merges.retain(|merge| merge.number != number);
        for part in self.parts.iter_mut().filter(|part| part.merge == Some(number)) {
            part.merge = None;
        }
    }
}

/// Merges several parts into one; `None` if it is told to stop.
fn merged(inputs: &[Body], k: u32, stop: &AtomicBool) -> Option<Frozen> {
    let rows = inputs.iter().map(Body::live).sum();
    let mut builder = FrozenBuilder::with_capacity(rows, rows);
    let mut lists: Vec<_> = inputs.iter().map(Body::by_id).collect();
    let ended = merged_order(&mut lists, |id, hash| {
        builder.push(id, hash);
        if builder.rows().is_multiple_of(4096) && stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    ended.is_continue().then(|| builder.finish(k))
}
