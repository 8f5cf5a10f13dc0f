//! What this node knows of the partitions.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use huntsman_crawler::{HostKey, Timestamp};

/// The partitions of a job.
#[derive(Debug)]
pub(crate) struct Partitions {
    all: Vec<Partition>,
    /// Queued requests in own partitions; kept apart because the engine reads it after every event.
    queued: AtomicU64,
}

/// A partition.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    state: Mutex<State>,
    /// The number of the last request that this node pushed to it. Held during a push, so that numbers arrive in their order.
    pub(crate) pushed: tokio::sync::Mutex<u64>,
}

#[derive(Debug, Default)]
struct State {
    owned: Option<Owned>,
    /// The version of the counters.
    version: u64,
    queued: u64,
}

/// A partition that this node owns.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub(crate) epoch: String,
    /// Since when the node owns it, by the clock of the crawl.
    pub(crate) since: Timestamp,
    /// Until then the node may start requests.
    pub(crate) safe_until: Instant,
    /// Then the requests in flight are given up.
    pub(crate) flights_until: Instant,
    /// Whether it is to be given to another node: nothing is leased any more.
    pub(crate) is_draining: bool,
    /// Whether it is given away right now: what is sent to its hosts from now on is not told to the next owner.
    pub(crate) is_leaving: bool,
    /// Hosts that other nodes ask, too, and the number of the last mark that this node knows.
    pub(crate) marked: HashSet<HostKey>,
    pub(crate) marks: u64,
    /// Version up to which this node knows which hosts others have woken.
    pub(crate) woken: u64,
    /// Leases and requests in the outbox, as of the last beat.
    pub(crate) leased: u64,
    pub(crate) outbox: u64,
    /// Calls whose replies have arrived, and which the server still remembers.
    pub(crate) replied: Vec<u64>,
}

/// How a node works on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No other node asks the host.
    Alone,
    /// The host is this node's, and others ask it, too.
    Marked,
    /// The host is another node's, or nobody's.
    Foreign,
}

impl Partitions {
    pub(crate) fn new(count: u32) -> Self {
        Self { all: (0..count).map(|_| Partition::default()).collect(), queued: AtomicU64::new(0) }
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.all.len()).expect("a job has at most 16,384 partitions")
    }

    pub(crate) fn get(&self, partition: u32) -> &Partition {
        &self.all[partition as usize]
    }

    /// Queued requests in own partitions.
    pub(crate) fn queued(&self) -> u64 {
        self.queued.load(Ordering::Acquire)
    }

    /// Whether nothing is queued or leased in own partitions, as far as is known.
    pub(crate) fn has_no_work(&self) -> bool {
        let leases =
            |partition: &Partition| partition.lock().owned.as_ref().is_some_and(|owned| owned.leased > 0);
        self.queued() == 0 && !self.all.iter().any(leases)
    }

    /// The numbers of own partitions.
    pub(crate) fn owned(&self) -> Vec<u32> {
        (0..self.count()).filter(|partition| self.get(*partition).lock().owned.is_some()).collect()
    }

    /// The number of own partitions that are not to be given away.
    pub(crate) fn kept(&self) -> usize {
        let is_kept =
            |partition: &Partition| partition.lock().owned.as_ref().is_some_and(|owned| !owned.is_draining);
        self.all.iter().filter(|partition| is_kept(partition)).count()
    }

    /// Takes over a partition.
    pub(crate) fn gain(&self, partition: u32, owned: Owned, version: u64, queued: u64) {
        let mut state = self.get(partition).lock();
        self.forget(&mut state);
        *state = State { owned: Some(owned), version, queued };
        self.queued.fetch_add(queued, Ordering::AcqRel);
    }

    /// Gives up a partition; returns whether it was an own one of this epoch.
    pub(crate) fn lose(&self, partition: u32, epoch: &str) -> bool {
        let mut state = self.get(partition).lock();
        let is_own = state.owned.as_ref().is_some_and(|owned| owned.epoch == epoch);
        if is_own {
            self.forget(&mut state);
        }
        is_own
    }

    fn forget(&self, state: &mut State) {
        if state.owned.take().is_some() {
            self.queued.fetch_sub(state.queued, Ordering::AcqRel);
        }
    }

    /// Notes the counters of an own partition, unless later ones are known: replies may arrive in another order.
    pub(crate) fn counted(&self, partition: u32, version: u64, queued: u64) {
        let mut state = self.get(partition).lock();
        if state.owned.is_none() || version < state.version {
            return;
        }
        // In this order the sum is never below zero.
        self.queued.fetch_add(queued, Ordering::AcqRel);
        self.queued.fetch_sub(state.queued, Ordering::AcqRel);
        (state.version, state.queued) = (version, queued);
    }
}

impl Partition {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch, if this node owns the partition.
    pub(crate) fn epoch(&self) -> Option<String> {
        self.lock().owned.as_ref().map(|owned| owned.epoch.clone())
    }

    /// The epoch, if this node may start requests of the partition.
    pub(crate) fn working(&self) -> Option<String> {
        let state = self.lock();
        let owned = state.owned.as_ref()?;
        (!owned.is_draining && Instant::now() < owned.safe_until).then(|| owned.epoch.clone())
    }

    /// How this node works on a host of the partition.
    pub(crate) fn access(&self, host: &HostKey) -> Access {
        let state = self.lock();
        match &state.owned {
            Some(owned) if !owned.is_leaving && Instant::now() < owned.safe_until => {
                if owned.marked.contains(host) { Access::Marked } else { Access::Alone }
            }
            _ => Access::Foreign,
        }
    }

    /// Reads or changes what is known of an own partition.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Owned) -> T) -> Option<T> {
        self.lock().owned.as_mut().map(change)
    }
}
