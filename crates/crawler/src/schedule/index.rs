//! Finds the slots that may start now, the next one that may start later, and the idle ones: three ordered indexes.
//! Each change is O(log n).

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::clock::Timestamp;
use crate::host::HostKey;

use super::slot::{Place, Trust};

/// Position of a slot in the scheduler's table.
pub(super) type SlotId = u32;

/// (in flight, key, slot): the order in which ready slots are served.
type ReadyKey = (u32, HostKey, SlotId);

/// The indexes are ordered sets and not heaps with stale entries: a slot moves far more often than it is served, and
/// an entry that is removed at once needs no bound on stale ones.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Ready slots, by trust, then by whether a task waits for a start.
    ready: [[BTreeSet<ReadyKey>; 2]; 3],
    waiting: BTreeSet<(Timestamp, SlotId)>,
    /// Number of waiting slots that are parked.
    parked: usize,
    idle: BTreeSet<(Timestamp, SlotId)>,
}

impl Index {
    pub(super) fn insert(&mut self, place: Place, key: &HostKey, id: SlotId) {
        match place {
            Place::None => {}
            Place::Ready { trust, waiters, active } => {
                self.ready[trust as usize][usize::from(waiters)].insert((active, key.clone(), id));
            }
            Place::Waiting { at, parked } => {
                self.waiting.insert((at, id));
                self.parked += usize::from(parked);
            }
            Place::Idle(until) => {
                self.idle.insert((until, id));
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place, key: &HostKey, id: SlotId) {
        match place {
            Place::None => {}
            Place::Ready { trust, waiters, active } => {
                self.ready[trust as usize][usize::from(waiters)].remove(&(active, key.clone(), id));
            }
            Place::Waiting { at, parked } => {
                self.waiting.remove(&(at, id));
                self.parked -= usize::from(parked);
            }
            Place::Idle(until) => {
                self.idle.remove(&(until, id));
            }
        }
    }

    /// The slot to serve next: the one with the fewest requests in flight; ties are resolved round robin in key order
    /// after `last`.
    ///
    /// `allowed` is indexed by trust. With `waiters_only`, slots that only have requests in the frontier are skipped.
    pub(super) fn first_ready(
        &self,
        last: &HostKey,
        allowed: [bool; 3],
        waiters_only: bool,
    ) -> Option<SlotId> {
        let sets = Trust::ALL.into_iter().filter(|&trust| allowed[trust as usize]);
        let sets = sets.flat_map(|trust| self.ready[trust as usize].iter().skip(usize::from(waiters_only)));
        // A key up to the last one served comes later in the round.
        let rank = |(active, key, id): &ReadyKey| (*active, key <= last, key.clone(), *id);
        sets.filter_map(|set| first_after(set, last)).map(rank).min().map(|(.., id)| id)
    }

    /// The waiting slot with the earliest time.
    pub(super) fn first_waiting(&self) -> Option<(Timestamp, SlotId)> {
        self.waiting.first().copied()
    }

    /// The idle slot that is forgotten next.
    pub(super) fn first_idle(&self) -> Option<(Timestamp, SlotId)> {
        self.idle.first().copied()
    }

    /// Whether everything that could start waits for something other than a delay between starts.
    pub(super) fn all_parked(&self) -> bool {
        self.waiting.len() == self.parked && self.ready.iter().flatten().all(BTreeSet::is_empty)
    }
}

fn first_after<'a>(set: &'a BTreeSet<ReadyKey>, last: &HostKey) -> Option<&'a ReadyKey> {
    let first = set.first()?;
    let after = (Bound::Excluded((first.0, last.clone(), SlotId::MAX)), Bound::Unbounded);
    Some(set.range(after).next().filter(|next| next.0 == first.0).unwrap_or(first))
}
