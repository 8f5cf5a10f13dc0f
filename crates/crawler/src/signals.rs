//! Signals: the first one stops a crawl gently, the second one at once.
//!
//! The library installs no signal handlers unless the program asks for them
//! ([`CrawlerBuilder::with_signals`](crate::CrawlerBuilder::with_signals)).

use tokio::sync::mpsc;

use crate::engine::Handle;

/// The effect of a signal on a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// No new requests are started; requests in flight may end within `drain_timeout`.
    Graceful,
    /// Requests in flight are cancelled and return to the queue.
    Immediate,
}

/// SIGINT and SIGTERM, or Ctrl-C on systems without them. SIGHUP is not handled, because a handler for it would
/// defeat `nohup`.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<()>);

impl Signals {
    /// Installs the handlers. From then on the signals no longer end the process, for the rest of its life. Must be
    /// called within a runtime.
    #[cfg(unix)]
    pub fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let (sender, receiver) = mpsc::channel(4);
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let Ok(mut stream) = signal(kind) else { continue };
            let sender = sender.clone();
            tokio::spawn(
                async move { while stream.recv().await.is_some() && sender.send(()).await.is_ok() {} },
            );
        }
        Self(receiver)
    }

    /// Installs the handler. From then on Ctrl-C no longer ends the process, for the rest of its life. Must be called
    /// within a runtime.
    #[cfg(not(unix))]
    pub fn listen() -> Self {
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {}
        });
        Self(receiver)
    }

    /// Waits for the next signal; waits for ever if this process cannot receive signals.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops a crawl at the first signal, with the finish reason `shutdown`, and aborts it at the second one. `on_stop`
    /// is called before each. Returns after the second signal.
    pub async fn stop_on_signals(mut self, handle: &Handle, on_stop: impl Fn(StopMode)) {
        self.next().await;
        on_stop(StopMode::Graceful);
        handle.stop("shutdown");
        self.next().await;
        on_stop(StopMode::Immediate);
        handle.abort();
    }
}
