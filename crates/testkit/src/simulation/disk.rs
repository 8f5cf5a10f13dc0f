//! The simulated disk: a store and files of lines. Unsynced changes are lost at a power cut, changes after a crash
//! never reach the disk, and some writes fail.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_store::{Batch, Durability, Operation, Store, StoreError, StoreErrorKind};

/// The simulated disk; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<State>>);

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug, Default)]
struct State {
    /// The entries that a process reads.
    entries: Entries,
    /// The entries that remain after a power cut.
    synced: Entries,
    files: BTreeMap<&'static str, File>,
    /// The life whose process may write; 0 while no process runs.
    mounted: u32,
    writes: u64,
    fault: Option<Fault>,
    /// A write failed: all further writes of this life fail.
    failed: bool,
    /// The state that the failed write left behind, for the next process.
    left: Option<Entries>,
}

#[derive(Debug, Default)]
struct File {
    lines: Vec<String>,
    synced: usize,
}

/// A write that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The number of the write in this life.
    pub(super) write: u64,
    /// Whether the next process finds the written data all the same.
    pub(super) arrives: bool,
}

fn apply(entries: &mut Entries, batch: &Batch) {
    for operation in batch.operations() {
        match operation {
            Operation::Put { key, value } => drop(entries.insert(key.clone(), value.clone())),
            Operation::Delete { key } => drop(entries.remove(key)),
        }
    }
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk as seen by the process of a life.
    pub(super) fn mount(&self, life: u32, fault: Option<Fault>) -> Mounted {
        let mut state = self.state();
        state.mounted = life;
        state.writes = 0;
        state.fault = fault;
        state.failed = false;
        if let Some(left) = state.left.take() {
            state.entries = left;
        }
        Mounted { disk: self.clone(), life }
    }

    /// Ends the process: tasks of it that are still running can no longer write.
    pub(super) fn unmount(&self) {
        self.state().mounted = 0;
    }

    /// Cuts the power.
    pub(super) fn cut(&self) {
        let mut state = self.state();
        state.mounted = 0;
        state.entries = state.synced.clone();
        state.left = None;
        for file in state.files.values_mut() {
            file.lines.truncate(file.synced);
        }
    }

    /// Number of writes in this life, including failed ones.
    pub(super) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// The lines of a file.
    pub(super) fn lines(&self, file: &str) -> Vec<String> {
        self.state().files.get(file).map(|file| file.lines.clone()).unwrap_or_default()
    }

    /// The value of a key.
    pub(super) fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.state().entries.get(key).cloned()
    }
}

/// The disk as one process sees it.
#[derive(Clone, Debug)]
pub(super) struct Mounted {
    disk: Disk,
    life: u32,
}

impl Mounted {
    fn state(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.disk.state();
        if state.mounted == self.life {
            Ok(state)
        } else {
            Err(StoreError::new(StoreErrorKind::Io, "the process is gone"))
        }
    }

    /// Whether a write has to fail; after a failed write, all later ones fail.
    fn fails(state: &mut State) -> bool {
        state.writes += 1;
        state.failed |= state.fault.is_some_and(|fault| fault.write == state.writes);
        state.failed
    }

    /// Appends lines to a file.
    pub(super) fn append(&self, name: &'static str, lines: Vec<String>) -> Result<(), StoreError> {
        let mut state = self.state()?;
        if Self::fails(&mut state) {
            return Err(StoreError::new(StoreErrorKind::Full, "no space is left"));
        }
        state.files.entry(name).or_default().lines.extend(lines);
        Ok(())
    }

    /// The number of lines in a file.
    pub(super) fn length(&self, name: &'static str) -> Result<usize, StoreError> {
        Ok(self.state()?.files.entry(name).or_default().lines.len())
    }

    /// Truncates a file; returns `false` if it is shorter already.
    pub(super) fn truncate(&self, name: &'static str, length: usize) -> Result<bool, StoreError> {
        let mut state = self.state()?;
        let file = state.files.entry(name).or_default();
        let is_long = file.lines.len() >= length;
        file.lines.truncate(length);
        file.synced = file.synced.min(length);
        Ok(is_long)
    }

    pub(super) fn sync(&self, name: &'static str) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let file = state.files.entry(name).or_default();
        file.synced = file.lines.len();
        Ok(())
    }
}

impl Store for Mounted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state()?.entries.get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let state = self.state()?;
        let from = state.entries.range(prefix.to_vec()..);
        let found: Vec<_> = from
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        drop(state);
        found.iter().all(|(key, value)| visit(key, value));
        Ok(())
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        let mut state = self.state()?;
        let was_whole = !state.failed;
        if Self::fails(&mut state) {
            if was_whole && state.fault.is_some_and(|fault| fault.arrives) {
                let mut left = state.entries.clone();
                apply(&mut left, batch);
                state.left = Some(left);
            }
            return Err(StoreError::new(StoreErrorKind::Full, "no space is left"));
        }
        apply(&mut state.entries, batch);
        if durability == Durability::Full {
            state.synced = state.entries.clone();
        }
        Ok(())
    }
}
