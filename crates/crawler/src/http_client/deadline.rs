//! The four deadlines of a request, implemented with one timer.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::attempt::Attempt;
use crate::fetch::{FetchError, FetchErrorKind};
use crate::settings::{Settings, seconds};

/// The limits of the parts of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

impl Deadlines {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            connect: limit(settings.connect_timeout),
            first_byte: limit(settings.first_byte_timeout),
            idle: limit(settings.read_idle_timeout),
            total: limit(settings.download_timeout),
        }
    }
}

/// Converts seconds to a limit; 0 means no limit, which is a year.
pub(crate) fn limit(value: f64) -> Duration {
    const NONE: Duration = Duration::from_secs(365 * 86_400);
    match seconds(value) {
        Duration::ZERO => NONE,
        limit => limit,
    }
}

/// The timer of a request. It is reset only when a wait begins and after it fired, never per byte: the last progress
/// is recorded, and a timer that fires too early is moved.
pub(crate) struct Timer<'a> {
    sleep: Pin<&'a mut Sleep>,
    deadlines: Deadlines,
    start: Instant,
    end: Instant,
    /// Time at which the last bytes arrived; at first the time of the headers.
    progress: Instant,
    waits_for_body: bool,
}

impl<'a> Timer<'a> {
    /// A timer whose total time begins at `start`.
    pub(crate) fn new(sleep: Pin<&'a mut Sleep>, deadlines: Deadlines, start: Instant) -> Self {
        let end = start + deadlines.total;
        Self { sleep, deadlines, start, end, progress: start, waits_for_body: false }
    }

    /// The time at which the timer of a request has to fire first.
    pub(crate) fn first(deadlines: &Deadlines, start: Instant) -> Instant {
        start + deadlines.total.min(deadlines.first_byte)
    }

    /// Waits for the headers.
    pub(crate) async fn head<T>(
        &mut self,
        attempt: &Attempt,
        sent: Instant,
        waiting: impl Future<Output = T>,
    ) -> Result<T, FetchError> {
        let mut waiting = pin!(waiting);
        std::future::poll_fn(|cx| match waiting.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => self.poll_limit(cx, |timer| attempt.limit(sent, &timer.deadlines)).map(Err),
        })
        .await
    }

    /// Records that bytes arrived.
    pub(crate) fn progress(&mut self) {
        self.progress = Instant::now();
    }

    /// Ready with the error if no byte has arrived for too long, or the whole request takes too long. Call it when
    /// the body has no data.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<FetchError> {
        let limit = |timer: &Self| (timer.progress + timer.deadlines.idle, FetchErrorKind::IdleTimeout);
        if !self.waits_for_body {
            self.waits_for_body = true;
            let (at, _) = limit(self);
            self.sleep.as_mut().reset(at.min(self.end));
        }
        self.poll_limit(cx, limit)
    }

    fn poll_limit(
        &mut self,
        cx: &mut Context<'_>,
        limit: impl Fn(&Self) -> (Instant, FetchErrorKind),
    ) -> Poll<FetchError> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now >= self.end {
                return Poll::Ready(self.error(FetchErrorKind::TotalTimeout));
            }
            let (at, kind) = limit(self);
            if now >= at {
                return Poll::Ready(self.error(kind));
            }
            self.sleep.as_mut().reset(at.min(self.end));
        }
        Poll::Pending
    }

    fn error(&self, kind: FetchErrorKind) -> FetchError {
        let (what, limit) = match kind {
            FetchErrorKind::ConnectTimeout => ("no connection", self.deadlines.connect),
            FetchErrorKind::FirstByteTimeout => ("no headers", self.deadlines.first_byte),
            FetchErrorKind::IdleTimeout => ("no byte of the body", self.deadlines.idle),
            _ => ("not complete", self.deadlines.total),
        };
        let error = FetchError::new(kind, format!("{what} within {limit:?}"));
        if kind == FetchErrorKind::ConnectTimeout { error } else { error.after_sending() }
    }

    /// The time at which the request began.
    pub(crate) fn started(&self) -> Instant {
        self.start
    }
}
