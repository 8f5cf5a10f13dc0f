//! A connection as the HTTP library sees it: bytes in, bytes out, and what is known of the other end.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
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

impl Peer {
    pub(crate) fn new(ip: Option<IpAddr>, certificate: Option<Bytes>, times: ConnectTimes) -> Arc<Self> {
        Arc::new(Self {
            ip,
            certificate,
            times,
            answered: AtomicBool::new(false),
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
    h2: bool,
}

impl Wire {
    /// `proxied` sends absolute URLs, `h2` was negotiated.
    pub(crate) fn new(stream: Stream, peer: Arc<Peer>, proxied: bool, h2: bool) -> Self {
        Self { stream, peer, proxied, h2 }
    }

    fn note_write(&self) {
        self.peer.read_at_write.store(self.peer.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.proxied).extra(Arc::clone(&self.peer));
        if self.h2 { connected.negotiated_h2() } else { connected }
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
        self.note_write();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.note_write();
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
