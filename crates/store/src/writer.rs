//! One thread that writes for many: what waits is written in one batch.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use crate::error::{StoreError, StoreErrorKind};
use crate::store::{Batch, Durability, Operation, Store};

/// Bytes of batches that are written together. More would make the first of them wait for the last.
const GROUP_BYTES: usize = 4 << 20;
/// What a step of a batch takes in memory besides its bytes.
const OPERATION_BYTES: usize = size_of::<Operation>();

type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Writes batches to a store from one thread, all that wait at once (group commit).
///
/// Syncing to the disk takes the same time for one batch as for a thousand, so writers that wait for each other's syncs are
/// slow and writers that share them are not. Batches are written in the order in which they came, each wholly or not at all.
///
/// After a failed write nothing is written any more: every batch, the failed one and all that wait or come later, is answered
/// with the same error. Dropping the writer writes what waits, answers it, and ends the thread.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// Something waits, or the end has come.
    work: Condvar,
    /// Room was made.
    room: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Batch, Done)>,
    /// The weight of what waits and of what is being written.
    weight: usize,
    failed: Option<StoreError>,
    closed: bool,
}

impl Writer {
    /// Bytes of batches that wait or are being written, by [`Writer::weight`], before [`Writer::write`] blocks.
    pub const QUEUE_BYTES: usize = 16 << 20;

    /// Starts a writer to a store, whose writes all have this durability.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn new(store: Arc<dyn Store>, durability: Durability) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), work: Condvar::new(), room: Condvar::new() });
        let thread = thread::Builder::new().name("store-writer".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(&*store, durability)
        });
        let thread = thread.map_err(|e| StoreError::io("starting the writer", e))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Hands in a batch. `done` is called once, on the writer's thread, when the batch is on the disk, or with the error; it
    /// should be short, for the next batches wait for it, and must not call `write` itself.
    ///
    /// Blocks while [`QUEUE_BYTES`](Self::QUEUE_BYTES) wait. A caller that must not block, as an async one, takes
    /// [`weight`](Self::weight) permits of a semaphore of that many and gives them back in `done`: the room is free by then.
    pub fn write(&self, batch: Batch, done: impl FnOnce(Result<(), StoreError>) + Send + 'static) {
        let weight = Self::weight(&batch);
        let mut queue = self.shared.lock();
        // A batch takes at most the whole queue, so even the largest gets its turn.
        while queue.failed.is_none() && queue.weight + weight > Self::QUEUE_BYTES {
            queue = self.shared.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.weight += weight;
        queue.waiting.push_back((batch, Box::new(done)));
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Hands in a batch and waits until it is on the disk.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write_and_wait(&self, batch: Batch) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.write(batch, move |result| sender.send(result).unwrap_or_default());
        receiver.recv().expect("every batch is answered")
    }

    /// Waits until all that was handed in before is on the disk.
    ///
    /// # Errors
    /// This or an earlier write failed.
    pub fn flush(&self) -> Result<(), StoreError> {
        self.write_and_wait(Batch::new())
    }

    /// What a batch takes of [`QUEUE_BYTES`](Self::QUEUE_BYTES): its size in memory, at most all of them.
    pub fn weight(batch: &Batch) -> usize {
        (batch.bytes() + (batch.operations().len() + 1) * OPERATION_BYTES).min(Self::QUEUE_BYTES)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_one();
        // The last owner may be a `done` on the writer's own thread, which cannot wait for itself and ends anyway.
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

    /// Writes groups until the writer is dropped and nothing waits.
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
                // A panic there is its caller's; the others are still to be answered.
                let _ = catch_unwind(AssertUnwindSafe(|| done(result.clone())));
            }
        }
    }

    /// Waits for batches and merges as many as belong together; `None` at the end.
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

/// Writes; a panic of the store must not leave callers waiting.
fn write(store: &dyn Store, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
    catch_unwind(AssertUnwindSafe(|| store.write(batch, durability)))
        .unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Io, "the store panicked while writing")))
}
