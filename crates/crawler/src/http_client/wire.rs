//! A connection as the HTTP library sees it: bytes in, bytes out, and what is known of the other end.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::failure::{FLOOD, Failure};
use crate::fetch::FetchErrorKind;

/// TCP, or TLS over it, or TLS over TLS (an https proxy).
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<Stream>>),
}

/// How long the parts of connecting took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectTimes {
    pub(crate) dns: Option<Duration>,
    pub(crate) connect: Option<Duration>,
    pub(crate) tls: Option<Duration>,
}

/// What is known of a connection; shared between the connection and the answers that came over it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) ip: Option<IpAddr>,
    pub(crate) certificate: Option<Bytes>,
    times: ConnectTimes,
    answered: AtomicBool,
    h2: bool,
    /// One of the states below.
    state: AtomicU8,
    /// Wakes the reading side of an idle connection that is to be closed.
    reader: AtomicWaker,
    /// Bytes read.
    read: AtomicU64,
    /// Value of `read` when bytes were written last, and when an answer or a part of one was taken last.
    read_at_write: AtomicU64,
    read_at_progress: AtomicU64,
}

/// Bytes that a server may send before anything of them is taken as (a part of) an answer. It is above the longest
/// header block with usual interim answers, and above what can be under way in the windows of HTTP/2; more is a flood
/// of something that nobody asked for.
const MOST_UNTAKEN: u64 = 3 << 20;

/// A request is under way, or the connection is new and one will be.
const BUSY: u8 = 0;
/// Waits in the pool.
const IDLE: u8 = 1;
/// To be closed in favour of others.
const RETIRED: u8 = 2;
/// Closed.
const CLOSED: u8 = 3;

impl Peer {
    pub(crate) fn new(
        ip: Option<IpAddr>,
        certificate: Option<Bytes>,
        times: ConnectTimes,
        h2: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            ip,
            certificate,
            times,
            answered: AtomicBool::new(false),
            h2,
            state: AtomicU8::new(BUSY),
            reader: AtomicWaker::new(),
            read: AtomicU64::new(0),
            read_at_write: AtomicU64::new(0),
            read_at_progress: AtomicU64::new(0),
        })
    }

    /// Notes that headers came, or a part of a body. The first answer is the one that waited for the connecting
    /// and gets its times.
    pub(crate) fn answered(&self) -> ConnectTimes {
        self.progress();
        if self.answered.swap(true, Ordering::Relaxed) { ConnectTimes::default() } else { self.times }
    }

    /// Notes that a part of an answer was taken.
    pub(crate) fn progress(&self) {
        self.read_at_progress.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Notes that an answer was taken whole. With HTTP/2 others may be under way: such a connection never counts as
    /// idle here and is left to the pool's own timeout.
    pub(crate) fn finished(&self) {
        if !self.h2 {
            let _ = self.state.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Closes the connection if it idles; answers whether it is or will be closed.
    pub(crate) fn retire(&self) -> bool {
        match self.state.compare_exchange(IDLE, RETIRED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                self.reader.wake();
                true
            }
            Err(state) => state >= RETIRED,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_retired(&self) -> bool {
        self.state.load(Ordering::Acquire) == RETIRED
    }

    /// Whether the connection served before and ended without a byte for the present request: it had been closed
    /// by the server while it idled.
    pub(crate) fn was_stale(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
            && self.read.load(Ordering::Relaxed) == self.read_at_write.load(Ordering::Relaxed)
    }
}

/// A connection with its bookkeeping.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    peer: Arc<Peer>,
    proxied: bool,
}

impl Wire {
    /// `proxied` sends absolute URLs.
    pub(crate) fn new(stream: Stream, peer: Arc<Peer>, proxied: bool) -> Self {
        Self { stream, peer, proxied }
    }

    /// What is known of the other end.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Notes that a request is being written; fails if the connection was given up a moment before.
    fn note_write(&self) -> io::Result<()> {
        self.peer.read_at_write.store(self.peer.read.load(Ordering::Relaxed), Ordering::Relaxed);
        match self.peer.state.compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Acquire) {
            Err(RETIRED) => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.peer.state.store(CLOSED, Ordering::Release);
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.proxied).extra(Arc::clone(&self.peer));
        if self.peer.h2 { connected.negotiated_h2() } else { connected }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let peer = &self.peer;
        if polled.is_pending() {
            peer.reader.register(cx.waker());
            if peer.state.load(Ordering::Acquire) == RETIRED {
                // Nothing read is the end of the stream: the library closes the connection in order.
                return Poll::Ready(Ok(()));
            }
            return Poll::Pending;
        }
        let read = peer.read.load(Ordering::Relaxed) + (buf.filled().len() - before) as u64;
        peer.read.store(read, Ordering::Relaxed);
        if read - peer.read_at_progress.load(Ordering::Relaxed).min(read) > MOST_UNTAKEN {
            let message = "megabytes came, but no answer";
            let flood = Failure::new(FetchErrorKind::BadResponse, message);
            return Poll::Ready(Err(io::Error::new(FLOOD, flood)));
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.note_write()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.note_write()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
