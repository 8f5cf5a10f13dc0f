//! One attempt at a request: state shared by parts of the client that have no other connection to each other, namely
//! the resolver, the layer around the connector, and the task that waits for the headers.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::certificates::RefusedCertificate;
use super::deadline::Deadlines;
use crate::fetch::FetchErrorKind;

tokio::task_local! {
    /// The attempt that the current task works for. A task-local is needed because the HTTP library passes only a
    /// name to a resolver, and nothing to the layers around its connector.
    pub(crate) static ATTEMPT: Arc<Attempt>;
}

/// The state of one attempt; see the module.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Port of the target.
    pub(crate) port: u16,
    connect: Mutex<Connect>,
    handshake: Mutex<Handshake>,
}

/// What the handshake of TLS showed.
#[derive(Debug, Default)]
struct Handshake {
    version: Option<&'static str>,
    refused: Option<RefusedCertificate>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Connect {
    started: Option<Instant>,
    done: Option<Instant>,
    dns: Option<Duration>,
}

impl Attempt {
    /// An attempt to reach a target on this port.
    pub(crate) fn new(port: u16) -> Self {
        Self { port, connect: Mutex::default(), handshake: Mutex::default() }
    }

    /// Records the version of TLS that was agreed on.
    pub(crate) fn agreed_on(&self, version: &'static str) {
        self.handshake().version = Some(version);
    }

    /// Records a certificate that was refused.
    pub(crate) fn refused_certificate(&self, refused: RefusedCertificate) {
        self.handshake().refused = Some(refused);
    }

    /// The version of TLS; `None` on a reused connection and without TLS.
    pub(crate) fn tls_version(&self) -> Option<&'static str> {
        self.handshake().version
    }

    /// The certificate that was refused.
    pub(crate) fn take_refused(&self) -> Option<RefusedCertificate> {
        self.handshake().refused.take()
    }

    fn handshake(&self) -> std::sync::MutexGuard<'_, Handshake> {
        self.handshake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that resolving a name took this time; the times for the target and for a proxy add up.
    pub(crate) fn resolved(&self, took: Duration) {
        let mut connect = self.lock();
        connect.dns = Some(connect.dns.unwrap_or_default() + took);
    }

    /// The time until which to wait for the headers, if the request was handed over at `sent`, and the kind of the
    /// error if they have not arrived by then. Time spent connecting does not count as silence of the server.
    pub(crate) fn limit(&self, sent: Instant, deadlines: &Deadlines) -> (Instant, FetchErrorKind) {
        let connect = *self.lock();
        match (connect.started, connect.done) {
            (Some(started), None) => (started + deadlines.connect, FetchErrorKind::ConnectTimeout),
            (_, Some(done)) => (done + deadlines.first_byte, FetchErrorKind::FirstByteTimeout),
            (None, None) => (sent + deadlines.first_byte, FetchErrorKind::FirstByteTimeout),
        }
    }

    /// Whether the request used a connection that had served others before, because no new connection was ready. A
    /// new one may have been begun when an older one became free.
    pub(crate) fn reused(&self) -> bool {
        self.lock().done.is_none()
    }

    /// The time for resolving, and for the rest of connecting with all handshakes; `None` on a reused connection.
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

/// A layer around the connector: it records when connecting begins and ends, and passes the attempt on when the pool
/// moves the connecting to a separate task.
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
