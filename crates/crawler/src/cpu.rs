//! Runs CPU work outside the reactor: at most as many callbacks at once as there are cores.
//!
//! Jobs wait in a queue that one blocking task empties, so that under load the hand-over between threads costs once
//! per batch and not once per page. The pool uses blocking tasks instead of its own threads, because the paused clock
//! of tests stands still while a blocking task runs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::simulated::blocking;

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// Whether this thread is running a job in place, on an I/O thread.
    static IN_PLACE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a job on the current I/O thread.
pub(crate) fn in_place<T>(job: impl FnOnce() -> T) -> T {
    struct ResetOnDrop;
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            IN_PLACE.set(false);
        }
    }
    IN_PLACE.set(true);
    let _leave = ResetOnDrop;
    job()
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    running: usize,
}

/// Runs jobs on blocking threads, at most `permits` at once.
pub(crate) struct CpuPool {
    permits: usize,
    state: Mutex<State>,
    freed: Condvar,
}

impl CpuPool {
    pub(crate) fn new(permits: usize) -> Self {
        Self { permits: permits.max(1), state: Mutex::default(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job. The job reports its result through a channel that it owns; a panic in it is caught here, and the
    /// channel is dropped.
    pub(crate) fn spawn(self: &Arc<Self>, job: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.jobs.push_back(Box::new(job));
        if state.running < self.permits {
            state.running += 1;
            drop(state);
            self.start_drainer();
        }
    }

    fn start_drainer(self: &Arc<Self>) {
        let pool = Arc::clone(self);
        drop(blocking(move || pool.drain()));
    }

    fn drain(&self) {
        loop {
            let job = {
                let mut state = self.lock();
                match state.jobs.pop_front() {
                    Some(job) => job,
                    None => {
                        state.running -= 1;
                        self.freed.notify_one();
                        return;
                    }
                }
            };
            // The job itself catches panics and turns them into errors of its page; this catch keeps the draining
            // task alive.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Releases the permit of this job while `wait` blocks, and takes one again afterwards.
    pub(crate) fn lend<T>(self: &Arc<Self>, wait: impl FnOnce() -> T) -> T {
        if IN_PLACE.get() {
            // An I/O thread has no permit to release; its other tasks move to another thread meanwhile.
            return tokio::task::block_in_place(wait);
        }
        let replace = {
            let mut state = self.lock();
            let replace = !state.jobs.is_empty();
            if !replace {
                state.running = state.running.saturating_sub(1);
            }
            replace
        };
        self.freed.notify_one();
        if replace {
            self.start_drainer();
        }
        let out = wait();
        let mut state = self.lock();
        while state.running >= self.permits {
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.running += 1;
        out
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_panicking_job_does_not_stop_the_others() {
        let pool = Arc::new(CpuPool::new(1));
        let done = Arc::new(AtomicUsize::new(0));
        for n in 0..10 {
            let done = Arc::clone(&done);
            pool.spawn(move || {
                assert!(n != 3, "job 3 panics");
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let (sent, received) = tokio::sync::oneshot::channel();
        pool.spawn(move || sent.send(()).unwrap());
        received.await.unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 9);
    }

    #[tokio::test]
    async fn a_waiting_job_lends_its_place() {
        let pool = Arc::new(CpuPool::new(1));
        let (first_sent, first) = tokio::sync::oneshot::channel();
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let lender = Arc::clone(&pool);
        pool.spawn(move || {
            let handle = tokio::runtime::Handle::current();
            lender.lend(|| handle.block_on(released)).unwrap();
            first_sent.send(()).unwrap();
        });
        // With one permit, this job can only run while the first one waits.
        pool.spawn(move || release.send(()).unwrap());
        tokio::time::timeout(Duration::from_secs(10), first).await.unwrap().unwrap();
    }
}
