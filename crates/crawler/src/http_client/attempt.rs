//! One attempt at a request: state shared by parts of the client that have no other connection to each other, namely
//! the resolver, the layer around the connector, and the task that waits for the headers.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::time::Instant;

use super::certificates::{RefusedCertificate, bare};
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
    /// The name of the target if there is a proxy before it, which may have a handshake of its own.
    behind_proxy: Option<Box<str>>,
    connect: Mutex<Connect>,
    handshake: Mutex<Handshake>,
}

/// What the handshake of TLS with the target showed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    /// The version that was agreed on.
    pub(crate) version: Option<&'static str>,
    /// The certificate of a target behind a proxy. The HTTP library knows that of any other.
    pub(crate) certificate: Option<Bytes>,
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
        Self { port, behind_proxy: None, connect: Mutex::default(), handshake: Mutex::default() }
    }

    /// An attempt to reach this host through a proxy.
    pub(crate) fn through_proxy(host: &str, port: u16) -> Self {
        Self { behind_proxy: Some(bare(host).into()), ..Self::new(port) }
    }

    /// Whether a server of this name is the target, and not a proxy before it.
    pub(crate) fn is_with(&self, name: &ServerName<'_>) -> bool {
        self.behind_proxy.as_deref().is_none_or(|host| host.eq_ignore_ascii_case(bare(&name.to_str())))
    }

    /// Records the certificate that a server of this name presented.
    pub(crate) fn presented(&self, name: &ServerName<'_>, certificate: &CertificateDer<'_>) {
        if self.behind_proxy.is_some() && self.is_with(name) {
            self.lock_handshake().certificate = Some(Bytes::copy_from_slice(certificate));
        }
    }

    /// Records the version of TLS that was agreed on with the owner of this certificate.
    pub(crate) fn agreed_on(&self, version: &'static str, certificate: &CertificateDer<'_>) {
        let mut handshake = self.lock_handshake();
        if self.is_of_target(&handshake, certificate) {
            handshake.version = Some(version);
        }
    }

    /// Records a certificate that was refused.
    pub(crate) fn refused_certificate(&self, refused: RefusedCertificate) {
        let mut handshake = self.lock_handshake();
        if self.is_of_target(&handshake, &refused.certificate) {
            handshake.refused = Some(refused);
        }
    }

    fn is_of_target(&self, handshake: &Handshake, certificate: &[u8]) -> bool {
        self.behind_proxy.is_none() || handshake.certificate.as_deref() == Some(certificate)
    }

    /// What the handshake showed; nothing on a reused connection and without TLS.
    pub(crate) fn handshake(&self) -> Handshake {
        self.lock_handshake().clone()
    }

    /// The certificate of the target if it was refused.
    pub(crate) fn take_refused(&self) -> Option<RefusedCertificate> {
        self.lock_handshake().refused.take()
    }

    fn lock_handshake(&self) -> std::sync::MutexGuard<'_, Handshake> {
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
