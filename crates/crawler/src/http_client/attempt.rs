//! One try of a request, as seen by the parts of the client that do not know each other: the resolver, the layer around
//! the connector, and the task that waits for the headers.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::deadline::Deadlines;
use crate::fetch::FetchErrorKind;

tokio::task_local! {
    /// The attempt that the present task works for. The HTTP library hands a resolver nothing but a name, and the
    /// layers around its connector nothing at all.
    pub(crate) static ATTEMPT: Arc<Attempt>;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Port of the target.
    pub(crate) port: u16,
    connect: Mutex<Connect>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connect {
    started: Option<Instant>,
    done: Option<Instant>,
    dns: Option<Duration>,
}

impl Attempt {
    /// An attempt at a target with this port.
    pub(crate) fn new(port: u16) -> Self {
        Self { port, connect: Mutex::default() }
    }

    /// A name was resolved in that time; those of the target and of a proxy add up.
    pub(crate) fn resolved(&self, took: Duration) {
        let mut connect = self.lock();
        connect.dns = Some(connect.dns.unwrap_or_default() + took);
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

    /// Whether the request went over a connection that had served before: no new one was ready. One may have been begun,
    /// and overtaken by one that became free.
    pub(crate) fn reused(&self) -> bool {
        self.lock().done.is_none()
    }

    /// Time for resolving, and for the rest of connecting with all handshakes; nothing on a reused connection.
    pub(crate) fn times(&self) -> (Option<Duration>, Option<Duration>) {
        let connect = *self.lock();
        match (connect.started, connect.done) {
            (Some(started), Some(done)) => {
                let rest = (done - started).saturating_sub(connect.dns.unwrap_or_default());
                (connect.dns, Some(rest))
            }
            _ => (None, None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connect> {
        self.connect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A layer around the connector: notes when connecting begins and ends, and keeps the attempt with it when the pool
/// moves it to a task of its own.
pub(crate) fn watched<F, T, E>(connecting: F) -> impl Future<Output = Result<T, E>>
where
    F: Future<Output = Result<T, E>>,
{
    let attempt = ATTEMPT.try_with(Arc::clone).ok();
    if let Some(attempt) = &attempt {
        attempt.lock().started = Some(Instant::now());
    }
    async move {
        let Some(attempt) = attempt else { return connecting.await };
        let connection = ATTEMPT.scope(Arc::clone(&attempt), connecting).await?;
        attempt.lock().done = Some(Instant::now());
        Ok(connection)
    }
}
