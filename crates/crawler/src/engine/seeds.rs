//! The source of start requests: it is pulled on a blocking thread, and only while the frontier has room.

use tokio::task::JoinHandle;

use crate::error::Result;
use crate::request::Request;
use crate::simulated::blocking;
use crate::start::Start;

/// Number of start requests taken from the source at once.
const BATCH: usize = 1_000;

/// The state of the start source.
pub(crate) enum Seeds {
    /// The source may be pulled.
    Ready(Start),
    /// The source is being pulled; reading a file or standard input may block.
    Pulling(JoinHandle<(Start, Vec<Result<Request>>)>),
    /// The source is exhausted.
    Done,
}

impl Seeds {
    /// Starts to pull a batch, if the source is not exhausted and not being pulled already.
    pub(crate) fn pull(&mut self) {
        *self = match std::mem::replace(self, Self::Done) {
            Self::Ready(mut start) => Self::Pulling(blocking(move || {
                let batch = start.by_ref().take(BATCH).collect();
                (start, batch)
            })),
            other => other,
        };
    }

    /// The batch that is being pulled. Waits for ever if there is none, so that it can be used in a `select!`.
    pub(crate) async fn batch(&mut self) -> Vec<Result<Request>> {
        let Self::Pulling(pull) = self else { return std::future::pending().await };
        match pull.await {
            Ok((start, batch)) => {
                *self = if batch.is_empty() { Self::Done } else { Self::Ready(start) };
                batch
            }
            Err(cause) => {
                *self = Self::Done;
                vec![Err(crate::error::Error::from(cause).context("reading the start requests"))]
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done)
    }
}
