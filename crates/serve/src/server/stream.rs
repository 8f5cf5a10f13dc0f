//! A stream to a client: a client that reads too slowly is cut off, and one that is still writing gets the response.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a client may read nothing of what is written to it.
const STALL_TIME: Duration = Duration::from_secs(20);
/// Reading earns the client time again, at this rate in bytes a second.
const MIN_RATE: f64 = 16_384.0;
/// How long the server reads and discards what a client still sends after a response that did not need it: without
/// this, the connection would be reset and the response could be lost.
const LINGER: Duration = Duration::from_secs(2);

/// A stream whose writes fail if the reader is too slow. The client has a budget of time: waiting for a write uses it
/// up, and written bytes add to it. So a client that reads a byte now and then is not waited for longer than one that
/// reads nothing.
#[derive(Debug)]
pub(super) struct MinRateStream<S> {
    stream: S,
    left: Duration,
    /// Since when a write has been waiting, and the timer of its deadline.
    waits: Option<(Instant, Pin<Box<Sleep>>)>,
    /// Whether the client may still be sending when the stream is shut down.
    is_sending: Arc<AtomicBool>,
    /// Set after the shutdown: until this timer ends, incoming bytes are discarded.
    ends: Option<Pin<Box<Sleep>>>,
}

impl<S> MinRateStream<S> {
    pub(super) fn new(stream: S, is_sending: Arc<AtomicBool>) -> Self {
        Self { stream, left: STALL_TIME, waits: None, is_sending, ends: None }
    }

    fn pace(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match wrote {
            Poll::Ready(wrote) => {
                if let Some((since, _)) = self.waits.take() {
                    self.left = self.left.saturating_sub(since.elapsed());
                }
                if let Ok(bytes) = wrote {
                    self.left =
                        (self.left + Duration::from_secs_f64(bytes as f64 / MIN_RATE)).min(STALL_TIME);
                }
                Poll::Ready(wrote)
            }
            Poll::Pending => {
                let left = self.left;
                let (_, end) = self.waits.get_or_insert_with(|| {
                    let now = Instant::now();
                    (now, Box::pin(tokio::time::sleep_until(now + left)))
                });
                end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MinRateStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for MinRateStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.pace(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.pace(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ends.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.is_sending.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let end = this.ends.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        let mut thrown_away = [0; 8 << 10];
        while end.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut thrown_away);
            let read = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_or_a_byte_now_and_then_is_not_waited_for() {
        for step in [None, Some(1), Some(100)] {
            let (ours, mut theirs) = tokio::io::duplex(1_000);
            let start = Instant::now();
            let writing = tokio::spawn(async move {
                MinRateStream::new(ours, Arc::default()).write_all(&[0; 1 << 20]).await
            });
            let reading = tokio::spawn(async move {
                let mut buffer = vec![0; step.unwrap_or(0)];
                while step.is_some() && theirs.read_exact(&mut buffer).await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                std::future::pending::<()>().await;
            });
            assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
            let took = start.elapsed();
            assert!(took >= STALL_TIME && took < STALL_TIME + Duration::from_secs(2), "{step:?}: {took:?}");
            reading.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_sent_is_thrown_away_for_a_while() {
        let (ours, mut theirs) = tokio::io::duplex(1_000);
        let mut ours = MinRateStream::new(ours, Arc::new(AtomicBool::new(true)));
        let sending = tokio::spawn(async move {
            let mut sent = 0;
            while theirs.write_all(&[0; 500]).await.is_ok() {
                sent += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            sent
        });
        let start = Instant::now();
        ours.shutdown().await.unwrap();
        assert!(start.elapsed() >= LINGER && start.elapsed() < 2 * LINGER, "{:?}", start.elapsed());
        drop(ours);
        assert!(sending.await.unwrap() > 15);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_that_keeps_the_pace_gets_all() {
        let (ours, mut theirs) = tokio::io::duplex(1_000);
        let writing =
            tokio::spawn(
                async move { MinRateStream::new(ours, Arc::default()).write_all(&[0; 4 << 20]).await },
            );
        let mut buffer = vec![0; 2 * MIN_RATE as usize];
        for _ in 0..(4 << 20) / buffer.len() {
            theirs.read_exact(&mut buffer).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        writing.await.unwrap().unwrap();
    }
}
