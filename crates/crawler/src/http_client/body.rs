//! Reads a body chunk by chunk, decodes it while it arrives, and enforces the limits.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use http::StatusCode;

use super::deadline::Timer;
use super::decode::{Coding, DecodeLimits, Decoded, Decoder, Flow};
use super::failure;
use crate::event::OnDownload;
use crate::fetch::{FetchError, FetchErrorKind, Watch};

/// Limits of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) decode: DecodeLimits,
    /// Larger bodies are logged; 0 is off.
    pub(crate) warn_size: u64,
}

/// A received body.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) body: Bytes,
    pub(crate) decoded: Option<Decoded>,
    /// Number of received bytes, whether they were kept or not.
    pub(crate) wire_bytes: u64,
    pub(crate) truncated: bool,
    pub(crate) dataloss: bool,
    /// Whether an observer stopped the download.
    pub(crate) stopped: bool,
}

/// Reads a body to its end or its limit. Beyond the limit it is dropped, together with its connection. If it fails, `partial` has what came.
pub(crate) async fn receive(
    answer: &mut reqwest::Response,
    codings: &[Coding],
    limits: &BodyLimits,
    watch: Watch<'_>,
    timer: &mut Timer<'_>,
    partial: &mut Partial,
) -> Result<Received, FetchError> {
    let status = partial.status;
    let most = match limits.decode.max_size {
        0 => u64::MAX,
        most => most,
    };
    let declared = answer.content_length();
    if let Some(declared) = declared
        && declared > most
        && !limits.decode.truncate
    {
        let message = format!("the body is declared with {declared} bytes, more than {most}");
        return Err(FetchError::new(FetchErrorKind::TooLarge, message).after_sending().with_status(status));
    }
    let mut received = Received::default();
    let chunks = &mut partial.chunks;
    let mut decoder = (!codings.is_empty()).then(|| Decoder::new(codings, limits.decode));
    loop {
        let chunk = match next(answer, timer).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(ReadError::Late(error)) => return Err(error.with_status(status)),
            Err(ReadError::Broken(error)) if limits.decode.fail_on_loss => {
                return Err(failure::of_body(&error, received.wire_bytes).with_status(status));
            }
            Err(ReadError::Broken(_)) => {
                received.dataloss = true;
                break;
            }
        };
        let before = received.wire_bytes;
        received.wire_bytes += chunk.len() as u64;
        let verdict = watch.bytes(&chunk);
        if verdict == OnDownload::Drop {
            return Err(stopped(status));
        }
        let over = received.wire_bytes > most;
        if over && !limits.decode.truncate {
            chunks
                .push(chunk.slice(..usize::try_from(most - before).expect("less than the chunk")), declared);
            let message = format!("the body is larger than {most} bytes");
            return Err(FetchError::new(FetchErrorKind::TooLarge, message)
                .after_sending()
                .with_status(status));
        }
        let chunk = match over {
            true => chunk.slice(..usize::try_from(most - before).expect("less than the chunk")),
            false => chunk,
        };
        let flow = match &mut decoder {
            Some(decoder) => decoder.push(&chunk).map_err(|error| error.with_status(status)),
            None => Ok(Flow::More),
        };
        chunks.push(chunk, declared);
        let flow = flow?;
        if over || flow == Flow::Full {
            received.truncated = true;
            break;
        }
        if verdict == OnDownload::Deliver {
            received.stopped = true;
            break;
        }
    }
    received.body = std::mem::take(chunks).into_bytes();
    if let Some(decoder) = decoder {
        let cut = received.truncated || received.dataloss || received.stopped;
        received.decoded = Some(decoder.finish(cut).map_err(|error| error.with_status(status))?);
    }
    Ok(received)
}

/// Receives a body to its end, or to `most` bytes unless that is 0, and keeps nothing of it.
pub(crate) async fn count(
    answer: &mut reqwest::Response,
    most: u64,
    watch: Watch<'_>,
    timer: &mut Timer<'_>,
) -> Result<Received, FetchError> {
    let status = answer.status();
    let mut received = Received::default();
    loop {
        let chunk = match next(answer, timer).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(ReadError::Late(error)) => return Err(error.with_status(status)),
            Err(ReadError::Broken(_)) => {
                received.dataloss = true;
                break;
            }
        };
        received.wire_bytes += chunk.len() as u64;
        match watch.bytes(&chunk) {
            OnDownload::Drop => return Err(stopped(status)),
            OnDownload::Deliver => received.stopped = true,
            OnDownload::Continue => received.truncated = most > 0 && received.wire_bytes > most,
        }
        if received.stopped || received.truncated {
            break;
        }
    }
    Ok(received)
}

/// What came of a body until it failed.
#[derive(Default)]
pub(crate) struct Partial {
    chunks: ChunkBuffer,
    status: StatusCode,
}

impl Partial {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { chunks: ChunkBuffer::default(), status }
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.chunks.into_bytes()
    }
}

/// The error if an observer stopped the download and the body is to be dropped.
pub(crate) fn stopped(status: StatusCode) -> FetchError {
    FetchError::new(FetchErrorKind::Stopped, "an observer stopped the download")
        .after_sending()
        .with_status(status)
}

enum ReadError {
    Late(FetchError),
    Broken(reqwest::Error),
}

/// The next chunk that is not empty; trailers are skipped.
async fn next(answer: &mut reqwest::Response, timer: &mut Timer<'_>) -> Result<Option<Bytes>, ReadError> {
    loop {
        let chunk = {
            let mut chunk = pin!(answer.chunk());
            std::future::poll_fn(|cx| match chunk.as_mut().poll(cx) {
                Poll::Ready(chunk) => Poll::Ready(chunk.map_err(ReadError::Broken)),
                Poll::Pending => timer.poll_body(cx).map(|error| Err(ReadError::Late(error))),
            })
            .await?
        };
        match chunk {
            Some(chunk) if chunk.is_empty() => {}
            Some(chunk) => {
                timer.progress();
                return Ok(Some(chunk));
            }
            None => return Ok(None),
        }
    }
}

/// Collects chunks into one body. A single large chunk is kept without copying; a small one is copied, because it
/// keeps the whole read buffer alive that it is a part of.
#[derive(Default)]
struct ChunkBuffer {
    single: Option<Bytes>,
    many: BytesMut,
}

/// A smaller chunk is copied: that takes less than a microsecond, and otherwise a buffer of up to 256 KiB would stay
/// alive.
const COPY_BELOW: usize = 48 << 10;
/// Greatest capacity that is reserved because of Content-Length alone.
const TRUSTED: usize = 1 << 20;

impl ChunkBuffer {
    fn push(&mut self, chunk: Bytes, declared: Option<u64>) {
        if self.single.is_none() && self.many.is_empty() {
            self.single = Some(chunk);
            return;
        }
        if let Some(first) = self.single.take() {
            let expected = declared.map_or(0, |n| usize::try_from(n).unwrap_or(TRUSTED).min(TRUSTED));
            self.many.reserve(expected.max(first.len() + chunk.len()));
            self.many.extend_from_slice(&first);
        }
        self.many.extend_from_slice(&chunk);
    }

    fn into_bytes(self) -> Bytes {
        match self.single {
            Some(chunk) if chunk.len() >= COPY_BELOW => chunk,
            Some(chunk) => Bytes::copy_from_slice(&chunk),
            None if self.many.capacity() - self.many.len() > self.many.len() / 4 => {
                Bytes::copy_from_slice(&self.many)
            }
            None => self.many.freeze(),
        }
    }
}
