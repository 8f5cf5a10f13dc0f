//! A thread that writes batches for many callers: all waiting batches are written together.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Batch, Durability, Operation, Store};

/// Maximum bytes of batches that are written together. With more, the first would wait for the last.
const GROUP_BYTES: usize = 4 << 20;
/// Memory of a step of a batch besides its bytes.
const OPERATION_BYTES: usize = size_of::<Operation>();

type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Writes batches to a store from one thread, all waiting ones at once (group commit).
///
/// Syncing to disk takes the same time for one batch as for a thousand, so writers are fast if they share a sync and
/// slow if each waits for the syncs of the others. Batches are written in the order in which they were passed, each
/// atomically.
///
/// After a failed write no further batch is written: the failed batch and all that wait or are passed later get the
/// same error. Dropping the writer writes the waiting batches, reports their results, and ends the thread.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Signalled when a batch waits, or the writer is dropped.
    work: Condvar,
    /// Signalled when there is room in the queue.
    room: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Batch, Done)>,
    /// The weight of the batches that wait or are being written.
    weight: usize,
    failed: Option<StoreError>,
    closed: bool,
}

impl Writer {
    /// Weight of waiting batches, by [`Writer::weight`], at which [`Writer::write`] blocks.
    pub const QUEUE_BYTES: usize = 16 << 20;

    /// Starts a writer to a store, whose writes all have this durability.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn new(store: Arc<dyn Store>, durability: Durability) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), work: Condvar::new(), room: Condvar::new() });
        let thread = thread::Builder::new().name("store-writer".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(&*store, durability)
        });
        let thread = thread.map_err(|e| StoreError::io("starting the writer", e))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Passes a batch to the writer. `done` is called once, on the writer's thread, when the batch is on disk or with
    /// the error; it should be short, because the next batches wait for it, and must not call `write` itself.
    ///
    /// Blocks while [`QUEUE_BYTES`](Self::QUEUE_BYTES) wait. A caller that must not block, such as async code, acquires
    /// [`weight`](Self::weight) permits of a semaphore with that many and releases them in `done`: the room is free by
    /// then.
    pub fn write(&self, batch: Batch, done: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let weight = Self::weight(&batch);
        let mut queue = self.shared.lock();
        // The weight of a batch is at most that of the whole queue, so even the largest is accepted.
        while queue.failed.is_none() && queue.weight + weight > Self::QUEUE_BYTES {
            queue = self.shared.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.weight += weight;
        queue.waiting.push_back((batch, Box::new(done)));
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Passes a batch to the writer and waits until it is on disk.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write_and_wait(&self, batch: Batch) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.write(batch, move |result| sender.send(result).unwrap_or_default());
        receiver.recv().expect("every batch is answered")
    }

    /// Waits until all batches passed before are on disk.
    ///
    /// # Errors
    /// This or an earlier write failed.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.write_and_wait(Batch::new())
    }

    /// The part of [`QUEUE_BYTES`](Self::QUEUE_BYTES) that a batch uses: its size in memory, at most all of it.
    pub fn weight(batch: &Batch) -> usize {
        (batch.bytes() + (batch.operations().len() + 1) * OPERATION_BYTES).min(Self::QUEUE_BYTES)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        // The writer may be dropped by a `done` on its own thread, which cannot join itself and ends anyway.
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            thread.join().unwrap_or_default();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.shared.lock();
        f.debug_struct("Writer")
            .field("waiting", &queue.waiting.len())
            .field("weight", &queue.weight)
            .field("failed", &queue.failed)
            .finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes groups until the writer is dropped and no batch waits.
    fn run(&self, store: &dyn Store, durability: Durability) {
        while let Some(group) = self.next_group() {
            let result = match group.failed {
                Some(error) => Err(error),
                None if group.batch.is_empty() => Ok(()),
                None => write(store, &group.batch, durability),
            };
            let mut queue = self.lock();
            queue.weight -= group.weight;
            if let Err(error) = &result {
                queue.failed.get_or_insert_with(|| error.clone());
            }
            drop(queue);
            self.room.notify_all();
            for done in group.done {
                // A panic in a callback is its caller's; the other callbacks must still be called.
                let _ = catch_unwind(AssertUnwindSafe(|| done(result.clone())));
            }
        }
    }

    /// Waits for batches and merges those that fit into one group; `None` at the end.
    fn next_group(&self) -> Option<Group> {
        let mut queue = self.lock();
        while queue.waiting.is_empty() {
            if queue.closed {
                return None;
            }
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let mut group =
            Group { batch: Batch::new(), weight: 0, done: Vec::new(), failed: queue.failed.clone() };
        while let Some((batch, done)) = queue.waiting.pop_front_if(|(batch, _)| {
            group.done.is_empty() || group.weight + Writer::weight(batch) <= GROUP_BYTES
        }) {
            group.weight += Writer::weight(&batch);
            group.batch.append(batch);
            group.done.push(done);
        }
        Some(group)
    }
}

/// Batches that are written together.
struct Group {
    batch: Batch,
    weight: usize,
    done: Vec<Done>,
    failed: Option<StoreError>,
}

/// Writes a batch; a panic of the store becomes an error, so that callers are not left waiting.
fn write(store: &dyn Store, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
    catch_unwind(AssertUnwindSafe(|| store.write(batch, durability)))
        .unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Io, "the store panicked while writing")))
}
