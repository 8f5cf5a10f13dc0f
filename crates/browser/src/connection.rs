//! The pipe to a browser: commands go out, answers come back, and events are told as they come.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

use crate::message;

/// Longest message that is read. A page whose tree is longer is cut before; only a picture comes near.
const LONGEST: usize = 256 << 20;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// An event of the browser or of one of its targets.
#[derive(Debug)]
pub(crate) struct Event {
    /// Session of the target; empty for the browser itself.
    pub(crate) session: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The browser refused it.
    Refused(String),
    /// The pipe ended.
    Ended,
}

/// The side that sends commands. It is cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    // Unbounded, because events are answered where they are read. A page that makes too many is ended.
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    calls: Arc<Mutex<Calls>>,
    ended: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct Calls {
    last: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, Failure>>>,
    is_over: bool,
}

impl Connection {
    /// A connection, and what drives it: a future that reads until the pipe ends, and one that writes.
    pub(crate) fn new<R, W>(
        reader: R,
        writer: W,
        on_event: impl FnMut(Event) + Send,
    ) -> (Self, impl Future<Output = ()> + Send, impl Future<Output = ()> + Send)
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (ends, ended) = watch::channel(false);
        let calls = Arc::new(Mutex::new(Calls::default()));
        let reading = read(reader, Arc::clone(&calls), ends, on_event);
        (Self { outgoing, calls, ended }, reading, write(writer, queue))
    }

    /// Sends a command to a session, or to the browser if it is empty. It is sent now; the result may be awaited or not.
    pub(crate) fn call(&self, session: &str, method: &str, params: Value) -> Call {
        let (result, answer) = oneshot::channel();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.last += 1;
        let id = calls.last;
        if !calls.is_over {
            calls.waiting.insert(id, result);
        }
        let mut command = json!({"id": id, "method": method});
        command["params"] = params;
        if !session.is_empty() {
            command["sessionId"] = session.into();
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        // While the lock is held, so that the order is that of the numbers. If the writer is gone, the pipe has ended.
        let _ = self.outgoing.send(bytes);
        Call { id, answer, calls: Arc::clone(&self.calls) }
    }

    /// Whether the pipe has ended.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Returns when the pipe has ended.
    pub(crate) async fn ended(&self) {
        // An error means that the reader is gone, too.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }
}

/// A command that was sent; the future of its result.
#[derive(Debug)]
pub(crate) struct Call {
    id: u64,
    answer: oneshot::Receiver<Result<Value, Failure>>,
    calls: Arc<Mutex<Calls>>,
}

impl Future for Call {
    type Output = Result<Value, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| answer.unwrap_or(Err(Failure::Ended)))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&self.id);
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = queue.recv().await {
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    calls: Arc<Mutex<Calls>>,
    ends: watch::Sender<bool>,
    mut on_event: impl FnMut(Event),
) {
    let mut buffer: Vec<u8> = Vec::new();
    let mut searched = 0;
    loop {
        buffer.reserve(PIECE);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let mut begin = 0;
        while let Some(at) = memchr::memchr(0, &buffer[searched..]) {
            let end = searched + at;
            if let Some(message) = message::parse(&buffer[begin..end]) {
                dispatch(message, &calls, &mut on_event);
            }
            begin = end + 1;
            searched = begin;
        }
        buffer.drain(..begin);
        searched = buffer.len();
        if searched > LONGEST {
            tracing::warn!(bytes = searched, "a message of the browser is too long");
            break;
        }
    }
    // First, so that a command that fails because of it sees it.
    ends.send_replace(true);
    let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.is_over = true;
    calls.waiting.clear();
}

fn dispatch(mut message: Value, calls: &Mutex<Calls>, on_event: &mut impl FnMut(Event)) {
    if let Some(id) = message["id"].as_u64() {
        let waiting = calls.lock().unwrap_or_else(PoisonError::into_inner).waiting.remove(&id);
        let result = match message["error"]["message"].as_str() {
            Some(reason) => Err(Failure::Refused(reason.to_owned())),
            None => Ok(message["result"].take()),
        };
        // Many results are awaited by nobody.
        let _ = waiting.map(|waiting| waiting.send(result));
    } else if let Some(method) = message["method"].as_str().map(str::to_owned) {
        let session = message["sessionId"].as_str().unwrap_or_default().to_owned();
        on_event(Event { session, method, params: message["params"].take() });
    }
}
