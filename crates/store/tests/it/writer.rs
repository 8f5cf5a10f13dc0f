//! One writer for many callers: batches are grouped, ordered, bounded, and never half-written.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

use huntsman_store::{Batch, Durability, MemoryStore, Operation, Store, StoreError, StoreErrorKind, Writer};

/// A store that reports each write before it is done, and optionally waits for permission.
#[derive(Debug, Default)]
struct Watched {
    entries: MemoryStore,
    writes: Mutex<Vec<Batch>>,
    /// The write with this number, from zero, fails; all others work, so that the writer itself must stop.
    fails_at: Option<usize>,
    panics: bool,
    began: Option<Sender<()>>,
    leave: Option<Mutex<Receiver<()>>>,
}

impl Store for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.entries.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        self.entries.scan(prefix, visit)
    }

    fn write(&self, batch: &Batch, durability: Durability) -> Result<(), StoreError> {
        if let Some(began) = &self.began {
            began.send(()).expect("the test listens");
        }
        if let Some(leave) = &self.leave {
            // When the sender of permissions is gone, all writes are permitted.
            leave.lock().expect("one writer").recv().unwrap_or_default();
        }
        assert!(!self.panics, "a store with a fault");
        let mut writes = self.writes.lock().expect("one writer");
        writes.push(batch.clone());
        if self.fails_at == Some(writes.len() - 1) {
            return Err(StoreError::new(StoreErrorKind::Full, "no room"));
        }
        self.entries.write(batch, durability)
    }
}

/// A store whose writes wait for permission, with the receiver of its reports and the sender of permissions.
fn gated(mut store: Watched) -> (Arc<Watched>, Receiver<()>, Sender<()>) {
    let (began, has_begun) = mpsc::channel();
    let (give_leave, leave) = mpsc::channel();
    store.began = Some(began);
    store.leave = Some(Mutex::new(leave));
    (Arc::new(store), has_begun, give_leave)
}

fn writer(store: &Arc<Watched>) -> Writer {
    Writer::new(Arc::clone(store) as _, Durability::Process).expect("a thread")
}

fn batch(number: usize, bytes: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(number.to_be_bytes(), vec![0; bytes]);
    batch
}

/// The numbers of the batches in each write.
fn numbers(store: &Watched) -> Vec<Vec<usize>> {
    let writes = store.writes.lock().expect("no writer is left");
    let number = |operation: &Operation| match operation {
        Operation::Put { key, .. } => usize::from_be_bytes(key[..].try_into().expect("a number")),
        Operation::Delete { .. } => panic!("nothing is deleted"),
    };
    writes.iter().map(|batch| batch.operations().iter().map(number).collect()).collect()
}

#[test]
fn what_waits_is_written_at_once_and_in_order() {
    let (store, has_begun, give_leave) = gated(Watched::default());
    let writer = writer(&store);
    let (done, answers) = mpsc::channel();
    let hand_in = |number| {
        let done = done.clone();
        writer.write(batch(number, 10), move |result| {
            done.send((number, result.is_ok())).expect("listened to")
        });
    };
    hand_in(0);
    has_begun.recv().expect("the first is being written");
    (1..=100).for_each(hand_in);
    assert!(answers.try_recv().is_err(), "nothing is on the disk yet");
    drop(give_leave);
    writer.flush().expect("flush");
    assert_eq!(numbers(&store), [vec![0], (1..=100).collect()]);
    assert!(answers.try_iter().eq((0..=100).map(|number| (number, true))));
}

#[test]
fn groups_are_bounded_and_a_huge_batch_is_written_alone() {
    let (store, has_begun, give_leave) = gated(Watched::default());
    let writer = writer(&store);
    writer.write(batch(0, 0), |_| {});
    has_begun.recv().expect("the first is being written");
    for number in 1..=9 {
        writer.write(batch(number, 1 << 20), |_| {});
    }
    drop(give_leave);
    writer.write_and_wait(batch(10, Writer::QUEUE_BYTES * 2)).expect("it gets its turn");
    assert_eq!(numbers(&store), [vec![0], vec![1, 2, 3], vec![4, 5, 6], vec![7, 8, 9], vec![10]]);
}

#[test]
fn what_waits_is_bounded() {
    let store = Arc::new(Watched::default());
    let writer = writer(&store);
    let accepted = AtomicUsize::new(0);
    let answered = Arc::new(AtomicUsize::new(0));
    let weight = Writer::weight(&batch(0, 1 << 20));
    thread::scope(|scope| {
        for number in 0..4 {
            let (writer, accepted, answered) = (&writer, &accepted, &answered);
            scope.spawn(move || {
                for _ in 0..20 {
                    let counted = Arc::clone(answered);
                    writer.write(batch(number, 1 << 20), move |result| {
                        result.expect("written");
                        counted.fetch_add(1, Ordering::SeqCst);
                    });
                    let all = accepted.fetch_add(1, Ordering::SeqCst) + 1;
                    // Room is released before the callbacks run: those of one group may still be pending.
                    let group = (4 << 20) / weight + 1;
                    let waiting = all.saturating_sub(answered.load(Ordering::SeqCst));
                    assert!(waiting <= Writer::QUEUE_BYTES / weight + group, "{waiting} wait");
                }
            });
        }
    });
    writer.flush().expect("flush");
    assert_eq!(answered.load(Ordering::SeqCst), 80);
}

#[test]
fn after_a_failed_write_all_later_ones_fail_alike_and_nothing_is_written() {
    let (store, has_begun, give_leave) = gated(Watched { fails_at: Some(1), ..Watched::default() });
    let writer = writer(&store);
    let (done, answers) = mpsc::channel();
    for number in 0..3 {
        let done = done.clone();
        writer.write(batch(number, 3 << 20), move |result| done.send(result).expect("listened to"));
        if number == 0 {
            has_begun.recv().expect("the first is being written");
        }
    }
    drop(give_leave);
    let mut results = vec![writer.write_and_wait(batch(3, 0)), writer.flush()];
    results.extend(answers.try_iter());
    assert_eq!(results.len(), 5);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "the first alone");
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!((error.kind(), error.to_string().as_str()), (StoreErrorKind::Full, "no room"));
    }
    assert_eq!(numbers(&store), [[0], [1]], "nothing was tried after the failure");
    let mut left = 0;
    store
        .scan(b"", &mut |_, _| {
            left += 1;
            true
        })
        .expect("scan");
    assert_eq!(left, 1);
}

#[test]
fn writers_that_wait_for_room_are_answered_when_a_write_fails() {
    let (store, has_begun, give_leave) = gated(Watched { fails_at: Some(0), ..Watched::default() });
    let writer = writer(&store);
    writer.write(batch(0, Writer::QUEUE_BYTES), |_| {});
    has_begun.recv().expect("the first is being written");
    thread::scope(|scope| {
        let writer = &writer;
        let waits: Vec<_> =
            (1..4).map(|number| scope.spawn(move || writer.write_and_wait(batch(number, 1)))).collect();
        drop(give_leave);
        for wait in waits {
            assert!(wait.join().expect("no panic").is_err());
        }
    });
}

#[test]
fn dropping_the_writer_writes_and_answers_what_waits() {
    let (store, has_begun, give_leave) = gated(Watched::default());
    let answered = Arc::new(AtomicUsize::new(0));
    let writer = writer(&store);
    for number in 0..50 {
        let answered = Arc::clone(&answered);
        writer.write(batch(number, 0), move |result| {
            result.expect("written");
            answered.fetch_add(1, Ordering::SeqCst);
        });
    }
    has_begun.recv().expect("the first is being written");
    drop(give_leave);
    drop(writer);
    assert_eq!(answered.load(Ordering::SeqCst), 50);
    assert!(numbers(&store).concat().into_iter().eq(0..50));
    assert_eq!(Arc::strong_count(&store), 1, "its thread has ended and holds nothing");
}

#[test]
fn after_a_panic_no_caller_waits_for_ever() {
    let store = Arc::new(Watched { panics: true, ..Watched::default() });
    let faulty = writer(&store);
    for _ in 0..2 {
        let error = faulty.write_and_wait(batch(0, 0)).expect_err("the store panicked");
        assert_eq!(error.to_string(), "the store panicked while writing");
    }
    let writer = writer(&Arc::default());
    writer.write(batch(0, 0), |_| panic!("a fault of the caller"));
    writer.write_and_wait(batch(1, 0)).expect("others are answered");
}

#[test]
fn the_last_owner_may_be_an_answer() {
    let (store, has_begun, give_leave) = gated(Watched::default());
    let writer = Arc::new(writer(&store));
    let ended = Arc::new(AtomicBool::new(false));
    let (own, tell) = (Arc::clone(&writer), Arc::clone(&ended));
    writer.write(batch(0, 0), move |_| {
        drop(own);
        tell.store(true, Ordering::SeqCst);
    });
    has_begun.recv().expect("it is being written");
    drop(writer);
    drop(give_leave);
    while Arc::strong_count(&store) > 1 {
        thread::yield_now();
    }
    assert!(ended.load(Ordering::SeqCst));
}
