//! One try of a request, as seen by the parts of the client that do not know each other: the connector that may
//! open a connection for it, the parser that meets interim answers, and the task that waits for the headers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::task::AtomicWaker;
use tokio::time::Instant;

use super::deadline::Deadlines;
use crate::fetch::FetchErrorKind;

tokio::task_local! {
    /// The attempt that the present task works for. The HTTP library hands nothing but the address to a connector.
    pub(crate) static ATTEMPT: Arc<Attempt>;
}

/// Interim answers (1xx) before the real one, at most.
const MOST_INTERIM: u32 = 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    interim: AtomicU32,
    waker: AtomicWaker,
    connect: Mutex<Connect>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connect {
    started: Option<Instant>,
    done: Option<Instant>,
}

impl Attempt {
    /// An interim answer arrived.
    pub(crate) fn interim(&self) {
        if self.interim.fetch_add(1, Ordering::Relaxed) == MOST_INTERIM {
            self.waker.wake();
        }
    }

    /// Whether there were more interim answers than any server has reason for.
    pub(crate) fn is_flooded(&self) -> bool {
        self.interim.load(Ordering::Relaxed) > MOST_INTERIM
    }

    /// Wakes the waiting task when the attempt is flooded.
    pub(crate) fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
    }

    pub(crate) fn connecting(&self, at: Instant) {
        self.lock().started = Some(at);
    }

    pub(crate) fn connected(&self, at: Instant) {
        self.lock().done = Some(at);
    }

    /// Until when to wait for the headers, if the request was handed over at `sent`, and what it means when they
    /// are not there by then. Time spent connecting does not count as the server's silence.
    pub(crate) fn limit(&self, sent: Instant, deadlines: &Deadlines) -> (Instant, FetchErrorKind) {
        let connect = *self.lock();
        match (connect.started, connect.done) {
            (Some(started), None) => (started + deadlines.connect, FetchErrorKind::ConnectTimeout),
            (_, Some(done)) => (done + deadlines.first_byte, FetchErrorKind::FirstByteTimeout),
            (None, None) => (sent + deadlines.first_byte, FetchErrorKind::FirstByteTimeout),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connect> {
        self.connect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
